"""Checks whether a user's answer has the form that the run asked for."""

import json
from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest
from common.text import Text

_MAX_SHOWN = 200  # characters of the allowed values that an error message quotes
_NO_TEXT = Text("answer 必须是非空字符串。", "answer must be a text that is not blank.")


def check_answer(question: Mapping[str, Any], answer: Any) -> None:
    """Checks `answer` against the choices or the schema in a question event's data; with neither, it must be text.

    Raises:
        InvalidRequest: it does not match; `field` names the part, fields inside the answer included.
    """
    if choices := question.get("choices"):
        if answer not in choices:
            said = _shown(choices)
            raise InvalidRequest(
                Text(f"answer 必须是以下之一：{said}。", f"answer must be one of {said}."), field="answer"
            )
    elif (schema := question.get("schema")) is not None:
        _check_schema(schema, answer)
    elif not isinstance(answer, str) or not answer.strip():
        raise InvalidRequest(_NO_TEXT, field="answer")


def _check_schema(schema: Mapping[str, Any], answer: Any) -> None:
    from jsonschema.validators import validator_for  # takes 1/8 s, which most processes never need

    error = next(iter(validator_for(schema)(schema).iter_errors(answer)), None)
    if error is not None:
        field = "".join(
            ["answer", *(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)]
        )
        said = error.message[:_MAX_SHOWN]
        raise InvalidRequest(
            Text(f"{field} 不符合要求：{said}", f"{field} is not what was asked for: {said}"), field=field
        )


def _shown(choices: Any) -> str:
    text = json.dumps(choices, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
