"""Tell what the columns of a result are to a reader: their names, their units and their roles.

It is worked out from the SQL and the catalogue, so it is the same whoever wrote the SQL.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

from common.meanings import Metric
from common.text import Lang, Text
from common.values import Catalog, Column, QueryResult, Table
from knowledge.index import IndexPart
from knowledge.language.codes import labels_of
from knowledge.language.cutting import has_han
from knowledge.language.inflection import plural, stem
from knowledge.language.safe_text import cut_off
from knowledge.language.spoken_names import comment_names, english_words, spoken_name
from knowledge.results.reference_names import column_name
from knowledge.results.value_labels import WEEKEND
from knowledge.semantic.guesses import unit_of
from knowledge.values.identity import identifies
from knowledge.words import WORDS
from sqltree.outputs import OutputColumn, outputs

ResultRole = Literal["time", "measure", "category", "rank", "other"]
"""`time`: when something was; `measure`: how much; `category`: what or who it is about; `other`:
keys, documents.
"""

NUMBERS = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8", "money"))
"""PostgreSQL's types of numbers."""
MOST_READ = 100
"""Columns of a result whose labels, units and roles are worked out."""
_LONGEST_LABEL = 200  # characters
_TIMES = ("date", "timestamp")
_NAMES = frozenset(("text", "varchar", "bpchar", "name", "bool", "char"))
_DAY = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?", re.ASCII)
_WRITTEN_PERIOD = re.compile(r"\d{4}(-?\d{2}){0,2}|\d{4}-?Q[1-4]")
_FUNCTIONS = {
    "count": Text("{}数量", "number of {}"),
    "sum": Text("{}合计", "total {}"),
    "avg": Text("平均{}", "average {}"),
    "min": Text("最低{}", "lowest {}"),
    "max": Text("最高{}", "highest {}"),
    "percentile_cont": Text("{}分位数", "percentile of {}"),
    "median": Text("{}中位数", "median {}"),
    "stddev": Text("{}标准差", "standard deviation of {}"),
    "mode": Text("最常见的{}", "most common {}"),
}
_OF_TIMES = {"min": Text("最早{}", "first {}"), "max": Text("最晚{}", "last {}")}
_PERIODS = {
    "year": Text("年份", "year"),
    "quarter": Text("季度", "quarter"),
    "month": Text("月份", "month"),
    "week": Text("周", "week"),
    "day": Text("日期", "day"),
    "hour": Text("小时", "hour"),
    "dow": Text("星期", "weekday"),
    "isodow": Text("星期", "weekday"),
}
_COUNT = Text("数量", "count")
_RANK = Text("排名", "rank")
_RUNNING = Text("累计{}", "running {}")
_NAMED = Text("{label}（{name}）", "{label} ({name})")
_SHARE = Text("占比", "share")
# How the names of a figure's change end, the longest first.
_CHANGES = {
    "_first": Text("{}（第一期）", "{}, first period"),
    "_second": Text("{}（第二期）", "{}, second period"),
    "_change_percent": Text("{}变化率", "growth of {}"),
    "_change": Text("{}变化", "change of {}"),
    "_before": Text("上期{}", "{} before"),
}
_PART_OF_WEEK = Text("星期段", "part of the week")
# Names that PostgreSQL gives to years since a date, which have none of their own.
_SINCE = "years_since_"
_YEARS_SINCE = {
    "age": Text("年龄", "age"),
    "date_part": Text("年数", "years"),
}
_SAID = {
    function: (
        WORDS.chinese.pattern(f"results.{function}"),
        WORDS.english.one_of(f"results.{function}"),
    )
    for function in ("sum", "avg")
}

_KEEPING = frozenset(("min", "max", "mode"))  # functions that give one of the values

_COORDINATES, _YEARS, _RANKS, _CURRENCY = (
    (WORDS.english.one_of(f"results.{words}"), WORDS.chinese.pattern(f"results.{words}", end="$"))
    for words in ("coordinates", "years", "ranks", "currency_columns")
)


