"""An example's SQL answers another question only when that says the same, with its own literals.

The property tests hold it against questions that are made, in both languages, together with the
only SQL that answers them: an example made for one of them may give another nothing, or exactly its
own SQL.
"""

import re
from dataclasses import dataclass, replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.inquiry import StoredValue
from common.values import Catalog, Column
from knowledge.experience.phrasing import phrasing_of
from knowledge.experience.reuse import ReuseContext, bound
from knowledge.experience.shapes import shape_of
from sqltree.constants import constants_of, with_constants
from tests.support.effort import tries
from tests.support.offline_catalogs import CUSTOMERS, ORDERS

CITIES = ("Berlin", "Paris", "New York", "IT", "杭州", "温州市")
STATUSES = ("paid", "not paid", "unpaid", "open")
CITY = Column("city", "text", values=CITIES, is_complete=True)
STATUS = Column("status", "text", values=STATUSES, is_complete=True)
CATALOG = Catalog(
    (
        replace(
            CUSTOMERS,
            columns=tuple(
                CITY if column.name == "city" else column for column in CUSTOMERS.columns
            ),
        ),
        replace(
            ORDERS,
            columns=tuple(
                STATUS if column.name == "status" else column for column in ORDERS.columns
            ),
        ),
    )
)


def reuse(
    example: tuple[str, str], question: str, *found: StoredValue, catalog: Catalog = CATALOG
) -> str | None:
    shape = shape_of(*example)
    return (
        None if shape is None else bound(shape, phrasing_of(question), ReuseContext(catalog, found))
    )


# ------------------------------------------------------------------------------
# one by one

TOP = ("top 5 customers by amount", "SELECT name FROM customers ORDER BY amount DESC LIMIT 5")
YEAR = (
    "orders in 2024",
    "SELECT * FROM orders WHERE order_date >= '2024-01-01' AND order_date < '2025-01-01'",
)
IN_YEAR = ("orders in 2024", "SELECT * FROM orders WHERE EXTRACT(YEAR FROM order_date) = 2024")
MONTH = (
    "2024年3月的订单",
    "SELECT * FROM orders WHERE order_date BETWEEN '2024-03-01' AND '2024-03-31 23:59:59'",
)
CODED = (
    "paid orders of Ann Lee",
    "SELECT * FROM orders o WHERE o.status = 'P' AND o.name = 'Ann Lee'",
)
PLACE = ("customers in Berlin", "SELECT * FROM customers WHERE city = 'Berlin'")
DAYS = (
    "orders of the last 7 days",
    "SELECT * FROM orders WHERE order_date >= CURRENT_DATE - interval '7 days'",
)
SHARE = ("top 3 shares", "SELECT round(100.0 * total_amount / 7, 2) FROM orders LIMIT 3")


@pytest.mark.parametrize(
    ("example", "question", "sql"),
    [
        (TOP, "Top 10 customers by amount?", TOP[1].replace("5", "10")),
        (TOP, "TOP ５ CUSTOMERS BY AMOUNT", TOP[1]),
        (TOP, "top  1,000 customers, by amount.", TOP[1].replace("5", "1000")),
        (YEAR, "orders in 2025", YEAR[1].replace("2025", "2026").replace("2024", "2025")),
        (IN_YEAR, "orders in 1999", IN_YEAR[1].replace("2024", "1999")),
        (MONTH, "2024年2月的訂單", MONTH[1].replace("03-01", "02-01").replace("03-31", "02-29")),
        (MONTH, "2025-12的订单", MONTH[1].replace("2024-03", "2025-12")),
        (PLACE, "customers in new york", PLACE[1].replace("Berlin", "New York")),
        (PLACE, "customers in “温州”", None),
        (PLACE, "customers in “温州市”", PLACE[1].replace("Berlin", "温州市")),
        (PLACE, "customers in IT", PLACE[1].replace("Berlin", "IT")),
        (PLACE, "customers in it", None),
        (("orders of 2024", "SELECT 1 FROM orders WHERE day LIKE '2024%'"), "orders of 2023",
         "SELECT 1 FROM orders WHERE day LIKE '2023%'"),
        (("orders of 2024-03", "SELECT 1 FROM orders WHERE day LIKE '2024-03%'"),
         "orders of 2023-11",
         "SELECT 1 FROM orders WHERE day LIKE '2023-11%'"),
        (("names with “ee”", "SELECT 1 FROM customers WHERE name LIKE '%ee%'"), "names with “o'x”",
         "SELECT 1 FROM customers WHERE name LIKE '%o''x%'"),
        (("names with “ee”", "SELECT 1 FROM customers WHERE name LIKE '%ee%'"), "names with ox",
         None),
        (("names with “ee”", "SELECT 1 FROM customers WHERE name LIKE '%ee%'"), "names with “100%”",
         None),
        (("names from “ee”", "SELECT 1 FROM customers WHERE name LIKE 'ee%'"), "names from “ox”",
         None),
        (DAYS, "orders of the last 30 days", DAYS[1].replace("7", "30")),
        (("orders over 2.5", "SELECT 1 FROM orders WHERE total_amount > 2.5"), "orders over 3.75",
         "SELECT 1 FROM orders WHERE total_amount > 3.75"),
    ],
)  # fmt: skip
def test_literals_are_bound_again(example: tuple[str, str], question: str, sql: str | None) -> None:
    assert reuse(example, question) == sql


