"""Words by which groups without rows count as well: "including those without orders", `没有订单的客户也算`.

They say nothing of the rows, so they are taken out before the rest of the question is read.
"""

from dataclasses import dataclass

from knowledge.atoms import key_of
from rules.linking.marks import Mark
from rules.schema.links import Link
from rules.words.vocabulary import INCLUSIONS

_TRAILS = ("trail", "either")
_NAMED = 0.6  # from this quality on a link says what a word names
_NOUNS_AFTER = 2  # what is missing, and what it is missing of: `没有订单的客户`


@dataclass(frozen=True)
class Inclusion:
    """That groups without rows count.

    Attributes:
        text: the words that say so.
        is_aside: whether they only say so beside a group of the same name ("across all customers").
        named: for each noun among them, what it may name.
    """

    text: str
    named: tuple[tuple[Link, ...], ...] = ()
    is_aside: bool = False


def without_inclusion(marks: tuple[Mark, ...]) -> tuple[tuple[Mark, ...], Inclusion | None]:
    """The marks without the words by which groups without rows count, and these words; None where there are none."""
    found = next((span for at in range(len(marks)) if (span := _span(marks, at)) is not None), None)
    if found is None:
        return marks, None
    first, last = found
    taken = marks[first : last + 1]
    named = tuple(links for mark in taken if (links := _names(mark)) and not _role(mark))
    text, is_aside = " ".join(mark.text for mark in taken), _role(taken[0]) == "across"
    return marks[:first] + marks[last + 1 :], Inclusion(text, named, is_aside)


def _span(marks: tuple[Mark, ...], at: int) -> tuple[int, int] | None:
    """First and last of the words of an inclusion that the mark at this place begins or ends."""
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
    """The last word of `those without orders`; None when nothing is missing or all of something is meant."""
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
    """The first word of `customers without orders count too`, from its end; None when nothing is missing."""
    place, nearest = end, None
    while place and _continues(marks, place - 1, place) and _may_be_within(marks[place - 1]):
        place -= 1
        if _role(marks[place]) in ("absent", "all"):
            nearest = place
    if nearest is None:
        return None
    owner = nearest - 1  # "customers" of "customers without orders"; not that of "per customer"
    grouped = owner > 0 and marks[owner - 1].means("each", "by", "of", "count")
    is_owner = owner >= place and bool(_names(marks[owner])) and marks[owner].text.isascii() and not grouped
    return owner if is_owner else nearest


def _with_trail(marks: tuple[Mark, ...], last: int) -> int:
    """The last word, when what follows only says again that it counts: `在内`, "too"."""
    while last + 1 < len(marks) and _continues(marks, last, last + 1) and _role(marks[last + 1]) in _TRAILS:
        last += 1
    return last


def _continues(marks: tuple[Mark, ...], before: int, place: int) -> bool:
    """Whether no comma stands between two neighbours."""
    said = all(any(char.isalnum() for char in marks[one].text) for one in (before, place))
    return said and marks[before].end == marks[place].start


def _may_be_within(mark: Mark) -> bool:
    if _role(mark) in ("absent", "all", "filler"):
        return True
    if mark.number is not None or mark.date is not None or mark.literal is not None:
        return False
    return mark.means("noise", "verb", "of", "with", "unit") or (mark.intent is None and bool(_names(mark)))


def _names(mark: Mark) -> tuple[Link, ...]:
    """The tables and columns that the word names; nothing where it is a stored value."""
    links = tuple(link for link in mark.links if link.kind != "value" and link.quality >= _NAMED)
    is_value = bool(mark.links) and mark.links[0].kind == "value"
    return links if not is_value or any(link.kind == "table" for link in links) else ()


def _role(mark: Mark) -> str:
    intent = INCLUSIONS.get(key_of(mark.text))
    return intent.arg if intent is not None else ""
