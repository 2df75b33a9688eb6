"""Tool calls read out of replies, in every way endpoints are known to spell them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm import Completion, InvalidArguments, ToolCall, ToolDefinition, ToolOffer
from llm.call_assembly import MAX_CALL_CHARS, MAX_CALLS, CallAssembly
from llm.call_failures import CallFailed
from tests.support.call_shapes import BOTH, SHAPES, TEXT_A, TEXT_B, A, delta, entry
from tests.support.effort import tries
from tests.support.reply_bytes import ANY_JSON, CUTS, cut, event, read_bytes

NAMES = ("count_rows", "run_sql", "describe", "run")


def streamed(
    *deltas: dict[str, Any] | str,
    finish: str | None = "tool_calls",
    taken: Sequence[str] = (),
    places: Sequence[int] = (),
    ascii_only: bool = True,
) -> Completion:
    """The reply that these deltas make; a str is text."""
    said = [{"content": delta} if isinstance(delta, str) else delta for delta in deltas]
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in said
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    data = b"".join(event(chunk, "\n", ascii_only) for chunk in chunks) + b"data: [DONE]\n\n"
    return read_bytes(cut(data, list(places)), "text/event-stream", CallAssembly(NAMES, taken))


def whole(message: dict[str, Any], finish: str = "tool_calls") -> Completion:
    """The reply that this message makes."""
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return read_bytes([json.dumps(body).encode()], "application/json", CallAssembly(NAMES))


def meant(completion: Completion) -> list[tuple[str, Any]]:
    """Names and arguments of the calls; of invalid arguments, the text."""
    return [
        (
            call.name,
            call.arguments.text if isinstance(call.arguments, InvalidArguments) else call.arguments,
        )
        for call in completion.tool_calls
    ]


# --- any way of cutting them is the same calls


@dataclass(frozen=True)
class Manner:
    """How an endpoint streams calls.

    Attributes:
        ids, indexes, names: `first` piece of a call, `every` piece, or `never`.
        first_index: the index of the first call.
        is_interleaved: pieces of all calls in turn.
    """

    ids: str
    indexes: str
    names: str
    first_index: int = 0
    is_interleaved: bool = False

    def spelled(self, call: ToolCall, place: int, pieces: Sequence[str]) -> list[dict[str, Any]]:
        """The entries of one call."""
        entries = []
        for number, piece in enumerate(pieces):
            said = {"first": number == 0, "every": True, "never": False}
            entries.append(
                entry(
                    index=place + self.first_index if said[self.indexes] else None,
                    id=call.id if said[self.ids] else None,
                    name=call.name if said[self.names] else None,
                    arguments=piece,
                )
            )
        return entries


MANNERS = {
    "OpenAI": Manner("first", "every", "first"),
    "OpenAI, calls interleaved": Manner("first", "every", "first", is_interleaved=True),
    "the first index is 1": Manner("first", "every", "first", first_index=1),
    "no index": Manner("first", "never", "first"),
    "index only at first": Manner("first", "first", "first"),
    "no index, id in every piece": Manner("every", "never", "first", is_interleaved=True),
    "no id": Manner("never", "every", "first", is_interleaved=True),
    "id and index in every piece": Manner("every", "every", "first", is_interleaved=True),
    "everything in every piece": Manner("every", "every", "every", is_interleaved=True),
    "the name in every piece": Manner("first", "every", "every"),
    "id and name in every piece": Manner("every", "never", "every", is_interleaved=True),
    "neither id nor index": Manner("never", "never", "first"),
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
OBJECTS = st.dictionaries(
    st.text(max_size=5), VALUES | st.lists(VALUES, max_size=3), min_size=1, max_size=3
)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), OBJECTS), min_size=1, max_size=4)


@settings(max_examples=tries(50))
@given(
    manner=st.sampled_from(list(MANNERS)),
    calls=CALLS,
    edges=st.lists(st.integers(0, 60), max_size=6),
    places=CUTS,
    ascii_only=st.booleans(),
)
def test_calls_mean_the_same_however_they_are_cut(
    manner: str, calls: list[tuple[str, Any]], edges: list[int], places: list[int], ascii_only: bool
) -> None:
    spelling = MANNERS[manner]
    columns = []
    for place, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments, ensure_ascii=ascii_only)
        inner = {edge for edge in edges if edge < len(text)}
        parts = [text[start:end] for start, end in pairwise(sorted({0, *inner, len(text)}))]
        # Nothing at first, as OpenAI does it. Repeating a name is only known from calling twice by
        # how the arguments go on, so without ids and indexes a name with arguments has to come
        # once.
        columns.append(spelling.spelled(ToolCall(f"id_{place}", name, {}), place, ["", *parts]))
    rows = [[one for one in row if one] for row in zip_longest(*columns)]
    entries = [one for line in (rows if spelling.is_interleaved else columns) for one in line]
    completion = streamed(
        "I will look. ", *map(delta, entries), places=places, ascii_only=ascii_only
    )
    assert meant(completion) == calls
    assert (completion.text, completion.finish_reason) == ("I will look. ", "tool_calls")
    ids = [call.id for call in completion.tool_calls]
    assert len(set(ids)) == len(ids)
    if spelling.ids != "never":
        assert ids == [f"id_{place}" for place in range(len(calls))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
def test_shapes_of_streams(shape: str, finish: str | None) -> None:
    completion = streamed(*SHAPES[shape], finish=finish)
    assert meant(completion) == BOTH
    assert completion.finish_reason == "tool_calls"
    assert completion.text == ""
    ids = [call.id for call in completion.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 2


def test_the_first_calls_that_models_could_make() -> None:
    """`function_call` is what later became `tool_calls`."""
    named = {"function_call": {"name": "count_rows", "arguments": ""}}
    completion = streamed(named, {"function_call": {"arguments": TEXT_A}}, finish="function_call")
    assert meant(completion) == [("count_rows", A)]
    assert completion.tool_calls[0].id
    assert (
        meant(
            whole({"content": None, "function_call": {"name": "count_rows", "arguments": TEXT_A}})
        )
        == BOTH[:1]
    )


def test_two_calls_of_one_tool_without_id_and_index() -> None:
    pieces = [
        delta(entry(name="run_sql", arguments="")),
        delta(entry(arguments='{"a"')),
        delta(entry(arguments=": 1}")),
    ]
    assert meant(streamed(*pieces, *pieces)) == [("run_sql", {"a": 1})] * 2
    at_once = delta(entry(name="run_sql", arguments=TEXT_B))
    assert (
        meant(streamed(at_once, at_once))
        == meant(streamed(delta(*at_once["tool_calls"] * 2)))
        == [BOTH[1]] * 2
    )


def test_a_name_of_equal_pieces() -> None:
    """It could be a short name that is repeated; the tools that were offered decide."""
    pieces = [entry(index=0, id="a", name="go"), entry(index=0, name="go", arguments="{}")]
    for offered, name in ((("gogo",), "gogo"), (("go",), "go"), (("run",), "go")):
        assembly = CallAssembly(offered)
        assembly.take_delta(delta(*pieces))
        assert [call.name for call in assembly.calls(is_cut=False)] == [name]


@pytest.mark.parametrize("arguments", ["", None, " ", "{}", {}])
def test_no_arguments(arguments: Any) -> None:
    one = entry(index=0, id="a", name="describe", arguments=arguments)
    assert meant(streamed(delta(one))) == meant(whole(delta(one))) == [("describe", {})]


def test_a_character_cut_into_its_surrogates() -> None:
    text = json.dumps({"sql": "😀"})
    raw = '{"sql": "\ud83d', '\ude00"}'
    completion = streamed(
        delta(entry(index=0, id="a", name="run_sql")),
        *(delta(entry(index=0, arguments=r)) for r in raw),
    )
    assert meant(completion) == meant(whole(delta(entry(id="a", name="run_sql", arguments=text))))
    assert meant(completion) == [("run_sql", {"sql": "😀"})]


def test_half_a_character_is_replaced() -> None:
    completion = whole(
        delta(
            entry(id="a", name="run_sql", arguments=r'{"sql": "\ud83d", "\uDC00": "\ud83d\ude00"}')
        )
    )
    assert meant(completion) == [("run_sql", {"sql": "\ufffd", "\ufffd": "😀"})]


# --- ids


@pytest.mark.parametrize(
    "shape",
    [
        "both in one chunk",
        "a known id under another index",
        "a new id in every piece",
        "the name after the id",
    ],
)
def test_ids_are_those_that_came_first(shape: str) -> None:
    assert [call.id for call in streamed(*SHAPES[shape]).tool_calls] == ["a", "b"]


def test_ids_are_kept_and_missing_ones_made_up() -> None:
    completion = whole(
        delta(
            entry(id="a", name="run"),
            entry(name="run"),
            entry(id="a", name="run"),
            entry(name="run"),
        )
    )
    first, *made = [call.id for call in completion.tool_calls]
    assert first == "a"
    assert len({first, *made}) == 4


def test_ids_of_earlier_calls_are_not_used_again() -> None:
    """Some endpoints number the calls of each reply from 0."""
    one = streamed(delta(entry(index=0, id="call_0", name="run")), taken=["call_0"]).tool_calls[0]
    assert one.id not in ("", "call_0")


def test_a_number_is_an_id() -> None:
    assert whole(delta({"id": 7, "function": {"name": "run"}})).tool_calls[0].id == "7"


# --- arguments that are none

INVALID = {
    "a list": ("[1]", "object"),
    "text": ('"shop"', "object"),
    "JSON twice": (json.dumps(TEXT_A), "object"),
    "cut": ('{"sql": "SEL', "JSON"),
    "two objects": ("{}{}", "JSON"),
    "prose": ("the shop table", "JSON"),
    "a constant of JavaScript": ('{"limit": NaN}', "JSON"),
    "a number too large": ('{"limit": 1e999}', "JSON"),
    "a raw line break": ('{"sql": "SELECT\n1"}', "JSON"),
    "too deep": ('{"a": ' + "[" * 60 + "]" * 60 + "}", "deep"),
    "far too deep": ('{"a": ' + "[" * 40_000 + "]" * 40_000 + "}", "deep"),
    "a number too long": ('{"limit": ' + "9" * 5_000 + "}", "JSON"),
}


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_arguments_are_given_to_the_caller(kind: str) -> None:
    text, word = INVALID[kind]
    for completion in (
        streamed(delta(entry(index=0, id="a", name="run_sql", arguments=text))),
        whole(delta(entry(id="a", name="run_sql", arguments=text))),
    ):
        (call,) = completion.tool_calls
        assert isinstance(call.arguments, InvalidArguments)
        assert call.arguments.text == text
        assert word in call.arguments.problem
        assert not call.arguments.is_cut
        assert call.spelled_arguments == "{}"


def test_a_value_that_is_no_object_is_invalid() -> None:
    (call,) = whole(delta(entry(id="a", name="run_sql", arguments=[1]))).tool_calls
    assert isinstance(call.arguments, InvalidArguments)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("text", ["", " ", "{", '{"sql": "SELECT', '{"sql": "SELECT 1"'])
def test_arguments_that_are_cut_say_so(finish: str, text: str) -> None:
    calls = (
        entry(index=0, id="a", name="count_rows", arguments=TEXT_A),
        entry(index=1, id="b", name="describe", arguments=""),
        entry(index=2, id="c", name="run_sql", arguments=text),
    )
    for completion in (streamed(delta(*calls), finish=finish), whole(delta(*calls), finish)):
        assert completion.finish_reason == finish
        assert (completion.is_cut, completion.is_withheld) == (
            finish == "length",
            finish == "content_filter",
        )
        assert meant(completion) == [("count_rows", A), ("describe", {}), ("run_sql", text)]
        last = completion.tool_calls[-1].arguments
        assert isinstance(last, InvalidArguments)
        assert last.is_cut
        assert "ended before" in last.problem


def test_a_call_that_was_complete_at_the_limit_is_no_less_valid() -> None:
    assert (
        meant(
            streamed(
                delta(entry(index=0, id="a", name="run_sql", arguments=TEXT_B)), finish="length"
            )
        )
        == BOTH[1:]
    )


# --- what else a reply holds


def test_text_and_calls_both_arrive() -> None:
    one = entry(index=0, id="a", name="count_rows", arguments=TEXT_A)
    for completion in (
        streamed("Let me ", "look.", delta(one)),
        whole({"content": "Let me look.", **delta(one)}),
    ):
        assert completion.text == "Let me look."
        assert meant(completion) == BOTH[:1]


def test_blank_text_beside_calls_is_no_text() -> None:
    assert streamed("\n\n", delta(entry(index=0, id="a", name="describe"))).text == ""


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(field: str) -> None:
    one = entry(index=0, id="a", name="describe")
    for completion in (
        streamed({field: "I need "}, "Text.", {field: "the columns."}, delta(one)),
        whole({"content": "Text.", field: "I need the columns.", **delta(one)}),
    ):
        assert (completion.text, completion.reasoning) == ("Text.", "I need the columns.")
        assert completion.message()["role"] == "assistant"
        assert completion.message().get("reasoning_content") == "I need the columns."


def test_calls_written_as_text_are_text() -> None:
    text = '<tool_call>{"name": "run_sql", "arguments": {}}</tool_call>'
    completion = streamed(text, finish="stop")
    assert (completion.text, completion.tool_calls) == (text, ())


def test_usage_in_a_chunk_without_choices() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
    filters = {
        "choices": [],
        "prompt_filter_results": [{"prompt_index": 0}],
    }  # what Azure begins with
    one = {
        "choices": [
            {
                "index": 0,
                "delta": delta(entry(index=0, id="a", name="describe")),
                "finish_reason": None,
            }
        ]
    }
    data = [event(value, "\n", True) for value in (filters, one, usage)] + [b"data: [DONE]\n\n"]
    completion = read_bytes(data, "text/event-stream", CallAssembly(NAMES))
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 7)
    assert meant(completion) == [("describe", {})]


def test_without_an_offer_nothing_is_a_call() -> None:
    one = delta(entry(index=0, id="a", name="describe"))
    body = json.dumps({"choices": [{"message": {"content": "text", **one}}]}).encode()
    assert read_bytes([body], "application/json", None).tool_calls == ()
    with pytest.raises(CallFailed, match="empty"):
        read_bytes([body.replace(b'"text"', b"null")], "application/json", None)


# --- streams and values that hold no calls

NO_CALLS: dict[str, Any] = {
    "no list": 7,
    "an empty list": [],
    "entries of another kind": [1, None, "x", []],
    "an empty entry": [{}],
    "an empty function": [{"index": 0, "function": {}}],
    "an id alone": [{"index": 0, "id": "a", "function": {"arguments": ""}}],
}


@pytest.mark.parametrize("kind", NO_CALLS)
def test_a_reply_without_text_and_calls_is_empty(kind: str) -> None:
    for read_it in (streamed, whole):
        with pytest.raises(CallFailed, match="empty"):
            read_it({"tool_calls": NO_CALLS[kind]})


def test_a_call_without_a_name_is_given_to_the_caller() -> None:
    assert meant(streamed(delta(entry(index=0, id="a", arguments=TEXT_A)))) == [("", A)]


@given(
    entries=st.lists(ANY_JSON, max_size=4),
    fields=st.dictionaries(st.sampled_from(["id", "index", "function"]), ANY_JSON),
)
def test_fields_of_any_type_are_survived(entries: list[Any], fields: dict[str, Any]) -> None:
    function = {"name": "run_sql", "arguments": "{}"}
    for calls in (
        entries,
        [{**fields}],
        [{"function": function, **fields}],
        [{**function, **fields}],
        fields,
    ):
        for read_it in (streamed, whole):
            try:
                completion = read_it({"tool_calls": calls, "content": "text"})
            except CallFailed as failure:
                assert failure.kind in {"oversized", "unusable"}
                continue
            json.dumps(completion.message()).encode()


ENTRIES = st.builds(
    entry,
    index=st.none() | st.integers(0, 2),
    id=st.sampled_from([None, "", "a", "b"]),
    name=st.sampled_from([None, "", "run", "_sql", "run_sql"]),
    arguments=st.sampled_from([None, "", '{"b": 2}', '{"a"', ": 1}", A]),
)


@given(st.lists(ENTRIES, max_size=8))
def test_no_argument_is_lost_and_no_id_is_twice(entries: list[dict[str, Any]]) -> None:
    completion = streamed("text", *map(delta, entries))
    sent = [one["function"].get("arguments") or "" for one in entries]
    kept = [
        json.dumps(arguments) if isinstance(arguments, dict) else arguments
        for _, arguments in meant(completion)
    ]
    written = "".join(TEXT_A if one == A else one for one in sent)
    assert sorted("".join(kept).replace("{}", "")) == sorted(written)
    ids = [call.id for call in completion.tool_calls]
    assert len({*ids, ""}) == len(ids) + 1


# --- sizes


def test_too_many_calls() -> None:
    calls = [entry(index=place, id=str(place), name="run") for place in range(MAX_CALLS + 1)]
    assert len(streamed(delta(*calls[:-1])).tool_calls) == MAX_CALLS
    for read_it in (streamed, whole):
        with pytest.raises(CallFailed, match="oversized"):
            read_it(delta(*calls))


def test_too_long_arguments() -> None:
    text = json.dumps({"sql": "x" * (MAX_CALL_CHARS // 2 - 100)})
    fits = [entry(index=place, id=str(place), name="run_sql", arguments=text) for place in range(2)]
    assert len(streamed(delta(*fits)).tool_calls) == 2
    for read_it in (streamed, whole):
        with pytest.raises(CallFailed, match="oversized"):
            read_it(delta(*fits, entry(index=2, id="2", name="run_sql", arguments=text)))


def test_a_long_name_or_id_is_too_long_as_well() -> None:
    for one in (
        entry(name="x" * (MAX_CALL_CHARS + 1)),
        entry(id="x" * (MAX_CALL_CHARS + 1), name="run"),
    ):
        with pytest.raises(CallFailed, match="oversized"):
            streamed(delta(one))


def test_what_is_repeated_is_not_counted_twice() -> None:
    """An id and a name in every piece of one character would fill the bound with nothing."""
    text = json.dumps({"sql": "x" * 5_000})
    pieces = [
        delta(entry(index=0, id="call_0123456789", name="run_sql", arguments=piece))
        for piece in text
    ]
    assert meant(streamed(*pieces)) == [("run_sql", json.loads(text))]


# --- what is offered, and what is sent back


@pytest.mark.parametrize("name", ["", "run.sql", "查询", "x" * 65, "run sql", "auto", "run\n"])
def test_a_tool_needs_a_name_that_endpoints_take(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        ToolDefinition(name, "", {"type": "object"})


@pytest.mark.parametrize("schema", [{}, {"type": "array"}])
def test_a_tool_takes_an_object(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="object"):
        ToolDefinition("run", "", schema)


RUN = ToolDefinition("run", "", {"type": "object"})


@pytest.mark.parametrize(
    "wrong",
    [{"tools": ()}, {"tools": (RUN, RUN)}, {"choice": "walk"}, {"tools": (RUN,) * 129}],
    ids=str,
)
def test_an_offer_that_endpoints_would_refuse(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tool"):
        ToolOffer(**{"tools": (RUN,), **wrong})


@pytest.mark.parametrize(
    ("name", "spelled"), [("run.sql", "run_sql"), ("", "unnamed"), ("查" * 80, "_" * 64)]
)
def test_a_name_that_is_none_is_sent_back_as_one(name: str, spelled: str) -> None:
    (call,) = whole(delta(entry(id="a", name=name, arguments=TEXT_A))).tool_calls
    assert (call.name, call.spelled_name) == (name, spelled)


def test_a_reply_without_anything_is_no_message() -> None:
    with pytest.raises(ValueError, match="neither"):
        Completion("", finish_reason="content_filter").message()
