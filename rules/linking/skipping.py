"""Which unknown words of a question may be passed over, because they say nothing that the answer depends on.

What names or restricts something never may: nouns, names, adjectives, numbers, participles before a noun. A verb may
where it only asks ("pull up …", `瞅瞅…`) or only ties two things that are named themselves ("customers who racked up
orders"); an adverb where it says nothing of how something was done.
"""

from collections.abc import Sequence
from dataclasses import replace

from common.meanings import TableKey
from knowledge.naming import has_han
from knowledge.stored_values import has_labels
from rules.linking.mark import Mark
from rules.schema.facts import kind_of
from rules.schema.schema import Schema
from rules.words import WORDS
from rules.words.speech import Speech, is_gerund, is_participle, may_be_verb, part_of_speech

_EMPTY: tuple[Speech, ...] = ("courtesy", "particle", "pronoun")
_GROUPS = ("each", "by", "bucket")
_MOST_STATES = 12
_DONE = ("list", "sum", "count", "rank", "compare")  # kinds of words that ask and may be verbs
_ASKS = ("noise", "list", "of")  # kinds of marks that stand around a verb that only asks
_STANCES, _TO_VERBS, _TO_NOUNS, _OBJECTS, _PLACING, _PHRASAL = (
    WORDS.english.one_of(f"speech.{kind}")
    for kind in ("stances", "before_verbs", "before_nouns", "objects", "placing", "phrasal")
)
_BRIEFLY, _DISPOSING, _COMPLEMENTS, _MODIFYING, _TAKING_OUT = (
    WORDS.chinese.one_of(f"speech.{kind}")
    for kind in ("briefly", "disposing", "complements", "modifying", "taking_out")
)
_REQUESTS = frozenset(WORDS.both("speech.requests"))


def with_speech(marks: Sequence[Mark], schema: Schema) -> tuple[Mark, ...]:
    """The marks; each unknown one with its part of speech and whether it may be passed over."""
    if not any(mark.is_unknown for mark in marks):
        return tuple(marks)
    told = [replace(mark, speech=_speech(marks, at)) if mark.is_unknown else mark for at, mark in enumerate(marks)]
    for place, mark in enumerate(told):  # what stands before a verb tells whether it only asks
        if mark.is_unknown:
            told[place] = replace(mark, is_skippable=_is_skippable(told, place, schema))
    return tuple(told)


def _speech(marks: Sequence[Mark], place: int) -> Speech:
    """What an unknown word is there: an English word is a verb after "to" and a noun after "the"."""
    mark = marks[place]
    if has_han(mark.text):
        return "verb" if len(mark.text) == 1 and _is_brief(marks, place) else mark.speech or "unknown"
    if not mark.text[:1].isalpha():
        return "number"
    if place and mark.text[:1].isupper():
        return "proper noun"
    usual = part_of_speech(mark.text, "en")
    before = _words(marks[place - 1])[-1] if place else ""
    if usual == "verb" and before in _TO_NOUNS and not is_participle(mark.text):
        return "noun"
    is_asked = before in _TO_VERBS or _has_object(marks, place)
    return "verb" if usual == "noun" and is_asked and may_be_verb(mark.text) else usual


def _words(mark: Mark) -> list[str]:
    return mark.text.lower().split(" ")


def _has_object(marks: Sequence[Mark], place: int) -> bool:
    """Whether an object follows a word, which is a verb then: "pull the …", "ping me …", "dig out …"."""
    after = [_words(mark)[0] for mark in marks[place + 1 : place + 3]]
    if not after:
        return False
    telling = is_gerund(after[0]) and marks[place + 1].is_unknown  # "mind telling me"
    return after[0] in _OBJECTS or telling or (after[0] in _PHRASAL and len(after) > 1)


def _is_brief(marks: Sequence[Mark], place: int) -> bool:
    """Whether a Chinese verb speaks of doing something briefly, as requests do: `捋一下`, `捋一捋`, `瞅瞅`."""
    text = marks[place].text
    if text[: len(text) // 2] == text[len(text) // 2 :] or any(
        0 <= at < len(marks) and marks[at].text == text and abs(marks[at].start - marks[place].start) == len(text) + 1
        for at in (place - 2, place + 2)
    ):
        return True
    after = marks[place + 1 :]
    return bool(after) and after[0].text in _BRIEFLY and not any(map(_names, after[1:]))


