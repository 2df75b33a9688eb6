"""Checks whether a user's answer has the form that the run asked for."""

import asyncio
import json
import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from common.errors import INTERNAL_ERROR_TEXT, InternalError, InvalidRequest
from common.text import Text

_log = logging.getLogger(__name__)

_MAX_SHOWN = 200  # characters of the allowed values that an error message quotes
_NO_TEXT = Text("answer 必须是非空字符串。", "answer must be a text that is not blank.")


async def load_checker() -> None:
    """Import what schemas are checked by, without holding up the event loop.

    That takes an eighth of a second, and seconds where the packages of linters are installed, which
    the library takes up.
    """
    await asyncio.to_thread(import_module, "jsonschema.validators")


def check_answer(question: Mapping[str, Any], answer: Any) -> None:
    """Check `answer` against the choices or the schema in a question event's data.

    Without either, it must be text.

    Args:
        question: with floats for fractions, which is what an answer has.

    Raises:
        InvalidRequest: it does not match; `field` names the part, fields inside the answer
            included.
        InternalError: the schema is not one that answers can be checked against.
    """
    choices = question.get("choices")
    schema = question.get("schema")
    if choices:
        _check_choice(choices, answer)
        return

    if schema is not None:
        _check_schema(schema, answer)
        return

    has_text = isinstance(answer, str) and bool(answer.strip())
    if not has_text:
        raise InvalidRequest(_NO_TEXT, field="answer")


def _check_choice(choices: Any, answer: Any) -> None:
    # Python takes true for 1 and 1.0 for 1; JSON does not.
    if json.dumps(answer) in map(json.dumps, choices):
        return

    allowed = _choices_text(choices)
    raise InvalidRequest(
        Text(f"answer 必须是以下之一：{allowed}。", f"answer must be one of {allowed}."),
        field="answer",
    )


def _check_schema(schema: Mapping[str, Any], answer: Any) -> None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema)
    try:
        kind.check_schema(dict(schema))
        # Pass this registry: the library's default would load a remote `$ref` over the network, on
        # the event loop.
        checker = kind(schema, registry=REGISTRY, format_checker=kind.FORMAT_CHECKER)
        error = next(iter(checker.iter_errors(answer)), None)
    except (SchemaError, Unresolvable, RecursionError) as exc:
        _log.exception("no answer can be held against a question's schema")
        raise InternalError(INTERNAL_ERROR_TEXT) from exc

    if error is None:
        return

    field = "answer"
    for part in error.absolute_path:
        field += f"[{part}]" if isinstance(part, int) else f".{part}"

    reason = error.message[:_MAX_SHOWN]
    raise InvalidRequest(
        Text(f"{field} 不符合要求：{reason}", f"{field} is not what was asked for: {reason}"),
        field=field,
    )


def _choices_text(choices: Any) -> str:
    text = json.dumps(choices, ensure_ascii=False)
    if len(text) <= _MAX_SHOWN:
        return text

    return text[:_MAX_SHOWN] + "…"
