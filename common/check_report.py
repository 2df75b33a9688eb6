"""What a check of an installation found, and the report that its operator reads."""

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from common.text import Lang, Text

CheckStatus = Literal["ok", "warn", "fail"]
_RANKS: tuple[CheckStatus, ...] = ("ok", "warn", "fail")
_LABELS: Mapping[CheckStatus, Text] = {
    "ok": Text("正常", "ok"),
    "warn": Text("注意", "warn"),
    "fail": Text("失败", "fail"),
}
_LANGUAGE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        check: names what was looked at, such as `model.tools`.
        said: one sentence; it holds no password or key.
        advice: what to do; None: nothing.
    """

    check: str
    status: CheckStatus
    said: Text
    advice: Text | None = None


def passed(check: str, message: Text) -> CheckResult:
    return CheckResult(check, "ok", message)


def warned(check: str, message: Text, advice: Text) -> CheckResult:
    return CheckResult(check, "warn", message, advice)


def failed(check: str, message: Text, advice: Text) -> CheckResult:
    return CheckResult(check, "fail", message, advice)


def worst(findings: Iterable[CheckResult]) -> int:
    """Return 0 if all is well, 1 with warnings, 2 with failures."""
    return max((_RANKS.index(finding.status) for finding in findings), default=0)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--lang",
        choices=("zh", "en"),
        default=language_of_environment(os.environ),
        help="language of the report; default: by LC_ALL, LC_MESSAGES or LANG",
    )


def report(findings: Sequence[CheckResult], lang: Lang, *, as_json: bool) -> str:
    """Return the findings as text, one line each with its advice below, or as a JSON object."""
    if as_json:
        return _json(findings, lang)

    return "".join(_lines(finding, lang) for finding in findings)


def language_of_environment(environ: Mapping[str, str]) -> Lang:
    """Return the language that the first locale variable which is set names; else English."""
    for name in _LANGUAGE_VARIABLES:
        value = environ.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"

    return "en"


def _lines(finding: CheckResult, lang: Lang) -> str:
    label = _LABELS[finding.status].to(lang)
    line = f"{label:<5} {finding.check}: {finding.said.to(lang)}\n"
    if finding.advice is None:
        return line

    return f"{line}      → {finding.advice.to(lang)}\n"


def _json(findings: Sequence[CheckResult], lang: Lang) -> str:
    entries = []
    for finding in findings:
        advice = finding.advice.to(lang) if finding.advice is not None else None
        entries.append(
            {
                "check": finding.check,
                "status": finding.status,
                "message": finding.said.to(lang),
                "advice": advice,
            }
        )

    value = {"status": _RANKS[worst(findings)], "findings": entries}
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
