"""Replies of an endpoint as bytes, cut anywhere and of any content."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from hypothesis import strategies as st

from llm import Completion
from llm.call_assembly import CallAssembly
from llm.completion_stream import read_completion


def read_bytes(
    chunks: list[bytes],
    content_type: str,
    calls: CallAssembly | None,
    pieces: list[str] | None = None,
) -> Completion:
    """Return the reply that arrives in these chunks; text is added to `pieces` as it is given
    out.
    """

    async def body() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk

    return asyncio.run(
        read_completion(body(), content_type, None if pieces is None else pieces.append, calls)
    )


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]


def event(value: Any, line_end: str, ascii_only: bool) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=ascii_only)}{line_end}{line_end}".encode()


CUTS = st.lists(st.integers(0, 2000), max_size=20)
ANY_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
