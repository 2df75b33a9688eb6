"""Writes what has been learnt into a prompt: documentation, proven queries, and mistakes.

Users wrote questions, SQL, hints and documents, so nothing of it is trusted: each piece stands on
one line, or is indented, so that it can't look like the start of another one, and none can close
the tags around it.
"""

from collections.abc import Iterable, Iterator

from common.learning import Document, Example, Experience, Lesson
from knowledge.language.safe_text import block, one_line
from llm.tokens import PER_TOKEN, PromptBudget, weight

_MOST_QUESTION, _MOST_SENTENCE, _MOST_TITLE = 400, 300, 120  # characters
_MOST_SQL = 2_400  # characters; half a query teaches nothing, so longer ones are left out
_MOST_NOTE = 2_000  # characters of one document
_INDENT = "\n    "


def experience_parts(experience: Experience, budget: PromptBudget) -> dict[str, str]:
    """Return the prompt's `notes`, `examples` and `lessons`, tags included.

    A part is empty where nothing is known.
    """
    examples = filter(_is_short, experience.examples)
    return {
        "notes": _part("notes", map(_note, experience.documents), budget.notes),
        "examples": _part("examples", map(_example, examples), budget.examples),
        "lessons": _part("lessons", map(_lesson, experience.lessons), budget.lessons),
    }


def _part(tag: str, entries: Iterable[str], tokens: int) -> str:
    """Return as many entries as fit whole, the most useful first."""
    room = tokens * PER_TOKEN - weight(f"<{tag}>\n\n</{tag}>\n\n")
    text = "\n".join(_entries_within(entries, room))
    return f"<{tag}>\n{text}\n</{tag}>\n\n" if text else ""


def _entries_within(entries: Iterable[str], room: int) -> Iterator[str]:
    for entry in entries:
        room_left = room - weight(entry) - 1
        if room_left >= 0:
            room = room_left
            yield entry


def _is_short(example: Example) -> bool:
    return len(example.sql) <= _MOST_SQL


def _example(example: Example) -> str:
    sql = block(example.sql, _MOST_SQL).replace("\n", _INDENT)
    return f"- question: {one_line(example.question, _MOST_QUESTION)}\n  sql: {sql}"


def _lesson(lesson: Lesson) -> str:
    question = one_line(lesson.question, _MOST_QUESTION)
    cause = one_line(lesson.root_cause, _MOST_SENTENCE)
    hint = one_line(lesson.avoidance_hint, _MOST_SENTENCE)
    return f"- question: {question}\n  was wrong: {cause}\n  instead: {hint}"


def _note(document: Document) -> str:
    text = block(document.text, _MOST_NOTE).replace("\n", _INDENT)
    return f"- {one_line(document.title, _MOST_TITLE)}\n    {text}"
