"""Unknown words of a question that may be passed over, as the answer does not depend on them.

What names or restricts something never may: nouns, names, adjectives, numbers, participles before a
noun. A verb may where it only asks ("pull up …", `瞅瞅…`) or only ties two things that are named
themselves ("customers who racked up orders"); an adverb where it says nothing of how something was
done.
"""

from collections.abc import Sequence
from dataclasses import replace

from common.meanings import TableKey
from common.values import Column
from knowledge.language.cutting import has_han
from knowledge.values.stored_values import has_labels
from rules.linking.mark import Mark
from rules.schema.table_facts import kind_of
from rules.schema.table_schema import Schema
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
    """Add to each unknown mark its part of speech and whether it may be passed over."""
    if not any(mark.is_unknown for mark in marks):
        return tuple(marks)

    tagged = list(marks)
    for place, mark in enumerate(marks):
        if mark.is_unknown:
            tagged[place] = replace(mark, speech=_speech(marks, place))

    # In order, as what stands before a verb tells whether it only asks.
    for place, mark in enumerate(tagged):
        if mark.is_unknown:
            tagged[place] = replace(mark, is_skippable=_is_skippable(tagged, place, schema))

    return tuple(tagged)


def _speech(marks: Sequence[Mark], place: int) -> Speech:
    """Return the part of speech of an unknown word where it stands."""
    mark = marks[place]
    if has_han(mark.text):
        if len(mark.text) == 1 and _is_brief(marks, place):
            return "verb"

        return mark.speech or "unknown"

    first = mark.text[:1]
    if not first.isalpha():
        return "number"
    if place > 0 and first.isupper():
        return "proper noun"

    return _english_speech(marks, place)


def _english_speech(marks: Sequence[Mark], place: int) -> Speech:
    """Return the part of speech of an English word: a verb after "to", a noun after "the"."""
    text = marks[place].text
    usual = part_of_speech(text, "en")
    before = _words(marks[place - 1])[-1] if place else ""
    if usual == "verb" and before in _TO_NOUNS and not is_participle(text):
        return "noun"
    if usual != "noun":
        return usual

    may_ask = before in _TO_VERBS or _has_object(marks, place)
    if may_ask and may_be_verb(text):
        return "verb"

    return usual


def _words(mark: Mark) -> list[str]:
    return mark.text.lower().split(" ")


