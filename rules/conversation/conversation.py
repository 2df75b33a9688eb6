"""A question in its conversation: by itself when it stands on its own, else as a change to the one before it.

The earlier question's structure is not stored anywhere; it is worked out again from the conversation's questions, from
the last one that stood on its own onwards.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from common.inquiry import Inquiry
from common.text import Lang, Text
from common.values import Turn
from rules.conversation.assumptions import assumptions
from rules.conversation.follow_ups import LONGEST, Change, goes_on, read_change
from rules.conversation.merging import merged
from rules.conversation.planner import Understanding, rendered, understand, with_role
from rules.conversation.pointing import meant_condition, pointed_condition, pointer_of, pronoun_of, single_name
from rules.conversation.resuming import completed
from rules.planning.carrying import conditions_for, listed, named
from rules.planning.placement import touched
from rules.planning.plan import Plan
from rules.query.query import Condition, Query
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
from rules.schema.schema import TableKey
from rules.sql.statement import Unrenderable
from rules.words.result_questions import kind_of_doubt
from rules.words.talk import REWORDED
from rules.words.writes import pasted_sql, write_request


@dataclass(frozen=True)
class Earlier:
    """The question that a follow-up goes on from.

    Attributes:
        query: its structure, in which its own earlier questions are merged.
        is_latest: whether no question about the data has come after it, not even one that failed.
    """

    question: str
    query: Query
    is_latest: bool


@dataclass(frozen=True)
class _Outcome:
    """What was made of a question. It must not hold the catalogue, whose lexicon keeps it."""

    question: tuple[str, Lang, str | None]
    history: tuple[Turn, ...]
    made: Understanding | Callable[[], Refusal]

    def understanding(self) -> Understanding:
        """The structure and the statement.

        Raises:
            Refusal: there is none.
        """
        if isinstance(self.made, Understanding):
            return self.made
        raise self.made()


_MOST_KEPT = 32  # questions, the newest
_OUTCOMES: "WeakKeyDictionary[Lexicon, deque[_Outcome]]" = WeakKeyDictionary()


def understand_in_context(inquiry: Inquiry) -> Understanding:
    """The structure and the statement of a question, by itself or together with what was asked before.

    A question is understood to classify it, to write its SQL and to tell its result, but worked out once.

    Raises:
        Refusal: rules can't answer it.
    """
    kept = _OUTCOMES.setdefault(lexicon_of(inquiry.catalog), deque(maxlen=_MOST_KEPT))
    question = (inquiry.question, inquiry.lang, inquiry.table)
    for known in reversed(kept):
        if known.question == question and known.history == inquiry.history:
            return known.understanding()
    outcome = _Outcome(question, inquiry.history, _made_of(inquiry))
    kept.append(outcome)
    return outcome.understanding()


def is_understood(inquiry: Inquiry) -> bool:
    """Whether rules have a query for the question."""
    try:
        understand_in_context(inquiry)
    except Refusal:
        return False
    return True


def _made_of(inquiry: Inquiry) -> Understanding | Callable[[], Refusal]:
    try:
        return _understood_in_context(inquiry)
    except Refusal as refusal:  # kept as a copy: one that was raised holds its whole stack
        return partial(Refusal, refusal.reason, refusal.text, words=refusal.words, choices=refusal.choices)


def _understood_in_context(inquiry: Inquiry) -> Understanding:
    if (resumed := _resumed(inquiry)) is not None:
        return resumed
    if not continues(inquiry):
        return _pointed(inquiry) or _standing(inquiry)
    earlier = _earlier(inquiry)
    if isinstance(earlier, Earlier):
        return _continued(inquiry, earlier)
    pronoun = pronoun_of(inquiry.question, lexicon_of(inquiry.catalog))
    if pronoun is not None:
        raise which_one(pronoun)
    alone = _alone(inquiry)
    if alone is None and earlier is not None:
        raise not_by_rules(earlier.question)
    return alone or understand(inquiry)


def _resumed(inquiry: Inquiry) -> Understanding | None:
    """The question before, which asked back, with this answer to it; None when it did not, or this is none."""
    turn = inquiry.history[-1] if inquiry.history else None
    if turn is None or turn.sql is not None or turn.question_type != "DATABASE":
        return None
    pending = _as_asked(inquiry, turn)
    try:
        understand_in_context(pending)
    except Refusal as refusal:
        lexicon = lexicon_of(inquiry.catalog)
        for question in completed(turn.question, refusal, inquiry.question, lexicon):
            understanding = _alone(replace(pending, question=question))
            if understanding is not None:
                return understanding
    return None


def _standing(inquiry: Inquiry) -> Understanding:
    """The question by itself.

    Raises:
        Refusal: rules can't answer it; of a follow-up with a word that names nothing, for that word.
    """
    try:
        return understand(inquiry)
    except Refusal as refusal:
        if any(turn.question_type == "DATABASE" for turn in inquiry.history):
            _name_unknown(inquiry, refusal)
        raise


def _name_unknown(inquiry: Inquiry, refusal: Refusal) -> None:
    try:
        read_change(inquiry.question, lexicon_of(inquiry.catalog), hint=inquiry.table, asks_back=False)
    except Refusal as other:
        if other.reason == "missing_database_info" and refusal.reason != other.reason:
            raise other from refusal


def _pointed(inquiry: Inquiry) -> Understanding | None:
    """The question about the one thing that it points at in the result before; None where it points at nothing.

    Raises:
        Refusal: it is not clear which one is meant, or rules can't answer the question.
    """
    turn = _answered(inquiry)
    lexicon = lexicon_of(inquiry.catalog)
    pointer = pointer_of(inquiry.question, lexicon)
    if turn is None and pointer is not None and pointer.unit is not None:
        raise which_one(pointer.words)
    if turn is None or pointer is None:
        return _meant(inquiry, turn)
    if len(inquiry.question) > LONGEST:
        raise which_one(pointer.words)
    earlier = _earlier(inquiry)
    query = earlier.query if isinstance(earlier, Earlier) else None
    condition = pointed_condition(pointer, turn, query, lexicon)
    return _about(inquiry, turn, earlier, condition, pointer.words)


def _answered(inquiry: Inquiry) -> Turn | None:
    return next((one for one in reversed(inquiry.history) if one.sql is not None), None)


def _meant(inquiry: Inquiry, turn: Turn | None) -> Understanding | None:
    """The question about the one thing that its `它` means; None where it has none.

    Raises:
        Refusal: it is not clear which one is meant, or rules can't answer the question.
    """
    lexicon = lexicon_of(inquiry.catalog)
    pronoun = pronoun_of(inquiry.question, lexicon) if inquiry.history else None
    if pronoun is None:
        return None
    if turn is None or len(inquiry.question) > LONGEST:
        raise which_one(pronoun)
    earlier = _earlier(inquiry)
    query = earlier.query if isinstance(earlier, Earlier) else None
    condition = meant_condition(turn, query, lexicon)
    if condition is not None:
        return _about(inquiry, turn, earlier, condition, pronoun)
    if isinstance(earlier, Earlier) and earlier.query.conditions:
        return _continued(inquiry, earlier)
    raise which_one(pronoun)


def _about(
    inquiry: Inquiry, turn: Turn, earlier: Earlier | Turn | None, condition: Condition, words: str
) -> Understanding:
    """The question under a condition that it only points at by `words`."""
    lexicon = lexicon_of(inquiry.catalog)
    alone = understand(inquiry)
    plan = read_change(inquiry.question, lexicon, hint=inquiry.table, asks_back=False).plan
    moved = conditions_for(plan, Query(condition.column.table, conditions=(condition,)), _figured(alone.query))
    if not moved:
        raise which_one(words)
    meant = turn.rows[0][0]
    plan.warnings = [Text(f"“{words}”指“{meant}”。", f'"{words}" is "{meant}".')]
    wider = replace(alone.query, conditions=(*alone.query.conditions, *moved))
    return _understood(inquiry, plan, wider, earlier if isinstance(earlier, Earlier) else None)


def earlier_query(inquiry: Inquiry) -> Query | None:
    """The structure of the last answered question about the data, as far as rules know it."""
    earlier = _earlier(inquiry)
    return earlier.query if isinstance(earlier, Earlier) else None


def continues(inquiry: Inquiry) -> bool:
    """Whether the question goes on from an earlier one about the data."""
    if not any(turn.question_type == "DATABASE" for turn in inquiry.history):
        return False
    return _goes_on(inquiry)


def written_operation(inquiry: Inquiry) -> str | None:
    """The operation that the question orders; `改成平均值` after an answer orders none."""
    operation = write_request(inquiry.question)
    if operation is not None and REWORDED.search(inquiry.question) and continues(inquiry):
        return None
    return operation


def _goes_on(inquiry: Inquiry) -> bool:
    if kind_of_doubt(inquiry.question) is not None or _resumed(inquiry) is not None:
        return False
    lexicon = lexicon_of(inquiry.catalog)
    if pointer_of(inquiry.question, lexicon) is not None or _means_one(inquiry, lexicon):
        return False
    return goes_on(inquiry.question, lexicon, inquiry.table, lambda: _alone(inquiry) is not None)


def _means_one(inquiry: Inquiry, lexicon: Lexicon) -> bool:
    """Whether a complete question speaks of the one thing that the result before it shows."""
    turn = _answered(inquiry)
    one = turn is not None and single_name(turn) and pronoun_of(inquiry.question, lexicon) is not None
    return one and _alone(inquiry) is not None


def _alone(inquiry: Inquiry) -> Understanding | None:
    try:
        return understand(inquiry)
    except Refusal:
        return None


# ---------------------------------------------------------------------------------------------------- what was before


def _earlier(inquiry: Inquiry) -> Earlier | Turn | None:
    """The last answered question about the data; the turn itself when rules can't tell what it asked."""
    asked = [turn for turn in inquiry.history if turn.question_type == "DATABASE"]
    chain: list[Turn] = []
    for turn in reversed(asked):
        if pasted_sql(turn.question) is not None:
            return turn if not chain and turn.sql is not None else _replayed(inquiry, chain, asked)
        if turn.sql is None or write_request(turn.question) is not None and not REWORDED.search(turn.question):
            continue
        chain.insert(0, turn)
        if not _goes_on(_as_asked(inquiry, turn)):
            break
    return _replayed(inquiry, chain, asked)


