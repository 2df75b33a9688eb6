"""An artefact, taken elsewhere, builds the rows that its intent means, by psql and by dbt."""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.rows import dict_row

from common.text import Text
from common.values import Column
from etl.meaning.bound import BoundIntent
from etl.meaning.interpreter import evaluate
from etl.planning.draft_test import DraftTest, TypedRows, UnitCase
from etl.planning.drafting import make_draft
from etl.planning.plan_review import review
from etl.planning.sql_trees import column, selection, table
from etl.rendering.artefact import Artefact, make_artefact, zip_bytes
from etl.schemas.requirement import AnalysisResult
from postgres.identifiers import quoted
from sqltree.parsing import parse
from tests.support.artefact_files import dbt_path, psql_path, run_dbt, run_psql, write_artefact
from tests.support.bound_intents import group, intent, join, key, measure
from tests.support.databases import as_admin
from tests.support.odd_intents import VALUES, odd_ddl, odd_intent
from tests.support.shop_rows import counted

_PARENT = ("ods_source", "id")
_ODD_PARENT = ("dwd_o", "a b")
PSQL, DBT = psql_path(), dbt_path()
needs_psql = pytest.mark.skipif(PSQL is None, reason="no psql is installed")
needs_dbt = pytest.mark.skipif(DBT is None, reason="no dbt: `make etl` installs it")


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    """A database with tables whose names need care, for somebody who may make schemas."""
    return as_admin(make_database(odd_ddl()), admin_url)


@pytest.fixture(scope="module")
def connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as opened:
        yield opened


def _artefact(bound: BoundIntent) -> Artefact:
    return make_artefact(make_draft(bound), bound, AnalysisResult(), (), None, "zh")


def _meant(connection: psycopg.Connection[Any], bound: BoundIntent) -> Counter[str]:
    tables = {}
    for source in bound.sources:
        named = f"{quoted(source.table.schema)}.{quoted(source.table.name)}"
        with connection.cursor(row_factory=dict_row) as cursor:
            tables[source.name] = cursor.execute(f"SELECT * FROM {named}").fetchall()
    return counted(evaluate(bound, tables).rows)


def _built(connection: psycopg.Connection[Any], bound: BoundIntent, schema: str) -> Counter[str]:
    columns = ", ".join(quoted(name) for name in bound.target.columns)
    relation = f"{schema}.{quoted(bound.target.relation)}"
    return counted(connection.execute(f"SELECT {columns} FROM {relation}").fetchall())


def test_sources_that_say_when_their_rows_were_loaded_are_checked_for_freshness() -> None:
    bound = odd_intent()
    loaded = Column("Updated At", "timestamp with time zone", nullable=False)
    first, *others = bound.sources
    table = replace(first.table, columns=(*first.table.columns, loaded))
    bound = replace(bound, sources=(replace(first, table=table), *others))
    files = {file.path: file.text for file in _artefact(bound).files}
    sources = yaml.safe_load(files["models/sources.yml"])["sources"]
    configs = [one.get("config") for source in sources for one in source["tables"]]
    (known,) = [config for config in configs if config is not None]
    assert known["loaded_at_field"] == '"Updated At"'
    assert list(known["freshness"]) == ["warn_after"]


@needs_psql
def test_psql_builds_the_rows_twice(
    connection: psycopg.Connection[Any], url: str, tmp_path: Path
) -> None:
    bound = odd_intent()
    write_artefact(_artefact(bound), tmp_path)
    connection.execute("CREATE SCHEMA by_psql")
    for _ in range(2):
        done = run_psql(str(PSQL), url, "by_psql", tmp_path / "sql" / "build.sql")
        assert done.returncode == 0, done.stderr
        assert _built(connection, bound, "by_psql") == _meant(connection, bound)


@needs_dbt
def test_dbt_builds_the_rows_twice(
    connection: psycopg.Connection[Any], url: str, tmp_path: Path
) -> None:
    bound = odd_intent()
    write_artefact(_artefact(bound), tmp_path)
    for _ in range(2):
        done = run_dbt(str(DBT), tmp_path, url, "by_dbt", "build")
        assert done.returncode == 0, done.stdout
        assert _built(connection, bound, "by_dbt") == _meant(connection, bound)


def test_names_and_values_that_need_care_pass_the_review() -> None:
    bound = odd_intent()
    issues = review(make_draft(bound), bound, "zh").issues
    assert [issue.code for issue in issues] == []


_CALL = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#", re.DOTALL)
_ALLOWED = re.compile(
    r"""\{\{\ (config\(.*\)
    |ref\('[a-z0-9_]+'\)
    |source\('[a-z0-9_]+',\ '[a-z0-9_]+'\)
    |var\('[a-z0-9_]+',\ '[^'{]*'\)
    |this)\ \}\}
    |\{%\ (if\ is_incremental\(\)|endif)\ %\}""",
    re.VERBOSE | re.DOTALL,
)


