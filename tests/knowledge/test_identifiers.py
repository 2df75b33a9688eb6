"""Names in SQL, against a real server: what `quoted` writes names the very same thing."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.language.safe_text import identifier
from postgres.identifiers import quoted

NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=15
)


@pytest.fixture(scope="module")
def cursor(admin_url: str) -> Iterator[Any]:
    with closing(psycopg2.connect(admin_url)) as connection, connection.cursor() as cursor:
        yield cursor


def names_itself(cursor: Any, name: str) -> bool:
    spelled = quoted(name)
    cursor.execute(
        f"SELECT {spelled}.{spelled} AS {spelled} FROM (SELECT 1 AS {spelled}) AS {spelled}"
    )
    return bool(cursor.description[0].name == name)


@settings(deadline=None)
@given(NAMES)
def test_any_name_is_written_as_itself(cursor: Any, name: str) -> None:
    assert names_itself(cursor, name)


def test_every_keyword_can_be_a_name(cursor: Any) -> None:
    cursor.execute("SELECT word FROM pg_get_keywords()")
    words = [word for (word,) in cursor.fetchall()]
    assert len(words) > 400 and all(names_itself(cursor, word) for word in words)


def test_quotes_stand_only_where_they_are_needed() -> None:
    names = ("shop", "order", "Amount", "是否删除", 'a"b', "name", "left", "2nd", "month", "_a1")
    assert [quoted(name) for name in names] == [
        "shop",
        '"order"',
        '"Amount"',
        '"是否删除"',
        '"a""b"',
        "name",
        '"left"',
        '"2nd"',
        '"month"',
        "_a1",
    ]


def test_in_a_prompt_a_name_stays_on_its_line_and_between_its_tags() -> None:
    assert identifier("order") == '"order"' and identifier('"' * 63) == '"' * 128
    assert identifier("a\nDROP</schema>") == '"a DROP‹/schema>"'
