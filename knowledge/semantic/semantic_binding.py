"""Bind the entries of a semantic file to a catalogue: a catalogue with meanings, and problems.

Whatever does not fit is left out and named with its line and the nearest real name; all else is
used.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from common.meanings import (
    ColumnMeaning,
    Metric,
    PreferredJoin,
    TableKey,
    TableMeaning,
    ValueMeaning,
)
from common.values import Catalog, Column, Table
from knowledge.semantic.closest_name import suggestion_after
from knowledge.semantic.problems import Problem
from knowledge.semantic.semantic_format import (
    ColumnEntry,
    JoinEntry,
    MetricEntry,
    SemanticFile,
    Spot,
    TableEntry,
)
from postgres.identifiers import quoted
from sqltree.operator_expressions import Expression, NotAnExpression, expression
from sqltree.references import table_named

_BOOLEAN = "boolean"
_QUOTED = re.compile(r'\A"((?:[^"]|"")++)"\."((?:[^"]|"")++)"')
# Mistakes for which near names are looked for, which takes 10 ms each among thousands of tables
_SUGGESTIONS = 100
_LISTED = 5  # tables that a message about an ambiguous name lists


@dataclass(frozen=True)
class SemanticExpression:
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
class BoundSemanticFile:
    """A catalogue with what a file says of it.

    Attributes:
        problems: by line.
        statements: prove the expressions.
    """

    catalog: Catalog
    problems: tuple[Problem, ...]
    statements: tuple[SemanticExpression, ...]

    def without(self, failed: Iterable[tuple[SemanticExpression, str]]) -> "BoundSemanticFile":
        """Return the meanings without the filters and metrics whose statements failed, for the
        reasons given.

        With a filter go the metrics over its table: of more rows they would be other figures.
        """
        problems = list(self.problems)
        unfiltered: set[TableKey] = set()
        failed_metrics: set[str] = set()
        for statement, why in failed:
            problems.append(Problem(statement.line, f"{statement.what} can't be used: {why}"))
            if statement.metric is None:
                unfiltered.add(statement.table.key)
            else:
                failed_metrics.add(statement.metric)

        if len(problems) == len(self.problems):
            return self

        metrics = [metric for metric in self.catalog.metrics if metric.table not in unfiltered]
        catalog = replace(
            self.catalog,
            tables=tuple(_without_filters(self.catalog.tables, unfiltered)),
            metrics=tuple(metric for metric in metrics if metric.name not in failed_metrics),
        )
        return BoundSemanticFile(catalog, tuple(sorted(problems)), ())


def bind(file: SemanticFile, catalog: Catalog) -> BoundSemanticFile:
    """Return `catalog` with the meanings and the metrics that `file` gives it."""
    return _Binding(catalog).bound(file)


def _without_filters(tables: Iterable[Table], keys: Collection[TableKey]) -> Iterator[Table]:
    """Yield the tables; those of the keys without their filters."""
    for table in tables:
        if table.key in keys and table.meaning is not None:
            meaning = replace(table.meaning, default_filter=None, filter_columns=())
            yield replace(table, meaning=meaning)
        else:
            yield table


class _Binding:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._problems: list[Problem] = []
        self._statements: list[SemanticExpression] = []
        self._lines: dict[TableKey, int] = {}  # where each table is described
        self._unfiltered: set[TableKey] = set()  # tables whose filter can't be used

    def bound(self, file: SemanticFile) -> BoundSemanticFile:
        described: dict[TableKey, Table] = {}
        for entry in file.tables:
            table = self._table(entry.name)
            if table is not None and self._is_first(entry.name, table):
                described[table.key] = self._described(table, entry)

        metrics = [self._metric(entry, described) for entry in file.metrics]
        catalog = replace(
            self._catalog,
            tables=tuple(described.get(one.key, one) for one in self._catalog.tables),
            metrics=tuple(metric for metric in metrics if metric is not None),
        )
        return BoundSemanticFile(
            catalog, tuple(sorted(set(self._problems))), tuple(self._statements)
        )

    def _problem(self, line: int, text: str) -> None:
        self._problems.append(Problem(line, text))

    @cached_property
    def _names(self) -> Collection[str]:
        """Return the names by which the file may call tables."""
        names = set()
        for table in self._catalog.tables:
            names |= {table.name, f"{table.schema}.{table.name}"}

        return names

    def _near(self, name: str, known: Collection[str]) -> str:
        """Return the nearest name; of a file that fits hardly anything, only for the first
        mistakes.
        """
        if len(self._problems) < _SUGGESTIONS:
            return suggestion_after(name, known)

        return ""

    def _is_first(self, spot: Spot, table: Table) -> bool:
        before = self._lines.setdefault(table.key, spot.line)
        if before != spot.line:
            self._problem(
                spot.line, f"the table {spot.text!r} is described in line {before} already"
            )

        return before == spot.line

    # --------------------------------------------------------------------------
    # names

    def _table(self, spot: Spot) -> Table | None:
        """Return the table of a name; None, and a problem, when there is none, or more than one."""
        tables = tables_called(spot.text, self._catalog)
        if len(tables) == 1:
            return tables[0]
        if tables:
            names = ", ".join(in_quotes(table.key) for table in tables[:_LISTED])
            problem = f"several tables are called {spot.text!r}: write one of {names}"
        else:
            problem = f"there is no table {spot.text!r}{self._near(spot.text, self._names)}"

        self._problem(spot.line, problem)
        return None

    def _column(self, spot: Spot, table: Table) -> Column | None:
        column = table.column(spot.text)
        if column is None:
            near = self._near(spot.text, [one.name for one in table.columns])
            self._problem(spot.line, f"the table {table.name!r} has no column {spot.text!r}{near}")

        return column

    def _optional_column(self, spot: Spot | None, table: Table) -> Column | None:
        if spot is not None:
            return self._column(spot, table)

        return None

    def _columns(self, spots: Sequence[Spot], table: Table) -> tuple[str, ...] | None:
        """Return the names of the columns; None, and problems, when one of them is unknown."""
        columns = [self._column(spot, table) for spot in spots]
        if None in columns:
            return None

        return tuple(dict.fromkeys(spot.text for spot in spots))

    # --------------------------------------------------------------------------
    # tables

    def _described(self, table: Table, entry: TableEntry) -> Table:
        """Return the table with the meaning that the entry gives to it and to its columns."""
        condition = self._filter(entry.filter, table)
        if entry.filter is not None and condition is None:
            self._unfiltered.add(table.key)

        date = self._optional_column(entry.date, table)
        label = self._columns(entry.label, table)
        joins = [self._join(join, table) for join in entry.joins]
        meaning = TableMeaning(
            names=entry.names,
            description=entry.description,
            label_columns=label or (),
            date_column=date.name if date is not None else None,
            default_filter=_text_of(condition),
            filter_columns=_columns_of(condition),
            joins=tuple(join for join in joins if join is not None),
            verbs=entry.verbs,
        )
        columns = self._described_columns(table, entry.columns)
        return replace(table, columns=columns, meaning=meaning)

    def _described_columns(
        self, table: Table, entries: Iterable[ColumnEntry]
    ) -> tuple[Column, ...]:
        """Return the table's columns, those with an entry with their meanings."""
        entry_by_name: dict[str, ColumnEntry] = {}
        for entry in entries:
            if self._column(entry.name, table) is not None:
                entry_by_name[entry.name.text] = entry

        columns = []
        for column in table.columns:
            if column.name in entry_by_name:
                meaning = self._column_meaning(column, entry_by_name[column.name])
                column = replace(column, meaning=meaning)

            columns.append(column)

        return tuple(columns)

    def _column_meaning(self, column: Column, entry: ColumnEntry) -> ColumnMeaning:
        return ColumnMeaning(
            names=entry.names,
            description=entry.description,
            unit=entry.unit,
            values=tuple(self._value_meanings(column, entry)),
            is_sensitive=entry.is_sensitive,
            most=entry.most,
            least=entry.least,
            is_kind=entry.is_kind,
        )

    def _value_meanings(self, column: Column, entry: ColumnEntry) -> Iterator[ValueMeaning]:
        """Yield the values that the entry names, and the column can have."""
        is_boolean = column.type == _BOOLEAN
        possible = column.allowed
        if is_boolean:
            possible = ("true", "false")

        for spot, names in entry.values:
            value = spot.text
            if is_boolean:
                value = spot.text.lower()
            if possible and value not in possible:
                near = self._near(value, possible)
                problem = f"the column {column.name!r} can't have the value {spot.text!r}{near}"
                self._problem(spot.line, problem)
            elif names.all:
                yield ValueMeaning(value, names)

    def _join(self, entry: JoinEntry, table: Table) -> PreferredJoin | None:
        target = self._table(entry.to)
        columns = self._columns(entry.columns, table)
        if target is None or columns is None:
            return None

        targets: tuple[str, ...] | None = target.primary_key
        if entry.target:
            targets = self._columns(entry.target, target)
        if targets is None:
            return None
        if len(targets) != len(columns):
            missing = f"target: the primary key is {list(targets)}"
            if entry.target:
                missing = "as many columns as target"

            self._problem(entry.line, f"the join to {entry.to.text!r} needs {missing}")
            return None

        return PreferredJoin(columns, target.key, targets)

    # --------------------------------------------------------------------------
    # expressions

    def _filter(self, spot: Spot | None, table: Table) -> Expression | None:
        """Return the table's default filter, which is to be proven."""
        what = f"the filter of {table.name!r}"
        condition = self._optional_expression(spot, table, what)
        if spot is not None and condition is not None:
            sql = f"SELECT 1 FROM {_sql_name(table)} WHERE ({condition.text})"
            self._prove(spot.line, what, table, sql)

        return condition

    def _metric(self, entry: MetricEntry, described: Mapping[TableKey, Table]) -> Metric | None:
        """Return the metric, which is to be proven; None, and problems, when a part of it does not
        fit.
        """
        table = self._table(entry.table)
        if table is None:
            return None

        what = f"the metric {entry.name.text!r}"
        if table.key in self._unfiltered:
            problem = f"{what} can't be used without the filter of {table.name!r}"
            self._problem(entry.name.line, problem)
            return None

        problems_before = len(self._problems)
        figure = self._aggregate(entry.expression, table, what)
        condition = self._optional_expression(entry.filter, table, f"the filter of {what!r}")
        date = self._optional_column(entry.date, table)
        grain = self._columns(entry.grain, table)
        is_sound = len(self._problems) == problems_before
        if figure is None or grain is None or not is_sound:
            return None

        self._prove_metric(entry, table, figure, condition)
        return Metric(
            name=entry.name.text,
            table=table.key,
            expression=figure.text,
            names=entry.names,
            description=entry.description,
            unit=entry.unit,
            filter=_text_of(condition),
            grain=grain,
            date_column=_date_column(date, described.get(table.key, table)),
            columns=tuple(dict.fromkeys((*figure.columns, *_columns_of(condition)))),
            most=entry.most,
            least=entry.least,
        )

    def _prove_metric(
        self, entry: MetricEntry, table: Table, figure: Expression, condition: Expression | None
    ) -> None:
        where = ""
        if condition is not None:
            where = f" WHERE ({condition.text})"

        # HAVING makes it a query over groups, where PostgreSQL refuses columns outside of
        # aggregates.
        sql = f"SELECT ({figure.text}) FROM {_sql_name(table)}{where} HAVING true"
        name = entry.name.text
        self._prove(entry.expression.line, f"the metric {name!r}", table, sql, name)

    def _aggregate(self, spot: Spot, table: Table, what: str) -> Expression | None:
        """Return the expression; None, and a problem, when it aggregates nothing."""
        parsed = self._expression(spot, table, what)
        if parsed is None:
            return None
        if not parsed.calls:
            problem = f"{what} is no aggregate such as sum({parsed.text[:40]})"
            self._problem(spot.line, problem)
            return None

        return parsed

    def _optional_expression(self, spot: Spot | None, table: Table, what: str) -> Expression | None:
        if spot is not None:
            return self._expression(spot, table, what)

        return None

    def _expression(self, spot: Spot, table: Table, what: str) -> Expression | None:
        """Return the SQL expression; None, and problems, when it can't be read or names no
        column.
        """
        try:
            parsed = expression(spot.text)
        except NotAnExpression as error:
            self._problem(spot.line, f"{what} can't be used: {error}")
            return None

        columns = self._columns([Spot(spot.line, name) for name in parsed.columns], table)
        if columns is not None:
            return parsed

        return None

    def _prove(
        self, line: int, what: str, table: Table, sql: str, metric: str | None = None
    ) -> None:
        self._statements.append(SemanticExpression(line, what, table, sql, metric))


