"""Questions with the SQL that a person wrote for them, from files of JSON lines."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.text import language_of


@dataclass(frozen=True)
class AccuracyQuestion:
    """One question.

    Attributes:
        sql: a query whose result is right.
        order_matters: whether its rows have to come in its order.
        lang, difficulty: classes by which results are counted; difficulty is empty where none is
            given.
    """

    id: str
    question: str
    sql: str
    order_matters: bool = False
    lang: str = "en"
    difficulty: str = ""


@dataclass(frozen=True)
class BadLine:
    """A line that is no question; `line` counts from 1."""

    file: str
    line: int
    problem: str


class _Problem(ValueError):
    """The fault of a line of the file."""


def read_questions(paths: Iterable[Path]) -> tuple[list[AccuracyQuestion], list[BadLine]]:
    """Return the questions of all files in their order, and the lines that are none; blank lines
    are skipped.

    Raises:
        OSError: a file can't be read.
    """
    asked: dict[str, AccuracyQuestion] = {}
    bad = []
    for path in paths:
        for number, line in _lines(path):
            try:
                one = _asked(line, f"{path.stem}:{number}")
                if one.id in asked:
                    raise _Problem(f"the id {one.id!r} is taken by an earlier line")
            except _Problem as problem:
                bad.append(BadLine(str(path), number, str(problem)))
            else:
                asked[one.id] = one
    return list(asked.values()), bad


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line


def _asked(line: bytes, name: str) -> AccuracyQuestion:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise _Problem(f"no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise _Problem("no JSON object")
    question = _text(found, "question")
    order_matters = found.get("order_matters")
    if order_matters is not None and not isinstance(order_matters, bool):
        raise _Problem("'order_matters' is neither true nor false")
    return AccuracyQuestion(
        id=_label(found, "id") or name,
        question=question,
        sql=_text(found, "sql"),
        order_matters=bool(order_matters),
        lang=_label(found, "lang") or language_of(question),
        difficulty=_label(found, "difficulty"),
    )


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _Problem(f"{key!r} is missing or no text")
    return value


def _label(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise _Problem(f"{key!r} is neither a text nor a number")
    return "" if value is None else str(value)
