"""Replies to what front ends ask beside a chat, such as titles; none costs a model call."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from common.envelope import to_json

_FILE = Path(__file__).with_name("side_requests.toml")
_MOST_TITLE = 40  # characters
# The first message of the user, as front ends write chats into their prompts.
_FIRST_MESSAGE = re.compile(r"(?:USER|User|Human|user): ?([^\n]{1,400})")


def side_reply(text: str) -> str | None:
    """Return the reply to a request beside the chat; None: the text is a question."""
    for named, phrases in _requests():
        if all(phrase in text for phrase in phrases):
            return _REPLIES[named](text)

    return None


@cache
def _requests() -> tuple[tuple[str, tuple[str, ...]], ...]:
    listed: list[Mapping[str, Any]] = tomllib.loads(_FILE.read_text("utf-8"))["request"]
    return tuple((one["reply"], tuple(one["phrases"])) for one in listed)


def _title_text(text: str) -> str:
    """Return the beginning of the chat's first message."""
    first_message = _FIRST_MESSAGE.search(text)
    title = first_message[1].strip() if first_message is not None else "Citu"
    if len(title) <= _MOST_TITLE:
        return title

    return title[: _MOST_TITLE - 1] + "…"


_REPLIES: Mapping[str, Callable[[str], str]] = {
    "title": lambda text: to_json({"title": _title_text(text)}),
    "title_text": _title_text,
    "tags": lambda _text: to_json({"tags": []}),
    "follow_ups": lambda _text: to_json({"follow_ups": []}),
    "queries": lambda _text: to_json({"queries": []}),
}