def _has_object(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether an object follows a word, which is a verb then.

    It does in "pull the …", "ping me …", "dig out …", "mind telling me …".
    """
    after = marks[place + 1 : place + 3]
    if not after:
        return False

    following = _words(after[0])[0]
    if following in _OBJECTS:
        return True
    if following in _PHRASAL and len(after) > 1:
        return True

    return after[0].is_unknown and is_gerund(following)


def _is_brief(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether a Chinese verb speaks of doing something briefly, as requests do.

    It does in `捋一下`, `捋一捋` and `瞅瞅`.
    """
    text = marks[place].text
    half = len(text) // 2
    if text[:half] == text[half:]:
        return True
    if _is_said_again(marks, place, place - 2) or _is_said_again(marks, place, place + 2):
        return True

    after = marks[place + 1 :]
    if not after or after[0].text not in _BRIEFLY:
        return False

    return not any(map(_names, after[1:]))


def _is_said_again(marks: Sequence[Mark], place: int, other: int) -> bool:
    """Tell whether a verb stands twice, with one character between: `捋一捋`."""
    if not 0 <= other < len(marks):
        return False

    text = marks[place].text
    if marks[other].text != text:
        return False

    distance = abs(marks[other].start - marks[place].start)
    return distance == len(text) + 1


def _is_skippable(marks: Sequence[Mark], place: int, schema: Schema) -> bool:
    mark = marks[place]
    if _is_piece(marks, place):
        return False
    if mark.text.lower() in _PHRASAL:
        return _is_phrasal(marks, place)
    if place > 0 and mark.text in _COMPLEMENTS:
        before = marks[place - 1]
        if _is_verb(before):
            return before.end == mark.start

    return _says_nothing(marks, place, schema)


def _is_verb(mark: Mark) -> bool:
    return mark.means("verb") or mark.speech == "verb"


def _says_nothing(marks: Sequence[Mark], place: int, schema: Schema) -> bool:
    """Tell by a word's part of speech whether the answer does not depend on it."""
    mark = marks[place]
    if mark.speech in _EMPTY:
        return True
    if mark.speech == "measure":
        return _counts(marks, place)
    if mark.speech == "adverb":
        if has_han(mark.text):
            return not _modifies(marks, place)

        return mark.text.lower() in _STANCES

    if mark.speech != "verb":
        return False
    if _modifies(marks, place):
        return False

    return _only_asks(marks, place) or _ties(marks, place, schema)


def _is_piece(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether it may be a piece of a name.

    Single characters side by side are no words but for particles.
    """
    mark = marks[place]
    if len(mark.text) > 1 or not has_han(mark.text) or mark.speech in _EMPTY:
        return False
    if place > 0:
        before = marks[place - 1]
        if before.end == mark.start and _is_piece_beside(before):
            return True

    if place + 1 == len(marks):
        return False

    after = marks[place + 1]
    return mark.end == after.start and _is_piece_beside(after)


def _is_piece_beside(mark: Mark) -> bool:
    """Tell whether a single character beside the mark is a piece of the same name."""
    if mark.literal is not None:
        return True

    is_character = len(mark.text) == 1
    return mark.is_unknown and is_character and mark.speech not in _EMPTY


def _is_phrasal(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether "out" or "up" belongs to a verb that asks or ties.

    It does in "dig the orders out", but not in "sold out".
    """
    if place > 0:
        before = marks[place - 1]
        if before.means(*_DONE) and not before.links:
            return True
        if _is_skipped_verb(before):
            return True

    is_last = place + 1 == len(marks)
    return is_last and any(map(_is_skipped_verb, marks))


def _is_skipped_verb(mark: Mark) -> bool:
    return mark.is_skippable and mark.speech == "verb"


def _modifies(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether a verb says of which kind a thing is: `逾期的订单`, "cancelled orders"."""
    if place + 1 == len(marks):
        return False

    mark = marks[place]
    after = marks[place + 1]
    if has_han(mark.text):
        return after.text in _MODIFYING
    if not is_participle(mark.text):
        return False
    if after.quality > 0 or after.means(*_GROUPS):
        return True

    return _words(after)[0] in _PLACING  # "boats sunk in Kiel"


def _only_asks(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether a verb only asks ("list"): before it stand its object or words that ask."""
    mark = marks[place]
    before = marks[:place]
    if any(other.text in _DISPOSING for other in before):
        return _disposes(marks, place)

    is_chinese = has_han(mark.text)
    if is_chinese and _is_brief(marks, place):
        return True
    if not all(map(_is_asking, before)):
        return False
    if before and _is_request(before[-1]):
        return not is_participle(mark.text)
    if is_chinese:
        return len(mark.text) > 1 and mark.text[-1] in _TAKING_OUT

    return _has_object(marks, place) and not is_participle(mark.text)


def _is_request(mark: Mark) -> bool:
    if mark.is_skippable:
        return True

    return _words(mark)[-1] in _REQUESTS


def _disposes(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether a verb says what is done with the thing that 把 has put before it."""
    if not any(map(_names, marks[:place])):
        return False
    if place + 1 == len(marks):
        return True

    after = marks[place + 1]
    return after.is_unknown or after.means("noise", "list")


def _is_asking(mark: Mark) -> bool:
    if mark.is_skippable:
        return True

    return mark.means(*_ASKS) and not mark.links


def _counts(marks: Sequence[Mark], place: int) -> bool:
    """Tell whether a measure word stands between what counts and what is counted: `多少场演出`."""
    if not 0 < place < len(marks) - 1:
        return False

    before = marks[place - 1]
    after = marks[place + 1]
    if before.number is None and not before.means("count", "which", "each"):
        return False
    if not after.links:
        return False

    return after.links[0].kind == "table"


def _ties(marks: Sequence[Mark], place: int, schema: Schema) -> bool:
    """Tell whether a verb joins two named things: neither has a column of states."""
    before = list(filter(_names, marks[:place]))
    after = _object_behind(marks, place)
    if not before or not after:
        return False
    if not _names(after[0]):
        return False

    named = [*before, *filter(_names, after)]
    tables = [mark.links[0].table for mark in named if mark.links]
    return not any(_has_states(schema, table) for table in tables)


def _object_behind(marks: Sequence[Mark], place: int) -> list[Mark]:
    """Return the words behind a verb, without fillers: "racked up *the most* orders"."""
    rest: list[Mark] = []
    for mark in marks[place + 1 :]:
        if not mark.is_unknown and not mark.means("noise", "of"):
            rest.append(mark)

    if rest and rest[0].means("super", "top", "count", "which") and not rest[0].links:
        return rest[1:]

    return rest


def _has_states(schema: Schema, key: TableKey) -> bool:
    """Tell whether a verb may mean a state that rows of events are in ("returned the most books").

    A column of theirs holds yes or no, codes, or one of few texts.
    """
    facts = schema.facts[key]
    if facts.is_entity:
        return False

    own = {*facts.display, *facts.key, *facts.reference_columns, facts.deleted}
    others = [column for column in schema.table(key).columns if column.name not in own]
    return any(map(_is_state, others))


def _is_state(column: Column) -> bool:
    kind = kind_of(column)
    if kind == "boolean" or has_labels(column):
        return True

    return kind == "text" and 1 < len(column.values) <= _MOST_STATES


def _names(mark: Mark) -> bool:
    return mark.quality > 0 or mark.literal is not None
