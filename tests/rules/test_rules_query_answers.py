"""What answers to queries built by hand say, in both languages; and the way of queries through
JSON.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answers.figures_check import doubtful_figures
from common.text import Lang
from common.values import Catalog, QueryResult
from databases.execution.guarded import GuardedDatabase
from knowledge.results.result_columns import ResultColumn
from rules.answering.answer_period import period_of_conditions
from rules.answering.named_columns import changes_of, columns_of
from rules.answering.summarize import AnsweredQuestion, notes_on, summary_pieces
from rules.linking.moments import Moment, Period
from rules.query.query import (
    ColumnRef,
    Comparison,
    Condition,
    Dimension,
    Either,
    Having,
    Measure,
    Order,
    Query,
    Related,
    references,
)
from rules.query.query_json import from_json, to_json
from rules.schema.lexicon import lexicon_of
from rules.sql.render import render
from tests.support.databases import open_asked, run
from tests.support.offline_catalogs import SHOP
from tests.support.query_shop import (
    AMOUNT,
    CITY,
    COUNT,
    CUSTOMERS,
    ORDER,
    ORDERED,
    ORDERS,
    SHOP_SQL,
    STATUS,
    SUM,
    YEARS,
    at,
    by,
    days,
    in_year,
)

TODAY = date(2024, 4, 20)


@pytest.fixture(scope="module")
def shop(make_database: Callable[[str], str]) -> Iterator[GuardedDatabase]:
    with closing(open_asked(make_database(SHOP_SQL))) as database:
        yield database


@pytest.fixture(scope="module")
def catalog(shop: GuardedDatabase) -> Catalog:
    return asyncio.run(shop.catalog())


Said = tuple[str, tuple[ResultColumn, ...]]


def said(shop: GuardedDatabase, catalog: Catalog, query: Query, lang: Lang) -> Said:
    """The answer's sentences, none of whose figures is made up, and its columns."""
    lexicon = lexicon_of(catalog)
    sql = render(query, lexicon.schema, lexicon.graph)
    result: QueryResult = run(shop, sql)
    answered = AnsweredQuestion(
        result,
        columns_of(query, sql, result, lexicon.schema, lang, TODAY),
        lang,
        TODAY,
        dated=period_of_conditions(query.conditions, lexicon.schema, TODAY),
        changes=changes_of(query, len(result.columns), lexicon.schema, lang, TODAY),
        notes=notes_on(query),
    )
    text = "".join(summary_pieces(answered))
    assert doubtful_figures(text, result, sql=sql) == []
    return text, answered.columns


PARIS, ROME = Condition(CITY, "=", ("Paris",)), Condition(CITY, "=", ("Rome",))


