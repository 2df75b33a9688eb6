"""The models of a draft give the rows that its intent means."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from hypothesis import given

from common.errors import StatementRejected
from etl.meaning.bound import BoundIntent
from etl.meaning.interpreter import evaluate
from etl.planning.draft_model import Draft
from etl.planning.drafting import make_draft
from etl.planning.plan_review import review
from etl.planning.user_sql import with_user_sql
from etl.rendering.layout import Layout
from etl.rendering.plain_sql import model_statement, source_view
from postgres.identifiers import quoted
from tests.support.bound_intents import intent
from tests.support.databases import as_admin
from tests.support.drawn_intents import drawn_intents
from tests.support.shop_rows import Rows, counted, fill_shop, shop_ddl, shop_rows


@pytest.fixture(scope="module")
def connection(
    make_database: Callable[[str], str], admin_url: str
) -> Iterator[psycopg.Connection[Any]]:
    url = make_database(shop_ddl())
    with psycopg.connect(as_admin(url, admin_url), autocommit=True) as opened:
        opened.execute("SET TIME ZONE 'Asia/Shanghai'")
        yield opened


@given(drawn_intents(), shop_rows())
def test_a_draft_gives_the_rows_that_the_intent_means(
    connection: psycopg.Connection[Any], bound: BoundIntent, tables: Rows
) -> None:
    stored = fill_shop(connection, tables)
    draft = make_draft(bound)
    with _built(connection, draft):
        for model in draft.models:
            meant = bound if model is draft.target else model.meaning
            assert meant is not None
            if not meant.target.columns:
                continue
            columns = ", ".join(quoted(name) for name in meant.target.columns)
            relation = quoted(model.relation)
            built = connection.execute(f"SELECT {columns} FROM {relation}").fetchall()
            sources = {source.name: stored[source.table.name] for source in meant.sources}
            assert counted(built) == counted(evaluate(meant, sources).rows), model.name


@contextmanager
def _built(connection: psycopg.Connection[Any], draft: Draft) -> Iterator[None]:
    """The relations of the models, until they are forgotten."""
    layout = Layout(draft)
    script = [source_view(source) for source in layout.sources]
    script.extend(model_statement(model, layout) for model in draft.models)
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE SCHEMA built; SET LOCAL search_path TO built")
        connection.execute("".join(script))
        yield


@given(drawn_intents())
def test_a_draft_passes_its_review(bound: BoundIntent) -> None:
    reviewed = review(make_draft(bound), bound)
    assert [issue.message for issue in reviewed.issues if issue.severity == "error"] == []
    assert reviewed.verdict == "pass"


STATUSES = intent(sources=("orders",), columns=("status",), outputs=[("status", "orders.status")])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_read_file('/etc/passwd') AS status FROM ods_orders",
        "SELECT lo_create(0)::text AS status FROM ods_orders",
        "SELECT status FROM ods_orders, pg_sleep(60)",
        "SELECT query_to_xml('SELECT 1', true, true, '')::text AS status FROM ods_orders",
        "SELECT set_config('role', 'none', false) AS status FROM ods_orders",
        "SELECT public.anything() AS status FROM ods_orders",
        "SELECT status FROM ods_orders FOR UPDATE",
        "SELECT status INTO kept FROM ods_orders",
        "SELECT status FROM ods_orders; DROP SCHEMA public",
        "WITH gone AS (DELETE FROM ods_orders RETURNING status) SELECT status FROM gone",
        "SELECT '{{ 1 }}' AS status FROM ods_orders",
        "SELECT status FROM pg_authid",
    ],
)
def test_sql_of_users_may_only_read_its_inputs(sql: str) -> None:
    draft = make_draft(STATUSES)
    with pytest.raises(StatementRejected):
        with_user_sql(draft, {draft.target.name: sql})


def test_sql_of_users_replaces_a_models() -> None:
    draft = make_draft(STATUSES)
    sql = "SELECT upper(status) AS status FROM ods_orders WHERE length(status) > 1"
    changed = with_user_sql(draft, {draft.target.name: sql})
    assert changed.target.select.sql("postgres") == sql.replace("upper", "UPPER").replace(
        "length", "LENGTH"
    )
