"""Interrupts questions to the flows with tools at random points, and asks another one in the same
conversation.

A client leaves, the run is cancelled, its worker is killed, or the model's reply breaks: any byte
of it may be the last, it may be an error, or garbage. Whatever happens, the next question must be
answered, and no conversation that breaks the protocol may be sent to the model: the scripted
endpoint refuses what any provider refuses.
"""

import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.support.http_stream import Stream, post_json
from tests.support.live import Citu, serving
from tests.support.openai_replies import Called, Reply, Request, chunk, closing, event
from tests.support.openai_server import OpenAiServer, take_violations
from tests.support.tool_scripts import EXECUTING, following, generating, querying

STREAM, SYNC = "/api/v0/ask_agent_stream", "/api/v0/ask_agent"
AGENTS = ("tool_graph", "tool_loop")
KINDS = {"cut": 8, "cancel": 8, "model": 12, "kill": 1}  # how often, relative to each other
_QUERIES = 0.7  # of the calls of tools
_MARK = re.compile(r"\[(\d+) (first|then)\]")
_MOST_EVENTS = 40  # after which a client leaves, or cancels
_LONG_S = 20.0  # for the next question, while a killed worker is replaced
_PAUSE_S = 0.05
_QUICK = "SELECT 1 AS n"
_BROKEN = (
    "SELECT no_such_column",
    "SELEC",
    "DELETE FROM none",
    "SELECT 1 / (count(*) - count(*)) AS x FROM {table}",
)


