"""What Vanna's clients make of chunks: the shapes they read, the page of the web component, and
what it takes for HTML.

Written from the protocol and from how `<vanna-chat>` shows each part, not from the code that makes
the parts.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

Chunk = dict[str, Any]
TEXT, FLAG, COUNT = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}
MAYBE = {"type": ["string", "null"]}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _one_of(words: str) -> dict[str, Any]:
    return {"enum": words.split()}


BUTTON = _object(
    "label action",
    label=TEXT,
    action={"type": "string", "pattern": r"\S"},
    disabled={"const": False},
)
TASK = _object(
    "id title status",
    id={"pattern": "^[A-Za-z0-9_.:-]+$"},
    title=TEXT,
    description=MAYBE,
    status=_one_of("pending in_progress"),
)
CELL = {"type": ["string", "number", "boolean", "null"]}
# The parts that the component knows, and no others: of anything else it says "Unknown Component".
SHAPES: dict[str, dict[str, Any]] = {
    "text": _object("content", content=TEXT, markdown=FLAG, code_language=TEXT, text_align=TEXT),
    "status_card": _object(
        "title status",
        title=TEXT,
        status=_one_of("pending running completed failed success warning error"),
        description=MAYBE,
        metadata={"type": "object", "additionalProperties": CELL},
    ),
    "dataframe": _object(
        "data columns column_types row_count column_count",
        data=_list({"type": "object", "additionalProperties": CELL}),
        columns=_list(TEXT, uniqueItems=True),
        column_types={
            "type": "object",
            "additionalProperties": _one_of("string number date boolean"),
        },
        title=MAYBE,
        description=MAYBE,
        row_count=COUNT,
        column_count=COUNT,
        max_rows_displayed=COUNT,
    ),
    "chart": _object(
        "data layout",
        data=_list(_object("type", type=_one_of("bar scatter pie indicator")), minItems=1),
        layout={"type": "object"},
        config={"type": "object"},
    ),
    "button_group": _object(
        "buttons",
        buttons=_list(BUTTON, minItems=1),
        orientation=_one_of("horizontal vertical"),
        align=TEXT,
    ),
    "status_bar_update": _object(
        "status message", status=_one_of("idle working success error"), message=TEXT, detail=MAYBE
    ),
    "task_tracker_update": {
        "oneOf": [
            _object("operation task", operation={"const": "add_task"}, task=TASK),
            _object(
                "operation task_id status",
                operation={"const": "update_task"},
                task_id=TEXT,
                status=_one_of("pending in_progress completed error"),
                detail=MAYBE,
            ),
        ]
    },
    "chat_input_update": _object("disabled", placeholder=TEXT, disabled=FLAG, focus=FLAG),
}
NAMES = {"status_bar_update": "vanna-status-bar", "task_tracker_update": "vanna-task-tracker"}
NAMES |= {"chat_input_update": "vanna-chat-input"}
ENVELOPE = _object(
    "rich simple conversation_id request_id timestamp",
    rich=_object(
        "id type lifecycle children timestamp visible interactive data",
        id={"type": "string", "pattern": "^[A-Za-z0-9_.:-]+$"},
        type=_one_of(" ".join(SHAPES)),
        lifecycle=_one_of("create replace remove"),
        children=_list(TEXT),
        timestamp=TEXT,
        visible={"const": True},
        interactive=FLAG,
        data={"type": "object"},
    ),
    simple={"anyOf": [{"type": "null"}, _object("type text", type={"const": "text"}, text=TEXT)]},
    conversation_id=TEXT,
    request_id=TEXT,
    timestamp={"type": "number", "minimum": 1},
)
_envelopes = Draft202012Validator(ENVELOPE)
_parts = {kind: Draft202012Validator(shape) for kind, shape in SHAPES.items()}


def read(text: str) -> Chunk:
    """Return a chunk as a browser reads it; fail when it has another shape, or names what a
    browser has
    no number for.
    """
    chunk: Chunk = json.loads(text, parse_constant=lambda word: _fail(f"{word} is not JSON"))
    _envelopes.validate(chunk)
    rich = chunk["rich"]
    _parts[rich["type"]].validate(rich["data"])
    assert rich["id"] == NAMES.get(rich["type"], rich["id"])
    return chunk


def _fail(why: str) -> None:
    raise AssertionError(why)


class VannaPage:
    """`<vanna-chat>` as it treats chunks, without a browser.

    Attributes:
        parts: what the conversation shows, in order; a part twice if it was created twice.
        tasks: the list of tasks, likewise.
    """

    def __init__(self, chunks: Iterable[Chunk] = ()) -> None:
        self.parts: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.status: dict[str, Any] = {}
        self.input: dict[str, Any] = {}
        self._latest: dict[str, dict[str, Any]] = {}
        for chunk in chunks:
            self.show(chunk)

    def show(self, chunk: Chunk) -> None:
        part = chunk["rich"]
        changes: dict[str, Callable[[dict[str, Any]], None]] = {
            "status_bar_update": self.status.update,
            "task_tracker_update": self._track,
            "chat_input_update": self.input.update,
        }
        if part["type"] in changes:
            changes[part["type"]](part["data"])
        elif part["lifecycle"] == "create":
            self.parts.append(part)
            self._latest[part["id"]] = part
        elif (shown := self._latest.get(part["id"])) is not None:
            place = next(index for index, one in enumerate(self.parts) if one is shown)
            self.parts[place : place + 1] = [part] if part["lifecycle"] == "replace" else []
            self._latest[part["id"]] = part
            if part["lifecycle"] == "remove":
                del self._latest[part["id"]]
        else:
            assert part["lifecycle"] == "remove", f"there is no {part['id']} to replace"

    def _track(self, data: Mapping[str, Any]) -> None:
        if data["operation"] == "add_task":
            self.tasks.append(dict(data["task"]))
        for task in self.tasks:
            if task["id"] == data.get("task_id"):
                task |= {"status": data["status"], "detail": data["detail"]}

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of the shown parts of a kind."""
        return [part["data"] for part in self.parts if part["type"] == kind]

    @property
    def texts(self) -> list[str]:
        """Return texts, SQL left out."""
        return [data["content"] for data in self.all("text") if "code_language" not in data]

    @property
    def sql(self) -> list[str]:
        return [data["content"] for data in self.all("text") if data.get("code_language") == "sql"]

    @property
    def buttons(self) -> dict[str, str]:
        """Return what each button sends, by its label."""
        return {
            button["label"]: button["action"]
            for group in self.all("button_group")
            for button in group["buttons"]
        }

    @property
    def is_ready(self) -> bool:
        """Tell whether nothing seems to go on any more, and the user may write."""
        is_busy = self.status["status"] == "working" or any(
            task["status"] == "in_progress" for task in self.tasks
        )
        return not is_busy and self.input["disabled"] is False


