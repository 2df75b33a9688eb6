"""Reads what clients send into the room's models; what does not fit is named by its field."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from common.errors import InvalidRequest
from common.text import Text
from etl.schemas.strict import StrictModel

ModelT = TypeVar("ModelT", bound=StrictModel)

# By pydantic's type of error; `{…}` are what it says of the case.
_REASONS: Mapping[str, Text] = {
    "missing": Text("缺少这一项。", "it is missing."),
    "extra_forbidden": Text("没有这一项。", "there is no such field."),
    "literal_error": Text("必须是 {expected} 之一。", "it must be one of {expected}."),
    "string_type": Text("必须是字符串。", "it must be a string."),
    "string_too_short": Text(
        "至少 {min_length} 个字符。", "it must have at least {min_length} characters."
    ),
    "string_too_long": Text(
        "最多 {max_length} 个字符。", "it must have at most {max_length} characters."
    ),
    "int_type": Text("必须是整数。", "it must be a whole number."),
    "int_parsing": Text("必须是整数。", "it must be a whole number."),
    "int_from_float": Text("必须是整数。", "it must be a whole number."),
    "bool_type": Text("必须是 true 或 false。", "it must be true or false."),
    "bool_parsing": Text("必须是 true 或 false。", "it must be true or false."),
    "list_type": Text("必须是列表。", "it must be a list."),
    "dict_type": Text("必须是对象。", "it must be an object."),
    "model_type": Text("必须是对象。", "it must be an object."),
    "too_short": Text("至少 {min_length} 项。", "it must have at least {min_length} items."),
    "too_long": Text("最多 {max_length} 项。", "it must have at most {max_length} items."),
    "greater_than_equal": Text("不能小于 {ge}。", "it must be at least {ge}."),
    "less_than_equal": Text("不能大于 {le}。", "it must be at most {le}."),
}
_OTHER = Text("格式不对。", "it does not have the right form.")


def read_model(model: type[ModelT], value: object, field: str) -> ModelT:
    """Return the JSON `value` as a model.

    Args:
        field: what the request calls the value.

    Raises:
        InvalidRequest: it does not fit; `field` names the part, `intent.operations[2].action`.
    """
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        raise refusal_of(error["type"], error.get("ctx", {}), error["loc"], field) from exc


def refusal_of(
    kind: str, about: Mapping[str, Any], path: tuple[int | str, ...], field: str
) -> InvalidRequest:
    """Return the error for one of pydantic's."""
    named = field
    for part in path:
        named += f"[{part}]" if isinstance(part, int) else f".{part}"

    reason = _REASONS.get(kind, _OTHER)
    zh, en = reason.zh.format(**about), reason.en.format(**about)
    return InvalidRequest(Text(f"{named} 无效：{zh}", f"{named} is not valid: {en}"), field=named)