@pytest.mark.parametrize(
    ("query", "zh", "en"),
    [
        (
            Query(ORDERS, measures=(SUM,), comparison=YEARS),
            (
                "订单金额合计：2023 为 500.00元，2024 为 965.00元，增加 "
                "465.00元（93%）。2024 尚未结束。"
            ),
            (
                "Total amount: 2023: 500.00元, 2024: 965.00元, "
                "up 465.00元 (93%). 2024 is not over yet."
            ),
        ),
        (
            Query(ORDERS, measures=(COUNT,), comparison=Comparison((PARIS,), (ROME,))),
            "订单数量：Paris 为 3，Rome 为 2，减少 1（33.33%）。",
            "Number of orders: Paris: 3, Rome: 2, down 1 (33.33%).",
        ),
        (
            Query(
                ORDERS,
                measures=(COUNT,),
                comparison=Comparison((ROME,), (ROME, Condition(AMOUNT, "not null"))),
            ),
            "订单数量：前者 为 2，后者 为 2，没有变化。",
            "Number of orders: first: 2, second: 2, unchanged.",
        ),
        (
            Query(
                ORDERS,
                measures=(COUNT,),
                comparison=Comparison((), (Condition(at("weekend"), "true"),)),
            ),
            (
                "订单数量：全部 为 12，是否周末 为 5，减少 7（58.33%）。"
                "周末指周六和周日，不考虑节假日和调休。"
            ),
            "Number of orders: all: 12, weekend: 5, down 7 (58.33%). "
            "Weekends are Saturdays and Sundays, whatever holidays there are.",
        ),
        (
            Query(
                ORDERS, measures=(SUM,), comparison=Comparison((in_year(2020),), (in_year(2023),))
            ),
            "订单金额合计：2020 没有数据，2023 为 500.00元。",
            "Total amount: 2020: no data, 2023: 500.00元.",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(CUSTOMERS, "city"),),
                comparison=YEARS,
            ),
            (
                "共 4 条记录。订单金额合计增幅最高的是Berlin（-87.5%），"
                "最低的是Paris（-100%）。2024 尚未结束。"
            ),
            "4 rows. Growth of total amount is highest for Berlin (-87.5%) and lowest for "
            "Paris (-100%). "
            "2024 is not over yet.",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(by("month"),),
                conditions=(in_year(2024),),
                growth="year",
            ),
            "共 4 条记录（按下单时间，2024，尚未结束）。订单金额合计同比最高的是2024-04（137.5%），"
            "最低的是2024-02（57.14%）。2024-05 的数据截至 2024-05-01。没有上期数据时，增减为空。",
            "4 rows (by ordered at, 2024, not over yet). Growth of total amount on the year "
            "before is highest "
            "in 2024-04 (137.5%) and lowest in 2024-02 (57.14%). Data of 2024-05 end "
            "on 2024-05-01. Where there are no earlier data, "
            "there is no change.",
        ),
        (
            Query(
                ORDERS,
                measures=(COUNT,),
                dimensions=(Dimension(ORDERS, "ordered_at", part="weekday"),),
                conditions=(in_year(2023),),
            ),
            "共 4 条记录（按下单时间，2023）。订单数量均为 1。",
            "4 rows (by ordered at, 2023). Number of orders is 1 throughout.",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(ORDERS, "ordered_at", part="weekday"),),
                conditions=(in_year(2023),),
            ),
            (
                "共 4 条记录（按下单时间，2023）。订单金额合计最高的是周一（200.00元），"
                "最低的是周日（60.00元）。"
            ),
            "4 rows (by ordered at, 2023). Total amount is highest for Monday (200.00元) and "
            "lowest for Sunday (60.00元).",
        ),
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(ORDERS, "ordered_at", part="month"),),
                conditions=(in_year(2023),),
            ),
            (
                "共 3 条记录（按下单时间，2023）。订单金额合计最高的是2月（210.00元），"
                "最低的是1月（90.00元）。"
            ),
            "3 rows (by ordered at, 2023). Total amount is highest for month 2 (210.00元) and "
            "lowest for month 1 (90.00元).",
        ),
        (
            Query(ORDERS, measures=(Measure("median", ORDERS, "amount"),)),
            "订单金额中位数为 90.00元。",
            "Median amount: 90.00元.",
        ),
        (
            Query(ORDERS, measures=(Measure("percentile", ORDERS, "amount", percent=Decimal(90)),)),
            "订单金额的90%分位数为 330.00元。",
            "Percentile 90 of amount: 330.00元.",
        ),
        (
            Query(ORDERS, measures=(Measure("stddev", ORDERS, "amount"),)),
            "订单金额标准差约为 128.082元。",
            "Standard deviation of amount: about 128.082元.",
        ),
        (
            Query(
                ORDERS, measures=(SUM,), dimensions=(Dimension(CUSTOMERS, "city"),), share_of_top=1
            ),
            "前1名的订单金额占比为 34.65%。",
            "Share of the top 1 in amount: 34.65%.",
        ),
    ],
)
def test_an_answer_says_what_is_compared(
    shop: GuardedDatabase, catalog: Catalog, query: Query, zh: str, en: str
) -> None:
    assert said(shop, catalog, query, "zh")[0] == zh
    assert said(shop, catalog, query, "en")[0] == en


@pytest.mark.parametrize(
    ("query", "zh", "en"),
    [
        (
            Query(
                ORDERS,
                measures=(SUM,),
                dimensions=(Dimension(CUSTOMERS, "city"),),
                comparison=YEARS,
            ),
            [
                "城市",
                "订单金额合计（2023）",
                "订单金额合计（2024）",
                "订单金额合计增减",
                "订单金额合计增幅",
            ],
            [
                "city",
                "total amount (2023)",
                "total amount (2024)",
                "change of total amount",
                "growth of total amount",
            ],
        ),
        (
            Query(ORDERS, measures=(COUNT,), dimensions=(by("quarter"),), growth="bucket"),
            ["季度", "订单数量", "订单数量（上期）", "订单数量环比增减", "订单数量环比"],
            [
                "quarter",
                "number of orders",
                "number of orders (period before)",
                "change of number of orders on the period before",
                "growth of number of orders on the period before",
            ],
        ),
        (
            Query(
                ORDERS,
                measures=(
                    replace(SUM, is_running=True),
                    replace(COUNT, is_running=True, is_share=True),
                ),
                dimensions=(by("month"),),
            ),
            ["月份", "累计订单金额", "订单数量累计占比"],
            ["month", "running amount", "running share of number of orders"],
        ),
        (
            Query(ORDERS, columns=(ORDER, at("weekday"), at("hour"))),
            ["编号", "下单时间（星期）", "下单时间（小时）"],
            ["order id", "ordered at (weekday)", "ordered at (hour)"],
        ),
        (
            Query(
                ORDERS,
                measures=(COUNT,),
                dimensions=(Dimension(ORDERS, "ordered_at", part="weekend"),),
            ),
            ["是否周末", "订单数量"],
            ["weekend", "number of orders"],
        ),
    ],
)
def test_columns_are_called_by_what_they_hold(
    shop: GuardedDatabase, catalog: Catalog, query: Query, zh: list[str], en: list[str]
) -> None:
    assert [one.label for one in said(shop, catalog, query, "zh")[1]] == zh
    assert [one.label for one in said(shop, catalog, query, "en")[1]] == en


