"""What the protocol's own conformance suite asks of a server: tools, resources and prompts of the
names and replies that it expects. Run as a program, it serves them.
"""

import asyncio
import base64
import json
import re
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from flask import Flask

from api.access.admission import Admission
from api.access.authentication import Authentication
from api.access.key_file import KeyFile
from api.access.origins import Anonymity
from api.mcp.content import InputRequired, Json, McpCall, McpCaller, Progress, Result, Steps
from api.mcp.endpoint import mcp_blueprint
from api.mcp.messages import INVALID_PARAMS, MISSING_CAPABILITY, McpError
from api.mcp.sealed_state import StateSeal
from api.mcp.server import McpServer
from api.responses import register_error_handlers
from api.slots import QuestionSlots


def _pixel() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel)
    return base64.b64encode(png + chunk(b"IEND", b"")).decode()


def _silence() -> str:
    samples = b"\0\0" * 8
    head = struct.pack(
        "<4sI4s4sIHHIIHH",
        b"RIFF",
        36 + len(samples),
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        8000,
        16000,
        2,
        16,
    )
    return base64.b64encode(head + struct.pack("<4sI", b"data", len(samples)) + samples).decode()


PNG = _pixel()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": _silence(), "mimeType": "audio/wav"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _resource(uri: str, media: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": text}}


def _form(message: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def _sampling(text: str, most: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": _text(text)}]
    return {
        "method": "sampling/createMessage",
        "params": {"messages": messages, "maxTokens": most},
    }


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
NAME = _form("What is your name?", name="string")

REPLIES: Mapping[str, Sequence[Json]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        IMAGE,
        _resource(
            "test://mixed-content-resource",
            "application/json",
            json.dumps({"test": "data", "value": 123}),
        ),
    ],
    "test_logging_tool": [_text("Done")],
}

ASKING: Mapping[str, Mapping[str, Json]] = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {
        "capital_question": _sampling("What is the capital of France?", 100)
    },
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_request_state": {"confirm": _form("Please confirm", ok="boolean")},
    "test_input_required_result_tampered_state": {"confirm": _form("Please confirm", ok="boolean")},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": _sampling("Generate a greeting", 50),
        "client_roots": ROOTS,
    },
    "test_input_required_result_capabilities": {
        "user_name": NAME,
        "greeting": _sampling("Generate a greeting", 50),
        "client_roots": ROOTS,
    },
}
STEPS = (
    {"step1": _form("Step 1: What is your name?", name="string")},
    {"step2": _form("Step 2: What is your favorite color?", color="string")},
)
CAPABILITY_OF = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
STATELESS = (
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_capabilities",
)
OTHERS = (
    "test_error_handling",
    "test_tool_with_progress",
    "test_input_required_result_multi_round",
    "test_missing_capability",
    "test_streaming_elicitation",
)

RESOURCES: Mapping[str, Json] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")

