"""Citu's own memory: conversations and runs, behind two ports with the same adapters.

Both live in one store because they change together: the last event of a run, its end and the turn it adds to its
conversation are written in one transaction, so that a worker killed at any moment leaves all of them or none.

The adapters, Redis and PostgreSQL, keep one contract (tests/test_store.py). Everything is keyed by the user: another
user's conversation or run is as unknown as one that never was. All methods raise `StoreUnavailable` when the store
can't be reached or doesn't answer in time, and may be cancelled.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from common.text import Lang
from common.values import Turn

RunState = Literal["running", "completed", "error", "cancelled"]
Unkept = Literal["taken", "lost"]
"""Why nothing of a write was kept: somebody else has ended the run, or the store has lost frames before the write's."""


@dataclass(frozen=True)
class Conversation:
    """One line of a user's list.

    Attributes:
        title: as given by the user, else the first question.
        created_at, updated_at: ISO 8601, UTC, milliseconds; updated by every turn.
        turn_count: turns kept.
    """

    conversation_id: str
    title: str
    created_at: str
    updated_at: str
    turn_count: int


@dataclass(frozen=True)
class ConversationPage:
    """Conversations, those with the latest turn first; `next_cursor` leads to the page after, None: there is none."""

    conversations: tuple[Conversation, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class TurnPage:
    """A conversation's turns, oldest first within a page; `next_cursor` leads to the earlier ones.

    The first page holds the latest turns.
    """

    conversation: Conversation
    turns: tuple[Turn, ...]
    next_cursor: str | None


class Conversations(Protocol):
    """What users asked. Turns are added by `Runs.write`; a conversation begins with its first turn."""

    async def recent(self, user_id: str, conversation_id: str, limit: int) -> tuple[Turn, ...]:
        """The last `limit` turns, oldest first; none for a conversation that is unknown."""

    async def page(self, user_id: str, limit: int, cursor: str | None = None) -> ConversationPage:
        """One page of the user's conversations. Raises `InvalidCursor` for a cursor that is none of ours."""

    async def turns(self, user_id: str, conversation_id: str, limit: int, cursor: str | None = None) -> TurnPage | None:
        """One page of a conversation; None when it is unknown. Raises `InvalidCursor`."""

    async def rename(self, user_id: str, conversation_id: str, title: str) -> bool:
        """Gives it a title, which it keeps; false when it is unknown."""

    async def clear(self, user_id: str, conversation_id: str) -> bool:
        """Forgets its turns and keeps the conversation with its title; false when it is unknown."""

    async def delete(self, user_id: str, conversation_id: str) -> bool:
        """Forgets it; false when it is unknown."""

    async def delete_all(self, user_id: str) -> int:
        """Forgets all of the user's conversations; how many there were."""


class InvalidCursor(ValueError):
    """A cursor that no page has given."""


@dataclass(frozen=True)
class RunHead:
    """What is known of a run when it begins.

    Attributes:
        worker_id: the process that works on it.
        started_at: ISO 8601, UTC, milliseconds.
    """

    run_id: str
    user_id: str
    conversation_id: str
    question: str
    lang: Lang
    worker_id: str
    started_at: str


@dataclass(frozen=True)
class Frame:
    """One event of a run as its stream sends it: `seq` counts from 1, `data` is the rendered envelope (UTF-8 JSON)."""

    seq: int
    data: bytes


@dataclass(frozen=True)
class RunEnd:
    """How a run ended; its last frame holds the terminal event. `turn`: what it adds to its conversation."""

    state: RunState
    turn: Turn | None = None


@dataclass(frozen=True)
class RunWrite:
    """What is new about one run: frames in order, and its end when it has come."""

    head: RunHead
    frames: tuple[Frame, ...] = ()
    end: RunEnd | None = None


@dataclass(frozen=True)
class RunRecord:
    """A run as the store knows it.

    Attributes:
        last_seq: number of frames kept; with an ended run, that of its terminal event.
        is_orphaned: it is running, but its worker has not renewed its lease in time.
    """

    head: RunHead
    state: RunState
    last_seq: int
    is_orphaned: bool = False


@dataclass(frozen=True)
class Claim:
    """Who holds an Idempotency-Key: the run, and the fingerprint of the request that began it."""

    run_id: str
    fingerprint: str


class Runs(Protocol):
    """What is being answered now, and what was a while ago.

    A run is kept for the store's run TTL after its last change. Its worker holds it by a lease, which a write gives and
    `renew` prolongs; the store's own clock decides when it has run out.
    """

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        """Keeps what is new, each write whole or not at all, and makes runs known that are not yet.

        At most one write is of the same run.

        Repeating a write changes nothing: frames have their numbers, and a run ends once. Where all writes are of
        running runs, a server that crashes right afterwards may lose them; a run's end it keeps, and all before it.

        Returns:
            The ids of runs that somebody else has ended (see `end_orphan`), and of those of which the store has lost
            earlier frames, which are to be written again first; nothing of their writes was kept.
        """

    async def find(self, user_id: str, run_id: str) -> RunRecord | None:
        """The run; None when it is unknown or has expired."""

    async def frames(self, user_id: str, run_id: str, after: int, limit: int) -> tuple[Frame, ...]:
        """Up to `limit` frames with a `seq` beyond `after`, in order."""

    async def renew(self, run_ids: Collection[str], worker_id: str) -> Collection[str]:
        """Prolongs the leases of running runs; returns the ids of those whose cancelling was asked for."""

    async def request_cancel(self, user_id: str, run_id: str) -> None:
        """Asks the worker that holds the run, by its next `renew`, to cancel it."""

    async def orphans(self) -> tuple[RunRecord, ...]:
        """Running runs, of whichever user, whose leases have run out."""

    async def end_orphan(self, run_id: str, frame: Frame) -> bool:
        """Ends an orphan in `error` with the terminal event `frame`; false when it is none, or `seq` isn't its next."""

    async def claim(self, user_id: str, key: str, claim: Claim) -> Claim:
        """Whose the user's Idempotency-Key is: `claim`, when nobody had it; kept as long as a run."""

    async def release_claim(self, user_id: str, key: str, run_id: str) -> None:
        """Lets go of the key, when it is still that run's."""


@dataclass(frozen=True)
class Retention:
    """How much is kept, and for how long.

    Attributes:
        conversation_ttl_s: seconds after its last turn until a conversation is forgotten.
        max_turns: turns of one conversation; the oldest go first.
        run_ttl_s: seconds after its last change until a run is forgotten; Idempotency-Keys with it.
        lease_s: seconds without renewal after which a running run is an orphan.
    """

    conversation_ttl_s: float = 30 * 86400.0
    max_turns: int = 100
    run_ttl_s: float = 3600.0
    lease_s: float = 10.0


@dataclass(frozen=True)
class Store:
    """An opened store.

    Attributes:
        name: `redis` or `postgresql`.
        ping: returns when the store answers.
        aclose: closes its connections, on the event loop that used them; the next use opens new ones.
    """

    name: str
    conversations: Conversations
    runs: Runs
    ping: Callable[[], Awaitable[None]]
    aclose: Callable[[], Awaitable[None]]
