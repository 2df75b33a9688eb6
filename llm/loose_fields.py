"""Reads fields of replies, whose types can't be relied on."""

import json
import re
from typing import Any

# JSON can spell them as escapes, and no encoding takes them.
_SURROGATE = re.compile("[\ud800-\udfff]")


def dict_of(value: Any) -> dict[str, Any]:
    """Return the value if it is a dict, else an empty one."""
    if isinstance(value, dict):
        return value

    return {}


def object_in(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`, whatever surrounds it, or an empty one."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return {}

    try:
        value = json.loads(text[start : end + 1], strict=False)
    except (ValueError, RecursionError):
        return {}

    return dict_of(value)


def text_of(content: Any) -> str:
    """Return the text of a `content`: a string, or a list of parts as some endpoints send it."""
    if isinstance(content, str):
        return _SURROGATE.sub("\ufffd", content)
    if not isinstance(content, list):
        return ""

    texts = []
    for part in content:
        text = dict_of(part).get("text")
        texts.append(text_of(text))

    return "".join(texts)


def joined(pieces: list[str]) -> str:
    """Join the pieces of a text, also where a character was cut into its two surrogates."""
    text = "".join(pieces)
    if _SURROGATE.search(text):
        return encodable(text)

    return text


def encodable(text: str) -> str:
    """Return the text with pairs of surrogates put together and single ones replaced."""
    code_units = text.encode("utf-16-le", "surrogatepass")
    return code_units.decode("utf-16-le", "replace")
