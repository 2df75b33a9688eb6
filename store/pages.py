"""Packs the frames of one write into one value, a page.

Frames of a run are much alike, so a deflated page takes a fifth of their space, and the server
receives and writes less.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence

from store import EventFrame

_PLAIN, _DEFLATED = b"p", b"z"
_HEAD = struct.Struct(">ii")  # seq, length of the data that follows
# In bytes. For less, deflating saves little, and each call releases the interpreter lock. For more,
# deflating would block the event loop for too long.
_MIN_DEFLATED = 2 * 1024
_MAX_DEFLATED = 64 * 1024
_LEVEL = 1  # higher levels take longer and save little


def packed(frames: Sequence[EventFrame]) -> bytes:
    """Write `frames`, in order, as one page."""
    plain = b"".join(_HEAD.pack(frame.seq, len(frame.data)) + frame.data for frame in frames)
    if _MIN_DEFLATED <= len(plain) <= _MAX_DEFLATED:
        return _DEFLATED + zlib.compress(plain, _LEVEL)
    return _PLAIN + plain


def unpacked(page: bytes) -> Iterator[EventFrame]:
    """Read the frames of a page, in order."""
    content = page[1:]
    plain = memoryview(zlib.decompress(content) if page.startswith(_DEFLATED) else content)
    while plain:
        seq, length = _HEAD.unpack_from(plain)
        end = _HEAD.size + length
        yield EventFrame(seq, bytes(plain[_HEAD.size : end]))
        plain = plain[end:]
