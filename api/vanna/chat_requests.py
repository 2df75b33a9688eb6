"""Reads requests as Vanna's clients send them: a question, a greeting that is wanted, feedback, or an answer.

Buttons of those clients can only send messages. So feedback and answers to a run that waits are messages as well, whose
form this module writes and reads.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.flow import new_conversation_id
from api.fields import ID, optional, short_text, wrong
from api.requests import parse_user_id, question_text
from api.vanna.names import plain_name
from common.envelope import to_json
from common.errors import InvalidRequest
from common.text import Text

_FEEDBACK = re.compile(rf"/feedback (good|bad) ({ID.pattern})")
_REPLY = re.compile(rf"/answer ({ID.pattern}) ({ID.pattern}) (.+)", re.DOTALL)
_NO_OBJECT = Text(
    '请求体必须是 JSON 对象，例如 {"message": "各服务区的营业收入排行"}。',
    'The body must be a JSON object, for example {"message": "Revenue ranking by service area"}.',
)


@dataclass(frozen=True)
class Rated:
    """What a user thinks of the answer of a run."""

    run_id: str
    is_good: bool


@dataclass(frozen=True)
class Replied:
    """The user's answer to what a run has asked."""

    run_id: str
    interrupt_id: str
    text: str


@dataclass(frozen=True)
class ChatRequest:
    """A checked request.

    Attributes:
        message: what the user says; empty when the greeting is wanted.
        said: what kind of message it is.
        conversation_id: as the client calls the conversation; one is made up for a client that names none.
        request_id: as the client calls the request; likewise.
        is_named: whether the client named the request, and so can repeat it.
        continues: whether the client named the conversation, which may have earlier turns.
        user_id: the user that the body names; only some callers may name one.
    """

    message: str
    said: Literal["question", "greeting"] | Rated | Replied
    conversation_id: str
    request_id: str
    is_named: bool = False
    continues: bool = False
    user_id: str | None = None

    @property
    def kept_conversation_id(self) -> str:
        """The id under which Citu keeps the conversation."""
        return plain_name(self.conversation_id)

    @property
    def kept_request_id(self) -> str:
        """The same for the request."""
        return plain_name(self.request_id)

    @property
    def key(self) -> str | None:
        """The Idempotency-Key of the request, apart from those that clients of other endpoints choose."""
        return f"vanna:{self.kept_request_id}" if self.is_named else None


def parse_chat(body: object, max_message_chars: int) -> ChatRequest:
    """The checked request. Fields that nobody reads are left out, as Vanna's own server does.

    Raises:
        InvalidRequest: it is no JSON object, or a field is wrong; names the field and what is allowed.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(_NO_OBJECT)
    conversation_id, request_id = (_name(body, field) for field in ("conversation_id", "request_id"))
    metadata = optional(body, "metadata", _object) or {}
    message, said = _message(body, metadata, max_message_chars)
    return ChatRequest(
        message=message,
        said=said,
        conversation_id=conversation_id or new_conversation_id(),
        request_id=request_id or f"req_{secrets.token_hex(8)}",
        is_named=bool(request_id),
        continues=bool(conversation_id),
        user_id=parse_user_id(body),
    )


def names_of(body: object) -> tuple[str, str]:
    """The ids of the conversation and of the request in a body that need not be valid, for an error about it."""
    given = body if isinstance(body, dict) else {}
    names = (given.get("conversation_id"), given.get("request_id"))
    conversation_id, request_id = (name if isinstance(name, str) else "" for name in names)
    return conversation_id, request_id


def feedback_message(run_id: str, *, is_good: bool) -> str:
    """The message that `parse_chat` takes for feedback."""
    return f"/feedback {'good' if is_good else 'bad'} {run_id}"


def reply_message(run_id: str, interrupt_id: str, text: str) -> str:
    """The message that `parse_chat` takes for the answer to what a run has asked."""
    return f"/answer {run_id} {interrupt_id} {text}"


def choice_text(choice: Any) -> str:
    """One of the answers that a run has offered, as messages and labels say it."""
    return choice.strip() if isinstance(choice, str) else to_json(choice)


def _message(
    body: Mapping[str, Any], metadata: Mapping[str, Any], max_chars: int
) -> tuple[str, Literal["question", "greeting"] | Rated | Replied]:
    message = body.get("message")
    is_blank = isinstance(message, str) and not message.strip()
    if is_blank or metadata.get("starter_ui_request") is True:
        return "", "greeting"
    text = question_text("message", message, max_chars)
    if found := _FEEDBACK.fullmatch(text):
        return text, Rated(found[2], is_good=found[1] == "good")
    if found := _REPLY.fullmatch(text):
        return text, Replied(found[1], found[2], found[3])
    return text, "question"


def _name(body: Mapping[str, Any], field: str) -> str:
    """A name that the client has made up, in any form; empty: there is none."""
    return "" if body.get(field) == "" else optional(body, field, short_text) or ""


def _object(field: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise wrong(field, "一个对象", "an object")