@pytest.mark.parametrize(
    ("example", "question"),
    [
        (TOP, "bottom 5 customers by amount"),
        (TOP, "top five customers by amount"),
        (TOP, "top 5% customers by amount"),
        (TOP, "top 5k customers by amount"),
        (TOP, "top -5 customers by amount"),
        (TOP, "top 5.5 customers by amount"),
        (TOP, "top 0 customers by amount"),
        (TOP, "top customers by amount"),
        (TOP, "top 5 customers by amount in 2024"),
        (TOP, "customers by amount top 5"),
        (TOP, "top 5 “customers” by amount"),
        (YEAR, "orders since 2024"),
        (YEAR, "orders in 2024-03"),
        (YEAR, "orders in 5000"),
        (YEAR, "orders not in 2024"),
        (YEAR, "orders in 2024/13"),
        (PLACE, "customers not in Berlin"),
        (PLACE, "customers in not Berlin"),
        (PLACE, "customers in Atlantis"),
        (PLACE, "customers in Ann Lee"),
        (PLACE, "customers in Berlin or Paris"),
        (PLACE, "customers in Berlin Berlin"),
        (CODED, "not paid orders of Ann Lee"),
        (CODED, "unpaid orders of Ann Lee"),
        (CODED, "paid orders without Ann Lee"),
        (DAYS, "orders of the last 7 weeks"),
        (DAYS, "orders of the next 7 days"),
        (SHARE, "top 7 shares"),
        (("前5名", "SELECT 1 LIMIT 5"), "前五名"),
        (("前5名", "SELECT 1 LIMIT 5"), "后5名"),
        (("大于5的订单", "SELECT 1 FROM orders WHERE total_amount > 5"), "小于5的订单"),
        (("大于5的订单", "SELECT 1 FROM orders WHERE total_amount > 5"), "不大于5的订单"),
        (("已付款的订单", "SELECT 1 FROM orders WHERE status = 'paid'"), "未付款的订单"),
        (("sales to US", "SELECT 1 FROM orders"), "sales to us"),
    ],
)
def test_what_says_something_else_is_answered_by_nothing(
    example: tuple[str, str], question: str
) -> None:
    assert reuse(example, question) is None


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        ("orders this month", "SELECT 1 FROM orders WHERE order_date >= '2026-11-01'"),
        ("orders this year", "SELECT 1 FROM orders WHERE EXTRACT(YEAR FROM order_date) = 2026"),
        (
            "orders so far in 2026",
            "SELECT 1 FROM orders WHERE order_date BETWEEN '2026-01-01' AND '2026-11-22'",
        ),
        (
            "2024 compared to the year before",
            "SELECT 1 FROM orders WHERE order_year IN (2023, 2024)",
        ),
        (
            "2025 and this year",
            "SELECT 1 FROM orders WHERE (d >= '2025-01-01' AND d < '2026-01-01') OR y = 2026",
        ),
        ("this month of 2026", "SELECT 1 FROM orders WHERE d >= '2026-11-01' AND d < '2026-12-01'"),
        (
            "orders of this month",
            "SELECT 1 FROM orders WHERE EXTRACT(MONTH FROM d) = 11 AND date_trunc('year', d) = z",
        ),
        (
            "orders of today",
            "SELECT 1 FROM orders WHERE to_char(order_date, 'YYYYMMDD') = '20261122'",
        ),
        ("orders of today", "SELECT 1 FROM orders WHERE order_date = 'Nov 22, 2026'"),
        ("orders since Monday", "SELECT 1 FROM orders WHERE order_date >= '11/16/2026'"),
        ("orders on Monday", "SELECT 1 FROM orders WHERE order_date = '16 November 2026'"),
        (
            "这个月的订单",
            "SELECT 1 FROM orders WHERE to_char(d, 'MM') = '11' AND date_trunc('year', d) = z",
        ),
        (
            "上季度的订单",
            "SELECT 1 FROM orders WHERE extract(quarter FROM d) = 3 AND date_trunc('year', d) = z",
        ),
        (
            "orders in the prior month",
            "SELECT 1 FROM orders WHERE EXTRACT(MONTH FROM d) = 10 AND y = z",
        ),
    ],
)
def test_sql_with_the_dates_of_its_day_is_not_used_again_even_for_the_same_words(
    question: str, sql: str
) -> None:
    assert reuse((question, sql), question) is None


