"""Follow-ups to offer after an answer, made from its structure: another group, another period.

Asked next in the same conversation, they go on from the answered question. Each is read again by
the rules before it is offered, has to keep all of the question that it does not say to change, and
is one that finds rows where the answered question did.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import partial

from common.inquiry import Inquiry
from common.meanings import TableKey
from common.text import Lang, Text
from common.values import Column, Offer, Turn
from knowledge.language.spoken_names import spoken_name
from knowledge.values.identity import names_people
from rules.answering.groupings import is_worth_grouping_by, row_name
from rules.composing.understanding import Understanding
from rules.conversation.conversation import earlier_query, understand_in_context
from rules.linking.moments import Period, Unit
from rules.query.query import (
    ColumnRef,
    Condition,
    Dimension,
    Either,
    Measure,
    Query,
    measured_table,
)
from rules.query.query_json import to_json
from rules.schema.lexicon import Lexicon, lexicon_for
from rules.schema.table_facts import Facts
from rules.sql.render import render
from rules.words.limits import with_bounded_questions

MOST_FOLLOW_UPS = 3
_MOST_TRIED = 8  # each a reading, whose processor time is bounded
_TOP = 5
_LONG = 20  # rows of a list, of which the count tells more
_SPLIT = Text("按{}拆分", "split by {}")
_SPLIT_FURTHER = Text("再按{}拆分", "also split by {}")
_MOST_GROUPS = 1  # of a question that is split further; more make a table that nobody reads
_FIRST = Text("只看前{}名", "only the top {}")
_TOP_OF_MORE = 10
_MORE = Text("前{}名呢", "the top {}")
_SHARE = Text("各占多少比例", "as a percentage")
_BEFORE: dict[Unit, Text] = {
    "day": Text("前一天呢", "the day before"),
    "week": Text("前一周呢", "the week before"),
    "month": Text("上一个月呢", "the month before"),
    "quarter": Text("上一个季度呢", "the quarter before"),
    "year": Text("上一年呢", "the year before"),
}
_COUNT = Text("一共有多少", "how many are there?")
_FINER: dict[Unit | None, Unit] = {
    None: "month",
    "year": "month",
    "quarter": "month",
    "month": "day",
}
_UNITS: dict[Unit, Text] = {"month": Text("月", "month"), "day": Text("日", "day")}
_DAYS: dict[Unit, float] = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}


@dataclass(frozen=True)
class NextQuestion:
    """A follow-up that is understood.

    Attributes:
        kind: only one of each kind is offered.
        least_rows: how many rows the answer must have to say anything new.
        left_out: counts the answer's rows that it would leave out, because they belong to no group;
            None where there can't be any.
        may_find_nothing: whether it is about other rows than the answer, so that only running it
            tells whether there are any.
    """

    kind: str
    offer: Offer
    least_rows: int = 1
    left_out: str | None = None
    may_find_nothing: bool = False

    @property
    def is_sure(self) -> bool:
        """Tell whether it may be offered without a look at the rows."""
        return self.left_out is None and not self.may_find_nothing


@dataclass(frozen=True)
class _Candidate:
    """A follow-up that may be offered.

    Attributes:
        is_meant: tells whether a query is the one that the text is meant to ask for.
        least_rows, may_find_nothing: see `NextQuestion`.
    """

    kind: str
    text: str
    is_meant: Callable[[Query], bool]
    least_rows: int = 1
    may_find_nothing: bool = False


def next_questions(inquiry: Inquiry, sql: str) -> Iterator[NextQuestion | None]:
    """Yield follow-ups to the question that `sql` answers, at most three that are sure.

    There are several of one kind where all but the last are not sure. None for each that was read
    and is not understood, because each reading takes a while. Nothing when the rules don't
    understand the question.
    """
    inquiry = with_bounded_questions(inquiry)
    made = understand_in_context(inquiry)
    if not isinstance(made, Understanding):
        return

    understood = to_json(made.query) if made.sql == sql else None
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", sql=sql, understood=understood)
    after = replace(inquiry, history=(*inquiry.history, turn))
    questions: set[str] = set()
    tried = 0
    lexicon = lexicon_for(inquiry)
    for candidate in _candidates(made.query, lexicon, inquiry.lang):
        if len(questions) == MOST_FOLLOW_UPS or tried == _MOST_TRIED:
            break
        if candidate.kind in questions:
            continue

        tried += 1
        read = _understood(after, candidate.text, candidate.is_meant)
        if read is None or read.sql == sql:  # which says the same again
            yield None
            continue

        question = NextQuestion(
            candidate.kind,
            Offer(candidate.text, read.sql),
            candidate.least_rows,
            _left_out(made.query, read.query, lexicon),
            candidate.may_find_nothing,
        )
        if question.is_sure:
            questions.add(candidate.kind)

        yield question


def _understood(
    inquiry: Inquiry, question: str, is_meant: Callable[[Query], bool]
) -> Understanding | None:
    """Return what the rules read out of the question, if it is what is meant."""
    made = understand_in_context(replace(inquiry, question=question))
    if not isinstance(made, Understanding):
        return None

    return made if is_meant(made.query) else None


def _left_out(query: Query, read: Query, lexicon: Lexicon) -> str | None:
    """Write a statement that counts the rows of a query that have no group in the one read.

    These are the rows whose reference on the way to a further group is empty.
    """
    table = measured_table(query)
    missing: dict[Condition, None] = {}
    for group in read.dimensions:
        if group not in query.dimensions:
            missing.update(dict.fromkeys(_empty_references(table, group, lexicon)))

    if not missing:
        return None

    counted = Query(
        table,
        measures=(Measure("count", table),),
        conditions=query.conditions,
        related=query.related,
        either=(*query.either, Either(tuple(missing))),
        with_deleted=query.with_deleted,
    )
    return render(counted, lexicon.schema, lexicon.graph)


def _empty_references(table: TableKey, group: Dimension, lexicon: Lexicon) -> Iterator[Condition]:
    """Yield the conditions under which a row of the table belongs to no row of the group's."""
    for step in lexicon.graph.up(table, group.table, group.via) or ():
        child = lexicon.schema.table(step.child)
        for name in step.columns:
            column = child.column(name)
            if column is not None and column.nullable:
                yield Condition(ColumnRef(step.child, name), "null")


