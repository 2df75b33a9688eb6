"""Which unknown words of a question may be passed over, because they say nothing that the answer depends on.

What names or restricts something never may: nouns, names, adjectives, numbers, participles before a noun. A verb may
where it only asks ("pull up …", `瞅瞅…`) or only ties two things that are named themselves ("customers who racked up
orders"); an adverb where it says nothing of how something was done.
"""

from collections.abc import Sequence
from dataclasses import replace

from knowledge.naming import has_han
from rules.linking.mark import Mark
from rules.words import WORDS
from rules.words.speech import Speech, is_participle, may_be_verb, part_of_speech

_EMPTY: tuple[Speech, ...] = ("courtesy", "particle", "pronoun")
_ASKS = ("noise", "list", "which", "of")  # kinds of marks that stand around a verb that only asks
_MANNER = WORDS.english.text("speech.manner")
_TO_VERBS = WORDS.english.one_of("speech.before_verbs")
_TO_NOUNS = WORDS.english.one_of("speech.before_nouns")
_OBJECTS = WORDS.english.one_of("speech.objects")
_PHRASAL = WORDS.english.one_of("speech.phrasal")
_DISPOSING = WORDS.chinese.one_of("speech.disposing")
_DISPOSING = WORDS.chinese.one_of("speech.disposing")
_MODIFYING = WORDS.chinese.one_of("speech.modifying")


def with_speech(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks; each unknown one with its part of speech and whether it may be passed over."""
    if not any(mark.is_unknown for mark in marks):
        return tuple(marks)
    told = [replace(mark, speech=_speech(marks, at)) if mark.is_unknown else mark for at, mark in enumerate(marks)]
    for place, mark in enumerate(told):  # what stands before a verb tells whether it only asks
        if mark.is_unknown:
            told[place] = replace(mark, is_skippable=_is_skippable(told, place))
    return tuple(told)


def _speech(marks: Sequence[Mark], place: int) -> Speech:
    """What an unknown word is there: an English word is a verb after "to" and a noun after "the"."""
    mark = marks[place]
    if mark.speech is not None or has_han(mark.text):
        return mark.speech or "unknown"
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
    return bool(after) and (after[0] in _OBJECTS or (after[0] in _PHRASAL and len(after) > 1))


def _is_skippable(marks: Sequence[Mark], place: int) -> bool:
    mark = marks[place]
    if _is_piece(marks, place):
        return False
    if mark.text.lower() in _PHRASAL:
        return _is_phrasal(marks, place)
    if mark.speech in _EMPTY:
        return True
    if mark.speech == "adverb":
        return not _says_how(marks, place)
    return mark.speech == "verb" and not _modifies(marks, place) and (_only_asks(marks, place) or _ties(marks, place))


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
    """Whether "out" or "up" belongs to a verb before it, or to the one that asks: "dig the orders out"."""
    before = marks[place - 1] if place else None
    if before is not None and (before.means("verb", "list") or before.speech == "verb"):
        return True
    return place + 1 == len(marks) and any(mark.is_skippable and mark.speech == "verb" for mark in marks)


def _says_how(marks: Sequence[Mark], place: int) -> bool:
    """Whether an adverb says how something was done: "paid manually"."""
    before = marks[place - 1] if place else None
    if before is None or not marks[place].text.lower().endswith(_MANNER):
        return False
    return before.means("verb") or before.speech == "verb" or before.links != ()


def _modifies(marks: Sequence[Mark], place: int) -> bool:
    """Whether a verb says of which kind a thing is: `逾期的订单`, "cancelled orders"."""
    mark, after = marks[place], marks[place + 1] if place + 1 < len(marks) else None
    if has_han(mark.text):
        return after is not None and after.text in _MODIFYING
    return is_participle(mark.text) and after is not None and after.quality > 0


def _only_asks(marks: Sequence[Mark], place: int) -> bool:
    """Whether nothing but words that ask stands before a verb, or what it does something with, so that it asks too."""
    mark, before = marks[place], marks[:place]
    if any(other.text in _DISPOSING for other in before):
        return True
    if not all(other.is_skippable or (other.means(*_ASKS) and not other.links) for other in before):
        return False
    if has_han(mark.text):
        return bool(before) or _is_light(mark.text)
    is_asked = bool(before) and _words(before[-1])[-1] in _TO_VERBS
    return not is_participle(mark.text) and (is_asked or _has_object(marks, place))


def _is_light(verb: str) -> bool:
    """A verb of one character, which may be doubled: `瞅`, `瞅瞅`, `捋一捋`."""
    return len(verb) == 1 or verb[0] == verb[-1]


def _ties(marks: Sequence[Mark], place: int) -> bool:
    """Whether a verb stands between two things that are named."""
    before = any(_names(mark) for mark in marks[:place])
    rest = [mark for mark in marks[place + 1 :] if not mark.means("noise", "of") and not mark.is_unknown]
    return before and bool(rest) and _names(rest[0])


def _names(mark: Mark) -> bool:
    return mark.quality > 0 or mark.means("super", "top", "count", "which") or mark.literal is not None