@pytest.mark.parametrize(
    ("example", "other"),
    [
        # One text of the question in two places of the SQL, two texts of the question in one, or
        # worked out.
        (
            ("top 3 of at least 3", "SELECT 1 FROM orders WHERE n >= 3 LIMIT 3"),
            "top 4 of at least 3",
        ),
        (
            ("top 3 of at least 4", "SELECT 1 FROM orders WHERE n >= 4 LIMIT 7"),
            "top 5 of at least 4",
        ),
        (("ranks 3 to 5", "SELECT 1 FROM orders LIMIT 3 OFFSET 2"), "ranks 4 to 5"),
        (("more than 2 orders", "SELECT 1 FROM orders WHERE n >= 3"), "more than 4 orders"),
        (("top 1 paid", "SELECT 1 FROM orders WHERE is_paid = 1 LIMIT 1"), "top 2 unpaid"),
        (("top 1 active", "SELECT 1 FROM orders WHERE is_active = 1"), "top 2 active"),
        (
            (
                "how many orders in Q1 2024",
                "SELECT 1 FROM orders WHERE d >= '2024-01-01' AND d < '2024-04-01'",
            ),
            "how many orders in Q1 2025",
        ),
        (
            (
                "2024年第二季度的订单",
                "SELECT 1 FROM orders WHERE d >= '2024-04-01' AND d < '2024-07-01'",
            ),
            "2025年第二季度的订单",
        ),
        (("share over 20%", "SELECT 1 FROM orders WHERE share > 0.2"), "share over 30%"),
        (
            (
                "sales in March 2024",
                "SELECT 1 FROM orders WHERE d >= '2024-03-01' AND d < '2024-04-01'",
            ),
            "sales in March 2025",
        ),
        (
            ("Berlin customers like Berlin", "SELECT 1 FROM customers WHERE city = 'Berlin'"),
            "Paris customers like Berlin",
        ),
        (
            (
                "customers in Berlin",
                "SELECT 1 FROM customers WHERE city = 'Berlin' AND name <> 'Berlin Ltd'",
            ),
            "customers in Paris",
        ),
        (
            (
                "customers in Berlin",
                "SELECT 1 FROM customers WHERE city = 'Berlin' AND customer_id = 17",
            ),
            "customers in Paris",
        ),
        (
            ("customers except in Berlin", "SELECT 1 FROM customers WHERE city <> 'Berlin'"),
            "customers except in Paris",
        ),
        (
            (
                "sales of 2024",
                "SELECT sum(x) AS sales_2024 FROM orders WHERE EXTRACT(YEAR FROM d) = 2024",
            ),
            "sales of 2025",
        ),
        (("top 5 orders", 'SELECT id AS "前5名" FROM orders LIMIT 5'), "top 6 orders"),
        (
            ("orders over 100", "SELECT CASE WHEN n > 100 THEN 'over 100' END FROM orders"),
            "orders over 200",
        ),
        (
            (
                "customers in Berlin",
                "SELECT name AS berlin_customers FROM customers WHERE city = 'Berlin'",
            ),
            "customers in Paris",
        ),
        (("what Ann ordered", "SELECT 1 FROM unknown WHERE who = 'Ann'"), "what Bob ordered"),
        (
            (
                "2024 against 2025",
                "SELECT 1 FROM orders WHERE d >= '2024-01-01' AND d < '2025-01-01'",
            ),
            "2023 against 2025",
        ),
    ],
)
def test_where_it_is_not_certain_which_constant_is_meant_only_the_same_question_is_answered(
    example: tuple[str, str], other: str
) -> None:
    assert reuse(example, other) is None
    shape = shape_of(*example)
    assert (
        shape is None or bound(shape, phrasing_of(example[0]), ReuseContext(CATALOG)) == example[1]
    )


