"""What the rules read in labels, metrics, numbers in words, counts, dates and pasted SQL."""

import asyncio
from dataclasses import replace

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, NoSql, Sql, Table, Turn
from knowledge.semantic.semantic_binding import bind
from knowledge.semantic.semantic_format import read_text
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


# --------------------------------------------------------------------------------------- names that
# end in their units

FIELD = Table(
    "public",
    "地块",
    "table",
    (
        Column("地块编号", "integer", nullable=False),
        Column("地块名称", "text"),
        Column("面积_亩", "numeric"),
    ),
    primary_key=("地块编号",),
)
HARVEST = Table(
    "public",
    "种植记录",
    "table",
    (
        Column("记录编号", "integer", nullable=False),
        Column("地块编号", "integer"),
        Column("播种日期", "date"),
        Column("收获日期", "date"),
        Column("数量_公斤", "numeric"),
        Column("单价", "numeric"),
        Column("销售金额", "numeric"),
    ),
    primary_key=("记录编号",),
    foreign_keys=(ForeignKey(("地块编号",), ("public", "地块"), ("地块编号",)),),
)


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("数量大于300公斤的种植记录", 'WHERE "数量_公斤" > 300'),
        ("销售金额和数量合计", 'sum("销售金额") AS "total_销售金额", sum("数量_公斤")'),
        ("面积超过100亩的地块", 'WHERE "面积_亩" > 100'),
        (
            "销售额前3的地块",
            'sum(t."销售金额")',
        ),  # the amount that is stored, not price times quantity
        ("还没收获的地块", 't2."收获日期" IS NULL'),
        ("从未播种的地块", "NOT EXISTS"),
    ],
)
def test_a_column_goes_by_what_stands_before_its_unit(question: str, part: str) -> None:
    assert part in sql(question, Catalog((FIELD, HARVEST)))


@pytest.mark.parametrize("question", ["2024年收获的还没收获的种植记录"])
def test_conditions_that_no_row_can_meet_are_refused(question: str) -> None:
    assert "条件互相矛盾" in refused(question, Catalog((FIELD, HARVEST)))


# ------------------------------------------------------------------------------
# several dates of one

PLANS = Table(
    "public",
    "subscription",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("status", "text", values=("active", "ended")),
        Column("started_on", "date", nullable=False),
        Column("customer_id", "integer"),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("customer_id",), ("public", "customer"), ("customer_id",)),),
)
INVOICES = Table(
    "public",
    "invoice",
    "table",
    (
        Column("id", "integer", nullable=False),
        Column("subscription_id", "integer"),
        Column("number", "text", nullable=False),
        Column("total", "numeric", nullable=False),
        Column("issued_on", "date", nullable=False),
        Column("due_on", "date", nullable=False),
        Column("paid_on", "date"),
    ),
    primary_key=("id",),
    foreign_keys=(ForeignKey(("subscription_id",), ("public", "subscription"), ("id",)),),
)
BILLING = Catalog((CUSTOMER, PLANS, INVOICES))


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("number of invoices in 2025", "WHERE issued_on >= DATE '2025-01-01'"),
        ("invoices per month", "date_trunc('month', issued_on)"),
        ("paid invoices in 2025", "WHERE paid_on >= DATE '2025-01-01'"),
        ("total invoiced in 2025", "SELECT sum(total)"),
        ("cumulative invoice total in 2025", "OVER (ORDER BY date_trunc('month', issued_on)"),
    ],
)
def test_of_several_dates_the_one_that_begins_a_row_is_meant(question: str, part: str) -> None:
    assert part in sql(question, BILLING)


def test_a_table_whose_dates_may_all_be_meant_asks_which() -> None:
    columns = [
        replace(column, name="sent_on") if column.name == "due_on" else column
        for column in INVOICES.columns
    ]
    unclear = Catalog((CUSTOMER, PLANS, replace(INVOICES, columns=tuple(columns))))
    assert "issued on (invoice.issued_on), sent on (invoice.sent_on)" in refused(
        "number of invoices in 2025", unclear
    )


