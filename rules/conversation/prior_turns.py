"""The turns before a question, as far as the rules know them: the last query, what was asked back.

A turn keeps the `Query` of its question. If a model answered it, it keeps none, and the rules read
that question again. They know nothing of SQL that a user has written. The answer to a clarifying
question completes the question before it: "heaviest shipment", "by which figure?", "total weight".
"""

import re
from dataclasses import replace
from functools import cached_property

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Turn
from rules.composing.understanding import Understanding, understand
from rules.conversation.change import Change, Earlier
from rules.conversation.follow_ups import goes_on, likely_change, read_change
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.query.pending import NOTHING_SETTLED, Choice, Missing, Pending, Settled
from rules.query.query import Figure, Query
from rules.query.query_json import from_json
from rules.query.refusals import Refusal
from rules.query.years import in_year_of, year_of_period
from rules.schema.lexicon import Lexicon
from rules.words import WORDS
from rules.words.statements import pasted_sql
from rules.words.talk import without_courtesy

_LEAD = re.compile(
    rf"^(?:{WORDS.any_of('questions.answers.leads')})\s*"
    rf"(?:{WORDS.english.text('questions.answers.article')} )?",
    re.IGNORECASE,
)
# Kinds of words that may stand beside a choice without changing it
_IGNORED = ("noise", "of", "unit", "by", "which", "and", "list")


class PriorTurns:
    """The turns before a question."""

    def __init__(self, inquiry: Inquiry, lexicon: Lexicon) -> None:
        self._inquiry = inquiry
        self._lexicon = lexicon
        self.asked = [turn for turn in inquiry.history if turn.question_type == "DATABASE"]

    @cached_property
    def answered(self) -> Turn | None:
        """Return the last turn whose question about the data was answered."""
        for turn in reversed(self.asked):
            if turn.sql is not None:
                return turn

        return None

    @cached_property
    def earlier(self) -> Earlier | None:
        """Return the last answered question about the data.

        None when there is none, or the rules don't understand it.
        """
        turn = self.answered
        if turn is None:
            return None

        query = self._query_of(turn)
        if query is None:
            return None

        return Earlier(turn.question, query, is_latest=turn is self.asked[-1])

    @cached_property
    def pending(self) -> Pending | None:
        """Return the question that was answered by a clarifying question in the last turn."""
        if not self._inquiry.history:
            return None

        turn = self._inquiry.history[-1]
        if turn.sql is not None or turn.question_type != "DATABASE":
            return None
        if turn.understood is not None:
            return from_json(Pending, turn.understood, self._inquiry.catalog)

        made = self._read_again(turn)
        if isinstance(made, Understanding) or made.missing is None:
            return None

        return Pending(turn.question, made.missing)

    def _query_of(self, turn: Turn) -> Query | None:
        if turn.understood is not None:
            return from_json(Query, turn.understood, self._inquiry.catalog)
        if pasted_sql(turn.question) is not None:
            return None  # its words are no question

        made = self._read_again(turn)
        if isinstance(made, Refusal):
            return None

        likely = likely_change(turn.question, self._lexicon, self._inquiry.table)
        is_follow_up = goes_on(likely, turn.question, lambda: True)
        if is_follow_up and made.sql != turn.sql:
            return None  # read alone, it lacks what it took over from the turn before it

        return made.query

    def _read_again(self, turn: Turn) -> Understanding | Refusal:
        return understood_alone(replace(self._inquiry, question=turn.question, history=()))


def understood_alone(
    inquiry: Inquiry, settled: Settled = NOTHING_SETTLED
) -> Understanding | Refusal:
    """Return the question as understood without those before it, or why rules can't answer it."""
    try:
        return understand(inquiry, settled)
    except Refusal as refusal:
        return refusal.copy()


# ------------------------------------------------------------------------------
# answers to clarifying questions


def settled_by(reply: str, pending: Pending, lexicon: Lexicon) -> Settled | None:
    """Return the choices that are settled once `reply` has answered the question back to `pending`.

    None if `reply` is no such answer.
    """
    missing, settled = pending.missing, pending.settled
    answer = _LEAD.sub("", reply.strip())
    if missing.kind == "figure":
        figure = _figure(answer, missing, lexicon)
        if figure is not None:
            return replace(settled, figure=figure)

        return None

    marks = [mark for mark in marks_of(answer, lexicon) if not _is_ignored(mark)]
    if missing.kind == "year":
        is_chinese = language_of(without_courtesy(pending.question)) == "zh"
        year = _year(marks, missing.word, is_chinese)
        return replace(settled, year=year) if year else None

    choice = _choice(marks, missing.choices)
    if choice is None:
        return None

    return replace(settled, chosen=(*settled.chosen, choice))


def _is_ignored(mark: Mark) -> bool:
    if mark.links or mark.date:
        return False

    return mark.means(*_IGNORED)


def _figure(answer: str, missing: Missing, lexicon: Lexicon) -> Figure | None:
    """Return the figure, if the answer names one and nothing else; None for a question."""
    context = {table: 1.0 for table, _ in missing.choices}
    try:
        change = read_change(answer, lexicon, context=context)[0]
    except Refusal:
        return None

    is_question = answer.endswith(("?", "？")) or change.asked.question.has("which", "list")
    if is_question or change.reading.lost:
        return None
    if len(change.figures) != 1 or _says_more_than_figure(change):
        return None

    return replace(change.figures[0], position=0)


def _says_more_than_figure(change: Change) -> bool:
    others = (change.has_slots, change.asks, change.ties, change.parts.columns)
    if any(others):
        return True

    measured = set()
    for figure in change.figures:
        if figure.table is not None:
            measured.add(figure.table)
        elif figure.link is not None:
            measured.add(figure.link.table)

    named = {table.link.table for table in change.asked.tables}
    return not named <= measured


def _year(marks: list[Mark], word: str, is_chinese: bool) -> str:
    """Return the year that the answer names, alone or with the month or quarter `word`; else
    empty.
    """
    if len(marks) != 1:
        return ""

    date = marks[0].date
    if date is None or not date.is_known:
        return ""

    period = date.period
    is_year = period.grain == "year" or in_year_of(period, word, is_chinese) == period
    return year_of_period(period, is_chinese) if is_year else ""


def _choice(marks: list[Mark], choices: tuple[Choice, ...]) -> Choice | None:
    """Return the choice that the answer names best; None if that is not clear, or it names others
    too.
    """
    qualities: dict[Choice, float] = {}
    for mark in marks:
        links = [link for link in mark.links if (link.table, link.column) in choices]
        if not links:
            return None

        for link in links:
            choice = (link.table, link.column)
            if link.kind != "value":
                qualities[choice] = max(link.quality, qualities.get(choice, 0.0))

    if not qualities:
        return None

    highest = max(qualities.values())
    best = [choice for choice, quality in qualities.items() if quality == highest]
    return best[0] if len(best) == 1 else None
