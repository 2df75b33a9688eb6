"""Understands a question in its conversation: by itself if it is complete, else as a change to the question before.

An answer to a question back completes the question before it.
"""

import re
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from common.inquiry import Inquiry, StoredValue
from common.text import Lang, Text
from common.values import Turn
from rules.composing.carrying import conditions_for
from rules.composing.understanding import Understanding
from rules.conversation.before import Before, settled_by, understood_alone
from rules.conversation.change import Change, Earlier
from rules.conversation.edits import asked_under, finished, first_edited
from rules.conversation.follow_ups import goes_on, likely_change, read_change
from rules.conversation.pointing import Pointer, pointer_of, pronoun_of, row_conditions, single_name
from rules.linking.moments import Period
from rules.query.pending import NOTHING_SETTLED, Pending, Settled
from rules.query.query import Condition, Operand, Query, measured_table, shown_things, touched
from rules.query.refusals import Refusal, grounds, not_by_rules, not_continued, which_one
from rules.query.years import year_of
from rules.schema.lexicon import Lexicon, lexicon_for, lexicon_of
from rules.words import WORDS
from rules.words.result_questions import kind_of_doubt
from rules.words.talk import REWORDED
from rules.words.writes import write_request


@dataclass(frozen=True)
class Outcome:
    """The result of understanding a question. It must not refer to the catalogue, whose lexicon it is kept with.

    Attributes:
        made: a refusal in it must not be raised itself, because a raised one keeps the frames of its stack alive.
        goes_on: whether the question continues an earlier one, or completes one that was asked back.
    """

    asked: tuple[str, Lang, str | None, tuple[StoredValue, ...], tuple[Turn, ...]]
    made: Understanding | Refusal
    goes_on: bool


_BEGINS_OR_POINTS_BACK = re.compile(
    f"{WORDS.begins('follow_ups.noise.lead').pattern}|{WORDS.found('follow_ups.noise.these').pattern}", re.IGNORECASE
)
# How likely a follow-up is about a table that was spoken of, and shown; one that it names itself has 1.
_SPOKEN_OF, _SHOWN = 0.9, 1.4
_MOST_KEPT = 128  # questions, the newest; with each come the follow-ups that were tried
_OUTCOMES: "WeakKeyDictionary[Lexicon, deque[Outcome]]" = WeakKeyDictionary()


def understand_in_context(inquiry: Inquiry) -> Understanding | Refusal:
    """The question as understood, alone or with those before it; or the reason why rules can't answer it."""
    return _outcome(inquiry).made


def is_understood(inquiry: Inquiry) -> bool:
    """Whether rules have a query for the question."""
    return isinstance(understand_in_context(inquiry), Understanding)


def continues(inquiry: Inquiry) -> bool:
    """Whether the question continues an earlier one about the data, or answers a question back."""
    return bool(inquiry.history) and _outcome(inquiry).goes_on


def is_complete(inquiry: Inquiry) -> bool:
    """Whether the question says by itself what it asks for, whatever was asked before."""
    return _Conversation(inquiry).is_complete


def written_operation(inquiry: Inquiry) -> str | None:
    """The writing operation that the question asks for; None for a follow-up such as `改成平均值`."""
    operation = write_request(inquiry.question)
    if operation is None or not (REWORDED.search(inquiry.question) or _only_rewords(inquiry)):
        return operation
    return None if continues(inquiry) else operation


def _only_rewords(inquiry: Inquiry) -> bool:
    """Whether the question only keeps values out, or adds what is shown: "remove Physics", "add their cities"."""
    change = likely_change(inquiry.question, lexicon_for(inquiry), inquiry.table)
    if isinstance(change, Refusal):
        return False
    conditions, shown = change.parts.conditions, change.figures or change.parts.columns
    if change.ties == {"add"} or change.ties == {"add", "these"}:
        return bool(shown) and not change.asked.tables and not change.restricts
    if change.has_subject or not change.asked.question.has("not"):
        return False
    return bool(conditions) and all(one.operator in ("!=", "not in") for one in conditions)


def earlier_query(inquiry: Inquiry) -> Query | None:
    """The query of the last answered question about the data; None where rules don't know it."""
    earlier = _Conversation(inquiry).before.earlier
    return earlier.query if earlier is not None else None


