"""Traces each figure of an answer to the call whose result it comes from; some come from none.

The rules are those of `figures_check`: a figure may be rounded and have a unit; numbers of rows,
ranks among them and the numbers of a list's items are told apart from figures of the data.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from agent.answers.figures_check import (
    KnownFigures,
    asked_in_sql,
    is_known,
    known_figures,
    known_of_turns,
)
from agent.answers.figures_in_text import (
    StatedFigure,
    is_count_or_rank,
    list_item_positions,
    stated_figures,
)
from common.text import Lang, Text
from common.values import QueryResult, Turn

_MOST_NAMED = 50  # figures named in a warning
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    r"(?<!\d)\d{4}[ \t]*[-/.年][ \t]*\d{1,2}(?:[ \t]*[-/.月][ \t]*\d{1,2})?(?!\d)"
    r"|(?<!\d)\d{4}[ \t]*年"
    r"|(?<!\d)\d{1,2}[ \t]*月(?:[ \t]*\d{1,2}[ \t]*[日号])?"
    rf"|\b(?:{_MONTHS})[a-z]*\.?[ \t]+\d{{4}}\b"
    rf"|\b(?:{_MONTHS})[a-z]*\.?[ \t]+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ \t]+\d{{4}}\b)?"
    rf"|\b\d{{1,2}}[ \t]+(?:{_MONTHS})[a-z]*\.?(?:,?[ \t]+\d{{4}}\b)?"
    r"|\bin[ \t]+\d{4}\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\b(?:CURRENT_DATE|CURRENT_TIMESTAMP|LOCALTIMESTAMP|now|transaction_timestamp)\b",
    re.IGNORECASE,
)
_LEAST_YEAR = 1_000
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True)
class FigureSource:
    """The result of one call, as a source of figures.

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
        """Return the number of rows; 0 without any."""
        return self.result.row_count if self.result else 0

    @cached_property
    def in_rows(self) -> KnownFigures:
        """Return the figures of the rows, or of the text."""
        rows = self.result.rows if self.result else ()
        return known_figures((self.text,), rows)

    @cached_property
    def beside_rows(self) -> KnownFigures:
        """Return the figures of the columns' names and those that the SQL compares with."""
        columns = self.result.columns if self.result else ()
        return known_figures((asked_in_sql(self.sql), *columns), ())

    @cached_property
    def in_sql(self) -> KnownFigures:
        """Return all figures of the SQL; for where an answer shows it."""
        return known_figures((self.sql,), ())


@dataclass(frozen=True)
class TracedFigures:
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
    text: str,
    sources: Sequence[FigureSource],
    question: str,
    turns: Sequence[Turn] = (),
    *,
    today: date,
) -> TracedFigures:
    """Return where each figure of `text` comes from; those of the question need no source.

    Args:
        sources: oldest first; of several that hold a figure, the latest counts, and its rows before
            anything else.
        turns: earlier ones of the conversation.
        today: what the SQL's relative dates were relative to.
    """
    items = list_item_positions(text, max((source.row_count for source in sources), default=0))
    tracer = _Tracer(text, sources[::-1], today)
    traced: dict[tuple[str, str], None] = {}
    untraced: list[StatedFigure] = []
    for figure in stated_figures(text):
        if figure.start in items:
            continue

        source = tracer.source_of(figure)
        if source is not None:
            traced[figure.written, source.call_id] = None
        else:
            untraced.append(figure)

    asked = known_figures((question,), ())
    untraced = [figure for figure in untraced if not is_known(figure, asked)]
    in_turns = known_of_turns(turns if untraced else ())
    earlier: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for figure in untraced:
        kind = earlier if is_known(figure, in_turns) else unknown
        kind[figure.written] = None

    return TracedFigures(tuple(traced), tuple(earlier), tuple(unknown))


def tracing_warnings(traced: TracedFigures, lang: Lang) -> list[str]:
    """Return the warnings about figures that no call gave."""
    warnings = []
    if traced.unknown:
        named = ", ".join(traced.unknown[:_MOST_NAMED])
        warning = Text(
            f"回答中的这些数字无法追溯到任何查询结果，请以结果数据为准：{named}",
            "These figures of the answer come from none of its results; "
            f"trust the results: {named}",
        )
        warnings.append(warning.to(lang))

    if traced.earlier:
        named = ", ".join(traced.earlier[:_MOST_NAMED])
        warning = Text(
            f"回答中的这些数字来自之前的对话，本次没有重新查询：{named}",
            "These figures of the answer are from earlier turns "
            f"and were not queried again: {named}",
        )
        warnings.append(warning.to(lang))

    return warnings


class _Tracer:
    """Finds the calls that the figures of a text come from."""

    def __init__(self, text: str, latest_first: Sequence[FigureSource], today: date) -> None:
        self._text = text
        self._sources = latest_first
        self._today = today
        self._dates = [match.span() for match in _DATE.finditer(text)]
        self._code = [match.span() for match in _CODE.finditer(text)]

    def source_of(self, figure: StatedFigure) -> FigureSource | None:
        counted = self._counted_by(figure)
        if counted:
            return counted

        shown = self._first(lambda source: is_known(figure, source.in_rows))
        beside = self._first(lambda source: is_known(figure, source.beside_rows))
        if shown or beside:
            return shown or beside

        return self._dated_by(figure) or self._quoted_from(figure)

    def _counted_by(self, figure: StatedFigure) -> FigureSource | None:
        """Return the call whose rows the figure counts or ranks."""
        for source in self._sources:
            count = source.row_count
            if count and is_count_or_rank(figure, self._text, {count}):
                return source

        return None

    def _dated_by(self, figure: StatedFigure) -> FigureSource | None:
        """Return the call whose SQL reads the clock, for a part of a date near today.

        Nothing else of the call spells the date.
        """
        if not _is_within(figure, self._dates):
            return None
        if figure.value >= _LEAST_YEAR and abs(figure.value - self._today.year) > 1:
            return None

        return self._first(lambda source: bool(_CLOCK.search(source.sql)))

    def _quoted_from(self, figure: StatedFigure) -> FigureSource | None:
        """Return the call whose SQL the text shows as code."""
        if not _is_within(figure, self._code):
            return None

        return self._first(lambda source: is_known(figure, source.in_sql))

    def _first(self, is_meant: Callable[[FigureSource], bool]) -> FigureSource | None:
        return next(filter(is_meant, self._sources), None)


def _is_within(figure: StatedFigure, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= figure.start < end for start, end in spans)