def test_a_value_of_other_rows_does_not_rank_things() -> None:
    assert 'by which figure "customer"' in refused("most active customers", BILLING)
    assert "WHERE s.status = 'active'" in sql(
        "which customer has the most active subscriptions", BILLING
    )


# ------------------------------------------------------------------------------
# labels and metrics


@pytest.mark.parametrize("label", ["", "id", "product", "[region, product]"])
@pytest.mark.parametrize(
    "question",
    [
        "revenue",
        "revenue in 2025",
        "revenue of apple",
        "2025年的收入",
        "compare revenue of north and south",
    ],
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


@pytest.mark.parametrize("more", [", grain: [region]", ", grain: [region], filter: paid"])
def test_a_metric_is_refused_by_what_is_not_its_grain(more: str) -> None:
    catalog = meant(f"metrics: {{revenue: {REVENUE % more}}}")
    for question in (
        "revenue",
        "revenue by region",
        "revenue by month",
        "revenue of apple",
        "各地区的收入",
    ):
        assert "sum(amount) AS revenue" in sql(question, catalog)
    for question in (
        "revenue by product",
        "top 3 products by revenue",
        "revenue by region and product",
    ):
        assert '"revenue" can be grouped only by these: region, sold at.' in refused(
            question, catalog
        )
    assert "“收入”只能按以下各项分组" in refused("各产品的收入", catalog)


@pytest.mark.parametrize("question", ["and by product?", "by customer instead"])
def test_a_follow_up_groups_no_metric_by_what_is_not_its_grain(question: str) -> None:
    catalog = meant(f"metrics: {{revenue: {REVENUE % ', grain: [region]'}}}")
    first = draft("revenue by region", catalog)
    assert isinstance(first, Sql)
    asked, at = "revenue by region", "2026-01-01T00:00:00.000Z"
    sql, understood = first.text, first.understood
    turn = Turn("r", asked, "DATABASE", "hybrid", "", at, sql, 1, understood=understood)
    written = asyncio.run(SKILLS.write_sql(Inquiry(question, "en", catalog, history=(turn,)))).value
    assert isinstance(written, NoSql)
    assert '"revenue" can be grouped only by these: region' in written.prompt


# ------------------------------------------------------------------------------
# numbers of things


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
    for catalog in (
        SHOP,
        meant("metrics: {income: {names: {en: [sales]}, table: sales, expression: sum(amount)}}"),
    ):
        written = sql(question, catalog)
        assert "count(*)" in written
        assert "amount" not in written


@pytest.mark.parametrize(
    "question", ["how much sales", "sales", "total sales", "sales by region", "how much revenue"]
)
def test_other_questions_after_a_mass_ask_for_its_amount(question: str) -> None:
    assert "sum(amount)" in sql(question)


def test_how_many_adds_up_what_a_column_counts() -> None:
    columns = (
        Column("id", "integer", nullable=False),
        Column("day", "date"),
        Column("visits", "integer"),
    )
    daily = Catalog((Table("public", "visits", "table", columns, primary_key=("id",)),))
    assert "sum(visits)" in sql("how many visits", daily)
    assert "sum(visits)" in sql("number of visits by day", daily)


# ------------------------------------------------------------------------------
# numbers of rows


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
    assert sql(question).endswith(_only(limit))


def _only(count: int) -> str:
    """Of the first row, all that are level with it."""
    return "FETCH FIRST ROW WITH TIES" if count == 1 else f"LIMIT {count}"


@pytest.mark.parametrize("question", ["paid 3", 'paid "Ann"', "sales with paid 3"])
def test_a_column_of_yes_and_no_is_compared_with_neither_numbers_nor_texts(question: str) -> None:
    refused(question)


# ------------------------------------------------------------------------------
# dates


@pytest.mark.parametrize(
    "question",
    [
        "total amount on 2025-02-30",
        "amount on 2025-2-30",
        "amount on 2025/02/30",
        "amount on 2025.02.30",
        "amount on 30/02/2025",
        "amount on Feb 30 2025",
        "amount on 31 April 2025",
        "amount on 20250230",
        "amount in 2025-13",
        "amount from 2025-02-01 to 2025-02-30",
        "sales on 1850-05-01",
        "amount from May to March 2025",
        "amount from December to January 2025",
        "sales in 1850",
        "tickets in 1850",
        "visits in 3000",
        "amount during 1776",
        "visits last -3 days",
        "visits in the last 0 days",
        "visits in the last 5000000 days",
        "visits last 9999 years",
        "visits 0 days ago",
        "amount between 30 and 2",
        "2025年2月30日的金额",
        "2025年13月的金额",
    ],
)
def test_what_is_only_written_like_a_date_is_refused(question: str) -> None:
    refused(question)


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("amount on 2025-02-28", "sold_at >= DATE '2025-02-28' AND sold_at < DATE '2025-03-01'"),
        (
            "amount from March to May 2025",
            "sold_at >= DATE '2025-03-01' AND sold_at < DATE '2025-06-01'",
        ),
        (
            "visits in the last 10000 days",
            "visited_at >= CURRENT_DATE - 10000 AND visited_at < CURRENT_DATE",
        ),
        ("amount above 1850", "amount > 1850"),
        ("ticket 1850", "id = 1850"),
        ("amount between 1000 and 2000", "amount BETWEEN 1000 AND 2000"),
    ],
)
def test_dates_and_numbers_that_are_some_stay_conditions(question: str, condition: str) -> None:
    assert f"WHERE {condition}" in sql(question)


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("total amount by region", " WHERE paid "),
        ("unpaid amount by region", " WHERE NOT paid "),
        ("total amount by region including unpaid sales", ""),
        ("total amount by region, including the unpaid ones", ""),
        ("total amount of region north including unpaid", " WHERE region = 'north'"),
    ],
)
def test_rows_that_the_file_leaves_out_can_be_included(question: str, condition: str) -> None:
    written = sql(question, meant("tables: {sales: {filter: paid}}"))
    assert condition in written if condition else "WHERE" not in written


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("total amount excluding region north", "region <> 'north'"),
        ("total amount not in region north", "region <> 'north'"),
        ("customers excluding city Berlin", "city IS DISTINCT FROM 'Berlin'"),
        ("exclude region north and south from total amount", "region NOT IN ('north', 'south')"),
        ("除region north外的amount总额", "region <> 'north'"),
        ("不包括north region的amount总额", "region <> 'north'"),
        ("customers without city", "city IS NULL"),
    ],
)
def test_what_is_left_out_may_be_named_by_its_column_and_value(
    question: str, condition: str
) -> None:
    written = sql(question)
    assert f"WHERE {condition}" in written and " AND " not in written


