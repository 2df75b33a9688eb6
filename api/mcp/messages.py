"""Reads JSON-RPC requests as MCP's clients send them, and writes the replies.

A request of the newer era says its protocol version in `_meta` and in a header, and repeats its
method and the name it is about in headers, so that proxies can route it. A request of the older
era has agreed on a version by `initialize`.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Era = Literal["stateless", "handshake"]

STATELESS_VERSIONS = ("2026-07-28",)
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The newest first."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"

_META = "_meta"
_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
SERVER_INFO_KEY = f"{_PREFIX}serverInfo"
SUBSCRIPTION_KEY = f"{_PREFIX}subscriptionId"

# The parameter that the header `Mcp-Name` repeats, by method.
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED_BEGIN, _ENCODED_END = "=?base64?", "?="

RequestId = str | int | None


class RequestHeaders(Protocol):
    """Headers of an HTTP request, whose names have no case."""

    def get(self, name: str, default: str, /) -> str:
        """Return the value of a header."""


class McpError(Exception):
    """A request that can't be answered with a result.

    Attributes:
        code: a code of JSON-RPC, or one of MCP's own.
        data: what programs can act on.
        status: the status of the HTTP response in the newer era; the older one answers 200.
        request_id: the id of the request; None where it could not be read.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        status: int = 400,
        request_id: RequestId = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.request_id = request_id


@dataclass(frozen=True)
class McpRequest:
    """One request or notification.

    Attributes:
        id: None: a notification, which is not answered.
        version: the protocol version it is written in; empty where an older client does not say.
        capabilities: what the client can do, as far as this request says.
    """

    id: RequestId
    method: str
    params: Mapping[str, Any]
    era: Era
    version: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the request's `_meta`."""
        return _mapping(self.params.get(_META))

    @property
    def progress_token(self) -> str | int | None:
        """Return by what the client wants to be told of progress; None: it does not."""
        token = self.meta.get("progressToken")
        if isinstance(token, str | int) and not isinstance(token, bool):
            return token

        return None


def parse_request(body: object, headers: RequestHeaders) -> McpRequest | None:
    """Return the request in a body; None: it is a reply of the client, which nobody waits for.

    Args:
        body: as JSON; None: it is not JSON.
        headers: the headers of the HTTP request.

    Raises:
        McpError: the body is no request, or its headers say something else than it.
    """
    if body is None:
        raise McpError(PARSE_ERROR, "The body must be JSON")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise McpError(INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message")

    request_id = body.get("id")
    if "method" not in body and ("result" in body or "error" in body):
        return None

    try:
        return _request(body, headers)
    except McpError as error:
        error.request_id = _usable_id(request_id)
        raise


def _request(body: Mapping[str, Any], headers: RequestHeaders) -> McpRequest:
    request_id, method, params = body.get("id"), body.get("method"), body.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise McpError(INVALID_REQUEST, "method must be a text, and params an object")
    if "id" in body and _usable_id(request_id) is None:
        raise McpError(INVALID_REQUEST, "id must be a text or a whole number")

    meta = _mapping(params.get(_META))
    header = headers.get(VERSION_HEADER, "").strip()
    is_stateless = VERSION_KEY in meta or header in STATELESS_VERSIONS
    if not is_stateless:
        return _older_request(request_id, method, params, header)
    if request_id is not None:
        _check_meta(meta)
        _check_headers(header, str(meta[VERSION_KEY]), method, params, headers)

    capabilities = _mapping(meta.get(CAPABILITIES_KEY))
    return McpRequest(request_id, method, params, "stateless", header, capabilities)


def _older_request(
    request_id: RequestId, method: str, params: Mapping[str, Any], version: str
) -> McpRequest:
    if version and version not in HANDSHAKE_VERSIONS and method != "initialize":
        raise _unsupported_version(version)

    return McpRequest(request_id, method, params, "handshake", version)


def _check_meta(meta: Mapping[str, Any]) -> None:
    version, capabilities = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        raise McpError(INVALID_PARAMS, f"params._meta must have {VERSION_KEY}")
    if not isinstance(capabilities, dict):
        raise McpError(INVALID_PARAMS, f"params._meta must have {CAPABILITIES_KEY}")


def _check_headers(
    header: str, version: str, method: str, params: Mapping[str, Any], headers: RequestHeaders
) -> None:
    """Raise unless the headers repeat what the body says."""
    _check_header(VERSION_HEADER, header, version)
    if version not in STATELESS_VERSIONS:
        raise _unsupported_version(version)

    _check_header(METHOD_HEADER, headers.get(METHOD_HEADER, ""), method)
    named_by = _NAMED_BY.get(method)
    name = params.get(named_by) if named_by is not None else None
    if isinstance(name, str):
        _check_header(NAME_HEADER, headers.get(NAME_HEADER, ""), name)


def _check_header(name: str, value: str, expected: str) -> None:
    if _decoded(value.strip()) != expected:
        problem = "is missing" if not value else "does not equal the body"
        raise McpError(HEADER_MISMATCH, f"The header {name} {problem}", {"header": name})


def _decoded(text: str) -> str:
    """Return a header's value; texts beyond ASCII are written `=?base64?…?=`."""
    if not (text.startswith(_ENCODED_BEGIN) and text.endswith(_ENCODED_END)):
        return text

    encoded = text[len(_ENCODED_BEGIN) : -len(_ENCODED_END)]
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return text


def _unsupported_version(version: str) -> McpError:
    supported = [*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS]
    data = {"supported": supported, "requested": version}
    return McpError(UNSUPPORTED_VERSION, f"Unsupported protocol version: {version}", data)


def _usable_id(request_id: object) -> RequestId:
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        return None

    return request_id


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def result_message(request: McpRequest, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to a request; in the newer era it says which kind of result it is."""
    body = dict(result)
    if request.era == "stateless":
        body.setdefault("resultType", "complete")

    return {"jsonrpc": "2.0", "id": request.id, "result": body}


def error_message(error: McpError) -> dict[str, Any]:
    """Return the reply to a request that failed."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = dict(error.data)

    return {"jsonrpc": "2.0", "id": error.request_id, "error": body}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that is not answered."""
    return {"jsonrpc": "2.0", "method": method, "params": dict(params)}
