"""One question as a caller asks it, and the way to the turns before it."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from common import timestamps
from common.actor import NOBODY, Actor
from common.audit import Occasion
from common.text import Lang, Text, language_of
from common.values import Turn, Usage


def new_conversation_id() -> str:
    """Return `citu_` + UTC yyyymmddHHMMSS + milliseconds + a random tail."""
    now = datetime.now(UTC)
    return f"citu_{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}{secrets.token_hex(4)}"


def new_run_id() -> str:
    """Return `run_` + 96 random bits."""
    return f"run_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class Question:
    """One question as a caller asks it.

    Attributes:
        agent: name of the flow that answers it; None takes the configured one.
        actor: who asks.
        asked_at: ISO 8601, UTC, milliseconds.
        continues: whether the conversation may have earlier turns.
        is_credible: whether nobody else could ask in this user's name; else nothing is learnt from
            the question.
        notices: what the answer must say about the request itself.
        lang: language of the answer; None follows the question.
        routing_mode: None takes the configured one.
        database: name of the database that it is about; None: the default one.
        database_choice: why it is about that one; None where there is but one.
        choice_usage: what was used of the model that was asked which one it is about.
        stream_tokens: whether text is emitted while it is written.
        details: JSON values that the flow named in `agent` takes beside the question.
    """

    question: str
    agent: str | None = None
    conversation_id: str = field(default_factory=new_conversation_id)
    run_id: str = field(default_factory=new_run_id)
    actor: Actor = NOBODY
    asked_at: str = field(default_factory=timestamps.now)
    lang: Lang | None = None
    routing_mode: str | None = None
    context_type: str | None = None
    table: str | None = None
    stream_tokens: bool = True
    continues: bool = False
    is_credible: bool = False
    notices: tuple[Text, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    database: str | None = None
    database_choice: str | None = None
    choice_usage: Usage = Usage()

    @property
    def owner(self) -> str:
        """Return the owner of the conversation and the run."""
        return self.actor.owner

    @property
    def answer_lang(self) -> Lang:
        """Return the language of everything the run says."""
        return self.lang or language_of(self.question)


def occasion_of(question: Question) -> Occasion:
    """Return the occasion of the statements that a question is answered by, for the audit log."""
    return Occasion(
        "ask",
        question.run_id,
        question.actor,
        question.conversation_id,
        question.question,
        database=question.database,
    )


Recall = Callable[[], Awaitable[tuple[Turn, ...]]]
"""Gives the latest turns of a question's conversation, oldest first; raises `StoreUnavailable`."""


async def nothing_before() -> tuple[Turn, ...]:
    """Return no turns: the `Recall` of a new conversation."""
    return ()