@pytest.mark.parametrize("question", ["amount by month and region", "amount by region and month"])
def test_months_and_columns_group_in_any_order(question: str) -> None:
    grouped = sql(question).partition(" GROUP BY ")[2].partition(" ORDER BY ")[0]
    assert sorted(grouped.split(", ")) == ["date_trunc('month'", "region", "sold_at)::date"]


@pytest.mark.parametrize(
    "question",
    [
        "paid vs unpaid amount",
        "number of paid and unpaid sales",
        "how many sales are paid and how many unpaid",
    ],
)
def test_yes_and_no_side_by_side_are_groups(question: str) -> None:
    written = sql(question)
    assert "GROUP BY paid" in written and "WHERE" not in written


@pytest.mark.parametrize(
    ("question", "compared"),
    [
        ("customers with more than 3 sales", "HAVING count(*) > 3"),
        ("products with at least 10 sales in 2025", "HAVING count(*) >= 10"),
        ("sales over 1000", "WHERE amount > 1000"),
    ],
)
def test_a_number_before_a_table_counts_its_rows(question: str, compared: str) -> None:
    assert compared in sql(question)


@pytest.mark.parametrize(
    "question",
    [
        "top 3 products per region by amount",
        "the 3 best products in each region by amount",
        "top 3 products by amount for each region",
    ],
)
def test_things_that_a_column_names_are_ranked_in_groups(question: str) -> None:
    written = sql(question)
    assert (
        "PARTITION BY region ORDER BY sum(amount) DESC" in written and "WHERE place <= 3" in written
    )


