"""What was asked before a question, as far as rules know it: the query of the last answer, what was asked back.

A turn keeps the `Query` of its question. If a model answered it, it keeps none, and the rules read that question
again. They know nothing of SQL that a user has written.
"""

from dataclasses import replace
from functools import cached_property

from common.inquiry import Inquiry
from common.values import Turn
from rules.composing.understanding import Understanding, understand
from rules.conversation.change import Earlier
from rules.conversation.follow_ups import goes_on, likely_change
from rules.query.pending import NOTHING_SETTLED, Pending, Settled
from rules.query.query import Query
from rules.query.query_json import from_json
from rules.query.refusals import Refusal
from rules.schema.lexicon import Lexicon
from rules.words.statements import pasted_sql


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
        if turn is None or query is None:
            return None
        return Earlier(turn.question, query, turn is self.asked[-1])

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
