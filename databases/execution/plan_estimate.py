"""Reads EXPLAIN's estimate for a statement, and holds it against the operator's limits.

Estimates can be wrong by orders of magnitude, so the limits are meant for runaway plans, such as a
join of large tables without its condition. Statements that merely take long are stopped by the
statement timeout.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from common.errors import CostExceeded
from common.text import Text
from common.values import Catalog, PlanEstimate
from guard.facts import Key

_GATHERING = re.compile(
    r"\b(?:string|array|jsonb?_?(?:object|array)?|xml|range)_?agg\w*+\(", re.IGNORECASE
)
_GATHERING_NODES = frozenset(("Aggregate", "WindowAgg"))
# What PostgreSQL needs for a row, by what gathers it: bytes, and times the row's width. Measured,
# from the rows to the text of the value.
_MEMORY: tuple[tuple[re.Pattern[str], int, int], ...] = (
    (re.compile(r"range_agg\("), 3_600, 2),
    (re.compile(r"array_agg\((?:ROW\(|[^()]{0,200}\.\*)"), 1_200, 8),
    (re.compile(r"\bjsonb_(?:object_)?agg(?:_\w++)?\("), 64, 26),
    (re.compile(r"string_agg\("), 8, 3),
)
_OTHER_MEMORY = (64, 3)
_COLUMNS = 4  # that may be gathered at once, each by itself, until the rows count again
_MOST_GROUPS = 1_000  # that an estimate is believed: groups may be of very different sizes


def plan_estimate(top: Mapping[str, Any], gathered_chars: int | None = None) -> PlanEstimate:
    """Return the estimate in `top`, the outermost node of EXPLAIN (FORMAT JSON).

    Args:
        gathered_chars: that the statement adds to each row whose values it gathers into one; None
            if it gathers none. If it does, the plan must be a VERBOSE one.
    """
    costs: dict[str, float] = {}
    for node in _nodes(top):
        name = node.get("Relation Name")
        if name:
            costs[name] = costs.get(name, 0.0) + float(node["Total Cost"])
    return PlanEstimate(
        total_cost=float(top["Total Cost"]),
        rows=int(top["Plan Rows"]),
        scans=tuple(sorted(costs, key=lambda name: -costs[name])),
        gathered_bytes=0.0 if gathered_chars is None else _gathered_bytes(top, gathered_chars),
    )


def _gathered_bytes(top: Mapping[str, Any], added_chars: int) -> float:
    """Return how long the longest value gets that a node of the plan gathers from the rows below
    it.

    What is gathered in groups and then gathered again counts as a whole.
    """
    if "Node Type" not in top:  # the plan was too long to be sent
        return math.inf
    longest = 0.0
    pending = [(top, False)]
    while pending:
        node, is_within = pending.pop()
        found = _gathered_by(node, added_chars, is_whole=is_within)
        longest = max(longest, found)
        pending.extend((inner, is_within or found > 0) for inner in node.get("Plans", ()))
    return longest


def _gathered_by(node: Mapping[str, Any], added_chars: int, *, is_whole: bool) -> float:
    """Return the bytes of one value that the node gathers; 0 for nodes that gather nothing."""
    of_array = 0.0
    if node.get("Parent Relationship") in ("InitPlan", "SubPlan"):  # it may be that of an array
        of_array = _memory("", node, added_chars)
    shown = " ".join(node.get("Output", ()))
    gathers = node.get("Node Type") in _GATHERING_NODES and _GATHERING.search(shown)
    below = node.get("Plans", ())
    if not gathers or not below:
        return of_array
    outer = [inner for inner in below if inner.get("Parent Relationship") == "Outer"]
    gathered = _memory(shown, (outer or below)[0], added_chars)
    if node["Node Type"] == "Aggregate" and not is_whole:
        gathered /= min(max(float(node["Plan Rows"]), 1.0), _MOST_GROUPS)
    return max(of_array, gathered)


def _memory(shown: str, rows: Mapping[str, Any], added_chars: int) -> float:
    """Estimate the bytes that a node takes to gather `rows`; `shown` is what it puts out."""
    width = float(rows["Plan Width"]) + added_chars
    count = max(len(_GATHERING.findall(shown)), 1)
    widths = max(1.0, count / _COLUMNS)
    kinds = [(fixed, factor) for kind, fixed, factor in _MEMORY if kind.search(shown)]
    if not kinds:
        kinds = [_OTHER_MEMORY]
    of_row = max(count * fixed + factor * widths * width for fixed, factor in kinds)
    return float(rows["Plan Rows"]) * of_row


def _nodes(top: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = [top]
    while pending:
        node = pending.pop()
        pending.extend(node.get("Plans", ()))
        yield node


def with_known_scans(
    plan: PlanEstimate, catalog: Catalog, parents: Mapping[Key, frozenset[Key]]
) -> PlanEstimate:
    """Return `plan` with only tables of `catalog` in its scans.

    Partitions become their table, and hidden tables go.
    """
    if catalog.by_name.keys() >= set(plan.scans):
        return plan
    above: dict[str, list[str]] = {}
    for (_, child), tops in parents.items():
        above[child] = [name for _, name in tops]
    names: list[str] = []
    for scan in plan.scans:
        names += [scan, *above.get(scan, ())]
    known = [name for name in dict.fromkeys(names) if name in catalog.by_name]
    return replace(plan, scans=tuple(known))


_UNTOLD = Text(
    "预计的成本或行数超过上限", "it is estimated to cost more, or to return more rows, than allowed"
)


_GATHERED = Text(
    "由多行聚合成的单个值（如 string_agg、array_agg、json_agg）预计过大，会占用过多内存",
    "a value that it gathers from many rows (string_agg, array_agg, json_agg …) is estimated to be"
    " too large for memory",
)


@dataclass(frozen=True)
class CostLimits:
    """The highest estimates that a plan may have; 0 means no limit.

    Attributes:
        cost: in the planner's cost units.
        rows: rows of the result.
        gathered_bytes: of memory for one value that is gathered from rows.
    """

    cost: int = 0
    rows: int = 0
    gathered_bytes: int = 192 * 1024 * 1024

    def admit(self, plan: PlanEstimate, catalog: Catalog) -> None:
        """Return when `plan` is within the limits.

        Raises:
            CostExceeded: it is not; the sentence names what to narrow.
        """
        is_costly, is_long = 0 < self.cost < plan.total_cost, 0 < self.rows < plan.rows
        is_large = 0 < self.gathered_bytes < plan.gathered_bytes
        if is_large:
            excess = _GATHERED
        elif not plan.is_shown and (is_costly or is_long):
            excess = _UNTOLD
        elif is_costly:
            excess = Text(
                f"预计成本 {plan.total_cost:,.0f} 超过上限 {self.cost:,}",
                f"its estimated cost of {plan.total_cost:,.0f} is above the limit of {self.cost:,}",
            )
        elif is_long:
            excess = Text(
                f"预计返回 {plan.rows:,} 行，超过上限 {self.rows:,} 行",
                f"it is estimated to return {plan.rows:,} rows, above the limit of {self.rows:,}",
            )
        else:
            return
        hint = _hint(plan, catalog)
        text = Text(
            f"查询未执行：{excess.zh}。{hint.zh}", f"The query was not run: {excess.en}. {hint.en}"
        )
        raise CostExceeded(text, plan=plan)


def _hint(plan: PlanEstimate, catalog: Catalog) -> Text:
    if not plan.scans:
        return Text(
            "请增加筛选条件或减少连接后重试。", "Add conditions or join less, and try again."
        )
    name = plan.scans[0]
    column = _date_column(name, catalog)
    if column is None:
        return Text(
            f"其中 {name} 的读取量最大，请为它增加筛选条件，并检查连接条件是否完整。",
            f"Most of it is reading {name}: add conditions on it,"
            " and check that every join has its condition.",
        )
    return Text(
        f"其中 {name} 的读取量最大，请缩小范围（例如限定 {column} 的时间段），"
        "并检查连接条件是否完整。",
        f"Most of it is reading {name}: narrow it (for example to a period of {column}),"
        " and check that every join has its condition.",
    )


def _date_column(name: str, catalog: Catalog) -> str | None:
    """Return the table's first date column, or else its first time stamp."""
    dates = []
    times = []
    for table in catalog.by_name[name]:
        for column in table.columns:
            if column.type.startswith("date"):
                dates.append(column.name)
            elif column.type.startswith("timestamp"):
                times.append(column.name)
    return next(iter(dates + times), None)
