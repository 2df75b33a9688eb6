"""Figures about an answer's rows, held against figures that Python works out by itself from the
same rows.
"""

import importlib.util
import json
import math
import random
import re
import statistics
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.analysis import forecasting
from agent.analysis.analysis_limits import MOST_FITTED
from agent.analysis.series_periods import ALIGNED, distance, later, period_name, period_start
from app_config import Settings
from common.values import PeriodUnit
from tests.support.asking import Asking
from tests.support.memory import peak_growth
from tests.support.openai_server import OpenAiServer, Reply

Post = Callable[..., dict[str, Any]]
HOSTILE = 'a"b; DROP TABLE x; --'
# Figures by day and shop over the last three whole years, with a hole, a negative figure and values
# that are none.
TABLES = f"""
CREATE TABLE shop (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE sale (id int PRIMARY KEY, shop_id int NOT NULL REFERENCES shop, day date NOT NULL,
    amount numeric(12,2),
                   unit_price numeric(8,2), size float8);
INSERT INTO shop SELECT n, 'Shop ' || n FROM generate_series(1, 12) AS n;
INSERT INTO sale SELECT n, 1 + n % 12, date '2023-01-01' + n % 1096,
    (n * 7919 % 1000) / 10.0 * (1 + (n % 12)),
                        10 + n % 7, CASE n % 50 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN 'Infinity'
                            WHEN 2 THEN NULL
                                                ELSE n % 97 END FROM generate_series(1, 9000) AS n;
UPDATE sale SET amount = NULL WHERE id % 100 = 3;
CREATE TABLE "{HOSTILE.replace('"', '""')}" ("x'); SELECT 1" text, "值" int);
INSERT INTO "{HOSTILE.replace('"', '""')}" VALUES (E'it''s \\\\ "odd"', 3), (NULL, 4), ('三', 5);
"""
HAS_STATSMODELS = importlib.util.find_spec("statsmodels") is not None


@pytest.fixture(scope="module")
def audit_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def asking(
    make_database: Callable[[str], str], model: OpenAiServer, audit_path: Path
) -> Iterator[Asking]:
    settings = Settings(
        database_url=make_database(TABLES), enable_result_summary=False, audit_log=str(audit_path)
    )
    with Asking(
        settings, model, max_rows=5
    ) as asking:  # so that most of the rows are not in the answer
        yield asking


def _run(asking: Asking, sql: str) -> str:
    body = {"question": "Some rows", "user_id": "ann", "routing_mode": "database_direct"}
    code, envelope = asking.sync(body, Reply(sql))
    assert code == 200, envelope
    return str(envelope["data"]["run_id"])


def _post(asking: Asking, run_id: str, **body: Any) -> tuple[int, dict[str, Any]]:
    with asking.client.post(
        f"/api/v0/runs/{run_id}/analyze", json={"user_id": "ann", **body}
    ) as response:
        return response.status_code, json.loads(response.get_data())


def _analyzed(asking: Asking, sql: str, **body: Any) -> dict[str, Any]:
    code, envelope = _post(asking, _run(asking, sql), **body)
    assert code == 200, envelope
    return dict(envelope["data"])


def _rows(asking: Asking, sql: str) -> list[list[Any]]:
    """All rows, by the export."""
    with asking.client.get(
        f"/api/v0/runs/{_run(asking, sql)}/export?format=json&user_id=ann"
    ) as response:
        return list(json.loads(response.get_data())["rows"])