@dataclass
class InterruptionResults:
    """The ends of the questions.

    Attributes:
        kinds: how many were interrupted in which way.
        endings: their last events, where somebody was there to read them.
        refused: what the model's endpoint refused.
        unanswered: what was said of the next questions that had no answer.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        endings = ", ".join(f"{count} {kind}" for kind, count in sorted(self.endings.items()))
        return [
            f"{self.kinds.total()} interruptions: {kinds}",
            f"their ends, where a client stayed: {endings}",
            f"requests that broke the protocol: {len(self.refused)}",
            f"next questions without an answer: {len(self.unanswered)}",
            *self.refused[:3],
            *self.unanswered[:3],
        ]


@dataclass(frozen=True)
class _Trial:
    """One question that is interrupted.

    Attributes:
        number: stands in the question, so that the model knows its script.
        after: events after which the client leaves or cancels.
    """

    number: int
    agent: str
    kind: str
    replies: Sequence[Reply]
    after: int

    def body(self, place: str, question: str = "how many are there") -> dict[str, Any]:
        """Return the body of the request."""
        conversation = f"interrupted-{self.agent}-{self.number % 10}"
        return {
            "question": f"{question} [{self.number} {place}]",
            "agent": self.agent,
            "conversation_id": conversation,
        }


class Interrupter:
    """Interrupts questions to a service whose model is `model`.

    Args:
        table: that can be read; `slow` is a statement that runs long, if there is one.
    """

    def __init__(
        self, citu: Citu, model: OpenAiServer, table: str, slow: str | None = None, seed: int = 0
    ) -> None:
        self._citu = citu
        self._model = model
        self._table = table
        self._slow = slow
        self._random = random.Random(seed)  # noqa: S311 - chooses cases, keeps no secret
        self._trials: dict[int, _Trial] = {}
        model.default = self._reply

    def run(self, count: int, kinds: Mapping[str, int] = KINDS) -> InterruptionResults:
        """Interrupt `count` questions in the given ways."""
        found = InterruptionResults()
        take_violations()
        for number in range(count):
            kind = self._random.choices(list(kinds), list(kinds.values()))[0]
            trial = self._trial(number, AGENTS[number % len(AGENTS)], kind)
            self._trials[number] = trial
            found.kinds[kind] += 1
            found.endings[self._interrupted(trial)] += 1
            if (said := self._answered(trial)) is not None:
                found.unanswered.append(f"{trial.kind} of {trial.agent}, [{number}]: {said}")
            found.refused += take_violations()
        return found

    # --------------------------------------------------------------------------
    # the model

    def _trial(self, number: int, agent: str, kind: str) -> _Trial:
        stops = kind in ("cut", "cancel", "kill")
        replies = [
            self._calling(agent, may_be_slow=stops) for _ in range(self._random.randint(1, 4))
        ]
        replies.append(Reply("There is one."))
        if kind == "model":
            place = self._random.randrange(len(replies))
            replies[place] = self._damaged(replies[place])
        return _Trial(number, agent, kind, replies, self._random.randint(1, _MOST_EVENTS))

    def _calling(self, agent: str, *, may_be_slow: bool) -> Reply:
        calls = [
            self._call(agent, may_be_slow=may_be_slow)
            for _ in range(self._random.choice((1, 1, 1, 2, 4)))
        ]
        return Reply(
            self._random.choice(
                ("", "Let me see. ", "Let me look at this first, step by step. " * 12)
            ),
            calls=calls,
        )

    def _call(self, agent: str, *, may_be_slow: bool) -> Called:
        sqls = [
            _QUICK,
            f"SELECT count(*) AS n FROM {self._table}",
            *(one.format(table=self._table) for one in _BROKEN),
        ]
        sql = self._random.choice(
            [*sqls, *([self._slow] * 4 if self._slow and may_be_slow else ())]
        )
        other = [
            Called("search_schema", {"words": self._table, "limit": None}),
            Called("describe_table", {"table": self._table}),
            Called("no_such_tool", {"a": [1, {"b": None}]}),
            Called("describe_table", '{"table": "x'),
        ]
        own = [Called("run_sql", {"sql": sql})]
        if agent == "tool_graph":
            own = [generating(sql), generating(None), EXECUTING, EXECUTING]
            other.append(Called("query_schema_metadata", {"tables": [self._table], "words": None}))
        is_query = self._random.random() < _QUERIES
        return self._random.choice(own if is_query else other)

    def _damaged(self, reply: Reply) -> Reply:
        """Return a reply that fails; `_cut` needs the request to end it at some byte."""
        status = self._random.choice((400, 401, 429, 500, 503))
        garbage = b"\xff\xfe{not json\n\n"
        mistake = event({"error": {"message": "overloaded", "type": "server_error", "code": None}})
        return self._random.choice(
            [
                Reply(
                    reply.text, calls=reply.calls, ending="disconnect"
                ),  # at a byte that `_cut` chooses
                Reply(reply.text, calls=reply.calls, ending="disconnect"),
                Reply(reply.text, calls=reply.calls, ending="disconnect"),
                Reply(status=status, headers={"Retry-After": "0"}),
                Reply(pieces=[garbage, *reply.stream_pieces()]),
                Reply(pieces=[*reply.stream_pieces()[:2], mistake]),
                Reply(pieces=[]),
            ]
        )

    def _reply(self, request: Request) -> Reply:
        """Return what the model says: the trial's script while its question is answered, later a
        plain one.
        """
        marks = _MARK.findall(json.dumps(request.messages[:2]))
        if not marks:
            return Reply("Hello.")
        number, place = marks[-1]
        trial = self._trials[int(number)]
        script = trial.replies if place == "first" else _next_replies(trial.agent)
        reply = following(script, _QUICK)(request)
        return (
            self._cut(reply, request)
            if reply.ending == "disconnect" and request.is_stream
            else reply
        )

    def _cut(self, reply: Reply, request: Request) -> Reply:
        frames = [
            event(chunk(request, {"content": frame} if isinstance(frame, str) else frame))
            for frame in _frames(reply)
        ]
        whole = b"".join(frames) + closing(request, reply)
        return Reply(pieces=[whole[: self._random.randrange(len(whole))]], ending="disconnect")

    # --------------------------------------------------------------------------
    # the questions

    def _interrupted(self, trial: _Trial) -> str:
        """Return how the question ended; `left` when nobody was there to read it."""
        last = "left"
        with (
            suppress(HTTPException, OSError),
            Stream(self._citu.port, STREAM, trial.body("first")) as stream,
        ):
            assert stream.status == 200  # noqa: PLR2004 - the stream has begun
            for count, said in enumerate(stream.events(), 1):
                last = _named(said)
                if trial.kind != "model" and (count == trial.after or self._runs_long(said)):
                    if trial.kind != "cancel":
                        self._end(trial)
                        return "left"
                    post_json(self._citu.port, f"/api/v0/runs/{said['data']['run_id']}/cancel", {})
        return last

    def _runs_long(self, said: dict[str, Any]) -> bool:
        """Tell whether nothing more would come for long."""
        data = said["data"]
        shown = data.get("arguments", {}).get("sql") or data.get("state_summary", {}).get("sql")
        if data["type"] == "tool":
            return bool(data["status"] == "running" and shown == self._slow)
        return bool(
            data["type"] == "progress" and data["node"] == "execute_sql" and shown == self._slow
        )

    def _end(self, trial: _Trial) -> None:
        if trial.kind == "kill":
            os.kill(self._citu.worker(), signal.SIGKILL)

    def _answered(self, trial: _Trial) -> str | None:
        """Return none when the next question of the conversation is answered; else what was
        said.
        """
        deadline = time.monotonic() + _LONG_S
        said = "nothing"
        while time.monotonic() < deadline:
            with suppress(HTTPException, OSError):
                status, envelope = post_json(self._citu.port, SYNC, trial.body("then"))
                if status == 200:  # noqa: PLR2004 - answered
                    response = envelope["data"]["response"]
                    return None if response == "One." else f"answered {response!r}"
                said = json.dumps(envelope)[:500]
                if status != 503:  # noqa: PLR2004 - another slot is free in a moment
                    return said
            time.sleep(_PAUSE_S)
        return said


def _next_replies(agent: str) -> list[Reply]:
    if agent == "tool_graph":
        return querying(_QUICK, "One.")
    return [Reply(calls=[Called("run_sql", {"sql": _QUICK})]), Reply("One.")]


def _frames(reply: Reply) -> Sequence[Any]:
    return [piece for piece in reply.stream_pieces() if not isinstance(piece, (bytes, float, int))]


def _named(said: dict[str, Any]) -> str:
    data = said["data"]
    return str(data["error_type"]) if data["type"] == "error" else str(data["type"])


def run(
    database_url: str, data_dir: Path, *, count: int = 500, seed: int = 0
) -> InterruptionResults:
    """Interrupt `count` questions about the demo database."""
    with (
        OpenAiServer() as model,
        serving(data_dir / "log", model=model, DATABASE_URL=database_url, **SETTINGS) as citu,
    ):
        return Interrupter(citu, model, "shop", seed=seed).run(count)


SETTINGS = {
    "MAX_STREAMS": "4",
    "CALLER_SHARE": "1",
    "PING_INTERVAL_S": "0.1",
    "LLM_MAX_RETRIES": "0",
    "AUDIT_LOG": "off",
}
