"""The kept log of prompts and replies: one JSON line for each call of a model.

It is off by default, because prompts hold questions, names of tables and stored values. Lines are
redacted like logs, and the file is its owner's alone.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import timestamps
from common.errors import CituError
from common.line_file import LineFile
from common.logs import request_id
from common.redaction import redacted
from common.values import Usage
from llm.chat_model import AnyMessage, ChatModel, Completion, OnToken, WrappedModel
from llm.tokens import estimated_tokens
from llm.tool_calls import ToolOffer

MAX_BYTES = 50 * 1024 * 1024  # of one file
KEPT = 4  # full files beside the current one

Cost = Callable[[Usage], float | None]
"""Gives the price of a call in the operator's currency; None where it is not known."""


def unknown_cost(_usage: Usage) -> None:
    """Return None: no price is known."""


def open_model_log(path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> LineFile:
    """Return the log at `path`; nothing is opened before the first line."""
    return LineFile(
        path, "the log of prompts", "calls go unrecorded", max_bytes=max_bytes, kept=kept
    )


class LoggedModel(WrappedModel):
    """A model whose calls are logged; lines are written beside the answer, not before it."""

    def __init__(self, inner: ChatModel, log: LineFile, cost: Cost = unknown_cost) -> None:
        super().__init__(inner)
        self._log = log
        self._cost = cost

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        asked = {
            "id": secrets.token_hex(8),
            "time": timestamps.now(),
            "request_id": request_id.get(),
            "model": self.name,
            "messages": list(messages),
            "parts": [_part(message) for message in messages],
            "max_tokens": max_tokens,
            "offer": asdict(offer) if offer is not None else None,
        }
        started = time.perf_counter()
        try:
            completion = await super().complete(
                messages, on_token=on_token, max_tokens=max_tokens, offer=offer
            )
        except BaseException as error:
            self._write(asked, started, {"reply": None, "error": _error_name(error)})
            raise

        self._write(asked, started, self._reply_entry(completion))
        return completion

    def _reply_entry(self, completion: Completion) -> Mapping[str, Any]:
        usage = completion.usage
        return {
            "reply": reply_fields(completion),
            "usage": asdict(usage),
            "cost": self._cost(usage),
            "error": None,
        }

    def _write(self, asked: Mapping[str, Any], started: float, ended: Mapping[str, Any]) -> None:
        milliseconds = round((time.perf_counter() - started) * 1000, 1)
        line = {**asked, **ended, "ms": milliseconds}
        # Redacting a long prompt takes milliseconds, which the event loop does not have.
        asyncio.get_running_loop().run_in_executor(None, _write_redacted, self._log, line)


def reply_fields(completion: Completion) -> Mapping[str, Any]:
    """Return a reply as lines of the log have it."""
    calls = [
        {"name": call.spelled_name, "arguments": call.spelled_arguments}
        for call in completion.tool_calls
    ]
    return {
        "text": completion.text,
        "reasoning": completion.reasoning,
        "tool_calls": calls,
        "finish_reason": completion.finish_reason,
    }


def _write_redacted(log: LineFile, line: Mapping[str, Any]) -> None:
    log.write(_redacted(line))


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: _redacted(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(one) for one in value]

    return value


def _part(message: AnyMessage) -> Mapping[str, Any]:
    """Return the role and the size of a message."""
    content = message["content"] or ""
    return {
        "role": message["role"],
        "chars": len(content),
        "tokens": estimated_tokens(content),
    }


def _error_name(error: BaseException) -> str:
    if isinstance(error, CituError):
        return error.error_type

    return type(error).__name__