def _replayed(inquiry: Inquiry, chain: list[Turn], asked: list[Turn]) -> Earlier | Turn | None:
    """The first turn's structure with every later one merged into it."""
    earlier: Earlier | Turn | None = None
    for turn in chain:
        try:
            earlier = Earlier(turn.question, _step(inquiry, turn, earlier).query, turn is asked[-1])
        except Refusal:
            earlier = turn
    return earlier


def _step(inquiry: Inquiry, turn: Turn, earlier: Earlier | Turn | None) -> Understanding:
    """A turn of the chain understood again.

    Raises:
        Refusal: it is not by rules that it was understood.
    """
    again = _as_asked(inquiry, turn)
    if not _goes_on(again):
        return _resumed(again) or _pointed(again) or understand(again)
    if isinstance(earlier, Earlier):
        return _continued(again, earlier)
    alone = _alone(again)
    if alone is None or alone.sql != turn.sql:  # whoever answered it knew what it went on from
        raise not_by_rules(turn.question)
    return alone


def _as_asked(inquiry: Inquiry, turn: Turn) -> Inquiry:
    """The turn's question as it was asked, after the turns before it."""
    place = next(index for index, one in enumerate(inquiry.history) if one is turn)
    return replace(inquiry, question=turn.question, history=inquiry.history[:place])


