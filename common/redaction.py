"""Removes credentials and paths of the server's disk from log lines.

Citu's own code logs no URL and no key. Exceptions of libraries may quote them, so every line is
redacted.
"""

import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

_HIDDEN = "…"
_PROJECT = Path(__file__).resolve().parent.parent
_LIBRARIES = re.compile(r"\A.*/(?:site-packages|dist-packages|lib/python[\d.]+)/")
_MOST_OF_ERROR = 1_000  # characters, of which PostgreSQL's messages quote what they were given
_MOST_FRAMES = 15  # the innermost ones, where the error is

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b(postgres(?:ql)?|rediss?)://[^\s'\"<>]+", rf"\1://{_HIDDEN}"),
        (r"(://)[^\s/@:'\"]*:[^\s/@'\"]*+[@…]", rf"\1{_HIDDEN}@"),
        (
            r"((?:password|passwd|pwd|secret|api[-_ ]?key)['\"]?\s{0,20}[=:]\s{0,20})"
            r"(?:(['\"])[^'\"]*+\2?|[^\s'\",;&]+)",
            rf"\1\2{_HIDDEN}\2",
        ),
        (r"\b(Bearer\s{1,20})[\w.~+/=-]+", rf"\1{_HIDDEN}"),
        (r"\bsk-[\w-]{6,}", f"sk-{_HIDDEN}"),
        (r"\bcitu_key_[\w-]+", f"citu_key_{_HIDDEN}"),
        (r"(?<![\w.-])eyJ[\w.-]++", f"eyJ{_HIDDEN}"),
    )
)


def redacted(text: str) -> str:
    """Return `text` without what looks like a credential."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)

    return text


def described(error: BaseException) -> str:
    """Return an error and its causes on one line, each with where it was raised.

    Files are named without this machine's folders.
    """
    return " <- ".join(map(_error_line, _chain(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = _cause(current)


def _cause(error: BaseException) -> BaseException | None:
    """Return the exception that a traceback would show before this one."""
    if error.__cause__ is not None:
        return error.__cause__
    if error.__suppress_context__:
        return None

    return error.__context__


def _error_line(error: BaseException) -> str:
    places = []
    for frame in traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]:
        file = _relative(frame.filename)
        places.append(f"{file}:{frame.lineno} {frame.name}")

    message = str(error)[:_MOST_OF_ERROR]
    on_one_line = " ".join(message.split())
    text = f"{type(error).__name__}: {on_one_line}"
    if places:
        text += f" (at {', '.join(places)})"

    return text


def _relative(filename: str) -> str:
    """Return a file's path within the project or its library, else its name alone."""
    path = Path(filename)
    is_library = path.is_relative_to(sys.prefix)
    if path.is_relative_to(_PROJECT) and not is_library:
        return str(path.relative_to(_PROJECT))

    begin = _LIBRARIES.match(filename)
    if begin is not None:
        return filename[begin.end() :]

    return path.name