@dataclass(frozen=True)
class ResultColumn:
    """One column of a result as a reader sees it.

    Attributes:
        label: what it is called.
        unit: the unit of its numbers, None when it has none or it isn't known.
        period: the unit that its times are cut to.
    """

    output: OutputColumn
    label: str
    unit: str | None
    role: ResultRole

    @property
    def period(self) -> str | None:
        """Return the unit that its times are cut to: a month is the time of its first day."""
        if self.role != "time":
            return None
        if self.output.part == "year":
            return "year"

        return self.output.period


_OUTPUTS = IndexPart(lambda index: lru_cache(maxsize=64)(partial(outputs, catalog=index.catalog)))
"""Output columns of statements, read once for an answer's sentence, its labels and its files."""


def result_columns(
    sql: str, result: QueryResult, catalog: Catalog, lang: Lang
) -> tuple[ResultColumn, ...]:
    """Describe the columns of `result`, which `sql` gave, in their order.

    Of a very wide result the first `MOST_READ` are worked out; the others are called as in the SQL.
    """
    output_columns = _OUTPUTS.of(catalog)(sql, result.columns)
    columns = list(_read(output_columns[:MOST_READ], result, catalog, lang))
    for output in output_columns[MOST_READ:]:
        name = cut_off(output.name, _LONGEST_LABEL)
        columns.append(ResultColumn(output, name, None, "other"))

    return tuple(columns)


def _read(
    output_columns: Sequence[OutputColumn], result: QueryResult, catalog: Catalog, lang: Lang
) -> Iterator[ResultColumn]:
    """Work out the first columns of a result."""
    types = result.column_types[: len(output_columns)]
    metrics = {metric.name: metric for metric in catalog.metrics}
    figures = [_figure_named(output, metrics) for output in output_columns]
    labels = [
        label_of(output, metric, catalog, lang)
        for output, metric in zip(output_columns, figures, strict=True)
    ]
    labels = _of_changes(_told_apart(labels, output_columns), output_columns, lang)
    labels = _numbered(_by_own_names(labels, output_columns, lang))
    columns = zip(output_columns, figures, labels, types, strict=True)
    for number, (output, metric, label, kind) in enumerate(columns):
        values: Sequence[object] = ()
        if kind not in NUMBERS:
            values = [row[number] for row in result.rows]

        unit = _unit(output, metric, kind, lang)
        label = cut_off(label, _LONGEST_LABEL)
        yield ResultColumn(output, label, unit, _role(output, kind, values))


def _figure_named(output: OutputColumn, metrics: Mapping[str, Metric]) -> Metric | None:
    """Return the semantic file's figure that the query's own name for the column says."""
    if not output.is_named or not output.function:
        return None

    return metrics.get(output.name)


# ------------------------------------------------------------------------------
# labels


def label_of(output: OutputColumn, metric: Metric | None, catalog: Catalog, lang: Lang) -> str:
    """Return the column's label; `metric` is the semantic file's figure that the query names."""
    metric_label = None
    if metric is not None:
        metric_label = metric.names.label(lang)
    if metric_label:
        return metric_label

    query_name = _given_name(output, lang)
    if query_name is not None:
        return query_name
    if output.is_rank:
        return _RANK.to(lang)
    if output.is_running:
        figure = label_of(replace(output, is_running=False), None, catalog, lang)
        return _RUNNING.to("zh" if has_han(figure) else "en").format(figure)
    is_put_together = output.is_windowed and output.is_named
    if output.is_share or output.is_computed or is_put_together:
        return _name_in_words(output, lang)
    if output.column is not None:
        return _composed_label(output, catalog, lang)
    if output.function == "count":
        return _count_label(output, lang)

    return _name_in_words(output, lang)


