"""Bound intents over a small shop, made by hand: orders, their items, users, rates."""

from collections.abc import Sequence
from typing import Any

from common.values import Column, ForeignKey, PeriodUnit, Table
from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    BoundOutput,
    BoundSource,
    BoundTarget,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    RowTest,
    Step,
    WindowStep,
)
from etl.meaning.row_expressions import parse_expression
from etl.schemas.parameters import MeasureFunction

ORDERS = Table(
    "public",
    "orders",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("user_id", "integer"),
        Column("status", "text"),
        Column("amount", "numeric(12,2)"),
        Column("currency", "text", values=("EUR", "USD"), is_complete=True),
        Column("ordered_on", "date"),
        Column("paid_at", "timestamp with time zone"),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("user_id",), ("public", "users"), ("id",)),),
)
ITEMS = Table(
    "public",
    "items",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("order_id", "integer"),
        Column("product", "text"),
        Column("quantity", "integer"),
        Column("price", "numeric(12,2)"),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("order_id",), ("public", "orders"), ("id",)),),
)
USERS = Table(
    "public",
    "users",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("city", "text"),
        Column("is_vip", "boolean"),
    ),
    primary_key=("id",),
)
RATES = Table(
    "public",
    "rates",
    "table",
    (
        Column("currency", "text"),
        Column("day", "date"),
        Column("rate", "numeric(12,4)"),
    ),
)
TABLES = {table.name: table for table in (ORDERS, ITEMS, USERS, RATES)}


def intent(
    *steps: Step,
    sources: Sequence[str] = ("orders",),
    columns: Sequence[str],
    outputs: Sequence[tuple[str, str]] = (),
    time_zone: str = "UTC",
) -> BoundIntent:
    """Return an intent over tables of the shop; each step's order is its place.

    `outputs` are names of the result with their columns, as `column` takes them.
    """
    return BoundIntent(
        summary="made by hand",
        sources=tuple(BoundSource(name, TABLES[name]) for name in sources),
        steps=steps,
        target=BoundTarget(
            relation="result",
            model="result",
            layer="DWS",
            materialization="table",
            mode="replace",
            columns=tuple(columns),
        ),
        time_zone=time_zone,
        outputs=tuple(BoundOutput(name, column(text)) for name, text in outputs),
    )


def column(text: str) -> BoundColumn:
    """Return `orders.id`, or `name` for one that a step made."""
    source, dot, name = text.partition(".")
    return BoundColumn(source, name) if dot else BoundColumn("", source)


def join(
    right: str, on: tuple[str, str], how: Any = "left", *, is_multiple: bool = False, order: int = 1
) -> JoinSourceStep:
    return JoinSourceStep(order, right, how, ((column(on[0]), column(on[1])),), is_multiple)


def keep(*tests: RowTest, source: str | None = None, stage: Any = None) -> FilterStep:
    """Return a filter of one source, else of joined rows, else of the stage that is given."""
    return FilterStep(2, stage or ("table" if source else "rows"), tests, source)


def key(text: str, name: str = "key", unit: PeriodUnit | None = None) -> BoundKey:
    return BoundKey(name, column(text), unit)


def measure(
    function: MeasureFunction,
    source: str,
    expression: str | None = None,
    name: str = "value",
    tests: Sequence[RowTest] = (),
    *,
    is_zero: bool = False,
) -> BoundMeasure:
    parsed = None if expression is None else parse_expression(expression)
    return BoundMeasure(name, function, source, parsed, tuple(tests), is_zero)


def group(
    keys: Sequence[BoundKey], *measures: BoundMeasure, has_spine: bool = False
) -> AggregateStep:
    return AggregateStep(3, tuple(keys), measures, has_spine)


def compute(
    name: str, expression: str, stage: Any = "rows", source: str | None = None
) -> ExpressionStep:
    return ExpressionStep(2, stage, name, parse_expression(expression), source)


def window(
    function: Any,
    on: str | None = None,
    *,
    partition: Sequence[str] = (),
    sorting: Sequence[Any] = (),
    name: str = "window",
    **more: Any,
) -> WindowStep:
    return WindowStep(4, name, function, on, tuple(partition), tuple(sorting), **more)


def dedup(
    source: str, keys: Sequence[str], sorting: Sequence[Any], stage: Any = "table"
) -> DedupStep:
    return DedupStep(1, source, tuple(keys), tuple(sorting), stage)


def mapped(
    name: str, text: str, mapping: dict[Any, Any], default: Any = None, **more: Any
) -> MapStep:
    return MapStep(
        2, more.pop("stage", "rows"), name, column(text), tuple(mapping.items()), default, **more
    )


def rate(to: str, *, is_latest: bool = False) -> RateStep:
    """Return `orders.amount` in the currency `to`, as `converted`."""
    return RateStep(
        2,
        "converted",
        column("orders.amount"),
        column("orders.currency"),
        column("orders.paid_at"),
        to,
        "rates",
        "currency",
        "day",
        "rate",
        is_latest=is_latest,
    )
