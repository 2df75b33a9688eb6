"""What queries and tables in FROM give: a bound for each column and a number of rows; and which are visible where."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from databases.guard.parsing import Node
from databases.guard.sizes import Size, one_of, together
from databases.guard.walk import strings

AGGREGATES = re.compile(r"(string|array|xml|jsonb?_object|jsonb?|range)_agg(_\w+)?")


@dataclass
class Rows:
    """What a query or a table in FROM gives.

    Attributes:
        columns: their bounds by name; None: those of a stored table, whatever they are called.
        rows: how many there are; 1 for a stored table, as for everything stored.
    """

    columns: dict[str, Size] | None
    rows: float = 1

    @property
    def is_stored(self) -> bool:
        """Whether something stored in a table is in them."""
        return self.columns is None or any(size.is_stored for size in self.columns.values())


@dataclass
class Place:
    """What a query can name.

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
        """Whether one of the sources holds something stored in a table."""
        return any(rows.is_stored for _, rows in self.sources)

    def outward(self) -> "Iterator[Place]":
        """This place, and those around it."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.outer


class Everything(dict[str, Size]):
    """The columns of a source whose names are not known: one bound holds for all of them."""

    def __init__(self, size: Size) -> None:
        super().__init__({"*": size})


def columns_of(parts: Sequence[str], sources: Iterable[tuple[str, Rows]]) -> Iterator[Size]:
    """The bounds of all that a reference may mean among the sources: a column, or a whole row by its alias."""
    name = parts[-1]
    qualifier = parts[-2] if len(parts) > 1 else None
    for alias, rows in sources:
        if qualifier is not None and alias != qualifier:
            continue
        columns = rows.columns
        if columns is None:
            continue
        if name in columns:
            yield columns[name]
        elif isinstance(columns, Everything):
            yield columns["*"]
        elif name in ("*", alias):
            yield together(columns.values())


def aggregates(select: Node) -> bool:
    """Whether what is selected is one aggregate."""
    targets = select.get("targetList", ())
    names = [name_of(target["ResTarget"].get("val", {})) for target in targets]
    return bool(names) and all(AGGREGATES.fullmatch(name or "") or name in ("count", "sum", "max") for name in names)


def last_field(node: Node) -> str | None:
    """The last name of a column reference; None for any other expression."""
    fields = strings(node.get("ColumnRef", {}).get("fields", ()))
    return fields[-1] if fields else None


def name_of(node: Node) -> str:
    """What PostgreSQL calls the column of an expression without an alias."""
    while "TypeCast" in node:
        node = node["TypeCast"]["arg"]
    call = strings(node.get("FuncCall", {}).get("funcname", ()))
    return last_field(node) or (call[-1] if call else "")


def renamed(rows: Rows, names: Sequence[str]) -> Rows:
    """The rows with their first columns called `names`."""
    if not names or rows.columns is None or isinstance(rows.columns, Everything):
        return rows
    old = list(rows.columns.items())
    columns = {names[n] if n < len(names) else name: size for n, (name, size) in enumerate(old)}
    return Rows(columns, rows.rows)


def union(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts: columns are named as in the first, each as large as the largest in its place."""
    known = [part.columns for part in parts if part.columns is not None]
    if not known:
        return Rows(None)
    values = [list(columns.values()) for columns in known]
    columns = {
        name: one_of([column[place] for column in values if place < len(column)])
        for place, name in enumerate(parts[0].columns or known[0])
    }
    return Rows(columns, sum(part.rows for part in parts))


def outgrown(history: Sequence[Size]) -> Size:
    """The bound of a column of a recursive query, from what its rounds gave."""
    last = history[-1]
    number = _extrapolated([size.number for size in history])
    length = _extrapolated([size.length for size in history])
    return Size(number, length, last.is_stored, all(size.is_natural for size in history))


def _extrapolated(values: Sequence[float]) -> float:
    """The last value; infinity if the differences between the values grow."""
    before, after = values[-2] - values[-3], values[-1] - values[-2]
    return math.inf if math.isinf(values[-1]) or after > before * 1.01 + 1e-9 else values[-1]
