"""Queries built by hand, rendered and run by PostgreSQL, held against SQL written by hand."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal

import pytest

from common.values import Catalog
from databases import GuardedDatabase
from rules.linking.dates import Moment, Period
from rules.query.query import ColumnRef, Condition, Dimension, Either, Measure, Order, Part, Query, Related
from rules.query.query_json import query_from_json, query_to_json
from rules.schema.lexicon import lexicon_of
from rules.schema.schema import TableKey
from rules.sql.render import render
from tests.databases import open_asked, run
from tests.offline_questions import FIXTURES, same_rows

CUSTOMERS: TableKey = ("public", "customers")
PRODUCTS: TableKey = ("public", "products")
ORDERS: TableKey = ("public", "orders")
ITEMS: TableKey = ("public", "order_items")
NAME, CITY = ColumnRef(CUSTOMERS, "name"), ColumnRef(CUSTOMERS, "city")
PRODUCT, STOCK = ColumnRef(PRODUCTS, "product_name"), ColumnRef(PRODUCTS, "stock")
ORDER, AMOUNT, STATUS = ColumnRef(ORDERS, "order_id"), ColumnRef(ORDERS, "amount"), ColumnRef(ORDERS, "status")
SUM, COUNT = Measure("sum", ORDERS, "amount"), Measure("count", ORDERS)
BERLIN = Condition(CITY, "=", ("Berlin",))


def at(part: str, table: TableKey = ORDERS, column: str = "ordered_at") -> ColumnRef:
    return ColumnRef(table, column, part=part)  # type: ignore[arg-type]


def days(first: str, end: str) -> Period:
    return Period(Moment(date.fromisoformat(first)), Moment(date.fromisoformat(end)))


@pytest.fixture(scope="module")
def shop(make_database: Callable[[str], str]) -> Iterator[GuardedDatabase]:
    with closing(open_asked(make_database((FIXTURES / "queries.sql").read_text("utf-8")))) as database:
        yield database


@pytest.fixture(scope="module")
def catalog(shop: GuardedDatabase) -> Catalog:
    return asyncio.run(shop.catalog())


def holds(shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str, *, in_order: bool = False) -> str:
    """Runs the query, after a way through JSON, and the SQL written by hand; gives the query's SQL."""
    read = query_from_json(query_to_json(query), catalog)
    assert read == query
    lexicon = lexicon_of(catalog)
    sql = render(read, lexicon.schema, lexicon.graph)
    assert same_rows(run(shop, gold).rows, run(shop, sql).rows, in_order=in_order), sql
    return sql


# ----------------------------------------------------------------------------------------------------------- functions

KEPT = "FROM orders o JOIN customers c USING (customer_id) WHERE NOT c.is_deleted"


@pytest.mark.parametrize(
    ("measure", "gold"),
    [
        (Measure("median", ORDERS, "amount"), "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)"),
        (
            Measure("percentile", ORDERS, "amount", percent=Decimal("90")),
            "percentile_cont(0.9) WITHIN GROUP (ORDER BY amount)",
        ),
        (
            Measure("percentile", ORDERS, "amount", percent=Decimal("2.5")),
            "percentile_cont(0.025) WITHIN GROUP (ORDER BY amount)",
        ),
        (Measure("stddev", ORDERS, "amount"), "stddev_samp(amount)"),
    ],
)
def test_functions_over_rows_and_groups(shop: GuardedDatabase, catalog: Catalog, measure: Measure, gold: str) -> None:
    holds(shop, catalog, Query(ORDERS, measures=(measure,)), f"SELECT {gold} FROM orders")
    by_city = Query(
        ORDERS, measures=(measure,), dimensions=(Dimension(CUSTOMERS, "city"),), order=(Order(measure),), limit=2
    )
    gold = f"SELECT city, {gold} AS figure {KEPT} GROUP BY city ORDER BY figure DESC NULLS LAST LIMIT 2"
    holds(shop, catalog, by_city, gold, in_order=True)


