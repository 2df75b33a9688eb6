"""Builds one SELECT over rows, step by step."""

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from etl.meaning.bound import BoundColumn, RowTest
from etl.meaning.read_columns import columns_of_test
from etl.planning.draft_names import UniqueNames, ascii_name
from etl.planning.sql_trees import (
    all_of,
    any_of,
    column,
    identifier,
    is_null,
    selection,
    sorting,
    table,
)
from etl.planning.typed_values import (
    TypedValue,
    aligned,
    condition,
)
from etl.schemas.parameters import SortOrder

Sorting = Sequence[tuple[BoundColumn, SortOrder]]
"""Columns, each with whether it descends."""
JoinPairs = Sequence[tuple[BoundColumn, BoundColumn]]
_RANK = BoundColumn("", "etl_rank")


class InputRows:
    """The input of a SELECT: a model or a query of its WITH, and where the intent's columns are."""

    def __init__(self, name: str, columns: Mapping[BoundColumn, tuple[str, str]]) -> None:
        """Take the name of the model, and the name and type of each column there."""
        self.name = name
        self.columns = columns

    def values(self) -> dict[BoundColumn, TypedValue]:
        """Return the columns as values, each with the name of its table before it."""
        return {
            bound: TypedValue(column(name, self.name), type_)
            for bound, (name, type_) in self.columns.items()
        }


