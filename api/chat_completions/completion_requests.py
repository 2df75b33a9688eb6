"""Reads a request for a completion: which agent, which question, which conversation."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.question import new_conversation_id
from api.chat_messages import texts_of
from api.external_ids import id_for
from api.fields import flag, short_text
from api.models.request_models import question_text
from api.run_frames import WaitingRun
from common.errors import InvalidRequest
from common.text import Text

AGENTS: Mapping[str, str] = {
    "citu": "ask",
    "citu-tool-loop": "tool_loop",
    "citu-tool-graph": "tool_graph",
}
"""The agents by the names of the models that stand for them."""

CONVERSATION_HEADERS = ("X-Conversation-ID", "X-OpenWebUI-Chat-Id")
"""Headers in which front ends name a chat."""

# How an answer that asks its user names the run that waits; read again in the chat's next request.
_WAITING = re.compile(r"`(run_[0-9a-f]{1,64}:[A-Za-z0-9_.-]{1,128})`\s*\Z")
_NO_OBJECT = Text("请求体必须是 JSON 对象。", "The body must be a JSON object.")
_NO_MESSAGES = Text(
    "messages 必须是列表，其中最后一条 role 为 user 的消息是问题。",
    "messages must be a list; its last message with the role user is the question.",
)
_ONE = Text("n 只能是 1。", "n can only be 1.")


@dataclass(frozen=True)
class CompletionRequest:
    """A request for a completion, checked.

    Attributes:
        model: as the client calls it.
        continues: whether the chat has earlier questions.
        waiting: the run that the question answers; None: it is a question of its own.
        user_id: the user that the body names; only some callers may name one.
    """

    model: str
    question: str
    conversation_id: str
    continues: bool
    waiting: WaitingRun | None
    streams: bool
    with_usage: bool
    user_id: str | None

    @property
    def agent(self) -> str:
        """Return the name of the flow."""
        return AGENTS[self.model]


def parse_completion(
    body: object, headers: Mapping[str, str], max_question_chars: int
) -> CompletionRequest:
    """Return the checked request; fields that tune a model are passed over.

    Args:
        headers: those of `CONVERSATION_HEADERS` that the request has.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(_NO_OBJECT)

    model = body.get("model")
    if not isinstance(model, str) or model not in AGENTS:
        listed = ", ".join(AGENTS)
        message = Text(f"model 必须是 {listed} 之一。", f"model must be one of {listed}.")
        raise InvalidRequest(message, field="model")

    if body.get("n") not in (None, 1):
        raise InvalidRequest(_ONE, field="n")

    messages = texts_of(body.get("messages"), "user")
    if not messages:
        raise InvalidRequest(_NO_MESSAGES, field="messages")

    options = body.get("stream_options")
    user, streams = body.get("user"), body.get("stream")
    if streams is not None:
        flag("stream", streams)

    return CompletionRequest(
        model=model,
        question=question_text("messages", messages[-1], max_question_chars),
        conversation_id=_conversation_id(headers, messages[0]),
        continues=len(messages) > 1,
        waiting=_waiting(body["messages"]),
        streams=streams is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        user_id=short_text("user", user) if user else None,
    )


def last_message(body: object) -> str:
    """Return the last message of a user, in a body that need not be valid."""
    messages = body.get("messages") if isinstance(body, dict) else None
    user_messages = texts_of(messages, "user")
    return user_messages[-1] if user_messages else ""


def _conversation_id(headers: Mapping[str, str], first: str) -> str:
    for name in CONVERSATION_HEADERS:
        external_id = headers.get(name, "").strip()
        if external_id:
            return id_for(external_id)

    if not first.strip():
        return new_conversation_id()

    return f"chat_{hashlib.sha256(first.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _waiting(messages: list[Any]) -> WaitingRun | None:
    """Return the run that the latest answer named as waiting."""
    replies = texts_of(messages, "assistant")
    name_in_text = _WAITING.search(replies[-1]) if replies else None
    return WaitingRun.parse(name_in_text[1]) if name_in_text is not None else None
