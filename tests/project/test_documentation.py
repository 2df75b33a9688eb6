"""Documentation that can be checked is: the drawing, the endpoints, the errors, the events, the
OpenAPI document.
"""

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from langgraph.checkpoint.memory import InMemorySaver
from openapi_spec_validator import validate

from agent.bootstrap import bootstrap
from agent.flows.ask.graph import compiled_graph
from agent.flows.ask.labels import LABELS
from agent.flows.ask.routing import ROUTING_MODES
from agent.flows.etl import graph as etl_graph
from agent.flows.tool_graph.graph import compiled_graph as compiled_tool_graph
from agent.flows.tool_loop.graph import compiled_graph as compiled_loop
from api.openapi import document
from app_config import Settings
from common import errors
from common.actor import NOBODY
from unified_api import create_app

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs/api.md").read_text()
API_ZH = (ROOT / "docs/zh/api.md").read_text()
SPECIFICATION: dict[str, Any] = json.loads((ROOT / "api/openapi.json").read_text())


def _error_classes(top: type[errors.CituError]) -> set[type[errors.CituError]]:
    below = {found for child in top.__subclasses__() for found in _error_classes(child)}
    return {top} | below


ERROR_TYPES = {(error.error_type, error.code) for error in _error_classes(errors.CituError)}
ERROR_TYPES -= {(errors.StatementRejected.error_type, errors.StatementRejected.code)}  # abstract


def test_the_drawing_is_the_compiled_graph() -> None:
    drawing = re.search(
        r"```mermaid\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL
    )
    assert drawing is not None
    assert drawing[1].strip() == compiled_graph().get_graph().draw_mermaid().strip(), (
        "regenerate: python -c 'from agent.flows.ask.graph import *; "
        "print(compiled_graph().get_graph().draw_mermaid())'"
    )


@pytest.mark.parametrize(
    ("name", "graph"), [("tool_loop", compiled_loop), ("tool_graph", compiled_tool_graph)]
)
def test_the_drawings_of_tool_agents_are_the_compiled_graphs(
    name: str, graph: Callable[[], Any]
) -> None:
    drawn = graph().get_graph().draw_mermaid().strip()
    assert f"## `{name}`\n\n```mermaid\n{drawn}\n```" in (ROOT / "docs/agents.md").read_text()


def test_the_drawing_of_transformations_is_the_compiled_graph() -> None:
    drawn = etl_graph.compiled_graph(InMemorySaver()).get_graph().draw_mermaid().strip()
    assert f"## The steps\n\n```mermaid\n{drawn}\n```" in (ROOT / "docs/etl.md").read_text()


def test_every_endpoint_is_documented() -> None:
    routes = {
        (method.lower(), re.sub("<(?:path:)?([a-z_]+)>", r"{\1}", rule.rule))
        for rule in create_app(Settings()).url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.endpoint.endswith("static")
    }
    specified = {
        (method, path) for path, methods in SPECIFICATION["paths"].items() for method in methods
    }
    assert specified == routes
    named = {f"`{method.upper()} {path}`" for method, path in routes}
    assert [one for one in named if one not in API or one not in API_ZH] == []


@pytest.mark.parametrize(("error_type", "code"), sorted(ERROR_TYPES))
def test_every_error_is_documented(error_type: str, code: int) -> None:
    assert f"| `{error_type}` | {code} |" in API
    assert f"| `{error_type}` | {code} |" in API_ZH
    assert (
        error_type
        in SPECIFICATION["components"]["schemas"]["Error"]["properties"]["error_type"]["enum"]
    )


def test_every_mode_node_and_event_is_documented() -> None:
    for name in (
        *ROUTING_MODES,
        *LABELS,
        "progress",
        "token",
        "tool",
        "result",
        "question",
        "completed",
        "error",
    ):
        assert f"`{name}`" in API


_NAMED = re.compile(r"`([A-Za-z_][A-Za-z_0-9.]*)`")


def test_the_chinese_page_of_the_semantic_file_says_its_keys() -> None:
    pages = [(ROOT / "docs" / folder / "semantic.md").read_text() for folder in ("", "zh")]
    keys = [set(re.findall(r"^\| [^|]+ \| (`[a-z_`、, ]+`) \|", page, re.M)) for page in pages]
    named = [{name for key in found for name in _NAMED.findall(key)} for found in keys]
    assert named[0] == named[1]
    examples = [re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) for page in pages]
    stripped = [[re.sub(r"\s*#.*", "", text) for text in found] for found in examples]
    assert stripped[0] == stripped[1]


def test_every_tool_is_documented_with_its_arguments() -> None:
    tools = bootstrap(Settings(audit_log="off")).tools.allowed(NOBODY)
    rows = re.findall(
        r"^\| `(\w+)` \| (`[^|]+`) \|", _section("docs/agents.md", "Tools"), re.MULTILINE
    )
    assert rows == [
        (tool.name, ", ".join(f"`{name}`" for name in tool.arguments.model_fields))
        for tool in tools
    ]


