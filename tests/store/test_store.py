"""The store's contract, held by every adapter on a real server."""

import asyncio
import importlib.util
import os
import random
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import psycopg2
import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from common import runtime
from common.errors import StoreUnavailable
from common.values import Turn
from databases.embedded.programs import PACKAGE
from store import (
    EventFrame,
    IdempotencyRecord,
    InvalidCursor,
    Retention,
    RunEnd,
    RunHead,
    RunRecord,
    RunWrite,
    Store,
    Waiting,
)
from store.open_store import BACKENDS, InvalidRedisUrl, open_store
from store.postgres_schema import MIGRATIONS
from store.proposals import SemanticProposal
from store.record_json import head_to_text, key
from tests.support.databases import as_admin, execute, rows_of
from tests.support.effort import tries
from tests.support.redis_server import redis_server
from tests.support.store_servers import PATIENT_S, StoreServer, play, until

_IMPATIENT_S = 1.5


@pytest.fixture
def user() -> str:
    """A new user."""
    return f"user {uuid.uuid4().hex}"


def head(
    user_id: str, conversation_id: str = "c", run_id: str = "", worker_id: str = "worker"
) -> RunHead:
    started_at = "2026-01-02T03:04:05.678+00:00"
    return RunHead(
        run_id or uuid.uuid4().hex, user_id, conversation_id, "多少?", "zh", worker_id, started_at
    )


def turn(run_id: str, question: str = "多少?") -> Turn:
    rows = ((1, "a", None), (Decimal("2.50"), [1, {"k": "v"}], True))
    asked_at = "2026-01-02T03:04:05.678+00:00"
    understood = {
        "version": 1,
        "query": {"base": ["public", "订单"], "limit": 3, "operands": [{"number": "2.50"}]},
    }
    columns = ("n", "s", "x")
    said: dict[str, list[Any]] = {"labels": ["数", "文", "其他"], "units": ["元", None, None]}
    return Turn(
        run_id,
        question,
        "DATABASE",
        "hybrid",
        "三",
        asked_at,
        "SELECT '%s'",
        2,
        columns,
        rows,
        understood,
        said,
    )


def frames(first: int, last: int) -> tuple[EventFrame, ...]:
    return tuple(
        EventFrame(n, f'{{"n": {n}, "文": "\'\\\\"}}'.encode()) for n in range(first, last + 1)
    )


def answered(about: RunHead, question: str = "多少?", count: int = 2) -> RunWrite:
    """A whole run at once."""
    return RunWrite(about, frames(1, count), RunEnd("completed", turn(about.run_id, question)))


async def ask(store: Store, user_id: str, conversation_id: str, *questions: str) -> None:
    for question in questions:
        await store.runs.write([answered(head(user_id, conversation_id), question)])


async def questions(
    store: Store, user_id: str, conversation_id: str = "c", limit: int = 1000
) -> list[str]:
    return [
        each.question for each in await store.conversations.recent(user_id, conversation_id, limit)
    ]


async def titles(store: Store, user_id: str) -> list[str]:
    return [each.title for each in (await store.conversations.page(user_id, 1000)).conversations]


# ------------------------------------------------------------------------------
# conversations


def test_a_backup_played_back_has_the_conversations(
    make_database: Callable[[str], str], admin_url: str, user: str, tmp_path: Path
) -> None:
    if "CITU_TEST_ADMIN_URL" in os.environ:
        pytest.skip("the programs here may be of another version than that server")
    kept, restored = (as_admin(make_database(""), admin_url) for _ in range(2))

    def opened(url: str) -> Store:
        return BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S)

    async def before(store: Store) -> None:
        await ask(store, user, "c", "first", "second")

    async def after(store: Store) -> None:
        assert await questions(store, user) == ["first", "second"]
        await ask(store, user, "c", "third")
        assert await questions(store, user) == ["first", "second", "third"]

    play(before, opened(kept))
    dump, found = tmp_path / "citu.dump", importlib.util.find_spec(PACKAGE)
    assert found is not None and found.submodule_search_locations
    programs = max(Path(found.submodule_search_locations[0]).glob("pginstall*/bin"))
    # As docs/operations.md says.
    backup: list[str | Path] = [
        programs / "pg_dump",
        "--format=custom",
        "--no-owner",
        "--schema=citu",
    ]
    subprocess.run([*backup, f"--file={dump}", kept], check=True)
    restore: list[str | Path] = [programs / "pg_restore", "--no-owner", "--exit-on-error"]
    subprocess.run([*restore, f"--dbname={restored}", dump], check=True)
    play(after, opened(restored))


def test_a_proposal_is_settled_once_and_the_oldest_are_forgotten(
    place: StoreServer, user: str
) -> None:
    async def scenario(store: Store) -> None:
        proposals = store.proposals
        for minute in range(3):
            at = f"2026-01-02T03:0{minute}:00.000+00:00"
            made = SemanticProposal(f"p{minute}", user, at, "--- a\n+++ a\n", "为什么 '\0")
            await proposals.add(user, made)
        assert [one.proposal_id for one in await proposals.all(user)] == ["p2", "p1", "p0"]
        assert await proposals.all(f"{user} of another datasource") == ()
        found = await proposals.find(user, "p1")
        assert found is not None and found.note == "为什么 '\0"
        both = [replace(found, state=state, settled_by="op") for state in ("applied", "declined")]
        outcomes = await asyncio.gather(*(proposals.settle(user, one) for one in both))
        assert sorted(outcomes) == [False, True]
        assert await proposals.find(user, "p1") == both[outcomes.index(True)]
        assert not await proposals.settle(user, replace(found, proposal_id="p9"))
        for number in range(200):
            at = f"2026-02-02T03:00:00.{number:03}+00:00"
            await proposals.add(user, SemanticProposal(f"n{number}", user, at, ""))
        assert len(await proposals.all(user)) == 200
        assert await proposals.find(user, "p2") is None

    play(scenario, place.open())


