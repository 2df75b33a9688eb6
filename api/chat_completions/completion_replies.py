"""Says what the events of a run are as a completion, without any I/O.

token      a piece of the text
question   the rest of the text: what is asked, and the name of the run that waits
completed  the rest of the text: rows, SQL, warnings, a link
error      an error
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.answer_markdown import answer_text, choices_text
from api.run_frames import WaitingRun
from common.envelope import error_data
from common.errors import CituError
from common.text import Lang, Text

Json = dict[str, Any]

_REPLY = Text("请直接回复您的回答。", "Reply with your answer.")
_MORE = Text("[在 Citu 中查看全部数据和图表]({})", "[All rows and charts in Citu]({})")
_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@dataclass
class ChatCompletion:
    """Collects the text of one completion.

    Attributes:
        address: the address of this service, without a path.
        error: `data` of the event `error`, once it has come.
        status: the status of the HTTP response, where the completion is all of it.
    """

    model: str
    lang: Lang
    address: str
    id: str = "chatcmpl"
    usage: Mapping[str, int] = field(default_factory=lambda: dict(_NO_USAGE))
    error: Mapping[str, Any] | None = None
    status: int = 200
    created: int = field(default_factory=lambda: int(time.time()))
    _said: str = ""

    def piece_of(self, event: Mapping[str, Any]) -> str:
        """Return the text that an event adds; empty for events that say nothing here."""
        if event.get("run_id"):
            self.id = f"chatcmpl-{event['run_id']}"

        make = _PIECE_BY_EVENT.get(str(event.get("type")))
        piece = make(self, event) if make is not None else ""
        self._said += piece
        return piece

    def fail(self, error: CituError) -> None:
        """Note an error that is no event of the run."""
        self.status = error.code
        self.error = error_data(error, self.lang)

    @property
    def text(self) -> str:
        """Return the text so far."""
        return self._said

    # --------------------------------------------------------------------------
    # one method for each type of event

    def _token(self, event: Mapping[str, Any]) -> str:
        return str(event.get("text") or "")

    def _question(self, event: Mapping[str, Any]) -> str:
        return self._rest(_question_text(event, self.lang))

    def _completed(self, event: Mapping[str, Any]) -> str:
        self.usage = _usage(event.get("usage") or {})
        return self._rest(self._answer(event))

    def _error(self, event: Mapping[str, Any]) -> str:
        self.error = event
        return ""

    # --------------------------------------------------------------------------

    def _answer(self, event: Mapping[str, Any]) -> str:
        text = answer_text(event, self.lang)
        if event.get("query_result"):
            link = f"{self.address}/c/{event['conversation_id']}"
            text = f"{text}\n\n{_MORE.to(self.lang).format(link)}"

        return text

    def _rest(self, text: str) -> str:
        """Return what of a text has not been said yet."""
        if text.startswith(self._said):
            return text[len(self._said) :]

        return f"\n\n{text}"

    # --------------------------------------------------------------------------
    # objects of the protocol

    def whole(self) -> Json:
        """Return the completion as one object."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
        return {
            **self._reply_head("chat.completion"),
            "choices": [choice],
            "usage": dict(self.usage),
        }

    def chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> Json:
        """Return one piece of a stream."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason}
        return {**self._reply_head("chat.completion.chunk"), "choices": [choice]}

    def usage_chunk(self) -> Json:
        """Return the last piece of a stream whose client wants to know what it cost."""
        return {
            **self._reply_head("chat.completion.chunk"),
            "choices": [],
            "usage": dict(self.usage),
        }

    def _reply_head(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


_PIECE_BY_EVENT: Mapping[str, Callable[[ChatCompletion, Mapping[str, Any]], str]] = {
    "token": ChatCompletion._token,
    "question": ChatCompletion._question,
    "completed": ChatCompletion._completed,
    "error": ChatCompletion._error,
}


def error_object(error: Mapping[str, Any]) -> Json:
    """Return an error in OpenAI's shape, by the `data` of Citu's."""
    return {
        "error": {
            "message": error["error"],
            "type": error["error_type"],
            "param": error.get("field"),
            "code": error["error_type"],
        }
    }


def model_list(names: Iterable[str]) -> Json:
    """Return the models that there are."""
    return {"object": "list", "data": [model_object(name) for name in names]}


def model_object(name: str) -> Json:
    """Return an agent as OpenAI describes a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "citu"}


def _question_text(event: Mapping[str, Any], lang: Lang) -> str:
    parts = [str(event["prompt"])]
    if event.get("choices"):
        parts.append(choices_text(event["choices"], lang))

    parts.append(f"{_REPLY.to(lang)} `{WaitingRun.of(event).name}`")
    return "\n\n".join(parts)


def _usage(usage: Mapping[str, Any]) -> Mapping[str, int]:
    prompt = int(usage.get("prompt_tokens") or 0)
    completion = int(usage.get("completion_tokens") or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
