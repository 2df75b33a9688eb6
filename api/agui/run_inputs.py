"""Reads what AG-UI's clients send: a thread's messages, or answers to what a run has asked.

Clients send the whole thread and its state each time. Only the last message of the user is read,
because Citu goes by the conversation that it has kept itself.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agent.question import Question
from api.chat_messages import is_object, texts_of
from api.external_ids import id_for
from api.fields import short_text, wrong
from api.models.request_models import question_text
from api.requests import ETL, parse_ask, parse_etl_ask
from api.run_frames import WaitingRun
from common.errors import InvalidRequest
from common.text import Text

_NO_OBJECT = Text(
    "请求体必须是 AG-UI 的 RunAgentInput：threadId、runId、messages。",
    "The body must be AG-UI's RunAgentInput: threadId, runId, messages.",
)
_NO_QUESTION = Text(
    "messages 中没有 role 为 user 的消息。", "messages has no message with the role user."
)
_ONE_ANSWER = Text(
    "resume 必须恰好回答一个中断。", "resume must answer one interrupt, and no more."
)
_CHOSEN = ("agent", "database", "lang", "routing_mode", "user_id")


@dataclass(frozen=True)
class InterruptAnswer:
    """An answer to an interrupt, or its refusal."""

    waiting: WaitingRun
    payload: Any
    is_refused: bool


@dataclass(frozen=True)
class RunInput:
    """A checked input.

    Attributes:
        thread_id, run_id: as the client calls them.
        asked: a question without an actor, or an answer.
        user_id: the user that `forwardedProps` name; only some callers may name one.
    """

    thread_id: str
    run_id: str
    asked: Question | InterruptAnswer
    user_id: str | None


def _chosen(props: object) -> dict[str, Any]:
    """Return what the front end chooses for the run, of all that it forwards."""
    if not isinstance(props, dict):
        return {}

    return {name: props[name] for name in _CHOSEN if name in props}


def parse_run_input(body: object, max_question_chars: int, agents: Collection[str]) -> RunInput:
    """Return the checked input.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(_NO_OBJECT)

    thread_id, run_id = _name(body, "threadId"), _name(body, "runId")
    chosen = _chosen(body.get("forwardedProps"))
    user_id = chosen.pop("user_id", None)
    if user_id is not None:
        user_id = short_text("forwardedProps.user_id", user_id)

    resume = body.get("resume")
    if resume:
        return RunInput(thread_id, run_id, _answer(resume), user_id)

    messages = texts_of(body.get("messages"), "user")
    if not messages:
        raise InvalidRequest(_NO_QUESTION, field="messages")

    question = question_text("messages", messages[-1], max_question_chars)
    fields = {**chosen, "question": question, "conversation_id": id_for(thread_id)}
    if chosen.get("agent") == ETL:
        ask_request = parse_etl_ask(fields, max_question_chars)
    else:
        ask_request = parse_ask(fields, max_question_chars, agents)

    return RunInput(thread_id, run_id, ask_request.question, user_id)


def _answer(resume: object) -> InterruptAnswer:
    if not isinstance(resume, list) or len(resume) != 1 or not is_object(resume[0]):
        raise InvalidRequest(_ONE_ANSWER, field="resume")

    entry: Mapping[str, Any] = resume[0]
    waiting = WaitingRun.parse(str(entry.get("interruptId", "")), "interruptId")
    return InterruptAnswer(waiting, entry.get("payload"), entry.get("status") == "cancelled")


def _name(body: Mapping[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= 256:
        raise wrong(field, "1 到 256 个字符的文本", "a text of 1 to 256 characters")

    return value
