"""Rows as PostgreSQL's COPY reads them, converted to the types that a caller has confirmed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from files.reading.column_types import Misfits
from files.reading.sheet_drafts import DataRows, columns_of
from files.reading.sheets import Batch
from files.reading.value_forms import BY_NAME, SEPARATOR, ValueForm, is_null

_NULL = r"\N"
_MOST_KNOWN = 20_000  # values of a column whose conversions are remembered
_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


@dataclass
class ConfirmedColumn:
    """A column to be loaded.

    Attributes:
        place: its number in the sheet, from 0.
        forms: by which its values are read, the likeliest first; empty: it is text.
        left_out: the values that were left empty because the type does not hold them.
    """

    place: int
    forms: tuple[ValueForm, ...]
    left_out: Misfits = field(default_factory=Misfits)
    _known: dict[str, str] = field(default_factory=lambda: {"": _NULL}, repr=False)

    def converted(self, values: Sequence[str], numbers: Sequence[int]) -> list[str]:
        """Return the values as COPY reads them."""
        if not self.forms:
            return _escape_values(values)

        joined = SEPARATOR.join(values) + SEPARATOR
        if self.forms[0].are_plain(joined):
            return _with_nulls(values)

        conversions = self._known
        if len(conversions) > _MOST_KNOWN:
            conversions.clear()

        return [
            conversions[value] if value in conversions else self._convert(value, number)
            for value, number in zip(values, numbers, strict=True)
        ]

    def _convert(self, value: str, number: int) -> str:
        """Convert one value and remember the result, because most values come often."""
        for form in self.forms:
            read = form.read(value)
            if read is not None:
                self._known[value] = read
                return read

        if value and not is_null(value):
            self.left_out.add(number)

        return _NULL


def confirmed_column(place: int, forms: Sequence[str]) -> ConfirmedColumn:
    """Return a column by the names of its forms."""
    return ConfirmedColumn(place, tuple(BY_NAME[name] for name in forms))


def copied(data: DataRows, columns: Sequence[ConfirmedColumn]) -> Iterator[tuple[int, bytes]]:
    """Yield how many rows come, and the rows as COPY reads them."""
    width = max(column.place for column in columns) + 1
    for batch in data.batches():
        yield len(batch.rows), _lines(batch, columns, width)


def _lines(batch: Batch, columns: Sequence[ConfirmedColumn], width: int) -> bytes:
    values = columns_of(batch, width)
    converted = [column.converted(values[column.place], batch.numbers) for column in columns]
    lines = map("\t".join, zip(*converted, strict=True))
    return ("\n".join(lines) + "\n").encode()


def _escape_values(values: Sequence[str]) -> list[str]:
    joined = SEPARATOR.join(values)
    if _SPECIAL.search(joined) is None:
        return _with_nulls(values)

    return _with_nulls([value.translate(_ESCAPES) for value in values])


def _with_nulls(values: Sequence[str]) -> list[str]:
    """Return the values with COPY's sign for none where there is none."""
    return [value or _NULL for value in values]
