"""Says what the events of a run are in AG-UI, without any I/O.

progress   a step that begins or ends
token      a piece of a message
tool       a call with its arguments, and later its result
result     an event of Citu's own: rows found on the way
question   the end of the run, interrupted
completed  the rest of the message, the state (SQL, rows, chart), the end of the run
error      the run's error; its end, cancelled
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.answer_fields import answer_fields
from api.run_frames import WaitingRun
from common.envelope import to_json

Json = dict[str, Any]

PROTOCOL_VERSION = "1.0"
RESULT = "citu.result"
_CANCELLED = "cancelled"


@dataclass
class AguiEvents:
    """Translates the events of one run, in their order."""

    thread_id: str
    run_id: str
    _open_steps: list[str] = field(default_factory=list)
    _open_message: str = ""
    _said: str = ""
    _messages: int = 0

    def started(self) -> Json:
        """Return the first event of the run."""
        return self._of_run("RUN_STARTED", protocolVersion=PROTOCOL_VERSION)

    def of(self, event: Mapping[str, Any]) -> list[Json]:
        """Return the events for an event's `data`; none for those unknown to this version."""
        make = _EVENTS_BY_TYPE.get(str(event.get("type")))
        return list(make(self, event)) if make is not None else []

    # --------------------------------------------------------------------------
    # one method for each type of event

    def _progress(self, event: Mapping[str, Any]) -> Iterator[Json]:
        name = str(event["node"])
        if name not in self._open_steps:
            self._open_steps.append(name)
            yield {"type": "STEP_STARTED", "stepName": name, "metadata": _shown(event)}

        if event.get("status") != "running":
            self._open_steps.remove(name)
            yield {"type": "STEP_FINISHED", "stepName": name, "metadata": _shown(event)}

    def _token(self, event: Mapping[str, Any]) -> Iterator[Json]:
        yield from self._say(str(event.get("text") or ""))

    def _tool(self, event: Mapping[str, Any]) -> Iterator[Json]:
        call_id = str(event["call_id"])
        if event.get("status") == "running":
            yield from self._end_message()
            name = str(event["name"])
            yield {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}
            arguments = to_json(event.get("arguments") or {})
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments}
            yield {"type": "TOOL_CALL_END", "toolCallId": call_id}
            return

        yield {
            "type": "TOOL_CALL_RESULT",
            "messageId": self._new_message(),
            "toolCallId": call_id,
            "content": str(event.get("summary") or event.get("status")),
            "role": "tool",
        }

    def _result(self, event: Mapping[str, Any]) -> Iterator[Json]:
        value = {name: event[name] for name in event if name != "type"}
        yield {"type": "CUSTOM", "name": RESULT, "value": value}

    def _question(self, event: Mapping[str, Any]) -> Iterator[Json]:
        interrupt: Json = {
            "id": WaitingRun.of(event).name,
            "reason": str(event["kind"]),
            "message": str(event["prompt"]),
        }
        schema = event.get("schema")
        if event.get("choices"):
            schema = {"type": "string", "enum": list(event["choices"])}
        if schema:
            interrupt["responseSchema"] = schema

        yield from self._end_run({"type": "interrupt", "interrupts": [interrupt]})

    def _completed(self, event: Mapping[str, Any]) -> Iterator[Json]:
        response = str(event["response"])
        if not response.startswith(self._said):
            yield from self._end_message()
            self._said = ""

        yield from self._say(response[len(self._said) :])
        yield from self._end_message()
        yield {"type": "STATE_SNAPSHOT", "snapshot": answer_fields(event)}
        yield from self._end_run({"type": "success"})

    def _error(self, event: Mapping[str, Any]) -> Iterator[Json]:
        if event["error_type"] == _CANCELLED:
            yield from self._end_run({"type": "cancelled"})
            return

        yield {"type": "RUN_ERROR", "message": event["error"], "code": event["error_type"]}

    # --------------------------------------------------------------------------

    def _say(self, text: str) -> Iterator[Json]:
        if not text:
            return
        if not self._open_message:
            self._open_message = self._new_message()
            start = {"type": "TEXT_MESSAGE_START", "messageId": self._open_message}
            yield {**start, "role": "assistant"}

        self._said += text
        content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._open_message}
        yield {**content, "delta": text}

    def _end_message(self) -> Iterator[Json]:
        if self._open_message:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._open_message}
            self._open_message = ""

    def _end_run(self, outcome: Json) -> Iterator[Json]:
        yield from self._end_message()
        for name in self._open_steps:
            yield {"type": "STEP_FINISHED", "stepName": name}

        self._open_steps.clear()
        yield self._of_run("RUN_FINISHED", outcome=outcome)

    def _new_message(self) -> str:
        self._messages += 1
        return f"{self.run_id}-{self._messages}"

    def _of_run(self, kind: str, **more: Any) -> Json:
        return {"type": kind, "threadId": self.thread_id, "runId": self.run_id, **more}


def _shown(event: Mapping[str, Any]) -> Json:
    """Return what people are shown of a step."""
    names = ("display_name", "icon", "details", "sub_status", "status")
    return {name: event[name] for name in names if event.get(name)}


_EVENTS_BY_TYPE: Mapping[str, Callable[[AguiEvents, Mapping[str, Any]], Iterator[Json]]] = {
    "progress": AguiEvents._progress,
    "token": AguiEvents._token,
    "tool": AguiEvents._tool,
    "result": AguiEvents._result,
    "question": AguiEvents._question,
    "completed": AguiEvents._completed,
    "error": AguiEvents._error,
}