def test_files_hold_no_template_but_the_renderers_own() -> None:
    artefact = _artefact(odd_intent())
    for file in artefact.files:
        if file.path.endswith(".sql") and file.path.startswith(("models/", "tests/")):
            calls = _CALL.findall(file.text)
            assert calls and [call for call in calls if not _ALLOWED.fullmatch(call)] == []
        elif file.path.endswith(".sql"):
            assert _CALL.findall(file.text) == [], file.path
        elif file.path.endswith(".yml"):
            assert isinstance(yaml.safe_load(file.text), dict)
        elif file.path.endswith(".json"):
            json.loads(file.text)


def test_an_archive_is_the_same_every_time_and_stays_in_its_folder() -> None:
    archives = [zip_bytes(_artefact(odd_intent())) for _ in range(2)]
    assert archives[0] == archives[1]
    names = zipfile.ZipFile(io.BytesIO(archives[0])).namelist()
    assert names == sorted(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+([./][A-Za-z0-9_]+)*", name) for name in names)
    assert {"README.md", "dbt_project.yml", "profiles.yml", "sql/build.sql"} <= set(names)


def test_a_readme_shows_texts_as_they_are() -> None:
    (readme,) = [file.text for file in _artefact(odd_intent()).files if file.path == "README.md"]
    assert "<script>" not in readme and "](b)" not in readme
    assert "销售汇总" in readme


def test_lineage_leads_from_each_column_to_the_sources() -> None:
    bound = intent(
        join("users", ("orders.user_id", "users.id")),
        group([key("users.city", "city")], measure("sum", "orders", "orders.amount", "total")),
        sources=("orders", "users"),
        columns=("city", "total"),
    )
    files = {file.path: file.text for file in _artefact(bound).files}
    edges = json.loads(files["lineage.json"])["edges"]
    found = {(edge["source"], edge["target"]): edge["source_columns"] for edge in edges}
    assert found["dwd_orders_users", "result"] == ["city", "amount"]
    assert found["ods_users", "dwd_orders_users"] == ["city"]
    assert {source for source, _ in found} >= {"public.orders", "public.users"}
    for source, target in found:
        assert f'["{source}"]' in files["lineage.mmd"] and f'["{target}"]' in files["lineage.mmd"]
    target = json.loads(files["plan.json"])["target"]
    assert (target["model"], target["relation"]) == ("result", "result")
    assert [one["name"] for one in target["columns"]] == ["city", "total"]


def test_tests_are_written_for_dbt_and_for_psql() -> None:
    bound = odd_intent()
    draft = make_draft(bound)
    title = Text("标题", "A title")
    name = draft.target.name
    failures = selection([("month", column("month"))], table(name))
    tests = (
        DraftTest("own", "grain", name, title, failures=failures, is_warning=True),
        DraftTest("is_there", "not_null", name, title, columns=("lauf",)),
        DraftTest("listed", "accepted_values", name, title, columns=("select",), values=VALUES),
        DraftTest("parents", "relationships", "dwd_o", title, columns=("user",), parent=_PARENT),
        DraftTest("odd", "relationships", "dwd_o", title, columns=("user",), parent=_ODD_PARENT),
    )
    made = make_artefact(draft, bound, AnalysisResult(), tests, None, "zh")
    files = {file.path: file.text for file in made.files}
    assert "severity='warn'" in files["tests/own.sql"]
    plain = [path for path in files if path.startswith("sql/tests/")]
    assert sorted(plain) == [
        f"sql/tests/{kind}_{node}_1.sql"
        for kind, node in (
            ("accepted_values", name),
            ("grain", name),
            ("not_null", name),
            ("relationships", "dwd_o"),
        )
    ] + ["sql/tests/relationships_dwd_o_2.sql"]
    # dbt itself would write the parent's column without quotes.
    assert '"a b"' in files["tests/odd.sql"]
    assert "tests/parents.sql" not in files
    assert all(len(parse(files[path])) == 1 for path in plain)
    described = yaml.safe_load(files["models/ads/_ads.yml"])["models"][0]["columns"]
    checks = {one["name"]: one.get("data_tests", []) for one in described}
    assert [list(one) for one in checks["lauf"]] == [["not_null"]]
    assert _CALL.findall("".join(files[path] for path in plain)) == []


def test_values_keep_their_lines_in_plain_unit_tests() -> None:
    bound = odd_intent()
    draft = make_draft(bound)
    rows = TypedRows("", draft.target.name, (("select", "text"),), (("first\nsecond",),))
    case = UnitCase((), None, rows)
    test = DraftTest("unit", "unit", draft.target.name, Text("标题", "A title"), case=case)
    made = make_artefact(draft, bound, AnalysisResult(), (test,), None, "zh")
    (text,) = [file.text for file in made.files if file.path.startswith("sql/tests/")]
    assert text.count("CAST('first\nsecond' AS TEXT)") == 2
