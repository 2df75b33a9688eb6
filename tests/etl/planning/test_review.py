"""The review finds what is wrong with a draft, whoever made it."""

from dataclasses import replace
from typing import Any, get_args

import pytest
import sqlglot

from common.values import Column, Table
from etl.meaning.bound import (
    BoundColumn,
    BoundCondition,
    BoundIntent,
    BoundOutput,
    BoundSource,
    Watermark,
)
from etl.planning.draft_model import Draft
from etl.planning.drafting import make_draft
from etl.planning.plan_notes import with_notes
from etl.planning.plan_review import review
from etl.planning.review_texts import RULES
from etl.schemas.plan import ReviewCode
from tests.support.bound_intents import column, group, intent, join, keep, key, measure

BOUND = intent(
    join("items", ("orders.id", "items.order_id"), is_multiple=True),
    # By the currency that was chosen for the aggregate
    replace(keep(BoundCondition(column("orders.currency"), "=", "EUR")), order=3),
    group([key("orders.status", "status")], measure("sum", "orders", "orders.amount", "total")),
    sources=("orders", "items"),
    columns=("status", "total"),
)
ROWS = intent(sources=("orders",), columns=("status",), outputs=[("status", "orders.status")])


def _codes(draft: Draft, bound: BoundIntent) -> dict[str, str]:
    return {issue.code: issue.severity for issue in review(draft, bound).issues}


@pytest.mark.parametrize(
    ("node", "sql", "code"),
    [
        (
            "result",
            "SELECT status, SUM(amount) AS total FROM dwd_orders_items GROUP BY 1",
            "fan_out",
        ),
        ("result", "SELECT DISTINCT * FROM dwd_orders_items", "select_star"),
        ("result", "SELECT DISTINCT state AS status FROM dwd_orders_items", "unknown_column"),
        ("result", "SELECT DISTINCT x.status FROM dwd_orders_items", "unknown_column"),
        (
            "dwd_orders_items",
            "SELECT ods_orders.id FROM ods_orders, ods_items",
            "cartesian",
        ),
        (
            "dwd_orders_items",
            "SELECT o.id FROM ods_orders AS o JOIN ods_items AS i ON o.status = i.id",
            "type_mismatch",
        ),
        (
            "dwd_orders_items",
            "SELECT id FROM ods_orders WHERE EXISTS (SELECT 1 FROM ods_items AS i WHERE i.no = id)",
            "unknown_column",
        ),
        ("ods_orders", "SELECT id FROM public.orders WHERE paid_at < now()", "nondeterministic"),
        ("ods_orders", "SELECT id FROM public.orders LIMIT 5", "nondeterministic"),
        (
            "ods_orders",
            "SELECT id FROM public.orders WHERE ordered_on > DATE '2024-01-01'",
            "hard_coded_date",
        ),
    ],
)
def test_sql_that_is_wrong_fails(node: str, sql: str, code: str) -> None:
    draft = make_draft(BOUND)
    query: Any = sqlglot.parse_one(sql, read="postgres")
    models = [
        replace(model, select=query) if model.name == node else model for model in draft.models
    ]
    changed = replace(draft, models=tuple(models))
    assert _codes(draft, BOUND) == {}
    assert _codes(changed, BOUND).get(code) == "error"
    assert review(changed, BOUND).verdict == "fail"


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        (["result"], "cycle"),
        (["nowhere"], "missing_node"),
        (["ods_orders"], "orphan_node"),
    ],
)
def test_a_graph_that_is_wrong_is_found(inputs: list[str], code: str) -> None:
    draft = make_draft(BOUND)
    nodes = [
        node.model_copy(update={"inputs": inputs}) if node.name == "result" else node
        for node in draft.plan.nodes
    ]
    plan = draft.plan.model_copy(update={"nodes": nodes})
    assert code in _codes(replace(draft, plan=plan), BOUND)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"relation": "public.sales"}, "sink_refused"),
        ({"relation": "../sales"}, "sink_refused"),
        ({"relation": "销" * 18}, "sink_refused"),
        ({"relation": "pg_sales"}, "sink_refused"),
        ({"relation": "orders"}, "target_exists"),
        ({"mode": "append"}, "not_idempotent"),
        ({"mode": "merge"}, "no_partition_filter"),
    ],
)
def test_a_target_that_is_unsafe_is_found(changes: dict[str, Any], code: str) -> None:
    bound = replace(BOUND, target=replace(BOUND.target, **changes))
    assert code in _codes(make_draft(bound), bound)
    bound = replace(ROWS, target=replace(ROWS.target, **changes))
    assert code in _codes(make_draft(bound), bound)


def test_rows_without_a_key_have_no_grain() -> None:
    assert _codes(make_draft(ROWS), ROWS) == {"grain_unstated": "warning"}


def test_columns_of_persons_in_the_target_are_named() -> None:
    columns = (Column("id", "integer", nullable=False), Column("id_card", "text", "身份证号"))
    table = Table("public", "members", "table", columns, primary_key=("id",))
    outputs = tuple(
        BoundOutput(one.name, BoundColumn("members", one.name)) for one in table.columns
    )
    target = replace(ROWS.target, columns=("id", "id_card"))
    sources = (BoundSource("members", table),)
    bound = replace(ROWS, sources=sources, outputs=outputs, target=target)
    assert _codes(make_draft(bound), bound) == {"sensitive_column": "warning"}


def test_every_code_has_its_sentences() -> None:
    assert set(RULES) == set(get_args(ReviewCode))


def test_a_merge_by_period_computes_some_periods_again() -> None:
    bound = intent(
        group([key("orders.ordered_on", "month", "month")], measure("count", "orders")),
        columns=("month", "value"),
    )
    watermark = Watermark(column("orders.ordered_on"), 3)
    target = replace(bound.target, mode="merge", materialization="incremental", watermark=watermark)
    bound = replace(bound, target=target)
    draft = make_draft(bound)
    assert _codes(draft, bound) == {}
    assert draft.target.merge_key == "etl_period" and draft.target.increment is not None
    assert [one.name for one in draft.target.node.columns] == ["month", "value", "etl_period"]


def test_a_plan_says_what_may_go_wrong_and_what_else_could_be_planned() -> None:
    parts = intent(
        join("rates", ("orders.currency", "rates.currency")),
        group(
            [key("orders.ordered_on", "month", "month")],
            measure("sum", "orders", "orders.amount", "total"),
        ),
        sources=("orders", "rates"),
        columns=("month", "total"),
    )
    plan = with_notes(make_draft(parts), parts, "en").plan
    assert [(risk.code, risk.severity) for risk in plan.risks] == [
        ("undeclared_key", "warning"),
        ("undeclared_reference", "warning"),
    ]
    assert len(plan.alternatives) == 3
    assert "month" in " ".join(plan.alternatives)
    declared = with_notes(make_draft(BOUND), BOUND, "zh").plan
    assert declared.risks == []
