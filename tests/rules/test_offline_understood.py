"""What a question was understood as, kept as JSON: read back as it was, or not at all."""

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, NoSql, Sql
from rules.composing.understanding import understand
from rules.query.pending import Pending
from rules.query.query import Query
from rules.query.query_json import from_json, to_json
from rules.query.refusals import Refusal
from store.record_json import from_text, to_text, turn_from_text, turn_to_text
from tests.support.cases import all_cases
from tests.support.effort import tries
from tests.support.offline_catalogs import SALES_BY_TWO, SHOP
from tests.support.offline_questions import FIXTURES, cases_of
from tests.support.question_databases import SCHEMAS, QuestionDatabase
from tests.support.rule_conversations import CONVERSATIONS, LANGUAGES, draft, kept, turn


@pytest.fixture(scope="module")
def catalogs(demo_url: str, offline_database: Callable[[str], str]) -> Iterator[dict[str, Catalog]]:
    found = {}
    with closing(QuestionDatabase(demo_url)) as asked:
        found["demo"] = asked.catalog
    for name in SCHEMAS:
        with closing(QuestionDatabase(offline_database(name))) as asked:
            found[name] = asked.catalog
    yield found


def _questions() -> Iterator[tuple[str, str]]:
    for name in ("zh", "en", "more"):
        yield from (
            ("demo", case.question) for case in cases_of(FIXTURES / f"questions_{name}.sql")
        )
    for name in SCHEMAS:
        yield from (
            (name, case.question)
            for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql")
        )


def _query(question: str, catalog: Catalog) -> Query | None:
    try:
        return understand(Inquiry(question, language_of(question), catalog)).query
    except Refusal:
        return None


def _stored(data: Any) -> Any:
    return from_text(to_text(data))


@pytest.mark.slow
def test_every_query_is_read_back_as_it_was(catalogs: dict[str, Catalog]) -> None:
    understood = 0
    with all_cases() as cases:
        for name, question in _questions():
            with cases.case(question):
                query = _query(question, catalogs[name])
                if query is not None:
                    understood += 1
                    assert from_json(Query, _stored(to_json(query)), catalogs[name]) == query
    assert understood >= 700


def test_every_merged_query_is_read_back_as_it_was(catalogs: dict[str, Catalog]) -> None:
    catalog = catalogs["demo"]
    for conversation in (one for lang in LANGUAGES for one in CONVERSATIONS[lang]):
        history: tuple[Any, ...] = ()
        for case in conversation:
            written = draft(case.question, history, catalog)
            if isinstance(written, Sql):
                assert written.understood is not None
                query = from_json(Query, _stored(written.understood), catalog)
                assert query is not None and to_json(query) == written.understood, case.question
            history = (*history, kept(case.question, written))


@cache
def _kept() -> dict[str, Any]:
    query = _query("total amount of open orders by customer city in 2024", SHOP)
    assert query is not None
    return to_json(query)


def _without(catalog: Catalog, table: str, column: str = "") -> Catalog:
    def left(one: Any) -> Any:
        return replace(one, columns=tuple(part for part in one.columns if part.name != column))

    tables = (
        one if one.name != table else left(one)
        for one in catalog.tables
        if column or one.name != table
    )
    return replace(catalog, tables=tuple(tables)).coherent()


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("orders", "total_amount"),
        ("orders", "status"),
        ("customers", "city"),
        ("orders", "order_date"),
        ("customers", ""),
    ],
)
def test_what_names_something_that_is_gone_is_not_read(table: str, column: str) -> None:
    assert from_json(Query, _kept(), SHOP) is not None
    assert from_json(Query, _kept(), _without(SHOP, table, column)) is None


def test_a_follow_up_does_not_go_on_from_what_is_gone() -> None:
    first = "total amount by status"
    history = (kept(first, draft(first)),)
    assert isinstance(draft("and in 2024?", history), Sql)
    refused = draft("and in 2024?", history, _without(SHOP, "orders", "status"))
    assert isinstance(refused, NoSql) and first in refused.prompt
    assert isinstance(
        draft("how many customers are there?", history, _without(SHOP, "orders", "status")), Sql
    )


def test_a_query_of_another_version_is_not_read() -> None:
    assert from_json(Query, {**_kept(), "version": 2}, SHOP) is None
    assert from_json(Query, {"version": 1}, SHOP) is None
    assert from_json(Pending, _kept(), SHOP) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)


def _damaged(data: Any, path: list[int], value: Any) -> Any:
    if not path or not isinstance(data, dict | list) or not data:
        return value
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    changed = copy.copy(data)
    chosen = keys[path[0] % len(keys)]
    changed[chosen] = _damaged(changed[chosen], path[1:], value)
    return changed


@settings(deadline=None, max_examples=tries(50), suppress_health_check=list(HealthCheck))
@given(path=st.lists(st.integers(0, 9), min_size=1, max_size=8), value=JSON)
def test_damaged_json_is_a_query_or_none(path: list[int], value: Any) -> None:
    damaged = _damaged(_kept(), path, value)
    found = from_json(Query, damaged, SHOP)
    assert found is None or isinstance(found, Query)


def test_a_turn_of_before_is_read_without_one() -> None:
    old = turn("total amount by status")
    text = turn_to_text(old).replace(',"understood":null', "")
    assert "understood" not in text
    assert turn_from_text(text) == old
    assert isinstance(draft("only in 2024", (turn_from_text(text),)), Sql)


def test_only_the_last_question_of_a_model_is_read() -> None:
    """What a model answered leaves no structure: its last question counts as far as it stands by
    itself.
    """
    first, second = turn("total amount by status", "SELECT 1"), turn("only open", "SELECT 2")
    assert isinstance(draft("in 2024", (first,)), Sql)
    refused = draft("in 2024", (first, second))
    assert isinstance(refused, NoSql) and "only open" in refused.prompt


def test_pending_questions_are_read_back_as_they_were() -> None:
    first = "who sold the most"
    asked = draft(first, (), SALES_BY_TWO)
    again = draft("total amount", (kept(first, asked),), SALES_BY_TWO)
    for written in (asked, again):
        assert written.understood is not None
        pending = from_json(Pending, _stored(written.understood), SALES_BY_TWO)
        assert pending is not None and pending.question == first
    assert (
        from_json(Pending, again.understood or {}, _without(SALES_BY_TWO, "sales", "total_amount"))
        is None
    )
