"""The ports of the store, which keeps conversations, runs, the checkpoints of their graphs, and
what is learnt.

One store keeps conversations and runs, because they change together: the last event of a run, its
end and the turn it adds to its conversation are written in one transaction, so that a worker killed
at any moment leaves all of them or none.

The adapters, Redis and PostgreSQL, keep one contract (tests/store/test_store.py). Everything is
kept per user: for another user, a conversation or run does not exist. All methods raise
`StoreUnavailable` when the store can't be reached or doesn't answer in time, and may be cancelled.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver

from common.text import Lang
from common.values import Turn
from store.learned import (
    Added,
    Item,
    Kept,
    Learned,
    LearnedFilter,
    LearnedItems,
    LearnedPage,
    Learning,
    LearntKind,
    LearntState,
    Reviewed,
    ReviewOutcome,
    ReviewVerdict,
    Visible,
)
from store.proposals import Proposals
from store.request_counts import RequestCounts
from store.shared_documents import SharedDocuments
from store.spending import Spending
from store.vectors import VectorRepository

__all__ = [
    "Added",
    "Artefacts",
    "Conversation",
    "ConversationPage",
    "Conversations",
    "EventFrame",
    "FailedState",
    "IdempotencyRecord",
    "InvalidCursor",
    "Item",
    "Kept",
    "StoredArtefact",
    "Learned",
    "LearnedFilter",
    "LearnedItems",
    "LearnedPage",
    "Learning",
    "LearntKind",
    "LearntState",
    "Resumption",
    "Retention",
    "ReviewOutcome",
    "ReviewVerdict",
    "Reviewed",
    "RunEnd",
    "RunHead",
    "RunRecord",
    "RunState",
    "RunWrite",
    "Runs",
    "Store",
    "TurnPage",
    "Unkept",
    "Visible",
    "Waiting",
]

RunState = Literal["running", "waiting", "completed", "error", "cancelled"]
FailedState = Literal["error", "cancelled"]
Unkept = Literal["taken", "lost"]
"""Why nothing of a write was kept. `taken`: the run is no longer the writer's, because another
worker has ended it or goes on with it, or because it waits for its user. `lost`: the store has lost
frames before those of the write.
"""
Resumption = Literal["resumed", "answered", "unknown"]
"""The outcome of an answer. `resumed`: it was accepted. `answered`: the question was answered
before, or the run has ended. `unknown`: the user has no such run, or the run never asked this.
"""


@dataclass(frozen=True)
class Conversation:
    """A conversation in its user's list.

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
    """Conversations, those with the latest turn first; `next_cursor` gives the next page, None when
    it is the last.
    """

    conversations: tuple[Conversation, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class TurnPage:
    """A conversation's turns, oldest first within a page; `next_cursor` gives the page with earlier
    ones.

    The first page holds the latest turns.
    """

    conversation: Conversation
    turns: tuple[Turn, ...]
    next_cursor: str | None


class Conversations(Protocol):
    """Users' conversations; `Runs.write` adds turns, and begins one with its first turn."""

    async def recent(self, user_id: str, conversation_id: str, limit: int) -> tuple[Turn, ...]:
        """Return the last `limit` answered turns, oldest first; none for a conversation that is
        unknown.

        Turns that ended in an error are left out: no question goes on from them.
        """

    async def page(self, user_id: str, limit: int, cursor: str | None = None) -> ConversationPage:
        """Return one page of the user's conversations.

        Raises `InvalidCursor` for a cursor that no page gave.
        """

    async def turns(
        self, user_id: str, conversation_id: str, limit: int, cursor: str | None = None
    ) -> TurnPage | None:
        """Return one page of a conversation; None when it is unknown. Raises `InvalidCursor`."""

    async def rename(self, user_id: str, conversation_id: str, title: str) -> bool:
        """Give it a title, which it keeps; false when it is unknown."""

    async def clear(self, user_id: str, conversation_id: str) -> bool:
        """Forget its turns and keep the conversation with its title; false when it is unknown."""

    async def delete(self, user_id: str, conversation_id: str) -> bool:
        """Forget it; false when it is unknown."""

    async def delete_all(self, user_id: str) -> int:
        """Forget all of the user's conversations; return how many there were."""


class InvalidCursor(ValueError):
    """A cursor that no page gave."""


@dataclass(frozen=True)
class RunHead:
    """The facts of a run that are known when it starts.

    Attributes:
        worker_id: the process that works on it.
        started_at: ISO 8601, UTC, milliseconds.
        key: the Idempotency-Key that the run was begun with.
        request: what another worker needs to go on with it if this one dies, as JSON values; None
            of runs that end with their worker. It comes back with lists and floats.
    """

    run_id: str
    user_id: str
    conversation_id: str
    question: str
    lang: Lang
    worker_id: str
    started_at: str
    key: str | None = None
    request: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class EventFrame:
    """One event of a run as its stream sends it: `seq` counts from 1, `data` is the rendered
    envelope (UTF-8 JSON).
    """

    seq: int
    data: bytes


@dataclass(frozen=True)
class RunEnd:
    """The end of a run; its last frame holds the terminal event. `turn`: what it adds to its
    conversation.
    """

    state: RunState
    turn: Turn | None = None


@dataclass(frozen=True)
class Waiting:
    """The question that a run has asked its user, and what another worker needs to go on with the
    answer.

    Attributes:
        interrupt_id: names the question within the run; a later question of the same run has
            another.
        flow: the name of the flow that goes on.
        request: what the run was started with, as JSON values; it comes back with lists and floats.
    """

    interrupt_id: str
    flow: str
    request: Mapping[str, Any]


@dataclass(frozen=True)
class RunWrite:
    """News of one run to be kept: frames in order, and its end when it has come.

    Attributes:
        waiting: the question that the last frame asks. The run becomes `waiting` and its worker
            gives up the lease. Not together with `end`.
    """

    head: RunHead
    frames: tuple[EventFrame, ...] = ()
    end: RunEnd | None = None
    waiting: Waiting | None = None

    @property
    def state(self) -> RunState:
        """Return the state of the run after this write."""
        if self.end:
            return self.end.state

        return "waiting" if self.waiting else "running"


@dataclass(frozen=True)
class RunRecord:
    """A run as the store knows it.

    Attributes:
        head: `worker_id` is that of the worker that has the run now, or had it last.
        last_seq: number of frames kept; for an ended run, the `seq` of its terminal event.
        is_abandoned: it is running, but its worker has not renewed the lease in time.
        waiting: in state `waiting`, the open question; in state `running`, the question whose
            answer the run works on, until it asks again or ends; else None.
        answer: in state `running`, the accepted answer to the question in `waiting`, as JSON gives
            it back.
        takeovers: how many workers took it over since it was begun or answered.
    """

    head: RunHead
    state: RunState
    last_seq: int
    is_abandoned: bool = False
    waiting: Waiting | None = None
    answer: Any = None
    takeovers: int = 0

    @property
    def is_resumed(self) -> bool:
        """Tell whether it works on an answer. Then another worker can go on if its own dies, see
        `Runs.take_over`.
        """
        return self.state == "running" and self.waiting is not None


@dataclass(frozen=True)
class IdempotencyRecord:
    """The holder of an Idempotency-Key: the run, and the fingerprint of the request that began
    it.
    """

    run_id: str
    fingerprint: str


class Runs(Protocol):
    """Runs that are being answered, that wait, or that ended a while ago.

    A run is kept for the run TTL after its last change. Its worker holds it by a lease, which a
    write gives and `renew` prolongs; the store's clock decides when it has run out.

    No worker holds a run that waits for its user: it has no lease, is never abandoned, and is kept
    for the waiting TTL. `resume` gives it to the worker that brings the answer, and the run TTL
    applies again. A run may wait any number of times.
    """

    async def write(self, writes: Sequence[RunWrite]) -> Mapping[str, Unkept]:
        """Keep each write whole or not at all; the first write of a run creates it.

        `writes` holds at most one write per run.

        Repeating a write changes nothing: frames have their numbers, a run ends once, and each of
        its questions is asked once. If all writes are of running runs, a server that crashes right
        afterwards may lose them. A run's end, its question and all frames before them survive a
        crash.

        Returns:
            The ids of runs of which nothing was kept: `taken`, the run is no longer the writer's;
                `lost`, the store
            has lost earlier frames, which must be written again first.
        """

    async def find(self, user_id: str, run_id: str) -> RunRecord | None:
        """Return the run; None when it is unknown or has expired."""

    async def frames(
        self, user_id: str, run_id: str, after: int, limit: int
    ) -> tuple[EventFrame, ...]:
        """Return up to `limit` frames with a `seq` beyond `after`, in order."""

    async def renew(self, run_ids: Collection[str], worker_id: str) -> Collection[str]:
        """Renew the leases of running runs; return the ids of those that are to be cancelled."""

    async def request_cancel(self, user_id: str, run_id: str) -> None:
        """Ask the worker that holds the run to cancel it; its next `renew` tells it."""

    async def resume(
        self, user_id: str, run_id: str, interrupt_id: str, answer: Any, worker_id: str
    ) -> Resumption:
        """Accept the first answer to a run's open question: the run is `running` again, and
        belongs to the worker.

        `answer` is JSON and is kept until the run asks again or ends. An earlier request to cancel
        is forgotten.

        A worker whose `resume` got no reply sends it again: the same answer by the same worker is
        `resumed` again as long as the worker still has the run. So a worker that may get an answer
        twice has to check that itself.
        """

    async def take_over(self, run_id: str, worker_id: str) -> bool:
        """Give this worker a running run whose lease ran out; false when the run is not one.

        The caller knows how to go on with it: from its answer, or from its head's request.

        Frames that the former worker wrote stay, and `RunRecord.last_seq` counts them; its later
        writes are `taken`.
        """

    async def end_waiting(
        self,
        head: RunHead,
        frame: EventFrame,
        state: FailedState = "cancelled",
        turn: Turn | None = None,
    ) -> bool:
        """End a waiting run with the terminal event `frame`; false if it doesn't wait, or `seq` is
        not its next.

        `turn` is added to the conversation with the end, as a whole.
        """

    async def abandoned(self) -> tuple[RunRecord, ...]:
        """Return running runs of all users whose leases have run out; those that work on an answer,
        or have a request in their head, can be taken over.
        """

    async def end_abandoned(
        self, head: RunHead, frame: EventFrame, turn: Turn | None = None
    ) -> bool:
        """End an abandoned run in `error` with the event `frame`; false if it isn't one, or `seq`
        is not its next.

        `turn` is added to the conversation with the end, as a whole.
        """

    async def reserve_key(
        self, user_id: str, key: str, wanted: IdempotencyRecord
    ) -> IdempotencyRecord:
        """Reserve the user's Idempotency-Key; return the record that holds it, `wanted` or an
        earlier one. It is kept as long as a run.

        A write that ends a run or has it wait keeps the key of its head as long as the run from
        then on.
        """

    async def release_key(self, user_id: str, key: str, run_id: str) -> None:
        """Free the key, if that run still holds it."""


@dataclass(frozen=True)
class StoredArtefact:
    """Files that a run made, as a zip archive.

    Attributes:
        preview: what is shown of what the files make, as JSON; empty: nothing.
    """

    data: bytes
    preview: bytes = b""


class Artefacts(Protocol):
    """Files that runs made for their users.

    One is kept as long as its conversation, and before that has a turn as long as a waiting run.
    """

    async def keep(
        self, user_id: str, conversation_id: str, run_id: str, artefact: StoredArtefact
    ) -> None:
        """Keep it in place of an earlier one of this run. A user's oldest ones go first."""

    async def find(self, user_id: str, run_id: str) -> StoredArtefact | None:
        """Return what the run made; None when the user has nothing of this run."""


@dataclass(frozen=True)
class Retention:
    """The limits of what is kept: how much, and for how long.

    Attributes:
        conversation_ttl_s: seconds after its last turn until a conversation is forgotten.
        max_turns: turns of one conversation; the oldest go first.
        run_ttl_s: seconds after its last change until a run is forgotten; Idempotency-Keys with it.
        waiting_ttl_s: seconds after its question until a run that waits for its user is forgotten.
        lease_s: seconds without renewal after which a running run is abandoned.
        own_examples, own_lessons: of one user for one datasource that are not shared; the oldest go
            first.
        shared_examples, shared_lessons, documents: of one datasource; beyond that nothing more can
            be shared.
        all_examples, all_lessons: of one datasource, everybody's own ones included; beyond that
            nothing is learnt.
        feedback: what one user said of so many runs last is kept.
        own_artefacts: how many artefacts one user may have; the oldest go first.
    """

    conversation_ttl_s: float = 30 * 86400.0
    max_turns: int = 100
    run_ttl_s: float = 3600.0
    lease_s: float = 10.0
    waiting_ttl_s: float = 7 * 86400.0
    own_examples: int = 200
    own_lessons: int = 100
    shared_examples: int = 5_000
    shared_lessons: int = 1_000
    documents: int = 2_000
    all_examples: int = 50_000
    all_lessons: int = 20_000
    feedback: int = 1_000
    own_artefacts: int = 200


@dataclass(frozen=True)
class Store:
    """A store that has been opened: its repositories, and how to close it.

    Attributes:
        name: `redis` or `postgresql`.
        learned: examples, lessons and documents.
        checkpoints: LangGraph keeps the state of graphs there that can stop and go on; `thread_id`
            is the run's id. Only asynchronous methods; they raise `StoreUnavailable` as the ports
            do.
        ping: returns when the store answers.
        aclose: closes its connections, on the event loop that used them; the next use opens new
            ones.
        artefacts: files that runs made.
        spending: what models have cost.
        proposals: changes of semantic files that somebody wants.
        documents: small ones that all hosts share.
        request_counts: the counts of requests of all workers together; None in Redis, which
            `common.rate_limits` asks.
        vectors: vectors of texts; None where they can't be kept.
    """

    name: str
    conversations: Conversations
    runs: Runs
    learned: Learned
    checkpoints: BaseCheckpointSaver[str]
    ping: Callable[[], Awaitable[None]]
    aclose: Callable[[], Awaitable[None]]
    artefacts: Artefacts
    spending: Spending
    proposals: Proposals
    documents: SharedDocuments
    request_counts: RequestCounts | None
    vectors: VectorRepository | None = None
