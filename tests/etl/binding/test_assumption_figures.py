"""The rows and amounts that assumptions decide about, counted by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from common.values import Catalog
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.binding.request_findings import RequestFindings
from etl.clauses.sentence_reading import read_sentence
from etl.meaning.interpreter import evaluate
from etl.schemas.requirement import UserIntent
from rules.schema.lexicon import lexicon_of
from tests.support.requested_intents import CATALOG, TODAY, bind, by, join, keep, meant, request
from tests.support.sales_catalog import SALES

D = Decimal
Figures = tuple[int, Decimal | float | None]


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _rows(catalog: Catalog, table: str, *rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a table; what they don't name is NULL."""
    (found,) = catalog.by_name[table]
    nothing = dict.fromkeys(column.name for column in found.columns)
    return [nothing | dict(row) for row in rows]


WORLD = {
    "orders": _rows(
        CATALOG,
        "orders",
        {"id": 1, "user_id": 10, "status": "paid", "amount": D("1.00"), "is_gift": False}
        | {"ordered_on": date(2024, 1, 31), "paid_at": _utc("2024-01-31 23:30")},
        {"id": 2, "user_id": 10, "status": None, "amount": D("2.00"), "is_gift": False}
        | {"ordered_on": date(2024, 2, 1), "paid_at": _utc("2024-02-01 09:00")},
        {"id": 3, "user_id": 99, "status": "Void", "amount": D("4.00"), "is_gift": True}
        | {"ordered_on": date(2024, 2, 5)},
        {"id": 4, "status": "shipped", "ordered_on": date(2024, 3, 1)}
        | {"paid_at": _utc("2024-03-01 12:00")},
        {"id": 5, "user_id": 11, "status": "Void", "amount": D("8.00"), "is_gift": False}
        | {"ordered_on": date(2024, 3, 31), "paid_at": _utc("2024-03-31 00:00")},
    ),
    "users": _rows(
        CATALOG, "users", {"id": 10, "city": "Ulm", "score": 3}, {"id": 11}, {"id": 12, "score": 4}
    ),
    "items": _rows(
        CATALOG,
        "items",
        {"id": 1, "order_id": 1, "quantity": 1, "price": D("0.10")},
        {"id": 2, "order_id": 1, "quantity": 2, "price": D("0.20")},
        {"id": 3, "order_id": 5, "quantity": None, "price": D("0.40")},
        {"id": 4, "order_id": 77, "quantity": 1, "price": D("0.80")},
    ),
}
TARGET = {"table_name": "result"}
UNDONE = {"undone_kept": (2, D("12.00"))}


@dataclass(frozen=True)
class Case:
    """A request, and what its assumptions decide about."""

    name: str
    intent: UserIntent
    figures: Mapping[str, Figures]
    catalog: Catalog = field(default=CATALOG, repr=False)


