"""Says what the events of a run are over MCP, without any I/O.

progress   a step of progress, as is
tool       a step of progress: the tool, and what it found
token      nothing: the text comes whole
result     nothing: the answer has its sources
question   the user is asked; where the client can't ask, the question is the result
completed  the result
error      a result that failed
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from api.answer_fields import answer_fields
from api.answer_markdown import answer_text, choices_text
from api.given_answers import answer_in, choice_text
from api.mcp.content import InputRequired, Json, Progress, Result, Step, failed_result
from api.run_frames import WaitingRun
from common.envelope import to_json
from common.text import Lang, Text

_ANSWER = "answer"  # the name of what is asked, and of the one field of its form
_PRIMITIVE = frozenset({"string", "number", "integer", "boolean"})
_REPLY = Text(
    "请询问用户，然后再次调用 ask：question 为用户的回答，answer_to 为 {}",
    "Ask the user, then call ask again with the answer as question and answer_to {}",
)


def step_of(event: Json, lang: Lang, *, can_ask: bool) -> Step | None:
    """Return the step for an event's `data`; None for those that say nothing here.

    Args:
        can_ask: whether the client can put a form before its user.
    """
    make = _STEP_BY_EVENT.get(str(event.get("type")))
    return make(event, lang, can_ask) if make is not None else None


def given_answer(asked: Json, content: Json) -> Any:
    """Return the answer to a question of a run in a form that was filled.

    Args:
        asked: `data` of the event `question`.
        content: the fields of the form.
    """
    if _is_form(asked.get("schema")) and not asked.get("choices"):
        return dict(content)

    text = content.get(_ANSWER)
    return answer_in(asked, text) if isinstance(text, str) else text


def texts(text: str) -> list[dict[str, Any]]:
    """Return a text as results hold it."""
    return [{"type": "text", "text": text}]


# ------------------------------------------------------------------------------
# events


def _progress(event: Json, _lang: Lang, _can_ask: bool) -> Step | None:
    details = event.get("sub_status") or event.get("details")
    title = str(event.get("display_name") or event.get("node"))
    return Progress(f"{title}: {details}" if details else title)


def _tool(event: Json, _lang: Lang, _can_ask: bool) -> Step | None:
    title, summary = event.get("display_name") or event.get("name"), event.get("summary")
    return Progress(f"{title}: {summary}" if summary else str(title))


def _question(event: Json, lang: Lang, can_ask: bool) -> Step | None:
    answer_to = WaitingRun.of(event).name
    if can_ask:
        form = {"mode": "form", "message": str(event["prompt"]), "requestedSchema": _form(event)}
        asked = {"method": "elicitation/create", "params": form}
        return InputRequired({_ANSWER: asked}, {"answer_to": answer_to})

    lines = [str(event["prompt"])]
    if event.get("choices"):
        lines.append(choices_text(event["choices"], lang))
    if event.get("schema"):
        lines.append(to_json(event["schema"]))

    lines.append(_REPLY.to(lang).format(answer_to))
    fields = {"response": lines[0], "choices": list(event.get("choices") or ())}
    ids = {"conversation_id": event["conversation_id"], "run_id": event["run_id"]}
    body = {**fields, "answer_to": answer_to, **ids}
    return Result({"content": texts("\n\n".join(lines)), "structuredContent": body})


def _completed(event: Json, lang: Lang, _can_ask: bool) -> Step | None:
    content = texts(answer_text(event, lang))
    return Result({"content": content, "structuredContent": answer_fields(event)})


def _error(event: Json, _lang: Lang, _can_ask: bool) -> Step | None:
    fields = {name: event[name] for name in _ERROR_FIELDS if event.get(name) is not None}
    message = f"{event['error_type']}: {event['error']}"
    return Result(failed_result(message, fields))


_ERROR_FIELDS = ("error_type", "retryable", "retry_after_s", "conversation_id", "run_id")
_STEP_BY_EVENT: Mapping[str, Callable[[Json, Lang, bool], Step | None]] = {
    "progress": _progress,
    "tool": _tool,
    "question": _question,
    "completed": _completed,
    "error": _error,
}


# ------------------------------------------------------------------------------
# forms


def _form(event: Json) -> Json:
    """Return the form of an answer, of which the protocol allows flat fields only."""
    choices, schema = event.get("choices"), event.get("schema")
    if choices:
        named = [choice_text(choice) for choice in choices]
        return _one_field({"type": "string", "enum": named})

    if _is_form(schema):
        return dict(schema)

    return _one_field({"type": "string"})


def _one_field(field: Json) -> Json:
    return {"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]}


def _is_form(schema: Any) -> TypeGuard[Json]:
    """Tell whether a schema is an object whose fields have no parts."""
    if not isinstance(schema, Mapping):
        return False

    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return False

    return bool(properties) and all(map(_is_flat, properties.values()))


def _is_flat(field: Any) -> bool:
    return isinstance(field, Mapping) and field.get("type") in _PRIMITIVE
