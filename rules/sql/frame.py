"""The FROM and WHERE of one statement: which tables are joined, and which conditions restrict their
rows.

Tables above the root are joined. Conditions on tables beside or below it become EXISTS, because a
join would repeat rows. Soft-deleted rows of every table that takes part are left out unless the
query says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from common.meanings import TableKey
from rules.query.aggregates import PARTS
from rules.query.query import ColumnRef, Condition, Either, Operand, Operator, Query, Related
from rules.schema.reference_graph import AmbiguousPath, Graph, Path
from rules.schema.table_facts import ColumnKind, kind_of, needs_cast
from rules.schema.table_schema import Schema
from rules.sql.expressions import (
    DURING,
    any_of,
    as_operand,
    as_stored,
    comparison,
    not_deleted,
    spelled,
)
from rules.sql.joined_tables import JoinedTables, equal

_AVERAGE_SIGNS = {"above average": ">", "below average": "<"}


class RestrictedTables(JoinedTables):
    """Tables with what restricts their rows."""

    def __init__(
        self, schema: Schema, graph: Graph, query: Query, base: TableKey, taken: Iterable[str] = ()
    ) -> None:
        super().__init__(schema, graph, query, base, taken)
        self._conditions: list[str] = []
        # With `keep_all`, these must not restrict the groups; else they are conditions as well.
        self._conditions_of_base: list[str] = []
        # A default filter by one of these columns does not hold.
        self._spoken_of: set[tuple[TableKey, str | None]] = set()

    def restrict(self, query: Query, own_filter: str | None = None) -> None:
        """Add the conditions of the query; those on tables that are not above the root use EXISTS.

        Args:
            own_filter: an expression over the base's columns that has to hold as well.
        """
        sides = _sides(query)
        alternatives = _alternatives(query)
        self._spoken_of = _spoken_columns(query, alternatives)
        above: list[Condition] = []
        beside: list[tuple[TableKey, Condition]] = []
        for condition in query.conditions:
            table = self._beside(condition)
            if table is None:
                above.append(condition)
            else:
                beside.append((table, condition))

        needs = self._existence(query.related, beside)
        self._join_compared(above, alternatives)
        if needs or self._tests_alternatives_by_exists(query):
            self._must_qualify = True

        for condition in above:
            self._add(self.condition(condition), self._is_of_kept([condition]))

        for either in query.either:
            is_of_kept = not either.related and self._is_of_kept(either.conditions)
            self._add(self._either(either), is_of_kept)

        self._conditions_of_base += [self._exists(related) for related in needs]
        if sides:
            self._conditions_of_base.append(any_of(self.all_of(side) for side in sides))
        if own_filter is not None:
            self._conditions_of_base.append(as_operand(self.expression(self._base, own_filter)))

    def _existence(
        self, related: Sequence[Related], beside: Iterable[tuple[TableKey, Condition]]
    ) -> list[Related]:
        """Return everything that is tested by EXISTS.

        A period holds for each related table that it is on, another condition for related tables
        without conditions of their own; conditions on further tables get a test of their own, or
        one together where one row below the base belongs to all of them.
        """
        tested = list(related)
        others: dict[TableKey, tuple[Condition, ...]] = {}
        for table, condition in beside:
            places = _places_of(condition, table, related)
            places = places or self._places_below(condition, table, related)
            for at in places:
                conditions = (*tested[at].conditions, condition)
                tested[at] = replace(tested[at], conditions=conditions)

            if not places:
                others[table] = (*others.get(table, ()), condition)

        kept: list[Related] = []
        plain: list[Related] = []
        for said, one in zip(related, tested, strict=True):
            is_plain = not said.conditions and not said.negated
            (plain if is_plain else kept).append(one)

        plain += [Related(table, conditions) for table, conditions in others.items()]
        return [*kept, *self._together(plain)]

    def _places_below(
        self, condition: Condition, table: TableKey, related: Sequence[Related]
    ) -> list[int]:
        """Return the places of rows that must not exist in a period which is that of a table above.

        "customers who did not order tea in 2025" may have ordered something else then.
        """
        if condition.operator not in DURING:
            return []

        return [
            at
            for at, one in enumerate(related)
            if one.negated and one.conditions and self._shared_row(one, Related(table))
        ]

    def _together(self, tests: Iterable[Related]) -> list[Related]:
        """Join tests that one row below the base can meet together.

        "customers who ordered tea in 2025" ordered the tea then, and not something else.
        """
        joined: list[Related] = []
        for test in tests:
            for at, one in enumerate(joined):
                both = self._joined(one, test) or self._joined(test, one)
                if both is not None:
                    joined[at] = both
                    break
            else:
                joined.append(test)

        return joined

    def _joined(self, lower: Related, upper: Related) -> Related | None:
        """Return one test for both, of the rows that tie the lower table to the base.

        None where these don't belong to rows of the upper one, or where both are about one column.
        """
        columns = {condition.column for condition in lower.conditions}
        is_of_one_column = any(condition.column in columns for condition in upper.conditions)
        if not lower.conditions or is_of_one_column:
            return None

        row = self._shared_row(lower, upper)
        if row is None:
            return None

        return Related(row, (*lower.conditions, *upper.conditions))

    def _shared_row(self, lower: Related, upper: Related) -> TableKey | None:
        """Return the table that ties the lower one to the base, if its rows have an upper one."""
        graph = self._graph
        with suppress(AmbiguousPath):
            tie = graph.meeting(self._base, lower.table, self._query.through, below=True)
            other = graph.meeting(self._base, upper.table, self._query.through, below=True)
            if tie is None or other is None or other.at not in graph.above(tie.at):
                return None

            path = graph.up(tie.at, upper.table)
            is_direct = path is not None and not graph.is_linked_closer(tie.at, upper.table, path)
            return tie.at if is_direct else None

        return None

    def _tests_alternatives_by_exists(self, query: Query) -> bool:
        if any(either.related for either in query.either):
            return True

        return any(self._is_apart(condition) for condition in _alternatives(query))

    def _join_compared(
        self, conditions: Iterable[Condition], alternatives: Iterable[Condition]
    ) -> None:
        """Join the tables of the conditions, and those of alternatives that compare two columns."""
        joined = list(conditions)
        for alternative in alternatives:
            compares_columns = len(alternative.columns) > 1
            if compares_columns and self._beside(alternative) is None:
                joined.append(alternative)

        for condition in joined:
            for ref in condition.columns:
                self._join(ref.table, ref.via)

    def _add(self, condition: str, is_of_kept: bool) -> None:
        if is_of_kept:
            self._conditions.append(condition)
        else:
            self._conditions_of_base.append(condition)

    def _is_of_kept(self, conditions: Iterable[Condition]) -> bool:
        """Tell whether the conditions are on tables of which every row appears; see `keep_all`."""
        for condition in conditions:
            for ref in condition.columns:
                if not self.is_kept(ref.table, ref.via):
                    return False

        return True

    def _beside(self, condition: Condition) -> TableKey | None:
        """Return the first table of the condition that is not above the root."""
        for ref in condition.columns:
            if self._path(ref.table, ref.via) is None:
                return ref.table

        return None

    def _is_apart(self, condition: Condition) -> bool:
        """Tell whether the condition is on a table that is not joined."""
        return any(self._path(ref.table, ref.via) not in self._nodes for ref in condition.columns)

    def _either(self, either: Either) -> str:
        """Write that at least one of these holds, without joining a table for any of them.

        A join for one alternative would leave out rows that meet another.
        """
        conditions = [self._alternative(condition) for condition in either.conditions]
        related = [self._exists(related) for related in either.related]
        return any_of([*conditions, *related])

    def all_of(self, conditions: Sequence[Condition]) -> str:
        """Write that all of the conditions hold, without joining a table for any of them."""
        return " AND ".join(map(self._alternative, conditions)) or "TRUE"

    def _alternative(self, condition: Condition) -> str:
        """Write the condition without joining a table for it."""
        if not self._is_apart(condition):
            return self.condition(condition)

        beside = self._beside(condition)
        if beside is None:
            return self._exists_above(condition)

        return self._exists(Related(beside, (condition,)))

    def _exists_above(self, condition: Condition) -> str:
        """Write `EXISTS (…)` for the row above the root that a row of the root refers to."""
        ref = condition.column
        path = self._path(ref.table, ref.via)
        assert path
        first = path[0]
        via = ref.via if len(path) > 1 else None
        inner = self._inner(first.parent)
        inner.include([(ref.table, via)], frozenset())
        inner.restrict(
            Query(first.parent, conditions=(replace(condition, column=replace(ref, via=via)),))
        )
        tie = equal(inner._nodes[()], first.parent_columns, self._nodes[()], first.columns)
        return f"EXISTS (SELECT 1 {inner._rows(tie)})"

    def _inner(self, table: TableKey) -> "RestrictedTables":
        """Return a frame for a query within this one."""
        return RestrictedTables(self._schema, self._graph, self._query, table, self._taken)

    def _rows(self, *ties: str) -> str:
        """Return FROM and WHERE of the rows of this frame that meet `ties` as well, on one line."""
        conditions = [*ties, *self.conditions()]
        where = ["WHERE " + " AND ".join(conditions)] if conditions else []
        return " ".join([*self.from_lines(), *where])

    def has_beside(self, conditions: Iterable[Condition]) -> bool:
        """Tell whether any condition is on a table that is not above the root."""
        return any(self._beside(condition) is not None for condition in conditions)

    def conditions(self) -> list[str]:
        """Return the conditions on the rows that appear; deletion and default filters come last."""
        of_base = [] if self._kept else self._conditions_of_base
        return [*self._conditions, *of_base, *self._not_deleted(self._kept_nodes())]

    def _not_deleted(self, nodes: Mapping[Path, str]) -> list[str]:
        """Return the conditions that leave out deleted rows, and the semantic file's filters."""
        tests = []
        for path, alias in nodes.items():
            key = self._table_at(path)
            facts = self._schema.facts[key]
            default = None if self._is_lifted(key) else facts.filter
            # A default filter on the column that marks deleted rows knows better than the rules.
            is_filtered = default is not None and facts.deleted in facts.filtered
            if facts.deleted is not None and not is_filtered:
                tests += self._without_deleted(key, facts.deleted, alias)
            if default is not None:
                tests.append(as_operand(self._expression_sql(default, alias)))

        return tests

    def _without_deleted(self, key: TableKey, deleted: str, alias: str) -> list[str]:
        if key in self._query.with_deleted:
            return []

        column = self._schema.column(key, deleted)
        return [not_deleted(column, self._column_sql(alias, deleted))]

    def _is_lifted(self, key: TableKey) -> bool:
        """Tell whether the question speaks of a column of the table's default filter."""
        facts = self._schema.facts[key]
        if key in self._query.with_deleted and facts.has_one_default:
            return True

        return any((key, column) in self._spoken_of for column in facts.filtered)

    def condition(self, condition: Condition) -> str:
        """Write one condition on the frame's rows."""
        ref = condition.column
        operator = condition.operator
        if operator in _AVERAGE_SIGNS:
            return f"{self.numeric(ref)} {_AVERAGE_SIGNS[operator]} ({self._average(ref)})"

        compares_columns = len(condition.columns) > 1
        if operator in DURING:
            sql = self.dated(ref)
        else:
            sql = self._compared(ref, operator, compares_columns)

        operands = tuple(as_stored(operand, self._kind(ref)) for operand in condition.operands)
        is_nullable = self._schema.column(ref.table, ref.column).nullable

        def spelled_here(operand: Operand) -> str:
            if isinstance(operand, ColumnRef):
                return self._compared(operand, operator, True)

            return spelled(operand)

        # A comparison with another column holds for no NULL, not even a negative one.
        return comparison(
            sql, operator, operands, spelled_here, is_nullable and not compares_columns
        )

    def _kind(self, ref: ColumnRef) -> ColumnKind:
        if ref.part is not None:
            return PARTS[ref.part].kind
        if ref.is_age:
            return "number"

        return kind_of(self._schema.column(ref.table, ref.column))

    def _compared(self, ref: ColumnRef, operator: Operator, compares_columns: bool) -> str:
        """Return the column in the type in which it is compared.

        Beside another column, text that holds dates is compared as a date.
        """
        kind = self._kind(ref)
        if kind == "number":
            return self.numeric(ref)
        if kind == "date" and compares_columns:
            return self.dated(ref)
        if operator in ("null", "not null"):
            return self.column(ref)

        is_cast = needs_cast(self._schema.column(ref.table, ref.column))
        if is_cast:
            return f"{self.column(ref)}::text"

        return self.column(ref)

    def _average(self, ref: ColumnRef) -> str:
        inner = self._inner(ref.table)
        inner.include((), frozenset())
        return f"SELECT avg({inner.numeric(replace(ref, via=None))}) {inner._rows()}"

    def _exists(self, related: Related) -> str:
        """Write `EXISTS (…)` for rows of the related table that belong to the base's row."""
        meeting = self._graph.meeting(self._base, related.table, self._query.through, below=True)
        if meeting is None or not meeting.to_first:
            raise LookupError(f"nothing connects {self._base} with {related.table}")

        inner = self._inner(meeting.at)
        last = meeting.to_first[-1]
        inner.include([(related.table, None), (last.child, None)], frozenset())
        inner.restrict(Query(meeting.at, conditions=related.conditions))
        outer = self._join(self._base, None)
        ties = equal(inner._join(last.child, None), last.columns, outer, last.parent_columns)
        exists = "NOT EXISTS" if related.negated else "EXISTS"
        return f"{exists} (SELECT 1 {inner._rows(ties)})"

    def from_lines(self) -> list[str]:
        """Return the FROM and JOIN lines."""
        kept = self._kept_nodes()
        lines = [f"FROM {self._table_sql(self._kept)}", *self._joins(kept)]
        if not self._kept:
            return lines

        others = {path: alias for path, alias in self._nodes.items() if path not in kept}
        return [*lines, *self._outer_join(others)]

    def _outer_join(self, nodes: Mapping[Path, str]) -> list[str]:
        """Return the LEFT JOIN of the measured rows to the tables of which every row appears."""
        tables = [self._table_sql(()), *(f"    {line}" for line in self._joins(nodes))]
        if len(tables) > 1:
            tables[0] = f"({tables[0]}"
            tables[-1] = f"{tables[-1]})"

        tables[0] = f"LEFT JOIN {tables[0]}"
        conditions = [*self._conditions_of_base, *self._not_deleted(nodes)]
        ties = " AND ".join([self._tie(self._kept), *conditions])
        tables[-1] = f"{tables[-1]} ON {ties}"
        return tables


def _places_of(condition: Condition, table: TableKey, related: Sequence[Related]) -> list[int]:
    """Return the places of the related tables for which a condition holds."""
    is_period = condition.operator in DURING
    places = []
    for at, one in enumerate(related):
        is_free = is_period or not one.conditions
        if one.table == table and is_free:
            places.append(at)

    return places


def _sides(query: Query) -> list[tuple[Condition, ...]]:
    """Return the conditions of both sets of rows whose figures are compared."""
    if query.comparison is None:
        return []

    return [query.comparison.first, query.comparison.second]


def _alternatives(query: Query) -> list[Condition]:
    """Return the conditions that not every row has to meet."""
    conditions: list[Condition] = []
    for either in query.either:
        conditions += either.conditions

    for side in _sides(query):
        conditions += side

    return conditions


def _spoken_columns(
    query: Query, alternatives: Iterable[Condition]
) -> set[tuple[TableKey, str | None]]:
    """Return the columns of the query's conditions and groups."""
    conditions = (*query.conditions, *alternatives)
    columns = {(ref.table, ref.column) for condition in conditions for ref in condition.columns}
    groups = {
        (dimension.table, dimension.column) for dimension in (*query.dimensions, *query.top_per)
    }
    return columns | groups
