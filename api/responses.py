"""Turns envelopes and events into HTTP responses; the only place that renders errors."""

import logging
from typing import Any
from urllib.parse import quote

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge
from werkzeug.exceptions import NotFound as NoRoute

from agent.runs.events import Event
from api.requests import json_of, language_of_body
from common import timestamps
from common.envelope import Envelope, error_data, failure, to_bytes
from common.errors import (
    INTERNAL_ERROR_TEXT,
    BodyTooLarge,
    CituError,
    InsufficientScope,
    InternalError,
    InvalidRequest,
    NotFound,
    Unauthorized,
    UpgradeRequired,
)
from common.logs import request_id
from common.text import Lang, Text

_log = logging.getLogger(__name__)

# What the HTTP standards ask an answer to say besides its status.
_HEADERS: dict[type[CituError], dict[str, str]] = {
    UpgradeRequired: {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
    },
}


def reply(envelope: Envelope) -> Response:
    """Return a response with `envelope` as JSON and its `code` as the HTTP status."""
    return _response(to_bytes(envelope), envelope["code"], envelope["data"])


def reply_of(event: Event) -> Response:
    """Return a response with a terminal event as the sync endpoint answers it."""
    return _response(event.sync_rendered(), event.code, event.data)


def accepted_media(own: str) -> str:
    """Return a file's own media type, or that of bytes when the request accepts only this."""
    bytes_media = "application/octet-stream"
    offered = [own.partition(";")[0], bytes_media]
    accepted = request.accept_mimetypes.best_match(offered, offered[0])
    return bytes_media if accepted == bytes_media else own


def set_file_name(response: Response, name: str, kind: str, *, otherwise: str) -> None:
    """Have browsers save the response as `name.kind`.

    Args:
        otherwise: the name in ASCII, for clients that don't read encoded names.
    """
    if name.isascii() and name.isprintable():
        names = {"filename": f"{name}.{kind}"}
    else:
        encoded = f"UTF-8''{quote(name, safe='')}.{kind}"
        names = {"filename": f"{otherwise}.{kind}", "filename*": encoded}

    response.headers.set("Content-Disposition", "attachment", **names)


def _response(body: bytes, code: int, data: dict[str, Any]) -> Response:
    response = Response(body, status=code, content_type="application/json; charset=utf-8")
    retry_after = data.get("retry_after_s")
    if retry_after is not None:
        response.headers["Retry-After"] = str(retry_after)

    return response


def error_envelope(error: CituError, lang: Lang, code: int | None = None) -> Envelope:
    """Return the envelope of an error outside of any run; `code` replaces the error's own."""
    data: dict[str, Any] = error_data(error, lang)
    data["request_id"] = request_id.get()
    data["timestamp"] = timestamps.now()
    return failure(code or error.code, error.title.to(lang), data)


def request_language() -> Lang:
    """Return the language for an error about the request being served."""
    try:
        body = json_of(request)
    except InvalidRequest:
        body = None

    spoken = body if isinstance(body, dict) else request.args
    return language_of_body(dict(spoken), request.headers.get("Accept-Language"))


def _citu_error(error: CituError) -> Response:
    response = reply(error_envelope(error, request_language()))
    response.headers.update(_HEADERS.get(type(error), {}))
    if isinstance(error, Unauthorized | InsufficientScope):
        response.headers["WWW-Authenticate"] = error.challenge

    return response


def _http_error(error: HTTPException) -> Response:
    """Put werkzeug's own errors (unknown path, wrong method, body too large) into the envelope."""
    own_error: CituError
    code = error.code or 500
    if isinstance(error, NoRoute):
        own_error = NotFound(
            Text(f"没有这个地址：{request.path}", f"There is nothing at {request.path}")
        )
    elif isinstance(error, MethodNotAllowed):
        allowed = ", ".join(sorted(set(error.valid_methods or ()) - {"HEAD", "OPTIONS"}))
        own_error = InvalidRequest(
            Text(
                f"{request.path} 只接受 {allowed}。",
                f"{request.path} takes {allowed}, not {request.method}.",
            )
        )
    elif isinstance(error, RequestEntityTooLarge):
        own_error, code = BodyTooLarge(Text("请求体过大。", "The request body is too large.")), 400
    else:
        own_error = InvalidRequest(
            Text(f"请求无法处理：{error.name}", f"The request can't be processed: {error.name}")
        )

    response = reply(error_envelope(own_error, request_language(), code))
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(error.valid_methods or ())

    return response


def _unexpected_error(error: Exception) -> Response:
    _log.error("unexpected failure in a view", exc_info=error)
    return reply(error_envelope(InternalError(INTERNAL_ERROR_TEXT), request_language()))


def error_reply(error: Exception) -> Response:
    """Return the response to any error, as an envelope."""
    if isinstance(error, CituError):
        return _citu_error(error)

    if isinstance(error, HTTPException):
        return _http_error(error)

    return _unexpected_error(error)


def register_error_handlers(app: Flask) -> None:
    """Make the app answer every error with an envelope, never with HTML or a traceback."""
    app.register_error_handler(Exception, error_reply)
