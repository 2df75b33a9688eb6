"""Frames of one write as one value, a page.

Frames of a run repeat most of each other, so a page takes a fifth of their space, and what a server is given and writes
down is that much less.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence

from common.store import Frame

_PLAIN, _DEFLATED = b"p", b"z"
_HEAD = struct.Struct(">ii")  # seq, length of the data that follows
_MIN_DEFLATED = 2 * 1024  # bytes; of less there is little to save, and every call gives the interpreter away
_MAX_DEFLATED = 64 * 1024  # bytes; beyond, the event loop would be held up for too long
_LEVEL = 1  # the others take longer and save little


def packed(frames: Sequence[Frame]) -> bytes:
    """`frames`, in order, as one page."""
    plain = b"".join(part for frame in frames for part in (_HEAD.pack(frame.seq, len(frame.data)), frame.data))
    is_deflated = _MIN_DEFLATED <= len(plain) <= _MAX_DEFLATED
    return _DEFLATED + zlib.compress(plain, _LEVEL) if is_deflated else _PLAIN + plain


def unpacked(page: bytes) -> Iterator[Frame]:
    """The frames of a page, in order."""
    content = page[1:]
    plain = memoryview(zlib.decompress(content) if page.startswith(_DEFLATED) else content)
    while plain:
        seq, length = _HEAD.unpack_from(plain)
        end = _HEAD.size + length
        yield Frame(seq, bytes(plain[_HEAD.size : end]))
        plain = plain[end:]
