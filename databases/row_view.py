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
    """The limits of the rows that one actor's statements see.

    Actors with equal limits see the same rows.

    Attributes:
        rows: what the row rules leave.
        context: what policies are told; None: nothing.
    """

    rows: ActorRows = OPEN
    context: RowContext | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether nothing limits them."""
        return self.rows.is_open and self.context is None


ALL_ROWS = RowView()
"""Nothing is limited."""

Place = tuple[str, str, str]
"""Schema, table, column."""


def without_row_facts(
    catalog: Catalog, hiding: Collection[tuple[str, str]], masked: Collection[Place] = ()
) -> Catalog:
    """Return `catalog` without what is known of the rows of some tables.

    That is values, periods and numbers of rows.

    Args:
        hiding: (schema, table) of the tables and views that hide rows.
        masked: columns whose values are hidden.
    """
    if not hiding and not masked:
        return catalog

    hidden = frozenset(masked)
    concerned = {place[:2] for place in masked} | set(hiding)
    tables: list[Table] = []
    for table in catalog.tables:
        if table.key in hiding:
            columns = tuple(map(_without_samples, table.columns))
            table = replace(table, columns=columns, row_estimate=-1, has_hidden_rows=True)
        elif table.key in concerned:
            table = replace(table, columns=_masked_columns(table, hidden), has_hidden_rows=True)

        tables.append(table)

    return replace(catalog, tables=tuple(tables))


def _masked_columns(table: Table, masked: Collection[Place]) -> tuple[Column, ...]:
    columns: list[Column] = []
    for column in table.columns:
        is_masked = (*table.key, column.name) in masked
        columns.append(_without_samples(column) if is_masked else column)

    return tuple(columns)


def _without_samples(column: Column) -> Column:
    return replace(column, values=(), is_complete=False, period=None)