def _outcome(inquiry: Inquiry) -> Outcome:
    """The result for the question, which is kept: classifying, writing SQL and telling the result all need it."""
    kept = _OUTCOMES.setdefault(lexicon_of(inquiry.catalog), deque(maxlen=_MOST_KEPT))
    asked = (inquiry.question, inquiry.lang, inquiry.table, inquiry.found_values, inquiry.history)
    for known in reversed(tuple(kept)):  # a copy, because follow-ups are thought of in another thread
        if known.asked == asked:
            return known
    conversation = _Conversation(inquiry)
    whole = conversation.resumed or conversation
    kept.append(Outcome(asked, whole.outcome(), whole is not conversation or whole.goes_on))
    return kept[-1]


class _Conversation:
    """One question and those before it.

    Args:
        settled: what the user has said when asked back.
        turns: that it has taken before.
    """

    def __init__(self, inquiry: Inquiry, settled: Settled = NOTHING_SETTLED, turns: int = 0) -> None:
        self._inquiry, self._question, self._settled, self._turns = inquiry, inquiry.question, settled, turns
        self._lexicon = lexicon_for(inquiry)
        self.before = Before(inquiry, self._lexicon)

    def outcome(self) -> Understanding | Refusal:
        """The question as understood, or why rules can't answer it."""
        try:
            return self._understood()
        except Refusal as refusal:
            missing = refusal.missing
            return refusal.copy(Pending(self._question, missing, self._settled, self._turns + 1) if missing else None)

    def _understood(self) -> Understanding:
        if not self.goes_on:
            return self._pointed() or self._standing()
        if self.before.earlier is not None:
            return self._continued(self.before.earlier)
        if self._pronoun is not None:
            raise which_one(self._pronoun)
        if self.before.answered is not None:
            raise not_by_rules(self.before.answered.question)  # alone it would lose what restricts that answer
        return self._standing()

    @cached_property
    def goes_on(self) -> bool:
        """Whether the question continues the one before it."""
        if not self.before.asked or kind_of_doubt(self._question) or self._pointer is not None or self._means_one:
            return False
        if goes_on(self._likely, self._question, lambda: self._stands_alone):
            return True
        return self._is_settled_before or self._is_of_listed

    @property
    def _is_of_listed(self) -> bool:
        """Whether a figure, no sentence, is that of the rows listed before: "total amount" after "unpaid orders"."""
        earlier, likely = self.before.earlier, self._likely
        if earlier is None or earlier.query.measures or isinstance(likely, Refusal) or not likely.is_figure_alone:
            return False
        is_sentence = any(word.mark.means("noise", "which", "count") for word in likely.asked.question.words)
        tables = {one.link.table for one in likely.figures if one.link is not None}
        return not is_sentence and bool(earlier.query.conditions) and tables == {earlier.query.base}

    @property
    def _is_settled_before(self) -> bool:
        """Whether a figure that could be several ones alone can only be one of what was asked before."""
        missing = self._alone.missing if isinstance(self._alone, Refusal) else None
        if missing is None or missing.kind != "choice":
            return False
        earlier, likely = self.before.earlier, self._likely
        if earlier is None or isinstance(likely, Refusal) or not likely.is_figure_alone:
            return False
        return sum(table in touched(earlier.query) for table, _ in missing.choices) == 1

    @property
    def is_complete(self) -> bool:
        """Whether the question needs nothing that was said before it."""
        if self.resumed or self._pointer or self._pronoun or _BEGINS_OR_POINTS_BACK.search(self._question):
            return False
        change, asked_before = self._likely, self.before.asked
        if isinstance(change, Refusal):
            return self._stands_alone or not asked_before
        if change.ties or (asked_before and goes_on(change, self._question, lambda: self._stands_alone)):
            return False
        return change.has_subject or self._stands_alone or bool(change.reading.lost and not asked_before)

    @cached_property
    def _likely(self) -> Change | Refusal:
        return likely_change(self._question, self._lexicon, self._inquiry.table)

    @cached_property
    def resumed(self) -> "_Conversation | None":
        """The question before, completed by this answer to its question back; None when this is no such answer."""
        pending = self.before.pending
        settled = settled_by(self._question, pending, self._lexicon) if pending is not None else None
        if pending is None or settled is None:
            return None
        history = self._inquiry.history[: -pending.turns]
        return _Conversation(replace(self._inquiry, question=pending.question, history=history), settled, pending.turns)

    # ------------------------------------------------------------------------------------------------------- by itself

    @cached_property
    def _alone(self) -> Understanding | Refusal:
        inquiry, pointer = self._inquiry, self._pointer
        if pointer is not None and pointer.table is None:  # "that month" names no month
            inquiry = replace(inquiry, question=inquiry.question.replace(pointer.words, " "))
        return understood_alone(inquiry, self._settled)

    @property
    def _stands_alone(self) -> bool:
        return isinstance(self._alone, Understanding)

    def _standing(self) -> Understanding:
        """The question by itself.

        Raises:
            Refusal: rules can't answer it. For a follow-up with an unknown word, the refusal names that word.
        """
        if isinstance(self._alone, Understanding):
            return self._alone
        other = self._likely if self.before.asked else None
        if isinstance(other, Refusal) and other.reason == "missing_database_info" != self._alone.reason:
            raise other
        raise self._alone

    # -------------------------------------------------------------------------------------------------------- pointing

    @cached_property
    def _pronoun(self) -> str | None:
        return pronoun_of(self._question, self._lexicon)

    @cached_property
    def _pointer(self) -> Pointer | None:
        return pointer_of(self._question, self._lexicon)

    @property
    def _means_one(self) -> bool:
        """Whether a complete question is about the one thing that the result before it shows."""
        turn = self.before.answered
        return turn is not None and single_name(turn) and self._pronoun is not None and self._stands_alone

    def _pointed(self) -> Understanding | None:
        """The question about the one thing in the result before that it points at; None where it points at nothing.

        Raises:
            Refusal: it is not clear which one is meant, or rules can't answer the question.
        """
        turn, pointer = self.before.answered, self._pointer
        query = self.before.earlier.query if self.before.earlier is not None else None
        if pointer is not None and turn is None and pointer.unit is None:
            pointer = None  # without a question before, `这家店` only names a table
        if pointer is None and self._pronoun is not None and self._inquiry.history:
            pointer = Pointer(self._pronoun)
        if pointer is None:
            return None
        conditions = row_conditions(pointer, turn, query, self._lexicon) if turn is not None else ()
        if conditions:
            return self._about(conditions, pointer.words)
        if self._pointer is None and self.before.earlier is not None and self.before.earlier.query.conditions:
            return self._continued(self.before.earlier)
        raise which_one(pointer.words)

    def _about(self, conditions: tuple[Condition, ...], words: str) -> Understanding:
        """The question with conditions that stand for its `words`, which only point at something."""
        query, change = self._standing().query, self._likely
        if isinstance(change, Refusal):
            raise change
        pointed = Query(conditions[0].column.table, conditions=conditions)
        moved = conditions_for(change.asked, pointed, measured_table(query), [])
        if len(moved) < len(conditions):
            raise which_one(words)
        meant = " ".join(_written(one.operands[0]) for one in conditions)
        change.notes = [Text(f"“{words}”指“{meant}”。", f'"{words}" is "{meant}".')]
        about = replace(query, conditions=(*query.conditions, *moved))
        return finished(change, about, self.before.earlier, self._inquiry.lang)

    # -------------------------------------------------------------------------------------------------------- going on

    def _continued(self, earlier: Earlier) -> Understanding:
        """The question merged with the earlier one; alone if they can't be merged and it is complete.

        Raises:
            Refusal: neither is possible.
        """
        may_stand_alone = False
        try:
            query, year = earlier.query, year_of(self._question, earlier.query)
            context = dict.fromkeys(touched(query), _SPOKEN_OF) | dict.fromkeys(shown_things(query), _SHOWN)
            changes = read_change(self._question, self._lexicon, self._inquiry.table, context, year, self._settled)
            change = changes[0]
            is_tied = change.cues & {"these", "only", "add"} or self._pronoun is not None
            may_stand_alone = change.has_subject and not is_tied
            if change.asks and "replace" not in change.cues and isinstance(self._alone, Understanding):
                return asked_under(change, earlier, self._alone, self._pronoun, self._inquiry.lang)
            return first_edited(changes, earlier, self._inquiry.lang)
        except Refusal as refusal:
            if not may_stand_alone or isinstance(self._alone, Refusal):
                raise not_continued(refusal, earlier.question) from refusal
            why = grounds(refusal)
            note = Text(f"{why.zh}；已作为独立的问题回答。", f"Answered as a question of its own: {why.en}.")
            return replace(self._alone, warnings=(*self._alone.warnings, note.to(self._inquiry.lang)))


def _written(operand: Operand) -> str:
    """A value for a sentence; of a period its first day."""
    return str(operand.start.day) if isinstance(operand, Period) and operand.start is not None else str(operand)