@pytest.mark.parametrize(
    ("example", "question", "sql"),
    [
        (
            ("orders of 10 to 20", "SELECT 1 FROM orders WHERE n BETWEEN 10 AND 20"),
            "orders of 20 to 10",
            None,
        ),
        (
            ("orders of 10 to 20", "SELECT 1 FROM orders WHERE n BETWEEN 10 AND 20"),
            "orders of 9 to 100",
            "SELECT 1 FROM orders WHERE n BETWEEN 9 AND 100",
        ),
        (
            ("orders of 10 to 20", "SELECT 1 FROM orders WHERE n >= 10 AND n <= 20"),
            "orders of 20 to 10",
            None,
        ),
        (
            (
                "groups of 10 to 20",
                "SELECT 1 FROM orders GROUP BY d HAVING sum(n) BETWEEN 10 AND 20",
            ),
            "groups of 20 to 10",
            None,
        ),
        (
            (
                "orders from 2022 to 2024",
                "SELECT 1 FROM orders WHERE d >= '2022-01-01' AND d < '2025-01-01'",
            ),
            "orders from 2024 to 2022",
            None,
        ),
        (
            ("over 10 of at least 20", "SELECT 1 FROM orders WHERE n > 10 AND m >= 20"),
            "over 20 of at least 10",
            "SELECT 1 FROM orders WHERE n > 20 AND m >= 10",
        ),
    ],
)
def test_a_range_is_not_turned_round(
    example: tuple[str, str], question: str, sql: str | None
) -> None:
    assert reuse(example, question) == sql


def test_a_number_stands_for_a_name_only_where_the_example_has_a_number() -> None:
    city = replace(CITY, values=(*CITIES, "2024", "15", "25"))
    columns = tuple(
        city if column.name == "city" else column for column in CATALOG.tables[0].columns
    )
    catalog = Catalog((replace(CATALOG.tables[0], columns=columns), *CATALOG.tables[1:]))
    assert reuse(PLACE, "customers in 2024", catalog=catalog) is None
    assert (
        reuse(PLACE, 'customers in "2024"', catalog=catalog)
        == "SELECT * FROM customers WHERE city = '2024'"
    )
    gate = ("customers in 15", "SELECT * FROM customers WHERE city = '15'")
    assert (
        reuse(gate, "customers in 25", catalog=catalog)
        == "SELECT * FROM customers WHERE city = '25'"
    )
    assert reuse(gate, "customers in 2024", catalog=catalog) is None


def test_a_value_that_is_stored_elsewhere_too_is_not_taken() -> None:
    catalog = Catalog(
        (
            replace(
                CATALOG.tables[0], columns=(CITY, Column("name", "text", values=("Paris", "Ann")))
            ),
        )
    )
    assert reuse(PLACE, "customers in Paris", catalog=catalog) is None
    assert reuse(PLACE, "customers in New York", catalog=catalog) == PLACE[1].replace(
        "Berlin", "New York"
    )


def test_a_value_found_in_the_database_is_taken_for_its_own_column_only() -> None:
    bare = replace(CITY, values=("Berlin",), is_complete=False)
    catalog = Catalog((replace(CUSTOMERS, columns=(bare, Column("name", "text"))),))
    there = StoredValue("Lyon", ("public", "customers"), "city", "Lyon")
    assert reuse(PLACE, "customers in Lyon", there, catalog=catalog) == PLACE[1].replace(
        "Berlin", "Lyon"
    )
    assert reuse(PLACE, "customers in Lyon", catalog=catalog) is None
    assert reuse(PLACE, "customers in Lyon", replace(there, column="name"), catalog=catalog) is None