# ------------------------------------------------------------------------------
# candidates


def _candidates(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    if query.counts_rows:
        return
    if not query.measures:
        yield from _count_of_listed(query, lang)
        return

    is_of_chosen_groups = query.limit is not None or bool(query.having or query.top_per)
    if is_of_chosen_groups:  # split otherwise, other groups would be chosen
        yield from _longer_ranking(query, lang)
    else:
        yield from _shorter_ranking(query, lang)
        yield from _splits_by_time(query, lexicon, lang)
        yield from _splits_by_group(query, lexicon, lang)

    yield from _period_before(query, lexicon, lang)
    yield from _shares(query, lang)


def _keeps(read: Query, query: Query, *changed: str) -> bool:
    """Tell whether a query has all parts of the other one, but for those that are `changed`."""
    kept = [field.name for field in fields(Query) if field.name not in changed]
    return all(getattr(read, name) == getattr(query, name) for name in kept)


def _is_ranking(query: Query) -> bool:
    """Tell whether the query gives one figure for each of some groups that are no periods."""
    if not query.dimensions or query.top_per:
        return False

    return all(dimension.bucket is None for dimension in query.dimensions)


def _count_of_listed(query: Query, lang: Lang) -> Iterator[_Candidate]:
    if query.limit is not None or query.distinct:  # there are more than were listed
        return

    def is_count(read: Query) -> bool:
        counts = [measure.function for measure in read.measures] == ["count"]
        return counts and _keeps(read, query, "measures", "columns", "order")

    yield _Candidate("count", _COUNT.to(lang), is_count, _LONG)


def _longer_ranking(query: Query, lang: Lang) -> Iterator[_Candidate]:
    if query.limit is None or query.limit >= _TOP_OF_MORE:
        return
    if _is_ranking(query):
        text = _MORE.to(lang).format(_TOP_OF_MORE)
        is_longer = partial(_is_cut_at, query, _TOP_OF_MORE)
        yield _Candidate("more", text, is_longer, query.limit)


def _is_cut_at(query: Query, limit: int, read: Query) -> bool:
    """Tell whether it is the same ranking with another limit."""
    return read.limit == limit and _keeps(read, query, "limit")


def _shorter_ranking(query: Query, lang: Lang) -> Iterator[_Candidate]:
    if _is_ranking(query):
        text = _FIRST.to(lang).format(_TOP)
        yield _Candidate("first", text, partial(_is_cut_at, query, _TOP), _TOP + 1)


def _shares(query: Query, lang: Lang) -> Iterator[_Candidate]:
    if query.limit is not None or not _is_ranking(query):
        return
    if len(query.measures) != 1 or query.measures[0].is_share:
        return
    if query.measures[0].function not in ("sum", "count"):
        return  # others don't add up

    def has_share(read: Query) -> bool:
        shares = any(measure.is_share for measure in read.measures)
        return shares and _keeps(read, query, "measures")

    yield _Candidate("share", _SHARE.to(lang), has_share, least_rows=2)


def _splits_by_time(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    facts = lexicon.schema.facts[query.measures[0].table]
    periods = _conditions_on_periods(query)
    finer = _FINER.get(_grain(periods[0]) if periods else None)
    if finer is None or not facts.dates:
        return
    if facts.is_entity and not periods:
        return
    if any(dimension.is_of_time for dimension in query.dimensions):
        return

    def is_meant(read: Query) -> bool:
        return _is_split(read, query, lambda group: group.bucket == finer)

    text = _split_text(query, _UNITS[finer].to(lang), lang)
    yield _Candidate("time", text, is_meant)


def _split_text(query: Query, group: str, lang: Lang) -> str:
    """Return the words by which a figure is split by a group, further if it has groups already."""
    text = _SPLIT_FURTHER if query.dimensions else _SPLIT
    return text.to(lang).format(group)


def _splits_by_group(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    for group in _split_groups(query, lexicon):
        text = _split_text(query, _group_name(group, lexicon, lang), lang)
        yield _Candidate("split", text, partial(_is_split_by, query, group))


def _conditions_on_periods(query: Query) -> list[Condition]:
    return [condition for condition in query.conditions if condition.operator == "during"]


def _is_split(read: Query, query: Query, is_meant: Callable[[Dimension], bool]) -> bool:
    """Tell whether it is the same figure under the same conditions, by the meant group more."""
    if len(query.dimensions) > _MOST_GROUPS:
        return False

    added = [group for group in read.dimensions if group not in query.dimensions]
    if len(added) != 1 or len(read.dimensions) != len(query.dimensions) + 1:
        return False

    return is_meant(added[0]) and _keeps(read, query, "dimensions", "order")


def _is_split_by(query: Query, group: Dimension, read: Query) -> bool:
    """Tell whether it is the query, split by that group, whatever reference leads to it."""
    return _is_split(read, query, partial(_is_group, group))


def _group_name(group: Dimension, lexicon: Lexicon, lang: Lang) -> str:
    """Return what one group is called: a column's name, or one row's of the table."""
    if group.column is None:
        return row_name(lexicon.schema.table(group.table), lang)

    return spoken_name(lexicon.schema.column(group.table, group.column), lang)


def _split_groups(query: Query, lexicon: Lexicon) -> Iterator[Dimension]:
    """Yield the groups, beside time, that the measured rows may be split by.

    These are the things that the rows belong to, and columns of few values, but for those of which
    each group that there is has one only.
    """
    schema = lexicon.schema
    table: TableKey = measured_table(query)
    split_already = _told(query, lexicon)
    for key, steps in sorted(lexicon.graph.above(table).items(), key=lambda item: item[1]):
        facts = schema.facts[key]
        if key in split_already:
            continue

        for column in facts.table.columns:
            is_told = (key, column.name) in split_already
            if is_told or _tells_row(facts, column):
                continue
            if is_worth_grouping_by(facts.table, column):
                yield Dimension(key, column.name)

        if steps > 0 and facts.is_entity:
            yield Dimension(key)


def _told(query: Query, lexicon: Lexicon) -> set[TableKey | tuple[TableKey, str | None]]:
    """Return the columns and tables of which each group of the query has one value, or one row."""
    columns = {(condition.column.table, condition.column.column) for condition in query.conditions}
    shown: set[TableKey | tuple[TableKey, str | None]] = {*columns}
    shown |= {(dimension.table, dimension.column) for dimension in query.dimensions}
    shown |= {(measure.table, measure.column) for measure in query.measures}
    things = {dimension.table for dimension in query.dimensions if dimension.column is None}
    things |= {key for key, name in columns if name in lexicon.schema.facts[key].display}
    for key, name in columns:  # a condition on a reference tells the row that it leads to, or none
        things |= {edge.parent for edge in lexicon.schema.facts[key].edges if name in edge.columns}

    for thing in things:
        shown |= {thing, *lexicon.graph.above(thing)}

    return shown


def _tells_row(facts: Facts, column: Column) -> bool:
    """Tell whether a column names or identifies a row or somebody, or refers to a row."""
    names = {*facts.display, *facts.key, *facts.reference_columns}
    return column.name in names or names_people(facts.table, column)


def _period_before(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    """Yield the same question about the period before, if there are data of it."""
    periods = _conditions_on_periods(query)
    if len(periods) != 1:
        return

    period = periods[0]
    grain = _grain(period)
    if grain is None or not _has_data_before(period, grain, lexicon):
        return

    others = [condition for condition in query.conditions if condition is not period]

    def is_meant(read: Query) -> bool:
        changed = [condition for condition in read.conditions if condition not in others]
        if len(changed) != 1 or len(read.conditions) != len(query.conditions):
            return False

        return _ends_where_begins(changed[0], period) and _keeps(read, query, "conditions")

    yield _Candidate("before", _BEFORE[grain].to(lang), is_meant, may_find_nothing=True)


def _ends_where_begins(earlier: Condition, later: Condition) -> bool:
    """Tell whether the condition's period is the one directly before that of the other."""
    if (earlier.column, earlier.operator) != (later.column, later.operator):
        return False

    first, second = earlier.operands[0], later.operands[0]
    if not isinstance(first, Period) or not isinstance(second, Period):
        return False
    if first.end is None or second.start is None or len(earlier.operands) != 1:
        return False

    today = date.today()
    try:
        return first.end.on(today) == second.start.on(today)
    except (ValueError, OverflowError):
        return False


def _grain(condition: Condition) -> Unit | None:
    """Return the unit of time that is the condition's only period; None for another span."""
    if len(condition.operands) != 1:
        return None

    period = condition.operands[0]
    return period.grain if isinstance(period, Period) else None


def _has_data_before(condition: Condition, grain: Unit, lexicon: Lexicon) -> bool:
    """Tell whether the column has dates in the period before that of the condition."""
    period = condition.operands[0]
    column = lexicon.schema.column(condition.column.table, condition.column.column)
    if not isinstance(period, Period) or period.start is None:
        return False
    if column.period is None:
        return False

    try:
        first, last = map(date.fromisoformat, column.period)
        begins = period.start.on(date.today())
    except (ValueError, OverflowError):
        return False

    return first < begins and (begins - last).days < _DAYS[grain]


# ------------------------------------------------------------------------------
# splits of a last result


def splits_of_last(inquiry: Inquiry) -> Iterator[Offer]:
    """Yield questions that split the figure of the last result, each understood by the rules."""
    inquiry = with_bounded_questions(inquiry)
    query = earlier_query(inquiry)
    if query is None:
        return

    lexicon = lexicon_for(inquiry)
    for name, is_meant in _named_groups(query, lexicon, inquiry.lang):
        question = _split_text(query, name, inquiry.lang)
        read = _understood(inquiry, question, partial(_splits, query, is_meant))
        if read is not None:
            yield Offer(question, read.sql)


def _splits(query: Query, is_meant: Callable[[Dimension], bool], read: Query) -> bool:
    """Tell whether it is the same figure, or the number of the rows that were listed, by the meant
    group more.
    """
    if query.measures:
        return _is_split(read, query, is_meant)

    kept = _keeps(read, query, "dimensions", "measures", "columns", "order")
    return kept and any(map(is_meant, read.dimensions))


def _named_groups(
    query: Query, lexicon: Lexicon, lang: Lang
) -> Iterator[tuple[str, Callable[[Dimension], bool]]]:
    """Yield the groups that the measured rows may be split by, time first, by their names."""
    facts = lexicon.schema.facts[measured_table(query)]
    if facts.dates and not facts.is_entity:
        yield _UNITS["month"].to(lang), lambda group: group.bucket == "month"

    for group in _split_groups(query, lexicon):
        yield _group_name(group, lexicon, lang), partial(_is_group, group)


def _is_group(meant: Dimension, read: Dimension) -> bool:
    """Tell whether it is the meant group, whatever reference leads to it."""
    return replace(read, via=None) == meant
