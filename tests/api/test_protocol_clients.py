"""Clients and suites of other protocols, as their makers publish them for Node: MCP's conformance
suite over the fixtures that it asks for, and AG-UI's client, which verifies the order of events.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import playwright
import pytest

from agent.bootstrap import FLOWS
from api.access.key_file import KeyFile
from app_config import Settings
from tests.support.asking import Asking
from tests.support.effort import tries
from tests.support.live import GAUGES, ROOT
from tests.support.mcp_fixture import fixture_app
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from tests.support.wsgi_server import serving_app

# npm fetches the packages, for seconds, from the network.
pytestmark = pytest.mark.slow

SUITE = "@modelcontextprotocol/conformance"
CLIENT = "@ag-ui/client"
PACKAGES = (f"{SUITE}@0.2.0-alpha.12", f"{CLIENT}@1.0.0")
# The suite needs a newer Node than some systems have; the browser's driver brings one.
NODE = Path(playwright.__file__).parent / "driver/node"
_OUTCOME = re.compile(r"^([✓✗]) ([a-z0-9-]+): \d+ passed, \d+ failed$", re.MULTILINE)

# Scenarios of 2025-11-25 that a server may leave out.
NOT_OFFERED = {
    "tools-call-with-logging": "no log messages are sent: operators have logs of their own",
    "tools-call-sampling": "the client's model is never asked; Citu has its own",
    "tools-call-elicitation": "the question is the tool's result, and its answer another call: "
    "a reply over a second connection may reach another worker",
    "elicitation-sep1034-defaults": "as tools-call-elicitation",
    "elicitation-sep1330-enums": "as tools-call-elicitation",
    "resources-subscribe": "no resource changes unasked, and none is declared to",
    "resources-unsubscribe": "as resources-subscribe",
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages, which npm fetches."""
    npm = shutil.which("npm")
    if npm is None or not NODE.exists():
        pytest.skip("no npm: the packages can't be installed")
    folder = tmp_path_factory.mktemp("packages")
    words = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *PACKAGES]
    installed = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    if installed.returncode:
        pytest.skip(f"npm can't install them: {installed.stderr[-300:]}")
    return folder / "node_modules"


@pytest.fixture(scope="module")
def surveying(make_database: Callable[[str], str]) -> Iterator[Asking]:
    settings = Settings(database_url=make_database(GAUGES), routing_mode="chat_direct")
    with pytest.MonkeyPatch.context() as patch, OpenAiServer(lambda _: Reply("hello")) as model:
        patch.setattr("agent.bootstrap.FLOWS", [*FLOWS, SurveyFlow])
        with Asking(settings, model) as asking:
            yield asking


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    keys = KeyFile(tmp_path_factory.mktemp("keys") / "api_keys.json")
    with serving_app(fixture_app(keys)) as port:
        yield port


@pytest.mark.parametrize(
    ("version", "not_offered"), [("2026-07-28", {}), ("2025-11-25", NOT_OFFERED)]
)
def test_required_scenarios_pass(
    version: str, not_offered: dict[str, str], modules: Path, port: int, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{port}/mcp"
    suite = modules / SUITE
    program = suite / "dist/index.js"
    words = [str(NODE), str(program), "server", "--url", url, "--requirements", version]
    run = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    outcomes = {name: sign == "✓" for sign, name in _OUTCOME.findall(run.stdout + run.stderr)}
    required = _required(suite / "requirements" / f"{version}.yaml")
    assert len(required) == {"2026-07-28": 37, "2025-11-25": 30}[version]
    failed = {name for name in required if not outcomes.get(name, False)}
    assert failed == set(not_offered), json.dumps(outcomes)
    told = (ROOT / "docs/mcp.md").read_text("utf-8")
    assert [name for name in not_offered if f"`{name}`" not in told] == []


def _required(path: Path) -> set[str]:
    """The scenarios under `server:`."""
    names = set()
    inside = False
    for line in path.read_text().splitlines():
        if not line.startswith((" ", "#")) and line.strip():
            inside = line.startswith("server:")
        elif inside and line.strip().startswith("- "):
            names.add(line.strip().removeprefix("- "))
    return names


# ------------------------------------------------------------------------------
# AG-UI


def runs_of(modules: Path, port: int, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the client saw of each run."""
    url, package = f"http://127.0.0.1:{port}/api/agui", modules / CLIENT / "dist/index.mjs"
    words = [str(NODE), str(ROOT / "tests/support/agui_client.mjs"), url, str(package)]
    lines = "\n".join(map(json.dumps, inputs))
    run = subprocess.run(
        words, input=lines, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def said(text: str) -> list[dict[str, str]]:
    return [{"id": "1", "role": "user", "content": text}]


def test_the_client_of_ag_ui_verifies_every_kind_of_run(modules: Path, surveying: Asking) -> None:
    survey = {"forwardedProps": {"agent": "survey"}}
    inputs: list[dict[str, Any]] = []
    for number in range(tries(3)):
        inputs += [
            {"threadId": f"talk {number}", "messages": said("hello")},
            {"threadId": f"survey {number}", "messages": said(SURVEY), **survey},
            {"threadId": f"none {number}", "messages": said("x"), "resume": [_resumed("run_0:1")]},
            {"threadId": f"left {number}", "messages": said("hello"), "leave": "STEP_STARTED"},
        ]
    with serving_app(surveying.client.application) as port:  # type: ignore[arg-type]
        outcomes = runs_of(modules, port, inputs)
        talk, waiting, failed, left = outcomes[:4]
        asked = waiting["seen"][-1]["outcome"]["interrupts"][0]
        more = [
            {"threadId": "survey 0", "resume": [_resumed(asked["id"], "name")]},
            {"threadId": "survey 1", "resume": [_cancelled(outcomes[5])]},
        ]
        resumed, cancelled = runs_of(modules, port, more)
    assert len(outcomes) == len(inputs)
    assert {outcome["error"] for outcome in (*outcomes, resumed, cancelled)} == {None}
    assert (talk["said"], talk["state"]["response"]) == (["hello"], "hello")
    assert asked["message"] == "Which column?"
    assert "name" in asked["responseSchema"]["enum"]
    assert failed["seen"][-1]["code"] == "not_found"
    assert left["seen"][-1]["code"] == "abort"
    assert resumed["seen"][-1]["outcome"]["interrupts"][0]["message"] == "How many of name?"
    assert cancelled["seen"][-1]["outcome"] == {"type": "cancelled"}


def _resumed(name: str, payload: Any = None) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved", "payload": payload}


def _cancelled(waiting: dict[str, Any]) -> dict[str, Any]:
    asked = waiting["seen"][-1]["outcome"]["interrupts"][0]
    return {"interruptId": asked["id"], "status": "cancelled"}
