"""What passes for an answer to what a run has asked."""

import json
import socket
from typing import Any

import pytest

from agent.runs.pauses import GivenAnswer, Pause
from api.requests import parse_answer
from common.actor import NOBODY, Actor, attributes_of
from common.answer_check import check_answer
from common.errors import InternalError, InvalidRequest


@pytest.mark.parametrize(
    ("choices", "answer", "is_one"),
    [
        (["一", "two"], "一", True),
        ([1, 2], 1, True),
        ([1, 2], True, False),
        ([1, 2], 1.0, False),
        ([None, "x"], None, True),
        ([["a"], {"b": 1}], {"b": 1}, True),
        (["1"], 1, False),
    ],
)
def test_a_choice_is_taken_as_json_has_it(choices: list[Any], answer: Any, is_one: bool) -> None:
    if is_one:
        check_answer({"choices": choices}, answer)
        return
    with pytest.raises(InvalidRequest) as refused:
        check_answer({"choices": choices}, answer)
    assert refused.value.details()["field"] == "answer"


@pytest.mark.parametrize(
    ("schema", "right", "wrong", "field"),
    [
        ({"type": "number", "multipleOf": 0.5}, 1.5, 1.3, "answer"),
        ({"enum": [0.1, 0.2]}, 0.1, 0.3, "answer"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-30", "answer"),
        (
            {
                "$ref": "#/$defs/n",
                "$defs": {
                    "n": {"type": "array", "items": {"$ref": "#/$defs/i"}},
                    "i": {"minimum": 1},
                },
            },
            [1, 2],
            [1, 0],
            "answer[1]",
        ),
        ({"properties": {"名": {"type": "string"}}}, {"名": "a"}, {"名": 1}, "answer.名"),
        (
            {"$ref": "https://json-schema.org/draft/2020-12/schema"},
            {"type": "string"},
            {"type": 1},
            "answer.type",
        ),
    ],
)
def test_a_schema_is_held_against_the_answer(
    schema: dict[str, Any], right: Any, wrong: Any, field: str
) -> None:
    check_answer({"schema": schema}, right)
    with pytest.raises(InvalidRequest) as refused:
        check_answer({"schema": schema}, wrong)
    assert refused.value.details()["field"] == field


@pytest.mark.parametrize(
    "schema",
    [{"type": "no such type"}, {"$ref": "#/$defs/missing"}, {"$ref": "#"}, {"pattern": "("}],
)
def test_a_schema_that_is_none_is_the_servers_fault(schema: dict[str, Any]) -> None:
    with pytest.raises(InternalError):
        check_answer({"schema": schema}, "x")


def test_a_remote_schema_is_never_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        port = elsewhere.getsockname()[1]
        with pytest.raises(InternalError):
            check_answer({"schema": {"$ref": f"http://127.0.0.1:{port}/schema.json"}}, "x")
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "answer",
    [
        "a\0b",
        "\ud800",
        {"\udfff": 1},
        ["ok", {"k": "\0"}],
        float("nan"),
        [float("inf")],
        2**63,
        nested(33),
    ],
)
def test_what_no_store_can_keep_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_answer({"interrupt_id": "a-1", "answer": answer})
    assert refused.value.details()["field"] == "answer"


@pytest.mark.parametrize(
    "answer", ["", "一😀", {"k": [1, 1.5, True, None]}, -(2**63) + 1, nested(32), [], {}]
)
def test_what_a_store_can_keep_is_passed_on(answer: Any) -> None:
    assert parse_answer({"interrupt_id": "a-1", "answer": answer}) == ("a-1", answer)


def test_a_run_that_waited_through_an_upgrade_goes_on() -> None:
    """What it was begun with may lack fields that there are now, and have some that are gone."""
    kept = {
        "question": {
            "question": "q",
            "run_id": "run_1",
            "conversation_id": "c",
            "a_field_that_was_there_once": 1,
        },
        "graph_interrupt": "i",
        "answers": 0,
        "mark": "m",
    }
    pause = Pause.from_json(json.loads(json.dumps(kept)), NOBODY)
    assert (pause.question.question, pause.question.run_id, pause.timings_ms) == ("q", "run_1", {})


def test_who_answers_is_kept_with_the_attributes_that_rows_depend_on() -> None:
    attributes = attributes_of({"region": ["north", "south"], "level": ["3"]})
    given = GivenAnswer("yes", Actor("ann", ("clerks",), attributes=attributes))
    kept = json.loads(json.dumps(given.to_json()))
    assert GivenAnswer.from_json(kept) == given
    del kept["actor"]["attributes"]  # as an older version wrote it
    assert GivenAnswer.from_json(kept).actor.attributes == ()