def _section(path: str, title: str) -> str:
    return (ROOT / path).read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_openapi_document_is_valid_made_from_the_models_and_served() -> None:
    validate(SPECIFICATION)
    assert document() == SPECIFICATION, "run `python -m api.openapi`"
    with create_app(Settings()).test_client().get("/openapi.json") as response:
        assert response.json == SPECIFICATION


def test_the_postman_collection_is_made_from_its_scenarios() -> None:
    made = runpy.run_path(str(ROOT / "postman/make.py"))["collection"]()
    kept = json.loads((ROOT / "postman/citu.postman_collection.json").read_text())
    assert made == kept, "run `python postman/make.py`"
    requests = [request for folder in made["item"] for request in folder["item"]]
    assert [request["name"] for request in requests if not request["response"]] == [], (
        "record them: REPORT=report.json postman/run.sh, then postman/record.py"
    )


# What a browser opens or another server calls, and a WebSocket, which newman can't open.
NOT_IN_POSTMAN = {
    *("begin_login", "end_login", "log_out", "page", "conversation_page", "reference"),
    *("protectedResource", "protectedResourceOf", "openChatSocket"),
}


def test_every_operation_has_a_request_in_the_postman_collection() -> None:
    scenarios = yaml.safe_load((ROOT / "postman/scenarios.yaml").read_text("utf-8"))
    asked = {
        request.get("operation") for each in scenarios["folders"] for request in each["requests"]
    }
    known = {
        operation["operationId"]
        for operations in SPECIFICATION["paths"].values()
        for operation in operations.values()
    }
    assert known - asked - NOT_IN_POSTMAN == set()


def test_the_openapi_document_is_fit_for_generators() -> None:
    # They drop schemas of arrays without items, and leave `data` untyped where an envelope is put
    # together by allOf.
    schemas = [SPECIFICATION]
    for schema in schemas:
        schemas += [child for child in schema.values() if isinstance(child, dict)]
        schemas += [
            item
            for child in schema.values()
            if isinstance(child, list)
            for item in child
            if type(item) is dict
        ]
    assert [one for one in schemas if one.get("type") == "array" and "items" not in one] == []
    assert [one for one in schemas if "allOf" in one] == []
    # They take a field with a default for one that is required, and know few media types.
    fields = [field for one in schemas for field in one.get("properties", {}).values()]
    assert [field for field in fields if "default" in field] == []
    known = re.compile(r"text/.+|application/(json|octet-stream)|multipart/form-data")
    contents = [one["content"] for one in schemas if isinstance(one.get("content"), dict)]
    assert [content for content in contents if not any(map(known.fullmatch, content))] == []
    answer = SPECIFICATION["components"]["schemas"]["AnswerEnvelope"]["properties"]["data"]
    assert answer["discriminator"]["propertyName"] == "type"


def test_every_operation_has_a_tag_that_is_described() -> None:
    described = {tag["name"] for tag in SPECIFICATION["tags"]}
    used = [
        operation["tags"]
        for methods in SPECIFICATION["paths"].values()
        for operation in methods.values()
    ]
    assert {name for names in used for name in names} == described
    assert {len(names) for names in used} == {1}


def test_the_examples_of_the_openapi_document_are_as_its_schemas_say() -> None:
    examples = SPECIFICATION["components"]["examples"]
    for name, schema in (("Ranking", "AnswerEnvelope"), ("Refused", "ErrorEnvelope")):
        asked = {
            "$ref": f"#/components/schemas/{schema}",
            "components": SPECIFICATION["components"],
        }
        Draft202012Validator(asked).validate(examples[name]["value"])


def test_the_reference_page_loads_nothing_from_elsewhere() -> None:
    client = create_app(Settings()).test_client()
    with client.get("/docs") as page:
        assert page.status_code == 200
        assert "'unsafe" not in page.headers["Content-Security-Policy"]
        addresses = re.findall(r'(?:src|href)="([^"]+)"', page.get_data(as_text=True))
    assert addresses
    for address in addresses:
        with client.get(f"/{address}") as loaded:  # none begins with a scheme or a host
            assert loaded.status_code == 200, address


def test_the_modes_and_fields_of_the_openapi_document_are_the_code_s() -> None:
    ask = SPECIFICATION["components"]["schemas"]["Ask"]["properties"]
    assert ask["routing_mode"]["enum"] == [*ROUTING_MODES, None]
    assert ask["agent"]["enum"] == [*bootstrap(Settings()).flows, None]
    assert [field for field in ask if f"`{field}`" not in API] == []


def test_the_openapi_document_says_where_a_key_is_needed() -> None:
    assert {scheme for one in SPECIFICATION["security"] for scheme in one} == set(
        SPECIFICATION["components"]["securitySchemes"]
    )
    for path, operations in SPECIFICATION["paths"].items():
        for operation in operations.values():
            is_closed = path.startswith(("/api/", "/mcp", "/v1/"))
            assert ("401" in operation["responses"]) == is_closed, path
            assert (operation.get("security") == []) != is_closed, path


def test_what_tests_share_is_listed() -> None:
    listed = set(re.findall(r"`support/(\w+)\.py`", (ROOT / "tests/README.md").read_text()))
    modules = {path.stem for path in (ROOT / "tests/support").glob("*.py")} - {"__init__"}
    assert listed == modules
