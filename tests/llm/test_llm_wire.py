"""Reading replies from the network, cut anywhere and with any content."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm import Completion
from llm.call_failures import CallFailed
from tests.support.reply_bytes import ANY_JSON, CUTS, cut, event, read_bytes


def read(chunks: list[bytes], content_type: str, pieces: list[str] | None = None) -> Completion:
    return read_bytes(chunks, content_type, None, pieces)


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
        min_size=1,
        max_size=8,
    ),
    places=CUTS,
    line_end=st.sampled_from(["\n", "\r\n"]),
    ascii_only=st.booleans(),
)
def test_a_stream_means_the_same_however_it_is_cut(
    words: list[str], places: list[int], line_end: str, ascii_only: bool
) -> None:
    events = [
        event({"choices": [{"delta": {"content": word}}]}, line_end, ascii_only) for word in words
    ]
    data = b": hello\n\n" + b"".join(events) + b"data: [DONE]\n\n"
    text, pieces = "".join(words), list[str]()
    if not text.strip():
        with pytest.raises(CallFailed):
            read(cut(data, places), "text/event-stream", pieces)
        return
    assert read(cut(data, places), "text/event-stream", pieces).text == text
    assert "".join(pieces) == text


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)), CUTS, st.booleans())
def test_whatever_comes_gets_one_verdict(data: bytes, places: list[int], is_stream: bool) -> None:
    for prefix in (b"", b"data: ", b'data: {"choices": [', b'{"choices": [{"message": '):
        with pytest.raises(CallFailed):
            read(
                cut(prefix + data, places), "text/event-stream" if is_stream else "application/json"
            )


@given(
    content=ANY_JSON,
    refusal=ANY_JSON,
    finish=ANY_JSON,
    usage=ANY_JSON,
    counts=ANY_JSON,
    is_stream=st.booleans(),
)
def test_fields_of_any_type_are_survived(
    content: Any, refusal: Any, finish: Any, usage: Any, counts: Any, is_stream: bool
) -> None:
    said = {"content": content, "refusal": refusal}
    numbers = (
        {"prompt_tokens": counts, "completion_tokens": counts} if counts is not None else usage
    )
    value = {
        "choices": [{"delta": said, "message": said, "finish_reason": finish}],
        "usage": numbers,
    }
    data = (
        event(value, "\n", True) + b"data: [DONE]\n\n" if is_stream else json.dumps(value).encode()
    )
    try:
        completion = read([data], "text/event-stream" if is_stream else "application/json")
    except CallFailed as failure:
        assert failure.kind in {"empty", "unusable"}
        return
    assert isinstance(completion.text, str)
    assert completion.usage.llm_calls == 1
    assert completion.usage.prompt_tokens >= 0
