"""Answers MCP's requests: a table of methods for each era of the protocol."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from api.mcp.answer_view import EXTENSION, MEDIA_TYPE
from api.mcp.content import (
    InputRequired,
    Json,
    McpCall,
    McpCaller,
    McpContent,
    Progress,
    Result,
    Step,
    failed_result,
)
from api.mcp.messages import (
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_INFO_KEY,
    STATELESS_VERSIONS,
    SUBSCRIPTION_KEY,
    Era,
    McpError,
    McpRequest,
    error_message,
    notification,
    result_message,
)
from api.mcp.sealed_state import InvalidState, StateSeal
from common.errors import CituError

_log = logging.getLogger(__name__)

_LIST_TTL_MS = 60_000  # what a caller may use changes with its rights, which operators change
_MOST_COMPLETIONS = 100  # as the protocol allows
_CAPABILITIES: Json = {
    "tools": {},
    "resources": {},
    "prompts": {},
    "completions": {},
    "extensions": {EXTENSION: {"mimeTypes": [MEDIA_TYPE]}},
}
_UNCHECKED = (
    "The requestState does not belong to this call, or is no longer valid: call again without it"
)

Messages = AsyncGenerator[Step | dict[str, Any], None]
"""What a method gives: steps, and messages that are sent as they are."""


@dataclass(frozen=True)
class McpReply:
    """A message to the client.

    Attributes:
        status: the status of the HTTP response, where the message is all of it.
    """

    message: dict[str, Any]
    status: int = 200


Replies = AsyncGenerator[McpReply, None]


@dataclass(frozen=True)
class McpServer:
    """Serves one content over the protocol.

    Attributes:
        info: name and version of the server.
        instructions: tells a model what the server is for.
    """

    content: McpContent
    seal: StateSeal
    info: Json
    instructions: str

    def method_of(self, request: McpRequest) -> "McpMethod":
        """Return the method that a request calls.

        Raises:
            McpError: there is no such method in its era of the protocol.
        """
        method = METHODS.get(request.method)
        if method is None or request.era not in method.eras:
            listed = ", ".join(name for name, one in METHODS.items() if request.era in one.eras)
            raise McpError(
                METHOD_NOT_FOUND,
                f"Method not found: {request.method}. There are: {listed}",
                status=404,
                request_id=request.id,
            )

        return method

    async def replies(self, request: McpRequest, caller: McpCaller) -> Replies:
        """Yield what a request is answered with: notifications, then its reply.

        Closing the replies early cancels the work.
        """
        try:
            steps = self.method_of(request).run(self, request, caller)
            async with aclosing(steps):
                async for step in steps:
                    message = self._message(request, step, caller)
                    if message is not None:
                        yield McpReply(message)
        except McpError as error:
            error.request_id = request.id
            yield McpReply(error_message(error), _status(error, request))
        except CituError as error:
            refused = McpError(INTERNAL_ERROR, error.message(caller.lang), _error_json(error))
            refused.request_id = request.id
            yield McpReply(error_message(refused), error.code)
        except Exception:  # noqa: BLE001 - a client must see that there will be no result
            _log.exception("unexpected failure in an MCP request")
            broken = McpError(INTERNAL_ERROR, "Internal error", status=500, request_id=request.id)
            yield McpReply(error_message(broken), _status(broken, request))

    def _message(
        self, request: McpRequest, step: Step | dict[str, Any], caller: McpCaller
    ) -> dict[str, Any] | None:
        """Return the message for a step; None for progress that nobody asked for."""
        if isinstance(step, Result):
            return result_message(request, step.body)
        if isinstance(step, InputRequired):
            return result_message(request, self._input_required_json(request, step, caller))
        if isinstance(step, dict):
            return step
        if request.progress_token is None:
            return None

        shown: dict[str, Any] = {"progressToken": request.progress_token}
        shown["progress"] = step.progress
        if step.total is not None:
            shown["total"] = step.total
        if step.message:
            shown["message"] = step.message

        return notification("notifications/progress", shown)

    def _input_required_json(
        self, request: McpRequest, step: InputRequired, caller: McpCaller
    ) -> Json:
        asked: dict[str, Any] = {"resultType": "input_required", "inputRequests": step.requests}
        if step.state is not None:
            asked["requestState"] = self.seal.sealed(caller.actor, _bound(request), step.state)

        return asked

    # --------------------------------------------------------------------------
    # methods

    async def _discover(self, _request: McpRequest, _caller: McpCaller) -> Json:
        return {
            "_meta": {SERVER_INFO_KEY: self.info},
            "supportedVersions": [*STATELESS_VERSIONS, *HANDSHAKE_VERSIONS],
            "capabilities": _CAPABILITIES,
            "instructions": self.instructions,
            "ttlMs": _LIST_TTL_MS,
            "cacheScope": "private",
        }

    async def _initialize(self, request: McpRequest, _caller: McpCaller) -> Json:
        client_version = request.params.get("protocolVersion")
        version = client_version if client_version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
        return {
            "protocolVersion": version,
            "capabilities": _CAPABILITIES,
            "serverInfo": self.info,
            "instructions": self.instructions,
        }

    async def _nothing(self, _request: McpRequest, _caller: McpCaller) -> Json:
        return {}

    async def _list_tools(self, request: McpRequest, caller: McpCaller) -> Json:
        return _cacheable(request, {"tools": list(await self.content.tools(caller))})

    async def _list_resources(self, request: McpRequest, caller: McpCaller) -> Json:
        return _cacheable(request, {"resources": list(await self.content.resources(caller))})

    async def _list_templates(self, request: McpRequest, caller: McpCaller) -> Json:
        templates = list(await self.content.templates(caller))
        return _cacheable(request, {"resourceTemplates": templates})

    async def _list_prompts(self, request: McpRequest, caller: McpCaller) -> Json:
        return _cacheable(request, {"prompts": list(await self.content.prompts(caller))})

    async def _read(self, request: McpRequest, caller: McpCaller) -> Json:
        uri = _text_parameter(request, "uri")
        contents = list(await self.content.read(uri, caller))
        return _cacheable(request, {"contents": contents}, ttl_ms=0)

    async def _complete(self, request: McpRequest, caller: McpCaller) -> Json:
        ref, argument = request.params.get("ref"), request.params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise McpError(INVALID_PARAMS, "ref and argument must be objects")

        values = list(await self.content.completions(ref, argument, caller))
        shown = values[:_MOST_COMPLETIONS]
        return {
            "completion": {
                "values": shown,
                "total": len(values),
                "hasMore": len(values) > len(shown),
            }
        }

    async def _call_tool(self, request: McpRequest, caller: McpCaller) -> Messages:
        call = self._call(request, caller)
        count = 0
        steps = self.content.call(call)
        async with aclosing(steps):
            try:
                async for step in steps:
                    count += 1
                    yield _numbered(step, count)
            except CituError as error:
                message = f"{error.error_type}: {error.message(caller.lang)}"
                yield Result(failed_result(message, _error_json(error)))

    async def _get_prompt(self, request: McpRequest, caller: McpCaller) -> Messages:
        steps = self.content.prompt(self._call(request, caller))
        async with aclosing(steps):
            async for step in steps:
                yield step

    async def _listen(self, request: McpRequest, _caller: McpCaller) -> Messages:
        """Acknowledge no notification, because no list changes unasked, and end."""
        subscription = {SUBSCRIPTION_KEY: request.id}
        yield notification(
            "notifications/subscriptions/acknowledged", {"_meta": subscription, "notifications": {}}
        )
        yield Result({"_meta": subscription})

    def _call(self, request: McpRequest, caller: McpCaller) -> McpCall:
        arguments = request.params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise McpError(INVALID_PARAMS, "arguments must be an object")

        responses, state = request.params.get("inputResponses"), None
        if responses is not None and not isinstance(responses, dict):
            raise McpError(INVALID_PARAMS, "inputResponses must be an object")

        sealed = request.params.get("requestState")
        if sealed is not None:
            state = self._open_state(request, caller, sealed)

        return McpCall(
            _text_parameter(request, "name"),
            arguments,
            caller,
            request.capabilities,
            responses,
            state,
        )

    def _open_state(self, request: McpRequest, caller: McpCaller, sealed: object) -> Json:
        if not isinstance(sealed, str):
            raise McpError(INVALID_PARAMS, _UNCHECKED)

        try:
            return self.seal.opened(caller.actor, _bound(request), sealed)
        except InvalidState as exc:
            raise McpError(INVALID_PARAMS, _UNCHECKED) from exc


Run = Callable[[McpServer, McpRequest, McpCaller], Messages]
_BOTH: frozenset[Era] = frozenset({"stateless", "handshake"})
_NEWER: frozenset[Era] = frozenset({"stateless"})
_OLDER: frozenset[Era] = frozenset({"handshake"})


@dataclass(frozen=True)
class McpMethod:
    """A method of the protocol.

    Attributes:
        works: whether it may ask the database or a model, so that it takes a slot for questions.
        is_counted: whether it counts against the caller's rate limit.
        streams: whether its reply is always a stream.
    """

    run: Run
    eras: frozenset[Era] = field(default=_BOTH)
    works: bool = False
    is_counted: bool = False
    streams: bool = False


def _at_once(answer: Callable[[McpServer, McpRequest, McpCaller], Awaitable[Json]]) -> Run:
    """Return a method that has a result and no steps."""

    async def run(server: McpServer, request: McpRequest, caller: McpCaller) -> Messages:
        yield Result(await answer(server, request, caller))

    return run


METHODS: Mapping[str, McpMethod] = {
    "server/discover": McpMethod(_at_once(McpServer._discover), _NEWER),
    "subscriptions/listen": McpMethod(McpServer._listen, _NEWER, streams=True),
    "initialize": McpMethod(_at_once(McpServer._initialize), _OLDER),
    "ping": McpMethod(_at_once(McpServer._nothing), _OLDER),
    "logging/setLevel": McpMethod(_at_once(McpServer._nothing), _OLDER),
    "tools/list": McpMethod(_at_once(McpServer._list_tools)),
    "tools/call": McpMethod(McpServer._call_tool, works=True, is_counted=True),
    "resources/list": McpMethod(_at_once(McpServer._list_resources), works=True),
    "resources/templates/list": McpMethod(_at_once(McpServer._list_templates)),
    "resources/read": McpMethod(_at_once(McpServer._read), works=True, is_counted=True),
    "prompts/list": McpMethod(_at_once(McpServer._list_prompts), works=True, is_counted=True),
    "prompts/get": McpMethod(McpServer._get_prompt, works=True, is_counted=True),
    "completion/complete": McpMethod(_at_once(McpServer._complete), works=True),
}
"""All methods, with the eras that have them."""


def _numbered(step: Step, count: int) -> Step:
    """Return a step whose progress grows, as the protocol wants it."""
    if isinstance(step, Progress) and step.progress is None:
        return Progress(step.message, count, step.total)

    return step


def _bound(request: McpRequest) -> Json:
    """Return what a state is bound to: the tool or prompt, and its arguments."""
    return {
        "method": request.method,
        "name": request.params.get("name"),
        "arguments": request.params.get("arguments") or {},
    }


def _cacheable(request: McpRequest, result: Json, ttl_ms: int = _LIST_TTL_MS) -> Json:
    """Return a result with how long it holds, which only the newer era says."""
    if request.era == "handshake":
        return result

    return {**result, "ttlMs": ttl_ms, "cacheScope": "private"}


def _text_parameter(request: McpRequest, name: str) -> str:
    value = request.params.get(name)
    if not isinstance(value, str):
        raise McpError(INVALID_PARAMS, f"{name} must be a text")

    return value


def _error_json(error: CituError) -> dict[str, Any]:
    fields: dict[str, Any] = {"error_type": error.error_type, "retryable": error.retryable}
    if error.retry_after_s is not None:
        fields["retry_after_s"] = error.retry_after_s

    return fields | error.details()


def _status(error: McpError, request: McpRequest) -> int:
    """Return the HTTP status of an error; older clients expect 200 for every JSON-RPC reply."""
    return error.status if request.era == "stateless" else 200