class RowQuery:
    """A SELECT that grows by joins, conditions, computed columns, windows and dedups.

    A step that reads what the SELECT itself makes moves it into a WITH, and goes on from there.
    """

    def __init__(self, rows: InputRows, time_zone: str) -> None:
        self._time_zone = time_zone
        # Models that a query reads begin with their layer, so nothing can hide them.
        self._names = UniqueNames()
        self._queries: list[tuple[str, exp.Query]] = []
        self.is_closed = False
        self._start(rows)

    def _start(self, rows: InputRows) -> None:
        self._from = rows.name
        self._read = rows.values()
        self._made: dict[BoundColumn, TypedValue] = {}
        self._joins: list[exp.Join] = []
        self._conditions: list[exp.Expr] = []
        self._has_windows = False

    # --------------------------------------------------------------------------
    # steps

    def join(self, rows: InputRows, pairs: JoinPairs, is_inner: bool) -> None:
        """Add the matching rows of a model, or none where it is no inner join."""
        self.settle(left for left, _ in pairs)
        right = rows.values()
        match = self._match(pairs, right)
        side = {"kind": "INNER"} if is_inner else {"side": "LEFT"}
        self._joins.append(exp.Join(this=table(rows.name), on=match, **side))
        self._read |= right

    def keep_matching(self, rows: InputRows, pairs: JoinPairs, is_anti: bool) -> None:
        """Keep the rows that a model has matching rows for, or those that it has none for."""
        self.settle(left for left, _ in pairs)
        if self._has_windows:
            self._close()

        one = exp.Select().select(exp.Literal.number(1)).from_(table(rows.name))
        match = exp.Exists(this=one.where(self._match(pairs, rows.values())))
        self._conditions.append(exp.Not(this=match) if is_anti else match)

    def filter(self, tests: Iterable[RowTest]) -> None:
        """Keep the rows that fulfil all tests."""
        tests = tuple(tests)
        for test in tests:
            self.settle(columns_of_test(test))

        if self._has_windows:
            self._close()

        for test in tests:
            self._conditions.append(condition(test, self.value, self._time_zone))

    def settle(self, columns: Iterable[BoundColumn]) -> None:
        """Make the columns readable; call it before `value`."""
        if any(column in self._made for column in columns):
            self._close()

    def compute(self, made: BoundColumn, value: TypedValue, is_window: bool = False) -> None:
        """Add a column whose value is made of what `value` returned."""
        self._made[made] = value
        self._has_windows = self._has_windows or is_window

    def dedup(self, keys: Sequence[BoundColumn], order: Sorting) -> None:
        """Leave the first row of each key by `order`, and all rows with NULL in the key."""
        self.settle([*keys, *(column for column, _ in order)])
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[self.value(key).tree() for key in keys],
            order=self.ordering(order),
        )
        self.compute(_RANK, TypedValue(rank, "bigint"), is_window=True)
        self._close()
        is_first = exp.EQ(this=self.value(_RANK).tree(), expression=exp.Literal.number(1))
        is_unkeyed = [is_null(self.value(key).tree()) for key in keys]
        self._conditions.append(any_of([is_first, *is_unkeyed]))
        del self._read[_RANK]

    # --------------------------------------------------------------------------
    # values

    def value(self, bound_column: BoundColumn) -> TypedValue:
        """Return a column's value as the SELECT reads it.

        Raises:
            KeyError: there is no such column, or the SELECT makes it.
        """
        return self._read[bound_column]

    @property
    def columns(self) -> list[BoundColumn]:
        """Return the columns that the rows have."""
        return [*self._read, *self._made]

    def ordering(self, order: Sorting) -> exp.Order:
        """Return an ORDER BY over columns that are settled."""
        parts = [sorting(self.value(one).tree(), direction) for one, direction in order]
        return exp.Order(expressions=parts)

    # --------------------------------------------------------------------------
    # the query

    def select(self, outputs: Sequence[tuple[str, BoundColumn]]) -> tuple[exp.Query, list[str]]:
        """Return the whole query with these columns, and their types."""
        values = [(name, self._read_or_made(column)) for name, column in outputs]
        types = [value.type for _, value in values]
        if self._is_last_query(outputs):
            _, query = self._queries.pop()
        else:
            query = self.level([(name, value.tree()) for name, value in values])

        return self.with_queries(query), types

    def _is_last_query(self, outputs: Sequence[tuple[str, BoundColumn]]) -> bool:
        """Tell whether the last query of the WITH gives just these columns."""
        if self.is_closed or self._is_begun:
            return False

        queries = [name for name, _ in self._queries]
        if queries[-1:] != [self._from]:
            return False

        given = [value.expression.name for value in self._read.values()]
        read_names = [self._read[bound].expression.name for _, bound in outputs]
        named = [name for name, _ in outputs]
        return given == read_names == named

    @property
    def _is_begun(self) -> bool:
        """Tell whether the SELECT does more than read its rows."""
        return bool(self._made or self._joins or self._conditions)

    def with_queries(self, select: exp.Query) -> exp.Query:
        """Return a SELECT over `input_rows` with the queries before it."""
        for name, query in self._queries:
            select = select.with_(identifier(name), as_=query, copy=False)

        return select

    def add_query(self, name: str, query: exp.Query) -> str:
        """Add a query to the WITH, to be read by later ones; return its name there."""
        name = self._names.technical(ascii_name(name) or "etl_rows")
        self._queries.append((name, query))
        return name

    def input_rows(self) -> InputRows:
        """Move what there is into the WITH, unless it is a model as it stands; return it."""
        if self._is_begun:
            self._close()

        columns = {}
        for bound, value in self._read.items():
            columns[bound] = (value.expression.name, value.type)

        return InputRows(self._from, columns)

    def continue_from(
        self,
        query: exp.Select,
        columns: Mapping[BoundColumn, tuple[str, str]],
        name: str = "etl_step",
    ) -> None:
        """Go on from the rows of a query that has these columns."""
        self._start(InputRows(self.add_query(name, query), columns))

    def _read_or_made(self, bound_column: BoundColumn) -> TypedValue:
        return self._made.get(bound_column) or self._read[bound_column]

    def keep_columns(self, outputs: Sequence[tuple[str, BoundColumn]]) -> None:
        """Keep only these columns, each under its new name and as a column of no table."""
        read: dict[BoundColumn, TypedValue] = {}
        computed: dict[BoundColumn, TypedValue] = {}
        for name, bound in outputs:
            output = BoundColumn("", name)
            if bound in self._made:
                computed[output] = self._made[bound]
            else:
                read[output] = self._read[bound]

        self._read, self._made = read, computed

    @property
    def is_changed(self) -> bool:
        """Tell whether there is more than the rows that were given."""
        return self._is_begun or bool(self._queries)

    def close(self) -> None:
        """Move what there is into the WITH, so that a condition can be put on what is made."""
        self.is_closed = True
        if self._is_begun:
            self._close()

    def _close(self) -> None:
        """Put all columns into a query of their own; what follows reads from that."""
        names = UniqueNames()
        columns: dict[BoundColumn, tuple[str, str]] = {}
        outputs: list[tuple[str, exp.Expr]] = []
        for bound, value in (self._read | self._made).items():
            name = names.column(bound.name, bound.source)
            columns[bound] = (name, value.type)
            outputs.append((name, value.tree()))

        self.continue_from(self.level(outputs), columns)

    def level(self, outputs: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return a SELECT of these values from what is joined and kept, without its WITH."""
        select = selection(outputs, table(self._from))
        for join in self._joins:
            select.append("joins", join.copy())

        kept = all_of(condition.copy() for condition in self._conditions)
        if kept is not None:
            return select.where(kept, copy=False)

        return select

    def _match(self, pairs: JoinPairs, right: Mapping[BoundColumn, TypedValue]) -> exp.Expr:
        equalities = []
        for left_column, right_column in pairs:
            one, other = aligned(self.value(left_column), right[right_column], self._time_zone)
            equalities.append(exp.EQ(this=one, expression=other))

        return exp.and_(*equalities)
