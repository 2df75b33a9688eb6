"""What `accuracy` found: as a table, as JSON, and beside what it found before."""

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

from benchmarks.accuracy_judging import Judged
from benchmarks.accuracy_questions import BadLine
from common import timestamps

KIND = "citu accuracy report"
VERSION = 1
OUTCOMES = ("right", "wrong", "refused", "failed")  # of questions that were asked
_NAMES = {"gold_failed": "not asked, its own SQL fails"}
_REASON_CHARS = 100
_COUNTED = ("llm_calls", "prompt_tokens", "completion_tokens")
_SAME = ("question", "gold")  # what must not differ between two reports of one question
_ASKED = "asked in both reports"
_OTHER_QUESTION = "not compared, their question or SQL differs"
_FAILING = "not compared, their SQL fails"
_ONLY_OLD = "only in the old report"
_ONLY_NEW = "only in the new report"
_NOT_COMPARED = (_OTHER_QUESTION, _FAILING, _ONLY_OLD, _ONLY_NEW)
_Question = Mapping[str, Any]


class UnreadableReport(ValueError):
    """A file is no report; the message names it."""


def report(
    judged: Sequence[Judged], bad: Sequence[BadLine], *, files: Iterable[Path], answered_by: str
) -> dict[str, Any]:
    """Return the report as JSON values; docs/accuracy.md describes it."""
    asked = [one for one in judged if one.outcome in OUTCOMES]
    return {
        "kind": KIND,
        "version": VERSION,
        "created_at": timestamps.now(),
        "files": [str(path) for path in files],
        "answered_by": answered_by,
        "total": _costs(asked),
        "classes": [
            {"lang": lang, "difficulty": difficulty, **_costs(own)}
            for (lang, difficulty), own in _classes(asked)
        ],
        "gold_failed": [one.id for one in judged if one.outcome == "gold_failed"],
        "bad_lines": [asdict(line) for line in bad],
        "questions": [asdict(one) for one in judged],
    }


def _classes(judged: Sequence[Judged]) -> list[tuple[tuple[str, str], list[Judged]]]:
    """Return the questions of each language and difficulty, in the order of these."""
    classes = defaultdict(list)
    for one in judged:
        classes[one.lang, one.difficulty].append(one)
    return sorted(classes.items())


def _costs(asked: Sequence[Judged]) -> dict[str, Any]:
    """Return number and costs of questions that were asked, together and by outcome."""
    outcomes = {}
    for name in OUTCOMES:
        outcomes[name] = _cost([one for one in asked if one.outcome == name])
    return {**_cost(asked), "outcomes": outcomes}


def _cost(judged: Sequence[Judged]) -> dict[str, Any]:
    latency: dict[str, float | None] = {"p50": None, "p95": None}
    times = sorted(one.ms for one in judged)
    if times:
        rank = math.ceil(0.95 * len(times))
        latency = {"p50": round(statistics.median(times), 1), "p95": times[rank - 1]}
    sums = {name: sum(getattr(one, name) for one in judged) for name in _COUNTED}
    return {"count": len(judged), "latency_ms": latency, **sums}


