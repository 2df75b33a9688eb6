"""The rows that an assumption decides about."""

from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from etl.meaning.bound import BoundColumn, RowTest
from etl.meaning.read_columns import columns_of_tests

Ways = tuple[tuple[RowTest, ...], ...]
"""Alternatives: a row counts when all tests of one of them hold."""
EVERY_ROW: Ways = ((),)


@dataclass(frozen=True)
class JoinedRows:
    """Rows among the combinations that the target is made of.

    Attributes:
        source: whose rows count, each once; those of the base where no combination holds any.
        ways: which of them.
        without: only combinations that have no row of this source.
        amount: what is added up for them; None: what the intent's first measure adds up.
    """

    source: str = ""
    ways: Ways = EVERY_ROW
    without: str | None = None
    amount: exp.Expression | None = None


@dataclass(frozen=True)
class FilteredRows:
    """Rows that come to a condition on a column: to that of a filter, or of a measure."""

    operation: int
    column: BoundColumn
    ways: Ways


@dataclass(frozen=True)
class DroppedRows:
    """Rows of a source that a step leaves out."""

    operation: int
    source: str


@dataclass(frozen=True)
class TargetRows:
    """Rows of the target; with `ties` only those that share a rank with another one."""

    ties: bool = False


@dataclass(frozen=True)
class NoRows:
    """No rows at all: an assumption that decides about names alone."""


Decision = JoinedRows | FilteredRows | DroppedRows | TargetRows | NoRows


@dataclass(frozen=True)
class DecidedFigures:
    """How many rows an assumption decides about, and what the measure adds up for them.

    Attributes:
        amount: None where there is nothing to add up.
    """

    rows: int
    amount: int | float | Decimal | None = None


def columns_of_decision(decision: Decision) -> list[BoundColumn]:
    """Return the columns by which a decision's rows are found."""
    columns: list[BoundColumn] = []
    if isinstance(decision, JoinedRows | FilteredRows):
        for tests in decision.ways:
            columns.extend(columns_of_tests(tests))

    return columns
