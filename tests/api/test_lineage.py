"""`/api/v0/etl/lineage` and `/api/v0/etl/impact`: views over views, as far as callers may see."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app_config import Settings
from tests.support.asking import Asking

DDL = """
CREATE TABLE sale (sale_id int PRIMARY KEY, paid_on date, amount numeric, secret text);
CREATE TABLE line (line_id int PRIMARY KEY, sale_id int REFERENCES sale, "Unit Price" numeric);
CREATE TABLE hidden (hidden_id int PRIMARY KEY, amount numeric);
CREATE VIEW daily AS
    SELECT paid_on AS day, sum(amount) AS total, count(*) AS sales FROM sale GROUP BY paid_on;
CREATE VIEW monthly AS
    SELECT date_trunc('month', d.day) AS month, sum(d.total) AS total FROM daily d GROUP BY 1;
CREATE VIEW lines AS SELECT l.*, s.paid_on FROM line l JOIN sale s USING (sale_id);
CREATE VIEW counted AS SELECT count(*) AS n FROM line, LATERAL (SELECT 1 FROM sale LIMIT 1) x;
CREATE MATERIALIZED VIEW both_amounts AS
    SELECT s.amount + h.amount AS amount FROM sale s JOIN hidden h ON h.hidden_id = s.sale_id;
CREATE VIEW "Odd""];--Name" AS SELECT amount FROM sale;
"""


@pytest.fixture(scope="module")
def asking(make_database: Callable[[str], str]) -> Iterator[Asking]:
    denied = "public.hidden,public.sale.secret"
    with Asking(Settings(database_url=make_database(DDL), denied_objects=denied)) as asking:
        yield asking


def _get(asking: Asking, what: str, status: int = 200, /, **query: Any) -> dict[str, Any]:
    response = asking.client.get(f"/api/v0/etl/{what}", query_string=query)
    assert response.json is not None
    assert response.status_code == response.json["code"] == status, response.json
    data: dict[str, Any] = response.json["data"]
    return data


def _pairs(data: dict[str, Any]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    found = {}
    for edge in data["edges"]:
        pairs = list(zip(edge["source_columns"], edge["target_columns"], strict=False))
        place = (edge["source"].split(".")[1], edge["target"].split(".")[1])
        found[place] = pairs
    return found


def test_columns_are_followed_through_views(asking: Asking) -> None:
    data = _get(asking, "lineage", table="monthly", direction="upstream")
    assert data["nodes"] == ["public.monthly", "public.daily", "public.sale"]
    assert _pairs(data) == {
        ("daily", "monthly"): [("day", "month"), ("total", "total")],
        ("sale", "daily"): [("paid_on", "day"), ("amount", "total")],
    }
    whole = _get(asking, "lineage", table="sale", direction="downstream")
    assert {"public.counted", "public.lines", "public.monthly"} < set(whole["nodes"])
    by_column = _get(asking, "lineage", table="sale", column="paid_on", direction="downstream")
    assert set(by_column["nodes"]) >= {"public.sale", "public.daily", "public.monthly"}
    assert 'public.Odd"];--Name' not in by_column["nodes"]
    nearest = _get(asking, "lineage", table="sale", direction="downstream", depth=1)
    assert "public.monthly" not in nearest["nodes"]


def test_what_is_closed_is_in_no_lineage(asking: Asking) -> None:
    for query in ({"table": "sale"}, {"table": "sale", "column": "amount"}):
        for what in ("lineage", "impact"):
            shown = str(_get(asking, what, **query))
            assert "hidden" not in shown
            assert "both_amounts" not in shown
    assert "secret" not in str(_get(asking, "lineage", table="sale"))
    for table in ("hidden", "both_amounts"):
        assert _get(asking, "lineage", 404, table=table)["error_type"] == "not_found"
    assert _get(asking, "impact", 404, table="sale", column="secret")["error_type"] == "not_found"


def test_impact_names_what_breaks(asking: Asking) -> None:
    data = _get(asking, "impact", table="sale", column="amount", lang="en")
    views = {dependent["name"] for dependent in data["dependents"] if dependent["kind"] == "view"}
    assert {"public.daily", "public.monthly"} <= views
    assert "public.lines" not in views
    keys = _get(asking, "impact", table="sale", column="sale_id")["dependents"]
    assert ("foreign_key", "public.line (sale_id)") in {(key["kind"], key["name"]) for key in keys}
    assert _get(asking, "impact", table="monthly")["dependents"] == []


def test_lineage_as_text_breaks_no_syntax(asking: Asking) -> None:
    query = {"table": "sale", "direction": "downstream"}
    client = asking.client
    mermaid = client.get("/api/v0/etl/lineage", query_string={**query, "format": "mermaid"})
    assert mermaid.mimetype == "text/plain"
    assert 'public.Odd#34;#93;#59;--Name"]' in mermaid.text
    cypher = client.get("/api/v0/etl/lineage", query_string={**query, "format": "cypher"})
    assert "MERGE (:Table {name: 'public.Odd\"];--Name'});" in cypher.text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "table"),
        ({"table": "sale", "depth": "11"}, "depth"),
        ({"table": "sale", "direction": "up"}, "direction"),
    ],
)
def test_wrong_queries_name_the_field(asking: Asking, query: dict[str, str], field: str) -> None:
    assert _get(asking, "lineage", 400, **query)["field"] == field
