"""The answer in words, made from nothing but the rows and their count."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.naming import plural, spoken_name
from rules.linking.dates import Unit
from rules.query.query import Dimension, Measure, Query
from rules.schema.schema import Schema

_MAX_FIELDS = 6
_MAX_DECIMALS = 4
_MAX_DIGITS = 18  # beyond, figures stay in scientific notation
_BLANK = Text("", " ")  # between sentences
_ABOUT = Text("约 {}", "about {}")
_FUNCTIONS = {
    "count": Text("数量", "number of"),
    "count_distinct": Text("去重数量", "number of distinct"),
    "sum": Text("合计", "total"),
    "avg": Text("平均", "average"),
    "min": Text("最小值", "lowest"),
    "max": Text("最大值", "highest"),
}


def summary_pieces(result: QueryResult, lang: Lang, labels: Sequence[str], *, is_whole: bool = True) -> list[str]:
    """Sentences that concatenate to the summary.

    Args:
        labels: what the result's columns are called.
        is_whole: whether there are no more such rows; the least of a top 3 is not the least of all.
    """
    if not result.rows:
        return [Text("没有符合条件的记录。", "No rows match.").to(lang)]
    if result.row_count == 1:
        return [_single(result, lang, labels)]
    return _several(result, lang, labels, is_whole=is_whole)


def _single(result: QueryResult, lang: Lang, labels: Sequence[str]) -> str:
    row = result.rows[0]
    fields = [_field(name, value, lang) for name, value in zip(labels, row, strict=True)]
    text = Text("，", ", ").to(lang).join(fields[:_MAX_FIELDS])
    if len(row) == 1:
        return Text(f"{text}。", f"{_capitalised(text)}.").to(lang)
    return Text(f"查到 1 条记录：{text}。", f"Found 1 row: {text}.").to(lang)


def _field(name: str, value: Any, lang: Lang) -> str:
    text, about = spoken(value, lang), _ABOUT.zh.format("")
    if text.startswith(about):
        return Text(f"{name}约为 {text.removeprefix(about)}", f"{name}: {text}").to(lang)
    return Text(f"{name}为 {text}", f"{name}: {text}").to(lang)


def spoken_assumptions(assumptions: Sequence[Text], lang: Lang) -> list[str]:
    """Sentences to follow the summary."""
    return [_BLANK.to(lang) + one.to(lang) for one in assumptions]


def cuts_rows(sql: str) -> bool:
    """Whether the statement itself keeps only some of its rows, as far as its words show."""
    return _CUTS.search(sql) is not None


_CUTS = re.compile(r"\bLIMIT\b|\bFETCH\s+(FIRST|NEXT)\b|\brow_number\b|\brank\b", re.IGNORECASE)


def _several(result: QueryResult, lang: Lang, labels: Sequence[str], *, is_whole: bool) -> list[str]:
    count = result.row_count
    if result.is_limited:
        head = Text(
            f"结果较多，只返回了前 {count} 条记录。", f"There are more rows than shown; these are the first {count}."
        )
    else:
        head = Text(f"共 {count} 条记录。", f"{count} rows.")
    extremes = _extremes(result, lang, labels, is_whole=is_whole)
    return [head.to(lang), *([_BLANK.to(lang) + extremes] if extremes else [])]


def _extremes(result: QueryResult, lang: Lang, labels: Sequence[str], *, is_whole: bool) -> str:
    """The rows with the greatest and least figure, named by their text; of cut rows only the end they begin at."""
    figure = _figure_column(result)
    if figure is None:
        return ""
    numbered = [row for row in result.rows if _is_number(row[figure])]
    if len(numbered) < 2:
        return ""
    top = max(numbered, key=lambda row: row[figure])
    bottom = min(numbered, key=lambda row: row[figure])
    name = labels[figure]
    high, low = spoken(top[figure], lang), spoken(bottom[figure], lang)
    if top[figure] == bottom[figure] and is_whole:
        return Text(f"{name}均为 {high}。", _capitalised(f"{name} is {high} throughout.")).to(lang)
    top_name, bottom_name = _row_name(top, figure, lang), _row_name(bottom, figure, lang)
    highest = Text(f"最高的是{top_name}（{high}）", f"highest for {top_name} ({high})")
    lowest = Text(f"最低的是{bottom_name}（{low}）", f"lowest for {bottom_name} ({low})")
    if is_whole:
        said = Text(f"{highest.zh}，{lowest.zh}", f"{highest.en} and {lowest.en}")
    else:
        figures = [row[figure] for row in numbered]
        if figures != sorted(figures) and figures != sorted(figures, reverse=True):
            return ""
        said = highest if figures[0] == top[figure] else lowest
    return Text(f"{name}{said.zh}。", _capitalised(f"{name} is {said.en}.")).to(lang)


def _figure_column(result: QueryResult) -> int | None:
    """The last column, when it is a figure that the columns before it name."""
    last = len(result.columns) - 1
    if last < 1 or last > 3 or not any(_is_number(row[last]) for row in result.rows):
        return None
    return last if all(row[last] is None or _is_number(row[last]) for row in result.rows) else None


def _row_name(row: Sequence[Any], figure: int, lang: Lang) -> str:
    named = [value for value in row[:figure] if not _is_number(value)] or row[:figure]
    return " ".join(spoken(value, lang) for value in named)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return not value.is_nan() if isinstance(value, Decimal) else value == value


_MOST_SPOKEN = 500  # characters; a longer text is read in the table


def spoken(value: Any, lang: Lang) -> str:
    """A value for a sentence: digits in groups, long fractions shortened and marked as such."""
    if value is None:
        return Text("空", "none").to(lang)
    if isinstance(value, bool):
        return Text("是" if value else "否", "yes" if value else "no").to(lang)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return _spoken_fraction(value, lang)
    text = str(value)
    return text if len(text) <= _MOST_SPOKEN else f"{text[:_MOST_SPOKEN]}…"


def _spoken_fraction(value: float | Decimal, lang: Lang) -> str:
    number = Decimal(str(value))
    if not number.is_finite() or abs(number.adjusted()) > _MAX_DIGITS:
        return str(value)
    shortened = round(number, _MAX_DECIMALS)
    text = f"{shortened:,f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if shortened != number:
        return _ABOUT.to(lang).format(text)
    return text


def column_labels(query: Query | None, result: QueryResult, schema: Schema, lang: Lang) -> list[str]:
    """What the result's columns are called, from the structure that produced them when it is known."""
    if query is None or query.counts_rows:
        return list(result.columns)
    names = [name for dimension in query.dimensions for name in _dimension_labels(dimension, schema, lang)]
    names += [spoken_name(schema.column(column.table, column.column), lang) for column in query.columns]
    names += [_measure_label(measure, schema, lang) for measure in query.measures]
    return names if len(names) == len(result.columns) else list(result.columns)


