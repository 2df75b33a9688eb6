"""A sheet of rows, whatever kind of file it comes from."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

BATCH_ROWS = 2000
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff\ufffe\uffff]")
_AROUND = " \t\r\n\u3000\xa0"
_BETWEEN = "\x1f"  # cells that are looked at together
_UNTIDY = re.compile(
    f"{_BETWEEN}[{_AROUND}]|[{_AROUND}]{_BETWEEN}"
    "|[\x00-\x08\x0b\x0c\x0e-\x1e\x7f\ud800-\udfff\ufeff\ufffe\uffff]"
)

Row = list[str]


@dataclass(frozen=True)
class MergedCells:
    """A rectangle of cells that shows the value of its first one; rows and columns from 0."""

    top: int
    left: int
    bottom: int
    right: int


class Sheet(Protocol):
    """Rows of texts, from the first row of the file on; empty cells are empty texts."""

    @property
    def merged(self) -> tuple[MergedCells, ...]:
        """Return the merged cells."""

    def rows(self) -> Iterator[Row]:
        """Yield all rows, empty ones included; raises `UnreadableFile`."""


@dataclass(frozen=True)
class Batch:
    """Rows that are not empty, without what can't be stored.

    Attributes:
        numbers: the numbers of the rows in the file, from 1.
        cleaned: numbers of rows from which control characters were taken.
    """

    numbers: list[int]
    rows: list[Row]
    cleaned: list[int]


def batches(rows: Iterable[Row], first: int = 1) -> Iterator[Batch]:
    """Yield the rows from number `first` on, `BATCH_ROWS` at a time."""
    source = islice(rows, first - 1, None)
    number = first
    while taken := list(islice(source, BATCH_ROWS)):
        batch = _batch(taken, number)
        number += len(taken)
        if batch.rows:
            yield batch


def _batch(rows: list[Row], first: int) -> Batch:
    """Return rows with values that can be stored, without empty ones.

    Most rows need nothing: all of them are looked at in one go.
    """
    joined = _BETWEEN.join(map(_BETWEEN.join, rows))
    cells = sum(map(len, rows))
    are_told_apart = all(rows) and joined.count(_BETWEEN) == cells - 1
    if are_told_apart and _are_tidy(joined) and all(map(any, rows)):
        numbers = list(range(first, first + len(rows)))
        return Batch(numbers, rows, [])

    return _cleaned(rows, first)


def _are_tidy(joined: str) -> bool:
    """Tell whether no cell begins or ends with a space or holds what can't be stored."""
    return _UNTIDY.search(f"{_BETWEEN}{joined}{_BETWEEN}") is None


def _cleaned(rows: list[Row], first: int) -> Batch:
    """Return the rows cell by cell without what can't be stored, without empty ones."""
    numbers = []
    kept = []
    cleaned = []
    for number, row in enumerate(rows, first):
        tidy, is_cleaned = _clean(row)
        if not any(tidy):
            continue

        numbers.append(number)
        kept.append(tidy)
        if is_cleaned:
            cleaned.append(number)

    return Batch(numbers, kept, cleaned)


def storable(text: str) -> str:
    """Return the text without what PostgreSQL can't store, and without control characters."""
    return _UNSTORABLE.sub("", text)


def _clean(row: Row) -> tuple[Row, bool]:
    """Return the row without spaces around its values and without control characters."""
    cells = [cell.strip(_AROUND) for cell in row]
    if _UNSTORABLE.search("".join(cells)) is None:
        return cells, False

    return [storable(cell).strip(_AROUND) for cell in cells], True