def _found(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(finding for finding in data["findings"] if finding["kind"] == kind)


def _kinds(data: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in data["findings"]]


BY_SHOP = (
    "SELECT s.name, sum(x.amount) AS total FROM sale AS x JOIN shop AS s ON s.id = x.shop_id "
    "GROUP BY s.name "
    "ORDER BY total DESC"
)


def test_figures_are_those_of_all_rows(asking: Asking) -> None:
    sql = "SELECT id, shop_id, amount, size FROM sale"
    data = _analyzed(asking, sql, what=["describe"], lang="en")
    rows = _rows(asking, sql)
    amounts = [row[2] for row in rows if row[2] is not None]
    facts = _found(data, "describe")["figures"]
    quartiles = statistics.quantiles(amounts, n=4, method="inclusive")
    assert (facts["measure"], facts["rows"], facts["count"], facts["nulls"]) == (
        "amount",
        9000,
        8910,
        90,
    )
    assert [facts["q1"], facts["median"], facts["q3"]] == pytest.approx(quartiles)
    assert [facts["sum"], facts["mean"]] == pytest.approx([sum(amounts), statistics.fmean(amounts)])
    assert facts["standard_deviation"] == pytest.approx(statistics.stdev(amounts))
    assert [facts["min"], facts["max"]] == [min(amounts), max(amounts)]
    ordered = [facts[name] for name in ("min", "q1", "median", "q3", "max")]
    assert ordered == sorted(ordered)
    sizes = data["findings"][1]["figures"]
    assert (sizes["measure"], sizes["nulls"], sizes["not_finite"], sizes["count"]) == (
        "size",
        180,
        360,
        8460,
    )
    both = [
        (row[2], row[3]) for row in rows if row[2] is not None and isinstance(row[3], int | float)
    ]
    pearson = _found(data, "correlation")
    assert pearson["figures"]["n"] == len(both)
    assert pearson["figures"]["r"] == pytest.approx(
        statistics.correlation(*zip(*both, strict=True))
    )
    assert "does not say that one causes" in pearson["text"]
    assert "percentile_cont" in data["findings"][0]["method"]


def test_shares_pareto_and_concentration(asking: Asking) -> None:
    data = _analyzed(asking, BY_SHOP, what=["shares"], lang="en")
    totals = dict(_rows(asking, BY_SHOP))
    whole = sum(totals.values())
    shares = _found(data, "shares")["figures"]
    assert (shares["groups"], shares["total"]) == (12, pytest.approx(whole))
    assert [(one["name"], one["share"]) for one in shares["top"]] == [
        (name, pytest.approx(total / whole)) for name, total in list(totals.items())[:10]
    ]
    assert sum(one["share"] for one in shares["top"]) + shares["rest"] == pytest.approx(1)
    reached, enough = 0.0, 0
    for total in totals.values():
        if reached < 0.8 * whole:
            reached, enough = reached + total, enough + 1
    assert _found(data, "pareto")["figures"]["groups_for_80_percent"] == enough
    squares = sum((total / whole) ** 2 for total in totals.values())
    assert _found(data, "concentration")["figures"]["herfindahl"] == pytest.approx(squares)
    assert f"{max(totals.values()) / whole:.1%}" in _found(data, "shares")["text"]


def test_the_answer_s_own_limit_stays(asking: Asking) -> None:
    data = _analyzed(asking, BY_SHOP + " LIMIT 3;", what=["describe", "shares"])
    assert _found(data, "describe")["figures"]["rows"] == 3
    assert _found(data, "shares")["figures"]["groups"] == 3


MONTHLY = (
    "SELECT date_trunc('month', day)::date AS month, sum(amount) AS total FROM sale "
    "GROUP BY 1 ORDER BY 1"
)


def test_change_over_months(asking: Asking) -> None:
    data = _analyzed(asking, MONTHLY, what=["change"], lang="en")
    values = [(row[0][:7], row[1]) for row in _rows(asking, MONTHLY)]
    change, year = _found(data, "change")["figures"], _found(data, "year_before")["figures"]
    assert (change["period"], change["before"], change["unit"]) == ("2025-12", "2025-11", "month")
    assert change["change"] == pytest.approx(values[-1][1] - values[-2][1])
    assert change["change_percent"] == pytest.approx(100 * (values[-1][1] / values[-2][1] - 1))
    assert (year["before"], year["value_before"]) == ("2024-12", pytest.approx(values[-13][1]))
    extremes = _found(data, "extremes")["figures"]
    assert extremes["highest"]["period"] == max(values, key=lambda one: one[1])[0]
    assert extremes["lowest"]["period"] == min(values, key=lambda one: one[1])[0]
    assert extremes["periods"] == 36
    assert data["warnings"] == []


def test_days_are_added_up_and_what_moved_is_told_by_group(asking: Asking) -> None:
    sql = (
        "SELECT to_char(x.day, 'YYYY-MM') AS month, s.name, sum(x.amount) AS total FROM sale AS x "
        "JOIN shop AS s ON s.id = x.shop_id GROUP BY 1, 2"
    )
    data = _analyzed(asking, sql, what=["change"], lang="zh")
    assert _found(data, "change")["figures"]["value"] == pytest.approx(
        _rows(asking, MONTHLY)[-1][1]
    )
    moved = _found(data, "contributions")["figures"]
    by_group = {
        name: {month: total for month, other, total in _rows(asking, sql) if other == name}
        for name in {row[1] for row in _rows(asking, sql)}
    }
    for group in moved["groups"]:
        months = by_group[group["name"]]
        assert group["change"] == pytest.approx((months["2025-12"] or 0) - (months["2025-11"] or 0))
    sizes = [abs(group["change"]) for group in moved["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    assert "不说明原因" in _found(data, "contributions")["method"]


def test_an_unfinished_period_is_compared_with_nothing(asking: Asking) -> None:
    sql = (
        "SELECT date_trunc('month', now() - n * interval '1 month') AS month, 100.0 + n AS total "
        "FROM generate_series(0, 5) AS n"
    )
    data = _analyzed(asking, sql, what=["change"], lang="en")
    this = date.today().replace(day=1)
    last = (this - timedelta(days=1)).replace(day=1)
    assert _found(data, "unfinished")["figures"]["periods"] == [
        {"period": f"{this:%Y-%m}", "value": 100.0}
    ]
    change = _found(data, "change")["figures"]
    assert (change["period"], change["value"], change["change"]) == (f"{last:%Y-%m}", 101.0, -1.0)
    assert "rise" not in _kinds(data)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            [("2024-01", 1), ("2024-02", 2), ("2024-03", 4), ("2024-04", 3)],
            ("2024-01", "2024-03", 2, -1, -25.0),
        ),
        (
            [("2024-Q1", 0), ("2024-Q2", 5), ("2024-Q3", 6), ("2024-Q4", 7)],
            ("2024-Q1", "2024-Q4", 3, 1, 100 / 6),
        ),
        ([("2020", -5), ("2021", -4), ("2022", -3)], ("2020", "2022", 2, 1, None)),
        (
            [("20240227", 1), ("20240228", 2), ("20240229", 3), ("20240301", 0)],
            ("2024-02-27", "2024-02-29", 2, -3, -100),
        ),
    ],
)
def test_written_periods(
    asking: Asking, values: list[tuple[str, int]], expected: tuple[Any, ...]
) -> None:
    listed = ", ".join(f"('{text}', {value})" for text, value in reversed(values))
    data = _analyzed(
        asking, f"SELECT p, v * 1.0 AS v FROM (VALUES {listed}) AS t (p, v)", what=["change"]
    )
    rise, change = _found(data, "rise")["figures"], _found(data, "change")["figures"]
    told = (
        rise["from"]["period"],
        rise["to"]["period"],
        rise["rises"],
        change["change"],
        change["change_percent"],
    )
    assert told == (*expected[:4], pytest.approx(expected[4]))


