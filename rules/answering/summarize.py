"""The answer in words, made from nothing but the rows and their count."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from common.text import Lang, Text
from common.values import Column, QueryResult
from knowledge.naming import has_han, plural, spoken_name
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


@dataclass(frozen=True)
class Heading:
    """What a column of the result is called, and the unit that its figures are written with."""

    name: str
    unit: str = ""

    def spoken(self, value: Any, lang: Lang) -> str:
        """A value of the column for a sentence."""
        text = spoken(value, lang)
        if not self.unit or not _is_number(value):
            return text
        return f"{text} {self.unit}" if self.unit[0].isalnum() and not has_han(self.unit) else f"{text}{self.unit}"


def summary_pieces(result: QueryResult, lang: Lang, headings: Sequence[Heading], *, is_whole: bool = True) -> list[str]:
    """Sentences that concatenate to the summary.

    Args:
        is_whole: whether there are no more such rows; the least of a top 3 is not the least of all.
    """
    if not result.rows:
        return [Text("没有符合条件的记录。", "No rows match.").to(lang)]
    if result.row_count == 1:
        return [_single(result, lang, headings)]
    return _several(result, lang, headings, is_whole=is_whole)


def _single(result: QueryResult, lang: Lang, headings: Sequence[Heading]) -> str:
    row = result.rows[0]
    fields = [_field(heading, value, lang) for heading, value in zip(headings, row, strict=True)]
    text = Text("，", ", ").to(lang).join(fields[:_MAX_FIELDS])
    if len(row) == 1:
        return Text(f"{text}。", f"{_capitalised(text)}.").to(lang)
    return Text(f"查到 1 条记录：{text}。", f"Found 1 row: {text}.").to(lang)


def _field(heading: Heading, value: Any, lang: Lang) -> str:
    name, text, about = heading.name, heading.spoken(value, lang), _ABOUT.zh.format("")
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


def _several(result: QueryResult, lang: Lang, headings: Sequence[Heading], *, is_whole: bool) -> list[str]:
    count = result.row_count
    if result.is_limited:
        head = Text(
            f"结果较多，只返回了前 {count} 条记录。", f"There are more rows than shown; these are the first {count}."
        )
    else:
        head = Text(f"共 {count} 条记录。", f"{count} rows.")
    extremes = _extremes(result, lang, headings, is_whole=is_whole)
    return [head.to(lang), *([_BLANK.to(lang) + extremes] if extremes else [])]


def _extremes(result: QueryResult, lang: Lang, headings: Sequence[Heading], *, is_whole: bool) -> str:
    """The rows with the greatest and least figure, named by their text; of cut rows only the end they begin at."""
    figure = _figure_column(result)
    if figure is None:
        return ""
    numbered = [row for row in result.rows if _is_number(row[figure])]
    if len(numbered) < 2:
        return ""
    top = max(numbered, key=lambda row: row[figure])
    bottom = min(numbered, key=lambda row: row[figure])
    name = headings[figure].name
    high, low = headings[figure].spoken(top[figure], lang), headings[figure].spoken(bottom[figure], lang)
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


def headings_of(query: Query | None, result: QueryResult, schema: Schema, lang: Lang) -> list[Heading]:
    """What the result's columns are called, from the structure that produced them when it is known."""
    plain = [Heading(name) for name in result.columns]
    if query is None or query.counts_rows:
        return plain
    found = [heading for dimension in query.dimensions for heading in _of_dimension(dimension, schema, lang)]
    found += [_of_column(schema.column(column.table, column.column), lang) for column in query.columns]
    found += [_of_measure(measure, schema, lang) for measure in query.measures]
    return found if len(found) == len(plain) else plain


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


def _of_dimension(dimension: Dimension, schema: Schema, lang: Lang) -> list[Heading]:
    names = (dimension.column,) if dimension.column is not None else schema.facts[dimension.table].shown
    return [Heading(spoken_name(schema.column(dimension.table, name), lang)) for name in names]


def _of_column(column: Column, lang: Lang) -> Heading:
    unit = column.meaning.unit if column.meaning is not None else None
    return Heading(spoken_name(column, lang), unit.to(lang) if unit is not None else "")


def _of_measure(measure: Measure, schema: Schema, lang: Lang) -> Heading:
    name = _measured_name(measure, schema, lang)
    if measure.function in _FUNCTIONS:
        function = _FUNCTIONS[measure.function].to(lang)
        name = Text(f"{name}{function}", f"{function} {name}").to(lang)
    if measure.per is not None:
        name = Text(f"每组{name}的平均", f"average {name}").to(lang)
    if measure.is_share:
        return Heading(Text(f"{name}占比(%)", f"{name} in percent").to(lang))
    if measure.column is None or measure.function in ("count", "count_distinct") or measure.is_age or measure.times:
        return Heading(name)
    return replace(_of_column(schema.column(measure.table, measure.column), lang), name=name)


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