def test_a_percentile_says_which_in_its_name(catalog: Catalog, shop: GuardedDatabase) -> None:
    measures = tuple(Measure("percentile", ORDERS, "amount", percent=Decimal(one)) for one in ("90", "99.9"))
    query = Query(ORDERS, measures=measures)
    gold = "SELECT percentile_cont(ARRAY[0.9, 0.999]) WITHIN GROUP (ORDER BY amount) FROM orders"
    sql = holds(shop, catalog, query, f"SELECT p[1], p[2] FROM ({gold}) AS x(p)")
    assert "percentile_90_amount" in sql and "percentile_99_9_amount" in sql


def test_a_median_of_money_and_of_floats(shop: GuardedDatabase, catalog: Catalog) -> None:
    measures = (Measure("median", PRODUCTS, "price"), Measure("stddev", PRODUCTS, "rating"))
    holds(shop, catalog, Query(PRODUCTS, measures=measures), "SELECT 3, stddev_samp(rating) FROM products")


# ---------------------------------------------------------------------------------------------- columns against columns


@pytest.mark.parametrize(
    ("base", "shown", "condition", "gold"),
    [
        (
            PRODUCTS,
            PRODUCT,
            Condition(STOCK, "<", (ColumnRef(PRODUCTS, "safety_stock"),)),
            "SELECT product_name FROM products WHERE stock < safety_stock",
        ),
        (
            PRODUCTS,
            PRODUCT,
            Condition(ColumnRef(PRODUCTS, "first_sold"), "!=", (ColumnRef(PRODUCTS, "last_sold"),)),
            "SELECT product_name FROM products WHERE first_sold <> last_sold",
        ),
        (
            ORDERS,
            ORDER,
            Condition(ColumnRef(ORDERS, "shipped_at"), ">", (ColumnRef(ORDERS, "promised_on"),)),
            "SELECT order_id FROM orders WHERE shipped_at > promised_on",
        ),
        (  # of the row that it belongs to, from both sides
            ORDERS,
            ORDER,
            Condition(AMOUNT, ">", (ColumnRef(CUSTOMERS, "credit_limit"),)),
            f"SELECT order_id {KEPT} AND amount > credit_limit",
        ),
        (
            ORDERS,
            ORDER,
            Condition(ColumnRef(CUSTOMERS, "credit_limit"), "<=", (AMOUNT,)),
            f"SELECT order_id {KEPT} AND amount >= credit_limit",
        ),
        (  # of rows that belong to it, from both sides
            CUSTOMERS,
            NAME,
            Condition(AMOUNT, ">", (ColumnRef(CUSTOMERS, "credit_limit"),)),
            f"SELECT DISTINCT name {KEPT} AND amount > credit_limit",
        ),
        (
            CUSTOMERS,
            NAME,
            Condition(ColumnRef(CUSTOMERS, "credit_limit"), "<", (AMOUNT,)),
            f"SELECT DISTINCT name {KEPT} AND amount > credit_limit",
        ),
        (
            ORDERS,
            ORDER,
            Condition(AMOUNT, "between", (Decimal(10), ColumnRef(CUSTOMERS, "credit_limit"))),
            f"SELECT order_id {KEPT} AND amount BETWEEN 10 AND credit_limit",
        ),
    ],
)
def test_a_column_is_compared_with_another_of_the_same_row(
    shop: GuardedDatabase, catalog: Catalog, base: TableKey, shown: ColumnRef, condition: Condition, gold: str
) -> None:
    holds(shop, catalog, Query(base, columns=(shown,), conditions=(condition,)), gold)


# ------------------------------------------------------------------------------------------------------------- calendar