def test_nothing_is_compared_across_a_hole(asking: Asking) -> None:
    days = (
        "(date '2024-05-01', 1.0), ('2024-05-02', 2.0), ('2024-05-06', 3.0), ('2024-05-07', 4.0), "
        "('2024-05-09', 1.0)"
    )
    sql = f"SELECT day, v FROM (VALUES {days}) AS t (day, v)"
    data = _analyzed(asking, sql, what=["change", "forecast"], lang="en")
    assert "change" not in _kinds(data)
    assert any(
        warning.endswith(": 4; nothing is compared across a gap.") for warning in data["warnings"]
    )


def test_one_period_is_no_plural(asking: Asking) -> None:
    days = "(date '2024-05-01', 1.0), ('2024-05-03', 2.0), ('2024-05-04', 3.0)"
    data = _analyzed(
        asking, f"SELECT day, v FROM (VALUES {days}) AS t (day, v)", what=["forecast"], lang="en"
    )
    alone = _analyzed(
        asking, "SELECT date '2024-05-01' AS day, 1.5 AS v", what=["forecast"], lang="en"
    )
    said = [*data["warnings"], *alone["warnings"]]
    assert len(said) >= 2
    assert not [text for text in said if re.search(r"\b1 periods|\b1 complete periods", text)]


