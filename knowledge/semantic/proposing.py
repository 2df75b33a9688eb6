"""Changes of a semantic file as diffs: made of two texts, applied to one that has changed since."""

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_HEAD_LINES = 2  # the names of the two files


class PatchError(ValueError):
    """The diff does not fit the text; the message names the lines that are not there."""


@dataclass(frozen=True)
class _Hunk:
    start: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def revision_of(text: str) -> str:
    """Return what tells this text from any other."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replaced(text: str, before: str, after: str) -> str | None:
    """Return the text with other lines for `before`; None unless these stand there once.

    Args:
        before: empty: `after` is added at the end.
    """
    lines, old = _lines(text), _lines(before.replace("\r\n", "\n"))
    new = _lines(after.replace("\r\n", "\n")) if after else []
    if not before:
        return _text_of_lines([*lines, *new])

    places = _places(lines, tuple(old))
    if len(places) != 1:
        return None

    lines[places[0] : places[0] + len(old)] = new
    return _text_of_lines(lines)


def diff_of(before: str, after: str, name: str) -> str:
    """Return the change as `diff -u` writes it; empty when there is none."""
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def patched(text: str, diff: str) -> str:
    """Return the text with the change, wherever its lines stand by now.

    Raises:
        PatchError: lines that it is about are not there, or in several places.
    """
    lines = _lines(text)
    moved = 0
    for hunk in _hunks(diff):
        place = _place(lines, hunk, hunk.start + moved)
        lines[place : place + len(hunk.before)] = hunk.after
        moved += len(hunk.after) - len(hunk.before)

    return _text_of_lines(lines)


def _text_of_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _places(lines: Sequence[str], passage: tuple[str, ...]) -> list[int]:
    count = len(passage)
    return [at for at in range(len(lines)) if tuple(lines[at : at + count]) == passage]


def _lines(text: str) -> list[str]:
    if text.endswith("\n"):
        return text.split("\n")[:-1]

    return text.split("\n")


def _hunks(diff: str) -> Iterator[_Hunk]:
    start, before, after = 0, [], []  # type: int, list[str], list[str]
    for line in _lines(diff)[_HEAD_LINES:]:
        head = _HUNK.match(line)
        if head is not None:
            if before or after:
                yield _Hunk(start, tuple(before), tuple(after))

            start, before, after = int(head[1]) - 1, [], []
            continue

        if not line.startswith("+"):
            before.append(line[1:])
        if not line.startswith("-"):
            after.append(line[1:])

    if before or after:
        yield _Hunk(start, tuple(before), tuple(after))


def _place(lines: Sequence[str], hunk: _Hunk, expected: int) -> int:
    """Return where the hunk's lines stand: where they are expected, else in the one place."""
    count = len(hunk.before)
    if tuple(lines[expected : expected + count]) == hunk.before:
        return expected

    places = _places(lines, hunk.before)
    if len(places) == 1:
        return places[0]

    shown = next((line for line in hunk.before if line.strip()), "")
    raise PatchError(f"the file has changed since: line {hunk.start + 1}, {shown.strip()!r}")
