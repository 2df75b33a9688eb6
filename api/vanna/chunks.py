"""Translates the events of a run into the chunks of Vanna's chat protocol, without any I/O.

A chunk is one part of an answer as `event_parts` makes it, in the form in which clients read it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.vanna.components import ChatPart
from api.vanna.event_parts import EventParts, greeting_parts, said_parts
from common import timestamps
from common.envelope import error_data
from common.errors import CituError
from common.text import Lang

Chunk = dict[str, Any]

_ERROR_FIELDS = ("error_type", "error", "retryable", "retry_after_s", "field")


@dataclass(frozen=True)
class ChunkEnvelope:
    """The fields that all chunks have that answer one request.

    Attributes:
        conversation_id, request_id: as the client calls them.
        run_id: the id of the run that the chunks are of; None: there is none.
    """

    conversation_id: str
    request_id: str
    run_id: str | None = None

    def chunk(self, part: ChatPart, moment: str, **more: Any) -> Chunk:
        """Return a chunk; `moment` is ISO 8601, and Vanna's clients skip the keys in `more`."""
        chunk = {
            "rich": _rich(part, moment),
            "simple": _simple(part),
            "conversation_id": self.conversation_id,
            "request_id": self.request_id,
            "timestamp": datetime.fromisoformat(moment).timestamp(),
        }
        if self.run_id:
            chunk["run_id"] = self.run_id

        return chunk | more


class Translation:
    """Translates the events of one run, in their order."""

    def __init__(
        self,
        envelope: ChunkEnvelope,
        lang: Lang,
        question: str,
        prefix: str,
        moment: str,
        *,
        is_repeated: bool = False,
    ) -> None:
        """Begin to translate one answer's events.

        Args:
            question: what was asked; sent again by the button to try again. Empty: there is no such
                button.
            prefix: begins the names of all parts; two translations that one client gets have
                different ones.
            moment: time of the chunks until an event says its own; ISO 8601.
            is_repeated: whether the client may have some of the parts already, from a connection
                that broke.
        """
        self._envelope = envelope
        self._moment = moment
        self._parts = EventParts(lang, question, prefix, is_repeated)

    def chunks_of(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks for an event's `data`; none for events unknown to this version."""
        moment = event.get("timestamp")
        if isinstance(moment, str):
            self._moment = moment

        is_error = event.get("type") == "error"
        chunks = []
        for part in self._parts.parts_of(event):
            more = {}
            if is_error and part.kind == "text":
                more["error"] = _error_fields(event)

            chunk = self._envelope.chunk(part, self._moment, **more)
            chunks.append(chunk)

        return chunks


def said_chunks(
    envelope: ChunkEnvelope, prefix: str, paragraphs: Iterable[str], lang: Lang
) -> list[Chunk]:
    """Return an answer that no run gives: texts, and the client may ask again."""
    return _chunks_now(envelope, said_parts(prefix, paragraphs, lang))


def greeting_chunks(
    envelope: ChunkEnvelope, prefix: str, greeting: str, examples: Iterable[str], lang: Lang
) -> list[Chunk]:
    """Return the beginning of a conversation, with questions to ask."""
    return _chunks_now(envelope, greeting_parts(prefix, greeting, examples, lang))


def error_chunks(error: CituError, envelope: ChunkEnvelope, prefix: str, lang: Lang) -> list[Chunk]:
    """Return an error outside of any run, as one of a run is shown."""
    data = {"type": "error", **error_data(error, lang)}
    return Translation(envelope, lang, "", prefix, timestamps.now()).chunks_of(data)


def _chunks_now(envelope: ChunkEnvelope, parts: Iterable[ChatPart]) -> list[Chunk]:
    moment = timestamps.now()
    return [envelope.chunk(part, moment) for part in parts]


def _rich(part: ChatPart, moment: str) -> dict[str, Any]:
    """Return a part as the web component reads it."""
    return {
        "id": part.name,
        "type": part.kind,
        "lifecycle": part.lifecycle,
        "children": [],
        "timestamp": moment,
        "visible": True,
        "interactive": part.kind == "button_group",
        "data": dict(part.data),
    }


def _simple(part: ChatPart) -> dict[str, Any] | None:
    """Return a part for clients that show text alone; None where it says nothing."""
    if not part.plain:
        return None

    return {"type": "text", "semantic_type": None, "metadata": {}, "text": part.plain}


def _error_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that programs can act on."""
    return {name: event[name] for name in _ERROR_FIELDS if name in event}