def test_outliers_are_those_of_the_rule(asking: Asking) -> None:
    values = [10, 11, 12, 13, 14, 15, 16, 17, 18, 100, -90]
    sql = (
        "SELECT 'row ' || n AS name, v * 1.0 AS v "
        f"FROM unnest(ARRAY{values}) WITH ORDINALITY AS t (v, n)"
    )
    data = _analyzed(asking, sql, what=["outliers"], lang="en")
    outliers = _found(data, "outliers")
    q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
    assert outliers["figures"]["low_fence"] == pytest.approx(q1 - 1.5 * (q3 - q1))
    assert outliers["figures"]["high_fence"] == pytest.approx(q3 + 1.5 * (q3 - q1))
    assert outliers["figures"]["farthest"] == [
        {"value": -90, "row": ["row 11"]},
        {"value": 100, "row": ["row 10"]},
    ]
    assert "interquartile range (IQR) rule" in outliers["method"]
    assert "2 of the 11 figures" in outliers["text"]


@pytest.mark.parametrize(
    ("value", "expected"), [(22, []), (23.5, []), (23.6, [23.6]), (5, []), (4.5, []), (4.4, [4.4])]
)
def test_each_fence_is_counted_from_its_own_quartile(
    asking: Asking, value: float, expected: list[float]
) -> None:
    """With a greater value the quartiles of 10 to 18 are 12.25 and 16.75, with a smaller one 11.25
    and 15.75.
    """
    sql = f"SELECT v FROM unnest(ARRAY[10, 11, 12, 13, 14, 15, 16, 17, 18, {value}]) AS t (v)"
    figures = _found(_analyzed(asking, sql, what=["outliers"]), "outliers")["figures"]
    assert [one["value"] for one in figures["farthest"]] == expected


@pytest.mark.parametrize("extreme", ["1e160", "-1e299", "1e-160", "1e-299", "1e-400"])
def test_one_extreme_figure_spoils_nothing_but_what_it_is_too_great_for(
    asking: Asking, extreme: str
) -> None:
    values = (
        f"VALUES {', '.join(f'({n}.5, {n * n % 7}.5)' for n in range(1, 20))}, ({extreme}, 3.5)"
    )
    data = _analyzed(
        asking, f"SELECT a, b FROM ({values}) AS t (a, b)", what=["describe", "outliers"], lang="en"
    )
    kinds = _kinds(data)
    assert kinds.count("describe") == kinds.count("outliers") == 2
    assert ("correlation" in kinds) == (extreme not in ("1e160", "-1e299"))
    facts = _found(data, "describe")["figures"]
    assert facts["median"] == pytest.approx(10.0, abs=1)
    assert not facts["not_finite"]


def test_figures_that_are_all_tiny_are_described(asking: Asking) -> None:
    """Their squares are no numbers any more, so that they have no correlation."""
    values = ", ".join(f"({n}e-100, {n * n}e-100)" for n in range(1, 20))
    data = _analyzed(
        asking, f"SELECT a, b FROM (VALUES {values}) AS t (a, b)", what=["describe"], lang="en"
    )
    assert _kinds(data) == ["describe", "describe"]


def test_what_makes_no_sense_is_not_computed(asking: Asking) -> None:
    """Averages have no sum and no shares; negative figures and a total of zero make no whole."""
    data = _analyzed(
        asking,
        "SELECT shop_id, avg(amount) AS mean, count(DISTINCT day) AS days FROM sale GROUP BY 1",
        lang="en",
    )
    assert all(
        "sum" not in finding["figures"]
        for finding in data["findings"]
        if finding["kind"] == "describe"
    )
    assert "shares" not in _kinds(data)
    for values in ("('a', 5.0), ('b', -5.0)", "('a', 0.0), ('b', 0.0)"):
        sql = f"SELECT name, sum(v) AS v FROM (VALUES {values}) AS t (name, v) GROUP BY 1"
        data = _analyzed(asking, sql, what=["shares"], lang="en")
        assert data["findings"] == []
        assert "no shares of it" in data["warnings"][0]
    prices = _analyzed(
        asking, "SELECT name, unit_price FROM sale JOIN shop ON shop_id = shop.id", what=["shares"]
    )
    assert prices["findings"] == []


