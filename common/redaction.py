"""Removes credentials and paths of the server's disk from log lines.

Citu's own code logs no URL and no key. Exceptions of libraries may quote them, so every line is redacted.
"""

import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

_HIDDEN = "…"
_PROJECT = Path(__file__).resolve().parent.parent
_LIBRARIES = re.compile(r".*/(?:site-packages|dist-packages|lib/python[\d.]+)/")
_MOST_FRAMES = 15  # the innermost ones, where the error is

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b(postgres(?:ql)?|rediss?)://[^\s'\"<>]+", rf"\1://{_HIDDEN}"),
        (r"(://)[^\s/@'\"]+:[^\s/@'\"]*@", rf"\1{_HIDDEN}@"),
        (
            r"(\w*(?:password|passwd|pwd|secret|api[-_ ]?key)['\"]?\s*[=:]\s*)(?:(['\"])[^'\"]*\2|[^\s'\",;&]+)",
            rf"\1\2{_HIDDEN}\2",
        ),
        (r"\b(Bearer\s+)[\w.~+/=-]+", rf"\1{_HIDDEN}"),
        (r"\bsk-[\w-]{6,}", f"sk-{_HIDDEN}"),
        (r"\bcitu_key_[\w-]+", f"citu_key_{_HIDDEN}"),
    )
)


def redacted(text: str) -> str:
    """`text` without what looks like a credential."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def described(error: BaseException) -> str:
    """`error` and what caused it, each with where it was raised, on one line and without paths of this machine."""
    return " <- ".join(map(_one, _chain(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _one(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    places = ", ".join(f"{_within(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" + (f" (at {places})" if places else "")


def _within(filename: str) -> str:
    """Where in the project or in its libraries a file is."""
    path = Path(filename)
    if path.is_relative_to(_PROJECT) and not path.is_relative_to(sys.prefix):
        return str(path.relative_to(_PROJECT))
    return _LIBRARIES.sub("", filename) if _LIBRARIES.match(filename) else path.name
