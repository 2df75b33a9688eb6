"""Figures that are compared: which columns hold them, what both sides are called, and the sentence about one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from common.text import Lang, Text
from knowledge.codes import labels_of
from knowledge.naming import spoken_name
from knowledge.result_columns import ResultColumn
from knowledge.written_values import is_number, joined, written
from rules.answering.dated import dated_by
from rules.answering.figure_names import figure_name
from rules.query.functions import PARTS
from rules.query.query import Condition, Query
from rules.schema.schema import Schema
from rules.sql.identifiers import number

_ALL = Text("全部", "all")
_ORDINALS = (Text("前者", "first"), Text("后者", "second"))
_NOT = Text("非{}", "not {}")
_SIDE = Text("{}（{}）", "{} ({})")
_EARLIER = {"bucket": Text("{}（上期）", "{} (period before)"), "year": Text("{}（去年同期）", "{} (year before)")}
_DIFFERENCES = {
    None: Text("{}增减", "change of {}"),
    "bucket": Text("{}环比增减", "change of {} on the period before"),
    "year": Text("{}同比增减", "change of {} on the year before"),
}
_PERCENTS = {
    None: Text("{}增幅", "growth of {}"),
    "bucket": Text("{}环比", "growth of {} on the period before"),
    "year": Text("{}同比", "growth of {} on the year before"),
}
_NO_BASE = Text("没有上期数据时，增减为空。", "Where there are no earlier data, there is no change.")
_NOT_OVER = Text("{} 尚未结束。", "{} is not over yet.")
_ONE, _NO_DATA, _BETWEEN = Text("{} 为 {}", "{}: {}"), Text("{} 没有数据", "{}: no data"), Text("，", ", ")
_UP, _DOWN, _SAME = Text("增加 {}", "up {}"), Text("减少 {}", "down {}"), Text("没有变化", "unchanged")
_BY, _SENTENCE = Text("（{}）", " ({})"), Text("{}：{}。", "{}: {}.")


@dataclass(frozen=True)
class Compared:
    """One figure, and the columns that hold what it is compared with, itself, the difference, and that in percent."""

    name: str
    before: int
    after: int
    difference: int
    percent: int


@dataclass(frozen=True)
class Changes:
    """What the columns of a result compare.

    Attributes:
        growth: whether each bucket is compared with the one before or that of a year before, see `Query.growth`.
        sides: otherwise the two sets of rows, by their names.
        unfinished: those of the sides that are periods which are not over.
        is_alone: whether one row holds all, without groups.
    """

    figures: tuple[Compared, ...]
    growth: str | None = None
    sides: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_alone: bool = False

    def labels(self, lang: Lang) -> dict[int, str]:
        """What the columns are called, by their places."""
        found: dict[int, str] = {}
        for one in self.figures:
            before, after = (_SIDE.to(lang).format(one.name, side) for side in self.sides or ("", ""))
            if self.growth is not None:
                before, after = _EARLIER[self.growth].to(lang).format(one.name), one.name
            difference, percent = (form[self.growth].to(lang).format(one.name) for form in (_DIFFERENCES, _PERCENTS))
            found |= {one.before: before, one.after: after, one.difference: difference, one.percent: percent}
        return found

    def notes(self, rows: Sequence[Sequence[Any]]) -> list[Text]:
        """What a reader may miss."""
        is_missing = self.growth is not None and any(row[one.before] is None for row in rows for one in self.figures)
        return [*(Text(*[form.format(one) for form in _NOT_OVER]) for one in self.unfinished), *[_NO_BASE] * is_missing]

    def told(self, row: Sequence[Any], columns: Sequence[ResultColumn], lang: Lang) -> list[str]:
        """A sentence for each figure of the one row."""
        return [_told(one, self.sides, row, columns, lang) for one in self.figures]


def changes_of(query: Query | None, width: int, schema: Schema, lang: Lang, today: date) -> Changes | None:
    """What the `width` columns of the query's result compare; None where nothing is compared."""
    if query is None or query.counts_rows or (query.comparison is None and query.growth is None):
        return None
    first = width - 4 * len(query.measures)
    if first < 0:
        return None
    figures = tuple(
        # In a series the figure itself comes first.
        Compared(
            figure_name(one, schema, lang), at + (query.growth is not None), at + (query.growth is None), at + 2, at + 3
        )
        for one, at in zip(query.measures, range(first, width, 4), strict=True)
    )
    if query.comparison is None:
        return Changes(figures, query.growth)
    both = (query.comparison.first, query.comparison.second)
    names = [_said(side, schema, lang, today) for side in both]
    periods = [dated_by(side, schema, today) for side in both]
    unfinished = tuple(one.said(lang) for one in periods if one is not None and one.is_unfinished)
    if None in names or names[0] == names[1]:
        names = [one.to(lang) for one in _ORDINALS]
    return Changes(figures, None, tuple(map(str, names)), unfinished, not query.dimensions)


def _said(side: Sequence[Condition], schema: Schema, lang: Lang, today: date) -> str | None:
    """What a set of rows is called by its conditions; None for such as have no short name."""
    names = [_name(one, schema, lang, today) for one in side]
    return _BETWEEN.to(lang).join(map(str, names)) or _ALL.to(lang) if None not in names else None


def _name(condition: Condition, schema: Schema, lang: Lang, today: date) -> str | None:
    if condition.operator == "during":
        dated = dated_by([condition], schema, today)
        return dated.said(lang) if dated is not None else None
    ref, column = condition.column, schema.column(condition.column.table, condition.column.column)
    if condition.operator in ("true", "false"):
        name = PARTS[ref.part].label.to(lang) if ref.part is not None else spoken_name(column, lang)
        return name if condition.operator == "true" else _NOT.to(lang).format(name)
    if condition.operator not in ("=", "in") or ref.part is not None:
        return None
    labels = dict(labels_of(column.comment))
    values = [number(one) if isinstance(one, Decimal) else str(one) for one in condition.operands]
    return joined([labels.get(one, one) for one in values], lang) if condition.columns == (ref,) else None


def _told(one: Compared, sides: Sequence[str], row: Sequence[Any], columns: Sequence[ResultColumn], lang: Lang) -> str:
    def value(place: int, found: Any) -> str:
        return written(found, columns[place], lang)

    pairs = zip(sides, (one.before, one.after), strict=True)
    said = [
        (_ONE if row[place] is not None else _NO_DATA).to(lang).format(side, value(place, row[place]))
        for side, place in pairs
    ]
    difference, percent = row[one.difference], row[one.percent]
    if is_number(difference):
        form = _SAME if difference == 0 else _UP if difference > 0 else _DOWN
        rate = _BY.to(lang).format(value(one.percent, abs(percent))) if is_number(percent) and difference else ""
        said.append(form.to(lang).format(value(one.difference, abs(difference))) + rate)
    name = one.name[:1].upper() + one.name[1:]
    return _SENTENCE.to(lang).format(name, _BETWEEN.to(lang).join(said))