@pytest.mark.parametrize(
    "times",
    [
        "date '9999-12-31'",
        "date '0044-03-15 BC'",
        "timestamp 'infinity'",
        "'2024-13'",
        "date '1700-01-01'",
    ],
)
def test_times_that_make_no_series(asking: Asking, times: str) -> None:
    sql = (
        f"SELECT t, v FROM (VALUES ({times}, 1.0), ('2024-01-01', 2.0), ('2024-01-02', "
        "3.0)) AS x (t, v)"
    )
    data = _analyzed(asking, sql, what=["change", "forecast"], lang="en")
    assert data["findings"] == [] or "infinity" in times  # the others make one
    assert len(data["warnings"]) >= 1


@pytest.mark.parametrize(
    "sql", ["SELECT 1.5 AS v", "SELECT NULL::int AS v", "SELECT 1 AS v WHERE false"]
)
def test_one_row_or_none(asking: Asking, sql: str) -> None:
    data = _analyzed(asking, sql, lang="en")
    assert _kinds(data) == ["describe"]
    assert data["findings"][0]["text"]


def test_hostile_names_and_values(asking: Asking) -> None:
    table = '"' + HOSTILE.replace('"', '""') + '"'
    sql = (
        f'SELECT "x\'); SELECT 1", sum("值") AS "a b"" -- ", sum("值") AS "a b"" -- " FROM {table} '
        "GROUP BY 1 -- end"
    )
    data = _analyzed(asking, sql, lang="zh")
    names = {one["name"] for one in _found(data, "shares")["figures"]["top"]}
    assert names == {'it\'s \\ "odd"', "（空）", "三"}
    assert [column["name"] for column in data["columns"]][1:] == ['a b" -- '] * 2


def test_a_wrong_request_names_its_field(asking: Asking) -> None:
    run_id = _run(asking, MONTHLY)
    wrong: dict[str, list[Any]] = {
        "what": ["describe", [], ["sums"], [1], {}],
        "measure": ["month", "nothing", "", 5],
        "by": ["total", "nothing", []],
        "horizon": [0, 37, 1.5, "3", True],
        "lang": ["fr"],
        "conversation_id": ["a b"],
    }
    for field, values in wrong.items():
        for value in values:
            code, envelope = _post(asking, run_id, **{field: value})
            assert (code, envelope["data"].get("field")) == (400, field), value
    with asking.client.post(f"/api/v0/runs/{run_id}/analyze", json=["change"]) as response:
        assert response.status_code == 400
        assert '{"what": ["describe", "change"]}' in response.get_data(as_text=True).replace(
            "\\", ""
        )
    unknown = _post(asking, run_id, what=["describe"], mesure="total", lang="en")[1]["data"]
    assert "mesure" in unknown["warnings"][0]
    assert _post(asking, run_id, user_id="bob")[0] == 404
    assert _post(asking, "run_0123456789abcdef01234567")[0] == 404
    hello = {"question": "Hello", "user_id": "ann", "routing_mode": "chat_direct"}
    assert _post(asking, asking.sync(hello, Reply("Hi"))[1]["data"]["run_id"])[0] == 404


def test_statements_are_audited_as_the_caller_s(asking: Asking, audit_path: Path) -> None:
    run_id = _run(asking, MONTHLY)
    data = _post(asking, run_id, what=["describe"])[1]["data"]
    lines = [
        line
        for line in map(json.loads, audit_path.read_text().splitlines())
        if line["run_id"] == run_id
    ]
    analyzed = [line for line in lines if line["source"] == "analyze"]
    assert {line["user_id"] for line in analyzed} == {"ann"}
    assert [line["sql"] for line in analyzed] == [MONTHLY, data["findings"][0]["sql"]]


