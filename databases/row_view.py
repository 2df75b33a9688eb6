"""Which rows the statements of one actor see, and what of a catalogue that leaves to be told.

Two things may limit them: policies of the server, which are told whose each transaction is
(`ROW_CONTEXT`), and the operator's row rules, by which statements are rewritten (`ROW_RULES`).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from common.values import Catalog, Column, Table
from databases.row_context import RowContext
from guard.row_rules import OPEN, ActorRows


@dataclass(frozen=True)
class RowView:
    """What limits the rows that one actor's statements see. Actors with equal ones see the same
    rows.

    Attributes:
        rows: what the row rules leave.
        context: what policies are told; None: nothing.
    """

    rows: ActorRows = OPEN
    context: RowContext | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing limits them."""
        return self.rows.is_open and self.context is None


ALL_ROWS = RowView()
"""Nothing is limited."""

Place = tuple[str, str, str]
"""Schema, table, column."""


def unrevealing(
    catalog: Catalog, hiding: Collection[tuple[str, str]], masked: Collection[Place] = ()
) -> Catalog:
    """`catalog` without anything that is known of the rows of some tables: values, periods, numbers
    of rows.

    Args:
        hiding: (schema, table) of the tables and views that hide rows.
        masked: columns whose values are hidden.
    """
    if not hiding and not masked:
        return catalog
    hidden, tables = frozenset(masked), {place[:2] for place in masked} | set(hiding)
    return replace(
        catalog,
        tables=tuple(
            _unrevealing(table, hidden, hides_rows=table.key in hiding)
            if table.key in tables
            else table
            for table in catalog.tables
        ),
    )


def _unrevealing(table: Table, masked: Collection[Place], *, hides_rows: bool) -> Table:
    columns = tuple(
        _unknown(column) if hides_rows or (*table.key, column.name) in masked else column
        for column in table.columns
    )
    rows = -1 if hides_rows else table.row_estimate
    return replace(table, columns=columns, row_estimate=rows, has_hidden_rows=True)


def _unknown(column: Column) -> Column:
    return replace(column, values=(), is_complete=False, period=None)