def _count_label(output: OutputColumn, lang: Lang) -> str:
    """Say of which table rows are counted.

    Of several that are joined, it is the one that the query's own name says, else the one that
    refers to the others: a row of theirs comes once for each row of it.
    """
    words_of_name = set(map(stem, english_words(output.name)))
    named = []
    for table in output.counted:
        words = map(stem, english_words(table.name))
        if words_of_name.issuperset(words):
            named.append(table)

    counted: Sequence[Table] = output.counted
    if len(named) == 1:
        counted = named
    elif len(counted) > 1:
        counted = [table for table in counted if _refers_to_all(table, output.counted)]
    if len(counted) != 1:
        return _name_in_words(output, lang)

    lang = _language_of(counted[0], lang)
    return _FUNCTIONS["count"].to(lang).format(_in_plural(counted[0], lang))


def _refers_to_all(table: Table, joined: Sequence[Table]) -> bool:
    """Tell whether the foreign keys of a table lead to all tables that it is joined with."""
    tables = {other_table.key: other_table for other_table in joined}
    reached = {table.key}
    ways = [table]
    while ways:
        for key in ways.pop().foreign_keys:
            if key.target in tables and key.target not in reached:
                reached.add(key.target)
                ways.append(tables[key.target])

    return len(reached) == len(tables)


def _given_name(output: OutputColumn, lang: Lang) -> str | None:
    """Return the query's own name for the column if it is in the reader's language."""
    if not output.is_named:
        return None

    is_one_word = " " not in output.name and output.name.isascii()
    if is_one_word or "_" in output.name:
        return None  # an identifier

    is_chinese = has_han(output.name)
    if is_chinese == (lang == "zh"):
        return output.name

    return None


def _name_in_words(output: OutputColumn, lang: Lang) -> str:
    """Read the column's name as words; in Chinese, say instead what a share or a count is."""
    if output.name in _YEARS_SINCE:
        return _YEARS_SINCE[output.name].to(lang)
    if output.name == WEEKEND:
        return _PART_OF_WEEK.to(lang)
    if output.name.startswith(_SINCE) and lang == "zh":
        return _YEARS_SINCE["date_part"].to(lang)

    says_itself = output.is_named and lang == "en"
    if output.is_share and not says_itself:
        return _SHARE.to(lang)
    is_count = output.function == "count" and not output.is_windowed
    if is_count and not says_itself:
        return _COUNT.to(lang)

    return " ".join(english_words(output.name)) or output.name


def _composed_label(output: OutputColumn, catalog: Catalog, lang: Lang) -> str:
    """Return a label such as "average amount": the function and the column in words."""
    period = output.period or output.part
    if period is not None and period in _PERIODS:
        return _PERIODS[period].to(lang)

    assert output.column is not None
    if output.function is not None:
        lang = _language_of(output.column, lang)

    name = column_name(output.column, output.table, catalog, lang)
    if output.function is None:
        return name
    if _says(name, output.function):
        return name

    return _label_of_function(output.function, output.column, output.table, lang)


def _language_of(thing: Table | Column, lang: Lang) -> Lang:
    """Return the language in which something has a name, the reader's if it can be.

    A label in one language is read more easily than `orders数量`.
    """
    if has_han(spoken_name(thing, lang)):
        return "zh"

    is_named_in_latin = spoken_name(thing, lang).isascii()
    return "en" if is_named_in_latin else lang


def _label_of_function(function: str, column: Column, table: Table | None, lang: Lang) -> str:
    """Return what an aggregate of a column is called: "average amount", "number of orders"."""
    form = _FUNCTIONS[function]
    if function == "count" and table is not None:
        if table.primary_key == (column.name,):
            lang = _language_of(table, lang)

        return form.to(lang).format(_counted_by(table, column, lang))

    if _is_time(column):
        form = _OF_TIMES.get(function, form)

    return form.to(lang).format(spoken_name(column, lang))


def _says(name: str, function: str) -> bool:
    """Tell whether the name says itself that it is a sum, or an average."""
    if function not in _SAID:
        return False

    chinese, english = _SAID[function]
    if chinese.search(name):
        return True

    words = name.lower().split()
    return not english.isdisjoint(words)


