"""Understands a question in its conversation: by itself if it is complete, else as a change to the question before.

A turn keeps the `Query` of its question. If a model answered it, it keeps none, and the rules read that question
again. An answer to a question back completes the question before it.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from common.inquiry import Inquiry, StoredValue
from common.text import Lang, Text, language_of
from common.values import Turn
from rules.composing.assumptions import assumptions
from rules.composing.carrying import conditions_for, listed, named
from rules.composing.compose import touched
from rules.composing.names import notes_on_values
from rules.composing.understanding import Understanding, refuse_lost, rendered, understand, with_role
from rules.conversation.edits import edited
from rules.conversation.follow_ups import Change, goes_on, likely_change, read_change
from rules.conversation.pointing import Pointer, pointer_of, pronoun_of, row_conditions, single_name
from rules.conversation.resuming import settled_by
from rules.query.pending import NOTHING_SETTLED, Pending, Settled
from rules.linking.dates import Period
from rules.query.query import Condition, Operand, Query
from rules.query.query_json import pending_from_json, query_from_json
from rules.query.refusals import (
    Refusal,
    ambiguous_way,
    grounds,
    not_by_rules,
    not_combinable,
    not_continued,
    unused_words,
    which_one,
)
from rules.query.years import year_of
from rules.schema.joins import AmbiguousPath
from rules.schema.lexicon import Lexicon, lexicon_of
from rules.schema.looked_up import lexicon_for
from rules.schema.schema import TableKey
from rules.sql.statement import Unrenderable
from rules.words import WORDS
from rules.words.result_questions import kind_of_doubt
from rules.words.talk import REWORDED, without_courtesy
from rules.words.writes import write_request


@dataclass(frozen=True)
class Earlier:
    """The question that a follow-up goes on from.

    Attributes:
        is_latest: whether no other question about the data came after it, answered or not.
    """

    question: str
    query: Query
    is_latest: bool


@dataclass(frozen=True)
class Outcome:
    """The result of understanding a question. It must not refer to the catalogue, whose lexicon it is kept with.

    Attributes:
        made: a refusal in it must not be raised itself, because a raised one keeps the frames of its stack alive.
        goes_on: whether the question continues an earlier one, or completes one that was asked back.
    """

    question: tuple[str, Lang, str | None, tuple[StoredValue, ...]]
    history: tuple[Turn, ...]
    made: Understanding | Refusal
    goes_on: bool


_BEGINS_OR_POINTS_BACK = re.compile(
    f"{WORDS.begins('follow_ups.noise.lead').pattern}|{WORDS.found('follow_ups.noise.these').pattern}", re.IGNORECASE
)
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
    return _asked_before(inquiry) and _outcome(inquiry).goes_on


def is_complete(inquiry: Inquiry) -> bool:
    """Whether the question says by itself what it asks for, whatever was asked before."""
    return _Conversation(inquiry).is_complete


def written_operation(inquiry: Inquiry) -> str | None:
    """The writing operation that the question asks for; None for a follow-up such as `改成平均值`."""
    operation = write_request(inquiry.question)
    if operation is not None and REWORDED.search(inquiry.question) and continues(inquiry):
        return None
    return operation


def earlier_query(inquiry: Inquiry) -> Query | None:
    """The query of the last answered question about the data; None where rules don't know it."""
    earlier = _Conversation(inquiry).earlier
    return earlier.query if earlier is not None else None


def _asked_before(inquiry: Inquiry) -> bool:
    return any(turn.question_type == "DATABASE" for turn in inquiry.history)


def _outcome(inquiry: Inquiry) -> Outcome:
    """The result for the question, which is kept: classifying, writing SQL and telling the result all need it."""
    kept = _OUTCOMES.setdefault(lexicon_of(inquiry.catalog), deque(maxlen=_MOST_KEPT))
    question = (inquiry.question, inquiry.lang, inquiry.table, inquiry.found_values)
    for known in reversed(tuple(kept)):  # a copy, because follow-ups are thought of in another thread
        if known.question == question and known.history == inquiry.history:
            return known
    conversation = _Conversation(inquiry)
    asked = conversation.resumed or conversation
    goes_on = asked is not conversation or asked.goes_on
    kept.append(Outcome(question, inquiry.history, asked.outcome(), goes_on))
    return kept[-1]


