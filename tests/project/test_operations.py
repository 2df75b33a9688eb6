"""What operators are given: dashboards, containers, lists of packages."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app_config import Settings
from common.metric_table import METRICS, MetricSpec

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "ops/prometheus-alerts.yml"
DASHBOARD = ROOT / "ops/grafana-dashboard.json"
_NAME = re.compile(r"\b(?:citu|http_server|db_client|gen_ai)_\w+")
_SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
STOPPING_S = 10  # what docs/deployment.md asks for beyond DRAIN_S
_SUFFIXES = ("_bucket", "_count", "_sum")
SPECS = {spec.name: spec for spec in METRICS}


def _expressions() -> Iterator[str]:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def _spec_of(name: str) -> MetricSpec | None:
    """The metric that a series of this name belongs to."""
    if name in SPECS:
        spec = SPECS[name]
        return spec if spec.kind != "histogram" else None
    for suffix in _SUFFIXES:
        spec_of_histogram = SPECS.get(name.removesuffix(suffix))
        if spec_of_histogram is not None and spec_of_histogram.kind == "histogram":
            return spec_of_histogram
    return None


def test_dashboard_and_alerts_name_metrics_that_there_are() -> None:
    asked = set()
    for expression in _expressions():
        for name in _NAME.findall(expression):
            spec = _spec_of(name)
            assert spec is not None, name
            asked.add(spec.name)
        for name, conditions in _SELECTED.findall(expression):
            spec = _spec_of(name)
            assert spec is not None, name
            labels = set(re.findall(r"(\w+)\s*[=!]", conditions))
            assert labels <= set(spec.labels), expression
    assert asked == set(SPECS)  # every metric is shown somewhere


def test_rules_say_what_happened_and_what_to_do() -> None:
    rules = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_prometheus_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs/monitoring.md").read_text()
    for spec in METRICS:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        assert f"| `{spec.name}` | {spec.kind} | {labels} | {spec.meaning} |" in page


# ------------------------------------------------------------------------------
# the guide


def test_each_of_the_ten_steps_has_a_command_and_what_it_prints() -> None:
    guide = (ROOT / "docs/operations.md").read_text()
    steps = guide.partition("## Ten steps")[2].partition("\n## ")[0]
    numbered = re.split(r"^(\d+)\. ", steps, flags=re.MULTILINE)[1:]
    assert [int(number) for number in numbered[::2]] == list(range(1, 11))
    sources = [*(ROOT / "serving/doctor").glob("*.py"), ROOT / "llm/check_model.py"]
    said = "".join(path.read_text() for path in sources)
    for step in numbered[1::2]:
        lines = [line.strip() for line in step.split("```console")[1].split("```")[0].splitlines()]
        assert lines[1].startswith("$ "), step
        printed = [line for line in lines[1:] if line and not line.startswith("$ ")]
        assert printed, step
        for line in printed:
            finding = re.fullmatch(r"ok +[\w.]+: (?P<words>[^({]+?)(?: \(.*| postgresql\.)?", line)
            assert finding is None or finding["words"] in said, line


# ------------------------------------------------------------------------------
# containers


def _succeeds(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_container_files_are_as_their_tools_want_them() -> None:
    programs = Path(sys.executable).parent
    _succeeds(str(programs / "hadolint"), "Dockerfile")
    schema = ["--builtin-schema", "vendor.compose-spec"]
    _succeeds(sys.executable, "-m", "check_jsonschema", *schema, "compose.yaml")
    _succeeds(sys.executable, "-m", "kubernetes_validate", "--strict", "ops/kubernetes/citu.yaml")


def _image_stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile: names and arguments."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    stages: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            stages.append([])
        if name.isupper() and stages:
            stages[-1].append((name, arguments))
    return stages


def test_the_image_runs_without_rights_and_has_no_installer() -> None:
    stages = _image_stages()
    assert len(stages) == 2
    final = dict(stages[-1])
    assert int(final["USER"]) > 0
    assert json.loads(final["VOLUME"]) == ["/var/lib/citu"]
    assert {"HEALTHCHECK", "CMD", "EXPOSE"} <= set(final)
    assert not any("pip" in arguments for name, arguments in stages[-1] if name == "RUN")
    hashed = [arguments for name, arguments in stages[0] if name == "RUN" and " pip " in arguments]
    assert all("--require-hashes" in arguments for arguments in hashed)
    assert hashed


def test_every_package_of_the_product_and_no_other_goes_into_the_image() -> None:
    listed = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in listed if line.startswith("!")}
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    packages = {path.partition("/")[0] for path in tracked if path.endswith("/__init__.py")}
    assert packages - {"tests", "benchmarks", "postman", "docs"} <= kept
    assert not {"tests", "docs", "postman", "benchmarks"} & kept
    assert all((ROOT / path).exists() for path in kept)


def test_what_stops_the_service_waits_longer_than_it_drains() -> None:
    deployment = _manifests()["Deployment"]["spec"]["template"]["spec"]
    drain_s = float(_manifests()["ConfigMap"]["data"]["DRAIN_S"])
    before_s = float(deployment["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert deployment["terminationGracePeriodSeconds"] >= before_s + drain_s + STOPPING_S
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["citu"]
    grace_s = float(service["stop_grace_period"].removesuffix("s"))
    assert grace_s >= float(service["environment"]["DRAIN_S"]) + STOPPING_S
    final = dict(_image_stages()[-1])["ENV"]
    by_default_s = float(re.findall(r"DRAIN_S=(\S+)", final)[0])
    assert by_default_s + 4 <= 10, "what container engines wait for by themselves"


def test_settings_of_containers_are_settings() -> None:
    names = {declared.name.upper() for declared in fields(Settings)} | {"GUNICORN_CMD_ARGS"}
    assert set(_manifests()["ConfigMap"]["data"]) <= names
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["citu"]
    assert set(service["environment"]) <= names
    container = _manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert {one["name"] for one in container["env"]} <= names


def test_the_proxy_of_containers_reads_its_configuration(tmp_path: Path) -> None:
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("there is no nginx here")
    text = (ROOT / "ops/compose/nginx.conf").read_text().replace("/tmp/", f"{tmp_path}/")
    (tmp_path / "nginx.conf").write_text(text)
    _succeeds(nginx, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"))


def _manifests() -> dict[str, Any]:
    """The manifests for Kubernetes, by kind."""
    found = yaml.safe_load_all((ROOT / "ops/kubernetes/citu.yaml").read_text())
    return {one["kind"]: one for one in found}


# ------------------------------------------------------------------------------
# packages


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.txt")), ids=lambda path: path.name)
def test_lock_files_have_what_requirements_ask_for(path: Path) -> None:
    lock = (ROOT / "locks" / path.name).read_text()
    locked = {
        canonicalize_name(Requirement(line).name): Requirement(line)
        for line in _PINNED.findall(lock)
    }
    for asked in _asked(path):
        assert locked[canonicalize_name(asked.name)].specifier == asked.specifier, "run make lock"
        # Without them, some versions of pip take another version of a package asked with extras.
        assert locked[canonicalize_name(asked.name)].extras >= asked.extras, "run make lock"
    assert len(re.findall(r"^\S.*\\\n +--hash=sha256:", lock, re.MULTILINE)) == len(
        _PINNED.findall(lock)
    )
    assert "://" not in lock
    if "-r requirements.txt" in path.read_text():
        base = (ROOT / "locks/requirements.txt").read_text()
        assert _versions(base) <= _versions(lock), "run make lock"


def _versions(lock: str) -> set[tuple[str, str]]:
    """Return name and version of each package; some have two, for other systems."""
    packages = [Requirement(line) for line in _PINNED.findall(lock)]
    return {(package.name, str(package.specifier)) for package in packages}


_PINNED = re.compile(r"^[A-Za-z0-9][^\\\n]*==[^\\\n]*?(?= \\)", re.MULTILINE)


def _asked(path: Path) -> Iterator[Requirement]:
    for line in path.read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            yield from _asked(path.parent / text.removeprefix("-r "))
        elif text:
            yield Requirement(text)


def test_the_page_of_licences_has_the_packages_that_are_locked() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_licences.py"))
    assert made["shown"]().keys() == made["locked"](), "run `make licences`"
