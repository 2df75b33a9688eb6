"""Reads fields of replies whose type nobody vouches for."""

import re
from typing import Any

# JSON can spell them as escapes, and no encoding takes them.
_SURROGATE = re.compile("[\ud800-\udfff]")


def dict_of(value: Any) -> dict[str, Any]:
    """Return the value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_of(content: Any) -> str:
    """Return the text of a `content`: a string, or a list of parts as some endpoints send it."""
    if isinstance(content, str):
        return _SURROGATE.sub("\ufffd", content)
    if isinstance(content, list):
        return "".join(text_of(dict_of(part).get("text")) for part in content)
    return ""


def joined(pieces: list[str]) -> str:
    """Join the pieces of a text, also where a character was cut into its two surrogates."""
    text = "".join(pieces)
    return encodable(text) if _SURROGATE.search(text) else text


def encodable(text: str) -> str:
    """Return the text with pairs of surrogates put together and single ones replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