@pytest.mark.slow
def test_many_rows_take_no_memory(asking: Asking) -> None:
    sql = (
        "SELECT 'name ' || x AS name, sum(x * 1.0) AS v FROM generate_series(1, 200000) "
        "AS x GROUP BY 1"
    )
    run_id = _run(asking, sql)
    with peak_growth() as growth:
        data = _post(asking, run_id)[1]["data"]
    assert _found(data, "describe")["figures"]["sum"] == 200_000 * 200_001 / 2
    assert _found(data, "shares")["figures"]["groups"] == 200_000
    assert growth.megabytes < 30


@given(
    st.datetimes(min_value=datetime(600, 1, 1), max_value=datetime(9000, 1, 1)),
    st.sampled_from(ALIGNED),
    st.integers(-500, 500),
)
def test_periods_are_counted_as_they_follow_each_other(
    when: datetime, unit: PeriodUnit, count: int
) -> None:
    day = when.replace(hour=0, minute=0, second=0, microsecond=0)
    months = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}
    start = (
        day.replace(day=1, month=months.get(unit, day.month))
        if unit in ("year", "quarter", "month")
        else day
    )
    other = later(start, unit, count)
    assert distance(start, other, unit) == count
    assert later(other, unit, -count) == start
    assert period_start(period_name(start, unit), unit) == start


# ------------------------------------------------------------------------------
# forecasts


def _monthly(values: list[float]) -> str:
    listed = ", ".join(f"({number}, {value!r})" for number, value in enumerate(values))
    return (
        "SELECT (date '2020-01-01' + n * interval '1 month')::date AS month, v::numeric AS v "
        f"FROM (VALUES {listed}) AS t (n, v)"
    )


def test_without_statsmodels_it_is_said(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "is_installed", lambda: False)
    data = _analyzed(
        asking, _monthly([float(n) for n in range(24)]), what=["describe", "forecast"], lang="en"
    )
    assert "forecast" not in data
    assert data["warnings"] == [forecasting._ABSENT.en]
    assert _kinds(data) == ["describe"]


needs_statsmodels = pytest.mark.skipif(
    not HAS_STATSMODELS, reason="requirements-analysis.txt is not installed"
)


@needs_statsmodels
def test_a_forecast_has_intervals_and_its_error(asking: Asking) -> None:
    chance = random.Random(7)
    truth = [1000 + 5 * n + 200 * math.sin(n * math.pi / 6) for n in range(51)]
    values = [round(value + chance.gauss(0, 10), 2) for value in truth[:48]]
    data = _analyzed(asking, _monthly(values), what=["forecast"], horizon=3, lang="en")
    assert "forecast" in data, data["warnings"]
    forecast = data["forecast"]
    assert [point["period"] for point in forecast["points"]] == ["2024-01", "2024-02", "2024-03"]
    for point, expected in zip(forecast["points"], truth[48:], strict=True):
        assert (
            point["low_95"] < point["low_80"] < point["value"] < point["high_80"] < point["high_95"]
        )
        assert point["low_95"] < expected < point["high_95"]
    assert forecast["backtest"]["mae"] < forecast["backtest"]["naive_mae"]
    assert 0 < forecast["backtest"]["mape"] < forecast["backtest"]["naive_mape"]
    assert "season of 12" in forecast["model"]
    assert "statsmodels" in _found(data, "forecast")["method"]


@needs_statsmodels
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0] * 7, "at least 8"),
        ([3.0] * 20, "nothing to forecast"),
        ([0.0] * 6 + [1e9] + [0.0] * 10, "greater than that of the naive forecast"),
    ],
)
def test_a_forecast_that_is_worth_nothing_is_refused(
    asking: Asking, values: list[float], said: str
) -> None:
    data = _analyzed(asking, _monthly(values), what=["forecast"], lang="en")
    assert "forecast" not in data
    assert said in data["warnings"][0]


