"""Files that runs made: whose they are, how long they are kept, and how many."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest

from common.values import Turn
from store import EventFrame, RunEnd, RunHead, RunWrite, Store, StoredArtefact
from tests.support.store_servers import StoreServer, play, until

AGAIN = StoredArtefact(b"again")
DATA = StoredArtefact(bytes(range(256)) * 40, b"{}")


def ended(user: str, conversation_id: str, run_id: str) -> RunWrite:
    """A run that ends with a turn."""
    head = RunHead(run_id, user, conversation_id, "q", "en", "worker", "2026-01-02T03:04:05.678Z")
    turn = Turn(run_id, "q", "ETL", "etl", "a", head.started_at)
    return RunWrite(head, (EventFrame(1, b"{}"),), RunEnd("completed", turn))


def test_an_artefact_is_its_user_s_and_the_last_one_of_its_run(place: StoreServer) -> None:
    async def scenario(store: Store) -> None:
        artefacts = store.artefacts
        assert await artefacts.find("user", "run") is None
        await artefacts.keep("user", "c", "run", StoredArtefact(b"first"))
        await artefacts.keep("user", "c", "run", DATA)
        assert await artefacts.find("user", "run") == DATA
        assert await artefacts.find("another", "run") is None
        await artefacts.keep("another", "c", "run", StoredArtefact(b"stolen"))
        assert await artefacts.find("user", "run") == DATA
        assert await artefacts.find("another", "run") is None

    play(scenario, place.open())


def test_the_oldest_artefacts_of_a_user_go_first(place: StoreServer) -> None:
    async def scenario(store: Store) -> None:
        user, names = uuid.uuid4().hex, [f"run {n}" for n in range(4)]
        await store.artefacts.keep("another", "c", "other", DATA)
        for name in names:
            await store.artefacts.keep(user, "c", user + name, DATA)
        await store.artefacts.keep(user, "c", user + names[2], AGAIN)
        await store.artefacts.keep(user, "c", user + "last", DATA)
        kept = [await store.artefacts.find(user, user + name) for name in [*names, "last"]]
        assert kept == [None, None, AGAIN, None, DATA]
        assert await store.artefacts.find("another", "other") == DATA

    play(scenario, place.open(own_artefacts=2))


REMOVALS: dict[str, Callable[[Store, str], Awaitable[object]]] = {
    "delete": lambda store, user: store.conversations.delete(user, "c"),
    "clear": lambda store, user: store.conversations.clear(user, "c"),
    "delete_all": lambda store, user: store.conversations.delete_all(user),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("has_turn", [True, False])
def test_artefacts_go_with_their_conversation(
    place: StoreServer, removal: str, has_turn: bool
) -> None:
    async def scenario(store: Store) -> None:
        user = uuid.uuid4().hex
        await store.artefacts.keep(user, "c", user + "1", DATA)
        await store.artefacts.keep(user, "other", user + "2", DATA)
        if has_turn:
            await store.runs.write([ended(user, "c", user + "1")])
        await REMOVALS[removal](store, user)
        assert await store.artefacts.find(user, user + "1") is None
        others = await store.artefacts.find(user, user + "2")
        assert others == (None if removal == "delete_all" else DATA)

    play(scenario, place.open())


def test_an_artefact_is_kept_as_long_as_its_conversation(place: StoreServer) -> None:
    """The second conversation never gets a turn."""

    async def scenario(store: Store) -> None:
        user = uuid.uuid4().hex
        await store.artefacts.keep(user, "c", user + "1", DATA)
        await store.runs.write([ended(user, "c", user + "1")])
        await store.artefacts.keep(user, "never", user + "2", DATA)

        async def is_gone(name: str) -> bool:
            await store.runs.abandoned()  # which also removes what has expired
            return await store.artefacts.find(user, user + name) is None

        kept = await store.artefacts.find(user, user + "1")
        assert kept == DATA
        await asyncio.gather(until(lambda: is_gone("1")), until(lambda: is_gone("2")))

    play(scenario, place.open(conversation_ttl_s=0.4, waiting_ttl_s=0.1, run_ttl_s=0.1))