def _in_plural(thing: Table | Column, lang: Lang) -> str:
    name = spoken_name(thing, lang)
    if lang == "en":
        return plural(name)

    return name


def _counted_by(table: Table, column: Column, lang: Lang) -> str:
    """Return the thing that a count of the column counts: the table's things by its key, else its
    values.
    """
    if table.primary_key == (column.name,):
        return _in_plural(table, lang)

    return _in_plural(column, lang)


def _told_apart(labels: list[str], output_columns: Sequence[OutputColumn]) -> list[str]:
    """Write the tables' names before labels that columns of several tables have."""
    owners: dict[str, set[object]] = {}
    for label, output in zip(labels, output_columns, strict=True):
        owners.setdefault(label, set()).add(output.table.key if output.table else None)

    distinct_labels = []
    for label, output in zip(labels, output_columns, strict=True):
        if len(owners[label]) > 1 and output.table is not None:
            owner_lang: Lang = "zh" if has_han(label) else "en"
            label = _with_owner(label, spoken_name(output.table, owner_lang), owner_lang)

        distinct_labels.append(label)

    return distinct_labels


def _of_changes(labels: list[str], output_columns: Sequence[OutputColumn], lang: Lang) -> list[str]:
    """Call a figure's earlier one and its changes after the figure that stands beside them.

    They are known by their names: `total`, `total_before`, `total_change`, `total_change_percent`;
    of two periods that are compared `total_first` and `total_second`.
    """
    names = [output.name for output in output_columns]
    called = []
    for label, name in zip(labels, names, strict=True):
        for ending, form in _CHANGES.items():
            figure = name.removesuffix(ending)
            stands = figure if figure in names else f"{figure}_first"
            if figure != name and stands in names:
                label = form.to(lang).format(labels[names.index(stands)])
                break

        called.append(label)

    return called


def _by_own_names(
    labels: list[str], output_columns: Sequence[OutputColumn], lang: Lang
) -> list[str]:
    """Write the query's own names behind labels that don't tell columns apart.

    These are labels of several columns, and of figures over a part of the rows.
    """
    often = Counter(labels)
    named = []
    for label, output in zip(labels, output_columns, strict=True):
        name = " ".join(english_words(output.name)) or output.name
        is_of_some_rows = output.is_filtered and not output.is_computed
        is_vague = often[label] > 1 or is_of_some_rows
        if is_vague and output.is_named and name not in label:
            label = _NAMED.to(lang).format(label=label, name=name)

        named.append(label)

    return named


def _numbered(labels: list[str]) -> list[str]:
    """Number labels that still occur twice, because no two columns may be called the same."""
    seen: Counter[str] = Counter()
    numbered = []
    for label in labels:
        seen[label] += 1
        numbered.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)

    return numbered


def _with_owner(label: str, owner: str, lang: Lang) -> str:
    if label.startswith(owner):
        return label

    if lang == "en":
        return f"{owner} {label}"
    if has_han(owner):
        return f"{owner}{label}"

    return f"{label} ({owner})"


# ------------------------------------------------------------------------------
# units


def _unit(output: OutputColumn, metric: Metric | None, kind: str, lang: Lang) -> str | None:
    if kind not in NUMBERS:
        return None
    if output.is_rank or output.part:
        return None
    if metric is not None and metric.unit is not None:
        return metric.unit.to(lang)
    if output.is_percent:
        return "%"
    if output.column is None or _is_counted_otherwise(output):
        return None

    return _unit_of_column(output.column, lang)


def _is_counted_otherwise(output: OutputColumn) -> bool:
    """Tell whether its numbers are not in the unit of the column that it is made of."""
    if output.is_share or output.is_computed:
        return True

    return output.function == "count"


def _unit_of_column(column: Column, lang: Lang) -> str | None:
    """Return the unit that the semantic file gives, else the one that comment or name tell."""
    meaning = column.meaning
    if meaning is not None and meaning.unit is not None:
        return meaning.unit.to(lang)

    return unit_of(column)


