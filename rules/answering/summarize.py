"""Put an answer into words, from nothing but its rows, their count and their columns."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn, as_period
from knowledge.results.visibility_notes import NO_ROWS
from knowledge.results.written_values import about_apart, is_number, joined, value_text
from rules.answering.answer_period import AnswerPeriod
from rules.answering.named_columns import Changes, ComparedColumns
from rules.linking.moments import Moment, Unit
from rules.query.aggregates import PARTS
from rules.query.query import Query, references

_MAX_FIELDS = 6
_MOST_NAMED = 3  # of the first rows of a ranking
_FEW = 0.1  # of the days of a period
_BLANK = Text("", " ")  # between sentences
_BETWEEN = Text("，", ", ")
_CUTS = re.compile(r"\bLIMIT\b|\bFETCH\s+(FIRST|NEXT)\b|\brow_number\b|\brank\b", re.IGNORECASE)
_TIES = re.compile(r"\bFETCH FIRST ROW WITH TIES$", re.IGNORECASE)
_SHARED = Text("并列，{name}均为 {value}。", "They are level: {name} is {value} for each.")
_NOT_OVER = Text("{} 尚未结束。", "{} is not over yet.")
_NO_BASE = Text(
    "没有上期数据时，增减为空。", "Where there are no earlier data, there is no change."
)
_IS = Text("为", "is")
_IS_ABOUT = Text("约为", "is about")
_ONE = Text("{} 为 {}", "{}: {}")
_NO_DATA = Text("{} 没有数据", "{}: no data")
_UP = Text("增加 {}", "up {}")
_DOWN = Text("减少 {}", "down {}")
_SAME = Text("没有变化", "unchanged")
_BY = Text("（{}）", " ({})")
_SENTENCE = Text("{}：{}。", "{}: {}.")
_BEGINS = Text("{} 的数据自 {} 开始。", "Data of {} begin on {}.")
_ENDS = Text("{} 的数据截至 {}。", "Data of {} end on {}.")
_CUT_TO: dict[str, Unit] = {"week": "week", "month": "month", "quarter": "quarter", "year": "year"}


@dataclass(frozen=True)
class AnsweredQuestion:
    """A result to be put into words.

    Attributes:
        is_whole: whether there are no more such rows; the least of a top 3 is not the least of all.
        dated: the period that the rows are restricted to, if it is known.
        changes: the columns that compare figures, if there are any.
        notes: sentences on how the question was understood.
        is_shared: whether the rows share the first place, of which one alone was asked for.
    """

    result: QueryResult
    columns: tuple[ResultColumn, ...]
    lang: Lang
    today: date
    is_whole: bool = True
    dated: AnswerPeriod | None = None
    changes: Changes | None = None
    notes: Sequence[Text] = ()
    none: Text = NO_ROWS
    is_shared: bool = False

    @property
    def clause(self) -> str:
        """Return the period and its date column, in brackets; empty when there is none."""
        if self.dated is not None:
            return self.dated.clause(self.lang)

        return ""

    def written(self, value: Any, place: int) -> str:
        """Write a value of the column for a sentence."""
        return value_text(value, self.columns[place], self.lang)


def summary_pieces(answered: AnsweredQuestion) -> list[str]:
    """Return the sentences of the summary, to be concatenated."""
    lang = answered.lang
    if not answered.result.rows:
        none = answered.none.to(lang).format(answered.clause)
        return _sentences([none, *_limits(answered)], lang)

    if answered.result.row_count == 1:
        sentences = _about_one_row(answered)
    else:
        sentences = [_count(answered), *_extremes(answered), *_partial_periods(answered)]

    sentences += [note.to(lang) for note in answered.notes]
    sentences += _notes_on_changes(answered)
    return _sentences(sentences, lang)


def _sentences(sentences: Sequence[str], lang: Lang) -> list[str]:
    """Return the sentences, with a space before all but the first."""
    return [*sentences[:1], *(_BLANK.to(lang) + sentence for sentence in sentences[1:])]


def _limits(answered: AnsweredQuestion) -> list[str]:
    """Return a sentence on where data begin or end, if the period lies outside of them."""
    limits = answered.dated.limits(answered.lang) if answered.dated is not None else None
    return [limits] if limits is not None else []


def spoken_assumptions(assumptions: Sequence[Text], lang: Lang) -> list[str]:
    """Return the sentences that follow the summary."""
    return [_BLANK.to(lang) + assumption.to(lang) for assumption in assumptions]


def notes_on(query: Query | None) -> list[Text]:
    """Return the notes on the parts of dates in the query that need one."""
    parts = {reference.part for reference in references(query)}
    notes = [part.note for name, part in PARTS.items() if name in parts]
    return [note for note in notes if note is not None]


def cuts_rows(sql: str) -> bool:
    """Tell whether the statement itself keeps only some of its rows, as far as its words show."""
    return _CUTS.search(sql) is not None


def shares_first_place(sql: str) -> bool:
    """Tell whether the statement keeps all rows that are level with the first."""
    return _TIES.search(sql) is not None


# ------------------------------------------------------------------------------
# one row


def _about_one_row(answered: AnsweredQuestion) -> list[str]:
    is_change = answered.changes is not None and answered.changes.is_alone
    sentences = _changed(answered) if is_change else [_single(answered)]
    if all(map(_is_nothing, answered.result.rows[0])):
        sentences += _limits(answered)

    return sentences


def _is_nothing(value: Any) -> bool:
    if value is None:
        return True

    return is_number(value) and value == 0


def _single(answered: AnsweredQuestion) -> str:
    row, lang, clause = answered.result.rows[0], answered.lang, answered.clause
    if len(row) == 1:
        figure = _field(answered, 0, clause)
        return Text(f"{figure}。", f"{_capitalised(figure)}.").to(lang)

    places = range(len(answered.columns))[:_MAX_FIELDS]
    text = _BETWEEN.to(lang).join(_field(answered, place) for place in places)
    return Text(f"查到 1 条记录{clause}：{text}。", f"Found 1 row{clause}: {text}.").to(lang)


def _field(answered: AnsweredQuestion, place: int, clause: str = "") -> str:
    """Return the label and the value of a column of the only row."""
    name = answered.columns[place].label
    value = answered.written(answered.result.rows[0][place], place)
    figure, is_about = about_apart(value, answered.lang)
    verb = _IS_ABOUT if is_about else _IS
    return Text(f"{name}{clause}{verb.zh} {figure}", f"{name}{clause}: {value}").to(answered.lang)


# ------------------------------------------------------------------------------
# several rows


def _count(answered: AnsweredQuestion) -> str:
    count, clause = answered.result.row_count, answered.clause
    if answered.result.is_limited:
        return Text(
            f"结果较多，只返回了前 {count} 条记录{clause}。",
            f"There are more rows than shown; these are the first {count}{clause}.",
        ).to(answered.lang)

    return Text(f"共 {count} 条记录{clause}。", f"{count} rows{clause}.").to(answered.lang)


def _extremes(answered: AnsweredQuestion) -> list[str]:
    """Return the rows with the greatest and least figure, by name.

    Of rows that were cut only those that they begin with.
    """
    place = _figure_place(answered)
    if place is None:
        return []

    rows = [row for row in answered.result.rows if is_number(row[place])]
    if len(rows) < 2:
        return []

    name, lang = answered.columns[place].label, answered.lang
    figures = {row[place] for row in rows}
    if answered.is_shared and len(figures) == 1:
        value = answered.written(rows[0][place], place)
        return [_SHARED.to(lang).format(name=name, value=value)]
    if answered.is_whole and len(figures) == 1:
        value = answered.written(rows[0][place], place)
        same = Text(f"{name}均为 {value}。", _capitalised(f"{name} is {value} throughout."))
        return [same.to(lang)]

    extremes = (_ends if answered.is_whole else _first)(answered, rows, place)
    if extremes is None:
        return []

    sentence = Text(f"{name}{extremes.zh}。", _capitalised(f"{name} is {extremes.en}."))
    return [sentence.to(lang)]


def _ends(answered: AnsweredQuestion, rows: Sequence[Sequence[Any]], figure: int) -> Text:
    top = _named(answered, max(rows, key=lambda row: row[figure]), figure)
    bottom = _named(answered, min(rows, key=lambda row: row[figure]), figure)
    word = _preposition(answered, figure)
    return Text(
        f"最高的是{top}，最低的是{bottom}", f"highest {word} {top} and lowest {word} {bottom}"
    )


def _first(answered: AnsweredQuestion, rows: Sequence[Sequence[Any]], figure: int) -> Text | None:
    """Return the first rows, if they are in the order of the figure."""
    figures = [row[figure] for row in rows]
    is_falling = figures == sorted(figures, reverse=True)
    is_rising = figures == sorted(figures)
    if is_falling == is_rising:  # neither, or all the same: then others may be as high
        return None

    names = joined([_named(answered, row, figure) for row in rows[:_MOST_NAMED]], answered.lang)
    word = _preposition(answered, figure)
    if is_falling:
        return Text(f"最高的是{names}", f"highest {word} {names}")

    return Text(f"最低的是{names}", f"lowest {word} {names}")


def _figure_place(answered: AnsweredQuestion) -> int | None:
    """Return the place of the figure that the rows are about.

    The measure in whose order they are; else the last column, or the change of a figure.
    """
    last = len(answered.columns) - 1
    candidates = list(range(1, last + 1)) if last <= 3 else []
    if answered.changes is not None:
        one = answered.changes.figures[0]
        candidates = [one.percent, one.difference, one.after]
        last = one.percent

    places = [place for place in candidates if _is_figure(answered, place)]
    for place in places:
        figures = _values(answered, place)
        if figures == sorted(figures, reverse=True):
            return place

    return last if last in places else None


def _is_figure(answered: AnsweredQuestion, place: int) -> bool:
    if answered.columns[place].role != "measure":
        return False

    values = _values(answered, place)
    return bool(values) and all(map(is_number, values))


def _values(answered: AnsweredQuestion, place: int) -> list[Any]:
    """Return the values of a column, without those that are missing."""
    return [row[place] for row in answered.result.rows if row[place] is not None]


def _named(answered: AnsweredQuestion, row: Sequence[Any], figure: int) -> str:
    """Return a row by what it is about, with its figure."""
    value = answered.written(row[figure], figure)
    name = " ".join(answered.written(row[place], place) for place in _naming(answered, figure))
    return Text(f"{name}（{value}）", f"{name} ({value})").to(answered.lang)


def _naming(answered: AnsweredQuestion, figure: int) -> list[int]:
    """Return the columns that name a row: texts and times, else all but the figure."""
    columns, first = answered.columns, answered.result.rows[0]
    others = [place for place in range(len(columns)) if place != figure]
    about = [place for place in others if columns[place].role in ("time", "category")]
    texts = [place for place in about if not is_number(first[place])]
    return texts or about or others


def _preposition(answered: AnsweredQuestion, figure: int) -> str:
    naming = _naming(answered, figure)
    if all(answered.columns[place].role == "time" for place in naming):
        return "in"

    return "for"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------------------
# changes


def _changed(answered: AnsweredQuestion) -> list[str]:
    """Return a sentence for each figure of the one row."""
    changes = answered.changes
    if changes is None:
        return []

    return [_change(figure, changes.sides, answered) for figure in changes.figures]


def _change(one: ComparedColumns, sides: Sequence[str], answered: AnsweredQuestion) -> str:
    """Return a sentence on both values of a figure: "Sales: 2023: 5, 2024: 6, up 1."."""
    row, lang = answered.result.rows[0], answered.lang
    clauses = []
    for side, place in zip(sides, (one.before, one.after), strict=True):
        form = _ONE if row[place] is not None else _NO_DATA
        clauses.append(form.to(lang).format(side, answered.written(row[place], place)))

    if is_number(row[one.difference]):
        clauses.append(_difference(one, answered))

    return _SENTENCE.to(lang).format(_capitalised(one.name), _BETWEEN.to(lang).join(clauses))


def _difference(one: ComparedColumns, answered: AnsweredQuestion) -> str:
    """Return the difference between two numbers, and in brackets the percentage, if there is
    one.
    """
    row, lang = answered.result.rows[0], answered.lang
    difference, percent = row[one.difference], row[one.percent]
    if difference == 0:
        return _SAME.to(lang)

    form = _UP if difference > 0 else _DOWN
    text = form.to(lang).format(answered.written(abs(difference), one.difference))
    if is_number(percent):
        text += _BY.to(lang).format(answered.written(abs(percent), one.percent))

    return text


def _notes_on_changes(answered: AnsweredQuestion) -> list[str]:
    """Return notes on compared figures: periods that are not over, and missing earlier data."""
    changes, lang = answered.changes, answered.lang
    if changes is None:
        return []

    notes = [_NOT_OVER.to(lang).format(one) for one in changes.unfinished]
    bases = (_values(answered, figure.before) for figure in changes.figures)
    lacks_base = any(len(values) < len(answered.result.rows) for values in bases)
    if changes.growth is not None and lacks_base:
        notes.append(_NO_BASE.to(lang))

    return notes


# ------------------------------------------------------------------------------
# periods


def _partial_periods(answered: AnsweredQuestion) -> list[str]:
    """Return notes on periods of which some days have no data.

    These are the current period, and those in which data begin and end.
    """
    places = [place for place, one in enumerate(answered.columns) if one.period in _CUT_TO]
    if not places:
        return []

    place = places[0]
    notes: dict[str, None] = {}
    for value in sorted(set(map(str, _values(answered, place)))):
        note = _note_on_period(value, answered.columns[place], answered)
        if note is not None:
            notes[note] = None

    return list(notes)


def _note_on_period(value: str, column: ResultColumn, answered: AnsweredQuestion) -> str | None:
    lang = answered.lang
    begin, end = _span(value, _CUT_TO[str(column.period)])
    period = str(as_period(value, column.period))
    if begin <= answered.today < end:
        is_said = answered.dated is not None and answered.dated.is_unfinished
        return None if is_said else _NOT_OVER.to(lang).format(period)

    stored = column.output.column
    if stored is None or stored.period is None:
        return None

    first_day, last_day = stored.period
    if _misses_beginning(begin, first_day, end):
        return _BEGINS.to(lang).format(period, first_day)
    if _misses_end(begin, last_day, end):
        return _ENDS.to(lang).format(period, last_day)

    return None


def _misses_beginning(begin: date, first: str, end: date) -> bool:
    """Tell whether data begin within a period, later than in its first few days.

    A few days may be without data anyway.
    """
    few_days_later = begin + _FEW * (end - begin)
    return few_days_later.isoformat() < first < end.isoformat()


def _misses_end(begin: date, last: str, end: date) -> bool:
    """Tell whether data end within a period, earlier than in its last few days."""
    few_days_before = end - _FEW * (end - begin)
    return begin.isoformat() <= last < few_days_before.isoformat()


def _span(value: str, unit: Unit) -> tuple[date, date]:
    """Return the first day of a period and that of the next.

    Nothing lies in a period beyond the calendar.
    """
    try:
        begin = date.fromisoformat(f"{value}-01-01"[:10])
        return begin, Moment(begin).shifted(unit, 1).on(begin)
    except (ValueError, OverflowError):  # also another way of writing it
        return date.max, date.max
