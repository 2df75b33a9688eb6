"""Loads the prompts, which are files so that they can be read, compared and changed as prose.

A file is the system message, a line `=== user ===`, and the user message; `$name` marks a place to
fill in. Lines from `=== with history ===` on stand only in prompts of a conversation that goes on,
lines from `=== without history ===` on only in others, up to `=== always ===`. A file without a
user message is a passage that other prompts take in.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from common.text import Lang
from llm import Message

_FOLDER = Path(__file__).parent / "prompts"
_SEPARATOR = "\n=== user ===\n"
_CHOICE = re.compile(
    r"=== with history ===\n((?:[^=]|=(?!== ))*+)"
    r"(?:=== without history ===\n((?:[^=]|=(?!== ))*+))?=== always ===\n"
)
_LANGUAGES: Mapping[Lang, str] = {"zh": "Chinese (简体中文)", "en": "English"}


@cache
def _templates(name: str, has_history: bool) -> tuple[Template, Template]:
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    system, user = _CHOICE.sub(lambda choice: choice[1 if has_history else 2] or "", text).split(
        _SEPARATOR
    )
    return Template(system.strip()), Template(user.strip())


@cache
def passage(name: str) -> str:
    """Return the text of `prompts/<name>.md`, which is a part of another prompt."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def prompt(name: str, lang: Lang, **values: str) -> list[Message]:
    """Return the messages of `prompts/<name>.md`; with a non-empty value `history`, those for a
    conversation that goes on.

    Raises:
        KeyError: `values` lack a `$name` of the file.
    """
    system, user = _templates(name, bool(values.get("history")))
    filled = {"language": _LANGUAGES[lang], **values}
    return [
        {"role": "system", "content": system.substitute(filled)},
        {"role": "user", "content": user.substitute(filled)},
    ]