def with_spoken_periods(query: Query | None, result: QueryResult) -> QueryResult:
    """The result with its months, quarters and years said as such, not as their first day."""
    spoken_as = {
        result.columns.index(one.bucket): _PERIODS[one.bucket]
        for one in (query.dimensions if query is not None else ())
        if one.bucket in _PERIODS and one.bucket in result.columns
    }
    if not spoken_as:
        return result
    rows = tuple(
        [_said(value, spoken_as[place]) if place in spoken_as else value for place, value in enumerate(row)]
        for row in result.rows
    )
    return replace(result, rows=rows)


def _said(value: Any, form: Callable[[date], str]) -> Any:
    try:
        return form(date.fromisoformat(value)) if isinstance(value, str) else value
    except ValueError:  # a year beyond those that Python knows
        return value


_PERIODS: dict[Unit | None, Callable[[date], str]] = {
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year}",
}


def _dimension_labels(dimension: Dimension, schema: Schema, lang: Lang) -> list[str]:
    facts = schema.facts[dimension.table]
    if dimension.column is not None:
        return [spoken_name(schema.column(dimension.table, dimension.column), lang)]
    return [spoken_name(schema.column(dimension.table, name), lang) for name in facts.shown]


def _measure_label(measure: Measure, schema: Schema, lang: Lang) -> str:
    name = _measured_name(measure, schema, lang)
    function = _FUNCTIONS[measure.function].to(lang) if measure.function != "metric" else ""
    text = name if not function else Text(f"{name}{function}", f"{function} {name}").to(lang)
    if measure.per is not None:
        text = Text(f"每组{text}的平均", f"average {text}").to(lang)
    return Text(f"{text}占比(%)", f"{text} in percent").to(lang) if measure.is_share else text


def _measured_name(measure: Measure, schema: Schema, lang: Lang) -> str:
    """What is measured; what is counted stands in the plural, and of events their records."""
    if measure.column is None:
        name = spoken_name(schema.table(measure.table), lang)
        counted = name if schema.facts[measure.table].is_entity else f"{name} record"
    else:
        factors = [measure.column, measure.times] if measure.times is not None else [measure.column]
        said = [spoken_name(schema.column(measure.table, column), lang) for column in factors]
        name = counted = " × ".join(said)
    return plural(counted) if lang == "en" and measure.function in ("count", "count_distinct") else name
