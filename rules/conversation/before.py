"""What was asked before a question, as far as rules know it: the query of the last answer, what was asked back.

A turn keeps the `Query` of its question. If a model answered it, it keeps none, and the rules read that question
again. They know nothing of SQL that a user has written. The answer to a question back completes that question:
"heaviest shipment" → "by which figure?" → "total weight".
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
    rf"^(?:{WORDS.any_of('questions.answers.leads')})\s*(?:{WORDS.english.text('questions.answers.article')} )?",
    re.IGNORECASE,
)
_PASSED = ("noise", "of", "unit", "by", "which", "and", "list")


class Before:
    """The turns before a question."""

    def __init__(self, inquiry: Inquiry, lexicon: Lexicon) -> None:
        self._inquiry, self._lexicon = inquiry, lexicon
        self.asked = [turn for turn in inquiry.history if turn.question_type == "DATABASE"]

    @cached_property
    def answered(self) -> Turn | None:
        """The last turn whose question about the data was answered."""
        return next((one for one in reversed(self.asked) if one.sql is not None), None)

    @cached_property
    def earlier(self) -> Earlier | None:
        """The last answered question about the data; None when there is none, or rules don't understand it."""
        turn = self.answered
        query = self._query_of(turn) if turn is not None else None
        return Earlier(turn.question, query, turn is self.asked[-1]) if turn and query else None

    @cached_property
    def pending(self) -> Pending | None:
        """The question that was asked back in the last turn."""
        turn = self._inquiry.history[-1] if self._inquiry.history else None
        if turn is None or turn.sql is not None or turn.question_type != "DATABASE":
            return None
        if turn.understood is not None:
            return from_json(Pending, turn.understood, self._inquiry.catalog)
        made = self._read_again(turn)
        missing = made.missing if isinstance(made, Refusal) else None
        return Pending(turn.question, missing) if missing is not None else None

    def _query_of(self, turn: Turn) -> Query | None:
        if turn.understood is not None:
            return from_json(Query, turn.understood, self._inquiry.catalog)
        if pasted_sql(turn.question) is not None:
            return None  # its words are no question
        made = self._read_again(turn)
        if isinstance(made, Refusal):
            return None
        likely = likely_change(turn.question, self._lexicon, self._inquiry.table)
        needs_more = goes_on(likely, turn.question, lambda: True)
        return None if needs_more and made.sql != turn.sql else made.query

    def _read_again(self, turn: Turn) -> Understanding | Refusal:
        """What rules understand of a turn's question by itself, because a model answered it."""
        return understood_alone(replace(self._inquiry, question=turn.question, history=()))


def understood_alone(inquiry: Inquiry, settled: Settled = NOTHING_SETTLED) -> Understanding | Refusal:
    """The question as understood without those before it, or why rules can't answer it."""
    try:
        return understand(inquiry, settled)
    except Refusal as refusal:
        return refusal.copy()


# -------------------------------------------------------------------------------------------- answers to questions back


def settled_by(said: str, pending: Pending, lexicon: Lexicon) -> Settled | None:
    """What is settled once `said` answers what the pending question is missing; None if it says something else."""
    missing, settled, answer = pending.missing, pending.settled, _LEAD.sub("", said.strip())
    if missing.kind == "figure":
        figure = _figure(answer, missing, lexicon)
        return replace(settled, figure=figure) if figure is not None else None
    marks = [mark for mark in marks_of(answer, lexicon) if mark.links or mark.date or not mark.means(*_PASSED)]
    if missing.kind == "year":
        year = _year(marks, missing.word, language_of(without_courtesy(pending.question)) == "zh")
        return replace(settled, year=year) if year else None
    choice = _choice(marks, missing.choices)
    return replace(settled, chosen=(*settled.chosen, choice)) if choice is not None else None


def _figure(answer: str, missing: Missing, lexicon: Lexicon) -> Figure | None:
    """The figure, if the answer names one and nothing else; None for a question."""
    context = {table: 1.0 for table, _ in missing.choices}
    try:
        change = read_change(answer, lexicon, context=context)[0]
    except Refusal:
        return None
    asks = answer.endswith(("?", "？")) or change.asked.question.has("which", "list")
    if len(change.figures) != 1 or asks or _says_more(change) or change.reading.lost:
        return None
    return replace(change.figures[0], position=0)


def _says_more(change: Change) -> bool:
    """Whether the answer says more than a figure."""
    measured = {figure.table or (figure.link and figure.link.table) for figure in change.figures}
    others = {one.link.table for one in change.asked.tables} - measured
    return change.has_slots or change.asks or bool(others or change.parts.columns or change.ties)


def _year(marks: list[Mark], word: str, is_chinese: bool) -> str:
    """The year that the answer names, alone or with the month or quarter `word`."""
    date = marks[0].date if len(marks) == 1 else None
    if date is None or not date.is_known:
        return ""
    is_year = date.period.grain == "year" or in_year_of(date.period, word, is_chinese) == date.period
    return year_of_period(date.period, is_chinese) if is_year else ""


def _choice(marks: list[Mark], choices: tuple[Choice, ...]) -> Choice | None:
    """The one of the choices that the answer names best."""
    named = [(link.quality, (link.table, link.column)) for mark in marks for link in mark.links if link.kind != "value"]
    found = sorted((quality, choices.index(choice)) for quality, choice in named if choice in choices)
    if not found or any(not any((link.table, link.column) in choices for link in mark.links) for mark in marks):
        return None
    best = {choice for quality, choice in found if quality == found[-1][0]}
    return choices[best.pop()] if len(best) == 1 else None
