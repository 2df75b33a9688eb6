"""Tells when what has been received of a connection is a whole head, and a whole body.

Nothing here waits for a client: bytes are given as they come, and gunicorn's own parser reads a
head, and a body, when all of it has come. So no thread is needed while a client sends.
"""

import ipaddress
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.errors import (
    InvalidHeader,
    InvalidRequestLine,
    LimitRequestHeaders,
    NoMoreData,
    ParseException,
)
from gunicorn.http.parser import RequestParser

_HEAD_BYTES = 65536  # of a request's line and headers together
_CHUNK_LINE_BYTES = 8192  # of the line before a chunk
# A client may send chunks of one byte, each of which takes six; much more than that is no body.
_CHUNKED_BYTES_PER_BYTE = 8
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FIRST_BYTE = re.compile(rb"[\r!#$%&'*+\-.^_`|~0-9A-Za-z]")  # of an empty line, or of a method
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?", re.DOTALL)
# RFC 3986, section 3.2: a registered name or an IPv4 address, or an IPv6 address in brackets; then
# a port.
_HOST = re.compile(
    r"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+|\[(?P<ipv6>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{0,5}))?"
)
_MOST_PORT = 65535
_HOST_NAME = "HOST"  # as gunicorn's parser writes names
_HTTP_1_1 = (1, 1)


class InvalidHost(ParseException):  # type: ignore[misc]  # gunicorn has no types
    """The header `Host` is missing, repeated, or names no host."""


class ReceivedBytes:
    """The bytes received and not read yet; gunicorn's parser takes it for a socket.

    Attributes:
        pending: these bytes.
        is_ended: the client sends no more.
    """

    def __init__(self) -> None:
        self.pending = bytearray()
        self.is_ended = False

    def recv(self, size: int) -> bytes:
        """Return at most `size` of the bytes; none: the parser asks for more than has come."""
        data = bytes(self.pending[:size])
        del self.pending[:size]
        return data


@dataclass(frozen=True)
class LargeBodies:
    """Requests whose bodies may be larger than others', and are kept on disk until they are served.

    Attributes:
        path: with which their paths begin; they are sent by POST.
        body_bytes: longest body of one of them.
        folder: on whose disk they are kept.
    """

    path: str
    body_bytes: int
    folder: Path

    def take(self, request: Any) -> bool:
        """Tell whether the request is one of them."""
        return bool(request.method == "POST" and request.path.startswith(self.path))


