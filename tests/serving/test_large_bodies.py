"""Large bodies of uploads go to disk while they come; other large bodies are not awaited."""

from pathlib import Path

import pytest
from gunicorn.config import Config

from serving.request_reading import LargeBodies, RequestReader

SIZE = 300_000


@pytest.fixture
def reader(tmp_path: Path) -> RequestReader:
    large = LargeBodies("/api/v0/files", 2 * SIZE, tmp_path / "uploads")
    return RequestReader(Config(), ("127.0.0.1", 1), 1000, large)


def _head(path: str, size: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode()


def test_an_upload_goes_to_disk_and_the_next_request_follows(reader: RequestReader) -> None:
    body = bytes(number % 251 for number in range(SIZE))
    after = _head("/api/v0/ask_agent", 2)
    sent = _head("/api/v0/files", SIZE) + body + after + b"{}"
    reader.feed(sent[:5000])
    assert reader.has_head()
    request = reader.read_head()
    assert reader.is_large
    for start in range(5000, len(sent), 65536):
        assert not reader.is_whole
        reader.feed(sent[start : start + 65536])
        reader.has_body()
        assert len(reader.received.pending) <= len(after) + 2
    assert reader.is_whole
    assert next(reader) is request
    assert request.body.read() == body
    reader.begin_next()
    assert reader.has_head()
    assert reader.read_head().path == "/api/v0/ask_agent"
    assert reader.has_body()


@pytest.mark.parametrize(("path", "size"), [("/api/v0/ask_agent", SIZE), ("/api/v0/files", 10**9)])
def test_what_is_too_long_is_not_awaited(reader: RequestReader, path: str, size: int) -> None:
    reader.feed(_head(path, size))
    assert reader.has_head()
    reader.read_head()
    assert not reader.is_large
    assert reader.has_body()
    assert reader.is_too_long
