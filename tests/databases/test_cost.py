"""The cost gate: what EXPLAIN estimates against the operator's limits, and what a refused user is
told.
"""

from typing import Any

import pytest

from app_config import Settings
from common.errors import CostExceeded
from common.values import Catalog, Column, PlanEstimate, Table
from databases.execution.plan_estimate import CostLimits, plan_estimate, with_known_scans
from tests.support.asking import Asking
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

ASKED = {"question": "店铺有多少家", "routing_mode": "database_direct"}
CROSS = "SELECT count(*) FROM daily_revenue a, daily_revenue b"
CATALOG = Catalog(
    (
        Table(
            "public",
            "visit",
            "table",
            (Column("at", "timestamp with time zone"), Column("day", "date")),
        ),
        Table("public", "place", "table", (Column("name", "text"),)),
    )
)


def _refusal(limits: CostLimits, plan: PlanEstimate) -> CostExceeded:
    with pytest.raises(CostExceeded) as caught:
        limits.admit(plan, CATALOG)
    return caught.value


def test_no_limit_refuses_nothing() -> None:
    CostLimits().admit(PlanEstimate(1e300, 10**30), CATALOG)


def test_a_limit_is_the_most_that_is_admitted() -> None:
    CostLimits(cost=100, rows=5).admit(PlanEstimate(100.0, 5), CATALOG)
    assert "limit of 100" in _refusal(CostLimits(cost=100), PlanEstimate(100.6, 5)).message("en")
    assert "6 rows" in _refusal(CostLimits(rows=5), PlanEstimate(1.0, 6)).message("en")


def test_the_sentence_names_the_largest_table_and_its_date() -> None:
    error = _refusal(CostLimits(cost=100), PlanEstimate(123456.7, 5, ("visit", "place")))
    assert "123,457" in error.message("zh")
    for lang in ("zh", "en"):
        assert "visit" in error.message(lang)
        assert "day" in error.message(lang)
    assert error.plan == PlanEstimate(123456.7, 5, ("visit", "place"))


@pytest.mark.parametrize("scans", [(), ("place",)])
def test_without_a_date_there_is_still_a_hint(scans: tuple[str, ...]) -> None:
    error = _refusal(CostLimits(cost=1), PlanEstimate(2.0, 5, scans))
    assert all(name in error.message("en") for name in scans)
    assert "条件" in error.message("zh")


def test_scans_come_from_the_plan_the_most_expensive_first() -> None:
    scan = {"Node Type": "Seq Scan", "Plan Rows": 9}
    top = {
        "Node Type": "Hash Join",
        "Total Cost": 90.5,
        "Plan Rows": 7,
        "Plans": [
            {**scan, "Relation Name": "small", "Total Cost": 20.0},
            {
                "Node Type": "Append",
                "Total Cost": 40.0,
                "Plan Rows": 1,
                "Plans": [
                    {**scan, "Relation Name": "large_2023", "Total Cost": 21.0},
                    {**scan, "Relation Name": "large_2024", "Total Cost": 22.0},
                ],
            },
        ],
    }
    plan = plan_estimate(top)
    assert plan == PlanEstimate(90.5, 7, ("large_2024", "large_2023", "small"))
    catalog = Catalog((Table("s", "large", "table", ()),))
    parents = {("s", name): frozenset({("s", "large")}) for name in ("large_2023", "large_2024")}
    assert with_known_scans(plan, catalog, parents).scans == ("large",), (
        "partitions by their table, nothing hidden"
    )


def test_an_expensive_statement_is_refused_and_not_repaired(
    demo_url: str, model: OpenAiServer
) -> None:
    with Asking(Settings(database_url=demo_url), model, max_plan_cost=1_000_000) as asking:
        code, answer = asking.sync(ASKED, Reply(CROSS))
        events = asking.stream(ASKED, Reply("SELECT shop_id FROM shop LIMIT 3"), Reply("x"))
    data = answer["data"]
    assert (code, data["error_type"], data["retryable"]) == (422, "cost_exceeded", False)
    assert "daily_revenue" in data["error"]
    assert "revenue_date" in data["error"]
    assert data["plan"] == data["state_summary"]["plan"]
    assert data["plan"]["total_cost"] > 1_000_000
    assert data["state_summary"]["execution_path"][-2:] == [
        "sql_validation_failed",
        "format_response",
    ]
    _check_estimate(events[3]["data"])


def _check_estimate(generated: dict[str, object]) -> None:
    """The step that wrote the SQL says what it is expected to cost."""
    assert generated["node"] == "agent_sql_generation"
    assert "预计 3 行" in str(generated["sub_status"])
    plan = generated["state_summary"]["plan"]  # type: ignore[index]
    assert (plan["rows"], plan["scans"]) == (3, ["shop"])
    assert 0 < plan["total_cost"] < 1_000


def test_many_rows_are_refused_when_the_operator_says_so(
    demo_url: str, model: OpenAiServer
) -> None:
    with Asking(Settings(database_url=demo_url), model, max_plan_rows=1000) as asking:
        code, answer = asking.sync({**ASKED, "lang": "en"}, Reply("SELECT * FROM daily_revenue"))
    assert (code, answer["data"]["error_type"]) == (422, "cost_exceeded")
    assert "above the limit of 1,000" in answer["data"]["error"]


def _scan(relation: str, cost: float, rows: int) -> dict[str, Any]:
    return {
        "Node Type": "Seq Scan",
        "Relation Name": relation,
        "Total Cost": cost,
        "Plan Rows": rows,
    }


def _of_citus(shown: int, count: int) -> dict[str, Any]:
    """Return a plan as Citus writes it, of so many tasks of which some are shown."""
    remote = {"Node Type": "Aggregate", "Total Cost": 150.0, "Plan Rows": 10}
    remote["Plans"] = [_scan("visit_102008", 120.0, 1000)]
    task = {"Node": "host=one port=5432 dbname=d", "Remote Plan": [[{"Plan": remote}]]}
    return {
        "Node Type": "Custom Scan",
        "Custom Plan Provider": "Citus Adaptive",
        "Total Cost": 0.0,
        "Plan Rows": 100_000,
        "Distributed Query": {"Job": {"Task Count": count, "Tasks": [task] * shown}},
    }


def test_the_tasks_of_a_distributed_plan_are_summed() -> None:
    alone = plan_estimate(_of_citus(1, 32))
    assert alone == PlanEstimate(32 * 150.0, 320, ("visit",))
    assert plan_estimate(_of_citus(4, 4)).total_cost == 600.0
    top = {"Node Type": "Sort", "Total Cost": 20.0, "Plan Rows": 7, "Plans": [_of_citus(1, 32)]}
    assert plan_estimate(top) == PlanEstimate(20.0 + 32 * 150.0, 7, ("visit",))
    # Of a join that moves rows between the nodes, Citus shows no task.
    assert plan_estimate(_of_citus(0, 6)).total_cost == 0.0
    _refusal(CostLimits(cost=4000), alone)
