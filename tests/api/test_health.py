"""`/ready`: callers share one round of checks, the checks run at once, and requests of one address
are limited.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api import health
from api.health import Readiness
from app_config import Settings
from common.errors import DatabaseUnavailable
from common.text import Text
from tests.support.live import eventually
from unified_api import create_app

OK = {"status": "ok"}


def test_checks_run_side_by_side_and_one_that_fails_is_unavailable() -> None:
    async def scenario() -> None:
        begun = [asyncio.Event(), asyncio.Event()]

        async def first() -> dict[str, Any]:
            begun[0].set()
            await begun[1].wait()
            return OK

        async def second() -> dict[str, Any]:
            begun[1].set()
            await begun[0].wait()
            raise DatabaseUnavailable(Text("", ""))

        found = await Readiness({"first": first, "second": second}).found()
        assert found == {"first": OK, "second": {"status": "unavailable"}}

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_who_asks_during_a_look_or_soon_after_it_gets_the_same_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    release = asyncio.Event()

    async def check() -> dict[str, Any]:
        nonlocal looks
        looks += 1
        await release.wait()
        return OK

    async def scenario() -> None:
        monkeypatch.setattr(health, "_FRESH_S", 3600.0)
        readiness = Readiness({"database": check})
        waiting = [asyncio.create_task(readiness.found()) for _ in range(20)]
        leaver = asyncio.create_task(readiness.found())
        await asyncio.sleep(0)
        leaver.cancel()  # a caller that leaves does not end the round for others
        release.set()
        assert await asyncio.gather(*waiting) == [{"database": OK}] * 20
        assert await readiness.found() == {"database": OK}
        assert looks == 1
        monkeypatch.setattr(health, "_FRESH_S", 0.0)
        assert await readiness.found() == {"database": OK}
        assert looks == 2

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_check_that_hangs_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_CHECK_TIMEOUT_S", 0.01)
    hanging = Readiness({"model": lambda: asyncio.get_running_loop().create_future()})
    assert asyncio.run(hanging.found()) == {"model": {"status": "unavailable"}}


def test_one_address_asks_ready_only_so_often(tmp_path: Path) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:9/none"
    settings = Settings(
        data_dir=str(tmp_path), audit_log="off", database_url=nowhere, app_database_url=nowhere
    )
    client = create_app(replace(settings, allow_anonymous=True)).test_client()
    assert client.get("/ready").status_code == 503
    limited = eventually(
        lambda: next((r for r in [client.get("/ready")] if r.status_code == 429), None)
    )
    assert limited.headers["Retry-After"] == "1"
    assert client.get("/ready", environ_overrides={"REMOTE_ADDR": "192.0.2.7"}).status_code == 503
    assert client.get("/health").status_code == 200