def _is_skippable(marks: Sequence[Mark], place: int, schema: Schema) -> bool:
    mark = marks[place]
    if _is_piece(marks, place):
        return False
    if mark.text.lower() in _PHRASAL:
        return _is_phrasal(marks, place)
    if place and mark.text in _COMPLEMENTS and (marks[place - 1].means("verb") or marks[place - 1].speech == "verb"):
        return marks[place - 1].end == mark.start
    if mark.speech in _EMPTY:
        return True
    if mark.speech == "measure":
        return _counts(marks, place)
    if mark.speech == "adverb":
        return has_han(mark.text) or mark.text.lower() in _STANCES
    if mark.speech != "verb" or _modifies(marks, place):
        return False
    return _only_asks(marks, place) or _ties(marks, place, schema)


def _is_piece(marks: Sequence[Mark], place: int) -> bool:
    """Whether it may be a piece of a name: single characters side by side are no words but for particles."""
    mark = marks[place]
    if len(mark.text) > 1 or not has_han(mark.text) or mark.speech in _EMPTY:
        return False
    beside = (marks[at] for at in (place - 1, place + 1) if 0 <= at < len(marks))
    return any(
        (other.end == mark.start or mark.end == other.start)
        and (other.literal is not None or (other.is_unknown and len(other.text) == 1 and other.speech not in _EMPTY))
        for other in beside
    )


def _is_phrasal(marks: Sequence[Mark], place: int) -> bool:
    """Whether "out" or "up" belongs to a verb that asks or ties: "dig the orders out", but not "sold out"."""
    if place and marks[place - 1].means(*_DONE) and not marks[place - 1].links:
        return True
    if place and marks[place - 1].is_skippable and marks[place - 1].speech == "verb":
        return True
    return place + 1 == len(marks) and any(mark.is_skippable and mark.speech == "verb" for mark in marks)


def _modifies(marks: Sequence[Mark], place: int) -> bool:
    """Whether a verb says of which kind a thing is: `逾期的订单`, "cancelled orders"."""
    mark, after = marks[place], marks[place + 1] if place + 1 < len(marks) else None
    if has_han(mark.text):
        return after is not None and after.text in _MODIFYING
    if not is_participle(mark.text) or after is None:
        return False
    return after.quality > 0 or after.means(*_GROUPS) or _words(after)[0] in _PLACING  # "boats sunk in Kiel"


def _only_asks(marks: Sequence[Mark], place: int) -> bool:
    """Whether nothing but words that ask stands before a verb, or what it does something with, so that it asks too."""
    mark, before, after = marks[place], marks[:place], marks[place + 1 :]
    if any(other.text in _DISPOSING for other in before):
        return any(map(_names, before)) and (not after or after[0].means("noise", "list") or after[0].is_unknown)
    if has_han(mark.text) and _is_brief(marks, place):
        return True
    if not all(other.is_skippable or (other.means(*_ASKS) and not other.links) for other in before):
        return False
    if before and (_words(before[-1])[-1] in _REQUESTS or before[-1].is_skippable):
        return not is_participle(mark.text)
    if has_han(mark.text):
        return len(mark.text) > 1 and mark.text[-1] in _TAKING_OUT
    return not is_participle(mark.text) and _has_object(marks, place)


def _counts(marks: Sequence[Mark], place: int) -> bool:
    """Whether a measure word stands between what counts and what is counted: `多少场演出`."""
    before, after = marks[place - 1] if place else None, marks[place + 1] if place + 1 < len(marks) else None
    counts = before is not None and (before.number is not None or before.means("count", "which", "each"))
    return counts and after is not None and after.links[:1] != () and after.links[0].kind == "table"


def _ties(marks: Sequence[Mark], place: int, schema: Schema) -> bool:
    """Whether a verb stands between two things that are named, of which none is in one state or another."""
    rest = [mark for mark in marks[place + 1 :] if not mark.means("noise", "of") and not mark.is_unknown]
    if rest and rest[0].means("super", "top", "count", "which") and not rest[0].links:
        del rest[0]  # "racked up the most orders"
    around = [mark for mark in (*marks[:place], *rest) if _names(mark)]
    if not any(map(_names, marks[:place])) or not rest or not _names(rest[0]):
        return False
    return not any(_has_states(schema, table) for table in {mark.links[0].table for mark in around if mark.links})


def _has_states(schema: Schema, key: TableKey) -> bool:
    """Whether a verb may mean a state that rows of events are in ("returned the most books").

    A column of theirs holds yes or no, codes, or one of few texts.
    """
    table, facts = schema.table(key), schema.facts[key]
    own = {*facts.display, *facts.key, *facts.reference_columns, facts.deleted}
    return not facts.is_entity and any(
        kind_of(column) == "boolean"
        or has_labels(column)
        or (kind_of(column) == "text" and 1 < len(column.values) <= _MOST_STATES)
        for column in table.columns
        if column.name not in own
    )


def _names(mark: Mark) -> bool:
    return mark.quality > 0 or mark.literal is not None
