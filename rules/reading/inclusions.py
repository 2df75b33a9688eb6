"""Finds words which say that groups without rows count: "including those without orders",
`没有订单的客户也算`.

These words are taken out before the rest of the question is read. Otherwise they would be read as
conditions on the rows.
"""

from dataclasses import dataclass

from knowledge.language.atoms import key_of
from rules.linking.mark import Mark
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.vocabulary import INCLUSIONS

_TRAILS = ("trail", "either")
_ABSENT = ("absent", "all")
_NO_GROUP = frozenset(WORDS.english.phrases("questions.no_group"))
_NAMED = 0.6  # a link of at least this quality says what a word names
# At most, after the word for "without": `没有订单的客户` names what is missing and who lacks it.
_NOUNS_AFTER = 2

_Stretch = tuple[int, int]
"""The first and the last place of some words."""


@dataclass(frozen=True)
class Inclusion:
    """Words which say that groups without rows count.

    Attributes:
        named: the things that each noun among them may name.
        missing: what the noun behind a word such as "without" may name, the likeliest first; empty
            where there is none ("including none").
        says_absent: they have a word such as "without".
        is_unclear: they may be about groups without rows and about rows without a group ("including
            none").
        is_aside: they count only if the question also groups by what they name ("across all
            customers").
    """

    text: str
    named: tuple[tuple[Link, ...], ...] = ()
    missing: tuple[Link, ...] = ()
    says_absent: bool = False
    is_unclear: bool = False
    is_aside: bool = False


def without_inclusion(marks: tuple[Mark, ...]) -> tuple[tuple[Mark, ...], Inclusion | None]:
    """Return the marks without such words, and the words; None where the question has none."""
    for at in range(len(marks)):
        stretch = _stretch_at(marks, at)
        if stretch is not None:
            first, last = stretch
            return marks[:first] + marks[last + 1 :], _inclusion(marks[first : last + 1])

    return marks, None


def _inclusion(marks: tuple[Mark, ...]) -> Inclusion:
    named: list[tuple[Link, ...]] = []
    missing: tuple[Link, ...] = ()
    says_absent = False
    for mark in marks:
        role = _role(mark)
        says_absent = says_absent or role == "absent"
        links = _names(mark)
        if links and not role:
            named.append(links)
            missing = missing or (links if says_absent else ())

    text = " ".join(mark.text for mark in marks)
    is_unclear = says_absent and not named and key_of(marks[-1].text) in _NO_GROUP
    is_aside = _role(marks[0]) == "across"
    return Inclusion(text, tuple(named), missing, says_absent, is_unclear, is_aside)


def _stretch_at(marks: tuple[Mark, ...], at: int) -> _Stretch | None:
    """Return where words about including rows begin and end, one of which is at this place.

    None where the mark there neither begins nor ends such words.
    """
    role = _role(marks[at])
    if role == "zero":
        return at, _with_trail(marks, at)
    if role == "across":
        if _are_all_of_table(marks, at + 1):
            return (at, at + 2)

        return None

    is_negated = at > 0 and marks[at - 1].means("not")
    if role in ("lead", "either") and not is_negated:
        last = _last_of_absence(marks, at + 1)
        if last is not None:
            return at, _with_trail(marks, last)

    if role in _TRAILS:
        first = _first_of_absence(marks, at)
        if first is not None:
            return first, _with_trail(marks, at)

    return None


def _are_all_of_table(marks: tuple[Mark, ...], at: int) -> bool:
    """Tell whether words such as "all customers" begin at this place."""
    if at + 1 >= len(marks) or _role(marks[at]) != "all":
        return False

    return any(link.kind == "table" for link in _names(marks[at + 1]))


def _last_of_absence(marks: tuple[Mark, ...], start: int) -> int | None:
    """Return the last place of words such as `those without orders` that begin at `start`.

    None where nothing is missing.
    """
    last, is_absent, nouns = None, False, 0
    for place in range(start, len(marks)):
        if not _continues(marks, place) or not _may_be_within(marks[place]):
            break

        last = place
        if _role(marks[place]) in _ABSENT:
            is_absent = True
        elif is_absent and _names(marks[place]):
            nouns += 1

        if nouns == _NOUNS_AFTER:
            break

    return last if is_absent else None


def _first_of_absence(marks: tuple[Mark, ...], end: int) -> int | None:
    """Return the first place of words such as `customers without orders count too` before `end`.

    None where nothing is missing.
    """
    place = end
    nearest = None
    while place and _continues(marks, place) and _may_be_within(marks[place - 1]):
        place -= 1
        if _role(marks[place]) in _ABSENT:
            nearest = place

    if nearest is None:
        return None

    owner = nearest - 1
    if owner >= place and _is_owner(marks, owner):
        return owner

    return nearest


def _is_owner(marks: tuple[Mark, ...], place: int) -> bool:
    """Tell whether a word says who lacks rows: "customers" of "customers without orders".

    A group ("per customer") does not.
    """
    if not _names(marks[place]) or not marks[place].text.isascii():
        return False

    return place == 0 or not marks[place - 1].means("each", "by", "of", "count")


def _with_trail(marks: tuple[Mark, ...], last: int) -> int:
    """Return the last place after words that only repeat that they count: 在内, "too"."""
    for place in range(last + 1, len(marks)):
        if not _continues(marks, place) or _role(marks[place]) not in _TRAILS:
            break

        last = place

    return last


def _continues(marks: tuple[Mark, ...], place: int) -> bool:
    """Tell whether a mark and the one before it are words without, say, a comma between them."""
    before = marks[place - 1]
    mark = marks[place]
    are_words = any(map(str.isalnum, before.text)) and any(map(str.isalnum, mark.text))
    return are_words and before.end == mark.start


def _may_be_within(mark: Mark) -> bool:
    """Tell whether the mark may stand within words about including rows."""
    if _role(mark) in (*_ABSENT, "filler"):
        return True
    if mark.number is not None or mark.date is not None or mark.literal is not None:
        return False
    if mark.intent is None:
        return bool(_names(mark))

    return mark.means("noise", "verb", "of", "with", "unit")


def _names(mark: Mark) -> tuple[Link, ...]:
    """Return the tables and columns that the word names; none where it is a stored value."""
    links = []
    names_table = False
    for link in mark.links:
        if link.kind != "value" and link.quality >= _NAMED:
            links.append(link)
            names_table = names_table or link.kind == "table"

    is_value = bool(mark.links) and mark.links[0].kind == "value"
    if is_value and not names_table:
        return ()

    return tuple(links)


def _role(mark: Mark) -> str:
    intent = INCLUSIONS.get(key_of(mark.text))
    return intent.arg if intent is not None else ""