def as_html(chunk: Chunk) -> Iterator[str]:
    """Yield the texts of a chunk that the component, or Plotly, reads as HTML or puts into a
    tag.
    """
    part, data = chunk["rich"], chunk["rich"]["data"]
    if part["type"] == "text":
        assert data.get("markdown", False) is False
        yield from (
            data.get(key) or ""
            for key in ("code_language", "font_size", "font_weight", "text_align")
        )
    elif part["type"] == "status_card":
        yield from (data.get(key) or "" for key in ("title", "status", "description", "icon"))
        assert all(isinstance(value, str) for value in data["metadata"].values()), (
            "others are written unescaped"
        )
    elif part["type"] == "dataframe":
        yield from (data.get("title") or "", data.get("description") or "", *data["columns"])
        assert set(data["column_types"].values()) <= {"string"}, "others are written unescaped"
        assert set(data["column_types"]) == set(data["columns"]), (
            "others are read from the prototype of objects"
        )
    elif part["type"] == "button_group":
        yield from (
            str(value)
            for button in data["buttons"]
            for key, value in button.items()
            if key != "action"
        )
    elif part["type"] == "chart":
        assert "title" not in data, "written unescaped"
        yield from _strings({"data": data["data"], "layout": data["layout"]})


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def chunks_of_stream(text: str) -> list[Chunk]:
    """Return the chunks of a complete stream."""
    lines = [line for line in text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    return [read(line.removeprefix("data: ")) for line in lines[:-1]]
