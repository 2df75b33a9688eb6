"""Bound what queries and tables in FROM give, each column and the number of rows; tell which are
visible where.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse, zip_longest

from guard.facts import qualifier_of
from guard.sizes import STORED, Size, one_of, together
from guard.walk import column_parts, strings
from sqltree.parsing import Node

_ROW_CHARS = 64  # of a row's text, or of its JSON, beside its columns
_GATHERING = re.compile(r"(?:string|array|jsonb?_object|jsonb?|range)_agg(?:_\w+)?|xmlagg")

_AGGREGATES = frozenset(("avg", "count", "max", "min", "sum"))


def is_gathering(name: str) -> bool:
    """Tell whether the function puts the values of all rows together."""
    return _GATHERING.fullmatch(name) is not None


@dataclass
class Rows:
    """Bounds the columns and the number of rows of a query or a table in FROM.

    Attributes:
        columns: their bounds by name; None: those of a stored table, whatever they are called.
        rows: how many there are; 1 for a stored table, as for everything stored.
        is_open: whether only PostgreSQL tells how many.
    """

    columns: dict[str, Size] | None
    rows: float = 1
    is_open: bool = False


@dataclass
class Place:
    """Finds the sources and CTEs that a query can name.

    Attributes:
        outer: the place of the query around this one, whose names are visible here, too.
        sources: what FROM offers, by alias.
        ctes: CTEs that were looked at, by name.
        pending: CTEs that were not looked at yet, by name, each with whether its WITH is RECURSIVE.
        rows: how many rows the sources give together.
        series: how many rows a series in the list of results makes of each.
    """

    outer: "Place | None" = None
    sources: list[tuple[str, Rows]] = field(default_factory=list)
    ctes: dict[str, Rows] = field(default_factory=dict)
    pending: dict[str, tuple[Node, bool]] = field(default_factory=dict)
    rows: float = 1
    series: float = 1

    @property
    def reads_tables(self) -> bool:
        """Tell whether only PostgreSQL knows how many rows there are."""
        return any(rows.is_open for _, rows in self.sources)

    @property
    def most_rows(self) -> float:
        """Return how many rows there surely are at most."""
        if self.reads_tables:
            return math.inf

        return self.rows

    def outward(self) -> "Iterator[Place]":
        """Yield this place and those around it, from the innermost on."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.outer


class UnknownColumns(dict[str, Size]):
    """Bounds all columns of a source whose names are not known alike."""

    def __init__(self, size: Size) -> None:
        super().__init__({"*": size})


def columns_of(parts: Sequence[str], sources: Iterable[tuple[str, Rows]]) -> Iterator[Size]:
    """Yield the bounds of all that a reference may mean among the sources.

    It means a column, or a whole row by its alias.
    """
    name = parts[-1]
    qualifier = qualifier_of(tuple(parts))
    for alias, rows in sources:
        columns = rows.columns
        is_other = qualifier is not None and alias != qualifier
        if is_other:
            continue
        if columns is None:
            yield STORED
        elif name in columns:
            yield columns[name]
        elif isinstance(columns, UnknownColumns):
            yield columns["*"]
        elif name in ("*", alias):
            row = together(columns.values())
            length = 2 * row.length + _ROW_CHARS
            yield replace(row, length=length)


def aggregates(select: Node) -> bool:
    """Tell whether what is selected is one aggregate."""
    targets = [item["ResTarget"] for item in select.get("targetList", ())]
    names = [name_of(target.get("val", {})) for target in targets]
    others = filterfalse(_AGGREGATES.__contains__, names)
    return bool(names) and all(map(is_gathering, others))


def last_field(node: Node) -> str | None:
    """Return the last name of a column reference; None for any other expression."""
    fields = column_parts(node)
    if fields:
        return fields[-1]

    return None


def name_of(node: Node) -> str:
    """Return what PostgreSQL calls the column of an expression without an alias."""
    while "TypeCast" in node:
        node = node["TypeCast"]["arg"]

    function = node.get("FuncCall", {}).get("funcname", ())
    names = column_parts(node) or strings(function) or ("",)
    return names[-1]


def renamed(rows: Rows, names: Sequence[str]) -> Rows:
    """Return the rows with their first columns called `names`."""
    is_fixed = rows.columns is None or isinstance(rows.columns, UnknownColumns)
    if is_fixed or not names:
        return rows

    columns_before = rows.columns or {}
    others = [*columns_before][len(names) :]
    called = (*names, *others)
    columns = dict(zip(called, columns_before.values(), strict=False))
    return Rows(columns, rows.rows, rows.is_open)


def union(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts.

    Columns are named as in the first, each as large as the largest in its place.
    """
    is_open = any(part.is_open for part in parts)
    columns_of_parts = [part.columns for part in parts if part.columns is not None]
    if not columns_of_parts:
        return Rows(None, is_open=is_open)

    names = parts[0].columns or columns_of_parts[0]
    sizes_of_parts = [columns.values() for columns in columns_of_parts]
    sizes_by_place = zip_longest(*sizes_of_parts)
    columns: dict[str, Size] = {}
    for name, sizes in zip(names, sizes_by_place, strict=False):
        present = filter(None, sizes)
        columns[name] = one_of(present)

    counts = [part.rows for part in parts]
    return Rows(columns, sum(counts), is_open)
