"""What the checks of a drafted transformation say about why it is wrong, by tables of rules."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.text import Text
from knowledge.learning.failure_analysis import FailureFinding

_MOST_NAMED = 3  # failed tests in a sentence
_RULES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


@dataclass(frozen=True)
class FailedTest:
    """A test that a draft has failed; `kind` as in its evidence."""

    name: str
    kind: str


@dataclass(frozen=True)
class FoundIssue:
    """A finding of a review; `code` is one of its codes."""

    code: str
    message: str
    suggestion: str


def failed_tests(failed: Sequence[FailedTest]) -> FailureFinding | None:
    """Return what the most telling of the failed tests say; None when none has failed."""
    for kind, rule in _RULES["tests"].items():
        of_kind = [test for test in failed if test.kind == kind]
        if of_kind:
            cause, named = rule["cause"], _test_names(of_kind)
            return FailureFinding(
                rule["type"],
                Text(f"{cause['zh']}（{named}）", f"{cause['en']} ({named})"),
                Text(rule["hint"]["zh"], rule["hint"]["en"]),
            )

    return None


def reviewed_issue(issues: Sequence[FoundIssue]) -> FailureFinding | None:
    """Return what the first of the issues says; None when there is none."""
    for issue in issues:
        kind = _RULES["review"].get(issue.code)
        if kind is not None:
            # The review speaks the language of the request already.
            cause = f"{issue.code}: {issue.message}"
            hint = issue.suggestion
            return FailureFinding(kind, Text(cause, cause), Text(hint, hint))

    return None


def _test_names(failed: Sequence[FailedTest]) -> str:
    return ", ".join(test.name for test in failed[:_MOST_NAMED])