@needs_statsmodels
@pytest.mark.parametrize(
    ("lang", "said"), [("en", "below zero were cut to zero"), ("zh", "低于零的数值已改为零")]
)
@pytest.mark.parametrize(("first", "is_clipped"), [(29.0, True), (1000.0, False)])
def test_a_forecast_says_that_it_was_cut_at_zero(
    asking: Asking, lang: str, said: str, first: float, *, is_clipped: bool
) -> None:
    data = _analyzed(asking, _monthly([first - n for n in range(30)]), what=["forecast"], lang=lang)
    assert data["forecast"]["is_clipped_at_zero"] == is_clipped
    assert (said in _found(data, "forecast")["text"]) == is_clipped


@needs_statsmodels
def test_only_the_periods_that_are_fitted_have_to_vary() -> None:
    with pytest.raises(forecasting.CannotForecast, match="nothing to forecast"):
        forecasting.forecast([5.0] + [0.0] * MOST_FITTED, 1, 3, limit_s=1)


@needs_statsmodels
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([100.0 + n % 12 * 7 for n in range(48)], [100, 107, 114]),
        ([0.0, 0.3, 0.7, 0.0, 0.9, 0.1, 0.5, 0.5, 0.2, 0.8, 0.4, 0.6] * 4, [0, 0.3, 0.7]),
        ([100.0 * (1 + n // 12) for n in range(48)], [500, 500, 500]),  # a step a year
    ],
)
def test_a_series_that_repeats_itself_exactly_is_forecast(
    asking: Asking, values: list[float], expected: list[float]
) -> None:
    data = _analyzed(asking, _monthly(values), what=["forecast"], horizon=3, lang="en")
    assert "forecast" in data, data["warnings"]
    assert [point["value"] for point in data["forecast"]["points"]] == pytest.approx(
        expected, rel=0.01
    )
    assert not re.search(r"e-\d|0\.0000", _found(data, "forecast")["text"])


@needs_statsmodels
def test_the_back_test_s_error_is_that_of_forecasts_made_before(asking: Asking) -> None:
    """The naive part is worked out here anew; the horizon is cut to what the series can bear."""
    values = [100.0 + 10 * n + (n % 3) for n in range(12)]
    data = _analyzed(asking, _monthly(values), what=["forecast"], horizon=36, lang="en")
    assert "forecast" in data, data["warnings"]
    test = data["forecast"]["backtest"]
    assert len(data["forecast"]["points"]) == 6
    assert any("cut to 6" in warning for warning in data["warnings"])
    origins = range(5, 12)
    errors = [
        abs(values[known - 1] - true) for known in origins for true in values[known : known + 6]
    ]
    assert (test["origins"], test["forecasts"]) == (7, len(errors))
    assert test["naive_mae"] == pytest.approx(statistics.fmean(errors))


# -------------------------------------------------------------------------------- a question about
# the last result

MONTHLY = (
    "SELECT date_trunc('month', day)::date AS month, sum(amount) AS amount FROM sale "
    "GROUP BY 1 ORDER BY 1"
)
ABOUT = (
    '{"type": "CHAT", "confidence": 0.9, "reason": "about the result", "analysis": ["change", '
    '"nonsense"]}'
)


def _ask_about(asking: Asking, question: str, *replies: Reply) -> dict[str, Any]:
    first = {"question": "Some rows", "user_id": "ann", "routing_mode": "database_direct"}
    _, before = asking.sync(first, Reply(MONTHLY))
    place = {"conversation_id": before["data"]["conversation_id"], "user_id": "ann", "lang": "en"}
    code, envelope = asking.sync({"question": question, **place}, *replies)
    assert code == 200, envelope
    data: dict[str, Any] = envelope["data"]
    return data


def test_why_is_answered_by_what_can_be_computed_of_all_rows(
    asking: Asking, model: OpenAiServer
) -> None:
    model.default = lambda _: Reply(status=500)
    data = _ask_about(asking, "why is it so high?")
    kinds = {finding["kind"] for finding in data["findings"]}
    assert "change" in kinds
    assert all(finding["method"] for finding in data["findings"])
    assert data["response_type"] == "CHAT"
    assert "don't tell why" in data["response"]
    assert data["findings"][0]["text"] in data["response"]


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        (
            "what is the trend?",
            {"unfinished", "change", "year_before", "extremes", "rise", "outliers"},
        ),
        ("compare it with last month", {"unfinished", "change", "year_before", "extremes", "rise"}),
        ("和上个月比呢", {"unfinished", "change", "year_before", "extremes", "rise"}),
        ("趋势怎么样", {"unfinished", "change", "year_before", "extremes", "rise", "outliers"}),
    ],
)
def test_the_course_of_a_shown_series_is_computed(
    asking: Asking, model: OpenAiServer, question: str, kinds: set[str]
) -> None:
    """By rules, whoever wrote the SQL; a model is not asked what the question is about."""
    model.default = lambda _: Reply(status=500)
    data = _ask_about(asking, question)
    found = {finding["kind"] for finding in data["findings"]}
    assert "change" in found
    assert found <= kinds
    assert data["classification_info"]["method"] == "rule_based_chat"
    assert all(finding["text"] in data["response"] for finding in data["findings"])


