"""What a question emits while it is answered: any number of progress and token events, then one terminal event.

An event is the content of one frame of the stream; the sync answer is the terminal event alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

EventType = Literal["progress", "token", "completed", "error"]


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        content: makes `data` without its `type`; called when somebody looks, since a sync answer is shown no progress.
        code: HTTP status the sync endpoint answers with when the event is terminal.
    """

    type: EventType
    message: str
    content: Callable[[], dict[str, Any]]
    code: int = 200

    @property
    def is_terminal(self) -> bool:
        """Whether it is the last one."""
        return self.type in ("completed", "error")

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the HTTP contract calls `data`."""
        return {"type": self.type, **self.content()}

    def envelope(self) -> dict[str, Any]:
        """The event as a stream sends it."""
        return {"code": self.code, "success": self.type != "error", "message": self.message, "data": self.data}

    def sync_envelope(self) -> dict[str, Any]:
        """The terminal event as the sync endpoint answers it: `type` says what kind of answer it is."""
        envelope = self.envelope()
        if self.type == "completed":
            envelope["data"] = {**self.data, "type": self.data["response_type"]}
        return envelope
