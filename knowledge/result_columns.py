"""What the columns of a result are to a reader: their names in the reader's language, their units, and their roles.

It is worked out from the SQL and the catalogue, so it is the same whoever wrote the SQL.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

from common.meanings import Metric
from common.text import Lang, Text
from common.values import Catalog, Column, QueryResult, Table
from databases.outputs import Output, outputs
from knowledge.atoms import stem
from knowledge.identity import identifies
from knowledge.index import Part
from knowledge.naming import english_words, has_han, plural, spoken_name
from knowledge.semantic.guesses import unit_of
from knowledge.words import WORDS

Role = Literal["time", "measure", "category", "rank", "other"]
"""`time`: when something was; `measure`: how much; `category`: what or who it is about; `other`: keys, documents."""

NUMBERS = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8", "money"))
"""PostgreSQL's types of numbers."""
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
_SHARE = Text("占比", "share")
_SAID = {
    function: (WORDS.chinese.pattern(f"results.{function}"), WORDS.english.one_of(f"results.{function}"))
    for function in ("sum", "avg")
}


@dataclass(frozen=True)
class ResultColumn:
    """One column of a result as a reader sees it.

    Attributes:
        label: what it is called.
        unit: of its numbers, None when it has none or it isn't known.
        period: the unit that its times are cut to.
    """

    output: Output
    label: str
    unit: str | None
    role: Role

    @property
    def period(self) -> str | None:
        """The unit that its times are cut to: a month is the time of its first day."""
        return self.output.period if self.role == "time" else None


_OUTPUTS = Part(lambda index: lru_cache(maxsize=64)(partial(outputs, catalog=index.catalog)))
"""What statements of a catalogue give, read once for an answer's sentence, its labels and its files."""


def result_columns(sql: str, result: QueryResult, catalog: Catalog, lang: Lang) -> tuple[ResultColumn, ...]:
    """The columns of `result`, which `sql` gave, in their order."""
    found = _OUTPUTS.of(catalog)(sql, result.columns)
    metrics = {metric.name: metric for metric in catalog.metrics}
    figures = [metrics.get(one.name) if one.is_named and one.function else None for one in found]
    labels = [label_of(one, metric, lang) for one, metric in zip(found, figures, strict=True)]
    labels = _told_apart(labels, found, lang)
    units = [
        _unit(one, metric, kind, lang) for one, metric, kind in zip(found, figures, result.column_types, strict=True)
    ]
    return tuple(
        ResultColumn(one, label, units[number], _role(one, kind, [row[number] for row in result.rows]))
        for number, (one, label, kind) in enumerate(zip(found, labels, result.column_types, strict=True))
    )


# -------------------------------------------------------------------------------------------------------------- labels


def label_of(output: Output, metric: Metric | None, lang: Lang) -> str:
    """What the column is called; `metric`: the figure of the semantic file that the query calls it by."""
    if metric is not None and (name := metric.names.label(lang)):
        return name
    given = _given_name(output, lang)
    if given is not None:
        return given
    if output.is_rank:
        return _RANK.to(lang)
    if output.function == "count" and output.column is None and not output.is_share and not output.is_computed:
        return _count_label(output, lang)
    if output.is_share or output.column is None or output.is_computed:
        return _written(output, lang)
    return _composed(output, lang)


def _count_label(output: Output, lang: Lang) -> str:
    """Rows of which table are counted; of several that are joined, the one that the query's own name says."""
    said = {stem(word) for word in english_words(output.name)}
    named = [one for one in output.counted if said.issuperset(map(stem, english_words(one.name)))]
    counted = (named if len(named) == 1 else output.counted) or ()
    if len(counted) != 1:
        return _written(output, lang)
    return _FUNCTIONS["count"].to(lang).format(_counted(counted[0], lang))


def _given_name(output: Output, lang: Lang) -> str | None:
    """The query's own name for the column, if it is one in the reader's language and no identifier."""
    is_identifier = "_" in output.name or (" " not in output.name and output.name.isascii())
    is_said = output.is_named and not is_identifier
    return output.name if is_said and has_han(output.name) == (lang == "zh") else None


def _written(output: Output, lang: Lang) -> str:
    """The column's name, read as words; in Chinese what it is, where the name is an identifier."""
    if not output.is_named or lang == "zh":
        if output.is_share:
            return _SHARE.to(lang)
        if output.function == "count":
            return _COUNT.to(lang)
    return " ".join(english_words(output.name)) or output.name


