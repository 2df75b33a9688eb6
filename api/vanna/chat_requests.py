"""Reads requests as Vanna's clients send them: for an answer or a greeting, feedback, a reply.

Buttons of those clients can only send messages. So feedback and answers to a run that waits are
messages as well, whose form this module writes and reads.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.question import new_conversation_id
from api.external_ids import id_for
from api.fields import ID
from api.models.request_models import ChatRequestBody, question_text
from common.errors import InvalidRequest
from common.text import Text

_FEEDBACK = re.compile(rf"/feedback (good|bad) ({ID.pattern})")
_REPLY = re.compile(rf"/answer ({ID.pattern}) ({ID.pattern}) (.+)", re.DOTALL)
_NO_OBJECT = Text(
    '请求体必须是 JSON 对象，例如 {"message": "各服务区的营业收入排行"}。',
    'The body must be a JSON object, for example {"message": "Revenue ranking by service area"}.',
)


@dataclass(frozen=True)
class ChatRating:
    """A user's opinion of the answer of a run."""

    run_id: str
    is_good: bool


@dataclass(frozen=True)
class ChatAnswer:
    """The user's answer to what a run has asked."""

    run_id: str
    interrupt_id: str
    text: str


@dataclass(frozen=True)
class ChatRequest:
    """A request of Vanna's client, checked.

    Attributes:
        message: what the user says; empty when the greeting is wanted.
        said: what kind of message it is.
        conversation_id: as the client calls the conversation; one is made up for a client that
            names none.
        request_id: as the client calls the request; likewise.
        is_named: whether the client named the request, and so can repeat it.
        continues: whether the client named the conversation, which may have earlier turns.
        user_id: the user that the body names; only some callers may name one.
    """

    message: str
    said: Literal["question", "greeting"] | ChatRating | ChatAnswer
    conversation_id: str
    request_id: str
    is_named: bool = False
    continues: bool = False
    user_id: str | None = None

    @property
    def kept_conversation_id(self) -> str:
        """Return the id under which Citu keeps the conversation."""
        return id_for(self.conversation_id)

    @property
    def kept_request_id(self) -> str:
        """Return the id under which Citu keeps the request."""
        return id_for(self.request_id)

    @property
    def key(self) -> str | None:
        """Return the request's Idempotency-Key, apart from those of clients of other endpoints."""
        if self.is_named:
            return f"vanna:{self.kept_request_id}"

        return None


def parse_chat(body: object, max_message_chars: int) -> ChatRequest:
    """Return the checked request.

    Fields that nobody reads are left out, as Vanna's own server does.

    Raises:
        InvalidRequest: it is no JSON object, or a field is wrong; names the field and what is
            allowed.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(_NO_OBJECT)

    fields = ChatRequestBody.read(body)
    message, said = _message(fields.message, fields.metadata or {}, max_message_chars)
    return ChatRequest(
        message=message,
        said=said,
        conversation_id=fields.conversation_id or new_conversation_id(),
        request_id=fields.request_id or f"req_{secrets.token_hex(8)}",
        is_named=bool(fields.request_id),
        continues=bool(fields.conversation_id),
        user_id=fields.user_id,
    )


def names_of(body: object) -> tuple[str, str]:
    """Return the ids of conversation and request in a body that need not be valid."""
    if not isinstance(body, dict):
        return "", ""

    conversation_id, request_id = body.get("conversation_id"), body.get("request_id")
    return (
        conversation_id if isinstance(conversation_id, str) else "",
        request_id if isinstance(request_id, str) else "",
    )


def feedback_message(run_id: str, *, is_good: bool) -> str:
    """Return the message that `parse_chat` takes for feedback."""
    return f"/feedback {'good' if is_good else 'bad'} {run_id}"


def reply_message(run_id: str, interrupt_id: str, text: str) -> str:
    """Return the message that `parse_chat` takes for the answer to what a run has asked."""
    return f"/answer {run_id} {interrupt_id} {text}"


def _message(
    message: object, metadata: Mapping[str, Any], max_chars: int
) -> tuple[str, Literal["question", "greeting"] | ChatRating | ChatAnswer]:
    is_blank = isinstance(message, str) and not message.strip()
    if is_blank or metadata.get("starter_ui_request") is True:
        return "", "greeting"

    text = question_text("message", message, max_chars)
    feedback = _FEEDBACK.fullmatch(text)
    if feedback:
        return text, ChatRating(feedback[2], is_good=feedback[1] == "good")

    reply = _REPLY.fullmatch(text)
    if reply:
        return text, ChatAnswer(reply[1], reply[2], reply[3])

    return text, "question"
