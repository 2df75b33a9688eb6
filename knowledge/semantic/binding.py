"""Holds what a semantic file says against a catalogue: a catalogue with meanings, and what does not fit it.

Whatever does not fit is left out and named with its line and the nearest real name; all else is used.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from common.meanings import ColumnMeaning, Metric, PreferredJoin, TableMeaning, ValueMeaning
from common.postgres.identifiers import quoted
from common.values import Catalog, Column, Table
from databases.expressions import Expression, NotAnExpression, expression
from databases.references import table_named
from knowledge.semantic.format import ColumnEntry, JoinEntry, MetricEntry, SemanticFile, Spot, TableEntry
from knowledge.semantic.near import did_you_mean
from knowledge.semantic.problems import Problem

_BOOLEAN = "boolean"
_QUOTED = re.compile(r'"((?:[^"]|"")+)"\."((?:[^"]|"")+)"')
_SUGGESTIONS = 100  # mistakes for which near names are looked for, which takes 10 ms each among thousands of tables
_LISTED = 5  # tables that a message about an ambiguous name lists


@dataclass(frozen=True)
class Statement:
    """A query that PostgreSQL must be able to plan for an expression of the file to hold.

    Attributes:
        table: whose rows it reads.
        sql: one line.
        metric: the name of the metric that it proves; None: it proves the table's filter.
    """

    line: int
    what: str
    table: Table
    sql: str
    metric: str | None = None


@dataclass(frozen=True)
class Bound:
    """A catalogue with what a file says of it.

    Attributes:
        problems: by line.
        statements: prove the expressions.
    """

    catalog: Catalog
    problems: tuple[Problem, ...]
    statements: tuple[Statement, ...]

    def without(self, failed: Iterable[tuple[Statement, str]]) -> "Bound":
        """Without the filters and metrics whose statements failed, for the reasons given.

        With a filter go the metrics over its table: of more rows they would be other figures.
        """
        failed = tuple(failed)
        if not failed:
            return self
        tables = {statement.table.key for statement, _ in failed if statement.metric is None}
        metrics = {statement.metric for statement, _ in failed}
        metrics |= {metric.name for metric in self.catalog.metrics if metric.table in tables}
        problems = [Problem(statement.line, f"{statement.what} can't be used: {why}") for statement, why in failed]
        catalog = replace(
            self.catalog,
            tables=tuple(_without_filter(one) if one.key in tables else one for one in self.catalog.tables),
            metrics=tuple(one for one in self.catalog.metrics if one.name not in metrics),
        )
        return Bound(catalog, tuple(sorted((*self.problems, *problems))), ())


def bind(said: SemanticFile, catalog: Catalog) -> Bound:
    """`catalog` with what `said` says of its tables and columns, and the metrics over them."""
    return _Binding(catalog).bound(said)


def _without_filter(table: Table) -> Table:
    meaning = table.meaning and replace(table.meaning, default_filter=None, filter_columns=())
    return replace(table, meaning=meaning)


class _Binding:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._problems: list[Problem] = []
        self._statements: list[Statement] = []
        self._lines: dict[tuple[str, str], int] = {}  # where each table is described
        self._unfiltered: set[tuple[str, str]] = set()  # tables whose filter can't be used

    def bound(self, said: SemanticFile) -> Bound:
        tables: dict[tuple[str, str], Table] = {}
        for entry in said.tables:
            table = self._table(entry.name)
            if table is not None and self._is_first(entry.name, table):
                tables[table.key] = self._described(table, entry)
        catalog = replace(self._catalog, tables=tuple(tables.get(one.key, one) for one in self._catalog.tables))
        metrics = [metric for entry in said.metrics if (metric := self._metric(entry, tables))]
        catalog = replace(catalog, metrics=tuple(metrics))
        return Bound(catalog, tuple(sorted(set(self._problems))), tuple(self._statements))

    def _problem(self, line: int, text: str) -> None:
        self._problems.append(Problem(line, text))

    @cached_property
    def _names(self) -> Collection[str]:
        """What tables may be called in the file."""
        return {name for one in self._catalog.tables for name in (one.name, f"{one.schema}.{one.name}")}

    def _near(self, name: str, known: Collection[str]) -> str:
        """The nearest name; of a file that fits hardly anything, only for the first mistakes."""
        return did_you_mean(name, known) if len(self._problems) < _SUGGESTIONS else ""

    def _is_first(self, spot: Spot, table: Table) -> bool:
        before = self._lines.setdefault(table.key, spot.line)
        if before != spot.line:
            self._problem(spot.line, f"the table {spot.text!r} is described in line {before} already")
        return before == spot.line

    # ---------------------------------------------------------------------------------------------------------- names

    def _table(self, spot: Spot) -> Table | None:
        found = tables_called(spot.text, self._catalog)
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(map(in_quotes, (table.key for table in found[:_LISTED])))
            self._problem(spot.line, f"several tables are called {spot.text!r}: write one of {names}")
        else:
            self._problem(spot.line, f"there is no table {spot.text!r}{self._near(spot.text, self._names)}")
        return None

    def _column(self, spot: Spot, table: Table) -> Column | None:
        column = table.column(spot.text)
        if column is None:
            near = self._near(spot.text, [one.name for one in table.columns])
            self._problem(spot.line, f"the table {table.name!r} has no column {spot.text!r}{near}")
        return column

    def _columns(self, spots: Sequence[Spot], table: Table) -> tuple[str, ...] | None:
        """Their names; None when one of them is unknown."""
        found = [self._column(spot, table) for spot in spots]
        return None if None in found else tuple(dict.fromkeys(spot.text for spot in spots))

    # --------------------------------------------------------------------------------------------------------- tables

    def _described(self, table: Table, entry: TableEntry) -> Table:
        condition = self._filter(entry.filter, table)
        if entry.filter and not condition:
            self._unfiltered.add(table.key)
        date = self._column(entry.date, table) if entry.date else None
        meaning = TableMeaning(
            names=entry.names,
            description=entry.description,
            label_columns=self._columns(entry.label, table) or (),
            date_column=date.name if date else None,
            default_filter=condition.text if condition else None,
            filter_columns=condition.columns if condition else (),
            joins=tuple(join for said in entry.joins if (join := self._join(said, table))),
            verbs=entry.verbs,
        )
        said = {column.name.text: column for column in entry.columns if self._column(column.name, table)}
        columns = tuple(
            replace(one, meaning=self._column_meaning(one, said[one.name])) if one.name in said else one
            for one in table.columns
        )
        return replace(table, columns=columns, meaning=meaning)

    def _column_meaning(self, column: Column, entry: ColumnEntry) -> ColumnMeaning:
        values = []
        for spot, names in entry.values:
            value = spot.text.lower() if column.type == _BOOLEAN else spot.text
            known = ("true", "false") if column.type == _BOOLEAN else column.allowed
            if known and value not in known:
                near = self._near(value, known)
                self._problem(spot.line, f"the column {column.name!r} can't have the value {spot.text!r}{near}")
            elif names.all:
                values.append(ValueMeaning(value, names))
        return ColumnMeaning(
            names=entry.names,
            description=entry.description,
            unit=entry.unit,
            values=tuple(values),
            is_sensitive=entry.is_sensitive,
            most=entry.most,
            least=entry.least,
            is_kind=entry.is_kind,
        )

    def _join(self, entry: JoinEntry, table: Table) -> PreferredJoin | None:
        target = self._table(entry.to)
        columns = self._columns(entry.columns, table)
        if target is None or columns is None:
            return None
        targets = self._columns(entry.target, target) if entry.target else target.primary_key
        if targets is None:
            return None
        if len(targets) != len(columns):
            said = "as many columns as target" if entry.target else f"target: the primary key is {list(targets)}"
            self._problem(entry.line, f"the join to {entry.to.text!r} needs {said}")
            return None
        return PreferredJoin(columns, target.key, targets)

    # ---------------------------------------------------------------------------------------------------- expressions

    def _filter(self, spot: Spot | None, table: Table, of: str | None = None) -> Expression | None:
        what = f"the filter of {of or table.name!r}"
        found = self._expression(spot, table, what) if spot else None
        if spot and found and of is None:
            self._prove(spot.line, what, table, f"SELECT 1 FROM {_named(table)} WHERE ({found.text})")
        return found

    def _metric(self, entry: MetricEntry, described: dict[tuple[str, str], Table]) -> Metric | None:
        table = self._table(entry.table)
        if table is None:
            return None
        what = f"the metric {entry.name.text!r}"
        if table.key in self._unfiltered:
            self._problem(entry.name.line, f"{what} can't be used without the filter of {table.name!r}")
            return None
        figure = self._expression(entry.expression, table, what)
        condition = self._filter(entry.filter, table, of=what)
        date = self._column(entry.date, table) if entry.date else None
        grain = self._columns(entry.grain, table)
        if figure and not figure.calls:
            self._problem(entry.expression.line, f"{what} is no aggregate such as sum({figure.text[:40]})")
        if not figure or not figure.calls or (entry.filter and not condition) or grain is None:
            return None
        if entry.date and not date:
            return None
        where = f" WHERE ({condition.text})" if condition else ""
        # HAVING makes it a query over groups, where PostgreSQL refuses columns outside of aggregates.
        sql = f"SELECT ({figure.text}) FROM {_named(table)}{where} HAVING true"
        self._prove(entry.expression.line, what, table, sql, entry.name.text)
        meaning = described.get(table.key, table).meaning
        return Metric(
            name=entry.name.text,
            table=table.key,
            expression=figure.text,
            names=entry.names,
            description=entry.description,
            unit=entry.unit,
            filter=condition.text if condition else None,
            grain=grain,
            date_column=date.name if date else meaning.date_column if meaning else None,
            columns=tuple(dict.fromkeys((*figure.columns, *(condition.columns if condition else ())))),
            most=entry.most,
            least=entry.least,
        )

    def _expression(self, spot: Spot, table: Table, what: str) -> Expression | None:
        try:
            found = expression(spot.text)
        except NotAnExpression as error:
            self._problem(spot.line, f"{what} can't be used: {error}")
            return None
        return found if self._columns([Spot(spot.line, name) for name in found.columns], table) is not None else None

    def _prove(self, line: int, what: str, table: Table, sql: str, metric: str | None = None) -> None:
        self._statements.append(Statement(line, what, table, sql, metric))


def tables_called(name: str, catalog: Catalog) -> Sequence[Table]:
    """The tables that may be meant by `name`, each once.

    By their own name the one on the search path, else all; by schema and name (`sales.orders`); or by both in double
    quotes, as SQL takes them, where that is the only way to tell tables apart whose names hold dots.
    """
    own = catalog.by_name.get(name, ())
    if len(own) > 1 and (first := table_named((name,), catalog)):
        own = (first,)
    keys = [(name[:place], name[place + 1 :]) for place, mark in enumerate(name) if mark == "."]
    if quoted := _QUOTED.fullmatch(name):
        keys.append((quoted[1].replace('""', '"'), quoted[2].replace('""', '"')))
    return tuple(dict.fromkeys((*own, *(catalog.by_key[key] for key in keys if key in catalog.by_key))))


def in_quotes(key: tuple[str, str]) -> str:
    """Schema and name, both in double quotes: what always tells tables apart."""
    schema, name = (part.replace('"', '""') for part in key)
    return f'"{schema}"."{name}"'


def _named(table: Table) -> str:
    return ".".join(map(quoted, table.key))