@pytest.mark.parametrize(
    ("condition", "gold"),
    [
        (Condition(at("weekday"), "=", (Decimal(1),)), "extract(isodow FROM ordered_at) = 1"),
        (Condition(at("weekday"), "in", (Decimal(6), Decimal(7))), "extract(isodow FROM ordered_at) IN (6, 7)"),
        (Condition(at("weekend"), "true"), "extract(dow FROM ordered_at) IN (0, 6)"),
        (Condition(at("weekend"), "false"), "extract(dow FROM ordered_at) BETWEEN 1 AND 5"),
        (Condition(at("hour"), "between", (Decimal(8), Decimal(9))), "extract(hour FROM ordered_at) IN (8, 9)"),
        (Condition(at("hour"), ">=", (Decimal(22),)), "to_char(ordered_at, 'HH24') >= '22'"),
        (Condition(at("month"), "=", (Decimal(2),)), "to_char(ordered_at, 'MM') = '02'"),
        (Condition(at("quarter"), "=", (Decimal(2),)), "to_char(ordered_at, 'Q') = '2'"),
        (Condition(at("day"), "=", (Decimal(15),)), "to_char(ordered_at, 'DD') = '15'"),
        (Condition(at("month", column="promised_on"), ">", (at("month"),)),
         "extract(month FROM promised_on) > extract(month FROM ordered_at)"),
    ],
)  # fmt: skip
def test_parts_of_dates_restrict_rows(shop: GuardedDatabase, catalog: Catalog, condition: Condition, gold: str) -> None:
    query = Query(ORDERS, columns=(ORDER,), conditions=(condition,))
    holds(shop, catalog, query, f"SELECT order_id FROM orders WHERE {gold}")


@pytest.mark.parametrize(
    ("part", "gold"),
    [
        ("weekday", "nullif(to_char(ordered_at, 'ID'), '')::int"),
        ("weekend", "to_char(ordered_at, 'ID') IN ('6', '7')"),
        ("hour", "to_char(ordered_at, 'HH24')::int"),
        ("month", "to_char(ordered_at, 'MM')::int"),
        ("quarter", "to_char(ordered_at, 'Q')::int"),
        ("day", "to_char(ordered_at, 'DD')::int"),
    ],
)
def test_parts_of_dates_are_groups(shop: GuardedDatabase, catalog: Catalog, part: Part, gold: str) -> None:
    group = Dimension(ORDERS, "ordered_at", part=part)
    query = Query(ORDERS, measures=(COUNT, SUM), dimensions=(group,), order=(Order(descending=False),))
    gold = f"SELECT {gold}, count(*), sum(amount) FROM orders GROUP BY 1 ORDER BY 1"
    holds(shop, catalog, query, gold, in_order=True)


def test_parts_stand_beside_other_groups_and_in_lists(shop: GuardedDatabase, catalog: Catalog) -> None:
    groups = (Dimension(CUSTOMERS, "city"), Dimension(ORDERS, "ordered_at", part="weekend"))
    gold = f"SELECT city, extract(isodow FROM ordered_at) > 5, count(*) {KEPT} GROUP BY 1, 2"
    holds(shop, catalog, Query(ORDERS, measures=(COUNT,), dimensions=groups), gold)
    listed = Query(ORDERS, columns=(ORDER, at("weekday")), order=(Order(column=at("weekday")),))
    gold = "SELECT order_id, extract(isodow FROM ordered_at) FROM orders"
    assert "ordered_at_weekday" in holds(shop, catalog, listed, gold)


def test_a_date_has_no_hour(catalog: Catalog) -> None:
    lexicon = lexicon_of(catalog)
    query = Query(ORDERS, measures=(COUNT,), dimensions=(Dimension(ORDERS, "promised_on", part="hour"),))
    with pytest.raises(LookupError):
        render(query, lexicon.schema, lexicon.graph)


# --------------------------------------------------------------------------------------------------------------- either


