"""Values as the statements of the PostgreSQL store take and return them."""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from store import EventFrame

# Frames of a run are much alike, so a deflated page takes a fifth of their space, and the server
# receives and writes less.
_PLAIN, _DEFLATED = b"p", b"z"
_HEAD = struct.Struct(">ii")  # seq, length of the data that follows
# In bytes. For less, deflating saves little, and each call releases the interpreter lock. For more,
# deflating would block the event loop for too long.
_MIN_DEFLATED = 2 * 1024
_MAX_DEFLATED = 64 * 1024
_LEVEL = 1  # higher levels take longer and save little


def columns_of(rows: Iterable[Sequence[Any]], count: int) -> list[list[Any]]:
    """Turn rows of `count` values into one list per column, as `unnest` takes them."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(count)]


def read_bytes(text: str) -> bytes:
    """Read PostgreSQL's text form of a `bytea`."""
    return bytes.fromhex(text.removeprefix("\\x"))


def pack(frames: Sequence[EventFrame]) -> bytes:
    """Write the frames of one write, in order, as one page."""
    plain = b"".join(_HEAD.pack(frame.seq, len(frame.data)) + frame.data for frame in frames)
    if _MIN_DEFLATED <= len(plain) <= _MAX_DEFLATED:
        return _DEFLATED + zlib.compress(plain, _LEVEL)

    return _PLAIN + plain


def unpack(page: bytes) -> Iterator[EventFrame]:
    """Read the frames of a page, in order."""
    content = page[1:]
    if page.startswith(_DEFLATED):
        content = zlib.decompress(content)

    rest = memoryview(content)
    while rest:
        seq, length = _HEAD.unpack_from(rest)
        end = _HEAD.size + length
        yield EventFrame(seq, bytes(rest[_HEAD.size : end]))
        rest = rest[end:]
