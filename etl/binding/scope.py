"""The tables and columns that the names of an intent mean at one point of its operations."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rapidfuzz import fuzz, process
from sqlglot import exp

from common.text import Text
from common.values import Column, Table
from etl.binding.column_words import is_money
from etl.binding.request_findings import NotBound, RequestFindings, choice
from etl.meaning.bound import BoundColumn, BoundSource, Stage
from etl.meaning.row_expressions import columns_of
from etl.schemas.requirement import AmbiguityKind, Choice

_MOST_SUGGESTIONS = 5
_EXPLANATION = re.compile(r"[,，:：;；(（\n]")  # what an explanation in a comment begins with
_LEAST_SCORE = 60.0  # of 100
_MOST_CHARS = 200  # compared of one name


@dataclass(frozen=True)
class MadeColumn:
    """A column that a step computes.

    Attributes:
        sources: whose columns it is computed from.
        money: the stored amounts that it is computed from, in whatever currency they are.
        owner: the source to whose rows it belongs, if it is made before any join.
    """

    name: str
    type: str
    stage: Stage
    sources: frozenset[str]
    money: frozenset[BoundColumn] = frozenset()
    owner: str | None = None


@dataclass(frozen=True)
class ResultName:
    """A column of the result.

    Attributes:
        column: of a source, if it is one.
        money: the stored amounts that it is made of, in whatever currency they are.
    """

    type: str
    column: BoundColumn | None = None
    money: frozenset[BoundColumn] = frozenset()


@dataclass
class IntentScope:
    """The names that are known at one point of the intent.

    Attributes:
        sources: those that are joined or will be, by name.
        visible: names of sources whose columns may be used.
        made: columns that steps have made.
        unmade: names of columns that steps would make which are not bound, for a reason that
            stands in the findings.
        result: the columns of the result, once there is one.
    """

    findings: RequestFindings
    sources: dict[str, BoundSource] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    visible: list[str] = field(default_factory=list)
    made: dict[str, MadeColumn] = field(default_factory=dict)
    unmade: set[str] = field(default_factory=set)
    result: dict[str, ResultName] | None = None

    # tables

    def source_named(self, text: str, operation: int | None = None) -> BoundSource:
        """Return the source that a name in an operation means.

        Raises:
            NotBound: there is none.
        """
        name = self.names.get(text)
        if name is None:
            raise self.findings.refuse(
                "unknown_name",
                Text(
                    f"操作 {operation} 使用的表 {text} 不在 data_sources 中。",
                    f"Operation {operation} uses the table {text}, which is not among "
                    f"data_sources.",
                ),
                near(text, self.names),
            )

        return self.sources[name]

    # columns

    def column(
        self,
        text: str,
        operation: int,
        *,
        table: str | None = None,
        kind: AmbiguityKind = "column",
    ) -> BoundColumn:
        """Return the column of a source, or the one that a step made, that a name means.

        Args:
            table: the name of the source to which an unqualified name belongs.

        Raises:
            NotBound
        """
        if text in self.made and table is None:
            return BoundColumn("", text)

        if text in self.unmade and table is None:
            raise NotBound

        qualified = self._qualified(text, operation)
        if qualified is not None:
            return qualified

        among = [table] if table is not None else self.visible
        columns = list(self._called(text, among))
        if len(columns) == 1:
            return columns[0]
        if columns:
            return self._chosen_column(text, columns, operation, kind)
        if text in self.made:
            return BoundColumn("", text)

        raise self._unknown_column(text, among, operation)

    def _qualified(self, text: str, operation: int) -> BoundColumn | None:
        """Return the column of `table.column`; None where the name is not of that form.

        The first dot divides; where no table is called so, the last one of `schema.table`.
        """
        for place, mark in enumerate(text):
            if mark != "." or text[:place] not in self.names:
                continue

            source = self.sources[self.names[text[:place]]]
            return self._of_source(source, text[place + 1 :], operation)

        owner, dot, _ = text.partition(".")
        is_column = any(self._called(text, self.visible))
        if not dot or is_column:
            return None

        self.source_named(owner, operation)
        return None

    def _of_source(self, source: BoundSource, text: str, operation: int) -> BoundColumn:
        columns = list(self._called(text, [source.name]))
        if len(columns) == 1:
            return columns[0]
        if columns:
            return self._chosen_column(text, columns, operation, "column")

        raise self._unknown_column(text, [source.name], operation)

    def _called(self, text: str, among: Iterable[str]) -> Iterator[BoundColumn]:
        """Yield the columns of that very name; without one, those that are said to be called so."""
        tables = {name: self.sources[name].table for name in among}
        is_exact = False
        for name, table in tables.items():
            if table.column(text) is not None:
                is_exact = True
                yield BoundColumn(name, text)

        if is_exact:
            return

        for name, table in tables.items():
            for column in table.columns:
                if text in said_names(column):
                    yield BoundColumn(name, column.name)

    def _chosen_column(
        self, text: str, candidates: list[BoundColumn], operation: int, kind: AmbiguityKind
    ) -> BoundColumn:
        prompt = Text(f"“{text}”指的是哪一列？", f"Which column does “{text}” mean?")
        by_value = {}
        for column in candidates:
            by_value[column_label(column)] = column

        choices = self.choices_of(by_value.values())
        return by_value[self.findings.choose(kind, text, prompt, choices, operation)]

    def choices_of(self, columns: Iterable[BoundColumn]) -> list[Choice]:
        """Return choices of these columns, shown with what people call them."""
        choices = []
        for column in columns:
            value = column_label(column)
            choices.append(choice(value, self._label(value, column)))

        return choices

    def _label(self, value: str, column: BoundColumn) -> str:
        source = self.sources.get(column.source)
        stored = source.table.column(column.name) if source is not None else None
        if stored is None:
            return value

        display_name = self.findings.shown(_said_name(stored))
        return f"{value} ({display_name})" if display_name else value

    def _unknown_column(self, text: str, among: Iterable[str], operation: int) -> Exception:
        names: dict[str, None] = dict.fromkeys(self.made)
        for name in among:
            for column in self.sources[name].table.columns:
                names[f"{name}.{column.name}"] = None

        return self.findings.refuse(
            "unknown_name",
            Text(
                f"操作 {operation}：没有列 {text}。",
                f"Operation {operation}: there is no column {text}.",
            ),
            near(text, names),
        )

    def stored(self, column: BoundColumn) -> Column:
        """Return what the catalogue says of a source's column."""
        stored = self.sources[column.source].table.column(column.name)
        if stored is None:
            raise KeyError(column)

        return stored

    def type_of(self, column: BoundColumn) -> str:
        """Return the type of a column of a source, or of one that a step made."""
        if column.source:
            return self.stored(column).type
        if self.result is not None and column.name in self.result:
            return self.result[column.name].type

        return self.made[column.name].type

    def type_in_tree(self, column: exp.Column) -> str:
        """Return the type of a bound column of an expression."""
        return self.type_of(BoundColumn(column.table, column.name))

    def sources_of(self, column: BoundColumn) -> frozenset[str]:
        """Return the sources whose columns decide about a column's value."""
        if column.source:
            return frozenset((column.source,))

        return self.made[column.name].sources

    def money_in(self, expression: exp.Expression) -> frozenset[BoundColumn]:
        """Return the stored amounts that a bound expression is computed from."""
        money: set[BoundColumn] = set()
        for column in bound_columns(expression):
            if self.result is not None:
                money |= self.result[column.name].money
            elif not column.source:
                money |= self.made[column.name].money
            elif is_money(self.stored(column)):
                money.add(column)

        return frozenset(money)

    # the result

    def result_name(self, text: str, operation: int) -> str:
        """Return the name that a column has in the result.

        Raises:
            NotBound: there is none, or the source's column is not in the result.
        """
        result = self.result or {}
        if text in result:
            return text

        for name, result_column in result.items():
            if result_column.column is not None and text in self._spellings(result_column.column):
                return name

        raise self.findings.refuse(
            "unknown_name",
            Text(
                f"操作 {operation}：结果中没有列 {text}。",
                f"Operation {operation}: the result has no column {text}.",
            ),
            near(text, result),
        )

    def _spellings(self, column: BoundColumn) -> Iterator[str]:
        """Yield the ways in which an intent may name a source's column."""
        if not column.source:
            return

        yield column.name
        yield from said_names(self.stored(column))
        for spelled, name in self.names.items():
            if name == column.source:
                yield f"{spelled}.{column.name}"

    # expressions

    def bind_expression(
        self, expression: exp.Expression, operation: int, table: str | None = None
    ) -> exp.Expression:
        """Return the expression with its columns bound; unquoted names may be in lower case.

        Raises:
            NotBound
        """
        copy = expression.copy()
        for column in list(columns_of(copy)):
            bound = self._in_expression(column, operation, table)
            column.replace(tree_column(bound))

        # The expression may be one column, which can't be replaced in itself
        if isinstance(expression, exp.Column):
            return tree_column(self._in_expression(expression, operation, table))

        return copy

    def _in_expression(self, column: exp.Column, operation: int, table: str | None) -> BoundColumn:
        text = f"{column.table}.{column.name}" if column.table else column.name
        if self.result is not None:
            return BoundColumn("", self.result_name(text, operation))

        lowered = text.lower()
        may_be_lowered = text != lowered and not column.this.quoted
        if may_be_lowered and not self._is_known(text, table):
            text = lowered

        return self.column(text, operation, table=table)

    def _is_known(self, text: str, table: str | None) -> bool:
        """Tell whether a column is called so: in the source that stands before it, else in all."""
        if text in self.made:
            return True

        owner, dot, name = text.rpartition(".")
        among = self.visible
        if dot:
            among = [self.names[owner]] if owner in self.names else []
        elif table is not None:
            among = [table]

        return any(self._called(name, among))


