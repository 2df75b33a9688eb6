"""Reads what a clause groups by and which figures it computes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from common.text import Text
from common.values import Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_names import NamedColumn, NameResolver, anything, is_date, is_number
from etl.clauses.clause_tokens import NO_TOKEN, Token, is_value_of, token_at
from etl.clauses.clause_words import clause_intents
from etl.clauses.request_draft import Json
from knowledge.language.atoms import key_of
from rules.schema.lexicon import Lexicon
from rules.schema.links import METRIC

FIGURE_FUNCTIONS = ("sum", "avg", "max", "min", "median")
"""The functions of figures, which are called like the kinds of their words."""
_OF_NUMBERS = {"sum", "avg", "median"}
_HIGHEST = {
    "+": "max",
    "-": "min",
    "+price": "max",
    "-price": "min",
    "+date": "max",
    "+recent": "max",
    "-date": "min",
}
_SKIPPED = (
    *("noise", "of", "skipped", "within", "table", "list", "unit", "with", "aggregate"),
    *("running", "previous", "by_end", "from", "on", "verb", "fill", "calendar"),
    *("keep", "also", "then"),
)
_OWNING = ("of", "within", "noise", "skipped", "table")
_LEAST_METRIC = 0.9  # quality of a name that is a metric's
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
}


@dataclass
class FigureReading:
    """Keys and measures of a clause as an intent writes them, and words that neither covers.

    Attributes:
        conditions: words between them that say which rows count.
    """

    keys: list[Json] = field(default_factory=list)
    measures: list[Json] = field(default_factory=list)
    conditions: list[Token] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)


class FigureReader:
    """Reads the tokens of one clause."""

    def __init__(
        self,
        tokens: Sequence[Token],
        names: NameResolver,
        lexicon: Lexicon,
        findings: RequestFindings,
        order: int,
    ) -> None:
        self._tokens = tokens
        self._names = names
        self._lexicon = lexicon
        self._findings = findings
        self._order = order
        self._reading = FigureReading()
        self._functions: list[str] = []  # of the figure that comes next
        self._said: list[Token] = []  # the words of those functions
        self._counted: Token | None = None  # what the last count counts
        self._measured_word: Token | None = None  # the figure before, and its column
        self._measured_column: NamedColumn | None = None
        self._is_of = False  # whether a function behind its 的 computes it
        self._is_distinct = False
        self._is_key = False  # whether names are keys here, not figures
        self._cut: str | None = None  # a period whose date column may come next
        self._date: NamedColumn | None = None  # a date that a period may follow

    def read(self) -> FigureReading:
        """Return the keys and measures of the clause."""
        for index, token in enumerate(self._tokens):
            if self._is_condition(index, token):
                self._reading.conditions.append(token)
            else:
                self._take_token(index, token)

        self._close_date()
        self._close_period()
        self._close_count()
        self._close_functions()
        return self._reading

    def _close_functions(self) -> None:
        """Note functions that no figure followed; a sum alone leaves the figure to be asked for."""
        kinds = {token.kind for token in self._said}
        is_sum_alone = not self._reading.measures and kinds <= {"sum"}
        if is_sum_alone:
            return

        self._reading.uncovered += [token.text for token in self._said]

    def _drop_functions(self, before: Token = NO_TOKEN) -> None:
        """Forget the functions that were said, and note those that the figure does not have.

        Args:
            before: the word before the figure: a "total" that belongs to it says nothing.
        """
        for token in self._said:
            if token is not before or token.kind != "sum":
                self._reading.uncovered.append(token.text)

        self._functions, self._said = [], []

    def _close_count(self) -> None:
        """Count the base's rows for "number of rows"; note a count without anything to count."""
        if "count" not in self._functions:
            return

        self._functions = []
        if any(token.arg == "rows" for token in self._tokens):
            self._count_base()
            return

        counts: list[str] = []
        for token in self._tokens:
            if token.means("count"):
                counts.append(token.text)

        self._reading.uncovered += counts[-1:]

    def _count_base(self) -> None:
        if self._names.sources:
            self._add_count(self._names.table_by_key(self._names.sources[0]))

    # --------------------------------------------------------------------------
    # word by word

    def _take_token(self, index: int, token: Token) -> None:
        if self._take_structure(index, token):
            return

        function = self._function_of(index, token)
        if function is not None:
            self._take_function(index, function)
        elif token.means("count"):
            self._take_count(index)
        elif token.names:
            self._take_name(index, token)
        elif not self._is_passed_over(token):
            self._reading.uncovered.append(token.text)

    def _is_passed_over(self, token: Token) -> bool:
        """Tell whether the word says nothing by itself: signs, numbers, words that tie."""
        if token.is_break:
            return True

        return token.means("and", *_SKIPPED)

    def _take_structure(self, index: int, token: Token) -> bool:
        """Take a word that says how others are meant; tell whether it is one."""
        if token.means("by", "each", "split"):
            self._close_count()
            self._is_key = True
        elif token.means("rows"):
            self._count_base()
        elif token.means("bucket", "date_part") and self._is_period(index, token):
            self._is_key = self._is_key or _begins_with_by(token)
            self._begin_period(token.arg, token_at(self._tokens, index + 1))
        elif token.means("aggregate", "running", "previous", "from"):
            self._is_key = False
        elif token.means("distinct", "dedup"):
            self._is_distinct = True
        else:
            return False

        return True

    def _is_condition(self, index: int, token: Token) -> bool:
        """Tell whether the word says which rows count: "paid", "in 2024", "status paid"."""
        if token.means("bucket", "previous", "running"):
            return False
        if token.is_value_or_date:
            return True

        after = token_at(self._tokens, index + 1)
        if token.means("not", "range"):
            return after.is_value_or_date
        return not self._is_key and is_value_of(after, token)

    def _is_period(self, index: int, token: Token) -> bool:
        if token.means("bucket"):
            return True

        before = token_at(self._tokens, index - 1)
        return before.means("by", "each", "and")

    def _begin_period(self, unit: str, after: Token) -> None:
        """Begin a period: that of a date named just before, else of one that may be named next.

        Behind the former only an "and" brings further keys: 按支付时间每月和城市.
        """
        if self._date is not None:
            named, self._date = self._date, None
            self._add_period(unit, named)
            self._is_key = after.means("and")
            return

        self._close_period()
        self._cut = unit

    def _add_period(self, unit: str, named: NamedColumn | None) -> None:
        key: Json = {"unit": unit, "as": unit}
        if named is not None:
            key["column"] = self._names.reference(named.table, named.column.name)

        self._reading.keys.append(key)

    def _close_period(self, named: NamedColumn | None = None) -> bool:
        """Take the period that was begun as a key; tell whether there was one.

        Args:
            named: the date that it cuts; without it, the request's.
        """
        if self._cut is None:
            return False

        unit, self._cut = self._cut, None
        self._add_period(unit, named)
        return True

    def _close_date(self) -> None:
        """Take a date that no period followed as a key of its own."""
        if self._date is None:
            return

        named, self._date = self._date, None
        if not self._close_period(named):
            self._add_key(named)

    # --------------------------------------------------------------------------
    # functions

    def _function_of(self, index: int, token: Token) -> str | None:
        """Return the function that the word computes; None where it is a column's name."""
        if token.means("super"):
            return _HIGHEST.get(token.arg)
        if token.kind not in FIGURE_FUNCTIONS:
            return None

        after = token_at(self._tokens, index + 1)
        is_followed = after.names and after.kind not in FIGURE_FUNCTIONS
        if token.links("column") and not is_followed and not self._is_behind_name(index):
            return None

        return token.kind

    def _take_function(self, index: int, function: str) -> None:
        """Apply the function to the figure before it or to the next one."""
        before = token_at(self._tokens, index - 1)
        if self._is_of_figure(index):
            self._add_function(function)
            return

        if self._is_behind_name(index):
            self._take_measured_key(before)
        if self._is_behind_figure(before, self._tokens[index]):
            self._reading.measures[-1] = _with_function(self._reading.measures[-1], function)
            return

        if not _is_listed(before, self._tokens[index]):
            self._drop_functions(before)

        self._functions.append(function)
        self._said.append(self._tokens[index])
        self._is_key = False

    def _is_of_figure(self, index: int) -> bool:
        """Tell whether a function belongs to the figure before it: 金额的最大值和最小值."""
        if self._tokens[index].text.isascii() or self._is_key or not self._reading.measures:
            return False

        before, named = token_at(self._tokens, index - 1), token_at(self._tokens, index - 2)
        if before.means("of") and named is self._measured_word:
            self._reading.measures.pop()
            self._is_of = True
            return True

        return self._is_of and before.means("and") and named.kind in FIGURE_FUNCTIONS

    def _add_function(self, function: str) -> None:
        """Add a function of the figure that was measured last."""
        if self._measured_column is not None:
            self._add_measure(function, self._measured_column)

    def _is_behind_name(self, index: int) -> bool:
        """Tell whether a Chinese function stands right behind the column that it computes."""
        if self._tokens[index].text.isascii():
            return False

        before = token_at(self._tokens, index - 1)
        return bool(before.links("column")) and before.table is None

    def _take_measured_key(self, token: Token) -> None:
        """Take the figure that was taken for a key so far: 每个部门的工资中位数."""
        if not self._is_key or not self._reading.keys:
            return

        measured = self._names.column(token, self._order, self._names.is_measure, "measure")
        if measured is None:
            return

        column = self._names.reference(measured.table, measured.column.name)
        if self._reading.keys[-1].get("column") == column:
            self._reading.keys.pop()
            self._is_key = False
            self._add_measures(measured)

    def _is_behind_figure(self, before: Token, token: Token) -> bool:
        """Tell whether a function stands behind the figure that it computes: 金额合计."""
        if token.text.isascii() or self._is_key:
            return False
        if not before.names or before.table is not None:
            return False

        return bool(self._reading.measures)

    def _take_count(self, index: int) -> None:
        """Count the rows of the table or the values of the column that stands beside the word."""
        before = token_at(self._tokens, index - 1)
        token = self._tokens[index]
        is_chinese = not token.text.isascii()
        if is_chinese and before is self._counted:
            return  # 去重用户ID数: the values are counted already
        if is_chinese and self._is_counted(before):
            self._drop_functions(token_at(self._tokens, index - 2))
            self._count(before)
            return

        named = self._names.column_called(token.text)
        if named is not None and self._names.is_measure(named.table, named.column):
            self._add_measures(named)
            return

        self._drop_functions(before)
        self._functions = ["count"]
        self._is_key = False

    def _is_counted(self, before: Token) -> bool:
        """Tell whether a count behind this name counts what it names, and not a figure."""
        if not before.names or before.is_value:
            return False

        return before.table is not None or not self._reading.measures

    def _count(self, token: Token) -> None:
        self._counted = token
        table = None
        if token.table is not None:
            table = self._names.table(token, self._order)
        if table is not None:
            self._add_count(table)
            return
        if token.text in self._names.asked:
            self._functions = []
            return

        named = self._names.column(token, self._order)
        if named is not None:
            self._add_count_of(named)

    def _add_count(self, table: Table) -> None:
        """Count the table's rows, of the base by themselves, of another by their primary key.

        "Different" rows of a table that the base refers to are counted by that reference.
        """
        is_distinct, self._is_distinct = self._is_distinct, False
        self._functions = []
        if not self._names.sources:
            self._names.add_source(table.key)

        count: Json = {"function": "count_distinct" if is_distinct else "count"}
        is_base = table.key == self._names.sources[0]
        if is_distinct or not is_base:
            reference = self._counted_reference(table, is_distinct=is_distinct)
            if reference is None:
                self._refuse(table)
                return

            count["column"] = reference

        count["as"] = f"{self._names.name_of(table)}_count"
        self._reading.measures.append(count)

    def _counted_reference(self, table: Table, *, is_distinct: bool) -> str | None:
        """Return the column whose values count a table's rows; None without a primary key."""
        if is_distinct:
            referring = self._referring(table)
            if referring is not None:
                return referring

        self._names.add_source(table.key)
        if not table.primary_key:
            return None

        return self._names.reference(table, table.primary_key[0])

    def _referring(self, table: Table) -> str | None:
        """Return the base's column that refers to the table, which is counted without a join."""
        base = self._names.table_by_key(self._names.sources[0])
        for key in base.foreign_keys:
            if key.target == table.key and len(key.columns) == 1:
                return self._names.reference(base, key.columns[0])

        return None

    def _refuse(self, table: Table) -> None:
        text = Text(
            f"{table.name} 没有主键，无法按行计数。",
            f"{table.name} has no primary key, so that its rows can't be counted.",
        )
        self._findings.refuse("unsupported", text)

    def _add_count_of(self, named: NamedColumn) -> None:
        function = "count_distinct" if self._is_distinct else "count"
        self._is_distinct = False
        self._functions = []
        column = self._names.reference(named.table, named.column.name)
        name = f"{named.column.name}_{function}"
        self._reading.measures.append({"function": function, "column": column, "as": name})

    # --------------------------------------------------------------------------
    # names

    def _take_name(self, index: int, token: Token) -> None:
        if self._functions == ["count"] or self._is_counted_with_before(index, token):
            self._count(token)
            return

        if token.table is not None:
            if self._is_counted_behind(index):
                return  # the word behind counts it
            if not self._is_figure(token) and not self._is_cut(token):
                self._take_table(index, token)
                return

        if self._is_key or not self._take_metric(token):
            self._take_column(token)

    def _is_counted_with_before(self, index: int, token: Token) -> bool:
        """Tell whether rows of a table are counted like those before: "count users and orders"."""
        if token.table is None or not token_at(self._tokens, index - 1).means("and"):
            return False

        if self._is_key:
            return False

        return token_at(self._tokens, index - 2) is self._counted

    def _is_counted_behind(self, index: int) -> bool:
        """Tell whether the word behind counts what the name calls: 用户数."""
        after = token_at(self._tokens, index + 1)
        return after.means("count") and not after.text.isascii()

    def _take_column(self, token: Token) -> None:
        is_key = self._is_key
        if not self._functions:
            is_key = is_key or self._is_linked_date(token)
        if is_key:
            self._take_key(token)
        else:
            self._take_measure(token)

    def _is_cut(self, token: Token) -> bool:
        """Tell whether the word is the date of a period that waits for it: month of "order"."""
        named = self._names.column_called(token.text)
        if self._cut is None or named is None:
            return False

        return is_date(named.table, named.column)

    def _is_figure(self, token: Token) -> bool:
        """Tell whether the word is rather a figure's name: 销售额 of the table 销售."""
        columns = token.links("column")
        if not columns:
            return False

        return columns[0].quality > token.links("table")[0].quality

    def _is_linked_date(self, token: Token) -> bool:
        """Tell whether the best column that the word may name is a date."""
        links = token.links("column")
        if not links:
            return False

        table = self._names.table_by_key(links[0].table)
        column = table.column(links[0].column or "")
        return column is not None and is_date(table, column)

    def _take_key(self, token: Token) -> None:
        named = self._names.column(token, self._order)
        if named is None:
            self._miss(token)
            return

        self._names.add_source(named.table.key)
        self._close_date()
        if not is_date(named.table, named.column):
            self._add_key(named)
        elif not self._close_period(named):
            self._date = named

    def _add_key(self, named: NamedColumn) -> None:
        column = self._names.reference(named.table, named.column.name)
        taken = set()
        for key in self._reading.keys:
            if key.get("column") != column:
                taken.add(key["as"])

        name = named.column.name
        if name in taken:
            name = self._names.key_name(named.table, name)

        self._add_new_key({"column": column, "as": name})

    def _add_new_key(self, key: Json) -> None:
        if key not in self._reading.keys:
            self._reading.keys.append(key)

    def _is_owner(self, index: int) -> bool:
        """Tell whether the table says whose a key is: "by city of the customers", 客户的城市."""
        if token_at(self._tokens, index + 1).means("of"):
            return self._owns(self._tokens[index], token_at(self._tokens, index + 2))

        place = index - 1
        while token_at(self._tokens, place).means(*_OWNING):
            place -= 1

        owned = token_at(self._tokens, place)
        is_key = owned.means("bucket") or (owned.names and owned.table is None)
        return is_key and place < index - 1

    def _owns(self, token: Token, owned: Token) -> bool:
        """Tell whether a word that names a table stands before one of its columns."""
        tables = {link.table for link in owned.links("column")[:1]}
        return owned.table is None and token.table in tables

    def _take_table(self, index: int, token: Token) -> None:
        """Take a table among the keys for its rows: their primary key, and what they are called."""
        table = self._names.table(token, self._order)
        if table is None:
            self._miss(token)
            return

        self._names.add_source(table.key)
        if not self._is_key or self._is_owner(index):
            return

        for key in self._names.row_keys(table):
            self._add_new_key(key)

        if not table.primary_key:
            self._refuse(table)

    def _take_measure(self, token: Token) -> None:
        if self._is_distinct and not self._functions:
            counted = self._names.column(token, self._order)
            if counted is None:
                self._miss(token)
            else:
                self._counted = token
                self._add_count_of(counted)

            return

        measured = self._measured(token)
        if measured is None:
            self._miss(token)
            return

        self._names.add_source(measured.table.key)
        self._add_measures(measured)
        self._measured_word, self._measured_column, self._is_of = token, measured, False

    def _measured(self, token: Token) -> NamedColumn | None:
        """Return the column that the word names, a number where the functions need one."""
        needs_number = set(self._functions) <= _OF_NUMBERS
        accepts = self._names.is_measure if needs_number else anything
        named = self._names.column(token, self._order, accepts, "measure")
        if named is None and needs_number:
            return self._names.column(token, self._order, is_number, "measure")

        return named

    def _add_measures(self, named: NamedColumn) -> None:
        """Add the figures of the functions that were said, else the sum."""
        for function in self._functions or ["sum"]:
            self._add_measure(function, named)

        self._functions, self._said = [], []

    def _add_measure(self, function: str, named: NamedColumn) -> None:
        measure: Json = {"function": function, "as": f"{named.column.name}_{function}"}
        column = self._names.reference(named.table, named.column.name)
        if named.factor is None:
            measure["column"] = column
        else:
            factor = self._names.reference(named.table, named.factor)
            measure["expression"] = f"{_quoted_column(column)} * {_quoted_column(factor)}"

        names = {measure_before["as"] for measure_before in self._reading.measures}
        if measure["as"] not in names:
            self._reading.measures.append(measure)

    def _miss(self, token: Token) -> None:
        """Note that the word names nothing here, unless it is asked about."""
        if token.text not in self._names.asked:
            self._reading.uncovered.append(token.text)

    # --------------------------------------------------------------------------
    # metrics

    def _take_metric(self, token: Token) -> bool:
        """Add the metric of the semantic file that the word names; tell whether it names one."""
        metric = self._metric(token)
        if metric is None:
            return False

        self._reading.measures.append(metric)
        self._drop_functions(self._said[-1] if self._said else NO_TOKEN)
        return True

    def _metric(self, token: Token) -> Json | None:
        """Return the measure of a metric of the semantic file that the word names."""
        for link in token.links("column"):
            if link.derived != METRIC or link.quality < _LEAST_METRIC:
                continue

            for metric in self._lexicon.schema.metrics_of.get(link.table, ()):
                if metric.name == link.column:
                    self._names.add_source(link.table)
                    return _measure_of(metric.name, metric.expression, self._names, link.table)

        return None


