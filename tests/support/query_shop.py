"""A small shop for queries that are built by hand, and whether their SQL gives what SQL written by
hand gives.
"""

from datetime import date

from common.meanings import TableKey
from common.values import Catalog
from databases.execution.guarded import GuardedDatabase
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import ColumnRef, Comparison, Condition, Dimension, Measure, Part, Query
from rules.query.query_json import from_json, to_json
from rules.schema.lexicon import lexicon_of
from rules.sql.render import render
from tests.support.databases import run
from tests.support.offline_questions import FIXTURES, same_rows

SHOP_SQL = (FIXTURES / "queries.sql").read_text("utf-8")
CUSTOMERS: TableKey = ("public", "customers")
PRODUCTS: TableKey = ("public", "products")
ORDERS: TableKey = ("public", "orders")
ITEMS: TableKey = ("public", "order_items")
NAME, CITY = ColumnRef(CUSTOMERS, "name"), ColumnRef(CUSTOMERS, "city")
PRODUCT, STOCK = ColumnRef(PRODUCTS, "product_name"), ColumnRef(PRODUCTS, "stock")
ORDER, AMOUNT, STATUS = (
    ColumnRef(ORDERS, "order_id"),
    ColumnRef(ORDERS, "amount"),
    ColumnRef(ORDERS, "status"),
)
SUM, COUNT = Measure("sum", ORDERS, "amount"), Measure("count", ORDERS)
BERLIN = Condition(CITY, "=", ("Berlin",))
ORDERED = ColumnRef(ORDERS, "ordered_at")


def by(unit: Unit) -> Dimension:
    """Return orders by the unit in which they were ordered."""
    return Dimension(ORDERS, "ordered_at", unit)


def at(part: Part, table: TableKey = ORDERS, column: str = "ordered_at") -> ColumnRef:
    """Return a part of a date of the table."""
    return ColumnRef(table, column, part=part)


def days(first: str, end: str) -> Period:
    """Return the days from one up to another, which is not in it."""
    return Period(Moment(date.fromisoformat(first)), Moment(date.fromisoformat(end)))


def holds(
    shop: GuardedDatabase, catalog: Catalog, query: Query, gold: str, *, in_order: bool = False
) -> str:
    """Compare the query, after a way through JSON, with SQL written by hand; gives its SQL."""
    read = from_json(Query, to_json(query), catalog)
    assert read == query
    lexicon = lexicon_of(catalog)
    sql = render(read, lexicon.schema, lexicon.graph)
    assert same_rows(run(shop, gold).rows, run(shop, sql).rows, in_order=in_order), sql
    return sql


def in_year(year: int) -> Condition:
    """Return the condition that it was ordered in that year."""
    first, end = (Moment(date(one, 1, 1)) for one in (year, year + 1))
    return Condition(ORDERED, "during", (Period(first, end, "year"),))


YEARS = Comparison((in_year(2023),), (in_year(2024),))
