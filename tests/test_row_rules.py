"""Row rules in place of policies: the same rows, whatever the statement, and nothing of the others anywhere."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from common.actor import Actor
from common.errors import ForbiddenObject
from databases.row_rules import RowRules
from databases.row_rules.format import read_text
from tests.cases import all_cases
from tests.conftest import alone
from tests.databases import as_admin, execute
from tests.row_rules import ANN, FOLDER, KINDS, Bench, open_bench, prepare, statements
from tests.row_statements import queries

MOST_REFUSED = 0.05  # of the statements that policies allow


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    url = make_database((FOLDER / "schema.sql").read_text("utf-8"))
    with alone():
        prepare(as_admin(url, admin_url))
    return url


@pytest.fixture(scope="module")
def ann(url: str, admin_url: str) -> Iterator[Bench]:
    with open_bench(url, as_admin(url, admin_url)) as bench:
        yield bench


def _same(bench: Bench, sql: str, *, in_order: bool = False) -> bool:
    """Whether the rules allow the statement where the policies do; fails unless what it gives is the same then."""
    standard, ruled = bench.standard(sql), bench.ruled(sql)
    assert not ruled.canaries(sql)
    if standard.error is not None:
        assert ruled.error is not None, f"policies: {standard.error}"
        return True
    if ruled.error is not None:
        return False
    if in_order:
        assert ruled == standard
    assert ruled.in_any_order == standard.in_any_order
    return True


def test_statements_give_what_policies_give(ann: Bench) -> None:
    tried, refused = 0, []
    with all_cases() as cases:
        for kind in KINDS:
            for sql in statements(kind):
                with cases.case(sql):
                    tried += 1
                    if not _same(ann, sql, in_order=kind == "ordered"):
                        refused.append(sql)
    assert tried >= 300
    assert len(refused) <= tried * MOST_REFUSED, refused


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(sql=queries())
def test_any_statement_gives_what_policies_give(ann: Bench, sql: str) -> None:
    assert _same(ann, sql), ann.ruled(sql).error


def test_the_standard_hides_something(ann: Bench) -> None:
    """Without rules the canaries are there, so the tests above can fail."""
    everybody = ann.of(RowRules(read_text(b"tables: {}", "empty.yaml")))
    assert everybody.rows.is_open
    shown = everybody.ruled("SELECT * FROM orders")
    assert len(shown.canaries("")) > 10
    assert everybody.ruled("SELECT id FROM orders WHERE note::int > 0").canaries("") == {"SECRET-1"}


def test_what_shows_hidden_rows_past_the_tables_is_refused(ann: Bench) -> None:
    with all_cases() as cases:
        for sql in statements("refused"):
            with cases.case(sql):
                outcome = ann.ruled(sql)
                assert outcome.error is not None
                assert not outcome.canaries(sql)
                assert "tenant" not in outcome.error
