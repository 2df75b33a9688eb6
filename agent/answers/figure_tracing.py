"""Traces each figure of an answer to the result of a call that it comes from, and finds those that come from none.

The rules are those of `figures_check`: a figure may be rounded and have a unit; numbers of rows, ranks among them and
the numbers of a list's items are told apart from figures of the data.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from agent.answers.figures_check import Known, asked_in_sql, is_known, known_figures
from agent.answers.figures_in_text import Stated, is_place, list_items, stated_figures
from common.text import Lang, Text
from common.values import QueryResult, Turn

_MOST_NAMED = 50  # figures named in a warning
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    r"(?<!\d)\d{4}[ \t]*[-/.年][ \t]*\d{1,2}(?:[ \t]*[-/.月][ \t]*\d{1,2})?(?!\d)|(?<!\d)\d{4}[ \t]*年"
    r"|(?<!\d)\d{1,2}[ \t]*月(?:[ \t]*\d{1,2}[ \t]*[日号])?"
    rf"|\b(?:{_MONTHS})[a-z]*\.?[ \t]+\d{{4}}\b"
    rf"|\b(?:{_MONTHS})[a-z]*\.?[ \t]+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ \t]+\d{{4}}\b)?"
    rf"|\b\d{{1,2}}[ \t]+(?:{_MONTHS})[a-z]*\.?(?:,?[ \t]+\d{{4}}\b)?"
    r"|\bin[ \t]+\d{4}\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\b(?:CURRENT_DATE|CURRENT_TIMESTAMP|LOCALTIMESTAMP|now|transaction_timestamp)\b", re.IGNORECASE)
_LEAST_YEAR = 1_000
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True)
class FigureSource:
    """What one call gave.

    Attributes:
        result: the rows, of a call that queried.
        sql: what it ran.
        text: what it said, of a call without rows.
    """

    call_id: str
    result: QueryResult | None = None
    sql: str = ""
    text: str = ""

    @property
    def row_count(self) -> int:
        """Number of rows; 0 without any."""
        return self.result.row_count if self.result else 0

    @cached_property
    def in_rows(self) -> Known:
        """Figures of the rows, or of the text."""
        return known_figures((self.text,), self.result.rows if self.result else ())

    @cached_property
    def beside_rows(self) -> Known:
        """Figures of the names of columns and those that the SQL compares with."""
        columns = self.result.columns if self.result else ()
        return known_figures((asked_in_sql(self.sql), *columns), ())

    @cached_property
    def in_sql(self) -> Known:
        """All figures of the SQL; for where an answer shows it."""
        return known_figures((self.sql,), ())


@dataclass(frozen=True)
class Traced:
    """The figures of an answer, as they are written.

    Attributes:
        sources: each that comes from a call, with the call's id; in the order of the text.
        earlier: those that only earlier turns of the conversation hold.
        unknown: those that nothing holds.
    """

    sources: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def traced_figures(
    text: str, sources: Sequence[FigureSource], question: str, turns: Sequence[Turn] = (), *, today: date
) -> Traced:
    """Where each figure of `text` comes from; those of the question need no source.

    Args:
        sources: oldest first; of several that hold a figure, the latest counts, and its rows before anything else.
        turns: earlier ones of the conversation.
        today: what the SQL's relative dates were relative to.
    """
    items = list_items(text, max((source.row_count for source in sources), default=0))
    traced: list[tuple[str, str]] = []
    left: list[Stated] = []
    dates = [match.span() for match in _DATE.finditer(text)]
    code = [match.span() for match in _CODE.finditer(text)]
    for figure in stated_figures(text):
        if figure.start in items:
            continue
        call_id = (
            _source_of(figure, text, sources[::-1])
            or _relative(figure, dates, sources[::-1], today)
            or _shown_sql(figure, code, sources[::-1])
        )
        if call_id is not None:
            traced.append((figure.written, call_id))
        else:
            left.append(figure)
    asked = known_figures((question,), ())
    left = [figure for figure in left if not is_known(figure, asked)]
    told = _told(turns if left else ())
    earlier = [figure.written for figure in left if is_known(figure, told)]
    unknown = [figure.written for figure in left if not is_known(figure, told)]
    return Traced(_unique(traced), tuple(dict.fromkeys(earlier)), tuple(dict.fromkeys(unknown)))


def tracing_warnings(traced: Traced, lang: Lang) -> list[str]:
    """What the user is told of the figures that no call gave."""
    warnings = []
    if traced.unknown:
        named = ", ".join(traced.unknown[:_MOST_NAMED])
        said = Text(
            f"回答中的这些数字无法追溯到任何查询结果，请以结果数据为准：{named}",
            f"These figures of the answer come from none of its results; trust the results: {named}",
        )
        warnings.append(said.to(lang))
    if traced.earlier:
        named = ", ".join(traced.earlier[:_MOST_NAMED])
        said = Text(
            f"回答中的这些数字来自之前的对话，本次没有重新查询：{named}",
            f"These figures of the answer are from earlier turns and were not queried again: {named}",
        )
        warnings.append(said.to(lang))
    return warnings


def _source_of(figure: Stated, text: str, latest_first: Sequence[FigureSource]) -> str | None:
    for source in latest_first:
        if source.row_count and is_place(figure, text, {source.row_count}):
            return source.call_id
    for source in latest_first:
        if is_known(figure, source.in_rows):
            return source.call_id
    return next((source.call_id for source in latest_first if is_known(figure, source.beside_rows)), None)


def _relative(
    figure: Stated, dates: Sequence[tuple[int, int]], latest_first: Sequence[FigureSource], today: date
) -> str | None:
    """The call whose SQL reads the clock, for a part of a written date near today: nothing else would spell it."""
    if not _is_within(figure, dates):
        return None
    if figure.value >= _LEAST_YEAR and abs(figure.value - today.year) > 1:
        return None
    return next((source.call_id for source in latest_first if _CLOCK.search(source.sql)), None)


def _shown_sql(figure: Stated, code: Sequence[tuple[int, int]], latest_first: Sequence[FigureSource]) -> str | None:
    """The call whose SQL the text shows as code."""
    if not _is_within(figure, code):
        return None
    return next((source.call_id for source in latest_first if is_known(figure, source.in_sql)), None)


def _is_within(figure: Stated, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= figure.start < end for start, end in spans)


def _told(turns: Sequence[Turn]) -> Known:
    said = [part for turn in turns for part in (turn.question, turn.sql or "", turn.answer, *turn.columns)]
    counts = [turn.row_count for turn in turns if turn.row_count]
    return known_figures(said, [*(row for turn in turns for row in turn.rows), counts])


def _unique(traced: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(traced))
