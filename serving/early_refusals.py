"""The answers of the server itself, to what never reaches the application, in its envelope.

They are in English, because the headers that may ask for another language were not understood.
"""

from gunicorn.http.errors import (
    ExpectationFailed,
    ForbiddenProxyRequest,
    InvalidHTTPVersion,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)

from common import timestamps
from common.envelope import error_data, failure, to_bytes
from common.errors import (
    INTERNAL_ERROR_TEXT,
    CituError,
    Forbidden,
    HeadersTooLarge,
    InternalError,
    InvalidRequest,
    RequestTimeout,
    TooManyConnections,
    UriTooLong,
)
from common.text import Text
from serving.request_reading import InvalidHost

# Of a request's first line, the most that gunicorn reads unless it reads without end.
LINE_BYTES = 8190
_RETRY_AFTER_S = 5
_LINE_TOO_LONG = Text(
    f"请求地址连同查询参数最多 {LINE_BYTES:,} 字节。",
    f"The address with its query string may have {LINE_BYTES:,} bytes at most.",
)
_HEADERS_TOO_LARGE = Text(
    "请求头过多或过长。", "The request has too many headers, or too long ones."
)
_NO_HOST = Text(
    "请求头 Host 缺失或无效：请给出一个主机名，可带端口。",
    "The header Host is missing or not valid: give one host, with a port or without.",
)
_NO_EXPECTATION = Text(
    "请求头 Expect 只支持 100-continue。", "The header Expect may only say 100-continue."
)
_NO_CODING = Text(
    "请求头 Transfer-Encoding 只支持 chunked。",
    "The header Transfer-Encoding may only say chunked.",
)
_NO_VERSION = Text(
    "只支持 HTTP/1.0 和 HTTP/1.1。", "Only HTTP/1.0 and HTTP/1.1 are understood here."
)
_NO_PROXY = Text(
    "该地址不能以 PROXY 协议连接。", "This address may not connect by the PROXY protocol."
)
_MALFORMED = Text("这不是有效的 HTTP/1.1 请求。", "This is not a valid request of HTTP/1.1.")
_SLOW = Text(
    "请求发送得太慢，连接已关闭。", "The request was sent too slowly, so the connection is closed."
)
_CROWDED = Text(
    "该地址打开的连接过多：请关闭一些，或稍后重试。",
    "This address has too many connections open: close some, or try again in a moment.",
)
# What gunicorn's parser raises: the first class that fits says the error, and its status where that
# is not the error's own.
_ANSWERS: tuple[tuple[type[ParseException], CituError, int | None], ...] = (
    (LimitRequestLine, UriTooLong(_LINE_TOO_LONG), None),
    (LimitRequestHeaders, HeadersTooLarge(_HEADERS_TOO_LARGE), None),
    (InvalidHost, InvalidRequest(_NO_HOST), None),
    (InvalidHTTPVersion, InvalidRequest(_NO_VERSION), None),
    (ExpectationFailed, InvalidRequest(_NO_EXPECTATION), 417),
    (UnsupportedTransferCoding, InvalidRequest(_NO_CODING), 501),
    (ForbiddenProxyRequest, Forbidden(_NO_PROXY), None),
    (ParseException, InvalidRequest(_MALFORMED), None),
)


def answer_to(error: BaseException) -> bytes:
    """Return the whole response to what gunicorn could not serve because of `error`."""
    for kind, refusal, code in _ANSWERS:
        if isinstance(error, kind):
            return _response(refusal, code)

    return _response(InternalError(INTERNAL_ERROR_TEXT))


def too_slow() -> bytes:
    """Return the whole response to a request that does not become whole in time."""
    return _response(RequestTimeout(_SLOW))


def too_many_connections() -> bytes:
    """Return the whole response to a client whose address has too many connections open."""
    return _response(TooManyConnections(_CROWDED, retry_after_s=_RETRY_AFTER_S))


def _response(error: CituError, code: int | None = None) -> bytes:
    code = code or error.code
    data = {**error_data(error, "en"), "request_id": "-", "timestamp": timestamps.now()}
    body = to_bytes(failure(code, error.title.en, data))
    head = [
        f"HTTP/1.1 {code} {error.title.en}",
        "Connection: close",
        "X-Content-Type-Options: nosniff",
        "Content-Type: application/json; charset=utf-8",
        f"Content-Length: {len(body)}",
    ]
    if error.retry_after_s is not None:
        head.append(f"Retry-After: {error.retry_after_s}")

    return "\r\n".join([*head, "", ""]).encode() + body
