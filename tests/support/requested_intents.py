"""Intents as clients send them, over a catalogue of a shop that leaves much open."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from common.meanings import (
    BilingualNames,
    ColumnMeaning,
    Metric,
    PreferredJoin,
    TableMeaning,
    ValueMeaning,
)
from common.values import Catalog, Column, ForeignKey, Table
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.schemas.requirement import UserIntent

TODAY = date(2024, 5, 15)


def _table(name: str, *columns: Column, key: Sequence[str] = ("id",), **more: Any) -> Table:
    keys = [
        ForeignKey((column,), ("public", table), ("id",)) for column, table in more.pop("to", ())
    ]
    return Table(
        more.pop("schema", "public"),
        name,
        "table",
        columns,
        primary_key=tuple(key),
        foreign_keys=tuple(keys),
        **more,
    )


def _id(name: str = "id") -> Column:
    return Column(name, "integer", nullable=name != "id")


def _text(name: str, *values: str, **more: Any) -> Column:
    return Column(name, "text", values=values, is_complete=bool(values), **more)


ORDERS = _table(
    "orders",
    _id(),
    _id("user_id"),
    _id("billing_id"),
    _id("shipping_id"),
    _text("status", "paid", "Void", "shipped"),
    Column("amount", "numeric(12,2)", "销售额"),
    Column("weight", "numeric(8,3)"),
    Column("ordered_on", "date", nullable=False),
    Column("paid_at", "timestamp with time zone"),
    Column("is_gift", "boolean"),
    to=(("user_id", "users"), ("billing_id", "addresses"), ("shipping_id", "addresses")),
    comment="订单表",
)
USERS = _table("users", _id(), _text("city"), Column("score", "integer"), comment="用户表")
ADDRESSES = _table("addresses", _id(), _text("city"), _text("country"))
ITEMS = _table(
    "items",
    _id(),
    _id("order_id"),
    _id("product_id"),
    Column("quantity", "integer"),
    Column("price", "numeric(12,2)"),
    to=(("order_id", "orders"), ("product_id", "products")),
)
PRODUCTS = _table("products", _id(), _text("name"), _text("kind"))
VISITS = _table("visits", _id(), _id("user_id"), Column("seconds", "integer"), _text("page"))
NOTES = _table("notes", _text("body"), key=())
PAYMENTS = _table(
    "payments",
    _id(),
    _id("order_id"),
    Column("amount", "numeric(12,2)"),
    _text("currency", "EUR", "USD"),
    Column("paid_on", "date"),
    to=(("order_id", "orders"),),
)
RATES = _table(
    "rates",
    _text("currency", "USD"),
    Column("day", "date"),
    Column("rate", "numeric(12,4)"),
    key=("currency", "day"),
)
ODD = _table(
    "Odd 表",
    Column("a b", "integer", nullable=False),
    Column('q"uote', "numeric"),
    Column("select", "text"),
    Column("x.y", "date"),
    key=("a b",),
)
ARCHIVED = _table("visits", _id(), Column("seconds", "integer"), schema="archive")
# Not on the search path, so that its name alone is not that of a table that is
SALES = _table("sales_2023", _id(), Column("amount", "numeric"), schema="archive")
CATALOG = Catalog(
    (
        ORDERS,
        USERS,
        ADDRESSES,
        ITEMS,
        PRODUCTS,
        VISITS,
        NOTES,
        PAYMENTS,
        RATES,
        ODD,
        ARCHIVED,
        SALES,
    )
)


# Both refer to teams, and nobody has declared what is meant by `agent_id`
SUPPORT = Catalog(
    (
        _table("teams", _id()),
        _table("agents", _id(), _id("team_id"), _text("name"), to=(("team_id", "teams"),)),
        _table(
            "tickets",
            _id(),
            _id("team_id"),
            _id("agent_id"),
            Column("minutes", "integer"),
            to=(("team_id", "teams"),),
        ),
    )
)


def meant(catalog: Catalog = CATALOG) -> Catalog:
    """Return the catalogue with what a semantic file says of orders."""
    status = ORDERS.column("status")
    assert status is not None
    names = ColumnMeaning(
        values=(ValueMeaning("Void", BilingualNames(zh=("作废",), en=("void",))),)
    )
    columns = tuple(
        replace(column, meaning=names) if column.name == "status" else column
        for column in ORDERS.columns
    )
    meaning = TableMeaning(
        names=BilingualNames(zh=("单据",)),
        date_column="paid_at",
        default_filter="NOT IS_GIFT",
        filter_columns=("is_gift",),
        joins=(PreferredJoin(("shipping_id",), ("public", "addresses"), ("id",)),),
    )
    orders = replace(ORDERS, columns=columns, meaning=meaning)
    metric = Metric(
        "revenue",
        ("public", "orders"),
        "sum(amount)",
        names=BilingualNames(zh=("营业额",)),
        filter="status <> 'Void'",
    )
    tables = (orders, *(table for table in catalog.tables if table.name != "orders"))
    return replace(catalog, tables=tables, metrics=(metric,))


def request(
    *operations: tuple[str, Mapping[str, Any]],
    sources: Sequence[str] = ("orders",),
    target: Mapping[str, Any] | None = None,
) -> UserIntent:
    """Return an intent of these operations in their order, each an action with its parameters."""
    numbered = [
        {"order": order, "action": action, "parameters": dict(parameters)}
        for order, (action, parameters) in enumerate(operations, 1)
    ]
    return UserIntent.model_validate(
        {
            "summary": "asked for",
            "data_sources": [{"table_name": name} for name in sources],
            "data_target": dict(target or {}),
            "operations": numbered,
        }
    )


def bind(
    intent: UserIntent,
    answers: Mapping[str, str] | None = None,
    catalog: Catalog = CATALOG,
    **options: Any,
) -> BindingResult:
    """Bind on 15 May 2024, in UTC and English unless said otherwise."""
    given: dict[str, Any] = {"time_zone": "UTC", "today": TODAY, "lang": "en"}
    return bind_intent(intent, catalog, answers or {}, BindingOptions(**(given | options)))


def join(left: str, right: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "join", {"left": left, "right": right, **more}


def keep(column: str, operator: str, value: Any = None, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a filter by one condition."""
    condition = {"column": column, "operator": operator}
    if value is not None:
        condition["value"] = value
    return "filter", {"conditions": [condition], **more}


def by(*columns: Any, sums: Sequence[str] = ("orders.amount",), **more: Any) -> tuple[str, Any]:
    """Return sums by columns; a column is a name, or what `group_by` holds."""
    group_by = [{"column": column} if isinstance(column, str) else column for column in columns]
    measures = [{"function": "sum", "column": one, "as": f"m{n}"} for n, one in enumerate(sums)]
    return "aggregate", {"group_by": group_by, "measures": measures, **more}
