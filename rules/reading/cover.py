"""Finds the cheapest ways to cover a question with patterns.

Words that no pattern covers are passed over at a cost.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

from common.cpu_clock import check
from knowledge.language.cutting import has_han
from knowledge.language.inflection import plural
from rules.query.refusals import unsupported
from rules.reading import costs
from rules.reading.matching import Patterns, PhrasePattern, can_match, matches
from rules.reading.parts import Fragment, Parts, Reading
from rules.reading.value_conditions import value_or_flag
from rules.reading.words import Match, QuestionWords, Word
from rules.words import WORDS

_BEFORE_NOUNS = frozenset(WORDS.english.phrases("questions.before_things"))
_NAMES = frozenset(("tab", "mcol", "dcol", "tcol", "val", "flag"))
_NAMES_BUT_FLAGS = _NAMES - {"flag"}


def _fragments(question: QuestionWords, patterns: Patterns) -> dict[int, list[Fragment]]:
    """Return the fragments that patterns give, by the word at which they begin.

    Of several that cover the same words with the same parts, only the cheapest is kept.
    """
    usable = _usable(question, patterns)
    return {
        start: list(_cheapest(_fragments_at(question, usable, start)))
        for start in range(len(question))
    }


def _usable(question: QuestionWords, patterns: Patterns) -> Patterns:
    """Return the patterns for whose elements the question has words."""
    usable = {}
    for symbol in question.symbols & patterns.keys():
        usable[symbol] = tuple(one for one in patterns[symbol] if can_match(question, one.elements))

    return usable


def _fragments_at(question: QuestionWords, patterns: Patterns, start: int) -> Iterator[Fragment]:
    beginning: dict[PhrasePattern, None] = {}
    for symbol in (*question.words[start].symbols, "<"):
        beginning |= dict.fromkeys(patterns.get(symbol, ()))

    for pattern in beginning:
        check()
        for match in matches(question, pattern.elements, start):
            parts = _made(pattern, match) if match.end > start else None
            if parts is not None:
                cost = pattern.weight + match.cost
                yield Fragment(start, match.end, cost, parts, pattern.text)


def _cheapest(fragments: Iterable[Fragment]) -> Iterable[Fragment]:
    best: dict[tuple[int, str], Fragment] = {}
    for fragment in fragments:
        key = (fragment.end, repr(fragment.parts))
        if key not in best or fragment.cost < best[key].cost:
            best[key] = fragment

    return best.values()


def _made(pattern: PhrasePattern, match: Match) -> Parts | None:
    """Return the parts of a match and of the values within it; None if one of them has none."""
    parts = pattern.make if isinstance(pattern.make, Parts) else pattern.make(match)
    for item in match.inner:
        if parts is None:
            return None

        own = value_or_flag(replace(match, items=(item,), inner=()))
        parts = parts + own if own is not None else None

    return parts


def readings(question: QuestionWords, patterns: Patterns) -> list[Reading]:
    """Return the cheapest reading, and those that cost little more, in this order.

    Raises:
        Refusal: the question asks for something that rules can't do.
    """
    _refuse_unsupported(question)
    fragments = _fragments(question, patterns)
    # Readings of the words before each position: a beam search
    readings_to: list[list[Reading]] = [[] for _ in range(len(question) + 1)]
    readings_to[0] = [Reading(0.0)]
    for position in range(len(question)):
        check()
        cost, is_lost = _passing(question, position)
        for reading in heapq.nsmallest(costs.BEAM, readings_to[position]):
            passed = _passed(reading, position, cost, is_lost)
            readings_to[position + 1].append(passed)
            for fragment in fragments[position]:
                readings_to[fragment.end].append(_with_fragment(reading, fragment))

    cheapest = heapq.nsmallest(costs.READINGS, readings_to[len(question)])
    return [one for one in cheapest if one.cost <= cheapest[0].cost + costs.MARGIN]


def _passed(reading: Reading, position: int, cost: float, is_lost: bool) -> Reading:
    """Return the reading with the word at this position passed over."""
    lost = (*reading.lost, position) if is_lost else reading.lost
    return Reading(reading.cost + cost, reading.fragments, lost)


def _with_fragment(reading: Reading, fragment: Fragment) -> Reading:
    """Return the reading with the words that the fragment covers."""
    cost = reading.cost + fragment.cost
    return Reading(cost, (*reading.fragments, fragment), reading.lost)


def _refuse_unsupported(question: QuestionWords) -> None:
    for word in question.words:
        is_name = any(sense.link is not None for sense in word.senses.values())
        if word.mark.means("unsupported") and not is_name:
            raise unsupported(word.mark.arg, word.mark.text)


def _passing(question: QuestionWords, place: int) -> tuple[float, bool]:
    """Return the cost of passing a word over, and whether its meaning is lost then."""
    word = question.words[place]
    if _is_verb_as_noun(question, place) or _is_unit_as_kind(question, place):
        return costs.LOST, True
    if "which:person" in word.senses:
        before = question.word_at(place - 1)
        if before is not None and "tab" in before.senses:  # "customers who …"
            return costs.PASSED["which"], False

        return costs.LOST, True

    cost = _cost_of_intent(word)
    if cost is not None:
        return cost, False
    if word.noun is None and word.mark.links:
        # another word has taken it up
        return costs.TIE, False

    says_nothing = word.mark.is_skippable or word.is_weak_verb
    if says_nothing or _is_measure_word(question, place):
        return costs.SKIPPED, False

    return costs.LOST, True


def _cost_of_intent(word: Word) -> float | None:
    """Return the cost of passing over a word for its intent; None if that says it can't be."""
    kind = word.mark.intent.kind if word.mark.intent is not None else ""
    cost = costs.PASSED.get(f"{kind}:{word.mark.arg}", costs.PASSED.get(kind))
    if cost is None:
        return None
    if word.senses.keys().isdisjoint(_NAMES):
        return cost

    if word.mark.quality < costs.NAMED:
        return cost + costs.SECOND

    return None


def _is_verb_as_noun(question: QuestionWords, place: int) -> bool:
    """Tell whether a verb stands for a thing: "what did we spend on *rent*"."""
    word = question.words[place]
    if word.noun is not None or not word.mark.means("verb"):
        return False

    before = question.word_at(place - 1)
    if before is None or not word.text.isascii():
        return False

    is_counted = before.mark.means("count") and plural(word.text[:-1]) == word.text
    if before.text.split()[-1] not in _BEFORE_NOUNS and not is_counted:
        return False

    after = question.word_at(place + 1)
    return after is None or after.senses.keys().isdisjoint(_NAMES_BUT_FLAGS)


def _is_unit_as_kind(question: QuestionWords, place: int) -> bool:
    """Tell whether a unit says which things are meant: `美元订单`, "euro invoices"."""
    word = question.words[place]
    before, after = question.word_at(place - 1), question.word_at(place + 1)
    if after is None or "tab" not in after.senses or word.noun is not None:
        return False
    if before is not None and (before.mark.number is not None or before.mark.means("count")):
        return False

    return word.mark.means("unit") and len(word.text) > 1


def _is_measure_word(question: QuestionWords, place: int) -> bool:
    """Tell whether an unknown character says in which unit is counted: `几分`."""
    mark = question.words[place].mark
    if not mark.is_unknown or mark.speech not in ("measure", "noun"):
        return False

    is_one_character = len(mark.text) == 1 and has_han(mark.text)
    before = question.word_at(place - 1)
    if before is None or not is_one_character:
        return False

    is_counted = before.mark.means("count") or before.mark.number is not None
    return is_counted and before.mark.end == mark.start
