"""The answer in words, made from nothing but the rows, their count, and what their columns are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.result_columns import ResultColumn, as_period
from knowledge.written_values import about_apart, is_number, joined, written
from rules.answering.dated import Dated
from rules.answering.named_columns import Changes, Compared
from rules.linking.moments import Moment, Unit
from rules.query.functions import PARTS
from rules.query.query import Query, references

_MAX_FIELDS = 6
_MOST_NAMED = 3  # of the first rows of a ranking
_FEW = 0.1  # of the days of a period
_BLANK = Text("", " ")  # between sentences
_BETWEEN = Text("，", ", ")
_CUTS = re.compile(r"\bLIMIT\b|\bFETCH\s+(FIRST|NEXT)\b|\brow_number\b|\brank\b", re.IGNORECASE)
_NOT_OVER = Text("{} 尚未结束。", "{} is not over yet.")
_NO_BASE = Text("没有上期数据时，增减为空。", "Where there are no earlier data, there is no change.")
_ONE, _NO_DATA = Text("{} 为 {}", "{}: {}"), Text("{} 没有数据", "{}: no data")
_UP, _DOWN, _SAME = Text("增加 {}", "up {}"), Text("减少 {}", "down {}"), Text("没有变化", "unchanged")
_BY, _SENTENCE = Text("（{}）", " ({})"), Text("{}：{}。", "{}: {}.")
_BEGINS = Text("{} 的数据自 {} 开始。", "Data of {} begin on {}.")
_CUT_TO: dict[str, Unit] = {"week": "week", "month": "month", "quarter": "quarter", "year": "year"}


@dataclass(frozen=True)
class Answered:
    """A result to be told.

    Attributes:
        is_whole: whether there are no more such rows; the least of a top 3 is not the least of all.
        dated: the period that the rows are restricted to, where that is known.
        changes: what the columns compare, where they do.
        notes: sentences about what the question's words were taken for.
    """

    result: QueryResult
    columns: tuple[ResultColumn, ...]
    lang: Lang
    today: date
    is_whole: bool = True
    dated: Dated | None = None
    changes: Changes | None = None
    notes: Sequence[Text] = ()

    @property
    def clause(self) -> str:
        """In brackets, the period and its date column; empty when there is none."""
        return self.dated.clause(self.lang) if self.dated is not None else ""

    def written(self, value: Any, place: int) -> str:
        """A value of the column for a sentence."""
        return written(value, self.columns[place], self.lang)


def summary_pieces(answered: Answered) -> list[str]:
    """Sentences that concatenate to the summary."""
    result, lang = answered.result, answered.lang
    if not result.rows:
        none = Text(f"没有符合条件的记录{answered.clause}。", f"No rows match{answered.clause}.").to(lang)
        return _sentences([none, *_limits(answered)], lang)
    if result.row_count == 1:
        is_nothing = all(value is None or (is_number(value) and value == 0) for value in result.rows[0])
        is_change = answered.changes is not None and answered.changes.is_alone
        told = [*(_changed(answered) if is_change else [_single(answered)]), *(_limits(answered) if is_nothing else ())]
    else:
        told = [_count(answered), *_extremes(answered), *_partial_periods(answered)]
    return _sentences([*told, *(one.to(lang) for one in answered.notes), *_notes_on_changes(answered)], lang)


def _sentences(sentences: Sequence[str], lang: Lang) -> list[str]:
    return [*sentences[:1], *(_BLANK.to(lang) + one for one in sentences[1:])]


def _limits(answered: Answered) -> list[str]:
    limits = answered.dated.limits(answered.lang) if answered.dated is not None else None
    return [limits] if limits is not None else []


def spoken_assumptions(assumptions: Sequence[Text], lang: Lang) -> list[str]:
    """Sentences to follow the summary."""
    return [_BLANK.to(lang) + one.to(lang) for one in assumptions]


def notes_on(query: Query | None) -> list[Text]:
    """What the parts of dates in the query don't say by themselves."""
    parts = {one.part for one in references(query)} - {None}
    return [part.note for name, part in PARTS.items() if name in parts and part.note is not None]


def cuts_rows(sql: str) -> bool:
    """Whether the statement itself keeps only some of its rows, as far as its words show."""
    return _CUTS.search(sql) is not None


