"""The cheapest ways to cover a question with patterns; words that nothing covers are passed over at a cost."""

import heapq
from dataclasses import replace

from knowledge.naming import has_han
from rules.query.refusals import too_long, unsupported
from rules.reading import costs
from rules.reading.matching import Pattern, Patterns, can_match, matches
from rules.reading.parts import Fragment, Parts, Reading
from rules.reading.values import value_or_flag
from rules.reading.words import Match, Question, Word
from rules.words import WORDS
from rules.words.speech import part_of_speech

_BEFORE_NOUNS = frozenset(WORDS.english.phrases("questions.before_things"))


def _fragments(question: Question, patterns: Patterns) -> dict[int, list[Fragment]]:
    """What each pattern gives, by the word it begins at; of several that give the same, the cheapest."""
    found: dict[int, list[Fragment]] = {}
    patterns = {
        symbol: tuple(one for one in patterns[symbol] if can_match(question, one.elements))
        for symbol in question.symbols & patterns.keys()
    }
    for start, word in enumerate(question.words):
        best: dict[tuple[int, str], Fragment] = {}
        beginning = (one for symbol in (*word.symbols, "<") for one in patterns.get(symbol, ()))
        for pattern in dict.fromkeys(beginning):
            for match in matches(question, pattern.elements, start):
                parts = _made(pattern, match) if match.end > start else None
                if parts is not None:
                    one = Fragment(start, match.end, pattern.weight + match.cost, parts, pattern.text)
                    key = (match.end, repr(parts))
                    if key not in best or one.cost < best[key].cost:
                        best[key] = one
        found[start] = list(best.values())
    return found


def _made(pattern: Pattern, match: Match) -> Parts | None:
    parts = pattern.make if isinstance(pattern.make, Parts) else pattern.make(match)
    for item in match.inner if parts is not None else ():
        own = value_or_flag(replace(match, items=(item,), inner=()))
        parts = parts + own if parts is not None and own is not None else None
    return parts


def readings(question: Question, patterns: Patterns) -> list[Reading]:
    """The cheapest reading, and those that cost little more, in this order.

    Raises:
        Refusal: the question is too long, or asks for what rules can't do.
    """
    _refuse_unsupported(question)
    starting = _fragments(question, patterns)
    states: list[list[Reading]] = [[] for _ in range(len(question) + 1)]
    states[0] = [Reading(0.0)]
    for place in range(len(question)):
        for state in heapq.nsmallest(costs.BEAM, states[place]):
            cost, is_lost = _passing(question, place)
            lost = (*state.lost, place) if is_lost else state.lost
            states[place + 1].append(Reading(state.cost + cost, state.fragments, lost))
            for one in starting[place]:
                states[one.end].append(Reading(state.cost + one.cost, (*state.fragments, one), state.lost))
    found = heapq.nsmallest(costs.READINGS, states[len(question)])
    return [one for one in found if one.cost <= found[0].cost + costs.MARGIN]


def _refuse_unsupported(question: Question) -> None:
    if len(question) > costs.MOST_WORDS:
        raise too_long(len(question), costs.MOST_WORDS)
    for word in question.words:
        if word.mark.means("unsupported") and not any(one.link for one in word.senses.values()):
            raise unsupported(word.mark.arg, word.mark.text)


def _passing(question: Question, place: int) -> tuple[float, bool]:
    """What it costs to pass a word over, and whether the question is not understood then."""
    word = question.words[place]
    mark = word.mark
    if _is_noun(question, place):
        return costs.LOST, True
    if "which:person" in word.senses:
        before = question.words[place - 1].senses if place else {}
        return (costs.PASSED["which"], False) if "tab" in before else (costs.LOST, True)  # "customers who …"
    known = [costs.PASSED[key] for key in (f"{_kind(word)}:{mark.arg}", _kind(word)) if key in costs.PASSED]
    if known and not word.senses.keys() & {"tab", "mcol", "dcol", "tcol", "val", "flag"}:
        return known[0], False
    if known and mark.quality < costs.NAMED:
        return known[0] + costs.SECOND, False
    if word.noun is None and mark.links:
        return costs.TIE, False  # another word has taken it up
    if _is_measure_word(question, place):
        return costs.SKIPPED, False
    if mark.is_skippable or _is_weak_verb(word):
        return costs.SKIPPED, False
    return costs.LOST, True


def _is_noun(question: Question, place: int) -> bool:
    """Whether a word that is else a verb stands for a thing: "what did we spend on *rent*"."""
    word, after = question.words[place], place + 1
    if not (place and word.mark.means("verb") and word.text.isascii() and word.noun is None):
        return False
    before = question.words[place - 1].text.split()[-1]
    ends = after == len(question) or not (question.words[after].senses.keys() & {"tab", "tcol", "mcol", "val", "dcol"})
    return before in _BEFORE_NOUNS and ends


def _is_measure_word(question: Question, place: int) -> bool:
    """Whether an unknown character says what is counted: `几分`."""
    mark, before = question.words[place].mark, question.words[place - 1].mark if place else None
    counts = before is not None and before.end == mark.start and (before.means("count") or before.number is not None)
    is_one = len(mark.text) == 1 and has_han(mark.text)
    return counts and is_one and mark.is_unknown and mark.speech in ("measure", "noun")


def _is_weak_verb(word: Word) -> bool:
    """Whether it is an English verb or particle that is like a part of some column's name: "registered", "up"."""
    if word.mark.intent is not None or not word.text.isascii() or not 0 < word.mark.quality < costs.WHOLE:
        return False
    return part_of_speech(word.text, "en") not in ("noun", "proper noun", "adjective", "number", "unknown")


def _kind(word: Word) -> str:
    return word.mark.intent.kind if word.mark.intent is not None else ""