CASES = [
    Case(
        "rows without a user, and those without a city",
        request(
            join("orders", "users"), by("users.city"), sources=("orders", "users"), target=TARGET
        ),
        {"left_join_1": (2, D("4.00")), "null_group_2": (3, D("12.00")), **UNDONE},
    ),
    Case(
        "a name and a table that nothing uses change no rows",
        request(by("ordered_on"), sources=("orders", "users")),
        {"target_name": (0, None), "unused_table": (0, None), **UNDONE},
    ),
    Case(
        "what an exclusion keeps",
        request(keep("status", "!=", "paid"), by("ordered_on"), target=TARGET),
        {"null_kept_1": (1, D("2.00"))},
    ),
    Case(
        "what an exclusion keeps of joined rows",
        request(
            join("orders", "items", how="left"),
            keep("items.quantity", "!=", 1),
            by("ordered_on"),
            sources=("orders", "items"),
            target=TARGET,
        ),
        {"null_kept_2": (4, D("14.00")), **UNDONE},
    ),
    Case(
        "what an exclusion keeps of groups",
        request(by("user_id"), keep("m0", "!=", 3), target=TARGET),
        {"null_group_1": (1, 0), "null_kept_2": (1, 0), **UNDONE},
    ),
    Case(
        "what a measure's own exclusion keeps",
        request(
            (
                "aggregate",
                {
                    "group_by": [{"column": "ordered_on"}],
                    "measures": [
                        {
                            "function": "sum",
                            "column": "amount",
                            "as": "sales",
                            "filter": [{"column": "status", "operator": "!=", "value": "Void"}],
                        }
                    ],
                },
            ),
            target=TARGET,
        ),
        {"null_kept_1": (1, D("2.00")), "undone_kept": (2, 0)},
    ),
    Case(
        "the day that moments are compared with",
        request(keep("paid_at", "<=", "2024-02-01"), by("ordered_on"), target=TARGET),
        {"time_zone_1": (4, D("11.00")), "whole_day_1": (1, D("2.00")), "undone_kept": (0, 0)},
    ),
    Case(
        "which row of a key stays",
        request(
            ("dedup", {"table": "orders", "keys": ["user_id"]}), by("ordered_on"), target=TARGET
        ),
        {"dedup_order_1": (1, D("1.00")), **UNDONE},
    ),
    Case(
        "an amount of rows that joins repeat",
        request(
            join("orders", "items"),
            by("ordered_on", sums=["items.price"]),
            sources=("orders", "items"),
            target=TARGET,
        ),
        {"left_join_1": (3, 0), "undone_kept": (2, D("0.40"))},
    ),
    Case(
        "the only number, and periods of the only date",
        request(
            ("aggregate", {"group_by": [], "measures": [{"function": "sum"}]}),
            sources=("users",),
            target=TARGET,
        ),
        {"measure_1": (3, 7)},
    ),
    Case(
        "a key that the target lacks",
        request(by("ordered_on"), ("sink", {"columns": ["m0"]}), target=TARGET),
        {"key_left_out": (5, D("15.00")), **UNDONE},
    ),
    Case(
        "what the semantic file decides",
        request(
            keep("status", "!=", "作废"),
            by({"unit": "month"}, sums=["revenue"]),
            target=TARGET,
        ),
        {
            "semantic_filter": (2, 0),
            "null_kept_1": (1, 0),
            "stored_value_1": (1, 0),
            "metric_2": (1, D("1.00")),
            "date_column_2": (2, D("1.00")),
            "time_zone_2": (2, D("1.00")),
            "null_group_2": (0, 0),
        },
        meant(),
    ),
]


def _figures(result: BindingResult, world: Mapping[str, Any]) -> dict[str, Figures]:
    """What is counted for each assumption; all have to be."""
    assert result.bound is not None, result.analysis
    tables = {source.name: world[source.table.name] for source in result.bound.sources}
    meaning = evaluate(result.bound, tables, result.decisions)
    assumed = [assumption.id for assumption in result.analysis.assumptions]
    return {id_: (meaning.decided[id_].rows, meaning.decided[id_].amount) for id_ in assumed}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_assumptions_say_what_they_decide_about(case: Case) -> None:
    assert _figures(bind(case.intent, catalog=case.catalog), WORLD) == case.figures


SOLD = {
    "orders": _rows(
        SALES,
        "orders",
        {"id": 1, "city": "北京", "amount": D("1.00"), "user_id": 7},
        {"id": 2, "city": "北京", "amount": D("1.00")},
        {"id": 3, "city": "北京", "amount": D("4.00")},
        {"id": 4, "city": "上海", "amount": None, "status": "cancelled"},
    ),
    "users": _rows(SALES, "users", {"id": 7, "level": "gold"}),
}
SENTENCES: list[tuple[str, Mapping[str, Figures]]] = [
    (
        "每个城市中订单金额前3的订单",
        {
            "not_ranked_1": (1, None),
            "ties_stay_3": (2, None),
            "target_name": (0, None),
            "undone_kept": (0, None),
        },
    ),
    (
        "从订单表中按用户等级汇总金额，写入等级表",
        {
            "joined_users_1": (3, D("5.00")),
            "meant_orders_amount_1": (3, D("6.00")),
            "null_group_2": (3, D("5.00")),
            "undone_kept": (1, 0),
        },
    ),
]


@pytest.mark.parametrize(("sentence", "figures"), SENTENCES)
def test_assumptions_of_sentences_do_too(sentence: str, figures: Mapping[str, Figures]) -> None:
    findings = RequestFindings({}, "zh")
    intent = read_sentence(sentence, SALES, lexicon_of(SALES), findings)
    assert intent is not None
    options = BindingOptions("UTC", TODAY)
    assert _figures(bind_intent(intent, SALES, {}, options, findings), SOLD) == figures
