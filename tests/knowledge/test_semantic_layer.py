"""A service with a semantic file: what its catalogue says, what actors see of it, and what becomes
of mistakes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.bootstrap import bootstrap
from app_config import Settings
from common.actor import NOBODY, Actor
from common.text import Text
from common.values import Catalog
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from knowledge.semantic.checking import problems_of
from knowledge.semantic.layer import SemanticLayer
from knowledge.semantic.problems import SemanticFileError
from tests.support.databases import SMALL, as_admin, execute
from unified_api import create_app, main

DDL = """
CREATE TABLE person (id integer PRIMARY KEY, name text, salary integer, bonus integer, hired date,
    gone boolean);
INSERT INTO person SELECT n, 'Han', n, n, '2024-01-01', false FROM generate_series(1, 3) AS n;
CREATE TABLE leave (person_id integer, days integer);
CREATE TABLE visit (person_id integer, seen date, minutes integer);
CREATE FUNCTION twice(integer) RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT $1 * 2';
"""
FILE = """
tables:
  person:
    names: staff
    description: people and their salary
    filter: NOT gone
    label: [name, salary]
    date: hired
    columns:
      name: {names: full name, description: not the salary}
metrics:
  payroll: {table: person, expression: sum(salary), date: hired}
  bonuses: {table: person, expression: sum(bonus), filter: salary > 1}
  heads: {table: person, expression: count(*), names: {en: [headcount]}}
  time: {table: visit, expression: sum(minutes)}
"""
CLERK, GUEST, LEADER = (
    Actor("li", groups=("clerks",)),
    Actor("wang", groups=("guests",)),
    Actor("x", groups=("gone",)),
)
DENIED = {
    "clerks": ["public.person.salary"],
    "guests": ["public.person"],
    "gone": ["public.person.gone"],
}


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "semantic.yaml").write_text(FILE)
    return tmp_path / "semantic.yaml"


@contextmanager
def _opened(url: str, layer: SemanticLayer) -> Iterator[Datasources]:
    options = replace(SMALL, group_denied_objects=DENIED, catalog_ttl_s=1e-9)
    with closing(
        Datasources({DEFAULT: Datasource(lambda: url, options, layer.annotate)})
    ) as datasources:
        yield datasources


def _catalog(datasources: Datasources, actor: Actor = NOBODY) -> Catalog:
    return asyncio.run(datasources.open(DEFAULT, actor).catalog())


def test_everybody_sees_the_meanings_of_what_they_may_read(url: str, path: Path) -> None:
    layer = SemanticLayer(path)
    with _opened(url, layer) as datasources:
        whole = _catalog(datasources)
        clerk, guest, leader = (_catalog(datasources, actor) for actor in (CLERK, GUEST, LEADER))
    assert layer.problems == ()
    assert {metric.name for metric in whole.metrics} == {"payroll", "bonuses", "heads", "time"}
    # Whoever may not read a column sees no metric that reads it, and no description that names it.
    assert {metric.name for metric in clerk.metrics} == {"heads", "time"}
    person = clerk.by_key["public", "person"]
    assert person.meaning and person.meaning.description == Text(
        "people and their …", "people and their …"
    )
    assert (person.meaning.label_columns, person.meaning.default_filter) == ((), "NOT gone")
    name = person.column("name")
    assert name and name.meaning and name.meaning.description == Text("not the …", "not the …")
    assert {metric.name for metric in guest.metrics} == {"time"}
    # Figures over rows that the table's filter leaves out would be other figures.
    assert {metric.name for metric in leader.metrics} == {"time"}
    meaning = leader.by_key["public", "person"].meaning
    assert meaning and meaning.default_filter is None


def test_expressions_are_proven_by_the_guard_and_by_postgresql(url: str, path: Path) -> None:
    path.write_text("""
tables:
  leave: {filter: days}
  visit: {filter: minutes > 0}
metrics:
  unfiltered: {table: leave, expression: sum(days)}
  good: {table: person, expression: "sum(salary) / nullif(count(*), 0)"}
  writes: {table: person, expression: sum(twice(salary))}
  sleeps: {table: person, expression: max(pg_sleep(9)::text)}
  looks: {table: person, expression: max(current_user)}
  plain: {table: person, expression: abs(salary)}
  mixed: {table: person, expression: sum(salary) + bonus}
  text: {table: person, expression: sum(name)}
  nothing: {table: person, expression: nosuch(salary)}
  nested: {table: visit, expression: count(*), filter: count(*) > 1}
  zero: {table: visit, expression: sum(minutes) / 0 + 1 / 0}
