"""Requests for transformations with a model behind the roles: it may help, and never decides."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app_config import Settings
from tests.support.asking import Asking, shared_askings
from tests.support.etl_model import hands_in
from tests.support.etl_requests import INTENT, SHOP
from tests.support.openai_replies import Reply, Request
from tests.support.openai_server import OpenAiServer

OPTIONS = {"feedback": False, "mutants": False, "interactive": False}
BODY: dict[str, Any] = {"intent": INTENT, "options": OPTIONS, "agent": "etl", "lang": "en"}
MONTHS = [["2026-01-01", 10.5], ["2026-02-01", 20], [None, 5]]
JOINED = "dwd_orders_users"


@pytest.fixture(scope="module")
def askings(
    make_database: Callable[[str], str], scratch_url: str
) -> Iterator[Callable[..., Asking]]:
    settings = Settings(
        database_url=make_database(SHOP), scratch_database_url=scratch_url, llm_max_retries=0
    )
    with shared_askings(settings) as askings:
        yield askings


@pytest.fixture
def ask(askings: Callable[..., Asking], model: OpenAiServer) -> Callable[..., dict[str, Any]]:
    """Asks with this script; gives the answer."""

    def ask(
        script: Callable[[Request], Reply], body: dict[str, Any] = BODY, **changes: Any
    ) -> dict[str, Any]:
        model.requests.clear()
        model.default = script
        status, envelope = askings(model, **changes).sync(body)
        assert status == 200, envelope
        data: dict[str, Any] = envelope["data"]
        assert data["usage"]["llm_calls"] == len(model.requests) <= 40
        return data

    return ask


def test_try(ask, model) -> None:
    answer = ask(hands_in())
    for one in model.requests:
        print(one.tool_names, one.messages[-1]["content"][:1500])
    print({k: v for k, v in answer.items() if k not in ("evidence", "plan", "intent", "preview")})
    print([n["name"] for n in answer["plan"]["nodes"]], answer["plan"]["nodes"][-1])
    assert 0
