"""Results of all shapes get the chart that a person would choose, for the reason beside each."""

import datetime
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import pytest

from agent.answers.chart import chart_of
from agent.answers.chart_image import chart_png, figure_of
from app_config import Settings
from common.values import Catalog, Column, QueryResult, Table
from databases.demo import SEMANTIC_FILE
from knowledge.results.result_columns import result_columns
from tests.support.asking import Asking

_FIRST = datetime.date.today() - datetime.timedelta(
    days=30
)  # the demo has two years up to yesterday


def _days(count: int) -> str:
    return f"revenue_date BETWEEN '{_FIRST}' AND '{_FIRST + datetime.timedelta(days=count - 1)}'"


DAY, TWO_DAYS, WEEK = f"revenue_date = '{_FIRST}'", _days(2), _days(7)
AREA = "JOIN service_area AS a USING (service_area_id)"
Expected = tuple[str, str | None, str, str | None] | None
# (SQL, type x y series, why)
CASES: list[tuple[str, Expected, str]] = [
    # one figure
    (
        "SELECT count(*) AS shops FROM shop",
        ("number", None, "shops", None),
        "one figure is read, not drawn",
    ),
    (
        "SELECT sum(monthly_rent) FROM shop",
        ("number", None, "sum", None),
        "one figure, named by PostgreSQL",
    ),
    (
        "SELECT count(*)::float / 3 AS third FROM shop",
        ("number", None, "third", None),
        "a computed figure",
    ),
    ("SELECT 0 AS nothing", ("number", None, "nothing", None), "zero is an answer"),
    (
        "SELECT category, count(*) AS n FROM shop WHERE category = '餐饮' GROUP BY 1",
        ("number", None, "n", None),
        "one group is one figure",
    ),
    (
        "SELECT count(*) AS n, sum(monthly_rent) AS rent FROM shop",
        None,
        "two figures of two units share no axis",
    ),
    ("SELECT max(opened_on) AS latest FROM service_area", None, "a day is no figure"),
    ("SELECT shop_name FROM shop ORDER BY shop_id LIMIT 1", None, "a name is no figure"),
    ("SELECT NULL::int AS unknown", None, "nothing to see"),
    ("SELECT 1e400::numeric AS n", None, "no number of a chart is as large"),
    # figures by what they belong to
    (
        "SELECT category, count(*) AS n FROM shop GROUP BY 1",
        ("bar", "category", "n", None),
        "groups are compared",
    ),
    (
        "SELECT category, avg(monthly_rent) AS rent FROM shop GROUP BY 1 ORDER BY 2 DESC",
        ("bar", "category", "rent", None),
        "averages don't add up to a whole",
    ),
    (
        "SELECT status, count(*) AS n FROM service_area GROUP BY 1",
        ("bar", "status", "n", None),
        "counts are compared, unless shares are asked for",
    ),
    (
        (
            "SELECT is_deleted, count(*) AS n FROM shop GROUP BY 1 HAVING count(*) > 0 UNION ALL "
            "SELECT NULL, 2"
        ),
        ("bar", "is_deleted", "n", None),
        "yes and no are groups",
    ),
    (
        f"SELECT a.service_area_name, sum(revenue) AS r FROM service_area_daily_revenue {AREA} "
        f"WHERE {DAY} "
        "GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
        ("bar", "service_area_name", "r", None),
        "a ranking",
    ),
    (
        "SELECT a.service_area_id, a.service_area_name, sum(revenue) AS r "
        f"FROM service_area_daily_revenue {AREA} "
        f"WHERE {DAY} GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 10",
        ("bar", "service_area_name", "r", None),
        "the name tells more than its number",
    ),
    (
        (
            "SELECT service_area_id, sum(revenue) AS r FROM service_area_daily_revenue "
            f"WHERE {DAY} GROUP BY 1 LIMIT 10"
        ),
        ("bar", "service_area_id", "r", None),
        "numbers that name things are no figures",
    ),
    (
        (
            "SELECT category, count(*) AS n, sum(monthly_rent) AS rent FROM shop GROUP BY 1 "
            "ORDER BY 3 DESC"
        ),
        ("bar", "category", "rent", None),
        "of two figures the one it was sorted by",
    ),
    (
        (
            "SELECT rank() OVER (ORDER BY count(*) DESC) AS place, category, count(*) AS n "
            "FROM shop GROUP BY 2 ORDER BY 1"
        ),
        ("bar", "category", "n", None),
        "the place in a ranking is no figure",
    ),
    (
        (
            "SELECT brand, count(*) AS n FROM (SELECT brand || shop_id AS brand FROM shop) "
            "AS s GROUP BY 1"
        ),
        None,
        "hundreds of bars can't be read",
    ),
    ("SELECT province, 0 AS n FROM service_area GROUP BY 1", None, "only zeros"),
    ("SELECT category, NULL::int AS n FROM shop GROUP BY 1", None, "no figures"),
    (
        "SELECT extract(dow FROM revenue_date) AS weekday, sum(amount) AS r "
        "FROM daily_revenue WHERE "
        f"{WEEK} GROUP BY 1 ORDER BY 1",
        ("bar", "weekday", "r", None),
        "weekdays are groups in an order",
    ),
    (
        (
            "SELECT extract(month FROM opened_on) AS month, count(*) AS n FROM service_area "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("bar", "month", "n", None),
        "months of all years together are groups",
    ),
    (
        (
            "SELECT CASE WHEN floor_area > 100 THEN 'large' ELSE 'small' END AS size, count(*) "
            "AS n FROM shop GROUP BY 1"
        ),
        ("bar", "size", "n", None),
        "groups made in the query",
    ),
    (
        "SELECT service_area_name, status, opened_on, parking_spaces FROM service_area LIMIT 1",
        None,
        "a thing with its facts is not about the one that is a figure",
    ),
    (
        "SELECT service_area_name, parking_spaces FROM service_area LIMIT 5",
        ("bar", "service_area_name", "parking_spaces", None),
        "a name and its figure",
    ),
    (
        "SELECT x AS name, 1.7e308::float8 / x AS n FROM generate_series(1, 5) AS x",
        None,
        "no axis reaches as far",
    ),
    (
        "SELECT x::text AS name, x * 1e400 AS n, x * 2 AS m FROM generate_series(1, 5) AS x",
        ("bar", "name", "m", None),
        "the figure that can be drawn",
    ),
    # shares
    (
        "SELECT category, count(*) * 1.0 / sum(count(*)) OVER () AS share FROM shop GROUP BY 1",
        ("pie", "category", "share", None),
        "shares of a whole",
    ),
    (
        (
            "SELECT category, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent "
            "FROM shop GROUP BY 1"
        ),
        ("pie", "category", "percent", None),
        "shares in percent",
    ),
    (
        "SELECT category, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (), 1) "
        "AS percent FROM shop "
        "GROUP BY 1 ORDER BY 2 DESC",
        ("pie", "category", "percent", None),
        "the count explains the share",
    ),
    (
        (
            "SELECT province, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent "
            "FROM service_area GROUP BY 1"
        ),
        ("bar", "province", "percent", None),
        "more than six slices",
    ),
    (
        (
            "SELECT shop_id % 9 || 'th' AS part, 100.0 * count(*) / sum(count(*)) OVER () "
            "AS percent FROM shop GROUP BY 1"
        ),
        ("bar", "part", "percent", None),
        "nine slices are compared as bars",
    ),
    (
        "SELECT category, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent "
        "FROM shop GROUP BY 1 "
        "ORDER BY 2 DESC LIMIT 2",
        ("bar", "category", "percent", None),
        "two of five shares are no whole",
    ),
    # over time
    (
        (
            f"SELECT revenue_date, sum(amount) AS r FROM daily_revenue WHERE {WEEK} "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("line", "revenue_date", "r", None),
        "a course of days",
    ),
    (
        (
            "SELECT date_trunc('month', opened_on) AS month, count(*) AS n FROM service_area "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("line", "month", "n", None),
        "a course of months",
    ),
    (
        (
            "SELECT to_char(opened_on, 'YYYY-MM') AS month, count(*) AS n FROM service_area "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("line", "month", "n", None),
        "months written as text",
    ),
    (
        (
            "SELECT extract(year FROM opened_on) AS year, count(*) AS n FROM service_area "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("line", "year", "n", None),
        "a course of years",
    ),
    (
        (
            "SELECT to_char(opened_on, 'YYYY') AS year, count(*) AS n FROM service_area "
            "GROUP BY 1 ORDER BY 1"
        ),
        ("line", "year", "n", None),
        "years written as text",
    ),
    (
        "WITH m AS (SELECT date_trunc('month', opened_on)::date AS m FROM service_area) "
        "SELECT m, count(*) AS n FROM m GROUP BY 1 ORDER BY 1",
        ("line", "m", "n", None),
        "months by way of a CTE",
    ),
    (
        f"SELECT revenue_date, sum(amount) AS r FROM daily_revenue WHERE {TWO_DAYS} GROUP BY 1",
        ("bar", "revenue_date", "r", None),
        "two points are no course",
    ),
    (
        "SELECT revenue_date, sum(amount) AS r, sum(order_count) AS n FROM daily_revenue "
        f"WHERE {WEEK} GROUP BY 1 "
        "ORDER BY 1",
        ("line", "revenue_date", "r", None),
        "the first figure over time",
    ),
    (
        (
            f"SELECT revenue_date, payment_type, sum(amount) AS r FROM daily_revenue WHERE {WEEK} "
            "GROUP BY 1, 2"
        ),
        ("line", "revenue_date", "r", "payment_type"),
        "a line per group",
    ),
    (
        (
            f"SELECT payment_type, revenue_date, sum(amount) AS r FROM daily_revenue WHERE {WEEK} "
            "GROUP BY 1, 2"
        ),
        ("line", "revenue_date", "r", "payment_type"),
        "time goes along, wherever it stands",
    ),
    (
        (
            f"SELECT revenue_date, shop_id, sum(amount) AS r FROM daily_revenue WHERE {DAY} "
            "GROUP BY 1, 2 LIMIT 40"
        ),
        None,
        "forty lines can't be told apart",
    ),
    (
        f"SELECT revenue_date, amount FROM daily_revenue WHERE {DAY} AND shop_id < 1005",
        None,
        "several figures of one day, and nothing says which is which",
    ),
    (
        "SELECT revenue_date, sum(amount) AS r FROM daily_revenue GROUP BY 1 ORDER BY 1",
        None,
        "cut after 200 days, the course would mislead",
    ),
    (
        f"SELECT a.service_area_name, revenue_date, revenue FROM service_area_daily_revenue {AREA} "
        f"WHERE {WEEK} "
        "AND service_area_id IN (101, 102)",
        ("line", "revenue_date", "revenue", "service_area_name"),
        "one figure of each thing at each time is a course of each",
    ),
    # by two things
    (
        "SELECT province, status, count(*) AS n FROM service_area GROUP BY 1, 2",
        ("bar", "province", "n", "status"),
        "coloured by the fewer",
    ),
    (
        "SELECT status, province, count(*) AS n FROM service_area GROUP BY 1, 2",
        ("bar", "province", "n", "status"),
        "whatever stands first",
    ),
    (
        "SELECT c.company_name, c.region, count(*) AS n FROM service_area JOIN company AS c "
        "USING (company_id) "
        "GROUP BY 1, 2",
        ("bar", "company_name", "n", None),
        "the region only says more of the company",
    ),
    (
        "SELECT province, status, category, count(*) AS n FROM service_area JOIN shop "
        "USING (service_area_id) "
        "GROUP BY 1, 2, 3",
        None,
        "three groupings are a table",
    ),
    # two figures of many things
    (
        "SELECT floor_area, monthly_rent FROM shop ORDER BY shop_id LIMIT 60",
        ("scatter", "floor_area", "monthly_rent", None),
        "how one goes with the other",
    ),
    (
        "SELECT shop_name, floor_area, monthly_rent FROM shop ORDER BY shop_id LIMIT 60",
        ("scatter", "floor_area", "monthly_rent", None),
        "the names are the dots",
    ),
    (
        "SELECT floor_area, monthly_rent FROM shop ORDER BY shop_id LIMIT 4",
        None,
        "four dots show nothing",
    ),
    # lists
    ("SELECT * FROM shop ORDER BY shop_id LIMIT 20", None, "a list of things"),
    (
        "SELECT shop_id, shop_name, category, monthly_rent FROM shop LIMIT 20",
        None,
        "facts about things",
    ),
    ("SELECT shop_name FROM shop LIMIT 20", None, "names"),
    (
        "SELECT shop_id, service_area_id FROM shop LIMIT 20",
        None,
        "numbers that name things are no figures",
    ),
    ("SELECT service_area_name, opened_on FROM service_area LIMIT 20", None, "days are no figures"),
    ("SELECT category, count(*) AS n FROM shop WHERE false GROUP BY 1", None, "nothing was found"),
    (
        "SELECT category AS x, count(*) AS x FROM shop GROUP BY 1",
        None,
        "two columns of one name can't be told apart",
    ),
    (
        "SELECT category, array_agg(shop_id) AS ids FROM shop GROUP BY 1",
        None,
        "lists are no figures",
    ),
    (
        "SELECT category, max(monthly_rent) - min(monthly_rent) AS spread FROM shop GROUP BY 1",
        ("bar", "category", "spread", None),
        "a difference of figures",
    ),
    # steps and parts
    (
        "SELECT parking_spaces, count(*) AS n FROM service_area GROUP BY 1 ORDER BY 1 LIMIT 9",
        ("bar", "parking_spaces", "n", None),
        "rows are counted by a number",
    ),
    (
        "SELECT floor(monthly_rent / 10000) * 10000 AS rent, count(*) AS n FROM shop "
        "GROUP BY 1 ORDER BY 1",
        ("bar", "rent", "n", None),
        "a histogram",
    ),
    (
        "SELECT round(monthly_rent / 1000) AS rent, count(*) AS n FROM shop GROUP BY 1 ORDER BY 1",
        ("bar", "rent", "n", None),
        "a histogram of many steps",
    ),
    (
        "SELECT CASE WHEN shop_id % 9 < 2 THEN 'twin' ELSE 'shop ' || shop_id % 9 END AS name, "
        "sum(monthly_rent) AS rent FROM shop GROUP BY shop_id % 9, 1",
        ("bar", "name", "rent", None),
        "two things of one name have a bar each",
    ),
    (
        f"SELECT payment_type, sum(amount) FILTER (WHERE {TWO_DAYS}) AS before, "
        f"sum(amount) FILTER (WHERE {WEEK}) AS after FROM daily_revenue GROUP BY 1",
        ("bar", "payment_type", "before", None),
        "two figures of one kind stand beside each other",
    ),
    (
        "SELECT parking_spaces, avg(monthly_rent) AS rent FROM shop JOIN service_area "
        "USING (service_area_id) GROUP BY 1 ORDER BY 1",
        ("bar", "parking_spaces", "rent", None),
        "an average by a number",
    ),
    (
        "SELECT extract(hour FROM updated_at) AS hour, count(*) AS n FROM shop GROUP BY 1",
        ("number", None, "n", None),
        "one hour is one figure",
    ),
    (
        f"SELECT extract(isodow FROM revenue_date) AS d, sum(amount) AS revenue "
        f"FROM daily_revenue WHERE {WEEK} GROUP BY 1 ORDER BY 1",
        ("bar", "d", "revenue", None),
        "weekdays in their order are no course",
    ),
    (
        f"SELECT date_trunc('day', revenue_date)::date AS d, sum(amount) AS revenue "
        f"FROM daily_revenue WHERE {WEEK} GROUP BY 1 ORDER BY 2 DESC",
        ("bar", "d", "revenue", None),
        "days by rank are no course",
    ),
    (
        "SELECT date_trunc('month', revenue_date)::date AS m, sum(amount) AS revenue "
        "FROM daily_revenue GROUP BY 1 ORDER BY 2 DESC LIMIT 5",
        ("bar", "m", "revenue", None),
        "the best months are ranked",
    ),
    (
        "SELECT category, count(*) AS n, sum(monthly_rent) AS rent FROM shop GROUP BY 1 "
        "ORDER BY sum(monthly_rent) DESC LIMIT 3",
        ("bar", "category", "rent", None),
        "the figure of the order is drawn, also where it is written again",
    ),
    (
        f"SELECT revenue_date, sum(amount) AS revenue FROM daily_revenue WHERE {WEEK} "
        "GROUP BY 1 ORDER BY 1 DESC",
        ("line", "revenue_date", "revenue", None),
        "the latest first is still a course",
    ),
    (
        "SELECT service_area_name, parking_spaces FROM service_area "
        "ORDER BY 2 DESC NULLS LAST LIMIT 5",
        ("bar", "service_area_name", "parking_spaces", None),
        "a stored figure is ranked",
    ),
    (
        "SELECT extract(year FROM revenue_date) AS y, extract(month FROM revenue_date) AS m, "
        "sum(amount) AS r FROM daily_revenue GROUP BY 1, 2 ORDER BY 1, 2",
        ("line", "m", "r", "y"),
        "years are compared month by month",
    ),
    (
        "SELECT extract(isodow FROM revenue_date) AS d, extract(month FROM revenue_date) AS m, "
        "sum(amount) AS r FROM daily_revenue GROUP BY 1, 2",
        ("line", "m", "r", "d"),
        "eighty bars of seven colours can't be read",
    ),
    (
        "SELECT coalesce(category, 'all') AS kind, count(*) AS n FROM shop "
        "GROUP BY ROLLUP (category)",
        None,
        "a total among its parts",
    ),
    (
        "SELECT category, count(*) AS n FROM shop GROUP BY 1 UNION ALL SELECT 'all', count(*) "
        "FROM shop",
        None,
        "a total under its parts",
    ),
    (
        "SELECT currency, sum(price) AS paid FROM (VALUES ('EUR', 3), ('USD', 4), ('EUR', 5)) "
        "AS v (currency, price) GROUP BY 1",
        None,
        "dollars and euros share no axis",
    ),
    (
        "SELECT currency, count(*) AS n FROM (VALUES ('EUR', 3), ('USD', 4), ('EUR', 5)) "
        "AS v (currency, price) GROUP BY 1",
        ("bar", "currency", "n", None),
        "numbers of rows do",
    ),
    (
        f"SELECT revenue_date, sum(amount) AS r FROM daily_revenue WHERE {WEEK} GROUP BY 1",
        ("line", "revenue_date", "r", None),
        "days that come in no order are no ranking",
    ),
    (
        "SELECT category, avg(extract(year FROM now()) - extract(year FROM updated_at)) AS age "
        "FROM shop GROUP BY 1 HAVING count(*) > 0 UNION ALL SELECT 'none', 3",
        ("bar", "category", "age", None),
        "years that went by are a figure",
    ),
    (
        "SELECT shop_id, count(*) AS n FROM daily_revenue GROUP BY 1 ORDER BY 2 DESC LIMIT 60",
        None,
        "keys are no figures by whose steps rows are counted",
    ),
    (
        "SELECT shop_id, monthly_rent FROM shop LIMIT 30",
        None,
        "rows that only their keys name are a list",
    ),
    (
        "SELECT shop_id, monthly_rent FROM shop ORDER BY 2 DESC LIMIT 30",
        ("bar", "shop_id", "monthly_rent", None),
        "unless they are ranked",
    ),
    (
        "SELECT name, best, n FROM (VALUES ('a', date '2026-01-01', 3), ('b', '2026-03-01', 4), "
        "('c', '2026-02-01', 9)) AS v (name, best, n)",
        ("bar", "name", "n", None),
        "the best month of each says more of what stands first",
    ),
]


@pytest.fixture(scope="module")
def asking(demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url)) as asking:
        yield asking


def _run(asking: Asking, sql: str, lang: str = "en") -> dict[str, Any]:
    with asking.client.post("/api/v0/sql/run", json={"sql": sql, "lang": lang}) as response:
        envelope = json.loads(response.get_data())
    assert envelope["code"] == 200, (sql, envelope)
    return dict(envelope["data"])


def test_results_of_all_shapes_get_the_chart_that_a_person_would_choose(asking: Asking) -> None:
    wrong = []
    for sql, expected, why in CASES:
        chart = _run(asking, sql).get("chart")
        got = chart and (chart["type"], chart["x"], chart["y"], chart["series"])
        if got != expected:
            wrong.append((sql, got, expected, why))
    assert len(CASES) >= 72
    assert wrong == [], "\n".join(map(str, wrong))


def test_figures_of_one_kind_and_wide_steps_are_said_beside_the_columns(asking: Asking) -> None:
    two = _run(
        asking,
        f"SELECT payment_type, sum(amount) FILTER (WHERE {TWO_DAYS}) AS before, "
        f"sum(amount) FILTER (WHERE {WEEK}) AS after FROM daily_revenue GROUP BY 1",
    )["chart"]
    assert two["others"] == ["after"]
    steps = _run(
        asking,
        "SELECT round(monthly_rent / 1000) AS rent, count(*) AS n FROM shop GROUP BY 1 ORDER BY 1",
    )
    width = steps["chart"]["step"]
    figures = [row[0] for row in steps["query_result"]["rows"] if row[0] is not None]
    assert len(figures) > 50
    assert (max(figures) - min(figures)) / width <= 30


def test_axes_are_in_the_order_of_time_and_numbers_and_names_by_size(asking: Asking) -> None:
    weekday = "to_char(revenue_date, 'FMDay')"
    days = _run(asking, f"SELECT {weekday} AS d, avg(amount) AS r FROM daily_revenue GROUP BY 1")
    first = ["Monday", "Tuesday", "Wednesday", "Thursday"]
    seen = [row[0] for row in days["query_result"]["rows"]]
    assert days["chart"].get("order", seen)[:4] == first

    steps = "(VALUES ('>=100', 2), ('5-50', 3), ('50-100', 4), ('<5', 1), (NULL, 9)) AS v (size, n)"
    sizes = _run(asking, f"SELECT size, sum(n) AS n FROM {steps} GROUP BY 1 ORDER BY 1")["chart"]
    assert sizes["order"] == ["<5", "5-50", "50-100", ">=100", None]

    names = "(VALUES ('a', 2), ('b', 3), ('c', 4)) AS v (name, n)"
    kept = _run(asking, f"SELECT name, sum(n) AS n FROM {names} GROUP BY 1 ORDER BY 1")["chart"]
    assert "order" not in kept
    open_ = _run(asking, f"SELECT name, sum(n) AS n FROM {names} GROUP BY 1")
    seen = [row[0] for row in open_["query_result"]["rows"]]
    assert open_["chart"].get("order", seen) == ["c", "b", "a"]

    for values in (
        ("under 15 min", "15 to 30 min", "over 30 min"),
        ("不足1年", "1到3年", "3年以上"),
        ("-10 – 0 °C", "0 – 10 °C", ">10 °C"),
        ("1,000-2,000", "2,000-10,000", "10,000+"),
        ("第1季度", "第2季度", "第10季度"),
        ("S", "M", "XL"),
        ("low", "Medium", "HIGH"),
        ("上午", "下午", "夜间"),
    ):
        rows = ", ".join(f"('{value}', {len(value) % 3 + 1})" for value in values[::-1])
        sql = f"SELECT name, sum(n) AS n FROM (VALUES {rows}) AS v (name, n) GROUP BY 1"
        chart = _run(asking, f"{sql} ORDER BY 1")["chart"]
        stored = [row[0] for row in _run(asking, f"{sql} ORDER BY 1")["query_result"]["rows"]]
        assert chart.get("order", stored) == list(values)

    signed = "(VALUES ('a', 5), ('b', -9), ('c', 7), ('d', -1)) AS v (name, n)"
    gains = _run(asking, f"SELECT name, sum(n) AS n FROM {signed} GROUP BY 1")
    seen = [row[0] for row in gains["query_result"]["rows"]]
    assert gains["chart"].get("order", seen) == ["c", "a", "d", "b"]

    months = _run(
        asking,
        "SELECT extract(year FROM d) AS y, extract(month FROM d) AS m, count(*) AS n "
        "FROM generate_series('2024-11-01'::timestamp, '2026-02-01', '1 day') AS d "
        "GROUP BY 1, 2 ORDER BY 1, 2",
    )["chart"]
    assert (months["type"], months["x"], months["series"]) == ("line", "m", "y")
    assert months["order"] == list(range(1, 13))
    assert months["series_order"] == [2024, 2025, 2026]


def test_columns_of_one_label_are_told_apart_by_their_own_names(asking: Asking) -> None:
    result = _run(
        asking,
        "SELECT category, count(*) FILTER (WHERE floor_area > 100) AS large, "
        "count(*) FILTER (WHERE floor_area <= 100) AS small FROM shop GROUP BY 1",
    )
    assert result["query_result"]["labels"][1:] == [
        "number of shops (large)",
        "number of shops (small)",
    ]
    assert result["chart"]["others"] == ["small"]

    moving = _run(
        asking,
        "SELECT d, avg(n) OVER (ORDER BY d ROWS 6 PRECEDING) AS moving_average FROM "
        f"(SELECT revenue_date AS d, count(*) AS n FROM daily_revenue WHERE {WEEK} GROUP BY 1) s",
    )
    assert moving["query_result"]["labels"][1] == "moving average"


def test_weekends_and_compared_periods_are_named_for_readers(asking: Asking) -> None:
    days = _run(
        asking,
        "SELECT extract(isodow FROM revenue_date) > 5 AS is_weekend, sum(amount) AS r "
        f"FROM daily_revenue WHERE {WEEK} GROUP BY 1",
        "zh",
    )["query_result"]
    assert days["labels"][0] == "星期段"
    assert {"true": "周末", "false": "周一至周五"}.items() <= days["value_labels"][0].items()

    parts = f"FILTER (WHERE {TWO_DAYS}) AS r_first, sum(amount) FILTER (WHERE {WEEK}) AS r_second"
    change = _run(
        asking,
        "SELECT r_first, r_second, r_second - r_first AS r_change FROM "
        f"(SELECT sum(amount) {parts} FROM daily_revenue) AS figures",
        "zh",
    )["query_result"]
    first, second, changed = change["labels"]
    assert (first[-5:], second[-5:], changed[-2:]) == ("（第一期）", "（第二期）", "变化")


def test_the_first_of_years_is_no_figure() -> None:
    place = Table(
        "public", "place", "table", (Column("name", "text"), Column("built_year", "int4"))
    )
    sql = "SELECT name, min(built_year) AS first FROM place GROUP BY 1"
    result = QueryResult(("name", "first"), ("text", "int4"), (["a", 1990], ["b", 2004]))
    assert chart_of(result_columns(sql, result, Catalog((place,)), "en"), result, "en") is None


def test_places_and_years_are_no_figures() -> None:
    columns = ("id", "title", "lat", "lon", "release_year")
    place = Table("public", "place", "table", tuple(Column(name, "numeric") for name in columns))
    for names in (("title", "lat", "lon"), ("lat", "lon"), ("title", "release_year")):
        sql = f"SELECT {', '.join(names)} FROM place"
        rows = tuple(
            [f"t{at}" if name == "title" else at + 0.5 for name in names] for at in range(20)
        )
        types = tuple("text" if name == "title" else "numeric" for name in names)
        result = QueryResult(names, types, rows)
        described = result_columns(sql, result, Catalog((place,)), "en")
        assert chart_of(described, result, "en") is None, names


def test_titles_and_units_are_in_the_reader_s_language(asking: Asking) -> None:
    sql = (
        f"SELECT revenue_date, payment_type, sum(amount) AS r FROM daily_revenue WHERE {WEEK} "
        "GROUP BY 1, 2"
    )
    chinese, english = _run(asking, sql, "zh"), _run(asking, sql)
    assert "合计" in chinese["chart"]["title"]
    assert english["chart"]["title"].startswith("total ")
    assert (chinese["chart"]["unit"], chinese["query_result"]["units"]) == (
        "元",
        [None, None, "元"],
    )


def test_columns_are_named_for_readers(asking: Asking) -> None:
    sql = (
        "SELECT date_trunc('month', revenue_date) AS m, s.shop_name, a.service_area_name, "
        "count(*), avg(amount), "
        "max(revenue_date) FROM daily_revenue AS r JOIN shop AS s USING (shop_id) "
        "JOIN service_area AS a "
        f"USING (service_area_id) WHERE {DAY} GROUP BY 1, 2, 3 LIMIT 3"
    )
    result = _run(asking, sql, "zh")["query_result"]
    assert result["periods"] == ["month", None, None, None, None, None]
    assert [len(result[key]) for key in ("labels", "units", "periods", "columns")] == [6, 6, 6, 6]
    assert result["formats"] == [None, None, None, "number", "money", None]
    assert result["labels"][0] == "月份"
    assert result["labels"][3].endswith("数量")
    assert result["labels"][4].startswith("平均")
    assert result["labels"][5].startswith("最晚")
    assert not any(label.isascii() for label in result["labels"])
    keys = _run(asking, "SELECT shop_id, extract(year FROM updated_at) AS year FROM shop LIMIT 2")[
        "query_result"
    ]
    assert keys["formats"] == ["plain", "plain"]
    own = _run(asking, 'SELECT count(*) AS "number of open shops" FROM shop')["query_result"]
    assert own["labels"] == ["number of open shops"]


def test_a_figure_of_the_semantic_file_has_its_name_and_its_unit(demo_url: str) -> None:
    """Also where it is computed from several columns."""
    sql = (
        "SELECT payment_type, sum(amount) / nullif(sum(order_count), 0) AS average_order_value, "
        "round(100.0 * sum(amount) / nullif(sum(sum(amount)) OVER (), 0), 2) AS share "
        f"FROM daily_revenue WHERE {DAY} GROUP BY 1"
    )
    with Asking(Settings(database_url=demo_url, semantic_file=str(SEMANTIC_FILE))) as asking:
        chinese, english = (_run(asking, sql, lang) for lang in ("zh", "en"))
    assert english["query_result"]["labels"][1:] == ["average order value", "share"]
    assert english["query_result"]["units"] == [None, "yuan", "%"]
    assert chinese["query_result"]["units"] == [None, "元", "%"]
    assert chinese["query_result"]["labels"][1] != "average order value"
    assert (english["chart"]["type"], english["chart"]["y"]) == ("pie", "share")


# ------------------------------------------------------------------------------
# pictures

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed (requirements-charts.txt)"
)


def _pictured(kind: str, types: dict[str, str], rows: Sequence[list[Any]], **axes: Any) -> Any:
    """What is drawn of the rows, whose columns have these types; by default of `x` and `y`."""
    columns = tuple(types)
    sql = f"SELECT {', '.join(columns)} FROM t"
    result = QueryResult(columns, tuple(types.values()), tuple(rows), is_limited=False)
    chart = {"type": kind, "x": "x", "y": "y", "series": None, "title": "t", "unit": None, **axes}
    described = result_columns(sql, result, Catalog(()), "en")
    assert chart_png(chart, described, result, "en").startswith(b"\x89PNG")
    return figure_of(chart, described, result, "en").axes[0]


NAMED = {"x": "text", "y": "int8"}


@needs_matplotlib
def test_namesakes_several_figures_and_steps_are_drawn_apart() -> None:
    twins = _pictured("bar", NAMED, [["Ann", 1], ["Bob", 2], ["Ann", 3]])
    assert [tick.get_text() for tick in twins.get_xticklabels()] == ["Ann", "Bob", "Ann (2)"]
    two = _pictured("line", {**NAMED, "z": "int8"}, [["a", 1, 5], ["b", 2, 6]], others=["z"])
    assert [list(line.get_ydata()) for line in two.lines] == [[1, 2], [5, 6]]
    assert two.get_ylim()[0] == 0
    many = _pictured("bar", NAMED, [[f"branch {at}", at] for at in range(20)])
    assert [tick.get_text() for tick in many.get_yticklabels()] == [
        f"branch {at}" for at in range(20)
    ]
    steps = _pictured("bar", {"x": "int8", "y": "int8"}, [[11, 1], [19, 2], [31, 4]], step=10)
    assert [bar.get_height() for bar in steps.patches] == [3, 0, 4]
    assert steps.get_xticklabels()[0].get_text() == "10–20"


@needs_matplotlib
def test_values_that_begin_alike_are_drawn_apart() -> None:
    units = [f"International Business Unit {part}" for part in ("North", "South", "East")]
    bars = _pictured("bar", NAMED, [[unit, number] for number, unit in enumerate(units, 1)])
    assert [bar.get_width() for bar in bars.patches] == [1, 2, 3]
    assert [tick.get_text() for tick in bars.get_yticklabels()] == units
    lines = _pictured(
        "line",
        {**NAMED, "s": "text"},
        [[x, y, unit] for y, unit in enumerate(units) for x in "ab"],
        series="s",
    )
    assert [list(line.get_ydata()) for line in lines.lines] == [[0, 0], [1, 1], [2, 2]]


@needs_matplotlib
def test_columns_beside_the_chart_are_not_read() -> None:
    rows = [["a", 1, "-$1.00"], ["b", 2, "NaN"]]
    assert len(_pictured("bar", {**NAMED, "rent": "money"}, rows).patches) == 2
    assert len(_pictured("bar", {**NAMED, "rent": "money"}, rows, x="rent").patches) == 2


@needs_matplotlib
@pytest.mark.parametrize("kind", ["bar", "line"])
def test_the_legend_names_all_series(kind: str) -> None:
    rows = [
        [x, y, series]
        for y, series in enumerate(("_hidden", "$5 to $9", "long " * 9))
        for x in ("2025", "2026")
    ]
    legend = _pictured(kind, {**NAMED, "s": "text"}, rows, series="s").get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "_hidden",
        "$5 to $9",
        "long long long long …",
    ]


@needs_matplotlib
@pytest.mark.parametrize(
    ("figure", "written"),
    [
        (Decimal("12345678901.25"), "12,345,678,901.25"),
        (98765432109876543, "98,765,432,109,876,543"),
        (0.1 + 0.2, "about 0.3"),
    ],
)
def test_one_figure_is_written_as_in_the_sentence(figure: Any, written: str) -> None:
    (text,) = _pictured("number", {"y": "numeric"}, [[figure]]).texts
    assert text.get_text() == written


@needs_matplotlib
def test_an_axis_says_all_digits_of_large_figures() -> None:
    bars = _pictured("bar", NAMED, [["a", 12345678901], ["b", 12345678902]])
    assert bars.yaxis.get_major_formatter()(12345678901) == "12,345,678,901"


@needs_matplotlib
def test_a_pie_is_of_what_is_known() -> None:
    pie = _pictured(
        "pie",
        {"x": "text", "y": "numeric"},
        [["_a", Decimal("3e200")], ["b", None], ["c", 10**200]],
    )
    assert sorted(text.get_text() for text in pie.texts) == ["25.0%", "75.0%", "_a", "c"]
