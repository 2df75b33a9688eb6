"""The changes of an owner's tables in one transaction, as plain values for another process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from files.reading.value_forms import ColumnType

LoadMode = Literal["new", "replace", "append"]


@dataclass(frozen=True)
class PlannedColumn:
    """A column of the table as it will be.

    Attributes:
        place: where its values stand in the sheet, from 0; None: the new rows have none.
        comment: its name as written.
        is_kept: whether the table has it already.
    """

    name: str
    type: ColumnType
    comment: str
    place: int | None = None
    forms: tuple[str, ...] = ()
    is_kept: bool = False


@dataclass(frozen=True)
class PlannedReference:
    """A column whose values are the keys of another table of the same owner."""

    column: str
    table: str
    key: str


@dataclass(frozen=True)
class PlannedTable:
    """A table to be made, or to take the place of one.

    Attributes:
        sheet: the key of its sheet in the upload.
        first_row: the number of the first row of data, from 1.
        key: the column that is to be its primary key.
        changes_columns: whether columns of the table that is appended to become others.
    """

    name: str
    comment: str
    way: LoadMode
    sheet: str
    first_row: int
    keeps_totals: bool
    columns: tuple[PlannedColumn, ...]
    key: str | None = None
    references: tuple[PlannedReference, ...] = ()
    changes_columns: bool = False


@dataclass(frozen=True)
class LoadPlan:
    """The changes of one transaction, and its limits.

    Attributes:
        schema: the schema of the owner.
        reader: the role that questions are asked with; None: the one that loads.
        max_bytes, max_tables: of the owner's tables together.
        dropped: tables that are to go.
        record: the record of the file, which is kept beside the tables: `id`, `owner`, `name`,
            `groups`.
    """

    url: str
    schema: str
    reader: str | None
    max_bytes: int
    max_tables: int
    timeout_s: float
    record: Mapping[str, Any]
    tables: tuple[PlannedTable, ...]
    dropped: tuple[str, ...] = ()


@dataclass
class LoadedTable:
    """The result of loading one planned table.

    Attributes:
        rows: how many rows the table has now.
        notes: what could not be done, in both languages.
    """

    name: str
    rows: int
    added: int
    left_out: dict[str, list[int]] = field(default_factory=dict)
    key: str | None = None
    references: list[dict[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


def plan_of(values: Mapping[str, Any]) -> LoadPlan:
    """Return the plan from its JSON: `dataclasses.asdict`, in which tuples have become lists."""
    fields = dict(values)
    fields["tables"] = tuple(map(_table, values["tables"]))
    fields["dropped"] = tuple(values["dropped"])
    return LoadPlan(**fields)


def _table(values: Mapping[str, Any]) -> PlannedTable:
    fields = dict(values)
    fields["columns"] = tuple(map(_column, values["columns"]))
    fields["references"] = tuple(
        PlannedReference(**reference) for reference in values["references"]
    )
    return PlannedTable(**fields)


def _column(values: Mapping[str, Any]) -> PlannedColumn:
    fields = dict(values)
    fields["forms"] = tuple(values["forms"])
    return PlannedColumn(**fields)