# ------------------------------------------------------------------------------------------------------------ going on


def _continued(inquiry: Inquiry, earlier: Earlier) -> Understanding:
    """The question merged with the earlier one; by itself where that is impossible and it can stand alone.

    Raises:
        Refusal: neither is possible.
    """
    lexicon = lexicon_of(inquiry.catalog)
    may_stand_alone = False
    try:
        change = read_change(
            inquiry.question,
            lexicon,
            hint=inquiry.table,
            context=_context(earlier.query),
            year=year_of(inquiry.question, earlier.query),
        )
        may_stand_alone = change.has_subject and not change.cues & {"these", "only", "add"}
        may_stand_alone = may_stand_alone and pronoun_of(inquiry.question, lexicon) is None
        alone = _alone(inquiry) if change.asks and "replace" not in change.cues else None
        if alone is not None:
            return _asked_under(inquiry, change, earlier, alone)
        return _merged(inquiry, change, earlier)
    except Refusal as refusal:
        alone = _alone(inquiry) if may_stand_alone else None
        if alone is None:
            raise not_continued(refusal, earlier.question) from refusal
        why = grounds(refusal)
        note = Text(f"{why.zh}；已作为独立的问题回答。", f"Answered as a question of its own: {why.en}.")
        return replace(alone, warnings=(*alone.warnings, note.to(inquiry.lang)))


