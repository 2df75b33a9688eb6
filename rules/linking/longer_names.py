"""Finds stored names that are only a part of a longer name in the question.

A word is cut where letters meet digits, so PX100 can be read out of PX100A. A capitalised word
beside a capitalised name may belong to it: New Old Mill. Chinese has no blanks, so 冯晨 can be read
out of 冯晨明, who is somebody else. A word that directly follows a name and can't stand there by
itself belongs to the name, so that the question asks for a longer name, which is not stored.
"""

from collections.abc import Sequence

from knowledge.language.cutting import has_han
from rules.linking.mark import Mark
from rules.words import WORDS
from rules.words.vocabulary import WordKind

_ENDS, _JOINS, _GOVERNS, _VERBS_IN_NAMES, _LOCATIVES, _ADVERBS = (
    frozenset(WORDS.chinese.text(f"names.{kind}"))
    for kind in ("ends", "joins", "governs", "verbs", "locatives", "adverbs")
)
_TITLES, _HAS = WORDS.chinese.one_of("names.titles"), WORDS.chinese.phrases("names.has")
_MOST_ADDED = 2
_COUNTING: tuple[WordKind, ...] = ("unit", "date_part")


def longer_word(marks: Sequence[Mark], place: int) -> str | None:
    """Return the word that the name at `place` is only a part of, as written without a blank.

    None when the name is all of it.
    """
    first = last = place
    while first > 0 and _is_one_word(marks[first - 1], marks[first]):
        first -= 1

    while last + 1 < len(marks) and _is_one_word(marks[last], marks[last + 1]):
        last += 1

    if first == last:
        return None

    return "".join(mark.text for mark in marks[first : last + 1])


def _is_one_word(mark: Mark, following: Mark) -> bool:
    """Tell whether nothing stands between two marks that meet in letters or digits."""
    if not following.glued or not _touches(mark, following):
        return False

    last_char = mark.text[-1:]
    next_char = following.text[:1]
    return _is_latin(last_char) and _is_latin(next_char)


def _touches(mark: Mark, following: Mark) -> bool:
    return mark.end == following.start


def _is_latin(char: str) -> bool:
    return char.isalnum() and not has_han(char)


def longer_title(marks: Sequence[Mark], place: int, *, is_whole: bool) -> str | None:
    """Return the longer name in capitals that the one at `place` is only a part of.

    None when it is all of it. What names something stored is another name beside one that is whole
    ("Harbour Corner East" may mean both), and part of the name beside one that is not. The first
    word of a sentence is written in capitals as well.
    """
    mark = marks[place]
    if mark.literal is not None or not _is_title(mark):
        return None
    if place > 1:
        before = marks[place - 1]
        if _touches(before, mark) and _adds(before, is_whole):
            return f"{before.text} {mark.text}"

    if place + 1 < len(marks):
        after = marks[place + 1]
        if _touches(mark, after) and _adds(after, is_whole):
            return f"{mark.text} {after.text}"

    return None


def _adds(mark: Mark, is_whole: bool) -> bool:
    """Tell whether a capitalised word beside a name may belong to it."""
    if not _is_title(mark) or mark.date is not None or mark.number is not None:
        return False
    if not mark.links:
        return True

    return not is_whole and mark.links[0].kind == "value"


def _is_title(mark: Mark) -> bool:
    return all(map(_is_capitalised, mark.text.split()))


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and word[1:].islower()


def _han_behind(marks: Sequence[Mark], place: int) -> Mark | None:
    """Return the mark that goes on with the Han characters of the one at `place` without a gap."""
    mark = marks[place]
    if mark.literal is not None or not has_han(mark.text[-1]):
        return None
    if place + 1 == len(marks):
        return None

    following = marks[place + 1]
    goes_on = _touches(mark, following) and has_han(following.text[:1])
    return following if goes_on else None


def longer_name(
    marks: Sequence[Mark], place: int, is_named: Sequence[bool], *, of_person: bool
) -> str | None:
    """Return the longer name that the one at `place` is only the beginning of.

    None when it is all of it. More may follow the name of a thing than that of a person
    (手机数码类, 高速上): only numbers that count nothing and verbs without an object belong to it.

    Args:
        is_named: for each mark, whether it names something of the database.
    """
    mark = marks[place]
    following = _han_behind(marks, place)
    if following is None:
        return None

    may_belong = of_person or following.number is not None or following.means("verb")
    if not may_belong or _may_follow_name(marks, place + 1, is_named):
        return None

    added = following.text
    if following.means("like", "noise"):
        added = added[:1]
    if len(added) > _MOST_ADDED:
        return None

    return mark.text + added


def _may_follow_name(marks: Sequence[Mark], place: int, is_named: Sequence[bool]) -> bool:
    """Tell whether the word at `place` may follow a name without belonging to it."""
    mark = marks[place]
    if mark.is_unknown:
        return mark.text in _TITLES
    if len(mark.text) > 1:
        begins_with_locative = mark.text[0] in _LOCATIVES
        return not (begins_with_locative and mark.means("like", "noise"))

    if mark.text in _ENDS or is_named[place]:
        return True

    return _may_character_follow_name(marks, place, is_named)


def _may_character_follow_name(marks: Sequence[Mark], place: int, is_named: Sequence[bool]) -> bool:
    """Tell whether one character may follow a name without belonging to it, by the next word."""
    mark = marks[place]
    beyond = _directly_after(marks, place)
    if mark.text in _JOINS:
        return beyond is not None and is_named[place + 1]
    if mark.number is not None:
        return beyond is not None and beyond.means(*_COUNTING)
    if mark.means("verb") and mark.text not in _VERBS_IN_NAMES:
        return True

    is_last = place + 1 == len(marks)
    if is_last or mark.text not in _GOVERNS:
        return False

    return beyond is None or not _is_of_name(mark.text, beyond)


def _directly_after(marks: Sequence[Mark], place: int) -> Mark | None:
    """Return the next mark if nothing stands between it and the one at `place`."""
    if place + 1 == len(marks):
        return None

    following = marks[place + 1]
    return following if _touches(marks[place], following) else None


def _is_of_name(text: str, beyond: Mark) -> bool:
    """Tell whether a word that could govern what follows belongs to the name before it."""
    if beyond.means("of"):
        return True

    return text not in _ADVERBS and beyond.text[:1] in _HAS