def test_changes_have_the_unit_of_the_figure_and_growth_is_in_percent(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    for query in (
        Query(ORDERS, measures=(SUM,), comparison=YEARS),
        Query(ORDERS, measures=(SUM,), dimensions=(by("month"),), growth="bucket"),
    ):
        units = [one.unit for one in said(shop, catalog, query, "zh")[1]]
        assert units[-4:] == ["元", "元", "元", "%"]


def test_sides_of_several_conditions_are_named_by_all_of_them(
    shop: GuardedDatabase, catalog: Catalog
) -> None:
    paid, others = Condition(STATUS, "=", ("paid",)), Condition(CITY, "in", ("Paris", "Rome"))
    comparison = Comparison((in_year(2024), paid), (in_year(2023), others))
    labels = [
        one.label
        for one in said(
            shop, catalog, Query(ORDERS, measures=(COUNT,), comparison=comparison), "zh"
        )[1]
    ]
    assert labels[:2] == ["订单数量（2024，paid）", "订单数量（2023，Paris、Rome）"]


# ------------------------------------------------------------------------------
# json

STORED = [(table.key, column.name) for table in SHOP.tables for column in table.columns]
columns = st.builds(
    lambda stored, part, is_age: ColumnRef(stored[0], stored[1], part=part, is_age=is_age),
    st.sampled_from(STORED),
    st.sampled_from([None, "weekday", "weekend", "hour", "month", "quarter", "day"]),
    st.booleans(),
)
periods = st.builds(
    Period,
    st.none()
    | st.builds(
        Moment,
        st.none() | st.dates(),
        st.sampled_from(["day", "month", "year"]),
        st.integers(-9, 9),
    ),
    st.builds(Moment, st.dates()),
    st.sampled_from([None, "month", "year"]),
)
numbers = st.decimals(allow_nan=False, allow_infinity=False, places=2)
operands = st.lists(st.text(max_size=5) | numbers | periods | columns, max_size=2).map(tuple)
conditions = st.builds(
    Condition, columns, st.sampled_from(["=", "<", "in", "during", "true", "null"]), operands
)
several = st.lists(conditions, max_size=2).map(tuple)
related = st.lists(
    st.builds(Related, st.sampled_from([CUSTOMERS, ORDERS]), several, st.booleans()), max_size=2
).map(tuple)
measures = st.builds(
    lambda stored, function, percent: Measure(function, stored[0], stored[1], percent=percent),
    st.sampled_from(STORED),
    st.sampled_from(["sum", "count", "median", "percentile", "stddev"]),
    st.none() | numbers,
)
dimensions = st.builds(
    lambda stored, bucket, part: Dimension(stored[0], stored[1], bucket=bucket, part=part),
    st.sampled_from(STORED),
    st.sampled_from([None, "month"]),
    st.sampled_from([None, "weekend"]),
)
changes = st.sampled_from([None, "difference", "percent"])
queries = st.builds(
    Query,
    st.sampled_from([CUSTOMERS, ORDERS]),
    columns=st.lists(columns, max_size=2).map(tuple),
    dimensions=st.lists(dimensions, max_size=2).map(tuple),
    measures=st.lists(measures, max_size=2).map(tuple),
    conditions=several,
    related=related,
    either=st.lists(st.builds(Either, several, related), max_size=2).map(tuple),
    having=st.lists(st.builds(Having, measures, st.just(">"), operands, changes), max_size=1).map(
        tuple
    ),
    order=st.lists(
        st.builds(Order, st.none() | measures, st.none(), st.booleans(), changes), max_size=1
    ).map(tuple),
    comparison=st.none() | st.builds(Comparison, several, several),
    growth=st.sampled_from([None, "bucket", "year"]),
    share_of_top=st.none() | st.integers(1, 9),
)


@given(query=queries)
def test_a_query_comes_back_from_json_as_it_was(query: Query) -> None:
    assert from_json(Query, json.loads(json.dumps(to_json(query))), SHOP) == query


@given(query=queries)
def test_a_query_is_not_read_where_a_column_of_it_is_gone(query: Query) -> None:
    named = {(reference.table, reference.column) for reference in references(query)}
    for key, name in sorted(named, key=str):
        kept = [
            replace(
                table,
                columns=tuple(one for one in table.columns if (table.key, one.name) != (key, name)),
            )
            for table in SHOP.tables
        ]
        assert from_json(Query, to_json(query), Catalog(tuple(kept))) is None


def test_references_are_those_of_all_parts() -> None:
    column = ColumnRef(ORDERS, "status")
    query = Query(
        ORDERS,
        measures=(replace(SUM, per=by("day")),),
        either=(
            Either(
                (Condition(CITY, "=", ("Rome",)),),
                (Related(ORDERS, (Condition(STATUS, "=", ("x",)),)),),
            ),
        ),
        comparison=Comparison(
            (Condition(AMOUNT, ">", (column,)),),
            (Condition(ORDERED, "during", (days(*["2024-01-01"] * 2),)),),
        ),
    )
    assert set(references(query)) == {by("day"), CITY, STATUS, AMOUNT, column, ORDERED}
