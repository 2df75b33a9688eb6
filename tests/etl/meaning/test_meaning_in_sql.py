"""What the interpreter says of any rows is what SQL written by hand gives for them."""

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given

from etl.meaning.bound import BoundCondition, BoundIntent
from etl.meaning.interpreter import evaluate
from tests.support.bound_intents import (
    column,
    compute,
    dedup,
    group,
    intent,
    join,
    keep,
    key,
    measure,
    rate,
    window,
)
from tests.support.shop_worlds import Rows, counted, shop_connection, stored, worlds

ZONE = "America/New_York"
NOT_VOID = BoundCondition(column("orders.status"), "!=", "void")
MONTH = key("orders.paid_at", "month", "month")
TOTAL = measure("sum", "orders", "orders.amount", "total")
COUNT = measure("count", "orders", name="count")
ITEMS = join("items", ("orders.id", "items.order_id"), is_multiple=True)
USERS = join("users", ("orders.user_id", "users.id"))
LOCAL_MONTH = f"date_trunc('month', o.paid_at AT TIME ZONE '{ZONE}')::date"

CASES: dict[str, tuple[BoundIntent, str]] = {
    "parents and children by month": (
        intent(
            keep(NOT_VOID, source="orders"),
            ITEMS,
            group(
                [MONTH],
                TOTAL,
                COUNT,
                measure("sum", "items", "items.quantity * items.price", "goods"),
                measure("count_distinct", "items", "items.product", "products"),
            ),
            sources=("orders", "items"),
            columns=("month", "total", "count", "goods", "products"),
            time_zone=ZONE,
        ),
        f"""WITH parents AS (
                SELECT {LOCAL_MONTH} AS month, sum(o.amount) AS total, count(*) AS count
                FROM orders o WHERE o.status IS DISTINCT FROM 'void' GROUP BY 1),
            children AS (
                SELECT {LOCAL_MONTH} AS month, sum(i.quantity * i.price) AS goods,
                       count(DISTINCT i.product) AS products
                FROM items i JOIN orders o ON o.id = i.order_id
                WHERE o.status IS DISTINCT FROM 'void' GROUP BY 1)
            SELECT month, total, count, goods, coalesce(products, 0)
            FROM parents p LEFT JOIN children c USING (month) WHERE month IS NOT NULL
            UNION ALL
            SELECT NULL, p.total, p.count, c.goods, coalesce(c.products, 0)
            FROM parents p LEFT JOIN children c ON c.month IS NULL WHERE p.month IS NULL""",
    ),
    "parents selected by their children": (
        intent(
            ITEMS,
            keep(BoundCondition(column("items.quantity"), ">", 1)),
            USERS,
            group([key("users.city", "city")], TOTAL, COUNT),
            sources=("orders", "items", "users"),
            columns=("city", "total", "count"),
        ),
        """SELECT u.city, sum(o.amount), count(*)
           FROM orders o LEFT JOIN users u ON u.id = o.user_id
           WHERE EXISTS (SELECT FROM items i WHERE i.order_id = o.id AND i.quantity > 1)
           GROUP BY u.city""",
    ),
    "parents in each group of their children": (
        intent(
            ITEMS,
            group(
                [key("items.product", "product")],
                TOTAL,
                measure("median", "orders", "orders.amount", "median"),
                measure("avg", "orders", "orders.amount", "mean"),
            ),
            sources=("orders", "items"),
            columns=("product", "total", "median", "mean"),
        ),
        """SELECT product, sum(amount),
                  percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)::numeric,
                  avg(amount)
           FROM (SELECT DISTINCT i.product, o.id, o.amount
                 FROM orders o LEFT JOIN items i ON i.order_id = o.id) AS once
           GROUP BY product""",
    ),
    "spine": (
        intent(
            group([MONTH, key("orders.status", "status")], TOTAL, COUNT, has_spine=True),
            columns=("month", "status", "total", "count"),
            time_zone=ZONE,
        ),
        f"""WITH local AS (SELECT {LOCAL_MONTH} AS month, o.* FROM orders o),
            months AS (SELECT generate_series(min(month), max(month), interval '1 month')::date
                           AS month
                       FROM local)
            SELECT m.month, s.status, sum(l.amount), count(l.id)
            FROM months m CROSS JOIN (SELECT DISTINCT status FROM local) s
            LEFT JOIN local l ON l.month = m.month AND l.status IS NOT DISTINCT FROM s.status
            WHERE m.month IS NOT NULL
            GROUP BY m.month, s.status
            UNION ALL
            SELECT NULL, status, sum(amount), count(*)
            FROM local WHERE month IS NULL GROUP BY status""",
    ),
    "dedup before and after joins": (
        intent(
            dedup("items", ["order_id"], [("quantity", "asc")]),
            join("items", ("orders.id", "items.order_id")),
            join("users", ("orders.user_id", "users.id"), "inner"),
            dedup("orders", ["user_id"], [("paid_at", "desc")], "rows"),
            sources=("orders", "items", "users"),
            columns=("id", "product", "city"),
            outputs=[("id", "orders.id"), ("product", "items.product"), ("city", "users.city")],
        ),
        """WITH first_items AS (
               SELECT DISTINCT ON (order_id) * FROM items WHERE order_id IS NOT NULL
               ORDER BY order_id, quantity, id DESC)
           SELECT DISTINCT ON (o.user_id) o.id, i.product, u.city
           FROM orders o JOIN users u ON u.id = o.user_id
           LEFT JOIN first_items i ON i.order_id = o.id
           ORDER BY o.user_id, o.paid_at DESC, o.id DESC""",
    ),
    "windows over months": (
        intent(
            group(
                [key("orders.ordered_on", "week", "week"), key("orders.status", "status")], TOTAL
            ),
            window("sum", "total", partition=["status"], sorting=[("week", "asc")]),
            compute("rest", "window - total", "result"),
            columns=("week", "status", "total", "window", "rest"),
        ),
        """SELECT *, running - total FROM (
               SELECT week, status, total,
                      sum(total) OVER (PARTITION BY status ORDER BY week) AS running
               FROM (SELECT date_trunc('week', ordered_on)::date AS week, status,
                            sum(amount) AS total
                     FROM orders GROUP BY 1, 2) AS weekly) AS done""",
    ),
    "ranks and shares": (
        intent(
            window("rank", partition=["status"], sorting=[("amount", "desc")]),
            window("share", "amount", partition=["status"], name="share"),
            columns=("id", "window", "share"),
            outputs=[("id", "orders.id"), ("status", "orders.status"), ("amount", "orders.amount")],
        ),
        """SELECT id, rank() OVER (PARTITION BY status ORDER BY amount DESC),
                  amount / nullif(sum(amount) OVER (PARTITION BY status), 0)
           FROM orders""",
    ),
    "semi and anti": (
        intent(
            join("items", ("orders.id", "items.order_id"), "anti"),
            join("users", ("orders.user_id", "users.id"), "semi"),
            group([], TOTAL, COUNT),
            sources=("orders", "items", "users"),
            columns=("total", "count"),
        ),
        """SELECT sum(amount), count(*) FROM orders o
           WHERE NOT EXISTS (SELECT FROM items i WHERE i.order_id = o.id)
           AND o.user_id IN (SELECT id FROM users)""",
    ),
    **{
        f"rates of {name}": (
            intent(
                rate("EUR", is_latest=is_latest),
                group(
                    [key("orders.currency", "currency")],
                    measure("sum", "orders", "converted", "total"),
                ),
                sources=("orders", "rates"),
                columns=("currency", "total"),
                time_zone=ZONE,
            ),
            f"""SELECT o.currency,
                       sum(CASE WHEN o.currency = 'EUR' THEN o.amount ELSE o.amount * r.rate END)
                FROM orders o LEFT JOIN LATERAL (
                    SELECT rate FROM rates r
                    WHERE r.currency = o.currency AND rate IS NOT NULL
                    AND r.day {sign} (o.paid_at AT TIME ZONE '{ZONE}')::date
                    ORDER BY day DESC, rate DESC LIMIT 1) r ON true
                GROUP BY o.currency""",
        )
        for name, is_latest, sign in (("the day", False, "="), ("the latest day", True, "<="))
    },
}


@pytest.fixture(scope="module")
def connection(admin_url: str) -> Iterator[psycopg.Connection]:
    with shop_connection(admin_url) as opened:
        yield opened


@given(worlds())
def test_any_rows_mean_what_sql_gives(connection: psycopg.Connection, tables: Rows) -> None:
    rows = stored(connection, tables)
    for name, (bound, sql) in CASES.items():
        used = {source.name: rows[source.name] for source in bound.sources}
        meant = counted(evaluate(bound, used).rows)
        assert meant == counted(connection.execute(sql).fetchall()), name