def test_names_are_written_as_they_are_stored_and_quoted() -> None:
    values = ("O'Neill", "100%", 'a"b', "Berlin")
    catalog = Catalog((replace(CUSTOMERS, columns=(replace(CITY, values=values),)),))
    assert reuse(PLACE, 'customers in "o\'neill"', catalog=catalog) == PLACE[1].replace(
        "'Berlin'", "'O''Neill'"
    )
    like = ("customers in Berlin", "SELECT * FROM customers WHERE city LIKE '%Berlin%'")
    assert reuse(like, "customers in “O'Neill”", catalog=catalog) == like[1].replace(
        "Berlin", "O''Neill"
    )
    assert reuse(like, "customers in “100%”", catalog=catalog) is None


@given(st.text(max_size=60))
def test_no_text_makes_more_of_a_query_than_its_constants(value: str) -> None:
    sql = "SELECT * FROM customers WHERE city = 'Berlin' AND n > 5 LIMIT 3"
    constants = constants_of(sql)
    assert constants is not None
    for constant in constants:
        changed = with_constants(sql, {constant: value})
        if changed is not None:
            after = constants_of(changed)
            assert after is not None
            assert [one.value for one in after] == [
                value if one is constant else one.value for one in constants
            ]


@given(st.text(max_size=200))
def test_any_text_has_a_phrasing(text: str) -> None:
    phrasing = phrasing_of(text)
    ends = [place for piece in phrasing.pieces for place in (piece.start, piece.end)]
    assert ends == sorted(ends)
    assert [piece.text for piece in phrasing_of(text.strip()).pieces] == [
        piece.text for piece in phrasing.pieces
    ]


# ------------------------------------------------------------------------------
# questions with their SQL


@dataclass(frozen=True)
class Ranking:
    """A question for the first customers by a figure of their orders.

    Attributes:
        order: `top` or `bottom`.
        figure: `total`, `average`, `least` or `most`.
        city: with whether it is excluded.
        over: a bound of the amount, with whether it is a lower one.
        paid: None: not said.
        period: a year, a month, or `last month`.
    """

    order: str
    count: int
    figure: str
    city: str
    excludes: bool
    over: bool
    amount: int
    paid: bool | None
    period: str


FIGURES = {"total": "sum", "average": "avg", "least": "min", "most": "max"}
CHINESE = {
    "total": "总金额",
    "average": "平均金额",
    "least": "最小金额",
    "most": "最大金额",
    "top": "前",
    "bottom": "后",
}


def english(one: Ranking) -> str:
    paid = {None: "", True: "paid ", False: "not paid "}[one.paid]
    place = f"excluding {one.city}" if one.excludes else f"in {one.city}"
    bound_ = "over" if one.over else "under"
    return (
        f"{one.order} {one.count} customers {place} by {one.figure} amount of {paid}orders "
        f"{bound_} {one.amount}"
        f" in {one.period}"
    )


def chinese(one: Ranking) -> str:
    paid = {None: "", True: "已付款", False: "未付款"}[one.paid]
    place = f"不含{one.city}" if one.excludes else f"在{one.city}"
    bound_ = "大于" if one.over else "小于"
    period = {"last month": "上月"}.get(one.period, one.period)
    return (
        f"{period}{place}的客户按{bound_}{one.amount}元的{paid}订单"
        f"{CHINESE[one.figure]}排{CHINESE[one.order]}{one.count}名"
    )


def answer(one: Ranking) -> str:
    """The only SQL that answers the question."""
    paid = {None: "", True: " AND o.status = 'P'", False: " AND o.status <> 'P'"}[one.paid]
    return (
        f"SELECT c.name, {FIGURES[one.figure]}(o.total_amount) FROM customers c JOIN orders o "
        "USING (customer_id)"
        f" WHERE c.city {'<>' if one.excludes else '='} '{one.city}'{paid}"
        f" AND o.total_amount {'>' if one.over else '<'} {one.amount} AND {_within(one.period)}"
        f" GROUP BY c.name ORDER BY 2 {'DESC' if one.order == 'top' else 'ASC'} LIMIT {one.count}"
    )


