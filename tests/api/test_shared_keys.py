"""API keys of several hosts: a change at one holds at all, and needs no store to be judged by."""

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from api.access import shared_keys
from api.access.key_file import InvalidKeyRequest, KeyFile, KeysUnreadable
from api.access.shared_keys import SharedKeys
from common.errors import StoreUnavailable
from store import Store
from tests.support.http_stream import post_json
from tests.support.live import ROOT, eventually, serving
from tests.support.questions import SYNC
from tests.support.store_servers import StoreServer, play


class KeyHost:
    """A host: its file of keys, and the keys of all."""

    def __init__(self, folder: Path, name: str, store: Store) -> None:
        self.file = KeyFile(folder / name / "api_keys.json")
        self.shared = SharedKeys(self.file, store.documents)

    async def create(self, user: str) -> str:
        """Make a key for all hosts; return its text."""
        text, _ = await self.shared.change(lambda keys: keys.create(user))
        return text

    def users(self) -> list[str]:
        """The users whose keys this host takes."""
        return [key.user_id for key in self.file.all()]


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the document of keys, which no other test has."""
    name = uuid.uuid4().hex
    monkeypatch.setattr(shared_keys, "_NAME", name)
    return name


@pytest.fixture
def clean(place: StoreServer, name: str) -> StoreServer:  # noqa: ARG001 - it is in force
    """A store without keys."""
    return place


def test_a_change_at_one_host_holds_at_all(clean: StoreServer, tmp_path: Path) -> None:
    async def scenario(one: Store, another: Store) -> None:
        first, second = KeyHost(tmp_path, "first", one), KeyHost(tmp_path, "second", another)
        await second.shared.fetch()
        assert not second.file.is_needed()
        first.file.create("made before keys were shared")
        text = await first.create("ann")
        await second.shared.fetch()
        assert second.users() == first.users() == ["made before keys were shared", "ann"]
        key = second.file.find(text)
        assert key is not None

        await second.shared.change(lambda keys: keys.revoke(key.key_id))
        await first.shared.fetch()
        assert first.file.find(text) is None
        with pytest.raises(InvalidKeyRequest, match="no key"):
            await first.shared.change(lambda keys: keys.revoke(key.key_id))

    play(scenario, clean.open(), clean.open())


def test_changes_at_once_are_all_kept(clean: StoreServer, tmp_path: Path) -> None:
    async def scenario(*stores: Store) -> None:
        hosts = [KeyHost(tmp_path, str(number), store) for number, store in enumerate(stores)]
        await asyncio.gather(*(host.create(f"user {n}") for n in range(4) for host in hosts))
        for host in hosts:
            await host.shared.fetch()
            assert sorted(host.users()) == sorted(f"user {n}" for n in range(4) for _ in hosts)

    play(scenario, clean.open(), clean.open())


def test_a_copy_that_is_lost_comes_back_and_one_that_is_none_is_not_taken(
    clean: StoreServer, name: str, tmp_path: Path
) -> None:
    async def scenario(store: Store) -> None:
        host = KeyHost(tmp_path, "host", store)
        await host.create("ann")
        assert host.users() == ["ann"]
        host.file.path.unlink()
        with pytest.raises(KeysUnreadable):
            host.file.all()
        await SharedKeys(host.file, store.documents).fetch()
        assert host.users() == ["ann"]

        kept = await store.documents.read(name)
        assert kept is not None
        assert not await store.documents.write(name, "stale", kept.revision - 1)
        assert await store.documents.write(name, "no keys", kept.revision)
        with pytest.raises(KeysUnreadable, match="no API keys"):
            await host.shared.fetch()
        assert host.users() == ["ann"]

    play(scenario, clean.open())


def test_while_the_store_is_away_keys_hold_and_none_is_made(
    clean: StoreServer, tmp_path: Path
) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        text = await KeyHost(tmp_path, "host", patient).create("ann")
        host = KeyHost(tmp_path, "host", hasty)
        with clean.silent():
            for trial in (host.shared.fetch(), host.create("ben")):
                with pytest.raises(StoreUnavailable):
                    await trial
        assert host.file.find(text) is not None
        assert host.users() == ["ann"]

    play(scenario, clean.open(), clean.open(timeout_s=0.5))


@pytest.mark.slow
def test_a_service_follows_what_a_command_on_another_host_changes(
    make_app_database: Callable[[], str], demo_url: str, tmp_path: Path
) -> None:
    settings = {"APP_DATABASE_URL": make_app_database(), "SHARED_API_KEYS": "true"}
    elsewhere = {**os.environ, **settings, "DATA_DIR": str(tmp_path / "elsewhere")}

    def command(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "api.keys", *words],
            cwd=ROOT,
            env=elsewhere,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    body = {"question": "hello", "routing_mode": "chat_direct"}
    here = {"DATABASE_URL": demo_url, "DATA_DIR": str(tmp_path / "here"), **settings}
    with serving(tmp_path / "log", model=None, **here) as citu:
        assert post_json(citu.port, SYNC, body)[0] == 200
        key = command("create", "--user", "ann")
        eventually(lambda: post_json(citu.port, SYNC, body)[0] == 401)
        assert post_json(citu.port, SYNC, body, **{"X-API-Key": key})[0] == 200
        command("revoke", command("list").splitlines()[1].split()[0])
        eventually(lambda: post_json(citu.port, SYNC, body, **{"X-API-Key": key})[0] == 401)
