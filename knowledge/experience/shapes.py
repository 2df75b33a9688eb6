"""What in an example may differ: literals of its question that stand in its SQL.

A literal of the question is lifted only when it is certain which constants of the SQL go with it; otherwise it has to
be the same in another question. All numbers are lifted, or none: if one constant is not among the question's numbers,
it may have been worked out from them (the year before 2024). The same holds for the periods.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from databases.constants import Constant, constants_of, identifiers_of
from knowledge.experience.dates import expressions, is_explained, is_like_a_date, is_like_a_year, split, years_within
from knowledge.experience.phrasing import Phrasing, Piece, phrasing_of, same_words
from knowledge.words import WORDS

_WORD, _DIGITS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
_RELATIVE = WORDS.found("phrasing.relative")
_INTERVAL = re.compile(r"\s*(\d+)\s+([A-Za-z]+)\s*")
_PERIODS, _NUMBERS = ("year", "month", "day"), ("integer", "decimal")
_SHORT = 3  # letters; a Latin word this short has to be written as it is stored
_MOST_PIECES = 80
_MOST_TEXTS = 3  # lifted names and values
_LONGEST_ALIAS = 2  # characters; the number in t1 says nothing
_HUNDRED = Decimal(100)
_FEW = (Decimal(0), Decimal(1))  # say nothing by themselves, except as a limit

Form = Literal["itself", "first", "last", "after", "interval", "text"]


@dataclass(frozen=True)
class Slot:
    """A literal of the question that may differ.

    Attributes:
        kind: of its piece; `text` for a name or a stored value, which may be several pieces.
        first, last: its pieces in the example's question, `last` not included.
        constants: where it stands in the SQL, each with how it is expressed there.
    """

    kind: str
    first: int
    last: int
    constants: tuple[tuple[Constant, Form], ...]


@dataclass(frozen=True)
class Shape:
    """An example's question and SQL with what may differ in them.

    Attributes:
        slots: in the order of the question.
        others: constants of the SQL that belong to no slot.
    """

    phrasing: Phrasing
    sql: str
    slots: tuple[Slot, ...]
    others: tuple[Constant, ...]


def shape_of(question: str, sql: str) -> Shape | None:
    """An example's shape; None when its SQL can't be read, or answers the question only on the day it was asked."""
    phrasing, constants = phrasing_of(question), constants_of(sql)
    if constants is None or not 0 < len(phrasing.pieces) <= _MOST_PIECES:
        return None
    reader = _Reader(phrasing, constants, identifiers_of(sql))
    if not reader.is_timeless():
        return None
    slots = tuple(sorted((*reader.texts, *reader.periods(), *reader.numbers()), key=lambda slot: slot.first))
    lifted = {constant for slot in slots for constant, _ in slot.constants}
    return Shape(phrasing, sql, slots, tuple(one for one in constants if one not in lifted))


class _Reader:
    """Finds the literals of one example's question in its SQL."""

    def __init__(self, phrasing: Phrasing, constants: Sequence[Constant], identifiers: Iterable[str]) -> None:
        self._phrasing, self._pieces = phrasing, phrasing.pieces
        self._constants = constants
        self._labels = [name.casefold() for name in identifiers if len(name) > _LONGEST_ALIAS]
        self.texts = self._texts()
        taken = {number for slot in self.texts for number in range(slot.first, slot.last)}
        free = [(number, piece) for number, piece in enumerate(self._pieces) if number not in taken]
        self._named = [(number, piece) for number, piece in free if piece.kind in _PERIODS]
        self._counted = [(number, piece) for number, piece in free if piece.kind in _NUMBERS]
        figures = {piece.text for _, piece in self._counted}
        of_texts = {constant for slot in self.texts for constant, _ in slot.constants}
        self._dates = [one for one in constants if one not in of_texts and _may_be_date(one, figures)]
        self._free_texts = [
            one
            for one in constants
            if one.kind == "text" and one.role == "compared" and one not in of_texts and one not in self._dates
        ]

    # ---------------------------------------------------------------------------------------------------- names, values

    def _texts(self) -> list[Slot]:
        """Texts of the SQL that stand in the question once."""
        groups: dict[str, list[Constant]] = {}
        for constant in self._constants:
            if constant.kind == "text" and constant.role == "compared" and not is_like_a_date(constant.value):
                groups.setdefault(constant.value.strip("%"), []).append(constant)
        found = []
        for text, constants in groups.items():
            places = list(self._places(text))
            if len(places) == 1 and not self._stands_elsewhere(text, constants):
                found.append(Slot("text", *places[0], tuple((one, "text") for one in constants)))
        apart = [one for one in found if not any(one is not other and _overlap(one, other) for other in found)]
        return apart if len(apart) <= _MOST_TEXTS else []

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the question says the text: first piece, and the one after the last."""
        wanted = phrasing_of(text).pieces
        is_short = text.isascii() and len(text) <= _SHORT
        for first, piece in enumerate(self._pieces):
            if piece.kind == "quote":
                if same_words(phrasing_of(piece.text).pieces, wanted):
                    yield first, first + 1
                continue
            last = first + len(wanted)
            if not wanted or not same_words(self._pieces[first:last], wanted):
                continue
            if not is_short or (len(text) > 1 and self._phrasing.between(first, last) == text):
                yield first, last

    def _stands_elsewhere(self, text: str, constants: Sequence[Constant]) -> bool:
        """Whether another constant, or a name, holds the text, or a part of it: that would not move along."""
        folded = text.casefold()
        others = (one for one in self._constants if one.kind == "text" and one not in constants)
        if any(_is_part(folded, one.value.strip("%").casefold()) for one in others if one.role != "interval"):
            return True
        if not text.isascii():
            return any(folded in label for label in self._labels)
        words = "_".join(_WORD.findall(folded))
        return any(f"_{words}_" in f"_{'_'.join(_WORD.findall(label))}_" for label in self._labels)

    def _are_spelled_out(self, pieces: Iterable[Piece]) -> bool:
        """Whether names or texts of the SQL hold the numbers, as `revenue_2024` does: these would not move along."""
        texts = [one.value for one in self._constants if one.kind == "text" and one.role != "interval"]
        labels = [*self._labels, *(text for text in texts if not is_like_a_date(text))]
        written = {number for label in labels for number in _DIGITS.findall(label)}
        return not written.isdisjoint(number for piece in pieces for number in _DIGITS.findall(piece.text))

    # ---------------------------------------------------------------------------------------------------------- periods

    def is_timeless(self) -> bool:
        """Whether the question itself says every date that the SQL holds."""
        years = {int(piece.text[:4]) for _, piece in self._named}
        said = {piece.text for piece in self._pieces}
        is_relative = _RELATIVE.search(self._phrasing.said) is not None
        if is_relative and any(_may_be_part_of_date(one) and one.value not in said for one in self._constants):
            return False
        spelled = [set(years_within(one.value)) for one in self._free_texts]
        if any(within and (is_relative or not within <= years) for within in spelled):
            return False
        return all(
            self._explaining(constant)
            or (constant.kind == "text" and is_explained(constant.value, years, said, is_relative=is_relative))
            for constant in self._dates
        )

    def _explaining(self, constant: Constant) -> list[tuple[int, Form]]:
        """The periods that the constant may express, and how."""
        text = split(constant.value)[0] if constant.kind == "text" else constant.value
        found: list[tuple[int, Form]] = []
        for number, piece in self._named:
            for form, written in expressions(piece).items():
                if written == text:
                    found.append((number, form))  # type: ignore[arg-type]
        return found

    def periods(self) -> list[Slot]:
        """The periods of the question when all dates of the SQL are expressed by one of them each."""
        expressed: dict[int, list[tuple[Constant, Form]]] = {number: [] for number, _ in self._named}
        for constant in self._dates:
            explaining = self._explaining(constant)
            if len(explaining) != 1:
                return []
            number, form = explaining[0]
            expressed[number].append((constant, form))
        if not all(expressed.values()) or not all(map(_is_one_way, expressed.values())):
            return []
        if self._are_spelled_out([piece for _, piece in self._named]):
            return []
        return [Slot(piece.kind, at, at + 1, tuple(expressed[at])) for at, piece in self._named]

    # ---------------------------------------------------------------------------------------------------------- numbers

    def numbers(self) -> list[Slot]:
        """The numbers of the question when each is one constant of the SQL, and no constant is left over."""
        said = Counter(Decimal(piece.text) for _, piece in self._counted)
        telling: dict[Decimal, list[tuple[Constant, Form]]] = {}
        for constant in self._constants:
            if constant in self._dates:
                continue
            value, form = _figure(constant)
            if value is None:
                if constant.role == "interval":
                    return []
            elif not _is_neutral(constant, value, said):
                telling.setdefault(value, []).append((constant, form))
        if telling.keys() != said.keys() or any(count > 1 for count in said.values()):
            return []
        if self._are_spelled_out([piece for _, piece in self._counted]):
            return []
        slots = []
        for at, piece in self._counted:
            constants = telling[Decimal(piece.text)]
            if len(constants) != 1 or constants[0][0].kind not in (piece.kind, "text"):
                return []
            slots.append(Slot(piece.kind, at, at + 1, tuple(constants)))
        return slots


def _may_be_date(constant: Constant, figures: set[str]) -> bool:
    if constant.kind == "text":
        return constant.role != "interval" and is_like_a_date(constant.value)
    if constant.kind != "integer" or constant.role not in ("compared", "argument", "other"):
        return False
    return constant.value not in figures and is_like_a_year(constant.value)


def _may_be_part_of_date(constant: Constant) -> bool:
    """Whether a number is compared with something computed, as the month of a date is, or its digits."""
    if constant.role != "compared" or constant.column:
        return False
    if constant.kind == "text":
        return constant.value.isdigit()
    return constant.kind == "integer" and Decimal(constant.value) not in _FEW


def _is_part(one: str, other: str) -> bool:
    return bool(one and other) and (one in other or other in one)


def _overlap(one: Slot, other: Slot) -> bool:
    return one.first < other.last and other.first < one.last


def _is_one_way(expressed: Sequence[tuple[Constant, Form]]) -> bool:
    """Whether what is expressed in the same way is compared in the same way: else it is two things."""
    ways: dict[Form, set[str]] = {}
    for constant, form in expressed:
        ways.setdefault(form, set()).add(constant.operator)
    return all(len(operators) == 1 for operators in ways.values())


def interval_parts(text: str) -> tuple[str, str] | None:
    """Number and unit of an interval (`7 days`); None for any other."""
    match = _INTERVAL.fullmatch(text)
    return (match[1], match[2]) if match else None


def _figure(constant: Constant) -> tuple[Decimal | None, Form]:
    """The number that a constant is, or that an interval counts."""
    if constant.kind != "text":
        return Decimal(constant.value), "itself"
    parts = interval_parts(constant.value) if constant.role == "interval" else None
    return (Decimal(parts[0]), "interval") if parts else (None, "text")


def _is_neutral(constant: Constant, value: Decimal, said: Counter[Decimal]) -> bool:
    """Whether the constant is there whatever numbers the question has."""
    if constant.role == "neutral" or (constant.role == "factor" and value == _HUNDRED):
        return True
    return value in _FEW and not (constant.role == "limit" and value in said)