class _Conversation:
    """One question and those before it.

    Args:
        settled: what the user has said when asked back.
        turns: that it has taken before.
    """

    def __init__(self, inquiry: Inquiry, settled: Settled = NOTHING_SETTLED, turns: int = 0) -> None:
        self._inquiry, self._question, self._history = inquiry, inquiry.question, inquiry.history
        self._settled, self._turns = settled, turns
        self._lexicon = lexicon_for(inquiry)

    def outcome(self) -> Understanding | Refusal:
        """The question as understood, or why rules can't answer it."""
        try:
            return self._understood()
        except Refusal as refusal:
            missing, pending = refusal.missing, None
            if missing is not None:
                pending = Pending(self._question, missing, self._settled, self._turns + 1)
            return refusal.copy(pending)

    def _understood(self) -> Understanding:
        if not self.goes_on:
            return self._pointed() or self._standing()
        if self.earlier is not None:
            return self._continued(self.earlier)
        if self._pronoun is not None:
            raise which_one(self._pronoun)
        if isinstance(self._alone, Refusal):
            raise not_by_rules(self._answered.question) if self._answered is not None else self._alone
        return self._alone

    @cached_property
    def goes_on(self) -> bool:
        """Whether the question continues the one before it."""
        if not _asked_before(self._inquiry) or kind_of_doubt(self._question) is not None:
            return False
        if self._pointer is not None or self._means_one:
            return False
        return goes_on(self._likely, self._question, lambda: self._stands_alone) or self._is_settled_before

    @property
    def _is_settled_before(self) -> bool:
        """Whether a figure that could be several ones alone can only be one of what was asked before."""
        missing = self._alone.missing if isinstance(self._alone, Refusal) else None
        if missing is None or missing.kind != "choice" or self.earlier is None or isinstance(self._likely, Refusal):
            return False
        spoken = touched(self.earlier.query)
        return self._likely.is_figure_alone and sum(table in spoken for table, _ in missing.choices) == 1

    @property
    def is_complete(self) -> bool:
        """Whether the question needs nothing that was said before it."""
        if any(back is not None for back in (self.resumed, self._pointer, self._pronoun)):
            return False
        if _BEGINS_OR_POINTS_BACK.search(self._question):
            return False
        change, asked_before = self._likely, _asked_before(self._inquiry)
        if isinstance(change, Refusal):
            return self._stands_alone or not asked_before
        if change.ties or (asked_before and goes_on(change, self._question, lambda: self._stands_alone)):
            return False
        is_unknown = bool(change.reading.lost) and not asked_before
        return change.has_subject or self._stands_alone or is_unknown

    @cached_property
    def _likely(self) -> Change | Refusal:
        return likely_change(self._question, self._lexicon, self._inquiry.table)

    # ------------------------------------------------------------------------------------------------ what was before

    @cached_property
    def resumed(self) -> "_Conversation | None":
        """The question before, completed by this answer to its question back; None when this is no such answer."""
        turn = self._history[-1] if self._history else None
        if turn is None or turn.sql is not None or turn.question_type != "DATABASE":
            return None
        pending = self._pending(turn)
        if pending is None:
            return None
        is_chinese = language_of(without_courtesy(pending.question)) == "zh"
        settled = settled_by(self._question, pending.missing, pending.settled, self._lexicon, is_chinese)
        if settled is None:
            return None
        before = replace(self._inquiry, question=pending.question, history=self._history[: -pending.turns])
        return _Conversation(before, settled, pending.turns)

    def _pending(self, turn: Turn) -> Pending | None:
        if turn.understood is not None:
            return pending_from_json(turn.understood, self._inquiry.catalog)
        made = self._read_again(turn)
        missing = made.missing if isinstance(made, Refusal) else None
        return Pending(turn.question, missing) if missing is not None else None

    @cached_property
    def earlier(self) -> Earlier | None:
        """The last answered question about the data; None when there is none, or rules don't understand it."""
        turn = self._answered
        query = self._query_of(turn) if turn is not None else None
        if turn is None or query is None:
            return None
        return Earlier(turn.question, query, turn is self._asked[-1])

    def _query_of(self, turn: Turn) -> Query | None:
        if turn.understood is not None:
            return query_from_json(turn.understood, self._inquiry.catalog)
        made = self._read_again(turn)
        if isinstance(made, Refusal):
            return None
        likely = likely_change(turn.question, self._lexicon, self._inquiry.table)
        needs_more = goes_on(likely, turn.question, lambda: True)
        return None if needs_more and made.sql != turn.sql else made.query

    def _read_again(self, turn: Turn) -> Understanding | Refusal:
        """What rules understand of a turn's question by itself, because a model answered it."""
        return _understood_alone(replace(self._inquiry, question=turn.question, history=()))

    @cached_property
    def _answered(self) -> Turn | None:
        return next((one for one in reversed(self._asked) if one.sql is not None), None)

    @property
    def _asked(self) -> list[Turn]:
        return [turn for turn in self._history if turn.question_type == "DATABASE"]

    # ------------------------------------------------------------------------------------------------------- by itself

    @cached_property
    def _alone(self) -> Understanding | Refusal:
        inquiry, pointer = self._inquiry, self._pointer
        if pointer is not None and pointer.table is None:  # "that month" names no month
            inquiry = replace(inquiry, question=inquiry.question.replace(pointer.words, " "))
        return _understood_alone(inquiry, self._settled)

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
        other = self._likely if _asked_before(self._inquiry) else None
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
        turn = self._answered
        return turn is not None and single_name(turn) and self._pronoun is not None and self._stands_alone

    def _pointed(self) -> Understanding | None:
        """The question about the one thing in the result before that it points at; None where it points at nothing.

        Raises:
            Refusal: it is not clear which one is meant, or rules can't answer the question.
        """
        turn, pointer = self._answered, self._pointer
        query = self.earlier.query if self.earlier is not None else None
        if pointer is not None and turn is None and pointer.unit is None:
            pointer = None  # without a question before, `这家店` only names a table
        words = pointer.words if pointer is not None else self._pronoun if self._history else None
        if words is None:
            return None
        conditions = row_conditions(pointer, turn, query, self._lexicon) if turn is not None else ()
        if conditions:
            return self._about(conditions, words)
        if pointer is None and self.earlier is not None and self.earlier.query.conditions:
            return self._continued(self.earlier)
        raise which_one(words)

    def _about(self, conditions: tuple[Condition, ...], words: str) -> Understanding:
        """The question with conditions that stand for its `words`, which only point at something."""
        if isinstance(self._alone, Refusal):
            raise self._alone
        if isinstance(self._likely, Refusal):
            raise self._likely
        change, query = self._likely, self._alone.query
        pointed = Query(conditions[0].column.table, conditions=conditions)
        moved = conditions_for(change.asked, pointed, _figured(query), [])
        if len(moved) < len(conditions):
            raise which_one(words)
        meant = " ".join(_written(one.operands[0]) for one in conditions)
        change.notes = [Text(f"“{words}”指“{meant}”。", f'"{words}" is "{meant}".')]
        return self._rendered(change, replace(query, conditions=(*query.conditions, *moved)), self.earlier)

    # -------------------------------------------------------------------------------------------------------- going on

    def _continued(self, earlier: Earlier) -> Understanding:
        """The question merged with the earlier one; alone if they can't be merged and it is complete.

        Raises:
            Refusal: neither is possible.
        """
        may_stand_alone = False
        try:
            changes = read_change(
                self._question,
                self._lexicon,
                hint=self._inquiry.table,
                context=_context(earlier.query),
                year=year_of(self._question, earlier.query),
                settled=self._settled,
            )
            change = changes[0]
            may_stand_alone = change.has_subject and not change.cues & {"these", "only", "add"}
            may_stand_alone = may_stand_alone and self._pronoun is None
            if change.asks and "replace" not in change.cues and isinstance(self._alone, Understanding):
                return self._asked_under(change, earlier, self._alone)
            return self._first_edited(changes, earlier)
        except Refusal as refusal:
            if not may_stand_alone or isinstance(self._alone, Refusal):
                raise not_continued(refusal, earlier.question) from refusal
            why = grounds(refusal)
            note = Text(f"{why.zh}；已作为独立的问题回答。", f"Answered as a question of its own: {why.en}.")
            return replace(self._alone, warnings=(*self._alone.warnings, note.to(self._inquiry.lang)))

    def _first_edited(self, changes: list[Change], earlier: Earlier) -> Understanding:
        """The earlier query as the first of the changes that it can have wants it.

        Raises:
            Refusal: it can have none; that of the likeliest.
        """
        refused: Refusal | None = None
        for change in changes:
            try:
                refuse_lost(change.asked, change.reading)
                change.notes += notes_on_values(change.asked)
                return self._rendered(change, edited(earlier.query, change), earlier)
            except Refusal as refusal:
                refused = refused or refusal
                if change.parts.doubts:
                    break
        assert refused is not None
        raise refused

    def _asked_under(self, change: Change, earlier: Earlier, alone: Understanding) -> Understanding:
        """The question about another table, under the conditions of the earlier one: `那店铺有几家？`."""
        query = alone.query
        said = {condition.column for condition in query.conditions}
        carried = conditions_for(
            change.asked, replace(earlier.query, base=_figured(earlier.query)), query.base, []
        )
        kept = tuple(one for one in carried if one.column not in said)
        if not kept:
            if self._pronoun is not None:
                raise which_one(self._pronoun)
            few = [one.mark.text for one in change.asked.question.words if one.mark.arg in ("these", "their")]
            if few and (earlier.query.limit is not None or earlier.query.having):
                raise unused_words(few)  # no condition tells the three rows that 它们 means after "top 3" from others
            return alone
        names = listed(named(change.asked.question, one.column.table, one.column.column) for one in kept)
        change.notes = [
            Text(
                f"沿用了上一个问题对“{names.zh}”的限定。",
                f'Still restricted by "{names.en}", as in the previous question.',
            )
        ]
        return self._rendered(change, replace(query, conditions=(*query.conditions, *kept)), earlier)

    def _rendered(self, change: Change, query: Query, earlier: Earlier | None) -> Understanding:
        """The merged query with its statement.

        Raises:
            Refusal: no correct statement can be made of it.
        """
        try:
            query, sql = _rendered_as_before(change, query, earlier.query if earlier else query)
        except AmbiguousPath as ambiguity:
            raise ambiguous_way(ambiguity.target, ambiguity.choices, self._lexicon) from ambiguity
        except (Unrenderable, LookupError) as failure:
            raise not_combinable() from failure
        warnings = tuple(one.to(self._inquiry.lang) for one in _warnings(change, earlier))
        told = (*notes_on_values(change.asked), *assumptions(change.asked, query))
        return Understanding(query, sql, warnings, told)


