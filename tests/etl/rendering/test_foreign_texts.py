"""Texts of people and of databases come through SQL, Jinja and YAML as they are."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import Environment
from sqlglot import exp

from etl.planning.draft_test import TypedRows
from etl.planning.sql_trees import aliased, literal
from etl.rendering.jinja_text import raw_text
from etl.rendering.select_rendering import identifier_text, render_select
from etl.rendering.value_rows import values_query
from etl.rendering.yaml_files import YamlFiles

_JINJA = Environment(keep_trailing_newline=True)
_PIECES = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{",
    "'",
    '"',
    "\\",
    "\r\n",
    "\r",
    "\n",
    ":a",
    "--",
    "x",
]
_PIECES += ["{% raw %}", "{% endraw %}", "$$", "表", "\\007B", "/*", "\t", "U&", ";"]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)
NAMES = TEXTS.filter(lambda text: 0 < len(text.encode()) <= 63)


@pytest.fixture(scope="module")
def connection(admin_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(admin_url, autocommit=True) as opened:
        yield opened


@example("{% endraw %}{{ 7*7 }}", "{{ x }}")
@given(TEXTS, NAMES)
def test_a_value_and_a_name_come_through_dbt_and_psql(
    connection: psycopg.Connection[Any], text: str, name: str
) -> None:
    select = exp.Select().select(aliased(literal(text), name))
    for jinja in (True, False):
        sql = render_select(select, lambda table: table.name, jinja=jinja)
        assert _JINJA.from_string(sql).render() == sql
        cursor = connection.execute(sql.encode())
        assert cursor.fetchall() == [(text,)]
        assert cursor.description is not None and cursor.description[0].name == name
        assert identifier_text(name) in sql


def test_rows_without_columns_are_rows(connection: psycopg.Connection[Any]) -> None:
    rows = TypedRows("public", "counted", (), ((), ()))
    counted = connection.execute(f"SELECT count(*) FROM ({values_query(rows)}) AS t".encode())
    assert counted.fetchall() == [(2,)]


@example("{{\r\n{\r")
@given(TEXTS)
def test_a_text_comes_through_yaml_and_jinja(text: str) -> None:
    stored = yaml.safe_load(YamlFiles().text({"description": raw_text(text)}))["description"]
    assert _JINJA.from_string(stored).render() == text