# ------------------------------------------------------------------------------------------------------------- one row


def _single(answered: Answered) -> str:
    row, lang = answered.result.rows[0], answered.lang
    fields = [
        _field(column.label, answered.written(row[place], place), lang, answered.clause if len(row) == 1 else "")
        for place, column in enumerate(answered.columns)
    ]
    text = _BETWEEN.to(lang).join(fields[:_MAX_FIELDS])
    if len(row) == 1:
        return Text(f"{text}。", f"{_capitalised(text)}.").to(lang)
    clause = answered.clause
    return Text(f"查到 1 条记录{clause}：{text}。", f"Found 1 row{clause}: {text}.").to(lang)


def _field(name: str, value: str, lang: Lang, clause: str) -> str:
    figure, is_about = about_apart(value, lang)
    return Text(f"{name}{clause}{'约' if is_about else ''}为 {figure}", f"{name}{clause}: {value}").to(lang)


# -------------------------------------------------------------------------------------------------------- several rows


def _count(answered: Answered) -> str:
    count, clause = answered.result.row_count, answered.clause
    if answered.result.is_limited:
        return Text(
            f"结果较多，只返回了前 {count} 条记录{clause}。",
            f"There are more rows than shown; these are the first {count}{clause}.",
        ).to(answered.lang)
    return Text(f"共 {count} 条记录{clause}。", f"{count} rows{clause}.").to(answered.lang)


def _extremes(answered: Answered) -> list[str]:
    """The rows with the greatest and least figure, by name; of cut rows only those that they begin with."""
    figure = _figure_place(answered)
    if figure is None:
        return []
    numbered = [row for row in answered.result.rows if is_number(row[figure])]
    if len(numbered) < 2:
        return []
    name, figures = answered.columns[figure].label, [row[figure] for row in numbered]
    if answered.is_whole and max(figures) == min(figures):
        value = answered.written(figures[0], figure)
        return [Text(f"{name}均为 {value}。", _capitalised(f"{name} is {value} throughout.")).to(answered.lang)]
    said = _ends(answered, numbered, figure) if answered.is_whole else _first(answered, numbered, figure)
    return [Text(f"{name}{said.zh}。", _capitalised(f"{name} is {said.en}.")).to(answered.lang)] if said else []


def _ends(answered: Answered, rows: Sequence[Sequence[Any]], figure: int) -> Text:
    top = _named(answered, max(rows, key=lambda row: row[figure]), figure)
    bottom = _named(answered, min(rows, key=lambda row: row[figure]), figure)
    word = _preposition(answered, figure)
    return Text(f"最高的是{top}，最低的是{bottom}", f"highest {word} {top} and lowest {word} {bottom}")


def _first(answered: Answered, rows: Sequence[Sequence[Any]], figure: int) -> Text | None:
    """The first rows, where they are in the order of the figure."""
    figures = [row[figure] for row in rows]
    is_falling, is_rising = figures == sorted(figures, reverse=True), figures == sorted(figures)
    if is_falling == is_rising:  # neither, or all the same: then others may be as high
        return None
    names = joined([_named(answered, row, figure) for row in rows[:_MOST_NAMED]], answered.lang)
    word = _preposition(answered, figure)
    if is_falling:
        return Text(f"最高的是{names}", f"highest {word} {names}")
    return Text(f"最低的是{names}", f"lowest {word} {names}")


def _figure_place(answered: Answered) -> int | None:
    """The figure that the rows are about: the measure in whose order they are, else the last column, or the change."""
    last = len(answered.columns) - 1
    candidates: list[int] = [*range(1, last + 1)] if 1 <= last <= 3 else []
    if answered.changes is not None:
        one = answered.changes.figures[0]
        candidates, last = [one.percent, one.difference, one.after], one.percent
    places = [place for place in candidates if _is_figure(answered, place)]
    figures = {place: [row[place] for row in answered.result.rows if row[place] is not None] for place in places}
    ordered = [place for place in places if figures[place] == sorted(figures[place], reverse=True)]
    if ordered:
        return ordered[0]
    return last if last in places else None


