"""Whether a stored name in a question is the whole name that was said.

A word is cut where letters meet digits, so PX100 can be read out of PX100A. A capitalised word beside a capitalised
name may belong to it: New Old Mill. Chinese has no blanks, so 冯晨 can be read out of 冯晨明, who is somebody else.
What directly follows a name must be a word that may follow one; else it belongs to the name, and nothing of that
longer name is stored.
"""

from collections.abc import Sequence

from knowledge.naming import has_han
from rules.linking.mark import Mark
from rules.words import WORDS
from rules.words.vocabulary import Kind

_ENDS, _JOINS, _GOVERNS, _VERBS_IN_NAMES, _PLACES, _ADVERBS = (
    frozenset(WORDS.chinese.text(f"names.{kind}"))
    for kind in ("ends", "joins", "governs", "verbs", "places", "adverbs")
)
_TITLES, _HAS = WORDS.chinese.one_of("names.titles"), WORDS.chinese.phrases("names.has")
_MOST_ADDED = 2
_COUNTING: tuple[Kind, ...] = ("unit", "date_part")


def longer_word(marks: Sequence[Mark], place: int) -> str | None:
    """The word that the name at `place` is only a part of, as written without a blank; None when it is all of it."""
    text, first, last = marks[place].text, place, place
    while first and marks[first - 1].end == marks[first].start and _is_one_word(marks[first - 1], marks[first]):
        first -= 1
        text = marks[first].text + text
    while last + 1 < len(marks) and marks[last].end == marks[last + 1].start and _is_one_word(*marks[last : last + 2]):
        last += 1
        text += marks[last].text
    return text if first < place or last > place else None


def _is_one_word(mark: Mark, following: Mark) -> bool:
    before, after = mark.text[-1:], following.text[:1]
    return following.glued and all(char.isalnum() and not has_han(char) for char in (before, after))


def longer_title(marks: Sequence[Mark], place: int, *, is_whole: bool) -> str | None:
    """The longer name in capitals that the one at `place` is only a part of; None when it is all of it.

    What names something stored is another name beside one that is whole ("Harbour Corner East" may mean both), and
    part of the name beside one that is not. The first word of a sentence is written in capitals as well.
    """
    mark = marks[place]
    if mark.literal is not None or not _is_title(mark):
        return None
    before, after = marks[place - 1] if place > 1 else None, marks[place + 1] if place + 1 < len(marks) else None
    if before is not None and before.end == mark.start and _adds(before, is_whole):
        return f"{before.text} {mark.text}"
    is_longer = after is not None and mark.end == after.start and _adds(after, is_whole)
    return f"{mark.text} {after.text}" if after is not None and is_longer else None


def _adds(mark: Mark, is_whole: bool) -> bool:
    named = bool(mark.links) and (is_whole or mark.links[0].kind != "value")
    return _is_title(mark) and not named and mark.date is None and mark.number is None


def _is_title(mark: Mark) -> bool:
    return all(word[0].isupper() and word[1:].islower() for word in mark.text.split())


def longer_name(marks: Sequence[Mark], place: int, is_named: Sequence[bool], *, of_person: bool) -> str | None:
    """The longer name that the one at `place` is only the beginning of; None when it is all of it.

    `is_named` says of each mark whether it names something of the database. More may follow the name of a thing than
    that of a person (手机数码类, 高速上): only numbers that count nothing and verbs without an object belong to it.
    """
    mark, after = marks[place], place + 1
    if not has_han(mark.text[-1]) or mark.literal is not None or after >= len(marks):
        return None
    following = marks[after]
    if not of_person and following.number is None and not following.means("verb"):
        return None
    if following.start != mark.end or not has_han(following.text[:1]) or _is_explained(marks, after, is_named):
        return None
    added = following.text[:1] if following.means("like", "noise") else following.text
    return mark.text + added if len(added) <= _MOST_ADDED else None


def _is_explained(marks: Sequence[Mark], place: int, is_named: Sequence[bool]) -> bool:
    mark, text = marks[place], marks[place].text
    beyond = place + 1 if place + 1 < len(marks) and marks[place + 1].start == mark.end else None
    if mark.is_unknown:
        return text in _TITLES
    if len(text) > 1:
        return not (mark.means("like", "noise") and text[0] in _PLACES)
    if text in _ENDS or is_named[place]:
        return True
    if text in _JOINS:
        return beyond is not None and is_named[beyond]
    if mark.number is not None:
        return beyond is not None and marks[beyond].means(*_COUNTING)
    if mark.means("verb") and text not in _VERBS_IN_NAMES:
        return True
    if text not in _GOVERNS or place + 1 == len(marks):
        return False
    return beyond is None or not (
        marks[beyond].means("of") or (text not in _ADVERBS and marks[beyond].text[:1] in _HAS)
    )
