"""Understand a question in its conversation: by itself if it is complete, else as a follow-up.

An answer to a clarifying question completes the question before it.
"""

import re
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from common.cpu_clock import within
from common.inquiry import Inquiry, StoredValue
from common.text import Lang, Text
from common.values import Turn
from rules.composing.retargeting import retargeted_conditions
from rules.composing.understanding import Understanding
from rules.conversation.back_references import (
    BackReference,
    back_reference_of,
    pronoun_of,
    row_conditions,
    single_name,
)
from rules.conversation.change import Change, Earlier
from rules.conversation.edits import asked_under, finished, first_edited
from rules.conversation.follow_ups import goes_on, likely_change, read_change
from rules.conversation.prior_turns import PriorTurns, settled_by, understood_alone
from rules.linking.moments import Period
from rules.query.pending import NOTHING_SETTLED, Pending, Settled
from rules.query.query import Condition, Operand, Query, measured_table, shown_tables, touched
from rules.query.refusals import (
    Refusal,
    grounds,
    not_by_rules,
    not_continued,
    too_long,
    which_one,
)
from rules.query.years import year_of
from rules.schema.lexicon import Lexicon, lexicon_for, lexicon_of
from rules.words import WORDS
from rules.words.limits import STEP_S
from rules.words.result_questions import kind_of_doubt
from rules.words.talk import REWORDED
from rules.words.writes import write_request


@dataclass(frozen=True)
class Outcome:
    """The result of understanding a question.

    It must not refer to the catalogue, whose lexicon it is kept with.

    Attributes:
        asked: question, language, table, found values and history of the inquiry.
        made: a refusal in it must not be raised itself, because a raised one keeps the frames of
            its stack alive.
        goes_on: whether the question continues an earlier one, or answers a clarifying question.
    """

    asked: tuple[str, Lang, str | None, tuple[StoredValue, ...], tuple[Turn, ...]]
    made: Understanding | Refusal
    goes_on: bool


_BEGINS_OR_POINTS_BACK = re.compile(
    f"{WORDS.begins('follow_ups.noise.lead').pattern}"
    f"|{WORDS.found('follow_ups.noise.these').pattern}",
    re.IGNORECASE,
)
# How likely a follow-up is about a table that was spoken of, and shown; one that it names itself
# has 1.
_SPOKEN_OF, _SHOWN = 0.9, 1.4
_UNKNOWN = "missing_database_info"
_MOST_KEPT = 128  # questions, the newest; with each come the follow-ups that were tried
_OUTCOMES: "WeakKeyDictionary[Lexicon, deque[Outcome]]" = WeakKeyDictionary()


def understand_in_context(inquiry: Inquiry) -> Understanding | Refusal:
    """Return the question as understood, alone or with those before it, or why rules can't."""
    return _outcome(inquiry).made


def is_understood(inquiry: Inquiry) -> bool:
    """Tell whether rules have a query for the question."""
    return isinstance(understand_in_context(inquiry), Understanding)


def continues(inquiry: Inquiry) -> bool:
    """Tell whether it goes on from an earlier question, or answers a clarifying question."""
    return bool(inquiry.history) and _outcome(inquiry).goes_on


def is_complete(inquiry: Inquiry) -> bool:
    """Tell whether the question says by itself what it asks for, whatever was asked before."""
    return _Conversation(inquiry).is_complete


def written_operation(inquiry: Inquiry) -> str | None:
    """Return the writing operation that the question asks for.

    None for a follow-up that only sounds like one: `改成平均值`.
    """
    operation = write_request(inquiry.question)
    if operation is None:
        return None

    may_be_follow_up = REWORDED.search(inquiry.question) or _only_rewords(inquiry)
    if may_be_follow_up and continues(inquiry):
        return None

    return operation