class StoredBody:
    """A body on disk; gunicorn takes it for one that it reads from a client.

    Args:
        length: how long the whole body is.
    """

    def __init__(self, folder: Path, length: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see `close`
        self.missing = length

    def take(self, pending: bytearray) -> None:
        """Move what belongs to the body from the received bytes to the disk."""
        part = pending[: self.missing]
        del pending[: len(part)]
        self._file.write(part)
        self.missing -= len(part)
        if not self.missing:
            self._file.seek(0)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of the body; none when it was given up."""
        return b"" if self._file.closed else self._file.read(size)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()


class RequestReader(RequestParser):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's parser of one connection's requests, which is asked to parse only what has come.

    Args:
        cfg: gunicorn's settings.
        client: the address of the connection's other end.
        body_bytes: longest body that the application reads.
        large: requests whose bodies may be longer.

    Attributes:
        is_whole: the whole body has come.
        is_too_long: it is longer than the application reads, so the rest is not awaited.
    """

    def __init__(
        self, cfg: Any, client: Any, body_bytes: int, large: LargeBodies | None = None
    ) -> None:
        self.received = ReceivedBytes()
        super().__init__(cfg, self.received, client)
        self._body_bytes = body_bytes
        self._large = large
        self._announced = 0
        self._stored: StoredBody | None = None
        self._searched = 0  # bytes in which no end of the head was found
        self._request: Any = None  # the one that was parsed and is not being served yet
        self._chunks: _ChunkScanner | None = None
        self.is_whole = False
        self.is_too_long = False

    def feed(self, data: bytes) -> None:
        """Add what has been received; nothing: the client sends no more."""
        if data:
            self.received.pending += data
        else:
            self.received.is_ended = True

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing of the next request has come."""
        return not self.received.pending

    @property
    def is_ended(self) -> bool:
        """Tell whether the client sends no more."""
        return self.received.is_ended

    def has_head(self) -> bool:
        """Tell whether a whole head has come, or something that can't become one."""
        pending = self.received.pending
        if not pending:
            return False

        start = max(0, self._searched - len(_HEAD_END) + 1)
        self._searched = len(pending)
        if pending.find(_HEAD_END, start) >= 0:
            return True
        if _FIRST_BYTE.match(pending) is None or _BARE_LINE_FEED.search(pending, start):
            return True

        return len(pending) > _HEAD_BYTES or self._line_is_too_long()

    def _line_is_too_long(self) -> bool:
        # An empty line may stand before the request's own.
        most = self.cfg.limit_request_line + 2 * len(_LINE_END)
        pending = self.received.pending
        return len(pending) > most and pending.find(_LINE_END, len(_LINE_END), most) < 0

    def read_head(self) -> Any:
        """Parse the head that has come; return gunicorn's request, which `next` gives once more.

        Raises:
            ParseException: it is no head of a request of HTTP/1.
        """
        pending = self.received.pending
        if _FIRST_BYTE.match(pending) is None:
            raise InvalidRequestLine(repr(bytes(pending[:1])))

        has_end = pending.find(_HEAD_END, 0, _HEAD_BYTES + len(_HEAD_END)) >= 0
        is_too_long = len(pending) > _HEAD_BYTES and not has_end
        if is_too_long and not self._line_is_too_long():
            raise LimitRequestHeaders(f"more than {_HEAD_BYTES} bytes")

        try:
            request = super().__next__()
        except (NoMoreData, StopIteration) as exc:
            raise InvalidRequestLine("it has no end") from exc
        except InvalidHeader as exc:
            if exc.hdr == _HOST_NAME:  # it is there twice
                raise InvalidHost from exc

            raise

        self._put_back()
        _check_host(request)
        self._request = request
        self._chunks = None
        if isinstance(request.body.reader, ChunkedReader):
            self._chunks = _ChunkScanner(self._body_bytes)

        self.is_whole = self.is_too_long = False
        reader = request.body.reader
        self._announced = int(reader.length) if isinstance(reader, LengthReader) else 0
        return request

    @property
    def is_large(self) -> bool:
        """Tell whether the body is to be kept on disk."""
        if self._large is None or self._announced <= self._body_bytes:
            return False

        return self._announced <= self._large.body_bytes and self._large.take(self.mesg)

    @property
    def announced_bytes(self) -> int:
        """Return the length of the body, as far as is known."""
        if self._chunks is not None:
            return len(self.received.pending)

        return self._announced

    def has_body(self) -> bool:
        """Tell whether the whole body has come, or all of it that is awaited."""
        pending = self.received.pending
        if self._chunks is not None:
            is_over = self._chunks.is_over(pending)
            self.is_whole = self._chunks.is_whole
            self.is_too_long = self._chunks.size > self._body_bytes
            return is_over or self.is_ended

        if self.is_large:
            self.is_whole = self._has_stored(pending)
            return self.is_whole or self.is_ended

        self.is_whole = len(pending) >= self._announced
        self.is_too_long = self._announced > self._body_bytes
        return self.is_whole or self.is_too_long or self.is_ended

    def _has_stored(self, pending: bytearray) -> bool:
        """Move what has come of a large body to disk; tell whether all of it is there."""
        if self._stored is None:
            assert self._large is not None
            self._stored = StoredBody(self._large.folder, self._announced)
            self.mesg.body.reader = self._stored

        self._stored.take(pending)
        return self._stored.missing == 0

    def close_stored(self) -> None:
        """Give up what is kept on disk of a body that is served, or of which no more comes."""
        if self._stored is not None:
            self._stored.close()
            self._stored = None

    def __next__(self) -> Any:
        """Return the request that was parsed; called by gunicorn in the thread that serves it."""
        request, self._request = self._request, None
        if request is None:
            raise StopIteration

        return request

    def begin_next(self) -> None:
        """Make ready for the next request, of which a part may have come with the last one."""
        self.close_stored()
        self._put_back()
        self._searched = 0

    def _put_back(self) -> None:
        self.received.pending[:0] = self.unreader.take_buffered()


class _ChunkScanner:
    """Finds the end of a chunked body.

    Gunicorn's reader checks it, so what is broken counts as over.

    Attributes:
        size: bytes of the body in the chunks that were found.
        is_whole: the end was found.
    """

    def __init__(self, body_bytes: int) -> None:
        self._body_bytes = body_bytes
        self._at = 0  # where the next chunk begins
        self.size = 0
        self._is_last = False
        self.is_whole = False

    def is_over(self, received: bytearray) -> bool:
        """Tell whether no more of the body is awaited; `received` begins with its first chunk."""
        while not self._is_last:
            end = received.find(_LINE_END, self._at, self._at + _CHUNK_LINE_BYTES)
            if end < 0:
                return len(received) - self._at > _CHUNK_LINE_BYTES or self._is_too_much(received)

            size = _CHUNK_SIZE.fullmatch(received, self._at, end)
            if size is None:
                return True
            if not self._pass(int(size[1], 16), end, received):
                return self._is_too_much(received)

        self.is_whole = received.find(_HEAD_END, self._at) >= 0
        return self.is_whole or self._is_too_much(received)

    def _pass(self, size: int, line_end: int, received: bytearray) -> bool:
        """Go on to the next chunk; false: the one at hand has not come as a whole."""
        if size == 0:
            self._is_last = True
            self._at = line_end  # the empty line that ends the trailers may be the next one
            return True

        after = line_end + len(_LINE_END) + size + len(_LINE_END)
        if self.size + size > self._body_bytes:
            self.size += size
            return False

        if len(received) < after:
            return False

        self.size += size
        self._at = after
        return True

    def _is_too_much(self, received: bytearray) -> bool:
        most = _HEAD_BYTES + _CHUNKED_BYTES_PER_BYTE * self._body_bytes
        return self.size > self._body_bytes or len(received) > most


def _check_host(request: Any) -> None:
    """Raise `InvalidHost` unless the request names its host as RFC 9112, section 3.2 asks."""
    hosts = [value for name, value in request.headers if name == _HOST_NAME]
    if not hosts:
        if request.version >= _HTTP_1_1:
            raise InvalidHost

        return

    if not _is_host(hosts[0]):
        raise InvalidHost


def _is_host(value: str) -> bool:
    host = _HOST.fullmatch(value)
    if host is None or int(host["port"] or 0) > _MOST_PORT:
        return False

    return host["ipv6"] is None or _is_ipv6(host["ipv6"])


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False

    return True
