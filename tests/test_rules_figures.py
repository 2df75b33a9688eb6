"""Figures by the rules: what labels, metrics, words for numbers, numbers of rows and dates make of them."""

import asyncio

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, NoSql, Sql, Table
from knowledge.semantic.binding import bind
from knowledge.semantic.format import read_text
from rules.skills import OfflineSkills

SKILLS = OfflineSkills()
CUSTOMER = Table(
    "public",
    "customer",
    "table",
    (
        Column("customer_id", "integer", nullable=False),
        Column("name", "text"),
        Column("city", "text", values=("Berlin", "Paris", "Rome")),
    ),
    primary_key=("customer_id",),
)
SALES = Table(
    "public",
    "sales",
    "table",
    (
        Column("id", "bigint", nullable=False),
        Column("region", "text", nullable=False, values=("east", "north", "south", "west")),
        Column("product", "text", nullable=False, values=("apple", "fig", "kiwi", "pear", "plum")),
        Column("amount", "numeric(12,2)", nullable=False),
        Column("sold_at", "timestamp without time zone", nullable=False),
        Column("paid", "boolean"),
        Column("customer_id", "integer"),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("customer_id",), ("public", "customer"), ("customer_id",)),),
)
TICKETS = Table(
    "public",
    "tickets",
    "table",
    (Column("id", "integer", nullable=False), Column("subject", "text"), Column("opened", "date")),
    primary_key=("id",),
)
VISITS = Table(
    "public",
    "visits",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("page", "text", values=("p0", "p1")),
        Column("duration_s", "integer"),
        Column("visited_at", "timestamp without time zone"),
    ),
    primary_key=("id",),
)
SHOP = Catalog((CUSTOMER, SALES, TICKETS, VISITS))
REVENUE = "{names: {zh: [收入], en: [revenue]}, table: sales, expression: sum(amount)%s}"


def meant(file: str) -> Catalog:
    bound = bind(read_text(file.encode(), "file"), SHOP)
    assert bound.problems == ()
    return bound.catalog


def draft(question: str, catalog: Catalog = SHOP) -> Sql | NoSql:
    return asyncio.run(SKILLS.write_sql(Inquiry(question, language_of(question), catalog))).value


def sql(question: str, catalog: Catalog = SHOP) -> str:
    written = draft(question, catalog)
    assert isinstance(written, Sql), written
    return " ".join(written.text.split())


def refused(question: str, catalog: Catalog = SHOP) -> str:
    written = draft(question, catalog)
    assert isinstance(written, NoSql), written
    return written.prompt


# -------------------------------------------------------------------------------------------------- labels and metrics


@pytest.mark.parametrize("label", ["", "id", "product", "[region, product]"])
@pytest.mark.parametrize(
    "question",
    ["revenue", "revenue in 2025", "revenue of apple", "2025年的收入", "compare revenue of north and south"],
)
def test_a_label_makes_no_list_of_a_metric(question: str, label: str) -> None:
    tables = f"tables: {{sales: {{label: {label}}}}}\n" if label else ""
    written = sql(question, meant(f"{tables}metrics: {{revenue: {REVENUE % ''}}}"))
    assert "sum(amount)" in written
    assert ("GROUP BY" in written) == question.startswith("compare")


def test_a_number_as_a_label_makes_no_things_of_events() -> None:
    catalog = meant("tables: {sales: {label: id}}")
    assert sql("amount in 2025", catalog) == sql("amount in 2025")
    assert sql("sales of apple", catalog) == sql("sales of apple")


# -------------------------------------------------------------------------------------------------- numbers of things


@pytest.mark.parametrize(
    "question",
    [
        "how many sales",
        "number of sales by region",
        "sales count",
        "count of sales in 2025",
        "how many sales of apple",
        "average number of sales per customer",
        "top 3 products by number of sales",
        "customers with the highest number of sales",
        "which region had the lowest number of sales",
        "products with number of sales over 100",
    ],
)
def test_how_many_never_asks_for_money(question: str) -> None:
    for catalog in (SHOP, meant("metrics: {income: {names: {en: [sales]}, table: sales, expression: sum(amount)}}")):
        written = sql(question, catalog)
        assert "count(*)" in written
        assert "amount" not in written


@pytest.mark.parametrize("question", ["how much sales", "sales", "total sales", "sales by region", "how much revenue"])
def test_other_questions_after_a_mass_ask_for_its_amount(question: str) -> None:
    assert "sum(amount)" in sql(question)


def test_how_many_adds_up_what_a_column_counts() -> None:
    columns = (Column("id", "integer", nullable=False), Column("day", "date"), Column("visits", "integer"))
    daily = Catalog((Table("public", "visits", "table", columns, primary_key=("id",)),))
    assert "sum(visits)" in sql("how many visits", daily)
    assert "sum(visits)" in sql("number of visits by day", daily)


# ------------------------------------------------------------------------------------------------------ numbers of rows


@pytest.mark.parametrize(
    "question",
    [
        "top 2.5 products by amount",
        "top 0 products by amount",
        "top -3 products by amount",
        "top 100000 products by amount",
        "top 20000 sales by amount",
        "top 10 percent of products by amount",
        "top 10% products by amount",
        "bottom 0.5 products by amount",
        "the 100000 largest sales",
        "highest 2.5 products by amount",
        "list 20000 sales",
        "list 2.5 customers",
        "金额前2.5名的产品",
        "金额最高的10%产品",
        "前0名产品按金额",
    ],
)
def test_a_number_that_counts_no_rows_is_refused(question: str) -> None:
    refused(question)


@pytest.mark.parametrize(
    ("question", "limit"),
    [
        ("top 3 products by amount", 3),
        ("top three products by amount", 3),
        ("top 5k products by amount", 5000),
        ("top product by amount", 1),
        ("list 20 customers", 20),
    ],
)
def test_a_number_of_rows_is_the_limit(question: str, limit: int) -> None:
    assert sql(question).endswith(f"LIMIT {limit}")