def _within(period: str) -> str:
    if period == "last month":
        return "o.order_date >= date_trunc('month', CURRENT_DATE) - interval '1 month'"
    year, _, month = period.partition("-")
    first = date(int(year), int(month or 1), 1)
    after = (
        date(first.year + 1, 1, 1)
        if not month or month == "12"
        else date(first.year, int(month) + 1, 1)
    )
    return f"o.order_date >= '{first}' AND o.order_date < '{after}'"


PERIODS = st.one_of(
    st.integers(1990, 2030).map(str),
    st.dates(date(2023, 1, 1), date(2026, 1, 1)).map(lambda day: f"{day:%Y-%m}"),
    st.just("last month"),
)
RANKINGS = st.builds(
    Ranking,
    order=st.sampled_from(["top", "bottom"]),
    count=st.integers(1, 12),
    figure=st.sampled_from(sorted(FIGURES)),
    city=st.sampled_from(CITIES),
    excludes=st.booleans(),
    over=st.booleans(),
    amount=st.one_of(st.integers(1, 12), st.integers(2, 3000)),
    paid=st.sampled_from([None, True, False]),
    period=PERIODS,
)
OTHERS = st.lists(
    st.tuples(st.sampled_from(list(Ranking.__dataclass_fields__)), RANKINGS), min_size=0, max_size=3
)  # fmt: skip
SAID = st.sampled_from([english, chinese])


def changed(one: Ranking, changes: list[tuple[str, Ranking]]) -> Ranking:
    """The question with some of its parts taken from others."""
    for name, other in changes:
        one = replace(one, **{name: getattr(other, name)})
    return one


@given(RANKINGS, OTHERS, SAID)
@settings(max_examples=tries(75))
def test_another_question_gets_its_own_sql_or_none(
    one: Ranking, changes: list[tuple[str, Ranking]], say: object
) -> None:
    other = changed(one, changes)
    assert callable(say)
    found = reuse((say(one), answer(one)), say(other))
    assert found in (None, answer(other))


@given(RANKINGS, SAID)
def test_the_same_question_gets_the_same_sql(one: Ranking, say: object) -> None:
    assert callable(say)
    assert reuse((say(one), answer(one)), say(one).upper().lower() + "?") in (
        None,
        answer(one),
    )
    plain = replace(one, city="Berlin")
    assert reuse((say(plain), answer(plain)), say(plain)) == answer(plain)


def test_most_questions_with_other_literals_are_answered() -> None:
    one = Ranking("top", 5, "total", "Berlin", False, True, 100, True, "2024")
    other = replace(one, count=10, city="New York", amount=250, period="2025")
    for say in (english, chinese):
        assert reuse((say(one), answer(one)), say(other)) == answer(other)


WORDS = (
    "not",
    "no",
    "without",
    "except",
    "excluding",
    "only",
    "top",
    "bottom",
    "over",
    "under",
    "paid",
    "unpaid",
)
MORE_WORDS = ("least", "most", "all", "or", "and", "5", "10", "2024", "2025")
HAN = list("不未非无前后大小最多少已或和除")


@given(RANKINGS, SAID, st.data())
@settings(max_examples=tries(75))
def test_one_word_that_is_changed_added_or_left_out_makes_another_question(
    one: Ranking, say: object, data: st.DataObject
) -> None:
    assert callable(say)
    question = say(one)
    parts = re.findall(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]| ", question)
    at = data.draw(st.integers(0, len(parts) - 1))
    word = data.draw(st.sampled_from((*WORDS, *MORE_WORDS) if say is english else HAN))
    gone = data.draw(st.integers(0, 1))
    mutated = "".join([*parts[:at], *([" "] if say is english else []), word, *parts[at + gone :]])
    found = reuse((question, answer(one)), mutated)
    if found is not None and found != answer(one):
        literals = [constant.value for constant in constants_of(found) or ()]
        assert word.isdigit() and any(word in literal for literal in literals), (
            question,
            mutated,
            found,
        )
        assert re.sub(r"\d+", "#", found) == re.sub(r"\d+", "#", answer(one))