def _composed(output: Output, lang: Lang) -> str:
    """What is done to which column, in words."""
    if output.period or output.part in _PERIODS:
        return _PERIODS[output.period or output.part or ""].to(lang)
    assert output.column is not None
    name = spoken_name(output.column, lang)
    function = output.function
    if function is None or _says(name, function):
        return name
    if function == "count" and output.table is not None:
        return _FUNCTIONS[function].to(lang).format(_counted_by(output.table, output.column, lang))
    form = _OF_TIMES.get(function) if _is_time(output.column) else None
    return (form or _FUNCTIONS[function]).to(lang).format(name)


def _says(name: str, function: str) -> bool:
    """Whether the name says itself that it is a sum, or an average."""
    if function not in _SAID:
        return False
    chinese, english = _SAID[function]
    return bool(chinese.search(name) or english.intersection(name.lower().split()))


def _counted(table: Table, lang: Lang) -> str:
    name = spoken_name(table, lang)
    return plural(name) if lang == "en" else name


def _counted_by(table: Table, column: Column, lang: Lang) -> str:
    """What is counted when values of the column are: things of the table by its key, else the values."""
    if table.primary_key == (column.name,):
        return _counted(table, lang)
    name = spoken_name(column, lang)
    return plural(name) if lang == "en" else name


def _told_apart(labels: list[str], found: Sequence[Output], lang: Lang) -> list[str]:
    """The labels, those that occur twice with their tables' names before them."""
    often = Counter(labels)

    def told(label: str, output: Output) -> str:
        if often[label] == 1 or output.table is None:
            return label
        owner = spoken_name(output.table, lang)
        return label if label.startswith(owner) else Text(f"{owner}{label}", f"{owner} {label}").to(lang)

    return [told(label, output) for label, output in zip(labels, found, strict=True)]


# --------------------------------------------------------------------------------------------------------------- units


def _unit(output: Output, metric: Metric | None, kind: str, lang: Lang) -> str | None:
    if kind not in NUMBERS or output.is_rank or output.part:
        return None
    if metric is not None and metric.unit is not None:
        return metric.unit.to(lang)
    if output.is_percent:
        return "%"
    if output.is_share or output.column is None or output.is_computed or output.function == "count":
        return None
    meaning = output.column.meaning
    return meaning.unit.to(lang) if meaning and meaning.unit else unit_of(output.column)


# --------------------------------------------------------------------------------------------------------------- roles


def _role(output: Output, kind: str, values: Sequence[object]) -> Role:
    if output.is_rank:
        return "rank"
    if kind.startswith(_TIMES) or (output.period and kind in _NAMES) or _are_written_periods(output, values):
        return "time"
    if output.part == "year":
        return "time"
    if output.part is not None:
        return "category"
    if kind in NUMBERS:
        return _role_of_number(output)
    return "category" if kind in _NAMES or (output.column is not None and output.column.allowed) else "other"


def _role_of_number(output: Output) -> Role:
    if output.function or output.is_share or output.column is None or output.table is None:
        return "measure"
    table, name = output.table, output.column.name
    is_key = name in table.primary_key or any(name in key.columns for key in table.foreign_keys)
    return "category" if is_key or output.column.allowed or identifies(table, output.column) else "measure"


def _are_written_periods(output: Output, values: Sequence[object]) -> bool:
    """Whether all values are years or months as text, such as 2026-10."""
    texts = [value for value in values if value is not None]
    is_all = bool(texts) and all(isinstance(value, str) and _WRITTEN_PERIOD.fullmatch(value) for value in texts)
    return is_all and not (output.table and output.column and identifies(output.table, output.column))


def _is_time(column: Column) -> bool:
    return column.type.startswith(_TIMES)


def as_period(value: object, period: str | None) -> object:
    """A time as the period it begins: `2026-10`, `2026-Q4`, `2026`; others, and what is no time, as they are.

    Years before Christ and after 9999 stay whole, because their times are longer and would be cut to other years.
    """
    if not isinstance(value, str) or not _DAY.fullmatch(value) or value.endswith("BC"):
        return value
    if period == "year":
        return value[:4]
    if period == "quarter":
        return f"{value[:4]}-Q{(int(value[5:7]) + 2) // 3}"
    if period == "month":
        return value[:7]
    return value[:10] if period in ("day", "week") else value
