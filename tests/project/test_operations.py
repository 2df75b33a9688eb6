"""The files of `ops/`: what they ask of Prometheus is what the service measures."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.metric_table import METRICS, MetricSpec

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "ops/prometheus-alerts.yml"
DASHBOARD = ROOT / "ops/grafana-dashboard.json"
_NAME = re.compile(r"\b(?:citu|http_server|db_client|gen_ai)_\w+")
_SELECTED = re.compile(r"(\w+)\{([^}]*)\}")
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
