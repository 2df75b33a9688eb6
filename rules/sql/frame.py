"""The FROM and WHERE of one statement: which tables are joined, under which aliases, and what restricts their rows.

Tables above the root are joined. Conditions on tables beside or below it become EXISTS, because a join would repeat
rows. Soft-deleted rows of every table that takes part are left out unless the query says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from common.meanings import TableKey
from rules.query.functions import PARTS
from rules.query.query import ColumnRef, Condition, Either, Operand, Operator, Query, Related
from rules.schema.facts import Kind, kind_of, needs_cast
from rules.schema.joins import Graph, Path
from rules.schema.schema import Schema
from rules.sql.expressions import DURING, any_of, as_operand, as_stored, comparison, not_deleted, spelled
from rules.sql.joined_tables import JoinedTables, equal


class Frame(JoinedTables):
    """Tables with what restricts their rows."""

    def __init__(self, schema: Schema, graph: Graph, query: Query, base: TableKey, taken: Iterable[str] = ()) -> None:
        super().__init__(schema, graph, query, base, taken)
        self._conditions: list[str] = []
        self._conditions_of_base: list[str] = []  # used only with `keep_all`, where they must not restrict groups
        self._spoken_of: set[tuple[TableKey, str | None]] = set()  # a default filter by one of these does not hold

    def restrict(self, query: Query, own_filter: str | None = None) -> None:
        """Adds what restricts the rows of the query; conditions on tables that are not above the root become EXISTS.

        Args:
            own_filter: an expression over the base's columns.
        """
        conditions, either, both = query.conditions, query.either, query.comparison
        sides = (both.first, both.second) if both is not None else ()
        alternatives = tuple(one for each in (*(one.conditions for one in either), *sides) for one in each)
        compared = (ref for one in (*conditions, *alternatives) for ref in one.columns)
        self._spoken_of = {(one.table, one.column) for one in (*compared, *query.dimensions, *query.top_per)}
        tables = [(self._beside(one), one) for one in conditions]
        above = [one for table, one in tables if table is None]
        for condition in (*above, *(one for one in alternatives if len(one.columns) > 1 and not self._beside(one))):
            for ref in condition.columns:
                self._join(ref.table, ref.via)
        needs = _existence(query.related, [(table, one) for table, one in tables if table is not None])
        is_apart = any(each.related for each in either) or any(map(self._is_apart, alternatives))
        self._must_qualify = self._must_qualify or bool(needs) or is_apart
        for one in above:
            self._add(self.condition(one), self._is_of_kept([one]))
        for each in either:
            self._add(self._either(each), not each.related and self._is_of_kept(each.conditions))
        self._conditions_of_base += map(self._exists, needs)
        if sides:
            self._conditions_of_base.append(any_of(map(self.all_of, sides)))
        if own_filter is not None:
            self._conditions_of_base.append(as_operand(self.expression(self._base, own_filter)))

    def _add(self, condition: str, is_of_kept: bool) -> None:
        (self._conditions if is_of_kept else self._conditions_of_base).append(condition)

    def _is_of_kept(self, conditions: Iterable[Condition]) -> bool:
        return all(self.is_kept(ref.table, ref.via) for one in conditions for ref in one.columns)

    def _beside(self, condition: Condition) -> TableKey | None:
        """The table of the condition that is not above the root, if any."""
        return next((ref.table for ref in condition.columns if self._path(ref.table, ref.via) is None), None)

    def _is_apart(self, condition: Condition) -> bool:
        """Whether the condition is on a table that is not joined."""
        return any(self._path(ref.table, ref.via) not in self._nodes for ref in condition.columns)

    def _either(self, either: Either) -> str:
        """At least one of these; a table of one alternative is not joined, which would leave out rows of the others."""
        found = [self._alternative(condition) for condition in either.conditions]
        return any_of([*found, *map(self._exists, either.related)])

    def all_of(self, conditions: Sequence[Condition]) -> str:
        """All of the conditions, without a join for any of them."""
        return " AND ".join(map(self._alternative, conditions)) or "TRUE"

    def _alternative(self, condition: Condition) -> str:
        if not self._is_apart(condition):
            return self.condition(condition)
        beside = self._beside(condition)
        return self._exists_above(condition) if beside is None else self._exists(Related(beside, (condition,)))

    def _exists_above(self, condition: Condition) -> str:
        """`EXISTS (…)` for the row of a table above the root that a row of the root belongs to."""
        ref = condition.column
        path = self._path(ref.table, ref.via)
        assert path
        first, via = path[0], ref.via if len(path) > 1 else None
        inner = self._inner(first.parent)
        inner.include([(ref.table, via)], frozenset())
        inner.restrict(Query(first.parent, conditions=(replace(condition, column=replace(ref, via=via)),)))
        tie = equal(inner._nodes[()], first.parent_columns, self._nodes[()], first.columns)
        return f"EXISTS (SELECT 1 {inner._rows(tie)})"

    def _inner(self, table: TableKey) -> "Frame":
        """A frame for a query in this one."""
        return Frame(self._schema, self._graph, self._query, table, self._taken)

    def _rows(self, *ties: str) -> str:
        """The FROM and WHERE for the rows of this frame that meet `ties` as well, on one line."""
        where = " AND ".join([*ties, *self.conditions()])
        return " ".join([*self.from_lines(), *([f"WHERE {where}"] if where else [])])

    def has_beside(self, conditions: Iterable[Condition]) -> bool:
        """Whether any condition is on a table that is not above the root."""
        return any(self._beside(condition) is not None for condition in conditions)

    def conditions(self) -> list[str]:
        """Everything that restricts the rows that appear, soft deletion last."""
        of_base = [] if self._kept else self._conditions_of_base
        return [*self._conditions, *of_base, *self._not_deleted(self._kept_nodes())]

    def _not_deleted(self, nodes: Mapping[Path, str]) -> list[str]:
        found = []
        for path, alias in nodes.items():
            key = self._table_at(path)
            facts = self._schema.facts[key]
            default = None if self._is_lifted(key) else facts.filter
            said = default is not None and facts.deleted in facts.filtered  # then the file knows better than the rules
            if facts.deleted is not None and key not in self._query.with_deleted and not said:
                found.append(
                    not_deleted(self._schema.column(key, facts.deleted), self._qualified(alias, facts.deleted))
                )
            if default is not None:
                found.append(as_operand(self._written(default, alias)))
        return found

    def _is_lifted(self, key: TableKey) -> bool:
        """Whether the question speaks of what the default filter of the table is about."""
        facts = self._schema.facts[key]
        with_all = key in self._query.with_deleted and facts.has_one_default
        return with_all or not self._spoken_of.isdisjoint((key, column) for column in facts.filtered)

    def condition(self, condition: Condition) -> str:
        """One condition on the frame's rows as SQL."""
        ref, operator = condition.column, condition.operator
        if operator in ("above average", "below average"):
            return f"{self.numeric(ref)} {'>' if operator == 'above average' else '<'} ({self._average(ref)})"
        of_columns = len(condition.columns) > 1
        sql = self.dated(ref) if operator in DURING else self._compared(ref, operator, of_columns)
        operands = tuple(as_stored(operand, self._kind(ref)) for operand in condition.operands)
        is_nullable = self._schema.column(ref.table, ref.column).nullable and not of_columns

        def spelled_here(one: Operand) -> str:
            return self._compared(one, operator, True) if isinstance(one, ColumnRef) else spelled(one)

        return comparison(sql, operator, operands, spelled_here, is_nullable)

    def _kind(self, ref: ColumnRef) -> Kind:
        if ref.part is not None:
            return PARTS[ref.part].kind
        return "number" if ref.is_age else kind_of(self._schema.column(ref.table, ref.column))

    def _compared(self, ref: ColumnRef, operator: Operator, of_columns: bool) -> str:
        """The column in the type in which it is compared; with another column, text that is dates as dates."""
        kind = self._kind(ref)
        if kind == "number":
            return self.numeric(ref)
        if kind == "date" and of_columns:
            return self.dated(ref)
        is_cast = operator not in ("null", "not null") and needs_cast(self._schema.column(ref.table, ref.column))
        return f"{self.column(ref)}::text" if is_cast else self.column(ref)

    def _average(self, ref: ColumnRef) -> str:
        inner = self._inner(ref.table)
        inner.include((), frozenset())
        return f"SELECT avg({inner.numeric(replace(ref, via=None))}) {inner._rows()}"

    def _exists(self, related: Related) -> str:
        """`EXISTS (…)` for rows of the related table that belong to the base's row."""
        meeting = self._graph.meeting(self._base, related.table, self._query.through, below=True)
        if meeting is None or not meeting.to_first:
            raise LookupError(f"nothing connects {self._base} with {related.table}")
        inner, last = self._inner(meeting.at), meeting.to_first[-1]
        inner.include([(related.table, None), (last.child, None)], frozenset())
        inner.restrict(Query(meeting.at, conditions=related.conditions))
        outer = self._join(self._base, None)
        ties = equal(inner._join(last.child, None), last.columns, outer, last.parent_columns)
        return f"{'NOT ' if related.negated else ''}EXISTS (SELECT 1 {inner._rows(ties)})"

    def from_lines(self) -> list[str]:
        """FROM and JOIN lines."""
        kept = self._kept_nodes()
        lines = [f"FROM {self._named(self._kept)}", *self._joins(kept)]
        if not self._kept:
            return lines
        others = {path: alias for path, alias in self._nodes.items() if path not in kept}
        measured = [self._named(()), *(f"    {line}" for line in self._joins(others))]
        if len(measured) > 1:
            measured = [f"({measured[0]}", *measured[1:-1], f"{measured[-1]})"]
        measured[0] = f"LEFT JOIN {measured[0]}"
        ties = " AND ".join([self._tie(self._kept), *self._conditions_of_base, *self._not_deleted(others)])
        measured[-1] = f"{measured[-1]} ON {ties}"
        return [*lines, *measured]


def _existence(related: Sequence[Related], beside: Iterable[tuple[TableKey, Condition]]) -> list[Related]:
    """Everything that is tested by EXISTS: related tables with the conditions on them, and other conditions beside."""
    found, others = list(related), dict[TableKey, tuple[Condition, ...]]()
    for table, condition in beside:
        is_period = condition.operator in DURING
        places = [at for at, one in enumerate(related) if one.table == table and (is_period or not one.conditions)]
        for at in places:
            found[at] = replace(found[at], conditions=(*found[at].conditions, condition))
        if not places:
            others[table] = (*others.get(table, ()), condition)
    return [*found, *(Related(table, conditions) for table, conditions in others.items())]