ARGUMENTS = [
    {"name": "arg1", "description": "First test argument", "required": True},
    {"name": "arg2", "description": "Second test argument", "required": True},
]
PROMPTS: Mapping[str, Sequence[Json]] = {
    "test_simple_prompt": [_text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": [],
    "test_prompt_with_embedded_resource": [],
    "test_prompt_with_image": [IMAGE, _text("Please analyze the image above.")],
    "test_input_required_result_prompt": [],
}
CONTEXT = {"user_context": _form("What context should the prompt use?", context="string")}


SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class FixtureContent:
    """The suite's fixtures."""

    async def tools(self, caller: McpCaller) -> Sequence[Json]:
        names = (*REPLIES, *ASKING, *OTHERS, "json_schema_2020_12_tool")
        empty: dict[str, Any] = {"type": "object", "properties": {}}
        return [
            {
                "name": name,
                "description": f"{name}, a fixture",
                "inputSchema": SCHEMA if name == "json_schema_2020_12_tool" else empty,
            }
            for name in names
        ]

    async def call(self, call: McpCall) -> Steps:
        name = call.name
        if name in REPLIES:
            yield Result({"content": REPLIES[name]})
        elif name in ASKING:
            yield _asked(call)
        elif name == "test_error_handling":
            text = _text("This tool intentionally returns an error for testing")
            yield Result({"content": [text], "isError": True})
        elif name == "test_tool_with_progress":
            for done in (0, 50, 100):
                yield Progress("", done, 100)
                await asyncio.sleep(0.05)
            yield Result({"content": [_text("Done")]})
        elif name == "test_input_required_result_multi_round":
            yield _next_round(call)
        elif name == "test_streaming_elicitation":
            yield Progress("", 50, 100)
            yield InputRequired({"user_name": NAME})
        elif name == "test_missing_capability":
            if "sampling" not in call.capabilities:
                needed: Json = {"requiredCapabilities": {"sampling": {}}}
                raise McpError(MISSING_CAPABILITY, "sampling is needed", needed)
            yield Result({"content": [_text("Done")]})
        else:
            raise McpError(INVALID_PARAMS, f"Unknown tool: {name}")

    async def resources(self, caller: McpCaller) -> Sequence[Json]:
        return [
            {"uri": uri, "name": uri, "description": "A fixture", "mimeType": found["mimeType"]}
            for uri, found in RESOURCES.items()
        ]

    async def templates(self, _caller: McpCaller) -> Sequence[Json]:
        return [
            {
                "uriTemplate": "test://template/{id}/data",
                "name": "template",
                "description": "A fixture",
                "mimeType": "application/json",
            }
        ]

    async def read(self, uri: str, caller: McpCaller) -> Sequence[Json]:
        if uri in RESOURCES:
            return [{"uri": uri, **RESOURCES[uri]}]
        found = TEMPLATE.fullmatch(uri)
        if found is None:
            raise McpError(INVALID_PARAMS, "Resource not found", {"uri": uri})
        body = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return [{"uri": uri, "mimeType": "application/json", "text": json.dumps(body)}]

    async def prompts(self, caller: McpCaller) -> Sequence[Json]:
        return [
            {
                "name": name,
                "description": f"{name}, a fixture",
                "arguments": ARGUMENTS if name == "test_prompt_with_arguments" else [],
            }
            for name in PROMPTS
        ]

    async def prompt(self, call: McpCall) -> Steps:
        said = PROMPTS.get(call.name)
        if said is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {call.name}")
        given = call.arguments
        if call.name == "test_prompt_with_arguments":
            text = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            said = [_text(text)]
        elif call.name == "test_prompt_with_embedded_resource":
            uri = str(given.get("resourceUri", "test://example-resource"))
            said = [
                _resource(uri, "text/plain", "Embedded resource content for testing."),
                _text("Please process the embedded resource above."),
            ]
        elif call.name == "test_input_required_result_prompt":
            if not call.responses:
                yield InputRequired(CONTEXT)
                return
            said = [_text(json.dumps(call.responses))]
        yield Result({"messages": [{"role": "user", "content": content} for content in said]})

    async def completions(self, ref: Json, argument: Json, caller: McpCaller) -> Sequence[str]:
        return ["paris", "park", "party"]


def _asked(call: McpCall) -> InputRequired | Result:
    wanted = ASKING[call.name]
    state = None if call.name in STATELESS else {"asked": sorted(wanted)}
    if call.name == "test_input_required_result_capabilities":
        wanted = {
            name: one
            for name, one in wanted.items()
            if CAPABILITY_OF[str(one["method"])] in call.capabilities
        }
    responses = call.responses or {}
    if not all(isinstance(responses.get(name), dict) for name in wanted):
        return InputRequired(wanted, state)
    if state is not None and call.state != state:
        return InputRequired(wanted, state)
    if call.name == "test_input_required_result_elicitation":
        content = responses["user_name"].get("content")
        name = content.get("name") if isinstance(content, dict) else None
        if not isinstance(name, str):
            return InputRequired(wanted, state)
        return Result({"content": [_text(f"Hello, {name}!")]})
    return Result({"content": [_text(f"state-ok {json.dumps(responses)}")]})


def _next_round(call: McpCall) -> InputRequired | Result:
    done = int(call.state["round"]) if call.state is not None else 0
    if done and not call.responses:
        done -= 1
    if done == len(STEPS):
        return Result({"content": [_text(f"Done: {json.dumps(call.responses)}")]})
    return InputRequired(STEPS[done], {"round": done + 1})


def fixture_app(keys: KeyFile) -> Flask:
    """Return an application that serves the fixtures and nothing else."""
    app = Flask(__name__)
    seal = StateSeal(lambda: "the key of a test", 60.0)
    server = McpServer(FixtureContent(), seal, {"name": "fixture", "version": "1.0"}, "Fixtures.")
    admission = Admission(
        Authentication(keys), Anonymity("127.0.0.1", is_open=False, origins=()), None
    )
    app.register_blueprint(
        mcp_blueprint(server, QuestionSlots(64), admission, ping_interval_s=15.0)
    )
    app.before_request(admission.admit)
    register_error_handlers(app)
    return app


if __name__ == "__main__":
    from pathlib import Path

    fixture_app(KeyFile(Path(sys.argv[2]))).run("127.0.0.1", int(sys.argv[1]), threaded=True)
