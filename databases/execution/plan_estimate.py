"""Reads EXPLAIN's estimate for a statement, and holds it against the operator's limits.

Estimates can be wrong by orders of magnitude, so the limits are meant for runaway plans, such as a
join of large tables without its condition. Statements that merely take long are stopped by the
statement timeout.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from common.errors import CostExceeded
from common.text import Text
from common.values import Catalog, PlanEstimate
from guard.facts import Key

_SHARD = re.compile(r"_\d{6,}$")  # how the names of shards end

NO_ESTIMATE = PlanEstimate(total_cost=0.0, rows=0, is_shown=False)
"""Of a server whose plans can't be read."""


def plan_estimate(top: Mapping[str, Any]) -> PlanEstimate:
    """Return the estimate in `top`, the outermost node of EXPLAIN (FORMAT JSON).

    A plan of Citus counts what its tasks cost on the nodes, of which its own nodes say nothing.
    """
    costs: dict[str, float] = {}
    remote = _Remote()
    for node in _nodes(top):
        _count(costs, node.get("Relation Name"), node)
        remote = remote.plus(_remote(node, costs))

    rows = int(top.get("Plan Rows", 0))
    if _is_distributed(top) and remote.rows:
        rows = remote.rows

    return PlanEstimate(
        total_cost=_cost(top) + remote.cost,
        rows=rows,
        scans=tuple(sorted(costs, key=lambda name: -costs[name])),
    )


@dataclass(frozen=True)
class _Remote:
    """Estimated cost of tasks on other nodes, and the rows that they return."""

    cost: float = 0.0
    rows: int = 0

    def plus(self, other: "_Remote") -> "_Remote":
        return _Remote(self.cost + other.cost, self.rows + other.rows)


def _remote(node: Mapping[str, Any], costs: dict[str, float]) -> _Remote:
    """Return the sum over the tasks of a distributed node; add their tables to `costs`.

    Citus shows the plan of one of its tasks, unless it is set to show all; the others read as many
    rows of the same tables.
    """
    if not _is_distributed(node):
        return _Remote()

    job = node["Distributed Query"].get("Job", {})
    tasks = job.get("Tasks", [])
    if not tasks:
        return _Remote()

    cost, rows = 0.0, 0
    for task in tasks:
        for plan in _plans_of(task):
            cost += _cost(plan)
            rows += int(plan.get("Plan Rows", 0))
            for inner in _nodes(plan):
                _count(costs, _table_of_shard(inner.get("Relation Name")), inner)

    share = int(job.get("Task Count", len(tasks))) / len(tasks)
    return _Remote(cost * share, int(rows * share))


def _is_distributed(node: Mapping[str, Any]) -> bool:
    return "Distributed Query" in node


def _plans_of(task: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the outermost nodes of a task's plans, which stand in lists of lists."""
    pending = [task.get("Remote Plan", [])]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
        elif "Plan" in part:
            yield part["Plan"]


def _table_of_shard(name: str | None) -> str | None:
    return _SHARD.sub("", name) if name else None


def _count(costs: dict[str, float], name: str | None, node: Mapping[str, Any]) -> None:
    if name:
        costs[name] = costs.get(name, 0.0) + _cost(node)


def _cost(node: Mapping[str, Any]) -> float:
    return float(node.get("Total Cost", 0.0))


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

    scans = [name for name in dict.fromkeys(names) if name in catalog.by_name]
    return replace(plan, scans=tuple(scans))


_UNTOLD = Text(
    "预计的成本或行数超过上限", "it is estimated to cost more, or to return more rows, than allowed"
)


@dataclass(frozen=True)
class CostLimits:
    """The highest estimates that a plan may have; 0 means no limit.

    Attributes:
        cost: in the planner's cost units.
        rows: rows of the result.
    """

    cost: int = 0
    rows: int = 0

    def admit(self, plan: PlanEstimate, catalog: Catalog) -> None:
        """Return when `plan` is within the limits.

        Raises:
            CostExceeded: it is not; the sentence names what to narrow.
        """
        is_costly, is_long = 0 < self.cost < plan.total_cost, 0 < self.rows < plan.rows
        if not plan.is_shown and (is_costly or is_long):
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
