"""Questions to ask after an answer, made from its structure: by another group, over time, the period before, the first.

They are follow-ups: asked next in the same conversation they go on from the answered question. Each is read again by
the rules before it is offered, and is one that finds rows where the answered question did.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date

from common.inquiry import Inquiry
from common.meanings import TableKey
from common.text import Lang, Text
from common.values import Offer, Turn
from knowledge.naming import spoken_name
from rules.composing.understanding import Understanding
from rules.conversation.conversation import earlier_query, understand_in_context
from rules.linking.moments import Period, Unit
from rules.query.query import Condition, Query, measured_table
from rules.query.query_json import to_json
from rules.schema.facts import kind_of
from rules.schema.lexicon import Lexicon, lexicon_for

_MOST = 3
_MOST_TRIED = 8
_PATIENCE_S = 0.5  # after which no more are thought of
_MOST_VALUES = 12
_TOP = 5
_LONG = 20  # rows of a list, of which the count tells more
_SPLIT = Text("按{}拆分", "split by {}")
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
_FINER: dict[Unit | None, Unit] = {None: "month", "year": "month", "quarter": "month", "month": "day"}
_UNITS: dict[Unit, Text] = {"month": Text("月", "month"), "day": Text("日", "day")}
_DAYS: dict[Unit, float] = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}


@dataclass(frozen=True)
class NextQuestion:
    """A follow-up that is understood.

    Attributes:
        least_rows: of the answer, below which it says nothing new.
    """

    offer: Offer
    least_rows: int = 1


@dataclass(frozen=True)
class _Candidate:
    kind: str
    text: str
    is_meant: Callable[[Query], bool]
    least_rows: int = 1


def next_questions(inquiry: Inquiry, sql: str) -> Iterator[NextQuestion | None]:
    """At most three follow-ups to the question that `sql` answers; none when the rules don't understand it.

    One at a time, because each takes reading a question; None for each that was read and is not understood.
    """
    made = understand_in_context(inquiry)
    if not isinstance(made, Understanding):
        return
    understood = to_json(made.query) if made.sql == sql else None
    turn = Turn("", inquiry.question, "DATABASE", "", "", "", sql=sql, understood=understood)
    after = replace(inquiry, history=(*inquiry.history, turn))
    found: set[str] = set()
    ends = time.monotonic() + _PATIENCE_S
    tried = 0
    for candidate in _candidates(made.query, lexicon_for(inquiry), inquiry.lang):
        if len(found) == _MOST or tried == _MOST_TRIED or time.monotonic() > ends:
            break
        if candidate.kind in found:
            continue
        tried += 1
        offer = _understood(after, candidate.text, candidate.is_meant)
        if offer is not None:
            found.add(candidate.kind)
        yield NextQuestion(offer, candidate.least_rows) if offer is not None else None


def _understood(inquiry: Inquiry, question: str, is_meant: Callable[[Query], bool]) -> Offer | None:
    """The question as an offer, if it is read as what is meant."""
    made = understand_in_context(replace(inquiry, question=question))
    return Offer(question, made.sql) if isinstance(made, Understanding) and is_meant(made.query) else None


# ---------------------------------------------------------------------------------------------------------- candidates


def _candidates(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    if query.counts_rows:
        return
    if not query.measures:
        yield _Candidate("count", _COUNT.to(lang), lambda read: _is_count(read, query), _LONG)
        return
    if query.limit is not None or query.having or query.top_per:  # groups of a few chosen ones would be others
        if _is_ranking(query) and query.limit is not None and query.limit < _TOP_OF_MORE:
            text = _MORE.to(lang).format(_TOP_OF_MORE)
            yield _Candidate("more", text, lambda read: read.limit == _TOP_OF_MORE, query.limit)
    else:
        if _is_ranking(query):
            yield _Candidate("first", _FIRST.to(lang).format(_TOP), lambda read: read.limit == _TOP, _TOP + 1)
        yield from _splits_by_time(query, lexicon, lang)
        for group in _split_names(query, lexicon, lang):
            yield _Candidate("split", _SPLIT.to(lang).format(group), lambda read: _is_split(read, query))
    yield from _period_before(query, lexicon, lang)
    yield from _shares(query, lang)


def _is_ranking(query: Query) -> bool:
    return bool(query.dimensions) and all(one.bucket is None for one in query.dimensions) and not query.top_per


def _is_count(read: Query, query: Query) -> bool:
    return any(one.function == "count" for one in read.measures[:1]) and read.conditions == query.conditions


def _shares(query: Query, lang: Lang) -> Iterator[_Candidate]:
    adds_up = len(query.measures) == 1 and query.measures[0].function in ("sum", "count")
    if _is_ranking(query) and adds_up and query.limit is None and not query.measures[0].is_share:
        yield _Candidate("share", _SHARE.to(lang), lambda read: any(one.is_share for one in read.measures), 2)


def _splits_by_time(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    facts = lexicon.schema.facts[query.measures[0].table]
    buckets = {one.bucket for one in query.dimensions} - {None}
    dated = _dated(query)
    finer = _FINER.get(_grain(dated[0]) if dated else None)
    if facts.dates and (dated or not facts.is_entity) and not buckets and finer is not None:

        def is_meant(read: Query) -> bool:
            return _is_split(read, query) and any(one.bucket == finer for one in read.dimensions)

        yield _Candidate("time", _SPLIT.to(lang).format(_UNITS[finer].to(lang)), is_meant)


def _dated(query: Query) -> list[Condition]:
    return [one for one in query.conditions if one.operator == "during"]


def _is_split(read: Query, query: Query) -> bool:
    """Whether it is the same figure under the same conditions by other groups."""
    return read.measures == query.measures and read.conditions == query.conditions and _splits(read, query)


def _split_names(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[str]:
    """What the measured rows may be grouped by beside time: what they belong to, and columns of few values."""
    schema = lexicon.schema
    table: TableKey = measured_table(query)
    fixed = {(one.column.table, one.column.column) for one in query.conditions}
    for key, steps in sorted(lexicon.graph.above(table).items(), key=lambda item: item[1]):
        facts = schema.facts[key]
        for column in facts.table.columns:
            is_few = kind_of(column) == "text" and 2 <= len(column.values) <= _MOST_VALUES
            if is_few and column.name not in facts.display and (key, column.name) not in fixed:
                yield spoken_name(column, lang)
        if steps > 0 and facts.is_entity:
            yield spoken_name(facts.table, lang)


def _period_before(query: Query, lexicon: Lexicon, lang: Lang) -> Iterator[_Candidate]:
    """The same for the period before, where there are data of it."""
    dated = _dated(query)
    grain = _grain(dated[0]) if len(dated) == 1 else None
    if grain is None or not _has_data_before(dated[0], grain, lexicon):
        return
    others = [one for one in query.conditions if one is not dated[0]]

    def is_meant(read: Query) -> bool:
        changed = [one for one in read.conditions if one not in others]
        is_other = len(changed) == 1 and changed[0].column == dated[0].column and changed[0] != dated[0]
        return is_other and (read.measures, read.dimensions) == (query.measures, query.dimensions)

    yield _Candidate("before", _BEFORE[grain].to(lang), is_meant)


def _grain(condition: Condition) -> Unit | None:
    operand = condition.operands[0] if len(condition.operands) == 1 else None
    return operand.grain if isinstance(operand, Period) else None


def _has_data_before(condition: Condition, grain: Unit, lexicon: Lexicon) -> bool:
    period = condition.operands[0]
    column = lexicon.schema.column(condition.column.table, condition.column.column)
    if column.period is None or not isinstance(period, Period) or period.start is None:
        return False
    try:
        first, last = map(date.fromisoformat, column.period)
        begins = period.start.on(date.today())
    except (ValueError, OverflowError):
        return False
    return first < begins and (begins - last).days < _DAYS[grain]


# ---------------------------------------------------------------------------------------------- splits of a last result


def splits_of_last(inquiry: Inquiry) -> Iterator[Offer]:
    """Questions that split the figure of the last result, each of which the rules understand."""
    query = earlier_query(inquiry)
    if query is not None:
        questions = (_SPLIT.to(inquiry.lang).format(group) for group in _groups(query, inquiry))
        offers = (_understood(inquiry, question, lambda read: _splits(read, query)) for question in questions)
        yield from filter(None, offers)


def _splits(read: Query, query: Query) -> bool:
    """Whether it is the same figure, or one of what was listed, by other groups."""
    same = read.measures == (query.measures or read.measures)
    return same and bool(read.dimensions) and read.dimensions != query.dimensions


def _groups(query: Query, inquiry: Inquiry) -> Iterator[str]:
    """What the measured rows may be grouped by: time, what they belong to, and columns of few values."""
    lexicon = lexicon_for(inquiry)
    facts = lexicon.schema.facts[measured_table(query)]
    if facts.dates and not facts.is_entity:
        yield _UNITS["month"].to(inquiry.lang)
    yield from _split_names(query, lexicon, inquiry.lang)