def _only_rewords(inquiry: Inquiry) -> bool:
    """Tell whether the question only excludes values, or adds columns.

    "remove Physics" and "add their cities" do.
    """
    change = likely_change(inquiry.question, lexicon_for(inquiry), inquiry.table)
    if isinstance(change, Refusal):
        return False
    if change.ties in ({"add"}, {"add", "these"}):
        if change.asked.tables or change.restricts:
            return False

        return any((change.figures, change.parts.columns))

    if change.has_subject:
        return False
    if not change.asked.question.has("not"):
        return False

    operators = {condition.operator for condition in change.parts.conditions}
    return bool(operators) and operators <= {"!=", "not in"}


def earlier_query(inquiry: Inquiry) -> Query | None:
    """Return the query of the last answered question about the data, if the rules know it."""
    earlier = within(STEP_S, lambda: _Conversation(inquiry).before.earlier, None)
    return earlier.query if earlier is not None else None


def _outcome(inquiry: Inquiry) -> Outcome:
    """Return the result for the question; kept, as classifying, writing and summarizing all need
    it.
    """
    kept = _OUTCOMES.setdefault(lexicon_of(inquiry.catalog), deque(maxlen=_MOST_KEPT))
    asked = (inquiry.question, inquiry.lang, inquiry.table, inquiry.found_values, inquiry.history)
    newest_first = reversed(tuple(kept))  # a copy, because another thread tries follow-ups
    for known in newest_first:
        if known.asked == asked:
            return known

    understood = within(STEP_S, lambda: _understood_in_context(inquiry), None)
    if understood is None:  # which is not kept: another time it may be quick enough
        return Outcome(asked, too_long(), goes_on=False)

    made, goes_on_from_earlier = understood
    outcome = Outcome(asked, made, goes_on_from_earlier)
    kept.append(outcome)
    return outcome


def _understood_in_context(inquiry: Inquiry) -> tuple[Understanding | Refusal, bool]:
    """Return the question as understood, and whether it goes on from one before it."""
    conversation = _Conversation(inquiry)
    if conversation.resumed is not None:
        return conversation.resumed.outcome(), True

    return conversation.outcome(), conversation.goes_on


