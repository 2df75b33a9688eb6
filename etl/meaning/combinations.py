"""Rows of an intent's sources, and the combinations that joins make of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from etl.meaning.bound import BoundColumn
from etl.meaning.conditions import Values, expression_lookup
from etl.meaning.evaluation import evaluate_expression
from etl.meaning.windows import Row


@dataclass(eq=False)
class SourceRow:
    """A row of a source; two with equal values are two rows.

    Attributes:
        made: what steps at the stage `table` computed.
    """

    stored: Mapping[str, Any]
    made: dict[str, Any] = field(default_factory=dict)


@dataclass
class Combination:
    """At most one row of each source.

    Attributes:
        made: what steps at the stage `rows` computed.
    """

    rows: dict[str, SourceRow]
    made: dict[str, Any] = field(default_factory=dict)

    def value(self, column: BoundColumn) -> Any:
        if column.source:
            row = self.rows.get(column.source)
            return None if row is None else row.stored[column.name]
        if column.name in self.made:
            return self.made[column.name]
        for row in self.rows.values():
            if column.name in row.made:
                return row.made[column.name]
        return None  # made for rows of a source that a left join found none of

    def with_row(self, source: str, row: SourceRow) -> "Combination":
        return Combination({**self.rows, source: row}, dict(self.made))


def combinations_of(source: str, rows: Sequence[SourceRow]) -> list[Combination]:
    """Return a combination for each row, which holds nothing else."""
    return [Combination({source: row}) for row in rows]


def values_of(source: str, row: SourceRow) -> Values:
    """Return what gives the values of a source's row."""
    return Combination({source: row}).value


def values_of_result(row: Row) -> Values:
    """Return what gives the values of a row of the result."""
    return lambda column: row[column.name]


def measured_value(value: exp.Expression, combination: Combination, time_zone: str) -> Any:
    """Return what a measure takes from a combination."""
    return evaluate_expression(value, expression_lookup(combination.value), time_zone)