_SPOKEN_OF, _SHOWN = 0.9, 1.4  # beside a table that the follow-up names itself: 1


def _context(query: Query) -> dict[TableKey, float]:
    """Tables that a follow-up's words are likely about: those whose things were shown before all."""
    shown = [one.table for one in query.dimensions if one.column is None] if query.measures else [query.base]
    return dict.fromkeys(touched(query), _SPOKEN_OF) | dict.fromkeys(shown, _SHOWN)


def _merged(inquiry: Inquiry, change: Change, earlier: Earlier) -> Understanding:
    return _understood(inquiry, change.plan, merged(earlier.query, change), earlier)


def _asked_under(inquiry: Inquiry, change: Change, earlier: Earlier, alone: Understanding) -> Understanding:
    """`那店铺有几家？`: another thing is asked for, among what the earlier question was restricted to."""
    plan, query = change.plan, alone.query
    named = {condition.column for condition in query.conditions}
    carried = conditions_for(plan, replace(earlier.query, base=_figured(earlier.query)), query.base)
    kept = tuple(one for one in carried if one.column not in named)
    if not kept:
        pronoun = pronoun_of(inquiry.question, plan.reading.lexicon)
        if pronoun is not None:
            raise which_one(pronoun)
        if plural := [mark.text for mark in plan.reading.marks if mark.arg in ("these", "their")]:
            _refuse_the_few(earlier.query, plural)
        return alone
    plan.warnings = [_kept_note(plan, kept)]
    query = replace(query, conditions=(*query.conditions, *kept))
    return _understood(inquiry, plan, query, earlier)


def _refuse_the_few(query: Query, words: list[str]) -> None:
    """`它们` after "the top 3" are three, which no condition tells from the others."""
    if query.limit is not None or query.having:
        raise unused_words(words)


def _figured(query: Query) -> tuple[str, str]:
    return query.measures[0].table if query.measures else query.base


def _kept_note(plan: Plan, kept: tuple[Condition, ...]) -> Text:
    names = listed(named(plan, one.column.table, one.column.column) for one in kept)
    return Text(
        f"沿用了上一个问题对“{names.zh}”的限定。", f'Still restricted by "{names.en}", as in the previous question.'
    )


def _understood(inquiry: Inquiry, plan: Plan, query: Query, earlier: Earlier | None) -> Understanding:
    """The merged query with its statement.

    Raises:
        Refusal: no correct statement can be made of it.
    """
    lexicon = lexicon_of(inquiry.catalog)
    try:
        query, sql = _rendered_as_before(plan, query, earlier.query if earlier else query)
    except AmbiguousPath as ambiguity:
        raise ambiguous_way(ambiguity.target, ambiguity.choices, lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        raise not_combinable() from failure
    return Understanding(query, sql, tuple(_warnings(inquiry, plan, earlier)), assumptions(plan, query))


def _rendered_as_before(plan: Plan, query: Query, earlier: Query) -> tuple[Query, str]:
    """The query and its statement; where the follow-up leaves open which reference is meant, the earlier one is."""
    try:
        return rendered(plan, query)
    except AmbiguousPath as ambiguity:
        columns = (*earlier.columns, *(one.column for one in earlier.conditions))
        said = [(one.table, one.via) for one in columns] + [(one.table, one.via) for one in earlier.dimensions]
        roles = {via for table, via in said if table == ambiguity.target and via is not None}
        if len(roles) != 1:
            raise
        return rendered(plan, with_role(query, ambiguity.target, roles.pop()))


def _warnings(inquiry: Inquiry, plan: Plan, earlier: Earlier | None) -> Iterator[str]:
    if earlier is not None and not earlier.is_latest:
        note = Text(f"接着“{earlier.question}”回答。", f'This goes on from "{earlier.question}".')
        yield note.to(inquiry.lang)
    for warning in plan.warnings:
        yield warning.to(inquiry.lang)