def _is_figure(answered: Answered, place: int) -> bool:
    values = [row[place] for row in answered.result.rows if row[place] is not None]
    return answered.columns[place].role == "measure" and bool(values) and all(map(is_number, values))


def _named(answered: Answered, row: Sequence[Any], figure: int) -> str:
    """A row by what it is about, with its figure."""
    value = answered.written(row[figure], figure)
    name = " ".join(answered.written(row[place], place) for place in _naming(answered, figure))
    return Text(f"{name}（{value}）", f"{name} ({value})").to(answered.lang)


def _naming(answered: Answered, figure: int) -> list[int]:
    """The columns that say what a row is about: texts and times, else all before the figure."""
    others = [place for place in range(len(answered.columns)) if place != figure]
    about = [place for place in others if answered.columns[place].role in ("time", "category")]
    first = answered.result.rows[0]
    return [place for place in about if not is_number(first[place])] or about or others


def _preposition(answered: Answered, figure: int) -> str:
    naming = _naming(answered, figure)
    return "in" if all(answered.columns[place].role == "time" for place in naming) else "for"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------------------------------------------------- changes


def _changed(answered: Answered) -> list[str]:
    """A sentence for each figure of the one row."""
    changes = answered.changes
    return [_change(one, changes.sides, answered) for one in changes.figures] if changes is not None else []


def _change(one: Compared, sides: Sequence[str], answered: Answered) -> str:
    row, lang = answered.result.rows[0], answered.lang
    said = [
        (_ONE if row[place] is not None else _NO_DATA).to(lang).format(side, answered.written(row[place], place))
        for side, place in zip(sides, (one.before, one.after), strict=True)
    ]
    difference, percent = row[one.difference], row[one.percent]
    if is_number(difference):
        form = _SAME if difference == 0 else _UP if difference > 0 else _DOWN
        is_rated = is_number(percent) and difference
        rate = _BY.to(lang).format(answered.written(abs(percent), one.percent)) if is_rated else ""
        said.append(form.to(lang).format(answered.written(abs(difference), one.difference)) + rate)
    return _SENTENCE.to(lang).format(_capitalised(one.name), _BETWEEN.to(lang).join(said))


def _notes_on_changes(answered: Answered) -> list[str]:
    """What a reader of compared figures may miss."""
    changes, lang = answered.changes, answered.lang
    if changes is None:
        return []
    lacks_base = any(row[one.before] is None for row in answered.result.rows for one in changes.figures)
    notes = [_NOT_OVER.to(lang).format(one) for one in changes.unfinished]
    return [*notes, _NO_BASE.to(lang)] if changes.growth is not None and lacks_base else notes


# ------------------------------------------------------------------------------------------------------------- periods


def _partial_periods(answered: Answered) -> list[str]:
    """Which of the result's periods have days without data yet: the current one, and that in which data begin."""
    place = next((place for place, one in enumerate(answered.columns) if one.period in _CUT_TO), None)
    if place is None:
        return []
    lang, column = answered.lang, answered.columns[place]
    stored = column.output.column
    first = stored.period[0] if stored is not None and stored.period is not None else None
    is_told = answered.dated is not None and answered.dated.is_unfinished
    notes: dict[str, None] = {}
    for value in sorted({str(row[place]) for row in answered.result.rows if row[place] is not None}):
        begin, end = _span(value, _CUT_TO[str(column.period)])
        said = str(as_period(value, column.period))
        if begin <= answered.today < end:
            notes |= {} if is_told else {_NOT_OVER.to(lang).format(said): None}
        elif first is not None and _misses_a_part(begin, first, end):
            notes[_BEGINS.to(lang).format(said, first)] = None
    return list(notes)


def _misses_a_part(begin: date, first: str, end: date) -> bool:
    """Whether data begin within a period, and not with its first few days, which may be days without any."""
    return (begin + _FEW * (end - begin)).isoformat() < first < end.isoformat()


def _span(value: str, unit: Unit) -> tuple[date, date]:
    """The first day of a period and that of the next; nothing lies in one that is beyond the calendar."""
    try:
        begin = date.fromisoformat(f"{value}-01-01"[:10])
        return begin, Moment(begin).shifted(unit, 1).on(begin)
    except (ValueError, OverflowError):  # also another way of writing it
        return date.max, date.max
