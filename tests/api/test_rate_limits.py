"""How often one caller may ask: counted in the process and in Redis, by user and by address."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.access.charges import CHARGES, charge_of
from api.access.key_file import KeyFile
from app_config import Settings
from common import rate_limits
from store import Retention, Store
from store.open_store import BACKENDS
from store.postgres_request_counts import windows_until_room
from tests.support.live import eventually
from tests.support.redis_server import RedisServer, redis_server
from tests.support.store_servers import play
from unified_api import create_app

ADDRESSES = [
    f"/api/v0/{name}" for name in ("ask_agent", "ask_agent_stream", "sql/validate", "sql/run")
]
Serve = Callable[..., FlaskClient]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(params=["memory", "redis"])
def redis_url(request: pytest.FixtureRequest) -> str:
    """Both places where requests are counted."""
    if request.param == "memory":
        return ""
    server: RedisServer = request.getfixturevalue("redis")
    server.start()
    server.forget()
    return server.url


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """An application that lets everybody in; it does not reach a database before it is asked."""
    nowhere = "postgresql://nobody@127.0.0.1:9/none"
    settings = Settings(
        data_dir=str(tmp_path),
        audit_log="off",
        database_url=nowhere,
        app_database_url=nowhere,
        allow_anonymous=True,
    )
    return lambda **changes: create_app(replace(settings, **changes)).test_client()


def ask(
    client: FlaskClient, address: str = "127.0.0.1", *, path: str = ADDRESSES[2], key: str = ""
) -> TestResponse:
    """A request that gets 400 once it is let in: it asks nothing."""
    headers = {"X-API-Key": key} if key else {}
    return client.post(path, json={}, headers=headers, environ_overrides={"REMOTE_ADDR": address})


def statuses(
    client: FlaskClient, times: int, address: str = "127.0.0.1", *, key: str = ""
) -> list[int]:
    return [ask(client, address, key=key).status_code for _ in range(times)]


def test_one_request_too_many_is_told_when_to_come_back(serve: Serve, redis_url: str) -> None:
    client = serve(rate_limit="100/day, 3/hour", redis_url=redis_url)
    assert statuses(client, 3) == [400, 400, 400]
    refused = ask(client)
    envelope = json.loads(refused.get_data())
    data = envelope["data"]
    assert (refused.status_code, envelope["code"], data["error_type"]) == (429, 429, "rate_limited")
    assert data["retryable"] is True
    assert 3000 < data["retry_after_s"] <= 3600
    assert refused.headers["Retry-After"] == str(data["retry_after_s"])
    assert str(data["retry_after_s"]) in data["error"]


QUESTION_OF_ANY_PROTOCOL = {
    "message": "how many?",
    "model": "citu",
    "messages": [{"role": "user", "content": "how many?"}],
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "ask", "arguments": {"question": "how many?"}},
}


def test_every_address_is_counted_or_free_as_one_table_says(serve: Serve) -> None:
    addresses = {rule.endpoint: rule for rule in serve().application.url_map.iter_rules()}
    assert set(CHARGES) == set(addresses), "each stands in the table, and nothing else"
    assert charge_of("an.address_of_tomorrow") == "counted"
    client = serve(rate_limit="1/hour")
    assert statuses(client, 2) == [400, 429]
    for endpoint, rule in addresses.items():
        if endpoint.startswith("vanna_socket."):
            continue  # tests of WebSockets count their messages
        path = re.sub(r"<[^>]*>", "conv_1", rule.rule)
        method = min((rule.methods or set()) - {"HEAD", "OPTIONS"})
        body: Any = {} if method == "GET" else {"json": QUESTION_OF_ANY_PROTOCOL}
        refused = client.open(path, method=method, buffered=True, **body).status_code == 429
        assert refused == (CHARGES[endpoint] != "free"), endpoint


def test_a_greeting_counts_because_its_examples_do(serve: Serve) -> None:
    client = serve(rate_limit="2/hour")
    codes = [
        client.post("/api/vanna/v2/chat_poll", json={"message": ""}).status_code for _ in range(3)
    ]
    assert codes == [200, 200, 429]


def test_who_waits_as_told_is_let_in_again(serve: Serve, redis_url: str) -> None:
    client = serve(rate_limit="1/second", redis_url=redis_url)
    refused = eventually(
        lambda: next((r for r in [ask(client), ask(client)] if r.status_code == 429), None)
    )
    assert refused.headers["Retry-After"] == "1"
    eventually(lambda: ask(client).status_code == 400)


def test_all_that_costs_counts_together_and_nothing_else_does(serve: Serve, redis_url: str) -> None:
    client = serve(rate_limit=f"{len(ADDRESSES)}/day", redis_url=redis_url)
    assert [ask(client, path=path).status_code for path in ADDRESSES] == [400] * len(ADDRESSES)
    assert [ask(client, path=path).status_code for path in ADDRESSES] == [429] * len(ADDRESSES)
    assert client.get("/health").status_code == 200
    assert client.post("/api/v0/runs/run_x/cancel", data="[]").status_code == 400
    assert client.options(ADDRESSES[0]).status_code == 200


def test_anonymous_callers_are_told_apart_by_address(serve: Serve, redis_url: str) -> None:
    client = serve(rate_limit="1/day", redis_url=redis_url)
    assert statuses(client, 2, "192.0.2.1") == [400, 429]
    assert statuses(client, 2, "192.0.2.2") == [400, 429]
    assert statuses(client, 1, "2001:db8::1") == [400]
    assert statuses(client, 1, "2001:db8::ffff:1") == [429]  # of the same network
    assert statuses(client, 1, "2001:db8:0:1::1") == [400]
    assert statuses(client, 2, "") == [400, 429]  # a Unix socket


def test_a_user_is_counted_whichever_key_it_uses(
    serve: Serve, redis_url: str, tmp_path: Path
) -> None:
    client = serve(rate_limit="2/day", redis_url=redis_url)
    keys = KeyFile(tmp_path / "api_keys.json")
    one, another, other = (keys.create(user)[0] for user in ("alice", "alice", "bob"))
    assert statuses(client, 1, "192.0.2.1", key=one) == [400]
    assert statuses(client, 2, "192.0.2.2", key=another) == [400, 429]
    assert statuses(client, 2, "192.0.2.1", key=other) == [400, 400]
    assert statuses(client, 5) == [401] * 5  # nobody's requests are counted against anybody


def test_the_forwarded_address_is_believed_as_far_as_proxies_are(
    serve: Serve, redis_url: str
) -> None:
    def ask_through(client: FlaskClient, forwarded: str) -> int:
        return client.post(
            ADDRESSES[2], json={}, headers={"X-Forwarded-For": forwarded}
        ).status_code

    behind = serve(rate_limit="1/day", redis_url=redis_url, trusted_proxies=1)
    assert [ask_through(behind, f"{claim}, 192.0.2.1") for claim in ("1.1.1.1", "2.2.2.2")] == [
        400,
        429,
    ]
    assert ask_through(behind, "192.0.2.2") == 400
    direct = serve(rate_limit="1/day", redis_url=redis_url)
    assert [ask_through(direct, claim) for claim in ("3.3.3.3", "4.4.4.4")] == [400, 429]


def test_processes_share_what_redis_counts(serve: Serve, redis: RedisServer) -> None:
    redis.start()
    redis.forget()
    workers = [serve(rate_limit="3/day", redis_url=redis.url) for _ in range(2)]
    assert [ask(workers[n % 2]).status_code for n in range(5)] == [400, 400, 400, 429, 429]
    alone = [serve(rate_limit="1/day") for _ in range(2)]
    assert [statuses(worker, 2) for worker in alone] == [[400, 429]] * 2


def test_nobody_is_refused_while_redis_is_down(
    serve: Serve,
    redis: RedisServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limits, "_PAUSE_S", 0.0)
    redis.start()
    redis.forget()
    client = serve(rate_limit="1/day", redis_url=redis.url, store_timeout_s=0.2)
    with caplog.at_level(logging.WARNING, "common.rate_limits"):
        assert statuses(client, 2) == [400, 429]
        redis.stop()
        assert statuses(client, 3) == [400] * 3
        assert len(caplog.records) == 1
        redis.start()
        assert statuses(client, 1) == [429]
        with redis.frozen():
            assert statuses(client, 2) == [400] * 2
        assert statuses(client, 1) == [429]
        assert len(caplog.records) == 2
    assert redis.url not in caplog.text


def test_nothing_is_limited_by_default(serve: Serve) -> None:
    assert set(statuses(serve(), 50)) == {400}


# ------------------------------------------------------------------------------
# in PostgreSQL


def test_workers_share_what_the_store_counts(
    serve: Serve, make_app_database: Callable[[], str]
) -> None:
    url = make_app_database()
    clients = [serve(rate_limit="5/hour", app_database_url=url) for _ in range(2)]
    told = [ask(client).status_code for _ in range(4) for client in clients]
    assert told == [400] * 5 + [429] * 3
    assert ask(clients[0], "127.0.0.2").status_code == 400


def test_as_many_are_let_in_at_once_as_may(make_app_database: Callable[[], str]) -> None:
    url = make_app_database()

    async def scenario(*stores: Store) -> None:
        counts = [store.request_counts for store in stores]
        assert all(counts)
        waits = await asyncio.gather(
            *(
                count.hit("caller", 10, 3600)
                for count in counts
                for _ in range(20)
                if count is not None
            )
        )
        assert waits.count(0) == 10
        assert all(0 <= wait <= 2 * 3600 for wait in waits)

    play(scenario, *(BACKENDS["postgresql"](lambda: url, Retention(), 20.0) for _ in range(2)))


@pytest.mark.parametrize(
    ("hits", "before", "now", "windows"),
    [
        (10, 0, 7.5, 0.6),  # full: in the next window, of which a tenth has passed
        (4, 10, 7.25, 0.25),  # 4 and half of 10 are 9: at 7.5 one more fits
        (0, 10, 7.05, 0.05),
        (1, 0, 7.5, 1.5),  # of one: when the whole window has passed since
    ],
)
def test_when_there_is_room_again(hits: int, before: int, now: float, windows: float) -> None:
    most = 1 if hits == 1 else 10
    assert windows_until_room(7, hits, before, now, most) == pytest.approx(windows)


def test_without_the_store_a_worker_counts_for_itself(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client = serve(rate_limit="2/hour")  # its store is nowhere
    assert statuses(client, 4) == [400, 400, 429, 429]
    assert caplog.text.count("counts requests for itself") == 1
