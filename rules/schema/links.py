"""What a phrase of a question may refer to."""

from dataclasses import dataclass
from typing import Literal

from common.meanings import TableKey

METRIC = "metric"


@dataclass(frozen=True, slots=True)
class Link:
    """One thing a phrase may refer to.

    Attributes:
        column: None for a table.
        value: the stored value, None for a table or column.
        quality: 0 to 1, how much of the thing's name the phrase is.
        spelling: the phrase as the catalogue spells it, to prefer the exact form over an inflected
            one.
        derived: `age` when the years since the column's date are meant, `times:<column>` when the
            column is multiplied by that one, `METRIC` when `column` is the name of a metric.
        is_exact: whether it is a name or number of somebody or something, so that any other form of
            it, or a part of it, is another's.
    """

    kind: Literal["table", "column", "value"]
    table: TableKey
    column: str | None
    value: str | None
    quality: float
    spelling: str
    derived: str | None = None
    is_exact: bool = False

    @property
    def factor(self) -> str | None:
        """Return the column it is multiplied by, if any."""
        if self.derived and self.derived.startswith("times:"):
            return self.derived.removeprefix("times:")

        return None

    @property
    def identity(self) -> tuple[str, TableKey, str | None, str | None, str | None]:
        """Return the thing referred to, however well."""
        return (self.kind, self.table, self.column, self.value, self.derived)

    def rated(self, quality: float) -> "Link":
        """Return the link with another quality. Hundreds are made, and `dataclasses.replace` takes
        several times as long.
        """
        return Link(
            self.kind,
            self.table,
            self.column,
            self.value,
            quality,
            self.spelling,
            self.derived,
            self.is_exact,
        )


def column_link(table: TableKey, column: str) -> Link:
    """Return a link to a column that is certainly meant."""
    return Link("column", table, column, None, 1.0, column)
