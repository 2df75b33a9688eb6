"""What intents mean for any rows, once their questions are answered, is what SQL by hand gives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from hypothesis import given

from common.values import Catalog
from etl.meaning.interpreter import evaluate
from tests.support.bound_intents import TABLES
from tests.support.requested_intents import bind, by, join, keep, request
from tests.support.shop_worlds import Rows, counted, shop_connection, stored, worlds

CATALOG = Catalog(tuple(TABLES.values()))
ZONE = "America/New_York"
GROUPED = {"currency": "group"}
EUROS = keep("currency", "=", "EUR")
RATE = {
    "table": "rates",
    "from_column": "currency",
    "to": "EUR",
    "date_column": "day",
    "rate_column": "rate",
}


@dataclass(frozen=True)
class Case:
    """An intent with the answers to what it leaves open, and the SQL for both."""

    operations: Sequence[Any]
    sql: str
    sources: Sequence[str] = ("orders",)
    answers: Mapping[str, str] = field(default_factory=dict)


CASES = {
    "months of the zone, void orders left out, by currency": Case(
        [keep("status", "!=", "void"), by({"column": "paid_at", "unit": "month"})],
        f"""SELECT date_trunc('month', paid_at AT TIME ZONE '{ZONE}')::date, currency, sum(amount)
            FROM orders WHERE status IS DISTINCT FROM 'void' GROUP BY 1, 2""",
        answers=GROUPED,
    ),
    "whole days among alternatives": Case(
        [
            (
                "filter",
                {
                    "conditions": [
                        {
                            "any": [
                                {"column": "paid_at", "operator": "=", "value": "2024-02-28"},
                                {"column": "paid_at", "operator": ">", "value": "2024-03-10"},
                                {"column": "status", "operator": "=", "value": "paid"},
                            ]
                        }
                    ]
                },
            ),
            ("sink", {"columns": ["orders.id", "paid_at"]}),
        ],
        f"""SELECT id, paid_at FROM orders WHERE status = 'paid'
            OR (paid_at AT TIME ZONE '{ZONE}')::date = '2024-02-28'
            OR (paid_at AT TIME ZONE '{ZONE}')::date > '2024-03-10'""",
    ),
    "whole days, several tables": Case(
        [
            keep("orders.paid_at", "between", ["2024-02-28", "2024-03-10"]),
            EUROS,
            join("orders", "users"),
            join("orders", "items"),
            by("users.city", sums=["orders.amount", "items.quantity"]),
        ],
        f"""SELECT u.city, sum(o.amount), sum(i.quantity)
            FROM orders o LEFT JOIN users u ON u.id = o.user_id
            LEFT JOIN (SELECT order_id, sum(quantity) AS quantity FROM items GROUP BY order_id) i
                   ON i.order_id = o.id
            WHERE (o.paid_at AT TIME ZONE '{ZONE}')::date BETWEEN '2024-02-28' AND '2024-03-10'
            AND o.currency = 'EUR' GROUP BY u.city""",
        ("orders", "users", "items"),
    ),
    "orders with pens, one row of orders": Case(
        [
            join("orders", "items"),
            keep("items.product", "=", "pen"),
            ("sink", {"columns": ["orders.id", "amount"]}),
        ],
        """SELECT id, amount FROM orders o
           WHERE EXISTS (SELECT FROM items i WHERE i.order_id = o.id AND i.product = 'pen')""",
        ("orders", "items"),
        {"grain": "orders"},
    ),
    "orders and their items, one row of items": Case(
        [
            join("orders", "items"),
            ("sink", {"columns": ["orders.id", "items.id", "product", "items.order_id"]}),
        ],
        "SELECT o.id, i.id, product, order_id FROM orders o LEFT JOIN items i ON i.order_id = o.id",
        ("orders", "items"),
        {"grain": "items"},
    ),
    "an order counts in each group": Case(
        [EUROS, join("orders", "items"), by("items.product")],
        """SELECT product, sum(amount) FROM (
               SELECT DISTINCT i.product, o.id, o.amount
               FROM orders o LEFT JOIN items i ON i.order_id = o.id
               WHERE o.currency = 'EUR') AS once
           GROUP BY product""",
        ("orders", "items"),
        {"fan_out": "repeat"},
    ),
    "a finer measure": Case(
        [EUROS, join("orders", "items"), by("items.product")],
        """SELECT i.product, sum(i.quantity) FROM orders o LEFT JOIN items i ON i.order_id = o.id
           WHERE o.currency = 'EUR' GROUP BY i.product""",
        ("orders", "items"),
        {"fan_out": "items.quantity"},
    ),
    "one currency": Case(
        [by("status")],
        "SELECT status, sum(amount) FROM orders WHERE currency = 'USD' GROUP BY status",
        answers={"currency": "USD"},
    ),
    "each currency runs by itself, as its groups do": Case(
        [
            by({"column": "ordered_on", "unit": "month", "as": "month"}),
            (
                "window",
                {
                    "function": "sum",
                    "column": "m0",
                    "order_by": [{"column": "month"}],
                    "as": "so_far",
                },
            ),
            (
                "window",
                {"function": "lag", "column": "m0", "order_by": [{"column": "month"}], "as": "was"},
            ),
        ],
        """SELECT *, sum(m0) OVER (PARTITION BY currency ORDER BY month),
                  lag(m0) OVER (PARTITION BY currency ORDER BY month)
           FROM (SELECT date_trunc('month', ordered_on)::date AS month, currency, sum(amount) AS m0
                 FROM orders GROUP BY 1, 2) AS months""",
        answers=GROUPED,
    ),
    "rows of one currency are added up by a window": Case(
        [
            ("window", {"function": "avg", "column": "amount", "as": "mean"}),
            ("sink", {"columns": ["id", "mean"]}),
        ],
        "SELECT id, avg(amount) OVER () FROM orders WHERE currency = 'USD'",
        answers={"currency": "USD"},
    ),
    **{
        f"converted by {match}": Case(
            [
                ("transform", {"as": "euros", "amount": "orders.amount", "rate": RATE | match}),
                by("status", sums=["euros"]),
            ],
            f"""SELECT o.status,
                      sum(CASE WHEN o.currency = 'EUR' THEN o.amount ELSE o.amount * r.rate END)
               FROM orders o LEFT JOIN LATERAL (
                   SELECT rate FROM rates r WHERE r.currency = o.currency AND rate IS NOT NULL
                   AND r.day {sign} o.ordered_on ORDER BY day DESC, rate DESC LIMIT 1) r ON true
               GROUP BY o.status""",
            answers={"date_column": "orders.ordered_on"},
        )
        for match, sign in (({}, "="), ({"match": "latest"}, "<="))
    },
    "codes of values": Case(
        [
            (
                "transform",
                {"as": "code", "table": "orders", "column": "status", "map": {"paid": 7, "x": -1}},
            ),
            ("sink", {"columns": ["orders.id", "code"]}),
        ],
        "SELECT id, CASE status WHEN 'paid' THEN 7 WHEN 'x' THEN -1 END FROM orders",
    ),
    "the latest order of each user, with what it is": Case(
        [
            (
                "dedup",
                {
                    "table": "orders",
                    "keys": ["user_id"],
                    "order_by": [{"column": "ordered_on", "direction": "desc"}],
                },
            ),
            (
                "transform",
                {"as": "kind", "map": {"paid": "yes"}, "column": "status", "default": "no"},
            ),
            join("orders", "users", how="inner"),
            ("sink", {"columns": ["orders.id", "kind", "city"]}),
        ],
        """SELECT o.id, CASE WHEN o.status = 'paid' THEN 'yes' ELSE 'no' END, u.city
           FROM (SELECT DISTINCT ON (user_id) * FROM orders WHERE user_id IS NOT NULL
                 ORDER BY user_id, ordered_on DESC, id DESC) o JOIN users u ON u.id = o.user_id""",
        ("orders", "users"),
    ),
    "the two best of each status": Case(
        [
            by("status", "user_id", sums=["items.quantity"]),
            (
                "window",
                {
                    "function": "row_number",
                    "partition_by": ["status"],
                    "order_by": [{"column": "m0", "direction": "desc"}],
                    "as": "place",
                },
            ),
            keep("place", "<=", 2),
        ],
        """SELECT * FROM (
               SELECT *, row_number() OVER (PARTITION BY status ORDER BY m0 DESC, user_id) AS place
               FROM (SELECT o.status, o.user_id, sum(i.quantity) AS m0
                     FROM orders o LEFT JOIN items i ON i.order_id = o.id GROUP BY 1, 2) AS s) AS p
           WHERE place <= 2""",
        ("orders", "items"),
    ),
    "users that have not paid": Case(
        [
            keep("status", "=", "paid", table="orders"),
            join("users", "orders", how="anti"),
            ("aggregate", {"group_by": [{"column": "city"}], "measures": [{"function": "count"}]}),
        ],
        """SELECT city, count(*) FROM users u WHERE NOT EXISTS (
               SELECT FROM orders o WHERE o.user_id = u.id AND o.status = 'paid') GROUP BY city""",
        ("users", "orders"),
    ),
    "users that never ordered a pen in February, through their orders": Case(
        [
            keep("product", "=", "pen", table="items"),
            keep("ordered_on", ">=", "2024-02-01", table="orders"),
            join("users", "items", how="anti"),
            ("aggregate", {"group_by": [{"column": "city"}], "measures": [{"function": "count"}]}),
        ],
        """SELECT city, count(*) FROM users u WHERE NOT EXISTS (
               SELECT FROM orders o JOIN items i ON i.order_id = o.id
               WHERE o.user_id = u.id AND i.product = 'pen' AND o.ordered_on >= '2024-02-01')
           GROUP BY city""",
        ("users", "orders", "items"),
    ),
    "users without an order that has a pen, table by table": Case(
        [
            keep("product", "=", "pen", table="items"),
            join("users", "orders", how="anti"),
            join("orders", "items", how="semi"),
            ("aggregate", {"group_by": [{"column": "city"}], "measures": [{"function": "count"}]}),
        ],
        """SELECT city, count(*) FROM users u WHERE NOT EXISTS (
               SELECT FROM orders o JOIN items i ON i.order_id = o.id
               WHERE o.user_id = u.id AND i.product = 'pen') GROUP BY city""",
        ("users", "orders", "items"),
    ),
    "users with orders of ink, each once": Case(
        [
            keep("product", "=", "ink", table="items"),
            join("users", "items", how="semi"),
            ("sink", {"columns": ["users.id"]}),
        ],
        """SELECT id FROM users u WHERE EXISTS (
               SELECT FROM orders o JOIN items i ON i.order_id = o.id
               WHERE o.user_id = u.id AND i.product = 'ink')""",
        ("users", "items"),
    ),
    "expressions over a parent and its child": Case(
        [
            EUROS,
            join("orders", "items"),
            (
                "aggregate",
                {
                    "group_by": [{"column": "ordered_on", "unit": "week", "as": "week"}],
                    "measures": [
                        {"function": "sum", "expression": "quantity * items.price", "as": "goods"},
                        {
                            "function": "avg",
                            "expression": "amount / nullif(quantity, 0)",
                            "as": "a",
                        },
                        {
                            "function": "count",
                            "as": "paid",
                            "filter": [{"column": "status", "operator": "=", "value": "paid"}],
                        },
                    ],
                },
            ),
            ("transform", {"as": "rate", "expression": "goods / paid"}),
        ],
        """SELECT *, goods / nullif(paid, 0)
           FROM (SELECT date_trunc('week', o.ordered_on)::date AS week,
                        sum(i.quantity * i.price) AS goods,
                        avg(o.amount / nullif(i.quantity, 0)) FILTER (WHERE i.id IS NOT NULL),
                        count(DISTINCT o.id) FILTER (WHERE o.status = 'paid') AS paid
                 FROM orders o LEFT JOIN items i ON i.order_id = o.id
                 WHERE o.currency = 'EUR' GROUP BY 1) AS weekly""",
        ("orders", "items"),
    ),
}


@pytest.fixture(scope="module")
def connection(admin_url: str) -> Iterator[psycopg.Connection]:
    with shop_connection(admin_url) as opened:
        yield opened


def _bound(case: Case) -> Any:
    intent = request(*case.operations, sources=case.sources)
    result = bind(intent, case.answers, CATALOG, time_zone=ZONE)
    assert result.analysis.ambiguities == []
    assert result.analysis.impossible == []
    assert result.bound is not None
    return result.bound


@given(worlds())
def test_intents_mean_what_sql_gives(connection: psycopg.Connection, tables: Rows) -> None:
    rows = stored(connection, tables)
    for name, case in CASES.items():
        bound = _bound(case)
        used = {source.name: rows[source.name] for source in bound.sources}
        meant = counted(evaluate(bound, used).rows)
        assert meant == counted(connection.execute(case.sql).fetchall()), name
