"""The parts of which Vanna's clients put an answer together, in the form that they read.

Its web component puts many fields into the page as HTML. What a model or a database says goes only
into those that it shows as text; where there is none, as for labels of buttons and titles of
columns, `harmless` replaces the characters that mean something to HTML. So a hostile name is shown,
and does nothing, without help from a content security policy.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from common.envelope import to_json

Lifecycle = Literal["create", "replace", "remove"]
"""There is `update` too, which the web component carries out only once for each part; `replace`
always works.
"""
Mood = Literal["idle", "working", "success", "error"]
TaskStatus = Literal["in_progress", "completed", "error"]
CardStatus = Literal["running", "completed", "failed"]

# Characters with a meaning in HTML, in its attributes or in selectors, as others that look alike.
_LOOK_ALIKE = str.maketrans("<>&\"'`\\", "＜＞＆”’‘＼")
# Line breaks and other controls, marks that turn the direction of writing, halves of characters.
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
# The web component collapses line breaks, and writes this field into a style, which is the only way
# to keep them.
_KEEPS_LINES = "start; white-space: pre-wrap"
_MAX_LABEL_CHARS = 200


def harmless(text: str) -> str:
    """Return `text` on one line, for a place that the web component fills as HTML."""
    return _UNSEEN.sub(" ", text).strip().translate(_LOOK_ALIKE)


@dataclass(frozen=True)
class ChatPart:
    """One part of an answer, or a change of the client's own parts.

    Attributes:
        kind: what Vanna calls the part's `type`.
        name: its id; the same name replaces and removes it.
        plain: what it says, for clients that show text alone.
    """

    kind: str
    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    lifecycle: Lifecycle = "create"
    plain: str = ""


@dataclass(frozen=True)
class Button:
    """A button that sends `message` as if the user had typed it."""

    label: str
    message: str
    variant: Literal["primary", "secondary", "ghost"] = "secondary"


def text(name: str, content: str, lifecycle: Lifecycle = "create") -> ChatPart:
    """Return text, shown as it is: never as Markdown, which the web component would turn into
    HTML.
    """
    return ChatPart(
        "text",
        name,
        {"content": content, "markdown": False, "text_align": _KEEPS_LINES},
        lifecycle,
        content,
    )


def sql_text(name: str, sql: str) -> ChatPart:
    """Return a statement, shown as it is."""
    return ChatPart(
        "text", name, {"content": sql, "markdown": False, "code_language": "sql"}, plain=sql
    )


def removal(name: str) -> ChatPart:
    """Take a part away; do nothing where there is none of that name."""
    return ChatPart("text", name, {"content": "", "markdown": False}, "remove")


def buttons(name: str, choices: Iterable[Button], *, stacked: bool = True) -> ChatPart:
    """Return a group of buttons, of which one can be used."""
    group: list[dict[str, Any]] = [
        {
            "label": _label(choice.label),
            "action": choice.message,
            "variant": choice.variant,
            "size": "small",
            "disabled": False,
        }
        for choice in choices
    ]
    data = {
        "buttons": group,
        "orientation": "vertical" if stacked else "horizontal",
        "spacing": "small",
        "align": "left",
        "alignment": "left",
        "full_width": False,
    }
    labels = [button["label"] for button in group]
    return ChatPart("button_group", name, data, plain="\n".join(labels))


def status_card(
    name: str,
    title: str,
    status: CardStatus,
    description: str,
    details: Mapping[str, Any],
    lifecycle: Lifecycle,
) -> ChatPart:
    """Return the description of a step; `details` are its parameters."""
    shown = {
        key: value if isinstance(value, str) else to_json(value) for key, value in details.items()
    }
    data = {
        "title": _label(title),
        "status": status,
        "description": _label(description),
        "metadata": shown,
    }
    return ChatPart(
        "status_card",
        name,
        {**data, "actions": [], "collapsible": False, "collapsed": False},
        lifecycle,
    )


def status_bar(mood: Mood, message: str = "", detail: str = "") -> ChatPart:
    """Return the status above the input."""
    data = {"status": mood, "message": message, "detail": detail}
    return ChatPart("status_bar_update", "vanna-status-bar", data, "replace")


def new_task(task_id: str, title: str, detail: str) -> ChatPart:
    """Return a step at the side of the conversation."""
    task: dict[str, Any] = {
        "id": task_id,
        "title": title,
        "description": detail,
        "status": "pending",
        "progress": None,
        "metadata": {},
    }
    return _tracker({"operation": "add_task", "task": task})


def changed_task(task_id: str, status: TaskStatus, detail: str) -> ChatPart:
    """Return the update of a step that has begun or ended."""
    return _tracker(
        {"operation": "update_task", "task_id": task_id, "status": status, "detail": detail}
    )


def open_input(placeholder: str) -> ChatPart:
    """Return the update by which the user may write."""
    data = {"placeholder": placeholder, "disabled": False, "focus": True}
    return ChatPart("chat_input_update", "vanna-chat-input", data, "replace")


def _tracker(data: Mapping[str, Any]) -> ChatPart:
    return ChatPart("task_tracker_update", "vanna-task-tracker", data, "replace")


def _label(label: str) -> str:
    shown = harmless(label)
    if len(shown) <= _MAX_LABEL_CHARS:
        return shown

    return shown[: _MAX_LABEL_CHARS - 1] + "…"
