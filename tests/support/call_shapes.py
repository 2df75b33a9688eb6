"""Tool calls in the shapes in which endpoints have been seen to stream them."""

import json
from typing import Any


def entry(
    *, index: Any = None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    """Return one entry of `tool_calls`, holding what is given."""
    function = {
        key: value
        for key, value in {"name": name, "arguments": arguments}.items()
        if value is not None
    }
    outer = {key: value for key, value in {"index": index, "id": id}.items() if value is not None}
    return {**outer, "type": "function", "function": function}


def delta(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(entries)}


A, B = {"table": "shop"}, {"sql": "SELECT 1"}
TEXT_A, TEXT_B = json.dumps(A), json.dumps(B)
BOTH = [("count_rows", A), ("run_sql", B)]
# What endpoints have been seen to send for `BOTH`.
SHAPES: dict[str, list[dict[str, Any]]] = {
    "each whole in a chunk": [
        delta(entry(index=0, id="a", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run_sql", arguments=TEXT_B)),
    ],
    "both in one chunk": [
        delta(
            entry(index=0, id="a", name="count_rows", arguments=TEXT_A),
            entry(index=1, id="b", name="run_sql", arguments=TEXT_B),
        )
    ],
    "both in one chunk, neither id nor index": [
        delta(entry(name="count_rows", arguments=TEXT_A), entry(name="run_sql", arguments=TEXT_B))
    ],
    "arguments as objects": [
        delta(entry(index=0, id="a", name="count_rows", arguments=A)),
        delta(entry(index=1, id="b", name="run_sql", arguments=B)),
    ],
    "two ids under one index": [
        delta(entry(index=0, id="a", name="count_rows", arguments="")),
        delta(entry(index=0, arguments=TEXT_A)),
        delta(entry(index=0, id="b", name="run_sql", arguments="")),
        delta(entry(index=0, arguments=TEXT_B)),
    ],
    "a known id under another index": [
        delta(entry(index=0, id="a", name="count_rows")),
        delta(entry(index=1, id="a", arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run_sql")),
        delta(entry(index=2, id="b", arguments=TEXT_B)),
    ],
    "a new id in every piece": [
        delta(entry(index=0, id="a", name="count_rows")),
        delta(entry(index=0, id="a2", arguments=TEXT_A[:4])),
        delta(entry(index=0, id="a3", arguments=TEXT_A[4:])),
        delta(entry(index=1, id="b", name="run_sql")),
        delta(entry(index=1, id="b2", arguments=TEXT_B)),
    ],
    "one id for all": [
        delta(entry(index=0, id="tool_call", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=1, id="tool_call", name="run_sql", arguments=TEXT_B)),
    ],
    "one id for all, in pieces": [
        delta(entry(index=0, id="tool_call", name="count_rows")),
        delta(entry(index=0, id="tool_call", arguments=TEXT_A[:4])),
        delta(entry(index=0, id="tool_call", arguments=TEXT_A[4:])),
        delta(entry(index=1, id="tool_call", name="run_sql")),
        delta(entry(index=1, id="tool_call", arguments=TEXT_B[:4])),
        delta(entry(index=1, id="tool_call", arguments=TEXT_B[4:])),
    ],
    "one id for all, interleaved": [
        delta(
            entry(index=0, id="tool_call", name="count_rows"),
            entry(index=1, id="tool_call", name="run_sql"),
        ),
        delta(
            entry(index=0, id="tool_call", arguments=TEXT_A),
            entry(index=1, id="tool_call", arguments=TEXT_B),
        ),
    ],
    "one id and one index for all": [
        delta(entry(index=0, id="tool_call", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=0, id="tool_call", name="run_sql", arguments=TEXT_B)),
    ],
    "each whole, then once more without arguments": [
        delta(entry(index=0, id="a", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=0, id="a", name="count_rows", arguments="")),
        delta(entry(index=1, id="b", name="run_sql", arguments=TEXT_B)),
        delta(entry(index=1, id="b", name="run_sql", arguments="")),
    ],
    "empty ids and one index": [
        delta(entry(index=0, id="", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=0, id="", name="run_sql", arguments=TEXT_B)),
    ],
    "names in pieces": [
        delta(entry(index=0, id="a", name="count")),
        delta(entry(index=0, name="_rows", arguments="")),
        delta(entry(index=0, arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run")),  # which is the name of a tool as well
        delta(entry(index=1, name="_sql")),
        delta(entry(index=1, arguments=TEXT_B)),
    ],
    "names repeated before the arguments": [
        delta(entry(index=0, id="a", name="count_rows")),
        delta(entry(index=0, id="a", name="count_rows")),
        delta(entry(index=0, id="a", name="count_rows", arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run_sql", arguments=TEXT_B)),
    ],
    "an empty object until the arguments come": [
        delta(entry(index=0, id="a", name="count_rows", arguments={})),
        delta(entry(index=0, arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run_sql", arguments={})),
        delta(entry(index=1, arguments=TEXT_B)),
    ],
    "an empty object, written out, until the arguments come": [
        delta(entry(index=0, id="a", name="count_rows", arguments="{}")),
        delta(entry(index=0, arguments=TEXT_A)),
        delta(entry(index=1, id="b", name="run_sql", arguments="{}")),
        delta(entry(index=1, arguments=TEXT_B[:5])),
        delta(entry(index=1, arguments=TEXT_B[5:])),
    ],
    "the name after the id": [
        delta(entry(index=0, id="a"), entry(index=1, id="b")),
        delta(
            entry(index=1, name="run_sql", arguments=TEXT_B),
            entry(index=0, name="count_rows", arguments=TEXT_A),
        ),
    ],
    "the id after the name": [
        delta(entry(index=0, name="count_rows")),
        delta(entry(index=0, id="a", arguments=TEXT_A)),
        delta(entry(index=1, name="run_sql")),
        delta(entry(index=1, id="b", arguments=TEXT_B)),
    ],
    "the index as text": [
        delta(
            entry(index="0", id="a", name="count_rows"), entry(index="1", id="b", name="run_sql")
        ),
        delta(entry(index="0", arguments=TEXT_A), entry(index="1", arguments=TEXT_B)),
    ],
    "flat entries": [
        delta({"id": "a", "name": "count_rows", "arguments": A}),
        delta({"id": "b", "name": "run_sql", "arguments": TEXT_B}),
    ],
    "null for what is not said": [
        delta({"index": 0, "id": "a", "function": {"name": "count_rows", "arguments": None}}),
        delta({"index": 0, "id": None, "function": {"name": None, "arguments": TEXT_A}}),
        delta({"index": 1, "id": "b", "function": {"name": "run_sql", "arguments": None}}),
        delta(
            {"index": 1, "id": None, "type": None, "function": {"name": None, "arguments": TEXT_B}}
        ),
        {"content": None, "tool_calls": None},
    ],
}
