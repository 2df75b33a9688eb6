"""A merge computes its last periods again, and gives what computing all anew gives."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from etl.meaning.bound import BoundIntent, Watermark
from etl.meaning.interpreter import evaluate
from etl.planning.drafting import make_draft
from etl.rendering.artefact import make_artefact
from etl.schemas.requirement import AnalysisResult
from tests.support.artefact_files import dbt_path, run_dbt, write_artefact
from tests.support.bound_intents import column, group, intent, join, key, measure
from tests.support.databases import as_admin
from tests.support.shop_rows import counted, shop_ddl

DBT = dbt_path()
pytestmark = pytest.mark.skipif(DBT is None, reason="no dbt: `make etl` installs it")
_ROWS = """
INSERT INTO users VALUES (1, 'Ulm'), (2, 'Bonn'), (3, NULL);
INSERT INTO orders (id, user_id, amount, ordered_on) VALUES
    (1, 1, 1, '2024-01-05'), (2, 2, 2, '2024-02-01'), (3, 1, 4, '2024-02-29'),
    (4, 2, 8, '2024-03-01'), (5, 3, 16, '2024-03-02'), (6, 3, 32, NULL), (7, 1, 64, NULL);
"""
# A late row, a group and a period that vanish, ones that come, the rows without a period; the row
# of January lies before the lookback.
_CHANGES = """
INSERT INTO orders (id, user_id, amount, ordered_on) VALUES
    (8, 1, 128, '2024-02-29'), (9, 3, 256, '2024-04-01'), (10, 2, 512, '2024-02-03');
UPDATE orders SET user_id = 2 WHERE id IN (3, 8);
DELETE FROM orders WHERE id IN (4, 5, 7);
"""


def _merge() -> BoundIntent:
    bound = intent(
        join("users", ("orders.user_id", "users.id")),
        group(
            [key("orders.ordered_on", "month", "month"), key("users.city", "city")],
            measure("sum", "orders", "orders.amount", "total"),
            measure("count", "orders", name="orders"),
        ),
        sources=("orders", "users"),
        columns=("month", "city", "total", "orders"),
    )
    target = replace(
        bound.target,
        relation="月度销售",
        mode="merge",
        materialization="incremental",
        watermark=Watermark(column("orders.ordered_on"), 3),
        has_surrogate_key=True,
    )
    return replace(bound, target=target)


def test_late_rows_give_what_a_full_refresh_gives(
    make_database: Callable[[str], str], admin_url: str, tmp_path: Path
) -> None:
    url = as_admin(make_database(shop_ddl() + _ROWS), admin_url)
    bound = _merge()
    artefact = make_artefact(make_draft(bound), bound, AnalysisResult(), (), None, "en")
    write_artefact(artefact, tmp_path)
    with psycopg.connect(url, autocommit=True) as connection:
        for changes in ("SELECT", _CHANGES):
            connection.execute(changes)
            done = run_dbt(str(DBT), tmp_path, url, "merged", "build")
            assert done.returncode == 0, done.stdout
            rows = connection.execute('SELECT month, city, total, orders FROM merged."月度销售"')
            assert counted(rows.fetchall()) == counted(_meant(connection, bound))
        keys = connection.execute('SELECT DISTINCT etl_key, etl_period FROM merged."月度销售"')
        assert {period for _, period in keys} == {"2024-01-01", "2024-02-01", "2024-04-01", "none"}


def _meant(connection: psycopg.Connection[Any], bound: BoundIntent) -> list[tuple[Any, ...]]:
    tables = {}
    for source in bound.sources:
        with connection.cursor(row_factory=dict_row) as cursor:
            tables[source.name] = cursor.execute(f"SELECT * FROM {source.name}").fetchall()
    return evaluate(bound, tables).rows
