"""Queries built by hand, rendered and run by PostgreSQL, held against SQL written by hand."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from common.meanings import Metric, TableKey
from common.values import Catalog
from databases.execution.guarded import GuardedDatabase
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import (
    ColumnRef,
    Comparison,
    Condition,
    Dimension,
    Either,
    Having,
    Measure,
    Order,
    Part,
    Query,
    Related,
)
from rules.schema.lexicon import lexicon_of
from rules.sql.render import render
from rules.sql.statement import Unrenderable
from tests.support.databases import open_asked
from tests.support.query_shop import (
    AMOUNT,
    BERLIN,
    CITY,
    COUNT,
    CUSTOMERS,
    ITEMS,
    NAME,
    ORDER,
    ORDERED,
    ORDERS,
    PRODUCT,
    PRODUCTS,
    SHOP_SQL,
    STATUS,
    STOCK,
    SUM,
    YEARS,
    at,
    by,
    days,
    holds,
    in_year,
)


@pytest.fixture(scope="module")
def shop(make_database: Callable[[str], str]) -> Iterator[GuardedDatabase]:
    with closing(open_asked(make_database(SHOP_SQL))) as database:
        yield database


@pytest.fixture(scope="module")
def catalog(shop: GuardedDatabase) -> Catalog:
    return asyncio.run(shop.catalog())


# ------------------------------------------------------------------------------
# functions

KEPT = "FROM orders o JOIN customers c USING (customer_id) WHERE NOT c.is_deleted"


@pytest.mark.parametrize(
    ("measure", "gold"),
    [
        (
            Measure("median", ORDERS, "amount"),
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)",
        ),
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
def test_functions_over_rows_and_groups(
    shop: GuardedDatabase, catalog: Catalog, measure: Measure, gold: str
) -> None:
    holds(shop, catalog, Query(ORDERS, measures=(measure,)), f"SELECT {gold} FROM orders")
    by_city = Query(
        ORDERS,
        measures=(measure,),
        dimensions=(Dimension(CUSTOMERS, "city"),),
        order=(Order(measure),),
        limit=2,
    )
    gold = (
        f"SELECT city, {gold} AS figure {KEPT} GROUP BY city "
        "ORDER BY figure DESC NULLS LAST LIMIT 2"
    )
    holds(shop, catalog, by_city, gold, in_order=True)


def test_a_percentile_says_which_in_its_name(catalog: Catalog, shop: GuardedDatabase) -> None:
    measures = tuple(
        Measure("percentile", ORDERS, "amount", percent=Decimal(one)) for one in ("90", "99.9")
    )
    query = Query(ORDERS, measures=measures)
    gold = "SELECT percentile_cont(ARRAY[0.9, 0.999]) WITHIN GROUP (ORDER BY amount) FROM orders"
    sql = holds(shop, catalog, query, f"SELECT p[1], p[2] FROM ({gold}) AS x(p)")
    assert "percentile_90_amount" in sql and "percentile_99_9_amount" in sql


def test_a_median_of_money_and_of_floats(shop: GuardedDatabase, catalog: Catalog) -> None:
    measures = (Measure("median", PRODUCTS, "price"), Measure("stddev", PRODUCTS, "rating"))
    holds(
        shop,
        catalog,
        Query(PRODUCTS, measures=measures),
        "SELECT 3, stddev_samp(rating) FROM products",
    )


# ------------------------------------------------------------------------------
# columns against columns


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
    shop: GuardedDatabase,
    catalog: Catalog,
    base: TableKey,
    shown: ColumnRef,
    condition: Condition,
    gold: str,
) -> None:
    holds(shop, catalog, Query(base, columns=(shown,), conditions=(condition,)), gold)


# ------------------------------------------------------------------------------
# calendar


@pytest.mark.parametrize(
    ("condition", "gold"),
    [
        (Condition(at("weekday"), "=", (Decimal(1),)), "extract(isodow FROM ordered_at) = 1"),
        (
            Condition(at("weekday"), "in", (Decimal(6), Decimal(7))),
            "extract(isodow FROM ordered_at) IN (6, 7)",
        ),
        (Condition(at("weekend"), "true"), "extract(dow FROM ordered_at) IN (0, 6)"),
        (Condition(at("weekend"), "false"), "extract(dow FROM ordered_at) BETWEEN 1 AND 5"),
        (
            Condition(at("hour"), "between", (Decimal(8), Decimal(9))),
            "extract(hour FROM ordered_at) IN (8, 9)",
        ),
        (Condition(at("hour"), ">=", (Decimal(22),)), "to_char(ordered_at, 'HH24') >= '22'"),
        (Condition(at("month"), "=", (Decimal(2),)), "to_char(ordered_at, 'MM') = '02'"),
        (Condition(at("quarter"), "=", (Decimal(2),)), "to_char(ordered_at, 'Q') = '2'"),
        (Condition(at("day"), "=", (Decimal(15),)), "to_char(ordered_at, 'DD') = '15'"),
        (
            Condition(at("month", column="promised_on"), ">", (at("month"),)),
            "extract(month FROM promised_on) > extract(month FROM ordered_at)",
        ),
    ],
)
def test_parts_of_dates_restrict_rows(
    shop: GuardedDatabase, catalog: Catalog, condition: Condition, gold: str
) -> None:
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
def test_parts_of_dates_are_groups(
    shop: GuardedDatabase, catalog: Catalog, part: Part, gold: str
) -> None:
    group = Dimension(ORDERS, "ordered_at", part=part)
    query = Query(
        ORDERS, measures=(COUNT, SUM), dimensions=(group,), order=(Order(descending=False),)
    )
    gold = f"SELECT {gold}, count(*), sum(amount) FROM orders GROUP BY 1 ORDER BY 1"
    holds(shop, catalog, query, gold, in_order=True)


def test_parts_stand_beside_other_groups_and_in_lists(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    groups = (Dimension(CUSTOMERS, "city"), Dimension(ORDERS, "ordered_at", part="weekend"))
    gold = f"SELECT city, extract(isodow FROM ordered_at) > 5, count(*) {KEPT} GROUP BY 1, 2"
    holds(shop, catalog, Query(ORDERS, measures=(COUNT,), dimensions=groups), gold)
    listed = Query(ORDERS, columns=(ORDER, at("weekday")), order=(Order(column=at("weekday")),))
    gold = "SELECT order_id, extract(isodow FROM ordered_at) FROM orders"
    assert "ordered_at_weekday" in holds(shop, catalog, listed, gold)


def test_a_date_has_no_hour(catalog: Catalog) -> None:
    lexicon = lexicon_of(catalog)
    query = Query(
        ORDERS, measures=(COUNT,), dimensions=(Dimension(ORDERS, "promised_on", part="hour"),)
    )
    with pytest.raises(LookupError):
        render(query, lexicon.schema, lexicon.graph)


# ------------------------------------------------------------------------------
# either


@pytest.mark.parametrize(
    ("query", "gold"),
    [
        (
            Query(
                ORDERS,
                columns=(ORDER,),
                either=(
                    Either(
                        (Condition(AMOUNT, ">", (Decimal(150),)), Condition(STATUS, "=", ("open",)))
                    ),
                ),
            ),
            "SELECT order_id FROM orders WHERE amount > 150 OR status = 'open'",
        ),
        (  # an order of nobody stays in by its amount, one of a deleted customer does
            Query(
                ORDERS,
                columns=(ORDER,),
                either=(Either((Condition(AMOUNT, "<", (Decimal(80),)), BERLIN)),),
            ),
            "SELECT order_id FROM orders o WHERE amount < 80 OR EXISTS (SELECT 1 FROM customers c"
            " WHERE c.customer_id = o.customer_id AND city = 'Berlin' AND NOT is_deleted)",
        ),
        (  # the table is joined for what is shown
            Query(
                ORDERS,
                columns=(ORDER, NAME),
                either=(Either((Condition(AMOUNT, "<", (Decimal(80),)), BERLIN)),),
            ),
            f"SELECT order_id, name {KEPT} AND (amount < 80 OR city = 'Berlin')",
        ),
        (  # rows that belong to it, two tables further
            Query(
                CUSTOMERS,
                columns=(NAME,),
                either=(Either((Condition(CITY, "null"), Condition(PRODUCT, "=", ("Tea",)))),),
            ),
            "SELECT name FROM customers c WHERE NOT is_deleted AND (city IS NULL "
            "OR customer_id IN (SELECT customer_id"
            " FROM orders JOIN order_items USING (order_id) JOIN products USING (product_id)"
            " WHERE product_name = 'Tea'))",
        ),
        (  # or nothing at all belongs to it
            Query(
                CUSTOMERS,
                columns=(NAME,),
                either=(Either((BERLIN,), (Related(ORDERS, negated=True),)),),
            ),
            "SELECT name FROM customers c WHERE NOT is_deleted AND (city = 'Berlin' OR NOT EXISTS"
            " (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id))",
        ),
        (  # with other conditions, groups and a second choice
            Query(
                ORDERS,
                measures=(COUNT, SUM),
                dimensions=(Dimension(ORDERS, "status"),),
                conditions=(
                    Condition(
                        ColumnRef(ORDERS, "ordered_at"),
                        "during",
                        (days("2023-01-01", "2024-03-01"),),
                    ),
                ),
                either=(
                    Either(
                        (Condition(AMOUNT, ">", (Decimal(100),)), Condition(CITY, "=", ("Paris",)))
                    ),
                    Either(
                        (
                            Condition(at("weekend"), "true"),
                            Condition(at("month"), "=", (Decimal(4),)),
                        )
                    ),
                ),
            ),
            "SELECT status, count(*), sum(amount) FROM orders o LEFT JOIN customers c "
            "USING (customer_id)"
            " WHERE ordered_at >= '2023-01-01' AND ordered_at < '2024-03-01'"
            " AND (amount > 100 OR city = 'Paris' AND NOT is_deleted)"
            " AND (extract(isodow FROM ordered_at) > 5 OR extract(month FROM ordered_at) = 4)"
            " GROUP BY status",
        ),
        (  # every group appears, and the choice restricts what is counted
            Query(
                ORDERS,
                measures=(COUNT,),
                dimensions=(Dimension(CUSTOMERS),),
                either=(
                    Either(
                        (Condition(AMOUNT, ">", (Decimal(100),)), Condition(STATUS, "=", ("open",)))
                    ),
                ),
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
def test_one_of_several_conditions_holds(
    shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str
) -> None:
    holds(shop, catalog, query, gold)


# ------------------------------------------------------------------------------
# both and neither


def bought(name: str, negated: bool = False) -> Related:
    return Related(PRODUCTS, (Condition(PRODUCT, "=", (name,)),), negated)


BUYERS = (
    "SELECT customer_id FROM orders JOIN order_items USING (order_id) JOIN products "
    "USING (product_id)"
)


@pytest.mark.parametrize(
    ("related", "gold"),
    [
        (
            (bought("Tea"), bought("Milk")),
            f"customer_id IN ({BUYERS} WHERE product_name = 'Tea')"
            f" AND customer_id IN ({BUYERS} WHERE product_name = 'Milk')",
        ),
        (
            (bought("Tea", negated=True), bought("Milk", negated=True)),
            (
                f"NOT EXISTS ({BUYERS} WHERE orders.customer_id = c.customer_id "
                "AND product_name IN ('Tea', 'Milk'))"
            ),
        ),
        (
            (bought("Tea"), bought("Milk", negated=True)),
            f"EXISTS ({BUYERS} WHERE orders.customer_id = c.customer_id AND product_name = 'Tea')"
            f" AND NOT EXISTS ({BUYERS} WHERE orders.customer_id = c.customer_id"
            " AND product_name = 'Milk')",
        ),
        (  # nothing but tea
            (bought("Tea"), Related(PRODUCTS, (Condition(PRODUCT, "!=", ("Tea",)),), negated=True)),
            f"EXISTS ({BUYERS} WHERE orders.customer_id = c.customer_id AND product_name = 'Tea')"
            f" AND NOT EXISTS ({BUYERS} WHERE orders.customer_id = c.customer_id"
            " AND product_name <> 'Tea')",
        ),
        (  # rows of one table, of two kinds
            (
                Related(
                    ORDERS,
                    (Condition(STATUS, "=", ("paid",)), Condition(AMOUNT, ">", (Decimal(50),))),
                ),
                Related(ORDERS, (Condition(STATUS, "=", ("open",)),)),
            ),
            "EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id "
            "AND status = 'paid' AND amount > 50)"
            " AND EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id"
            " AND status = 'open')",
        ),
    ],
)
def test_both_and_neither(
    shop: GuardedDatabase, catalog: Catalog, related: tuple[Related, ...], gold: str
) -> None:
    query = Query(CUSTOMERS, columns=(NAME,), related=related)
    holds(shop, catalog, query, f"SELECT name FROM customers c WHERE NOT is_deleted AND {gold}")
    counted = Query(CUSTOMERS, measures=(Measure("count", CUSTOMERS),), related=related)
    holds(
        shop, catalog, counted, f"SELECT count(*) FROM customers c WHERE NOT is_deleted AND {gold}"
    )


# ------------------------------------------------------------------------------
# changes

FIRST, SECOND = (
    f"ordered_at BETWEEN '{year}-01-01' AND '{year}-12-31 23:59:59'" for year in (2023, 2024)
)


def change(first: str, second: str) -> str:
    """Both figures, their difference and it in percent, worked out from two expressions."""
    return (
        f"{first}, {second}, {second} - {first}, "
        f"round((100.0 * ({second} - {first}) / nullif({first}, 0))::numeric, 4)"
    )


def sums(first: str, second: str, of: str = "sum(CASE WHEN {} THEN amount END)") -> str:
    return change(of.replace("{}", first), of.replace("{}", second))


ZERO = "sum(CASE WHEN {} THEN coalesce(amount, 0) ELSE 0 END)"


@pytest.mark.parametrize(
    ("query", "gold"),
    [
        (
            Query(ORDERS, measures=(SUM,), comparison=YEARS),
            f"SELECT {sums(FIRST, SECOND)} FROM orders",
        ),
        (
            Query(ORDERS, measures=(COUNT,), comparison=YEARS),
            f"SELECT {sums(FIRST, SECOND, 'count(CASE WHEN {} THEN 1 END)')} FROM orders",
        ),
        (
            Query(ORDERS, measures=(Measure("median", ORDERS, "amount"),), comparison=YEARS),
            f"SELECT {change('a', 'b')} FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY "
            f"CASE WHEN {FIRST}"
            f" THEN amount END) a, percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN {SECOND}"
            " THEN amount END) b"
            " FROM orders) x",
        ),
        (  # of two groups, which are in a table that is not shown; nobody's order is in neither
            Query(
                ORDERS,
                measures=(SUM, COUNT),
                comparison=Comparison(
                    (Condition(CITY, "=", ("Paris",)),), (Condition(CITY, "=", ("Rome",)),)
                ),
            ),
            "SELECT 260::numeric, 350::numeric, 90::numeric, 34.6154, 3, 2, -1, -33.3333",
        ),
        (  # a period without orders has no sum, and a count of 0
            Query(
                ORDERS,
                measures=(SUM, COUNT),
                comparison=Comparison((in_year(2020),), (in_year(2024),)),
            ),
            "SELECT NULL::numeric, sum(amount), NULL::numeric, NULL::numeric, 0, count(*), "
            "count(*), NULL::numeric"
            f" FROM orders WHERE {SECOND}",
        ),
        (
            Query(
                ORDERS, measures=(SUM,), comparison=Comparison((in_year(2024),), (in_year(2020),))
            ),
            (
                "SELECT sum(amount), NULL::numeric, NULL::numeric, NULL::numeric FROM orders "
                f"WHERE {SECOND}"
            ),
        ),
        (  # the sides overlap
            Query(
                ORDERS,
                measures=(COUNT,),
                comparison=Comparison(
                    (in_year(2024),), (in_year(2024), Condition(AMOUNT, ">", (Decimal(100),)))
                ),
            ),
            f"SELECT {change('a', 'b')} FROM (SELECT count(*) a, "
            "count(*) FILTER (WHERE amount > 100) b"
            f" FROM orders WHERE {SECOND}) x",
        ),
        (  # by groups, one of which is NULL, and some of which have no rows in one of the periods
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(CUSTOMERS, "city"),),
                comparison=YEARS,
            ),
            (
                f"SELECT city, {sums(FIRST, SECOND, ZERO)} {KEPT} AND ({FIRST} OR {SECOND}) "
                "GROUP BY city"
            ),
        ),
        (  # under other conditions
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(ORDERS, "status"),),
                conditions=(Condition(CITY, "!=", ("Berlin",)),),
                comparison=YEARS,
            ),
            f"SELECT status, {sums(FIRST, SECOND, ZERO)} {KEPT} AND city IS DISTINCT FROM 'Berlin'"
            f" AND ({FIRST} OR {SECOND}) GROUP BY status",
        ),
        (  # all customers, also those without orders
            Query(
                ORDERS,
                measures=(COUNT, SUM),
                dimensions=(Dimension(CUSTOMERS),),
                comparison=YEARS,
                all_of=CUSTOMERS,
            ),
            "SELECT name, a, b, b - a, round(100.0 * (b - a) / nullif(a, 0), 4), c, d, d - c,"
            " round(100.0 * (d - c) / nullif(c, 0), 4) FROM (SELECT name,"
            f" (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id AND {FIRST}) a,"
            f" (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id AND {SECOND}) b,"
            " (SELECT coalesce(sum(amount), 0) FROM orders o WHERE o.customer_id = c.customer_id"
            f" AND {FIRST}) c,"
            " (SELECT coalesce(sum(amount), 0) FROM orders o WHERE o.customer_id = c.customer_id"
            f" AND {SECOND}) d"
            " FROM customers c WHERE NOT is_deleted) x",
        ),
        (  # an average of groups
            Query(
                ORDERS,
                measures=(
                    Measure("sum", ORDERS, "amount", per=Dimension(ORDERS, "ordered_at", "month")),
                ),
                comparison=YEARS,
            ),
            f"SELECT {change('a', 'b')} FROM (SELECT (SELECT avg(s) FROM (SELECT sum(amount) s"
            f" FROM orders WHERE {FIRST} GROUP BY date_trunc('month', ordered_at)) x) a,"
            " (SELECT avg(s) FROM"
            f" (SELECT sum(amount) s FROM orders WHERE {SECOND} GROUP BY date_trunc('month',"
            " ordered_at)) x) b) y",
        ),
        (  # shares of groups
            Query(
                ORDERS,
                measures=(Measure("sum", ORDERS, "amount", is_share=True),),
                dimensions=(Dimension(ORDERS, "status"),),
                comparison=YEARS,
            ),
            f"SELECT status, {change('a', 'b')} FROM (SELECT status, round(100 * sum(amount)"
            f" / sum(sum(amount)) OVER (), 4) a FROM orders WHERE {FIRST} GROUP BY 1) x FULL JOIN"
            f" (SELECT status, round(100 * sum(amount) / sum(sum(amount)) OVER (), 4) b"
            f" FROM orders WHERE {SECOND} GROUP BY 1) y USING (status)",
        ),
    ],
)
def test_two_sets_of_rows_are_compared(
    shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str
) -> None:
    holds(shop, catalog, query, gold)


@pytest.mark.parametrize(
    ("changed", "tail"),
    [
        ({"order": (Order(SUM, change="difference"),)}, "ORDER BY d DESC NULLS LAST, city"),
        ({"order": (Order(SUM, change="percent", descending=False),)}, "ORDER BY p, city"),
        ({"order": (Order(SUM),), "limit": 2}, "ORDER BY b DESC NULLS LAST LIMIT 2"),
        ({"order": (Order(descending=False),)}, "ORDER BY city"),
        ({"order": (Order(column=CITY),)}, "ORDER BY city DESC NULLS LAST"),
        ({"having": (Having(SUM, ">", (Decimal(0),), "difference"),)}, "WHERE d > 0"),
        ({"having": (Having(SUM, "<", (Decimal(-10),), "percent"),)}, "WHERE p < -10"),
        ({"having": (Having(SUM, ">", (Decimal(100),)),)}, "WHERE b > 100"),
    ],
)
def test_changes_are_ordered_and_compared(
    shop: GuardedDatabase, catalog: Catalog, changed: dict[str, Any], tail: str
) -> None:
    query = Query(
        ORDERS,
        measures=(SUM,),
        dimensions=(Dimension(CUSTOMERS, "city"),),
        comparison=YEARS,
        **changed,
    )
    gold = (
        f"SELECT * FROM (SELECT city, {sums(FIRST, SECOND, ZERO)} {KEPT} AND ({FIRST} OR {SECOND}) "
        "GROUP BY city)"
        f" AS x(city, a, b, d, p) {tail}"
    )
    holds(shop, catalog, query, gold, in_order="ORDER" in tail and "city" in tail)


def series(unit: str, back: str, having: str = "TRUE", of: str = "sum(amount)") -> str:
    """Each bucket with the figure of the one `back`, looked up by itself."""
    figure = (
        f"(SELECT {of} FROM orders o WHERE date_trunc('{unit}', "
        f"o.ordered_at) = b - interval '{back}')"
    )
    here = f"(SELECT {of} FROM orders o WHERE date_trunc('{unit}', o.ordered_at) = b)"
    return (
        "SELECT b::date, f, nullif(p, 0), f - nullif(p, 0), "
        "round(100.0 * (f - p) / nullif(p, 0), 4)"
        f" FROM (SELECT b, {here} f, {figure} p FROM (SELECT DISTINCT date_trunc('{unit}',"
        " ordered_at) b FROM orders) x"
        f" WHERE b IS NOT NULL) y WHERE {having} ORDER BY b"
    )


@pytest.mark.parametrize(
    ("query", "gold"),
    [
        (
            Query(ORDERS, measures=(SUM,), dimensions=(by("month"),), growth="bucket"),
            series("month", "1 month"),
        ),
        (
            Query(ORDERS, measures=(SUM,), dimensions=(by("month"),), growth="year"),
            series("month", "1 year"),
        ),
        (
            Query(ORDERS, measures=(SUM,), dimensions=(by("quarter"),), growth="bucket"),
            series("quarter", "3 months"),
        ),
        (
            Query(ORDERS, measures=(SUM,), dimensions=(by("year"),), growth="year"),
            series("year", "1 year"),
        ),
        (
            Query(ORDERS, measures=(SUM,), dimensions=(by("week"),), growth="year"),
            series("week", "364 days"),
        ),
        (
            Query(ORDERS, measures=(COUNT,), dimensions=(by("day"),), growth="bucket"),
            series("day", "1 day", of="count(*)"),
        ),
        (  # what comes before the period is looked up, and not shown
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(by("month"),),
                conditions=(in_year(2024),),
                growth="year",
            ),
            series("month", "1 year", "b >= '2024-01-01'"),
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(by("month"),),
                conditions=(Condition(ORDERED, "during", (days("2023-02-01", "2024-03-01"),)),),
                growth="bucket",
            ),
            series("month", "1 month", "b BETWEEN '2023-02-01' AND '2024-02-01'"),
        ),
        (  # a period that begins within a month has no whole month before its first
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(by("month"),),
                conditions=(Condition(ORDERED, "during", (days("2023-02-12", "2023-06-01"),)),),
                growth="bucket",
            ),
            "SELECT * FROM (VALUES (DATE '2023-02-01', 60, NULL::int, NULL::int, NULL::numeric),"
            " ('2023-04-01', 200, NULL, NULL, NULL)) AS x ORDER BY 1",
        ),
        (  # 29 February has no such day in the year before
            Query(
                ORDERS,
                measures=(COUNT,),
                dimensions=(by("day"),),
                conditions=(Condition(ORDERED, "during", (days("2024-02-29", "2025-01-01"),)),),
                growth="year",
            ),
            "SELECT ordered_at::date, count(*), NULL::int, NULL::int, NULL::int FROM orders"
            " WHERE ordered_at >= '2024-02-29' GROUP BY 1 ORDER BY 1",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(by("month"),),
                having=(Having(SUM, ">", (Decimal(0),), "percent"),),
                growth="bucket",
            ),
            series("month", "1 month", "f > p"),
        ),
    ],
)
def test_figures_grow_from_bucket_to_bucket(
    shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str
) -> None:
    holds(shop, catalog, query, gold, in_order=True)


def test_each_group_grows_by_itself(shop: GuardedDatabase, catalog: Catalog) -> None:
    groups = (by("quarter"), Dimension(ORDERS, "status"))
    query = Query(ORDERS, measures=(SUM,), dimensions=groups, growth="bucket")
    gold = (
        "WITH q AS (SELECT date_trunc('quarter', ordered_at) b, status s, sum(amount) f FROM orders"
        " WHERE ordered_at IS NOT NULL GROUP BY 1, 2) SELECT n.b::date, n.s, n.f, p.f, n.f - p.f,"
        " round(100 * (n.f - p.f) / p.f, 4) FROM q n LEFT JOIN q p ON p.s = n.s"
        " AND p.b = n.b - interval '3 months'"
    )
    holds(shop, catalog, query, gold)


@pytest.mark.parametrize(
    ("moment", "unit", "begins"),
    [
        (Moment(date(2024, 4, 1)), "quarter", True),
        (Moment(date(2024, 5, 1)), "quarter", False),
        (Moment(date(2024, 5, 2)), "day", True),
        (Moment(trunc="year"), "month", True),
        (Moment(trunc="month"), "quarter", False),
        (Moment(trunc="quarter", months=-3), "quarter", True),
        (Moment(trunc="year", months=4), "quarter", False),
        (Moment(trunc="week", days=-14), "week", True),
        (Moment(trunc="week", days=1), "week", False),
        (Moment(trunc="month"), "week", False),
        (Moment(months=-3), "month", False),
        (Moment(days=-30), "day", True),
    ],
)
def test_relative_periods_reach_back_where_they_begin_with_a_bucket(
    catalog: Catalog, moment: Moment, unit: Unit, begins: bool
) -> None:
    lexicon = lexicon_of(catalog)
    query = Query(
        ORDERS,
        measures=(SUM,),
        dimensions=(by(unit),),
        conditions=(Condition(ORDERED, "during", (Period(moment, None),)),),
        growth="bucket",
    )
    assert ("AS figures\nWHERE" in render(query, lexicon.schema, lexicon.graph)) == begins


# ------------------------------------------------------------------------------
# metrics


def test_figures_of_the_semantic_file_are_compared_and_grow(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    expression = "sum(amount) / nullif(count(*), 0)"
    meant = replace(
        catalog, metrics=(Metric("each", ORDERS, expression, filter="status = 'paid'"),)
    )
    each = Measure("metric", ORDERS, "each")
    of = "sum(CASE WHEN {} THEN amount END) / nullif(count(CASE WHEN {} THEN 1 END), 0)"
    gold = (
        f"SELECT {change('a', 'b')} FROM (SELECT {of.replace('{}', FIRST)} a, "
        f"{of.replace('{}', SECOND)} b"
    )
    holds(
        shop,
        meant,
        Query(ORDERS, measures=(each,), comparison=YEARS),
        f"{gold} FROM orders WHERE status = 'paid') x",
    )
    by_city = Query(ORDERS, measures=(each,), dimensions=(Dimension(CUSTOMERS),), comparison=YEARS)
    gold = (
        f"SELECT name, {change('a', 'b')} FROM (SELECT name, {of.replace('{}', FIRST)} a, "
        f"{of.replace('{}', SECOND)} b"
        f" {KEPT} AND status = 'paid' AND ({FIRST} OR {SECOND}) GROUP BY customer_id, name) x"
    )
    holds(shop, meant, by_city, gold)
    series_of = Query(ORDERS, measures=(each,), dimensions=(by("year"),), growth="bucket")
    gold = (
        "SELECT DATE '2023-01-01', 100, NULL::int, NULL::int, NULL::int"
        " UNION ALL SELECT DATE '2024-01-01', 191, 100, 91, 91"
    )
    holds(shop, meant, series_of, gold)


# ------------------------------------------------------------------------------
# groups that are NULL


def test_a_group_without_a_name_is_one_group_in_figures_of_several_tables(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    people = Measure("count", CUSTOMERS)
    query = Query(
        CUSTOMERS,
        measures=(people, COUNT),
        dimensions=(Dimension(CUSTOMERS, "city"),),
        order=(Order(COUNT),),
    )
    gold = (
        "SELECT city, (SELECT count(*) FROM customers WHERE NOT is_deleted "
        "AND city IS NOT DISTINCT FROM c.city),"
        " count(*) FROM customers c JOIN orders USING (customer_id) WHERE NOT is_deleted"
        " GROUP BY city"
    )
    holds(shop, catalog, query, gold)


def test_a_group_without_a_name_is_one_group_on_both_sides(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    share = Measure("sum", ORDERS, "amount", is_share=True)
    per = Measure("sum", ORDERS, "amount", per=by("month"))
    city = Dimension(CUSTOMERS, "city")
    part = f"SELECT city, round(100 * sum(amount) / sum(sum(amount)) OVER (), 4) n {KEPT}"
    gold = (
        "SELECT coalesce(x.city, y.city), {} FROM ({}) x FULL JOIN ({}) y"
        " ON coalesce(x.city, '?') = coalesce(y.city, '?')"
    )
    changed = change("x.n", "y.n")
    parts = [f"{part} AND {side} GROUP BY city" for side in (FIRST, SECOND)]
    holds(
        shop,
        catalog,
        Query(ORDERS, measures=(share,), dimensions=(city,), comparison=YEARS),
        gold.format(changed, *parts),
    )
    months = (
        f"SELECT city, sum(amount) s {KEPT} AND %s GROUP BY city, date_trunc('month', ordered_at)"
    )
    parts = [
        f"SELECT city, avg(s) n FROM ({months % side}) m GROUP BY city" for side in (FIRST, SECOND)
    ]
    holds(
        shop,
        catalog,
        Query(ORDERS, measures=(per,), dimensions=(city,), comparison=YEARS),
        gold.format(changed, *parts),
    )


@pytest.mark.parametrize(
    "query",
    [
        # a customer who has ordered a product twice would count twice
        Query(
            CUSTOMERS,
            measures=(Measure("sum", CUSTOMERS, "credit_limit"),),
            dimensions=(Dimension(PRODUCTS),),
        ),
        Query(
            CUSTOMERS,
            measures=(Measure("median", CUSTOMERS, "credit_limit"),),
            dimensions=(Dimension(PRODUCTS),),
            comparison=YEARS,
        ),
        # an order of several products would, which all have been ordered by the customer
        Query(
            PRODUCTS,
            measures=(Measure("avg", PRODUCTS, "rating"),),
            dimensions=(Dimension(CUSTOMERS), Dimension(ORDERS, "status")),
            top_per=(Dimension(CUSTOMERS),),
            order=(Order(Measure("avg", PRODUCTS, "rating")),),
        ),
    ],
)
def test_what_joins_repeat_is_not_added(catalog: Catalog, query: Query) -> None:
    lexicon = lexicon_of(catalog)
    with pytest.raises(Unrenderable):
        render(query, lexicon.schema, lexicon.graph)


# ------------------------------------------------------------------------------
# shares

CITIES = f"SELECT coalesce(city, '?') city, sum(amount) f, count(*) n {KEPT} GROUP BY 1"


@pytest.mark.parametrize(
    ("query", "gold"),
    [
        (
            Query(
                ORDERS, measures=(SUM,), dimensions=(Dimension(CUSTOMERS, "city"),), share_of_top=2
            ),
            f"SELECT round(100 * (SELECT sum(f) FROM (SELECT f FROM ({CITIES}) x "
            "ORDER BY f DESC LIMIT 2) y)"
            f" / (SELECT sum(f) FROM ({CITIES}) x), 4)",
        ),
        (
            Query(ORDERS, measures=(COUNT,), dimensions=(Dimension(CUSTOMERS),), share_of_top=9),
            "SELECT 100.0",
        ),
        (  # none are all of none
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(CUSTOMERS),),
                conditions=(Condition(AMOUNT, ">", (Decimal(1000),)),),
                share_of_top=1,
            ),
            "SELECT NULL::numeric",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM, replace(SUM, is_running=True)),
                dimensions=(by("month"),),
                conditions=(Condition(ORDERED, "not null"),),
                order=(Order(descending=False),),
            ),
            "SELECT b::date, sum(f), (SELECT sum(amount) FROM orders WHERE date_trunc('month', "
            "ordered_at) <= b) FROM"
            " (SELECT date_trunc('month', ordered_at) b, amount f FROM orders"
            " WHERE ordered_at IS NOT NULL) x"
            " GROUP BY b ORDER BY b",
        ),
        (
            Query(
                ORDERS,
                measures=(replace(COUNT, is_running=True),),
                dimensions=(by("year"), Dimension(ORDERS, "status")),
                conditions=(Condition(ORDERED, "not null"),),
            ),
            "SELECT b::date, s, (SELECT count(*) FROM orders WHERE status = s "
            "AND date_trunc('year', ordered_at) <= b)"
            " FROM (SELECT DISTINCT date_trunc('year', ordered_at) b, status s FROM orders"
            " WHERE ordered_at IS NOT NULL) x",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM, replace(SUM, is_running=True, is_share=True)),
                dimensions=(Dimension(CUSTOMERS, "city"),),
                order=(Order(SUM),),
            ),
            "SELECT nullif(city, '?'), f, round(100 * (SELECT sum(f) FROM c WHERE f >= a.f)"
            " / (SELECT sum(f) FROM c), 4) FROM c a ORDER BY f DESC",
        ),
    ],
)
def test_parts_of_all_and_running_totals(
    shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str
) -> None:
    gold = f"WITH c AS ({CITIES}) {gold}" if "FROM c " in gold else gold
    holds(shop, catalog, query, gold, in_order=bool(query.order))


@pytest.mark.parametrize(
    "query",
    [
        Query(ORDERS, measures=(COUNT, Measure("sum", ITEMS, "quantity")), comparison=YEARS),
        Query(
            ORDERS,
            measures=(SUM, Measure("sum", ITEMS, "quantity")),
            dimensions=(by("month"),),
            growth="bucket",
        ),
        Query(ORDERS, measures=(SUM,), dimensions=(by("month"), by("year")), growth="bucket"),
        Query(ORDERS, measures=(SUM,), growth="bucket"),
        Query(
            ORDERS,
            measures=(replace(SUM, is_share=True),),
            dimensions=(by("month"),),
            growth="bucket",
        ),
        Query(ORDERS, measures=(Measure("max", ORDERS, "ordered_at"),), comparison=YEARS),
        Query(ORDERS, measures=(SUM,), share_of_top=2),
        Query(
            ORDERS,
            measures=(Measure("avg", ORDERS, "amount"),),
            dimensions=(Dimension(CUSTOMERS),),
            share_of_top=2,
        ),
        Query(ORDERS, measures=(replace(SUM, is_running=True),)),
        Query(
            ORDERS,
            measures=(Measure("avg", ORDERS, "amount", is_running=True),),
            dimensions=(Dimension(CUSTOMERS),),
        ),
    ],
)
def test_what_means_nothing_is_refused(catalog: Catalog, query: Query) -> None:
    lexicon = lexicon_of(catalog)
    with pytest.raises(Unrenderable):
        render(query, lexicon.schema, lexicon.graph)


def test_figures_of_floats_are_compared_and_shared(shop: GuardedDatabase, catalog: Catalog) -> None:
    best = Measure("max", PRODUCTS, "rating")
    sides = Comparison(
        (Condition(STOCK, "<", (Decimal(10),)),), (Condition(STOCK, ">=", (Decimal(10),)),)
    )
    holds(
        shop,
        catalog,
        Query(PRODUCTS, measures=(best,), comparison=sides),
        "SELECT 4.5, 4.75, 0.25, 5.5556",
    )
    share = Measure("sum", PRODUCTS, "rating", is_share=True)
    query = Query(PRODUCTS, measures=(share,), dimensions=(Dimension(PRODUCTS, "first_sold"),))
    gold = (
        "SELECT first_sold, round((100 * rating / (SELECT sum(rating) FROM products))::numeric, 4) "
        "FROM products"
    )
    holds(shop, catalog, query, gold)
