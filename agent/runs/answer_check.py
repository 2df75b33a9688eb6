"""Whether a user's answer is one to what was asked."""

import json
from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest
from common.text import Text

_MAX_SHOWN = 200  # characters of what is allowed, in a message
_NO_TEXT = Text("answer 必须是非空字符串。", "answer must be a text that is not blank.")


def check_answer(question: Mapping[str, Any], answer: Any) -> None:
    """Holds `answer` against the choices or the schema of a question event's data; without both, it is a text.

    Raises:
        InvalidRequest: it is something else; names the field, within the answer too.
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
    from jsonschema.validators import validator_for  # an eighth of a second that most services never need

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
