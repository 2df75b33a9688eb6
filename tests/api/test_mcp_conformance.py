"""The protocol's own conformance suite against the endpoint, over the fixtures that it asks for."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import playwright
import pytest

from api.access.key_file import KeyFile
from tests.support.mcp_fixture import fixture_app
from tests.support.wsgi_server import serving_app

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
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
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite's package, by npm."""
    npm = shutil.which("npm")
    if npm is None or not NODE.exists():
        pytest.skip("no npm: the conformance suite can't be installed")
    folder = tmp_path_factory.mktemp("conformance")
    words = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", SUITE]
    installed = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    package = folder / "node_modules/@modelcontextprotocol/conformance"
    if installed.returncode or not package.exists():
        pytest.skip(f"the conformance suite can't be installed: {installed.stderr[-300:]}")
    return package


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    keys = KeyFile(tmp_path_factory.mktemp("keys") / "api_keys.json")
    with serving_app(fixture_app(keys)) as port:
        yield port


@pytest.mark.parametrize(
    ("version", "not_offered"), [("2026-07-28", {}), ("2025-11-25", NOT_OFFERED)]
)
def test_required_scenarios_pass(
    version: str, not_offered: dict[str, str], suite: Path, port: int, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{port}/mcp"
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
