"""Finds words which say that groups without rows count: "including those without orders", `没有订单的客户也算`.

They are taken out before the rest of the question is read, because they would be read as conditions on the rows.
"""

from dataclasses import dataclass

from knowledge.atoms import key_of
from rules.linking.mark import Mark
from rules.schema.links import Link
from rules.words.vocabulary import INCLUSIONS

_TRAILS = ("trail", "either")
_NAMED = 0.6  # a link of at least this quality says what a word names
_NOUNS_AFTER = 2  # at most, after the word for "without": `没有订单的客户` names what is missing and who lacks it


@dataclass(frozen=True)
class Inclusion:
    """Words which say that groups without rows count.

    Attributes:
        text: the words.
        is_aside: whether they mean it only if the question also groups by what they name ("across all customers").
        named: what each noun among them may name.
    """

    text: str
    named: tuple[tuple[Link, ...], ...] = ()
    is_aside: bool = False


def without_inclusion(marks: tuple[Mark, ...]) -> tuple[tuple[Mark, ...], Inclusion | None]:
    """The marks without such words, and the words themselves; None where the question has none."""
    found = next((span for at in range(len(marks)) if (span := _span(marks, at)) is not None), None)
    if found is None:
        return marks, None
    first, last = found
    taken = marks[first : last + 1]
    named = tuple(links for mark in taken if (links := _names(mark)) and not _role(mark))
    text, is_aside = " ".join(mark.text for mark in taken), _role(taken[0]) == "across"
    return marks[:first] + marks[last + 1 :], Inclusion(text, named, is_aside)


def _span(marks: tuple[Mark, ...], at: int) -> tuple[int, int] | None:
    """The first and last place of such words, if the mark at this place begins or ends them."""
    role = _role(marks[at])
    if role == "zero":
        return at, _with_trail(marks, at)
    if role == "across" and len(marks) > at + 2 and _role(marks[at + 1]) == "all":
        return (at, at + 2) if any(link.kind == "table" for link in _names(marks[at + 2])) else None
    if role in ("lead", "either") and not (at and marks[at - 1].means("not")):
        last = _walked(marks, at + 1, at)
        if last is not None:
            return at, _with_trail(marks, last)
    if role in ("trail", "either"):
        first = _began(marks, at)
        return (first, _with_trail(marks, at)) if first is not None else None
    return None


def _walked(marks: tuple[Mark, ...], start: int, before: int) -> int | None:
    """The last place of words such as `those without orders` that begin at `start`; None where nothing is missing."""
    last, missing, nouns = None, False, 0
    for place in range(start, len(marks)):
        if not _continues(marks, before, place) or not _may_be_within(marks[place]):
            break
        if _role(marks[place]) in ("absent", "all"):
            missing = True
        elif _names(marks[place]):
            nouns += missing
        last = before = place
        if nouns == _NOUNS_AFTER:
            break
    return last if missing else None


def _began(marks: tuple[Mark, ...], end: int) -> int | None:
    """The first place of words such as `customers without orders count too`, from their end; None as in `_walked`."""
    place, nearest = end, None
    while place and _continues(marks, place - 1, place) and _may_be_within(marks[place - 1]):
        place -= 1
        if _role(marks[place]) in ("absent", "all"):
            nearest = place
    if nearest is None:
        return None
    owner = nearest - 1  # "customers" in "customers without orders", unless it is a group ("per customer")
    grouped = owner > 0 and marks[owner - 1].means("each", "by", "of", "count")
    is_owner = owner >= place and bool(_names(marks[owner])) and marks[owner].text.isascii() and not grouped
    return owner if is_owner else nearest


def _with_trail(marks: tuple[Mark, ...], last: int) -> int:
    """The last place after words that only repeat that they count: 在内, "too"."""
    while last + 1 < len(marks) and _continues(marks, last, last + 1) and _role(marks[last + 1]) in _TRAILS:
        last += 1
    return last


def _continues(marks: tuple[Mark, ...], before: int, place: int) -> bool:
    """Whether the two neighbours are words with nothing between them, such as a comma."""
    said = all(any(char.isalnum() for char in marks[one].text) for one in (before, place))
    return said and marks[before].end == marks[place].start


def _may_be_within(mark: Mark) -> bool:
    if _role(mark) in ("absent", "all", "filler"):
        return True
    if mark.number is not None or mark.date is not None or mark.literal is not None:
        return False
    return mark.means("noise", "verb", "of", "with", "unit") or (mark.intent is None and bool(_names(mark)))


def _names(mark: Mark) -> tuple[Link, ...]:
    """The tables and columns that the word names; none where it is a stored value."""
    links = tuple(link for link in mark.links if link.kind != "value" and link.quality >= _NAMED)
    is_value = bool(mark.links) and mark.links[0].kind == "value"
    return links if not is_value or any(link.kind == "table" for link in links) else ()


def _role(mark: Mark) -> str:
    intent = INCLUSIONS.get(key_of(mark.text))
    return intent.arg if intent is not None else ""
