"""Find the literals of an example's question that stand in its SQL, and may differ when reused.

A literal of the question is lifted only when it is certain which constants of the SQL go with it;
otherwise it has to be the same in another question. All numbers are lifted, or none: if one
constant is not among the question's numbers, it may have been worked out from them (the year before
2024). The same holds for the periods.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import Literal

from knowledge.experience.period_literals import (
    expressions,
    is_explained,
    is_like_a_date,
    is_like_a_year,
    split,
    years_within,
)
from knowledge.experience.phrasing import Phrasing, Piece, phrasing_of, same_words
from knowledge.words import WORDS
from sqltree.constants import Constant, constants_of, identifiers_of

_WORD, _DIGITS = re.compile(r"[^\W_]+"), re.compile(r"\d+")
_RELATIVE = WORDS.found("phrasing.relative")
_INTERVAL = re.compile(r"\A\s*+(\d++)\s++([A-Za-z]++)\s*+")
_PERIODS, _NUMBERS = ("year", "month", "day"), ("integer", "decimal")
_SHORT = 3  # letters; a Latin word this short has to be written as it is stored
_MOST_PIECES = 80
_MOST_TEXTS = 3  # lifted names and values
_LONGEST_ALIAS = 2  # characters; the number in t1 says nothing
_HUNDRED = Decimal(100)
_FEW = (Decimal(0), Decimal(1))  # say nothing by themselves, except as a limit

Form = Literal["itself", "first", "last", "after", "interval", "text"]


@dataclass(frozen=True)
class LiteralSlot:
    """A literal of the question that may differ.

    Attributes:
        kind: the kind of its piece; `text` for a name or a stored value, which may be several
            pieces.
        first, last: its pieces in the example's question, `last` not included.
        constants: where it stands in the SQL, each with how it is expressed there.
    """

    kind: str
    first: int
    last: int
    constants: tuple[tuple[Constant, Form], ...]


@dataclass(frozen=True)
class ExampleShape:
    """An example's question and SQL with the literals that may differ in them.

    Attributes:
        slots: in the order of the question.
        others: constants of the SQL that belong to no slot.
    """

    phrasing: Phrasing
    sql: str
    slots: tuple[LiteralSlot, ...]
    others: tuple[Constant, ...]


def shape_of(question: str, sql: str) -> ExampleShape | None:
    """Return the shape of an example that may be reused.

    None when its SQL can't be read, or answers the question only on the day it was asked.
    """
    phrasing = phrasing_of(question)
    constants = constants_of(sql)
    if constants is None or not 0 < len(phrasing.pieces) <= _MOST_PIECES:
        return None

    reader = _Reader(phrasing, constants, identifiers_of(sql))
    if not reader.is_timeless():
        return None

    slots = [*reader.texts, *reader.periods(), *reader.numbers()]
    slots.sort(key=lambda slot: slot.first)
    lifted = _constants_of_slots(slots)
    others = tuple(constant for constant in constants if constant not in lifted)
    return ExampleShape(phrasing, sql, tuple(slots), others)


def _constants_of_slots(slots: Iterable[LiteralSlot]) -> set[Constant]:
    constants: set[Constant] = set()
    for slot in slots:
        for constant, _ in slot.constants:
            constants.add(constant)

    return constants


class _Reader:
    """Finds the literals of one example's question in its SQL."""

    def __init__(
        self, phrasing: Phrasing, constants: Sequence[Constant], identifiers: Iterable[str]
    ) -> None:
        self._phrasing = phrasing
        self._pieces = phrasing.pieces
        self._constants = constants
        self._labels = [name.casefold() for name in identifiers if len(name) > _LONGEST_ALIAS]
        self.texts = self._lifted_texts()
        self._periods = self._free_pieces(_PERIODS)
        self._numbers = self._free_pieces(_NUMBERS)
        numbers = {piece.text for _, piece in self._numbers}
        lifted = _constants_of_slots(self.texts)
        free = [constant for constant in constants if constant not in lifted]
        self._dates, self._free_texts = _dates_and_texts(free, numbers)

    def _free_pieces(self, kinds: Sequence[str]) -> list[tuple[int, Piece]]:
        """Return the pieces of these kinds that belong to no lifted text, with their places."""
        lifted: set[int] = set()
        for slot in self.texts:
            lifted.update(range(slot.first, slot.last))

        free = []
        for at, piece in enumerate(self._pieces):
            if piece.kind in kinds and at not in lifted:
                free.append((at, piece))

        return free

    # --------------------------------------------------------------------------
    # names, values

    def _lifted_texts(self) -> list[LiteralSlot]:
        """Return texts of the SQL that stand in the question once."""
        slots = []
        for text, constants in self._compared_texts().items():
            places = list(self._places(text))
            if len(places) == 1 and not self._stands_elsewhere(text, constants):
                first, last = places[0]
                expressed: list[tuple[Constant, Form]] = [
                    (constant, "text") for constant in constants
                ]
                slots.append(LiteralSlot("text", first, last, tuple(expressed)))

        apart = _without_overlapping(slots)
        if len(apart) <= _MOST_TEXTS:
            return apart

        return []

    def _compared_texts(self) -> dict[str, list[Constant]]:
        """Return the constants that columns are compared with, by their text without wildcards."""
        groups: dict[str, list[Constant]] = {}
        for constant in self._constants:
            is_compared_text = (constant.kind, constant.role) == ("text", "compared")
            if is_compared_text and not is_like_a_date(constant.value):
                text = constant.value.strip("%")
                groups.setdefault(text, []).append(constant)

        return groups

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places where the question has the text: first piece, and the one after the
        last.
        """
        searched_pieces = phrasing_of(text).pieces
        for first, piece in enumerate(self._pieces):
            if piece.kind == "quote":
                if same_words(phrasing_of(piece.text).pieces, searched_pieces):
                    yield first, first + 1

                continue

            last = first + len(searched_pieces)
            if not searched_pieces or not same_words(self._pieces[first:last], searched_pieces):
                continue
            if self._is_written_so(text, first, last):
                yield first, last

    def _is_written_so(self, text: str, first: int, last: int) -> bool:
        """Tell whether pieces with these words are the text; a short text has to be exact."""
        is_short = text.isascii() and len(text) <= _SHORT
        if not is_short:
            return True

        is_same = self._phrasing.between(first, last) == text
        return is_same and len(text) > 1

    def _stands_elsewhere(self, text: str, constants: Sequence[Constant]) -> bool:
        """Tell whether another constant, or a name, holds the text or a part of it.

        That would not change with it.
        """
        folded = text.casefold()
        for plain_text in self._plain_texts():
            other_text = plain_text.value.strip("%").casefold()
            if plain_text not in constants and _is_part(folded, other_text):
                return True

        if not text.isascii():
            return any(folded in label for label in self._labels)

        words = _joined_words(folded)
        return any(words in _joined_words(label) for label in self._labels)

    def _are_spelled_out(self, pieces: Iterable[Piece]) -> bool:
        """Tell whether names or texts of the SQL hold the numbers, as `revenue_2024` does.

        These would not change with them.
        """
        written = _numbers_in(self._labels)
        for plain_text in self._plain_texts():
            if not is_like_a_date(plain_text.value):
                written |= _numbers_in([plain_text.value])

        return not written.isdisjoint(_numbers_in(piece.text for piece in pieces))

    def _plain_texts(self) -> Iterator[Constant]:
        """Yield the text constants that are no intervals."""
        for constant in self._constants:
            if constant.kind == "text" and constant.role != "interval":
                yield constant

    # --------------------------------------------------------------------------
    # periods

    def is_timeless(self) -> bool:
        """Tell whether the question itself says every date that the SQL holds."""
        is_relative = _RELATIVE.search(self._phrasing.said) is not None
        years = {int(piece.text[:4]) for _, piece in self._periods}
        texts = {piece.text for piece in self._pieces}
        if is_relative and self._has_unsaid_part_of_date(texts):
            return False

        said_years: set[int] = set() if is_relative else years
        if not self._years_in_texts() <= said_years:
            return False

        return self._are_dates_explained(years, texts, is_relative=is_relative)

    def _are_dates_explained(self, years: set[int], texts: set[str], *, is_relative: bool) -> bool:
        unexpressed = [constant for constant in self._dates if not self._explaining(constant)]
        for constant in unexpressed:
            if constant.kind != "text":
                return False
            if not is_explained(constant.value, years, texts, is_relative=is_relative):
                return False

        return True

    def _has_unsaid_part_of_date(self, texts: set[str]) -> bool:
        parts = filter(_may_be_part_of_date, self._constants)
        return not texts.issuperset(part.value for part in parts)

    def _years_in_texts(self) -> set[int]:
        years: set[int] = set()
        for text in self._free_texts:
            years |= years_within(text.value)

        return years

    def _explaining(self, constant: Constant) -> list[tuple[int, Form]]:
        """Return the periods that the constant may express, by their places, and how it does."""
        text = constant.value
        if constant.kind == "text":
            text = split(constant.value)[0]

        forms: list[tuple[int, Form]] = []
        for number, piece in self._periods:
            for form, written in expressions(piece).items():
                if written == text:
                    forms.append((number, form))  # type: ignore[arg-type]

        return forms

    def periods(self) -> list[LiteralSlot]:
        """Return slots for the periods of the question.

        None unless every date of the SQL expresses just one of them, and they are all expressed.
        """
        expressed: dict[int, list[tuple[Constant, Form]]] = {at: [] for at, _ in self._periods}
        for constant in self._dates:
            explaining = self._explaining(constant)
            if len(explaining) != 1:
                return []

            number, form = explaining[0]
            expressed[number].append((constant, form))

        if not all(expressed.values()):
            return []
        if not all(map(_is_one_way, expressed.values())):
            return []
        if self._are_spelled_out(piece for _, piece in self._periods):
            return []

        return [
            LiteralSlot(piece.kind, at, at + 1, tuple(expressed[at])) for at, piece in self._periods
        ]

    # --------------------------------------------------------------------------
    # numbers

    def numbers(self) -> list[LiteralSlot]:
        """Return slots for the numbers of the question.

        None unless each is one constant of the SQL, and no constant is left over.
        """
        numbers = Counter(Decimal(piece.text) for _, piece in self._numbers)
        constants = self._telling_constants(numbers)
        is_each_said_once = len(numbers) == len(self._numbers)
        if constants is None or not is_each_said_once:
            return []
        if constants.keys() != numbers.keys():
            return []
        if self._are_spelled_out(piece for _, piece in self._numbers):
            return []

        slots = []
        for at, piece in self._numbers:
            expressed = constants[Decimal(piece.text)]
            if len(expressed) != 1:
                return []

            constant, form = expressed[0]
            if constant.kind not in (piece.kind, "text"):
                return []

            slots.append(LiteralSlot(piece.kind, at, at + 1, ((constant, form),)))

        return slots

    def _telling_constants(
        self, numbers: Counter[Decimal]
    ) -> dict[Decimal, list[tuple[Constant, Form]]] | None:
        """Return the constants that depend on the question's numbers, by number.

        None if an interval can't be read.
        """
        constants_by_number: dict[Decimal, list[tuple[Constant, Form]]] = {}
        for constant in self._constants:
            if constant in self._dates:
                continue

            value, form = _figure(constant)
            if value is None:
                if constant.role == "interval":
                    return None
            elif not _is_neutral(constant, value, numbers):
                constants_by_number.setdefault(value, []).append((constant, form))

        return constants_by_number


def _dates_and_texts(
    constants: Iterable[Constant], numbers: set[str]
) -> tuple[list[Constant], list[Constant]]:
    """Return the constants that may be dates, and the other texts that columns are compared
    with.
    """
    dates = []
    texts = []
    for constant in constants:
        if _may_be_date(constant, numbers):
            dates.append(constant)
        elif (constant.kind, constant.role) == ("text", "compared"):
            texts.append(constant)

    return dates, texts


def _may_be_date(constant: Constant, numbers: set[str]) -> bool:
    if constant.kind == "text":
        return constant.role != "interval" and is_like_a_date(constant.value)
    if constant.kind != "integer":
        return False
    if constant.value in numbers:
        return False
    if constant.role not in ("compared", "argument", "other"):
        return False

    return is_like_a_year(constant.value)


def _may_be_part_of_date(constant: Constant) -> bool:
    """Tell whether a number is compared with something computed, as the month of a date is."""
    is_of_column = bool(constant.column)
    if is_of_column or constant.role != "compared":
        return False
    if constant.kind == "text":
        return constant.value.isdigit()
    if constant.kind == "integer":
        return Decimal(constant.value) not in _FEW

    return False


def _joined_words(text: str) -> str:
    """Return the words of a text between underscores, so that words are found in it, no parts of
    them.
    """
    return f"_{'_'.join(_WORD.findall(text))}_"


def _is_part(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return bool(shorter) and shorter in longer


def _numbers_in(texts: Iterable[str]) -> set[str]:
    numbers: set[str] = set()
    for text in texts:
        numbers.update(_DIGITS.findall(text))

    return numbers


def _without_overlapping(slots: Sequence[LiteralSlot]) -> list[LiteralSlot]:
    """Return the slots that share no piece with another one."""
    overlapping: set[LiteralSlot] = set()
    for one, other in combinations(slots, 2):
        if _overlap(one, other):
            overlapping |= {one, other}

    return [slot for slot in slots if slot not in overlapping]


def _overlap(one: LiteralSlot, other: LiteralSlot) -> bool:
    return one.first < other.last and other.first < one.last


def _is_one_way(expressed: Sequence[tuple[Constant, Form]]) -> bool:
    """Tell whether constants of the same form are compared alike; else they mean two things."""
    ways: dict[Form, set[str]] = {}
    for constant, form in expressed:
        ways.setdefault(form, set()).add(constant.operator)

    return all(len(operators) == 1 for operators in ways.values())


def interval_parts(text: str) -> tuple[str, str] | None:
    """Return number and unit of an interval (`7 days`); None for any other."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None

    return match[1], match[2]


def _figure(constant: Constant) -> tuple[Decimal | None, Form]:
    """Return the number that a constant is, or that an interval counts."""
    if constant.kind != "text":
        return Decimal(constant.value), "itself"

    parts = None
    if constant.role == "interval":
        parts = interval_parts(constant.value)
    if parts is None:
        return None, "text"

    return Decimal(parts[0]), "interval"


def _is_neutral(constant: Constant, value: Decimal, numbers: Counter[Decimal]) -> bool:
    """Tell whether the constant is there whatever numbers the question has."""
    if constant.role == "neutral":
        return True
    if constant.role == "factor" and value == _HUNDRED:
        return True
    if value not in _FEW:
        return False

    is_said_limit = constant.role == "limit" and value in numbers
    return not is_said_limit
