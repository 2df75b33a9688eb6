"""Rows of an intent's sources, and the combinations that joins make of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from etl.meaning.bound import BoundColumn, RowTest
from etl.meaning.conditions import Values, expression_lookup, holds_all
from etl.meaning.evaluation import evaluate_expression
from etl.meaning.windows import Row


@dataclass(eq=False)
class SourceRow:
    """A row of a source. It equals only itself: two rows of equal values are two rows.

    Attributes:
        made: what steps at the stage `table` computed.
    """

    stored: Mapping[str, Any]
    made: dict[str, Any] = field(default_factory=dict)


@dataclass
class Combination:
    """Rows that joins bring together: at most one of each source.

    Attributes:
        made: what steps at the stage `rows` computed.
    """

    rows: dict[str, SourceRow]
    made: dict[str, Any] = field(default_factory=dict)

    def value(self, column: BoundColumn) -> Any:
        if not column.source:
            return self._made_value(column.name)

        row = self.rows.get(column.source)
        if row is None:
            return None

        return row.stored[column.name]

    def _made_value(self, name: str) -> Any:
        """Return a value that a step computed; NULL where a left join found no row to have it."""
        computed = [self.made, *(row.made for row in self.rows.values())]
        for values in computed:
            if name in values:
                return values[name]

        return None

    def with_row(self, source: str, row: SourceRow) -> "Combination":
        return Combination({**self.rows, source: row}, dict(self.made))


def combinations_of(source: str, rows: Sequence[SourceRow]) -> list[Combination]:
    """Return for each row a combination that holds this row alone."""
    return [Combination({source: row}) for row in rows]


def first_of_each_row(
    source: str, tests: Sequence[RowTest], combinations: Iterable[Combination], time_zone: str
) -> list[Combination]:
    """Return for each row of a source the first combination with it that fulfils the tests."""
    first: dict[SourceRow, Combination] = {}
    for combination in combinations:
        row = combination.rows.get(source)
        if row is None or row in first:
            continue
        if holds_all(tests, combination.value, time_zone):
            first[row] = combination

    return list(first.values())


def values_of(source: str, row: SourceRow) -> Values:
    """Return a function that gives the values of a source's row by their columns."""
    return Combination({source: row}).value


def values_of_result(row: Row) -> Values:
    """Return a function that gives the values of a row of the result by their columns."""
    return lambda column: row[column.name]


def measured_value(value: exp.Expression, combination: Combination, time_zone: str) -> Any:
    """Compute a measure's value for one combination."""
    return evaluate_expression(value, expression_lookup(combination.value), time_zone)