""")
    layer = SemanticLayer(path)
    with _opened(url, layer) as datasources:
        catalog = _catalog(datasources)
    assert [metric.name for metric in catalog.metrics] == ["good"]
    assert [problem.line for problem in layer.problems or ()] == [3, *range(8, 17)]
    filters = {
        table.name: table.meaning and table.meaning.default_filter for table in catalog.tables
    }
    assert filters == {"leave": None, "person": None, "visit": "minutes > 0"}
    allowed = SemanticLayer(path, allowed_functions=["public.twice"])
    with _opened(url, allowed) as datasources:
        assert [metric.name for metric in _catalog(datasources).metrics] == ["good", "writes"]


def test_the_file_and_the_database_may_change_while_the_service_runs(
    make_database: Callable[[str], str],
    admin_url: str,
    path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = make_database(DDL)
    layer = SemanticLayer(path)

    def names() -> set[str]:
        return {metric.name for metric in _catalog(datasources).metrics}

    with caplog.at_level(logging.WARNING, "knowledge.semantic"), _opened(url, layer) as datasources:
        assert _catalog(datasources) is _catalog(datasources)  # nothing changed
        path.write_text(FILE.replace("heads:", "headcount:"))
        assert names() == {"payroll", "bonuses", "headcount", "time"}
        path.write_text("tables: [")
        assert names() == {"payroll", "bonuses", "headcount", "time"}  # what it said before
        assert [problem.text.startswith("not YAML") for problem in layer.problems or ()] == [True]
        path.unlink()
        assert names() == {"payroll", "bonuses", "headcount", "time"}
        path.write_text(FILE)
        execute(as_admin(url, admin_url), "ALTER TABLE person RENAME COLUMN bonus TO extra")
        assert names() == {"payroll", "heads", "time"}
        execute(as_admin(url, admin_url), "ALTER TABLE visit ALTER COLUMN minutes TYPE text")
        assert names() == {"payroll", "heads"}
    assert f"{path}:13: the table 'person' has no column 'bonus'" in caplog.messages
    assert f"{path}:1: the file can't be read: No such file or directory" in caplog.messages


def test_a_service_does_not_start_with_a_file_that_is_not_valid(path: Path) -> None:
    path.write_text("tables:\n  a: {colums: 1}\n")
    with pytest.raises(SemanticFileError, match=r"semantic\.yaml:2: tables\.a has no key 'colums'"):
        bootstrap(Settings(semantic_file=str(path)))


def test_the_program_says_what_does_not_fit_and_does_not_start(
    url: str,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    path.write_text("tables:\n  persons: {columns: {phone: {sensitive: true}}}\n")
    for name, value in {
        "SEMANTIC_FILE": str(path),
        "DATABASE_URL": url,
        "DATA_DIR": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("unified_api.listen", lambda *_: None)
    monkeypatch.setattr("unified_api.refuse_strangers", lambda *_, **__: None)
    monkeypatch.setattr("unified_api.logs.configure", lambda _: None)
    assert main() == 1
    assert (
        f"{path}:2: there is no table 'persons'; did you mean 'person'?" in capsys.readouterr().err
    )


def test_ready_says_whether_all_of_the_file_is_used(url: str, path: Path, tmp_path: Path) -> None:
    path.write_text(FILE.replace("  visit", "  visits").replace("table: visit", "table: visits"))
    settings = Settings(semantic_file=str(path), database_url=url, data_dir=str(tmp_path))
    services = bootstrap(settings)
    client = create_app(settings, services).test_client()
    assert client.get("/api/v0/schema/tables").status_code == 200
    ready = client.get("/ready").get_json()["data"]
    assert ready["semantic_file"] == {"status": "degraded", "problems": 1}
    without = create_app(Settings(database_url=url, data_dir=str(tmp_path))).test_client()
    assert without.get("/ready").get_json()["data"]["semantic_file"] == {"status": "not_configured"}


def test_the_demos_own_file_fits_the_demo(demo_url: str) -> None:
    assert problems_of(SEMANTIC_FILE, lambda: demo_url, SMALL) == ()
