"""Every protocol gives the verdicts of Citu's own endpoints: what the guard refuses is refused, and
rows that somebody may not see are in nothing that is sent.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from app_config import Settings
from tests.support.asking import Asking
from tests.support.cases import all_cases
from tests.support.effort import EXPLORES, slow_beyond
from tests.support.guarded_statements import ALLOWED, REJECTED, SCHEMA
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.protocol_ways import WAYS, Asked, called, differences
from tests.support.row_worlds import PROBES, Way, World, told, world

T = TypeVar("T")
# Statements that find other rows each time: by chance, or by the clock.
_CHANGING = re.compile(r"random|tablesample|current_time|clock_timestamp", re.IGNORECASE)
_RUN = "/api/v0/sql/run"


def some(cases: Sequence[T], step: int) -> Sequence[T]:
    """Return each `step`th case, or all where one looks for mistakes."""
    return cases if EXPLORES else cases[::step]


def writing(sql: str) -> Callable[[Any], Reply]:
    """Return what has the model write a statement, whatever it is asked."""
    return lambda _request: Reply(sql)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda _: Reply("NO_SQL: nothing")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(model: OpenAiServer, make_database: Callable[[str], str]) -> Iterator[Asking]:
    settings = Settings(
        database_url=make_database(SCHEMA),
        routing_mode="database_direct",
        enable_result_summary=False,
        enable_auto_repair=False,
        statement_timeout_s=10.0,
        max_rows=20,
    )
    with Asking(settings, model) as asking:
        yield asking


def test_the_guard_judges_alike_by_every_protocol(guarded: Asking, model: OpenAiServer) -> None:
    """The model writes each statement; tools are given it."""
    refused = 0
    with all_cases() as cases:
        for case in (*some(REJECTED, 90), *some(ALLOWED, 180)):
            with cases.case(case.sql):
                model.default = writing(case.sql)
                asked = Asked(guarded.client, "some rows, please", {})
                is_repeatable = not _CHANGING.search(case.sql)
                assert differences(asked, is_repeatable=is_repeatable) == []
                own = asked.post(_RUN, {"sql": case.sql}).get_json()["data"]
                tool = called(asked, "run_sql", sql=case.sql)
                assert tool.error == own.get("error_type", "")
                refused += bool(tool.error)
    assert refused >= len(some(REJECTED, 90))


@pytest.fixture(params=slow_beyond(1, ["rules", "policies"]))
def ruled(
    request: pytest.FixtureRequest,
    model: OpenAiServer,
    make_database: Callable[[str], str],
    tmp_path: Path,
) -> Iterator[World]:
    way: Way = request.param
    more: dict[str, Any] = {"routing_mode": "database_direct", "enable_result_summary": False}
    with world(way, make_database, tmp_path, model, **more) as opened:
        yield opened


def test_hidden_rows_are_told_by_no_protocol(ruled: World, model: OpenAiServer) -> None:
    assert ruled.model is model
    statements = some(PROBES, 6)
    with all_cases() as cases:
        for who in ("ann", "eve"):
            headers = {"Authorization": f"Bearer {ruled.keys[who]}"}
            asked = Asked(ruled.asking.client, "", headers)
            for number, sql in enumerate(statements):
                with cases.case(f"{who}: {sql}"):
                    model.default = writing(sql)
                    asked = replace(asked, question=f"question {number}")
                    assert differences(asked) == []
                    sent = [ask(asked).raw for ask in WAYS.values()]
                    sent.append(called(asked, "run_sql", sql=sql).raw)
                    said = set(told(sql))  # by the statement itself, which answers show
                    assert [set(told(raw)) - said for raw in sent] == [set()] * len(sent)
        model.default = writing("SELECT name FROM customer")
        headers = {"Authorization": f"Bearer {ruled.keys['root']}"}
        asked = Asked(ruled.asking.client, "all of them", headers)
        assert all(told(ask(asked).raw) for ask in WAYS.values()), "root sees them by each"