# ------------------------------------------------------------------------------
# roles


def _role(output: OutputColumn, kind: str, values: Sequence[object]) -> ResultRole:
    if output.is_rank:
        return "rank"
    if output.part == "year" or _is_period(output, kind, values):
        return "time"
    if output.part is not None:
        return "category"
    if kind in NUMBERS:
        return _role_of_number(output)
    if kind in _NAMES:
        return "category"

    has_few_values = output.column is not None and output.column.allowed
    if has_few_values:
        return "category"

    return "other"


def _is_period(output: OutputColumn, kind: str, values: Sequence[object]) -> bool:
    if kind.startswith(_TIMES):
        return True
    if output.period and kind in _NAMES:
        return True

    return _are_written_periods(output, values)


def _role_of_number(output: OutputColumn) -> ResultRole:
    table = output.table
    column = output.column
    if column is not None and _is_place(column):
        return "other"
    if column is not None and not output.function and _ends_in(column, *_RANKS):
        return "rank"
    if column is not None and output.function in _KEEPING and _is_year(column):
        return "category"
    if output.function or output.is_share:
        return "measure"
    if table is None or column is None:
        return "measure"

    return "category" if _tells_rows_apart(table, column) else "measure"


def _tells_rows_apart(table: Table, column: Column) -> bool:
    """Tell whether a number says which row or kind of rows it is, rather than how much."""
    if column.allowed or _is_year(column) or labels_of(column.comment):
        return True

    return _is_of_key(table, column) or identifies(table, column)


def _is_place(column: Column) -> bool:
    """Tell whether it is a coordinate, of which neither sums nor bars mean anything."""
    return _ends_in(column, *_COORDINATES)


def _is_year(column: Column) -> bool:
    return _ends_in(column, *_YEARS)


def names_currencies(column: ResultColumn) -> bool:
    """Tell whether its values say in which currency amounts are."""
    stored = column.output.column
    return stored is not None and not column.output.function and _ends_in(stored, *_CURRENCY)


def _ends_in(column: Column, english: Collection[str], chinese: re.Pattern[str]) -> bool:
    """Tell whether the column's name, or what its comment calls it, ends in one of the words."""
    words = english_words(column.name)
    if words and words[-1] in english:
        return True

    names = (column.name, *comment_names(column.comment))
    return any(map(chinese.search, names))


def _is_of_key(table: Table, column: Column) -> bool:
    if column.name in table.primary_key:
        return True

    return column.name in table.referring_columns


def _are_written_periods(output: OutputColumn, values: Sequence[object]) -> bool:
    """Tell whether all values are years or months as text, such as 2026-10."""
    present = [value for value in values if value is not None]
    if not present:
        return False
    if not all(map(_is_written_period, present)):
        return False
    if output.table is None or output.column is None:
        return True

    return not identifies(output.table, output.column)


def _is_written_period(value: object) -> bool:
    if not isinstance(value, str):
        return False

    return _WRITTEN_PERIOD.fullmatch(value) is not None


def _is_time(column: Column) -> bool:
    return column.type.startswith(_TIMES)


def as_period(value: object, period: str | None) -> object:
    """Write a time as the period it begins: `2026-10`, `2026-Q4`, `2026`.

    Other values stay as they are, also years before Christ and after 9999, because their times are
    longer and would be cut to other years.
    """
    if not isinstance(value, str):
        return value

    is_day = _DAY.fullmatch(value) is not None
    if not is_day or value.endswith("BC"):
        return value

    year = value[:4]
    if period == "year":
        return year
    if period == "quarter":
        quarter = (int(value[5:7]) + 2) // 3
        return f"{year}-Q{quarter}"

    if period == "month":
        return value[:7]
    if period == "hour":
        return value[:16].replace("T", " ")
    if period in ("day", "week"):
        return value[:10]

    return value