def _understood_alone(inquiry: Inquiry, settled: Settled = NOTHING_SETTLED) -> Understanding | Refusal:
    try:
        return understand(inquiry, settled)
    except Refusal as refusal:
        return refusal.copy()


def _written(operand: Operand) -> str:
    """A value for a sentence; of a period its first day."""
    return str(operand.start.day) if isinstance(operand, Period) and operand.start is not None else str(operand)


_SPOKEN_OF, _SHOWN = 0.9, 1.4  # weights; a table that the follow-up names itself has 1


def _context(query: Query) -> dict[TableKey, float]:
    """The tables that a follow-up is likely about, with their weights; those that were shown weigh more."""
    shown = [one.table for one in query.dimensions if one.column is None] if query.measures else [query.base]
    return dict.fromkeys(touched(query), _SPOKEN_OF) | dict.fromkeys(shown, _SHOWN)


def _figured(query: Query) -> TableKey:
    return query.measures[0].table if query.measures else query.base


def _rendered_as_before(change: Change, query: Query, earlier: Query) -> tuple[Query, str]:
    """The query and its statement; of several references that may be meant, the one of the earlier query is taken."""
    try:
        return rendered(change.asked.question, query)
    except AmbiguousPath as ambiguity:
        columns = (*earlier.columns, *(one.column for one in earlier.conditions))
        said = [*((one.table, one.via) for one in columns), *((one.table, one.via) for one in earlier.dimensions)]
        roles = {via for table, via in said if table == ambiguity.target and via is not None}
        if len(roles) != 1:
            raise
        return rendered(change.asked.question, with_role(query, ambiguity.target, roles.pop()))


def _warnings(change: Change, earlier: Earlier | None) -> Iterator[Text]:
    if earlier is not None and not earlier.is_latest:
        yield Text(f"接着“{earlier.question}”回答。", f'This goes on from "{earlier.question}".')
    yield from dict.fromkeys(change.notes)