class _Conversation:
    """One question and those before it.

    Args:
        settled: the user's answers to clarifying questions.
        turns: that it has taken before.
    """

    def __init__(
        self, inquiry: Inquiry, settled: Settled = NOTHING_SETTLED, turns: int = 0
    ) -> None:
        self._inquiry = inquiry
        self._question = inquiry.question
        self._settled = settled
        self._turns = turns
        self._lexicon = lexicon_for(inquiry)
        self.before = PriorTurns(inquiry, self._lexicon)

    def outcome(self) -> Understanding | Refusal:
        """Return the question as understood, or why rules can't answer it."""
        try:
            return self._understood()
        except Refusal as refusal:
            if not refusal.missing:
                return refusal.copy(None)

            pending = Pending(self._question, refusal.missing, self._settled, self._turns + 1)
            return refusal.copy(pending)

    def _understood(self) -> Understanding:
        if not self.goes_on:
            return self._pointed() or self._standing()
        if self.before.earlier is not None:
            return self._continued(self.before.earlier)
        if self._pronoun is not None:
            raise which_one(self._pronoun)
        if self.before.answered is not None:
            # alone it would lose what restricts that answer
            raise not_by_rules(self.before.answered.question)

        return self._standing()

    @cached_property
    def goes_on(self) -> bool:
        """Tell whether the question continues the one before it."""
        if not self.before.asked:
            return False
        if kind_of_doubt(self._question):
            return False
        if self._back_reference is not None or self._means_one:
            return False
        if goes_on(self._likely, self._question, lambda: self._stands_alone):
            return True

        return self._is_settled_before or self._is_of_listed

    @property
    def _is_of_listed(self) -> bool:
        """Tell whether a figure, no sentence, is that of the rows listed before.

        "total amount" after "unpaid orders" is such a one.
        """
        earlier, change = self.before.earlier, self._likely
        if earlier is None or isinstance(change, Refusal):
            return False
        if earlier.query.measures:
            return False
        if not earlier.query.conditions:
            return False

        is_sentence = change.asked.question.has("noise", "which", "count")
        if is_sentence or not change.is_figure_alone:
            return False

        links = [figure.link for figure in change.figures]
        tables = {link.table for link in links if link is not None}
        return tables == {earlier.query.base}

    @property
    def _is_settled_before(self) -> bool:
        """Tell whether the question before decides an ambiguous figure.

        Alone it could be several figures, and only one of them is of a table that was asked about.
        """
        if isinstance(self._alone, Understanding):
            return False

        missing = self._alone.missing
        if missing is None or missing.kind != "choice":
            return False

        earlier, change = self.before.earlier, self._likely
        if earlier is None or isinstance(change, Refusal):
            return False
        if not change.is_figure_alone:
            return False

        asked_about = touched(earlier.query)
        possible = [table for table, _ in missing.choices if table in asked_about]
        return len(possible) == 1

    @property
    def is_complete(self) -> bool:
        """Tell whether the question needs nothing that was said before it."""
        if self.resumed is not None or self._refers_back:
            return False

        change = self._likely
        is_first = not self.before.asked
        if isinstance(change, Refusal):
            return is_first or self._stands_alone
        if change.ties:
            return False
        if is_first:
            has_lost_words = bool(change.reading.lost)
            return change.has_subject or has_lost_words or self._stands_alone

        if goes_on(change, self._question, lambda: self._stands_alone):
            return False

        return change.has_subject or self._stands_alone

    @property
    def _refers_back(self) -> bool:
        """Tell whether a word of the question stands for something said before."""
        if self._back_reference or self._pronoun:
            return True

        return _BEGINS_OR_POINTS_BACK.search(self._question) is not None

    @cached_property
    def _likely(self) -> Change | Refusal:
        return likely_change(self._question, self._lexicon, self._inquiry.table)

    @cached_property
    def resumed(self) -> "_Conversation | None":
        """Return the question before, completed by this answer to its clarifying question.

        None when this is no such answer.
        """
        pending = self.before.pending
        if pending is None:
            return None

        settled = settled_by(self._question, pending, self._lexicon)
        if settled is None:
            return None

        history = self._inquiry.history[: -pending.turns]
        inquiry = replace(self._inquiry, question=pending.question, history=history)
        return _Conversation(inquiry, settled, pending.turns)

    # --------------------------------------------------------------------------
    # by itself

    @cached_property
    def _alone(self) -> Understanding | Refusal:
        inquiry, reference = self._inquiry, self._back_reference
        if reference is not None and reference.table is None:  # "that month" names no month
            inquiry = replace(inquiry, question=inquiry.question.replace(reference.words, " "))

        return understood_alone(inquiry, self._settled)

    @property
    def _stands_alone(self) -> bool:
        return isinstance(self._alone, Understanding)

    def _standing(self) -> Understanding:
        """Return the question by itself.

        Raises:
            Refusal: rules can't answer it. For a follow-up with an unknown word, the refusal names
                that word.
        """
        alone = self._alone
        if isinstance(alone, Understanding):
            return alone

        change = self._likely if self.before.asked else None
        if isinstance(change, Refusal):
            tells_unknown_word = change.reason == _UNKNOWN and alone.reason != _UNKNOWN
            if tells_unknown_word:
                raise change

        raise alone

    # --------------------------------------------------------------------------
    # back references

    @cached_property
    def _pronoun(self) -> str | None:
        return pronoun_of(self._question, self._lexicon)

    @cached_property
    def _back_reference(self) -> BackReference | None:
        return back_reference_of(self._question, self._lexicon)

    @property
    def _means_one(self) -> bool:
        """Tell whether a complete question is about the one thing that the last result shows."""
        turn = self.before.answered
        if turn is None or not single_name(turn):
            return False

        return self._pronoun is not None and self._stands_alone

    def _pointed(self) -> Understanding | None:
        """Return the question about the thing in the last result that it points at; None without
        one.

        Raises:
            Refusal: it is not clear which one is meant, or rules can't answer the question.
        """
        turn, earlier = self.before.answered, self.before.earlier
        reference = self._back_reference_or_pronoun()
        if reference is None:
            return None

        query = earlier.query if earlier is not None else None
        conditions = (
            row_conditions(reference, turn, query, self._lexicon) if turn is not None else ()
        )
        if conditions:
            return self._about(conditions, reference.words)

        is_mere_pronoun = self._back_reference is None
        if is_mere_pronoun and earlier is not None and earlier.query.conditions:
            return self._continued(earlier)

        raise which_one(reference.words)

    def _back_reference_or_pronoun(self) -> BackReference | None:
        reference = self._back_reference
        if reference is not None:
            # without a question before, `这家店` only names a table
            is_mere_name = reference.unit is None and self.before.answered is None
            if not is_mere_name:
                return reference

        if self._inquiry.history and self._pronoun is not None:
            return BackReference(self._pronoun)

        return None

    def _about(self, conditions: tuple[Condition, ...], words: str) -> Understanding:
        """Return the question with conditions in the place of the `words` that only point at a
        thing.
        """
        query, change = self._standing().query, self._likely
        if isinstance(change, Refusal):
            raise change

        pointed = Query(conditions[0].column.table, conditions=conditions)
        moved = retargeted_conditions(change.asked, pointed, measured_table(query), [])
        if len(moved) < len(conditions):
            raise which_one(words)

        meant = " ".join(_written(condition.operands[0]) for condition in conditions)
        change.notes = [Text(f"“{words}”指“{meant}”。", f'"{words}" is "{meant}".')]
        about = replace(query, conditions=(*query.conditions, *moved))
        return finished(change, about, self.before.earlier, self._inquiry.lang)

    # --------------------------------------------------------------------------
    # going on

    def _continued(self, earlier: Earlier) -> Understanding:
        """Return the question merged with the earlier one; else alone, if it is complete.

        Raises:
            Refusal: neither is possible.
        """
        may_stand_alone = False
        try:
            changes = self._changes_to(earlier.query)
            change, lang = changes[0], self._inquiry.lang
            is_tied = change.cues & {"these", "only", "add"} or self._pronoun is not None
            may_stand_alone = change.has_subject and not is_tied
            asks_anew = change.asks and "replace" not in change.cues
            if asks_anew and isinstance(self._alone, Understanding):
                return asked_under(change, earlier, self._alone, self._pronoun, lang)

            return first_edited(changes, earlier, lang)
        except Refusal as refusal:
            if not may_stand_alone or isinstance(self._alone, Refusal):
                raise not_continued(refusal, earlier.question) from refusal

            return self._answered_alone(self._alone, refusal)

    def _changes_to(self, query: Query) -> list[Change]:
        """Return the readings of the question as a change to `query`, the likeliest first."""
        context = dict.fromkeys(touched(query), _SPOKEN_OF)
        context |= dict.fromkeys(shown_tables(query), _SHOWN)
        year = year_of(self._question, query)
        hint = self._inquiry.table
        return read_change(self._question, self._lexicon, hint, context, year, self._settled)

    def _answered_alone(self, alone: Understanding, refusal: Refusal) -> Understanding:
        """Return the question by itself, with a warning why it does not go on from the one
        before.
        """
        why = grounds(refusal)
        warning = Text(
            f"{why.zh}；已作为独立的问题回答。", f"Answered as a question of its own: {why.en}."
        )
        return replace(alone, warnings=(*alone.warnings, warning.to(self._inquiry.lang)))


def _written(operand: Operand) -> str:
    """Return a value for a sentence; of a period its first day."""
    if isinstance(operand, Period) and operand.start is not None:
        return str(operand.start.day)

    return str(operand)
