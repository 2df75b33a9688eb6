"""Groups to which nothing measured belongs: they count where the question says so, and where none is few enough."""

from dataclasses import replace
from decimal import Decimal

from common.meanings import TableKey
from rules.query.query import Having, Query
from rules.query.refusals import unused_words
from rules.reading.inclusions import Inclusion
from rules.reading.words import Question
from rules.schema.links import Link


def with_all_groups(question: Question, query: Query, inclusion: Inclusion) -> Query:
    """The query with groups that have no rows.

    Raises:
        Refusal: the groups are not rows of one table, or the words name other groups.
    """
    table = grouped_table(query)
    above = question.graph.above(table) if table is not None else {}
    if table is None or any(one.table not in above for one in (*query.dimensions, *query.top_per)):
        raise unused_words([inclusion.text])
    if not all(_speaks_of(question, links, query.base, table) for links in inclusion.named):
        raise unused_words([inclusion.text])
    return replace(query, all_of=table)


def grouped_table(query: Query) -> TableKey | None:
    """The only table, beside the measured one, whose rows or columns are the groups; None where there is none."""
    grouped = [*query.dimensions, *(measure.per for measure in query.measures if measure.per is not None)]
    tables = {one.table for one in grouped if one.bucket is None} - {query.base}
    return tables.pop() if len(tables) == 1 else None


def holds_for_none(query: Query) -> bool:
    """Whether a comparison of counts also holds for groups without rows, as "fewer than 3 orders" does."""
    counts = [one for one in query.having if one.measure.function == "count" and one.measure.table == query.base]
    return bool(counts) and len(counts) == len(query.having) and all(_holds_for_zero(one) for one in counts)


def _holds_for_zero(having: Having) -> bool:
    operands = [one for one in having.operands if isinstance(one, Decimal)]
    if len(operands) != len(having.operands) or not operands:
        return False
    first = operands[0]
    holds = {"<": first > 0, "<=": first >= 0, "=": first == 0, "between": first <= 0}
    return holds.get(having.operator, False)


def _speaks_of(question: Question, links: tuple[Link, ...], base: TableKey, group: TableKey) -> bool:
    """Whether a noun may mean the groups, or what is measured by group."""
    between = question.graph.below(group).keys() & question.graph.above(base).keys()
    return any(link.table in between or link.table in (base, group) for link in links)