def tree_column(column: BoundColumn) -> exp.Column:
    """Return a bound column as it stands in expressions."""
    table = column.source or None
    return exp.column(column.name, table=table, quoted=True)


def bound_columns(expression: exp.Expression) -> Iterator[BoundColumn]:
    """Yield the columns of a bound expression."""
    for column in columns_of(expression):
        yield BoundColumn(column.table, column.name)


def column_label(column: BoundColumn) -> str:
    """Return a column as choices and intents name it."""
    if column.source:
        return f"{column.source}.{column.name}"

    return column.name


def _said_name(column: Column) -> Text:
    """Return what people call a column, else its comment; nothing where neither is known."""
    comment = column.comment or ""
    if column.meaning is None:
        return Text(comment, comment)

    names = column.meaning.names
    in_chinese = names.label("zh") or comment
    in_english = names.label("en") or comment
    return Text(in_chinese, in_english)


def said_names(column: Column) -> tuple[str, ...]:
    """Return what else a column is called: by its comment, and its names for people."""
    names = column.meaning.names.all if column.meaning is not None else ()
    return (*_names_in_comment(column.comment), *names)


def said_table_names(table: Table) -> tuple[str, ...]:
    """Return what else a table is called: by its comment, and its names for people."""
    names = table.meaning.names.all if table.meaning is not None else ()
    return (*_names_in_comment(table.comment), *names)


def _names_in_comment(comment: str | None) -> tuple[str, ...]:
    """Return the whole comment, and what stands before its first explanation."""
    if not comment:
        return ()

    begin = _EXPLANATION.split(comment, maxsplit=1)[0].strip()
    if begin in ("", comment):
        return (comment,)

    return (comment, begin)


def near(text: str, names: Iterable[str] | Mapping[str, object]) -> list[str]:
    """Return the known names that `text` resembles most, the nearest first."""
    matches = process.extract(
        text[:_MOST_CHARS],
        list(names),
        scorer=fuzz.WRatio,
        processor=str.casefold,
        limit=_MOST_SUGGESTIONS,
        score_cutoff=_LEAST_SCORE,
    )
    nearest: list[str] = []
    for name, *_ in matches:
        nearest.append(name)

    return nearest