# ------------------------------------------------------------------------------
# shown


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report as a table; the questions that were not answered rightly, and lines that are
    no questions, below it.
    """
    yield f"accuracy, {found['created_at']}, answered by {found['answered_by']}"
    yield (
        f"{'':16}"
        + "".join(f"{name:>18}" for name in OUTCOMES)
        + (f"{'p50 ms':>10}{'p95 ms':>10}{'model calls':>13}{'tokens in':>11}{'tokens out':>12}")
    )
    for row in found["classes"]:
        yield _row(f"{row['lang']} {row['difficulty']}", row)
    yield _row("all", found["total"])
    for question in found["questions"]:
        outcome = question["outcome"]
        if outcome == "right":
            continue
        name = _NAMES.get(outcome, outcome)
        reason = shorten(question["reason"], _REASON_CHARS, placeholder=" …")
        yield f"  {name}: {question['id']} {question['question']} ({reason})"
    for line in found["bad_lines"]:
        yield f"  not asked: {line['file']}, line {line['line']}: {line['problem']}"


def _row(name: str, row: Mapping[str, Any]) -> str:
    """Return shares of outcomes; latency; calls and tokens for each question at the mean."""
    count = row["count"]
    shares = (_share(row["outcomes"][outcome]["count"], count) for outcome in OUTCOMES)
    p50, p95 = ("–" if ms is None else f"{ms:.0f}" for ms in row["latency_ms"].values())
    calls, sent, written = (row[counted] / max(count, 1) for counted in _COUNTED)
    costs = f"{p50:>10}{p95:>10}{calls:>13.1f}{sent:>11.0f}{written:>12.0f}"
    return f"{name:16}" + "".join(f"{share:>18}" for share in shares) + costs


def _share(part: int, whole: int) -> str:
    if not whole:
        return "–"
    return f"{part} of {whole}, {100 * part / whole:.0f}%"


# ------------------------------------------------------------------------------
# compared


def read_report(path: Path) -> dict[str, Any]:
    """Return a report that was written to a file.

    Raises:
        UnreadableReport: the file is none.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        if (found["kind"], found["version"]) != (KIND, VERSION):
            raise ValueError("another kind of file, or of another version")
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise UnreadableReport(f"{path} is no report of accuracy: {exc}") from exc
    return dict(found)


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what became of the questions that both reports have, by their ids."""
    before = {question["id"]: question for question in old["questions"]}
    after = {question["id"]: question for question in new["questions"]}
    groups: dict[str, list[str]] = {group: [] for group in (_ASKED, *_NOT_COMPARED)}
    for name in {**before, **after}:
        group = _comparability(before.get(name), after.get(name))
        groups[group].append(name)
    changes = {name: (before[name]["outcome"], after[name]["outcome"]) for name in groups[_ASKED]}
    yield f"old: {old['created_at']}, answered by {old['answered_by']}"
    yield f"new: {new['created_at']}, answered by {new['answered_by']}"
    yield f"{'':8}{'old':>18}{'new':>18}"
    yield from _outcome_counts(list(changes.values()))
    for outcome in OUTCOMES:
        yield from _named(f"became {outcome}", _became(outcome, changes))
    yield _sign_test(list(changes.values()))
    for group in _NOT_COMPARED:
        yield from _named(group, groups[group])


def _comparability(before: _Question | None, after: _Question | None) -> str:
    """Return the group of a question: `_ASKED`, or one of `_NOT_COMPARED`."""
    if after is None:
        return _ONLY_OLD
    if before is None:
        return _ONLY_NEW
    if any(before[key] != after[key] for key in _SAME):
        return _OTHER_QUESTION
    outcomes = {before["outcome"], after["outcome"]}
    return _ASKED if outcomes.issubset(OUTCOMES) else _FAILING


def _outcome_counts(changes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield how many questions had each outcome in the old and in the new report."""
    count = len(changes)
    old = Counter(was for was, _ in changes)
    new = Counter(now for _, now in changes)
    for outcome in OUTCOMES:
        yield f"{outcome:8}{_share(old[outcome], count):>18}{_share(new[outcome], count):>18}"


def _became(outcome: str, changes: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the questions that have this outcome now and had another one."""
    became = []
    for name, (was, now) in changes.items():
        if was != outcome and now == outcome:
            became.append(f"{name} (was {was})")
    return became


def _named(what: str, ids: Sequence[str]) -> Iterator[str]:
    if ids:
        yield f"{what}: {len(ids)}: {', '.join(ids)}"


def _sign_test(changes: Iterable[tuple[str, str]]) -> str:
    """Return how likely as many changes to or from right, shared as unevenly, are if each went
    either way by chance.
    """
    gained = lost = 0
    for was, now in changes:
        gained += was != "right" and now == "right"
        lost += was == "right" and now != "right"
    total = gained + lost
    tail = sum(math.comb(total, k) for k in range(min(gained, lost) + 1)) / 2**total
    return (
        f"right gained {gained}, lost {lost}: p = {min(1.0, 2 * tail):.3g} (sign test, two-sided)"
    )