def _is_listed(before: Token, token: Token) -> bool:
    """Tell whether a function is one of several: "minimum and maximum", "minimum, maximum"."""
    if before.means("and"):
        return True
    if before.kind not in FIGURE_FUNCTIONS:
        return False

    between = token.start - before.end
    return between > int(token.is_apart)


def _with_function(measure: Json, function: str) -> Json:
    name = measure["as"].rpartition("_")[0]
    return {**measure, "function": function, "as": f"{name}_{function}"}


def _begins_with_by(token: Token) -> bool:
    """Tell whether a period's word says that more groups may follow: "by month and city"."""
    first = token.text.split()[0]
    intent = clause_intents().get(key_of(first))
    return intent is not None and intent.kind == "by"


def _quoted_column(reference: str) -> str:
    table, _, column = reference.partition(".")
    quoted = exp.column(
        exp.to_identifier(column, quoted=True), exp.to_identifier(table, quoted=True)
    )
    return quoted.sql(dialect="postgres")


def _measure_of(
    name: str, expression: str, names: NameResolver, table: tuple[str, str]
) -> Json | None:
    """Return a metric as a measure; None when it is no single aggregate of its table's columns."""
    try:
        tree = parse_one(expression, dialect="postgres")
    except SqlglotError:
        return None

    function = _AGGREGATES.get(type(tree))
    if function is None:
        return None

    value = tree.this
    if isinstance(value, exp.Star):
        return {"function": "count", "as": name}
    if isinstance(value, exp.Distinct):
        return None

    for column in value.find_all(exp.Column):
        owner = exp.to_identifier(names.name_of(names.table_by_key(table)), quoted=True)
        column.set("table", owner)

    return {"function": function, "expression": value.sql(dialect="postgres"), "as": name}