@pytest.mark.parametrize(
    ("question", "part", "limit"),
    [
        ("which weekday has the highest amount", "isodow", 1),
        ("the weekday with the highest amount", "isodow", 1),
        ("top 3 weekdays by amount", "isodow", 3),
        ("哪个星期几的amount最高", "isodow", 1),
        ("amount最高的3个时段", "hour", 3),
        ("哪个小时的amount最高", "hour", 1),
    ],
)
def test_days_of_the_week_and_hours_are_ranked_by_their_totals(
    question: str, part: str, limit: int
) -> None:
    written = sql(question)
    assert (
        f"extract({part} FROM sold_at)" in written
        and "sum(amount)" in written
        and written.endswith(_only(limit))
    )


_YEARS = "sold_at >= DATE '2024-01-01' AND sold_at < DATE '2026-01-01'"


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        (
            "total amount from 2024-01-05 to 2024-03-31",
            "sold_at >= DATE '2024-01-05' AND sold_at < DATE '2024-04-01'",
        ),
        (
            "total amount from Jan 2024 to Mar 2025",
            "sold_at >= DATE '2024-01-01' AND sold_at < DATE '2025-04-01'",
        ),
        (
            "total amount from Q1 2024 to Q3 2024",
            "sold_at >= DATE '2024-01-01' AND sold_at < DATE '2024-10-01'",
        ),
        (
            "total amount between May and July 2024",
            "sold_at >= DATE '2024-05-01' AND sold_at < DATE '2024-08-01'",
        ),
        (
            "total amount from 2024 until now",
            "sold_at >= DATE '2024-01-01' AND sold_at < CURRENT_DATE + 1",
        ),
        ("total amount from 2024 to 2025", _YEARS),
        ("total amount 2024-2025", _YEARS),
        ("amount by region from 2024 through 2025", _YEARS),
        ("sold_at from 2024 to 2025", _YEARS),
        ("2024到2025年的amount总额", _YEARS),
    ],
)
def test_a_range_of_dates_has_two_ends(question: str, condition: str) -> None:
    assert f"WHERE {condition}" in sql(question)


# ------------------------------------------------------------------------------
# pasted SQL


@pytest.mark.parametrize(
    "statement",
    [
        "-- revenue\nSELECT count(*) FROM sales",
        "/* revenue */ -- by region\nSELECT region, sum(amount) FROM sales GROUP BY region",
        "SELECT region, sum(amount) s FROM sales GROUP BY region",
        "SELECT region r, product p FROM sales ORDER BY r",
        "SELECT -amount FROM sales",
        "SELECT DISTINCT ON (region) region, amount FROM sales ORDER BY region, amount",
        "SELECT g FROM generate_series(1, 3) g",
        "(SELECT s.region FROM sales s)",
        "SELECT amount::int a FROM sales",
        "SELECT relname FROM pg_class",
        "SELECT nam FROM customer",
    ],
)
def test_what_postgres_reads_as_a_query_is_one(statement: str) -> None:
    written = draft(statement)
    assert isinstance(written, Sql)
    assert (written.text, written.understood) == (statement, None)


@pytest.mark.parametrize(
    "question",
    [
        "select the top 3 customers",
        "select all customers from Berlin",
        "select customers from Berlin",
        "Select the customers from Berlin",
        "-- note\nselect the customers from Berlin",
        "select the total from sales",
        "select the customers from sales where amount > 5",
        "select region and product from sales",
        "select products from sales by region",
    ],
)
def test_a_sentence_that_parses_by_accident_is_a_sentence(question: str) -> None:
    written = draft(question)
    assert isinstance(written, NoSql) or written.understood is not None