@pytest.mark.parametrize(
    ("query", "gold"),
    [
        (
            Query(
                ORDERS,
                columns=(ORDER,),
                either=(Either((Condition(AMOUNT, ">", (Decimal(150),)), Condition(STATUS, "=", ("open",)))),),
            ),
            "SELECT order_id FROM orders WHERE amount > 150 OR status = 'open'",
        ),
        (  # an order of nobody stays in by its amount, one of a deleted customer does
            Query(ORDERS, columns=(ORDER,), either=(Either((Condition(AMOUNT, "<", (Decimal(80),)), BERLIN)),)),
            "SELECT order_id FROM orders o WHERE amount < 80 OR EXISTS (SELECT 1 FROM customers c"
            " WHERE c.customer_id = o.customer_id AND city = 'Berlin' AND NOT is_deleted)",
        ),
        (  # the table is joined for what is shown
            Query(ORDERS, columns=(ORDER, NAME), either=(Either((Condition(AMOUNT, "<", (Decimal(80),)), BERLIN)),)),
            f"SELECT order_id, name {KEPT} AND (amount < 80 OR city = 'Berlin')",
        ),
        (  # rows that belong to it, two tables further
            Query(
                CUSTOMERS,
                columns=(NAME,),
                either=(Either((Condition(CITY, "null"), Condition(PRODUCT, "=", ("Tea",)))),),
            ),
            "SELECT name FROM customers c WHERE NOT is_deleted AND (city IS NULL OR customer_id IN (SELECT customer_id"
            " FROM orders JOIN order_items USING (order_id) JOIN products USING (product_id)"
            " WHERE product_name = 'Tea'))",
        ),
        (  # or nothing at all belongs to it
            Query(CUSTOMERS, columns=(NAME,), either=(Either((BERLIN,), (Related(ORDERS, negated=True),)),)),
            "SELECT name FROM customers c WHERE NOT is_deleted AND (city = 'Berlin' OR NOT EXISTS"
            " (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id))",
        ),
        (  # with other conditions, groups and a second choice
            Query(
                ORDERS,
                measures=(COUNT, SUM),
                dimensions=(Dimension(ORDERS, "status"),),
                conditions=(Condition(ColumnRef(ORDERS, "ordered_at"), "during", (days("2023-01-01", "2024-03-01"),)),),
                either=(
                    Either((Condition(AMOUNT, ">", (Decimal(100),)), Condition(CITY, "=", ("Paris",)))),
                    Either((Condition(at("weekend"), "true"), Condition(at("month"), "=", (Decimal(4),)))),
                ),
            ),
            "SELECT status, count(*), sum(amount) FROM orders o LEFT JOIN customers c USING (customer_id)"
            " WHERE ordered_at >= '2023-01-01' AND ordered_at < '2024-03-01'"
            " AND (amount > 100 OR city = 'Paris' AND NOT is_deleted)"
            " AND (extract(isodow FROM ordered_at) > 5 OR extract(month FROM ordered_at) = 4) GROUP BY status",
        ),
        (  # every group appears, and the choice restricts what is counted
            Query(
                ORDERS,
                measures=(COUNT,),
                dimensions=(Dimension(CUSTOMERS),),
                either=(Either((Condition(AMOUNT, ">", (Decimal(100),)), Condition(STATUS, "=", ("open",)))),),
                all_of=CUSTOMERS,
            ),
            "SELECT name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id"
            " AND (amount > 100 OR status = 'open')) FROM customers c WHERE NOT is_deleted",
        ),
        (  # columns of two tables are compared in one of the alternatives
            Query(
                ORDERS,
                columns=(ORDER,),
                either=(
                    Either(
                        (
                            Condition(AMOUNT, ">", (ColumnRef(CUSTOMERS, "credit_limit"),)),
                            Condition(STATUS, "=", ("open",)),
                        )
                    ),
                ),
            ),
            "SELECT order_id FROM orders o LEFT JOIN customers c USING (customer_id)"
            " WHERE amount > credit_limit AND NOT is_deleted OR status = 'open'",
        ),
    ],
)
def test_one_of_several_conditions_holds(shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str) -> None:
    holds(shop, catalog, query, gold)