def test_a_method_is_said_once_for_the_findings_it_gave(
    asking: Asking, model: OpenAiServer
) -> None:
    model.default = lambda _: Reply(status=500)
    data = _ask_about(asking, "how did it change?")
    methods = [finding["method"] for finding in data["findings"]]
    told = [
        method
        for method, following in zip(methods, [*methods[1:], None], strict=True)
        if method != following
    ]
    assert len(methods) > len(told)
    assert [data["response"].count(f"Method: {method}.") for method in dict.fromkeys(told)] == [
        told.count(method) for method in dict.fromkeys(told)
    ]


def test_what_is_no_series_has_no_course(asking: Asking, model: OpenAiServer) -> None:
    """What is asked then is asked of the data, or of nothing."""
    model.default = lambda _: Reply(status=500)
    first = {"question": "Some rows", "user_id": "ann", "routing_mode": "database_direct"}
    _, before = asking.sync(
        first, Reply("SELECT shop_id, sum(amount) AS amount FROM sale GROUP BY 1")
    )
    assert before["data"]["query_result"]["row_count"] > 2
    place = {"conversation_id": before["data"]["conversation_id"], "user_id": "ann", "lang": "en"}
    data = asking.sync({"question": "what is the trend?", **place})[1]["data"]
    assert "findings" not in data
    assert data["type"] == "error" or data["classification_info"]["method"] != "rule_based_chat"


def test_what_can_not_be_forecast_is_said(asking: Asking, model: OpenAiServer) -> None:
    model.default = lambda _: Reply(status=500)
    first = {"question": "Some rows", "user_id": "ann", "routing_mode": "database_direct"}
    _, before = asking.sync(first, Reply(f"{MONTHLY} LIMIT 2"))
    place = {"conversation_id": before["data"]["conversation_id"], "user_id": "ann", "lang": "en"}
    data = asking.sync({"question": "what is the outlook?", **place})[1]["data"]
    assert "No forecast could be computed" in data["response"]
    assert data["warnings"][0]


def test_a_model_says_what_to_compute_and_puts_it_into_words(
    asking: Asking, model: OpenAiServer
) -> None:
    data = _ask_about(
        asking, "how does this develop, in your view?", Reply(ABOUT), Reply("It rises.")
    )
    chat = json.dumps(model.requests[-1].messages)
    assert {finding["kind"] for finding in data["findings"]} <= {
        "change",
        "year_before",
        "extremes",
        "rise",
        "unfinished",
    }
    assert "Computed from all rows of the last result" in chat
    assert data["response"] == "It rises."
    assert data["warnings"] == []


def test_figures_of_the_analysis_are_known_and_others_are_doubted(asking: Asking) -> None:
    view = "how does this develop, in your view?"
    told = _ask_about(asking, view, Reply(ABOUT), Reply("It rises."))["findings"][0]["text"]
    known = _ask_about(asking, view, Reply(ABOUT), Reply(told))
    made_up = _ask_about(asking, view, Reply(ABOUT), Reply("It rose by 98765.4 in all."))
    assert known["warnings"] == []
    assert "98765.4" in made_up["warnings"][0]