def test_a_conversation_is_as_it_was_said(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([answered(about, "first")])
        await ask(store, user, "c", "second", "third")
        (said, *_) = await store.conversations.recent(user, "c", 3)
        assert said == turn(about.run_id, "first")
        assert await questions(store, user, limit=2) == ["second", "third"]
        assert await questions(store, user, limit=0) == []
        (listed,) = (await store.conversations.page(user, 10)).conversations
        assert (listed.conversation_id, listed.title, listed.turn_count) == ("c", "first", 3)
        assert listed.created_at.endswith("+00:00")
        assert listed.created_at <= listed.updated_at
        page = await store.conversations.turns(user, "c", 10)
        assert page is not None
        assert (page.conversation, page.turns[0], page.next_cursor) == (listed, said, None)

    play(scenario, place.open())


def failed(
    about: RunHead, question: str = "多少?", state: Literal["error", "cancelled"] = "error"
) -> RunWrite:
    """A whole run at once, which ended in an error."""
    return RunWrite(about, frames(1, 2), RunEnd(state, failed_turn(about, question)))


def failed_turn(about: RunHead, question: str = "多少?") -> Turn:
    failure = {
        "error_type": "query_timeout",
        "error": '太久 {"failure":{',
        "message": "超时",
        "retryable": True,
    }
    asked_at = "2026-01-02T03:04:05.678+00:00"
    return Turn(about.run_id, question, None, None, "太久", asked_at, "SELECT 1", failure=failure)


def test_a_failure_is_shown_and_no_question_goes_on_from_it(place: StoreServer, user: str) -> None:
    """However many there are, the latest answers are found."""

    async def scenario(store: Store) -> None:
        broken = head(user)
        await store.runs.write([failed(broken, "broken first")])
        assert await titles(store, user) == ["broken first"]
        assert await questions(store, user) == []
        await ask(store, user, "c", "one", 'said {"failure":{ itself')
        for number in range(7):
            await store.runs.write([failed(head(user), f"broken {number}", "cancelled")])
        assert await questions(store, user, limit=1) == ['said {"failure":{ itself']
        assert await questions(store, user, limit=2) == ["one", 'said {"failure":{ itself']
        assert await questions(store, user, limit=50) == ["one", 'said {"failure":{ itself']
        page = await store.conversations.turns(user, "c", 100)
        assert page is not None
        assert page.conversation.turn_count == len(page.turns) == 10
        assert page.turns[0] == failed_turn(broken, "broken first")
        assert [turn.failure is None for turn in page.turns] == [False, True, True, *[False] * 7]

    play(scenario, place.open(max_turns=20))


def test_whoever_ends_a_run_adds_its_turn_with_the_end(place: StoreServer, user: str) -> None:
    """A waiting run that is cancelled, and one whose worker is gone: once, and only if they are
    ended by it.
    """

    async def scenario(store: Store) -> None:
        waits, runs = head(user), head(user, "other")
        await ask(store, user, "c", "before")
        await store.runs.write([asking(waits, "q"), RunWrite(runs, frames(1, 2))])
        await until(lambda: is_abandoned(store, runs))
        for _ in range(2):
            said = failed_turn(waits)
            assert not await store.runs.end_waiting(waits, EventFrame(9, b"{}"), turn=said)
            is_ended = [
                await store.runs.end_waiting(waits, EventFrame(3, b"{}"), turn=said),
                await store.runs.end_abandoned(runs, EventFrame(3, b"{}"), failed_turn(runs)),
            ]
            page = await store.conversations.turns(user, "c", 10)
            assert page is not None
            assert page.turns[1:] == (said,)
            (begun,) = (await store.conversations.turns(user, "other", 10) or page).turns
            assert begun == failed_turn(runs)
        assert is_ended == [False, False]
        assert sorted(await titles(store, user)) == ["before", "多少?"]

    async def is_abandoned(store: Store, about: RunHead) -> bool:
        return about.run_id in {record.head.run_id for record in await store.runs.abandoned()}

    play(scenario, place.open(lease_s=0.2))


def test_turns_of_runs_ended_by_others_count_as_others_do(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await ask(store, user, "c", "one", "two", "three")
        waits = head(user)
        await store.runs.write([asking(waits, "q")])
        assert await store.runs.end_waiting(
            waits, EventFrame(3, b"{}"), turn=failed_turn(waits, "four")
        )
        page = await store.conversations.turns(user, "c", 10)
        assert page is not None
        assert [turn.question for turn in page.turns] == ["two", "three", "four"]
        assert await questions(store, user, limit=10) == ["two", "three"]

    play(scenario, place.open(max_turns=3))


def test_what_is_unknown_is_not_there(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        conversations = store.conversations
        assert await conversations.recent(user, "c", 5) == ()
        assert (await conversations.page(user, 5)).conversations == ()
        assert await conversations.turns(user, "c", 5) is None
        assert not await conversations.rename(user, "c", "title")
        assert not await conversations.clear(user, "c")
        assert not await conversations.delete(user, "c")
        assert await conversations.delete_all(user) == 0
        assert await store.runs.find(user, "r") is None
        assert await store.runs.frames(user, "r", 0, 5) == ()
        assert not await store.runs.end_abandoned(head(user), EventFrame(1, b"{}"))
        assert not await store.runs.renew([uuid.uuid4().hex], "worker")
        assert not await store.runs.renew([], "worker")
        assert not await store.runs.write([])
        await store.runs.request_cancel(user, "r")
        await store.runs.release_key(user, "key", "r")
        await store.ping()

    play(scenario, place.open())


def test_renamed_cleared_and_deleted(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        conversations = store.conversations
        for name in "abc":
            await ask(store, user, name, f"{name}?")
        assert await conversations.rename(user, "a", "营业 '\0'")
        await ask(store, user, "a", "more")
        assert await conversations.clear(user, "a")
        cleared = await conversations.turns(user, "a", 5)
        assert cleared is not None
        assert (cleared.conversation.title, cleared.conversation.turn_count, cleared.turns) == (
            "营业 '\0'",
            0,
            (),
        )
        await ask(store, user, "a", "again")
        assert await questions(store, user, "a") == ["again"]
        assert await titles(store, user) == ["营业 '\0'", "c?", "b?"]
        assert await conversations.delete(user, "b")
        assert not await conversations.delete(user, "b")
        assert await questions(store, user, "b") == []
        assert await conversations.delete_all(user) == 2
        assert await titles(store, user) == []
        await ask(store, user, "a", "anew")
        assert (await titles(store, user), await questions(store, user, "a")) == (
            ["anew"],
            ["anew"],
        )

    play(scenario, place.open())


def test_the_oldest_turns_go_first(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await ask(store, user, "c", *map(str, range(5)))
        assert await questions(store, user) == ["2", "3", "4"]
        await store.runs.write([answered(head(user), str(n)) for n in range(5, 12)])
        assert await questions(store, user) == ["9", "10", "11"]
        page = await store.conversations.turns(user, "c", 10)
        assert page is not None
        assert (page.conversation.title, page.conversation.turn_count, len(page.turns)) == (
            "0",
            3,
            3,
        )

    play(scenario, place.open(max_turns=3))


def test_conversations_are_paged_without_gap_or_repetition(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        names = [f"c{n}" for n in range(11)]
        # All at one moment, more or less: many have the same time.
        await store.runs.write([answered(head(user, name)) for name in names])
        pages: list[list[str]] = []
        cursor = None
        while not pages or cursor:
            page = await store.conversations.page(user, 3, cursor)
            pages.append([each.conversation_id for each in page.conversations])
            cursor = page.next_cursor
            await ask(
                store, user, f"new {len(pages)}", "?"
            )  # what is new comes before, not between
        assert list(map(len, pages)) == [3, 3, 3, 2]
        assert sorted(sum(pages, [])) == sorted(names)
        assert len((await store.conversations.page(user, 15)).conversations) == 15
        assert (await store.conversations.page(user, 15)).next_cursor is None

    play(scenario, place.open())


def test_turns_are_paged_from_the_latest_back(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await ask(store, user, "c", *map(str, range(5)))
        first = await store.conversations.turns(user, "c", 2)
        assert first is not None
        await ask(store, user, "c", "5")
        second = await store.conversations.turns(user, "c", 2, first.next_cursor)
        assert second is not None
        third = await store.conversations.turns(user, "c", 2, second.next_cursor)
        assert third is not None
        asked = [[each.question for each in page.turns] for page in (first, second, third)]
        assert (asked, third.next_cursor) == ([["3", "4"], ["1", "2"], ["0"]], None)
        await store.conversations.clear(user, "c")
        after = await store.conversations.turns(user, "c", 2, first.next_cursor)
        assert after is not None
        assert (after.turns, after.next_cursor) == ((), None)

    play(scenario, place.open())


@pytest.mark.parametrize(
    "cursor", ["", "x", "-1", "0", "1" * 30, "1-2", "'", "9" * 17 + "-" + "0" * 32]
)
def test_a_cursor_nobody_gave_is_refused(place: StoreServer, user: str, cursor: str) -> None:
    async def scenario(store: Store) -> None:
        await ask(store, user, "c", "?")
        with pytest.raises(InvalidCursor):
            await store.conversations.page(user, 5, cursor)
        with pytest.raises(InvalidCursor):
            await store.conversations.turns(user, "c", 5, cursor)

    play(scenario, place.open())


def test_conversations_expire_after_their_last_turn(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await ask(store, user, "c", "one")

        async def is_gone() -> bool:
            return not await questions(store, user)

        await until(is_gone)
        assert await titles(store, user) == []
        assert await store.conversations.turns(user, "c", 5) is None
        assert not await store.conversations.rename(user, "c", "title")
        assert not await store.conversations.delete(user, "c")
        await ask(store, user, "c", "two")
        assert await questions(store, user) in (["two"], [])  # it may have expired again
        assert await titles(store, user) in (["two"], [])

    play(scenario, place.open(conversation_ttl_s=0.2))


def test_appends_at_once_lose_none(place: StoreServer, user: str) -> None:
    async def scenario(*stores: Store) -> None:
        expected: dict[str, list[str]] = {"a": [], "b": []}
        chance = random.Random(4)
        batches = []
        for n in range(30):
            names = [chance.choice("ab") for _ in range(chance.randrange(1, 4))]
            writes = [answered(head(user, name), f"{n}.{i}") for i, name in enumerate(names)]
            for i, name in enumerate(names):
                expected[name].append(f"{n}.{i}")
            batches.append(chance.choice(stores).runs.write(writes))
        await asyncio.gather(*batches)
        for name, asked in expected.items():
            kept = await questions(stores[0], user, name)
            assert sorted(kept) == sorted(asked)
            for n in range(30):  # what came together stays in order
                mine = [question for question in kept if question.startswith(f"{n}.")]
                assert mine == sorted(mine)

    play(scenario, place.open(), place.open())


# ------------------------------------------------------------------------------
# runs


def test_a_run_grows_and_ends(place: StoreServer, user: str) -> None:
    async def scenario(one: Store, two: Store) -> None:
        about = head(user)
        await one.runs.write([RunWrite(about, frames(1, 2))])
        running = await two.runs.find(user, about.run_id)
        assert running is not None
        assert (running.head, running.state, running.last_seq, running.is_abandoned) == (
            about,
            "running",
            2,
            False,
        )
        await one.runs.write([RunWrite(about, frames(3, 3))])
        await one.runs.write([RunWrite(about, frames(4, 5), RunEnd("cancelled"))])
        ended = await two.runs.find(user, about.run_id)
        assert ended is not None
        assert (ended.state, ended.last_seq, ended.is_abandoned) == ("cancelled", 5, False)
        assert await two.runs.frames(user, about.run_id, 0, 100) == frames(1, 5)
        assert await two.runs.frames(user, about.run_id, 1, 2) == frames(2, 3)
        assert await two.runs.frames(user, about.run_id, 5, 2) == ()
        assert await two.runs.frames(user, about.run_id, 10**30, 2) == ()
        assert await two.runs.frames(user, about.run_id, -3, 2) == frames(1, 2)
        assert await questions(two, user) == []

    play(scenario, place.open(), place.open())


def test_frames_come_back_byte_for_byte(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        every = "".join(map(chr, [*range(1, 0xD800), *range(0xE000, 0x11000)])).encode()
        kept = tuple(
            EventFrame(n, data)
            for n, data in enumerate((every, b"", b"%s $1 \\x00 ''", every * 5), start=1)
        )
        await store.runs.write([RunWrite(about, kept)])
        assert await store.runs.frames(user, about.run_id, 0, 10) == kept

    play(scenario, place.open())


def test_repeating_a_write_changes_nothing(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        begun, ended = (
            RunWrite(about, frames(1, 2)),
            replace(answered(about, count=4), frames=frames(3, 4)),
        )
        for write in (begun, begun, ended, ended, begun, answered(about, count=4)):
            assert not await store.runs.write([write])
        assert not await store.runs.write([begun, ended, ended])
        assert await store.runs.frames(user, about.run_id, 0, 10) == frames(1, 4)
        assert await questions(store, user) == ["多少?"]
        await store.conversations.clear(user, "c")
        await store.runs.write([ended])
        assert await questions(store, user) == []
        overlapping = head(user)
        await store.runs.write(
            [RunWrite(overlapping, frames(1, 2)), RunWrite(overlapping, frames(2, 4))]
        )
        await store.runs.write([RunWrite(overlapping, frames(1, 2))])
        assert await store.runs.frames(user, overlapping.run_id, 0, 10) == frames(1, 4)
        record = await store.runs.find(user, overlapping.run_id)
        assert record is not None
        assert record.last_seq == 4

    play(scenario, place.open())


def test_many_runs_in_one_write(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        abouts = [head(user, f"c{n % 7}") for n in range(60)]
        await store.runs.write(
            [answered(about, str(n), count=1 + n % 5) for n, about in enumerate(abouts)]
        )
        for n, about in enumerate(abouts):
            assert await store.runs.frames(user, about.run_id, 0, 10) == frames(1, 1 + n % 5)
        assert await questions(store, user, "c3") == [str(n) for n in range(60) if n % 7 == 3]

    play(scenario, place.open())


def test_only_a_run_whose_lease_ran_out_is_abandoned(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        held, lost = head(user), head(user)
        await patient.runs.write([RunWrite(held, frames(1, 1))])
        await hasty.runs.write([RunWrite(lost, frames(1, 2))])

        async def abandoned() -> set[str]:
            found = [
                record for record in await patient.runs.abandoned() if record.head.user_id == user
            ]
            assert all(record.is_abandoned and record.state == "running" for record in found)
            return {record.head.run_id for record in found}

        assert await until(abandoned) == {lost.run_id}
        record = await patient.runs.find(user, lost.run_id)
        assert record is not None
        assert record.is_abandoned
        assert not await patient.runs.end_abandoned(held, EventFrame(2, b"{}"))
        assert not await patient.runs.end_abandoned(lost, EventFrame(2, b"{}"))
        assert not await patient.runs.end_abandoned(lost, EventFrame(4, b"{}"))
        assert await patient.runs.end_abandoned(lost, EventFrame(3, b"{}"))
        assert not await patient.runs.end_abandoned(lost, EventFrame(3, b"{}"))
        assert not await abandoned()
        ended = await hasty.runs.find(user, lost.run_id)
        assert ended is not None
        assert (ended.state, ended.last_seq, ended.is_abandoned) == ("error", 3, False)
        late = [replace(answered(lost, "late", count=9)), answered(held, "held")]
        assert set(await hasty.runs.write(late)) == {lost.run_id}
        assert await hasty.runs.frames(user, lost.run_id, 0, 10) == (
            *frames(1, 2),
            EventFrame(3, b"{}"),
        )
        assert await questions(hasty, user) == ["held"]

    play(scenario, place.open(lease_s=600), place.open(lease_s=0.05))


def test_a_lease_is_renewed_by_its_worker_alone(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        about, ended = head(user), head(user)
        await hasty.runs.write([RunWrite(about), answered(ended)])

        async def is_abandoned() -> bool:
            record = await hasty.runs.find(user, about.run_id)
            assert record is not None
            return record.is_abandoned

        await until(is_abandoned)
        assert not await patient.runs.renew([about.run_id, ended.run_id], "another")
        assert await is_abandoned()
        assert not await patient.runs.renew([about.run_id, ended.run_id], "worker")
        assert not await is_abandoned()
        assert not await patient.runs.end_abandoned(about, EventFrame(1, b"{}"))
        await patient.runs.request_cancel("another", about.run_id)
        assert not await patient.runs.renew([about.run_id], "worker")
        await patient.runs.request_cancel(user, about.run_id)
        await patient.runs.request_cancel(user, ended.run_id)
        assert set(await patient.runs.renew([ended.run_id, about.run_id], "worker")) == {
            about.run_id
        }
        await hasty.runs.write(
            [RunWrite(about, frames(1, 1))]
        )  # a write renews as well: with its own store's lease
        await until(is_abandoned)

    play(scenario, place.open(lease_s=600), place.open(lease_s=0.05))


def test_runs_and_idempotency_keys_expire(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([answered(about)])
        await store.runs.reserve_key(user, "key", IdempotencyRecord(about.run_id, "body"))

        async def is_gone() -> bool:
            return await store.runs.find(user, about.run_id) is None

        await until(is_gone)
        assert await store.runs.frames(user, about.run_id, 0, 10) == ()
        assert about.run_id not in {record.head.run_id for record in await store.runs.abandoned()}

        async def is_free() -> bool:
            return (
                await store.runs.reserve_key(user, "key", IdempotencyRecord("other", "body"))
            ).run_id == "other"

        await until(is_free)
        assert await questions(store, user) == ["多少?"]

    play(scenario, place.open(run_ttl_s=0.1))


def test_a_running_run_is_kept_while_its_worker_holds_it(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, *hasty: Store) -> None:
        # A busy machine may take longer to renew than a run lives, and then has more time.
        for store in hasty:
            about, expired = head(user), head(user)
            await store.runs.write([RunWrite(about, frames(1, 1)), RunWrite(expired, frames(1, 1))])
            await patient.runs.renew([about.run_id], "worker")
            if await patient.runs.find(user, about.run_id) is not None:
                break

        async def is_gone() -> bool:
            return await patient.runs.find(user, expired.run_id) is None

        await until(is_gone)
        assert await patient.runs.frames(user, about.run_id, 0, 10) == frames(1, 1)

    play(scenario, place.open(), *(place.open(run_ttl_s=seconds) for seconds in (0.3, 3, 15)))


def test_an_idempotency_key_belongs_to_the_first(place: StoreServer, user: str) -> None:
    async def scenario(one: Store, two: Store) -> None:
        wanted = [IdempotencyRecord(f"run {n}", f"body '{n}'\0") for n in range(10)]
        held = await asyncio.gather(
            *(
                (one, two)[n % 2].runs.reserve_key(user, "k\0", each)
                for n, each in enumerate(wanted)
            )
        )
        assert len(set(held)) == 1
        assert held[0] in wanted
        await one.runs.release_key(user, "k\0", "some other run")
        assert await one.runs.reserve_key(user, "k\0", IdempotencyRecord("late", "body")) == held[0]
        assert await one.runs.reserve_key(
            "another", "k\0", IdempotencyRecord("late", "body")
        ) == IdempotencyRecord("late", "body")
        await one.runs.release_key(user, "k\0", held[0].run_id)
        assert await two.runs.reserve_key(
            user, "k\0", IdempotencyRecord("late", "body")
        ) == IdempotencyRecord("late", "body")
        await one.runs.release_key("another", "k\0", "late")

    play(scenario, place.open(), place.open())


# ------------------------------------------------------------------------------
# waiting for the user

_REQUEST = {"question": "多少?", "share": 0.25, "groups": ["a", "\0"], "none": None, "\ud800": True}


def question(interrupt_id: str) -> Waiting:
    return Waiting(interrupt_id, "etl", _REQUEST)


def asking(about: RunHead, interrupt_id: str, first: int = 1, last: int = 2) -> RunWrite:
    return RunWrite(about, frames(first, last), waiting=question(interrupt_id))


def by(about: RunHead, worker_id: str) -> RunHead:
    return replace(about, worker_id=worker_id)


async def known(store: Store, about: RunHead) -> RunRecord:
    record = await store.runs.find(about.user_id, about.run_id)
    assert record is not None
    return record


async def abandoned(store: Store, about: RunHead) -> RunRecord:
    """The run, once its lease has run out."""

    async def find() -> RunRecord | None:
        found = [
            record for record in await store.runs.abandoned() if record.head.run_id == about.run_id
        ]
        return found[0] if found else None

    record: RunRecord = await until(find)
    return record


def test_a_run_waits_and_goes_on_with_the_answer(place: StoreServer, user: str) -> None:
    answer = {"choice": "b", "n": [1, 2.5, None, "\0\ud800"]}

    async def scenario(one: Store, two: Store) -> None:
        about = head(user, worker_id="one")
        assert not await one.runs.write([RunWrite(about, frames(1, 1))])
        assert not await one.runs.write([asking(about, "q1", 2, 3)])
        assert await known(two, about) == RunRecord(about, "waiting", 3, waiting=question("q1"))
        assert await two.runs.frames(user, about.run_id, 0, 10) == frames(1, 3)
        assert await two.runs.resume(user, about.run_id, "q1", answer, "two") == "resumed"
        resumed = RunRecord(by(about, "two"), "running", 3, waiting=question("q1"), answer=answer)
        assert await known(one, about) == resumed
        assert not await two.runs.write([RunWrite(by(about, "two"), frames(4, 4))])
        assert await known(one, about) == replace(
            resumed, last_seq=4
        )  # frames don't settle the answer
        end = RunEnd("completed", turn(about.run_id))
        assert not await two.runs.write([RunWrite(by(about, "two"), frames(5, 5), end)])
        assert await known(one, about) == RunRecord(by(about, "two"), "completed", 5)
        assert await one.runs.frames(user, about.run_id, 0, 10) == frames(1, 5)
        assert await questions(one, user) == ["多少?"]
        assert await one.runs.resume(user, about.run_id, "q1", answer, "two") == "answered"

    play(scenario, place.open(), place.open())


def test_a_run_may_wait_several_times(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        for n in range(1, 4):
            assert not await store.runs.write([asking(about, f"q{n}", n, n)])
            assert await known(store, about) == RunRecord(
                about, "waiting", n, waiting=question(f"q{n}")
            )
            for before in range(1, n):
                assert (
                    await store.runs.resume(user, about.run_id, f"q{before}", None, about.worker_id)
                    == "answered"
                )
            assert (
                await store.runs.resume(user, about.run_id, f"q{n + 1}", None, "worker")
                == "unknown"
            )
            about = by(about, f"worker {n}")
            assert (
                await store.runs.resume(user, about.run_id, f"q{n}", None, about.worker_id)
                == "resumed"
            )
            resumed = await known(store, about)
            assert (resumed.answer, resumed.is_resumed) == (None, True)

    play(scenario, place.open())


def test_an_answer_is_accepted_once(place: StoreServer, user: str) -> None:
    async def scenario(one: Store, two: Store) -> None:
        for _ in range(5):
            about = head(user)
            await one.runs.write([asking(about, "q")])
            answering = [
                (one, two)[n % 2].runs.resume(user, about.run_id, "q", f"answer {n}", f"worker {n}")
                for n in range(8)
            ]
            said = await asyncio.gather(*answering)
            assert sorted(said) == ["answered"] * 7 + ["resumed"]
            winner = said.index("resumed")
            record = await known(two, about)
            assert (record.answer, record.head.worker_id) == (
                f"answer {winner}",
                f"worker {winner}",
            )

    play(scenario, place.open(), place.open())


def test_an_answer_or_its_end_comes_first_and_not_both(place: StoreServer, user: str) -> None:
    async def scenario(one: Store, two: Store) -> None:
        for _ in range(10):
            about = head(user)
            await one.runs.write([asking(about, "q")])
            said, is_ended = await asyncio.gather(
                one.runs.resume(user, about.run_id, "q", "yes", "one"),
                two.runs.end_waiting(about, EventFrame(3, b"{}")),
            )
            state = (await known(one, about)).state
            assert (said, is_ended, state) in {
                ("resumed", False, "running"),
                ("answered", True, "cancelled"),
            }

    play(scenario, place.open(), place.open())


def test_only_the_user_who_was_asked_answers(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about, running, ended = head(user), head(user), head(user)
        await store.runs.write(
            [asking(about, "q"), RunWrite(running, frames(1, 1)), answered(ended)]
        )
        before = await known(store, about)
        assert await store.runs.resume("another", about.run_id, "q", "yes", "w") == "unknown"
        assert not await store.runs.end_waiting(
            replace(about, user_id="another"), EventFrame(3, b"{}")
        )
        assert await store.runs.resume(user, about.run_id, "other", "yes", "w") == "unknown"
        assert await store.runs.resume(user, uuid.uuid4().hex, "q", "yes", "w") == "unknown"
        for other in (running, ended):
            assert await store.runs.resume(user, other.run_id, "q", "yes", "w") == "unknown"
            assert not await store.runs.end_waiting(
                other, EventFrame((await known(store, other)).last_seq + 1, b"")
            )
        assert await known(store, about) == before

    play(scenario, place.open())


def test_repeating_a_question_or_an_answer_changes_nothing(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user, worker_id="one")
        begun, asked = RunWrite(about, frames(1, 1)), asking(about, "q1", 2, 3)
        for write in (
            begun,
            asked,
            asked,
            begun,
            asking(about, "q1", 1, 3),
            replace(begun, frames=()),
        ):
            assert not await store.runs.write([write])
        assert await known(store, about) == RunRecord(about, "waiting", 3, waiting=question("q1"))
        for worker_id in ("one", "two"):  # the worker that asked may be the one that goes on
            for _ in range(2):
                assert (
                    await store.runs.resume(user, about.run_id, "q1", [1], worker_id) == "resumed"
                )
                assert (
                    await store.runs.resume(user, about.run_id, "q1", [2], worker_id) == "answered"
                )
                for write in (begun, asked):  # of which the reply had been lost
                    assert not await store.runs.write([write])
                record = await known(store, about)
                assert (record.state, record.answer, record.head.worker_id) == (
                    "running",
                    [1],
                    worker_id,
                )
            about = head(user, worker_id="one")
            begun, asked = RunWrite(about, frames(1, 1)), asking(about, "q1", 2, 3)
            assert not await store.runs.write([begun])
            assert not await store.runs.write([asked])

    play(scenario, place.open())


def test_what_a_worker_writes_of_a_run_that_waits_is_not_kept(
    place: StoreServer, user: str
) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([asking(about, "q")])
        before = await known(store, about)
        late = [
            RunWrite(about, frames(3, 3)),
            RunWrite(about, frames(1, 3), RunEnd("cancelled")),
            RunWrite(about, (), RunEnd("completed", turn(about.run_id))),
            asking(about, "q2", 3, 4),
        ]
        for write in late:
            assert dict(await store.runs.write([write])) == {about.run_id: "taken"}
        assert await known(store, about) == before
        assert await questions(store, user) == []
        assert await store.runs.frames(user, about.run_id, 0, 10) == frames(1, 2)

    play(scenario, place.open())


def test_a_waiting_run_is_held_by_nobody(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        about, lost = head(user), head(user)
        await hasty.runs.write([asking(about, "q"), RunWrite(lost, frames(1, 1))])
        await abandoned(patient, lost)
        assert about.run_id not in {record.head.run_id for record in await patient.runs.abandoned()}
        record = await known(patient, about)
        assert (record.state, record.is_abandoned) == ("waiting", False)
        assert not await patient.runs.end_abandoned(about, EventFrame(3, b"{}"))
        assert not await patient.runs.take_over(about.run_id, "another")
        await patient.runs.request_cancel(user, about.run_id)
        assert not await patient.runs.renew([about.run_id], "worker")
        assert await patient.runs.resume(user, about.run_id, "q", 1, "two") == "resumed"
        assert not (await known(patient, about)).is_abandoned
        assert not await patient.runs.renew([about.run_id], "worker")
        await patient.runs.request_cancel(user, about.run_id)
        assert not await patient.runs.renew(
            [about.run_id], "worker"
        )  # the worker no longer has the run
        assert set(await patient.runs.renew([about.run_id], "two")) == {about.run_id}

    play(scenario, place.open(lease_s=600), place.open(lease_s=0.05))


def test_an_answer_forgets_a_cancellation_that_came_too_late(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([RunWrite(about, frames(1, 1))])
        await store.runs.request_cancel(user, about.run_id)
        await store.runs.write([asking(about, "q")])
        await store.runs.resume(user, about.run_id, "q", 1, "worker")
        assert not await store.runs.renew([about.run_id], "worker")

    play(scenario, place.open())


def test_a_resumed_run_outlives_its_worker(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        about = head(user, worker_id="one")
        await patient.runs.write([asking(about, "q1")])
        assert not await patient.runs.take_over(about.run_id, "three")
        assert await hasty.runs.resume(user, about.run_id, "q1", {"n": 1}, "two") == "resumed"
        await hasty.runs.write([RunWrite(by(about, "two"), frames(3, 3))])
        found = await abandoned(patient, about)
        assert found == RunRecord(by(about, "two"), "running", 3, True, question("q1"), {"n": 1})
        taken_over = await asyncio.gather(
            *(patient.runs.take_over(about.run_id, f"three {n}") for n in range(4))
        )
        assert sorted(taken_over) == [False, False, False, True]
        winner = f"three {taken_over.index(True)}"
        assert await known(patient, about) == replace(
            found, head=by(about, winner), is_abandoned=False, takeovers=1
        )
        assert not await patient.runs.end_abandoned(about, EventFrame(4, b"{}"))
        # A worker that counted as dead comes back: its earlier writes are there, new ones are not
        # kept.
        zombie = by(about, "two")
        assert not await hasty.runs.write([RunWrite(zombie, frames(3, 3))])
        for late in (
            RunWrite(zombie, frames(3, 4)),
            RunWrite(zombie, (), RunEnd("cancelled")),
            asking(zombie, "q2", 4, 4),
        ):
            assert dict(await hasty.runs.write([late])) == {about.run_id: "taken"}
        assert not await hasty.runs.renew([about.run_id], "two")
        assert await hasty.runs.resume(user, about.run_id, "q1", {"n": 1}, "two") == "answered"
        assert not await patient.runs.write([answered_by(by(about, winner), 4)])
        assert dict(await hasty.runs.write([RunWrite(zombie, frames(4, 4))])) == {
            about.run_id: "taken"
        }
        assert (await known(patient, about)).state == "completed"
        assert await patient.runs.frames(user, about.run_id, 0, 10) == frames(1, 4)

    play(scenario, place.open(lease_s=600), place.open(lease_s=0.05))


def answered_by(about: RunHead, seq: int) -> RunWrite:
    return RunWrite(about, frames(seq, seq), RunEnd("completed", turn(about.run_id)))


def test_only_an_abandoned_run_can_be_taken_over(place: StoreServer, user: str) -> None:
    async def scenario(patient: Store, hasty: Store) -> None:
        request = {"question": {"parameters": {"ratio": 0.5, "keys": ["键", None]}}}
        never_asked = replace(head(user), request=request)
        asked_again, ended = head(user), head(user)
        await hasty.runs.write(
            [RunWrite(never_asked, frames(1, 2)), asking(asked_again, "q1"), asking(ended, "q1")]
        )
        found = await abandoned(patient, never_asked)
        assert found == RunRecord(never_asked, "running", 2, is_abandoned=True)
        assert isinstance((found.head.request or {})["question"]["parameters"]["ratio"], float)
        assert await patient.runs.take_over(never_asked.run_id, "another")
        assert not await patient.runs.take_over(never_asked.run_id, "a third")
        held = by(never_asked, "another")
        assert await known(patient, never_asked) == RunRecord(held, "running", 2, takeovers=1)
        assert dict(await hasty.runs.write([RunWrite(never_asked, frames(3, 3))])) == {
            never_asked.run_id: "taken"
        }
        await patient.runs.write([asking(held, "q1", 3, 3)])
        assert await patient.runs.resume(user, held.run_id, "q1", "yes", "another") == "resumed"
        assert (await known(patient, held)).takeovers == 0
        for about in (asked_again, ended):
            assert await hasty.runs.resume(user, about.run_id, "q1", "yes", "worker") == "resumed"
        await hasty.runs.write([asking(asked_again, "q2", 3, 3)])
        assert not await patient.runs.take_over(asked_again.run_id, "another")
        await abandoned(patient, ended)
        assert await patient.runs.end_abandoned(ended, EventFrame(3, b"{}"))
        assert await known(patient, ended) == RunRecord(ended, "error", 3)
        assert not await patient.runs.take_over(ended.run_id, "another")
        assert await patient.runs.resume(user, ended.run_id, "q1", "yes", "worker") == "answered"
        assert not await patient.runs.take_over(uuid.uuid4().hex, "another")

    play(scenario, place.open(lease_s=600), place.open(lease_s=0.05))


@pytest.mark.parametrize("state", ["cancelled", "error"])
def test_a_run_is_ended_while_it_waits(
    place: StoreServer, user: str, state: Literal["cancelled", "error"]
) -> None:
    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([asking(about, "q")])
        for wrong in (2, 4):
            assert not await store.runs.end_waiting(about, EventFrame(wrong, b"{}"), state)
        assert await store.runs.end_waiting(about, EventFrame(3, b"{}"), state)
        assert not await store.runs.end_waiting(about, EventFrame(4, b"{}"), state)
        assert await known(store, about) == RunRecord(about, state, 3)
        assert await store.runs.frames(user, about.run_id, 0, 10) == (
            *frames(1, 2),
            EventFrame(3, b"{}"),
        )
        assert await store.runs.resume(user, about.run_id, "q", "yes", "worker") == "answered"
        assert await store.runs.resume(user, about.run_id, "other", "yes", "worker") == "unknown"
        assert not await store.runs.write(
            [asking(about, "q")]
        )  # its reply may have been lost before
        assert (await known(store, about)).state == state

    play(scenario, place.open())


def test_a_waiting_run_is_kept_for_a_time_of_its_own(place: StoreServer, user: str) -> None:
    async def scenario(long: Store, short: Store) -> None:
        waits, resumed, ends = head(user), head(user), head(user)
        await long.runs.write([asking(about, "q") for about in (waits, resumed, ends)])
        assert await long.runs.resume(user, resumed.run_id, "q", 1, "worker") == "resumed"
        assert await long.runs.end_waiting(ends, EventFrame(3, b"{}"))

        async def is_gone(about: RunHead) -> bool:
            return await long.runs.find(user, about.run_id) is None

        await until(lambda: is_gone(resumed))  # the run's own time applies again
        await until(lambda: is_gone(ends))
        assert (await known(long, waits)).state == "waiting"
        assert await long.runs.frames(user, waits.run_id, 0, 10) == frames(1, 2)
        forgotten = head(user)
        await short.runs.write([asking(forgotten, "q")])
        await until(lambda: is_gone(forgotten))
        assert await short.runs.resume(user, forgotten.run_id, "q", 1, "worker") == "unknown"
        assert not await short.runs.end_waiting(forgotten, EventFrame(3, b"{}"))
        assert not await short.runs.take_over(forgotten.run_id, "worker")
        assert await short.runs.frames(user, forgotten.run_id, 0, 10) == ()

    play(
        scenario,
        place.open(run_ttl_s=0.2, waiting_ttl_s=600),
        place.open(run_ttl_s=600, waiting_ttl_s=0.2),
    )


def test_a_question_survives_a_server_that_is_stopped_dead(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        waits, resumed, taken_over, cancelled = abouts = [head(user) for _ in range(4)]
        await store.runs.write([RunWrite(about, frames(1, 1)) for about in abouts])
        await store.runs.write([asking(about, "q", 2, 2) for about in abouts])
        await store.runs.resume(user, resumed.run_id, "q", "yes", "two")
        await store.runs.resume(user, taken_over.run_id, "q", "yes", "two")
        await abandoned(store, taken_over)
        assert await store.runs.take_over(taken_over.run_id, "three")
        assert await store.runs.end_waiting(cancelled, EventFrame(3, b"{}"))
        last = head(user)
        await store.runs.write([asking(last, "q")])
        await asyncio.to_thread(place.stop, signal.SIGKILL)
        await asyncio.to_thread(place.start)
        for about in abouts:
            assert (await store.runs.frames(user, about.run_id, 0, 10))[:2] == frames(1, 2)
        for about in (waits, last):
            assert await known(store, about) == RunRecord(
                about, "waiting", 2, waiting=question("q")
            )
        for about, worker_id in ((resumed, "two"), (taken_over, "three")):
            record = replace(await known(store, about), is_abandoned=False, takeovers=0)
            assert record == RunRecord(
                by(about, worker_id), "running", 2, waiting=question("q"), answer="yes"
            )
            assert await store.runs.resume(user, about.run_id, "q", "no", "four") == "answered"
        assert (await known(store, cancelled)).state == "cancelled"
        assert await store.runs.resume(user, waits.run_id, "q", "yes", "four") == "resumed"

    play(scenario, place.open(lease_s=0.05))


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "ask", "end", "resume", "close", "repeat"]),
        st.sampled_from("ab"),
        st.integers(0, 2),
    ),
    max_size=14,
)


@settings(max_examples=tries(15), deadline=None)
@given(steps=_STEPS)
def test_whatever_workers_do_a_run_stays_whole(
    place: StoreServer, steps: list[tuple[str, str, int]]
) -> None:
    """Two workers write, ask, answer, end and repeat in any order; the store must agree with a
    simple model.
    """

    async def scenario(store: Store) -> None:
        about = head(uuid.uuid4().hex, worker_id="a")
        model = _Run()
        written: list[RunWrite] = []
        for action, worker_id, n in steps:
            if action == "resume":
                said = await store.runs.resume(
                    about.user_id, about.run_id, f"q{n}", "yes", worker_id
                )
                assert said == model.resume(f"q{n}", worker_id)
            elif action == "close":
                assert await store.runs.end_waiting(about, frames(99, 99)[0]) is False
                is_ended = await store.runs.end_waiting(about, EventFrame(model.last + 1, b""))
                assert is_ended == model.close()
            elif action != "repeat" or written:
                write = _step(by(about, worker_id), action, model.last, f"q{n}", written)
                unkept = await store.runs.write([write])
                assert dict(unkept) == ({about.run_id: "taken"} if model.write(write) else {})
                written.append(write)
            record = await store.runs.find(about.user_id, about.run_id)
            if record is not None:
                asked = record.waiting.interrupt_id if record.waiting else None
                assert (record.state, record.last_seq, asked) == (
                    model.state,
                    model.last,
                    model.asked,
                )
                assert (record.answer, record.head.worker_id) == (
                    "yes" if record.is_resumed else None,
                    model.worker,
                )
        kept = await store.runs.frames(about.user_id, about.run_id, 0, 100)
        assert [frame.seq for frame in kept] == list(range(1, model.last + 1))

    play(scenario, place.open(lease_s=600))


def _step(
    about: RunHead, action: str, last: int, interrupt_id: str, written: list[RunWrite]
) -> RunWrite:
    new = frames(last + 1, last + 1)
    if action == "repeat":
        return written[len(written) // 2]
    if action == "ask":
        return RunWrite(about, new, waiting=question(interrupt_id))
    return RunWrite(about, new, RunEnd("completed") if action == "end" else None)


class _Run:
    """A simple model of one run in the store."""

    def __init__(self) -> None:
        self.state, self.last, self.held_from, self.worker = "", 0, 0, ""
        self.asked: str | None = None
        self.settled: set[str] = set()

    def write(self, write: RunWrite) -> bool:
        """Tell whether it is refused."""
        newest = write.frames[-1].seq
        worker_id = write.head.worker_id
        if self.state and worker_id != self.worker:
            return write.end is not None or newest > self.held_from
        if self.state == "waiting":
            return write.end is not None or newest > self.last
        if self.state not in ("", "running") or (
            write.waiting and write.waiting.interrupt_id in self.settled
        ):
            return False
        if write.state != "running":
            self.asked = write.waiting.interrupt_id if write.waiting else None
        self.state, self.last, self.worker = write.state, max(newest, self.last), worker_id
        return False

    def resume(self, interrupt_id: str, worker_id: str) -> str:
        if self.state == "waiting" and self.asked == interrupt_id:
            self.state, self.worker, self.held_from = "running", worker_id, self.last
            self.settled.add(interrupt_id)
            return "resumed"
        if self.state == "running" and self.asked == interrupt_id and self.worker == worker_id:
            return "resumed"
        return "answered" if interrupt_id in self.settled else "unknown"

    def close(self) -> bool:
        if self.state != "waiting" or self.asked is None:
            return False
        self.settled.add(self.asked)
        self.state, self.asked, self.last = "cancelled", None, self.last + 1
        return True


def test_runs_of_the_version_before_can_wait(
    make_app_database: Callable[[], str], user: str
) -> None:
    url, about = make_app_database(), head(user)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA citu; CREATE TABLE citu.version (version integer NOT NULL)")
        cursor.execute(
            f"{''.join(each.sql() for each in MIGRATIONS[:3])} INSERT INTO citu.version VALUES (3)"
        )
        run = (key(about.run_id), key(user), key("worker"), head_to_text(about))
        cursor.execute(
            "INSERT INTO citu.run (run_key, user_key, worker_key, head, state, last_seq, "
            "lease_until, expires_at)"
            " VALUES (%s, %s, %s, %s, 'running', 0, now() + interval '1 h',"
            " now() + interval '1 h')",
            run,
        )

    async def scenario(store: Store) -> None:
        assert await known(store, about) == RunRecord(about, "running", 0)
        assert not await store.runs.write([asking(about, "q")])
        assert await store.runs.resume(user, about.run_id, "q", "yes", "two") == "resumed"

    play(scenario, BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S))


# ------------------------------------------------------------------------------
# users

_IDS = st.text(st.characters(), max_size=8) | st.sampled_from(
    ["", ":", "*", "%", "'", "\0", "\ud800", "a:b", "x" * 9000]
)


@settings(max_examples=tries(12), deadline=None)
@given(
    users=st.tuples(_IDS, _IDS).filter(lambda pair: pair[0] != pair[1]), names=st.tuples(_IDS, _IDS)
)
def test_nobody_sees_or_changes_what_is_anothers(
    place: StoreServer, users: tuple[str, str], names: tuple[str, str]
) -> None:
    async def scenario(store: Store) -> None:
        mine, other = users
        for each in users:
            await store.conversations.delete_all(each)
        about = head(mine, names[0])
        await store.runs.write(
            [answered(about, names[1]), answered(head(mine, names[1]), "second")]
        )
        for name in names:
            assert await questions(store, other, name) == []
            assert await store.conversations.turns(other, name, 5) is None
            assert not await store.conversations.rename(other, name, "title")
            assert not await store.conversations.clear(other, name)
            assert not await store.conversations.delete(other, name)
        assert (await store.conversations.page(other, 5)).conversations == ()
        assert await store.conversations.delete_all(other) == 0
        assert await store.runs.find(other, about.run_id) is None
        assert await store.runs.frames(other, about.run_id, 0, 5) == ()
        record = await store.runs.find(mine, about.run_id)
        assert record is not None
        assert record.head == about
        listed = (await store.conversations.page(mine, 5)).conversations
        assert {each.conversation_id for each in listed} == set(names)
        assert (await questions(store, mine, names[0]))[0] == names[1]

    play(scenario, place.open())


# ------------------------------------------------------------------------------
# faults


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_restarted_server_has_kept_everything(
    place: StoreServer, user: str, how: signal.Signals
) -> None:
    async def scenario(store: Store, impatient: Store) -> None:
        about = head(user)
        await store.runs.write([answered(about)])
        await impatient.ping()
        await asyncio.to_thread(place.stop, how)
        try:
            async with asyncio.timeout(PATIENT_S / 2):
                with pytest.raises(StoreUnavailable) as caught:
                    await impatient.conversations.recent(user, "c", 5)
        finally:
            await asyncio.to_thread(place.start)
        assert caught.value.retryable
        assert await store.runs.frames(user, about.run_id, 0, 10) == frames(1, 2)
        assert await questions(impatient, user) == ["多少?"]
        assert not await store.runs.write([answered(about)])
        assert await questions(store, user) == ["多少?"]

    play(scenario, place.open(), place.open(timeout_s=_IMPATIENT_S))


def test_the_next_call_after_a_restart_succeeds(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await asyncio.gather(*(store.ping() for _ in range(4)))
        await asyncio.to_thread(place.stop, signal.SIGTERM)
        await asyncio.to_thread(place.start)
        await asyncio.gather(*(ask(store, user, "c", str(n)) for n in range(4)))
        assert sorted(await questions(store, user)) == ["0", "1", "2", "3"]

    play(scenario, place.open())


def test_a_silent_server_is_not_waited_for(place: StoreServer, user: str) -> None:
    async def scenario(known: Store, new: Store) -> None:
        await ask(known, user, "c", "?")
        with place.silent():
            # More calls than connections, so that calls that wait for one must time out as well.
            calls = [
                store.conversations.recent(user, "c", 5) for store in (known, new) for _ in range(8)
            ]
            async with asyncio.timeout(PATIENT_S / 2):
                failures = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(failure) for failure in failures} == {StoreUnavailable}
        for store in (known, new):
            await until(lambda store=store: _works(store))  # type: ignore[misc]
            assert await questions(store, user) == ["?"]

    play(scenario, place.open(timeout_s=_IMPATIENT_S), place.open(timeout_s=_IMPATIENT_S))


async def _works(store: Store) -> bool:
    try:
        await store.ping()
    except StoreUnavailable:
        return False
    return True


def test_a_call_whose_connection_is_cut_is_made_again(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await store.ping()
        with ExitStack() as stack:
            stack.enter_context(place.severed())
            asking = asyncio.create_task(ask(store, user, "c", "?"))
            await asyncio.to_thread(stack.close)
        await asking
        assert await questions(store, user) == ["?"]

    play(scenario, place.open())


def test_a_failure_names_no_server(
    place: StoreServer, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        schemes = {"redis": "redis", "postgresql": "postgresql"}
        url = f"{schemes[place.name]}://someone:hunter2@127.0.0.1:{port}/7"

        async def scenario(store: Store) -> None:
            with pytest.raises(StoreUnavailable) as caught:
                await store.conversations.recent(user, "c", 5)
            said = f"{caught.value} {caught.value.text} {caplog.text}"
            for secret in ("hunter2", "someone", "127.0.0.1", str(port), user):
                assert secret not in said

        play(scenario, place.open(url=url))


def test_cancelled_at_any_moment_the_store_stays_usable_and_whole(
    place: StoreServer, user: str
) -> None:
    async def scenario(store: Store) -> None:
        abouts = []
        for round_number in range(60):
            writes = [answered(head(user, f"c{round_number % 3}")) for _ in range(3)]
            abouts += [write.head for write in writes]
            calls = [store.runs.write([write]) for write in writes]
            reads = [store.conversations.recent(user, "c0", 5) for _ in range(3)]
            tasks = [asyncio.ensure_future(call) for call in (*calls, *reads)]
            for _ in range(round_number % 20):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await ask(store, user, "c0", "last")
        for n in range(3):
            # The server may still be at work on what was cancelled: what is seen first is there
            # afterwards.
            runs = [about.run_id for about in abouts if about.conversation_id == f"c{n}"]
            before = {run_id for run_id in runs if await _is_completed(store, user, run_id)}
            kept = {
                each.run_id for each in await store.conversations.recent(user, f"c{n}", 1000)
            } & set(runs)
            assert before <= kept
            for run_id in runs:
                found = await store.runs.frames(user, run_id, 0, 5)
                assert found == frames(1, 2) if run_id in kept else found in ((), frames(1, 2))
                assert run_id not in kept or await _is_completed(store, user, run_id)

    play(scenario, place.open())


async def _is_completed(store: Store, user: str, run_id: str) -> bool:
    record = await store.runs.find(user, run_id)
    return record is not None and record.state == "completed"


def test_a_server_that_lost_everything_is_empty(place: StoreServer, user: str) -> None:
    if place.lose is None:
        pytest.skip("it doesn't lose anything")
    lose = place.lose

    async def scenario(store: Store) -> None:
        about = head(user)
        await store.runs.write([RunWrite(about, frames(1, 2))])
        await asyncio.to_thread(lose)
        assert await store.runs.find(user, about.run_id) is None
        assert not await store.runs.abandoned()
        assert not await store.runs.renew([about.run_id], "worker")
        end, other = RunEnd("completed", turn(about.run_id)), head(user)
        unkept = await store.runs.write(
            [RunWrite(about, frames(3, 3), end), RunWrite(other, frames(1, 1))]
        )
        assert dict(unkept) == {about.run_id: "lost"}
        assert (
            await store.runs.find(user, about.run_id) is None and await questions(store, user) == []
        )
        assert not await store.runs.write(
            [RunWrite(about, frames(1, 3), end), RunWrite(other, frames(2, 2))]
        )
        for run, count in ((about, 3), (other, 2)):
            assert await store.runs.frames(user, run.run_id, 0, 5) == frames(1, count)
        assert await questions(store, user) == ["多少?"]

    play(scenario, place.open())


def test_a_store_survives_a_fork(place: StoreServer, user: str) -> None:
    store = place.open()
    runtime.run(ask(store, user, "c", "parent"), PATIENT_S)
    child = os.fork()
    if child == 0:  # pragma: no cover
        status = 1
        try:
            runtime.run(ask(store, user, "c", "child"), PATIENT_S)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert runtime.run(questions(store, user), PATIENT_S) == ["parent", "child"]
    runtime.run(_closed(store), PATIENT_S)


async def _closed(store: Store) -> None:
    await store.aclose()


def test_opening_connects_to_nothing(place: StoreServer) -> None:
    def source() -> str:
        raise AssertionError("asked for")

    BACKENDS[place.name](source, Retention(), PATIENT_S)


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://someone:hunter2@localhost", "redis://localhost:port/0"]
)
def test_a_url_that_is_none_is_said_at_once(url: str) -> None:
    with pytest.raises(InvalidRedisUrl, match="REDIS_URL") as caught:
        open_store(app_source="", redis_url=url, timeout_s=PATIENT_S, retention=Retention())
    assert "localhost:6379/0" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_redis_goes_before_postgresql() -> None:
    for redis_url, name in (("redis://localhost:1/0", "redis"), ("", "postgresql")):
        store = open_store(
            app_source="", redis_url=redis_url, timeout_s=PATIENT_S, retention=Retention()
        )
        assert store.name == name


# ------------------------------------------------------------------------------
# one of them


def test_conversations_of_one_moment_are_paged_too(user: str) -> None:
    with redis_server() as server:

        async def scenario(store: Store) -> None:
            names = [f"c{n}" for n in range(7)]
            for name in names:
                await ask(store, user, name, "?")
            with redis.Redis.from_url(server.url) as client:
                (listing,) = client.keys("citu:conversations:*")
                for member in client.zrange(listing, 0, -1):
                    client.zadd(listing, {member: 1_700_000_000_000_000})
                    client.hset(b"citu:conversation:" + member, "updated", 1_700_000_000_000_000)
            found: list[str] = []
            cursor = None
            while not found or cursor:
                page = await store.conversations.page(user, 2, cursor)
                found += [each.conversation_id for each in page.conversations]
                cursor = page.next_cursor
            assert sorted(found) == names

        play(scenario, BACKENDS["redis"](lambda: server.url, Retention(), PATIENT_S))


def test_tables_are_made_by_whoever_comes_first(
    make_app_database: Callable[[], str], user: str
) -> None:
    url = make_app_database()
    stores = [BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S) for _ in range(6)]

    async def scenario(*stores: Store) -> None:
        await asyncio.gather(*(ask(store, user, "c", str(n)) for n, store in enumerate(stores)))
        assert sorted(await questions(stores[0], user)) == ["0", "1", "2", "3", "4", "5"]
        await asyncio.to_thread(execute, url, "DROP SCHEMA citu CASCADE")
        await ask(stores[0], user, "c", "anew")
        assert await questions(stores[1], user) == ["anew"]

    play(scenario, *stores)


def test_expired_rows_are_removed(make_app_database: Callable[[], str], user: str) -> None:
    url = make_app_database()
    store = BACKENDS["postgresql"](
        lambda: url, Retention(conversation_ttl_s=0.05, run_ttl_s=0.05), PATIENT_S
    )
    tables = [
        f"(SELECT count(*) FROM citu.{name})"
        for name in ("conversation", "turn", "run", "page", "claim")
    ]

    async def scenario(store: Store) -> None:
        await ask(store, user, "c", "?")
        await store.runs.reserve_key(user, "key", IdempotencyRecord("run", "body"))
        assert rows_of(url, f"SELECT {', '.join(tables)}") == [(1, 1, 1, 1, 1)]

        async def has_expired() -> bool:
            return rows_of(url, "SELECT FROM citu.claim WHERE expires_at > now()") == []

        await until(has_expired)
        await store.runs.abandoned()
        assert rows_of(url, f"SELECT {', '.join(tables)}") == [(0, 0, 0, 0, 0)]

    play(scenario, store)


def test_runs_of_the_first_version_are_still_known(
    make_app_database: Callable[[], str], user: str
) -> None:
    """The first version kept a row for each frame."""
    url, about, kept = make_app_database(), head(user), frames(1, 3)
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA citu; CREATE TABLE citu.version (version integer NOT NULL)")
        cursor.execute(f"{MIGRATIONS[0].sql()} INSERT INTO citu.version VALUES (1)")
        run = (key(about.run_id), key(user), key("worker"), head_to_text(about))
        cursor.execute(
            "INSERT INTO citu.run (run_key, user_key, worker_key, head, state, last_seq, "
            "lease_until, expires_at)"
            " VALUES (%s, %s, %s, %s, 'running', 3, now() + interval '1 h',"
            " now() + interval '1 h')",
            run,
        )
        for frame in kept:
            cursor.execute(
                "INSERT INTO citu.frame VALUES (%s, %s, %s)", (run[0], frame.seq, frame.data)
            )

    async def scenario(store: Store) -> None:
        assert await store.runs.frames(user, about.run_id, 0, 10) == kept
        await store.runs.write([RunWrite(about, frames(4, 5), RunEnd("completed"))])
        assert await store.runs.frames(user, about.run_id, 1, 10) == frames(2, 5)

    play(scenario, BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S))


def test_a_write_repeated_with_more_of_the_same_is_whole(place: StoreServer, user: str) -> None:
    """The first attempt was kept, but its reply was lost."""

    async def scenario(store: Store) -> None:
        about = head(user)
        for last in (1, 4, 2):
            await store.runs.write([RunWrite(about, frames(1, last))])
        await store.runs.write([RunWrite(about, frames(3, 6))])
        for after in range(7):
            assert await store.runs.frames(user, about.run_id, after, 10) == frames(after + 1, 6)
            assert await store.runs.frames(user, about.run_id, after, 1) == frames(
                after + 1, min(after + 1, 6)
            )

    play(scenario, place.open())


@pytest.mark.parametrize("state", ["waiting", "completed"])
def test_a_key_is_kept_as_long_as_its_run(place: StoreServer, user: str, state: str) -> None:
    """In one store what waits is soon forgotten, in the other what has ended.

    The keys were reserved in a third.
    """

    async def scenario(patient: Store, forgets_waiting: Store, forgets_ended: Store) -> None:
        soon, late = replace(head(user), key="soon"), replace(head(user), key="late")
        short, long = (
            (forgets_waiting, forgets_ended)
            if state == "waiting"
            else (forgets_ended, forgets_waiting)
        )
        for store, about in ((short, soon), (long, late)):
            await patient.runs.reserve_key(
                user, about.key or "", IdempotencyRecord(about.run_id, "body")
            )
            await store.runs.write([asking(about, "q1") if state == "waiting" else answered(about)])

        async def is_free() -> bool:
            return (
                await patient.runs.reserve_key(user, "soon", IdempotencyRecord("other", "body"))
            ).run_id == "other"

        await until(is_free)
        assert (
            await patient.runs.reserve_key(user, "late", IdempotencyRecord("other", "body"))
        ).run_id == late.run_id

    play(
        scenario,
        place.open(run_ttl_s=600, waiting_ttl_s=600),
        place.open(run_ttl_s=600, waiting_ttl_s=0.1),
        place.open(run_ttl_s=0.1, waiting_ttl_s=600),
    )


def test_a_run_prolongs_no_key_of_another(place: StoreServer, user: str) -> None:
    async def scenario(store: Store) -> None:
        await store.runs.reserve_key(user, "key", IdempotencyRecord("winner", "body"))
        await store.runs.write([asking(replace(head(user), key="key"), "q1")])

        async def is_free() -> bool:
            return (
                await store.runs.reserve_key(user, "key", IdempotencyRecord("late", "body"))
            ).run_id == "late"

        await until(is_free)

    play(scenario, place.open(run_ttl_s=0.1, waiting_ttl_s=600))
