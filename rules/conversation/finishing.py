"""Finishes what a follow-up gives: the edited query with its statement, and what the answer says of it."""

from collections.abc import Iterator
from dataclasses import replace

from common.text import Lang, Text
from rules.composing.assumptions import assumptions, notes_on_values
from rules.composing.carrying import conditions_for, named
from rules.composing.compose import refuse_lost
from rules.composing.understanding import Understanding, rendered, with_role
from rules.conversation.change import Change, Earlier
from rules.conversation.edits import edited
from rules.conversation.shown_rows import ShownInPart
from rules.query.query import Query, measured_table
from rules.query.refusals import Refusal, ambiguous_way, enumerated, not_combinable, unused_words, which_one
from rules.schema.joins import AmbiguousPath
from rules.sql.statement import Unrenderable


def first_edited(changes: list[Change], earlier: Earlier, lang: Lang) -> Understanding:
    """The earlier query as the first of the changes that it can have wants it.

    Raises:
        Refusal: it can have none; that of the likeliest.
    """
    refused: Refusal | None = None
    for change in changes:
        try:
            change.notes += notes_on_values(change.asked)
            refuse_lost(change.asked, change.reading)
            return finished(change, edited(earlier.query, change), earlier, lang)
        except Refusal as refusal:
            refused = refused or refusal
            if change.parts.doubts or isinstance(refusal, ShownInPart):
                break
    assert refused is not None
    raise refused


def asked_under(
    change: Change, earlier: Earlier, alone: Understanding, pronoun: str | None, lang: Lang
) -> Understanding:
    """The question about another table, under the conditions of the earlier one: `那店铺有几家？`.

    Args:
        pronoun: the word by which the question speaks of the earlier one's thing, if it does.

    Raises:
        Refusal: a word points at something that no condition tells.
    """
    query = alone.query
    said = {condition.column for condition in query.conditions}
    carried = conditions_for(change.asked, replace(earlier.query, base=measured_table(earlier.query)), query.base, [])
    kept = tuple(one for one in carried if one.column not in said)
    if not kept:
        if pronoun is not None:
            raise which_one(pronoun)
        few = [one.mark.text for one in change.asked.question.words if one.mark.arg in ("these", "their")]
        if few and (earlier.query.limit is not None or earlier.query.having):
            raise unused_words(few)  # no condition tells the three rows that 它们 means after "top 3" from others
        return alone
    names = enumerated(dict.fromkeys(named(change.asked.question, one.column.table, one.column.column) for one in kept))
    change.notes = [
        Text(
            f"沿用了上一个问题对“{names.zh}”的限定。", f'Still restricted by "{names.en}", as in the previous question.'
        )
    ]
    return finished(change, replace(query, conditions=(*query.conditions, *kept)), earlier, lang)


def finished(change: Change, query: Query, earlier: Earlier | None, lang: Lang) -> Understanding:
    """The merged query with its statement.

    Raises:
        Refusal: no correct statement can be made of it.
    """
    try:
        query, sql = _rendered_as_before(change, query, earlier.query if earlier else query)
    except AmbiguousPath as ambiguity:
        raise ambiguous_way(ambiguity.target, ambiguity.choices, change.asked.question.lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        raise not_combinable() from failure
    warnings = tuple(one.to(lang) for one in _warnings(change, earlier))
    told = (*notes_on_values(change.asked), *assumptions(change.asked, query))
    return Understanding(query, sql, warnings, told)


def _rendered_as_before(change: Change, query: Query, earlier: Query) -> tuple[Query, str]:
    """The query and its statement; of several references that may be meant, the one of the earlier query is taken."""
    try:
        return rendered(change.asked, query)
    except AmbiguousPath as ambiguity:
        columns = (*earlier.columns, *(one.column for one in earlier.conditions))
        said = [*((one.table, one.via) for one in columns), *((one.table, one.via) for one in earlier.dimensions)]
        roles = {via for table, via in said if table == ambiguity.target and via is not None}
        if len(roles) != 1:
            raise
        return rendered(change.asked, with_role(query, ambiguity.target, roles.pop()))


def _warnings(change: Change, earlier: Earlier | None) -> Iterator[Text]:
    if earlier is not None and not earlier.is_latest:
        yield Text(f"接着“{earlier.question}”回答。", f'This goes on from "{earlier.question}".')
    yield from dict.fromkeys(change.notes)