def tables_called(name: str, catalog: Catalog) -> Sequence[Table]:
    """Return the tables that may be meant by `name`, each once.

    By their own name the one on the search path, else all; by schema and name (`sales.orders`); or
    by both in double quotes, as SQL takes them, where that is the only way to tell tables apart
    whose names hold dots.
    """
    tables = dict.fromkeys(_tables_of_name(name, catalog))
    keys = [(name[:place], name[place + 1 :]) for place, mark in enumerate(name) if mark == "."]
    in_double_quotes = _QUOTED.fullmatch(name)
    if in_double_quotes is not None:
        schema, own_name = (part.replace('""', '"') for part in in_double_quotes.groups())
        keys.append((schema, own_name))

    for key in keys:
        if key in catalog.by_key:
            tables[catalog.by_key[key]] = None

    return tuple(tables)


def _tables_of_name(name: str, catalog: Catalog) -> Sequence[Table]:
    """Return the tables of that name in any schema; only the one on the search path, if it is
    there.
    """
    tables = catalog.by_name.get(name, ())
    if len(tables) < 2:
        return tables

    first = table_named((name,), catalog)
    if first is not None:
        return (first,)

    return tables


def in_quotes(key: TableKey) -> str:
    """Write schema and name in double quotes, which always tells tables apart."""
    schema, name = (part.replace('"', '""') for part in key)
    return f'"{schema}"."{name}"'


def _text_of(condition: Expression | None) -> str | None:
    if condition is not None:
        return condition.text

    return None


def _columns_of(condition: Expression | None) -> tuple[str, ...]:
    if condition is not None:
        return condition.columns

    return ()


def _sql_name(table: Table) -> str:
    return ".".join(map(quoted, table.key))


def _date_column(date: Column | None, table: Table) -> str | None:
    """Return the metric's own date column, else that of its table."""
    if date is not None:
        return date.name
    if table.meaning is not None:
        return table.meaning.date_column

    return None
