"""The events of a run: any number of events about its steps, then a last one.

The last one ends the run, or it asks the user something and the run waits; after the answer more
events follow.

An event is the content of one frame of the stream; the sync answer is the terminal event alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import simplejson

from agent.flows.stored_turns import failed_turn
from agent.runs.pauses import Pause
from common import timestamps
from common.envelope import error_data, to_bytes
from common.errors import CituError
from common.values import Turn
from store import EventFrame, RunHead

EventType = Literal["progress", "token", "tool", "result", "question", "completed", "error"]


@dataclass(frozen=True)
class Event:
    """One event of a run, as clients get it.

    Attributes:
        content: makes `data` without its `type`; called only when somebody reads the event, because
            a sync answer shows no progress.
        code: HTTP status the sync endpoint answers with when the event is the last one.
        turn: what the run adds to its conversation, when the event ends it.
        pause: where a run stands that asks the user something.
    """

    type: EventType
    message: str
    content: Callable[[], dict[str, Any]]
    code: int = 200
    turn: Turn | None = None
    pause: Pause | None = None

    @property
    def is_terminal(self) -> bool:
        """Tell whether it ends the run."""
        return self.type in ("completed", "error")

    @property
    def is_last(self) -> bool:
        """Tell whether no event follows for now: the run has ended, or waits for the user."""
        return self.is_terminal or self.type == "question"

    @cached_property
    def data(self) -> dict[str, Any]:
        """Return the `data` of the HTTP contract."""
        return {"type": self.type, **self.content()}

    def envelope(self) -> dict[str, Any]:
        """Return the event as a stream sends it."""
        return {
            "code": self.code,
            "success": self.type != "error",
            "message": self.message,
            "data": self.data,
        }

    def sync_envelope(self) -> dict[str, Any]:
        """Return the terminal event for the sync endpoint; `type` is the kind of answer."""
        return {**self.envelope(), "data": {**self.data, "type": self._sync_type}}

    @cached_property
    def rendered(self) -> bytes:
        """Return `envelope` in JSON, UTF-8."""
        return to_bytes(self.envelope())

    def sync_rendered(self) -> bytes:
        """Return `sync_envelope` in JSON, UTF-8, from the bytes of `rendered` after the type."""
        after_type = self.rendered[len(self._up_to_type(self.type)) :]
        return self._up_to_type(self._sync_type) + after_type

    def _up_to_type(self, type_: str) -> bytes:
        return to_bytes({**self.envelope(), "data": {"type": type_}}).removesuffix(b"}}")

    @property
    def _sync_type(self) -> str:
        if self.type == "completed":
            return str(self.data["response_type"])

        return self.type


def stored_event(data: bytes) -> Event:
    """Return the event whose rendered envelope is `data`."""
    envelope = simplejson.loads(data, use_decimal=True)
    content = envelope["data"]
    return Event(content.pop("type"), envelope["message"], lambda: content, envelope["code"])


_RESULT = to_bytes({"type": "result"}).strip(b"{}")


def is_result(frame: EventFrame) -> bool:
    """Tell whether the frame may be a `result`, without parsing its rows."""
    return _RESULT in frame.data


def with_warning(event: Event, warning: str) -> Event:
    """Return the completed event with `warning` added."""

    def content() -> dict[str, Any]:
        body = event.content()
        return {**body, "warnings": [*body["warnings"], warning]}

    return replace(event, content=content)


def error_event(error: CituError, head: RunHead) -> Event:
    """Return the terminal event of a run that ends in `error` without its flow."""
    ids = {"node": None, "conversation_id": head.conversation_id, "run_id": head.run_id}
    data = {
        **error_data(error, head.lang),
        **ids,
        "request_id": None,
        "timestamp": timestamps.now(),
    }
    message = error.title.to(head.lang)
    turn = failed_turn(head.run_id, head.question, head.started_at, message, data)
    return Event("error", message, lambda: data, error.code, turn=turn)
