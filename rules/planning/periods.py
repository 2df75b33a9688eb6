"""Plans questions that ask for periods: "days with revenue above 10 million", `哪几个月的订单超过5万`."""

from rules.planning.event_dates import resolved
from rules.planning.plan import Plan
from rules.query.query import Dimension, Query
from rules.schema.schema import TableKey


def take_compared_periods(plan: Plan) -> bool:
    """Groups by the periods whose figures are compared; returns whether the question counts these periods."""
    reading = plan.reading
    if _compared_table(plan) is None or plan.asks.rankings or plan.asks.figures:
        return False
    for index, mark in enumerate(reading.marks):
        counted = index > 0 and reading.is_number(index - 1)
        if not reading.free(index) or not mark.means("date_part") or reading.nouns[index] is not None or counted:
            continue
        reading.use(index)
        plan.asks.dimensions.append(Dimension(("", ""), None, mark.arg))  # type: ignore[arg-type]
        before = reading.free_beside(index, -1, ("noise",))
        if before is not None and reading.marks[before].means("count"):
            reading.use(before)
            return True
    return False


def compares_periods(plan: Plan) -> bool:
    """Whether the question asks for nothing but periods, by comparing a figure of theirs."""
    others = plan.head is not None or plan.named_at or plan.bare or plan.asks.figures
    dimensions = plan.asks.dimensions
    return (
        not others and len(dimensions) == 1 and dimensions[0].bucket is not None and _compared_table(plan) is not None
    )


def periods_query(plan: Plan) -> Query:
    """The query for the periods; the comparison adds its figure later."""
    table = _compared_table(plan)
    assert table is not None
    return Query(table, dimensions=(resolved(plan, plan.asks.dimensions[0], table),))


def _compared_table(plan: Plan) -> TableKey | None:
    """The table of the events whose figure is compared with a number."""
    links = [threshold.link for threshold in plan.filters.thresholds]
    link = links[0] if len(links) == 1 else None
    if link is None or plan.reading.facts(link.table).is_entity or not plan.reading.is_measure(link):
        return None
    return link.table
