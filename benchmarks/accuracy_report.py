"""What `accuracy` found: as a table, as JSON, and beside what it found before."""

import json
import math
import statistics
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


def _classes(judged: Sequence[Judged]) -> Iterator[tuple[tuple[str, str], list[Judged]]]:
    for name in sorted({(one.lang, one.difficulty) for one in judged}):
        yield name, [one for one in judged if (one.lang, one.difficulty) == name]


def _costs(asked: Sequence[Judged]) -> dict[str, Any]:
    """Return number and costs of questions that were asked, together and by outcome."""
    by_outcome = {name: [one for one in asked if one.outcome == name] for name in OUTCOMES}
    return {**_cost(asked), "outcomes": {name: _cost(own) for name, own in by_outcome.items()}}


def _cost(judged: Sequence[Judged]) -> dict[str, Any]:
    times = sorted(one.ms for one in judged)
    p50 = round(statistics.median(times), 1) if times else None
    p95 = times[math.ceil(0.95 * len(times)) - 1] if times else None
    sums = {name: sum(getattr(one, name) for one in judged) for name in _COUNTED}
    return {"count": len(judged), "latency_ms": {"p50": p50, "p95": p95}, **sums}


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
    for one in found["questions"]:
        if one["outcome"] != "right":
            name = _NAMES.get(one["outcome"], one["outcome"])
            yield f"  {name}: {one['id']} {one['question']} ({_short(one['reason'])})"
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


def _short(text: str) -> str:
    return shorten(text, _REASON_CHARS, placeholder=" …")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}, {100 * part / whole:.0f}%" if whole else "–"


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
    before, after = ({one["id"]: one for one in found["questions"]} for found in (old, new))
    both = [name for name in before if name in after]
    same = [name for name in both if all(before[name][key] == after[name][key] for key in _SAME)]
    asked = [
        name for name in same if {before[name]["outcome"], after[name]["outcome"]} <= set(OUTCOMES)
    ]
    yield f"old: {old['created_at']}, answered by {old['answered_by']}"
    yield f"new: {new['created_at']}, answered by {new['answered_by']}"
    yield f"{'':8}{'old':>18}{'new':>18}"
    for outcome in OUTCOMES:
        counts = (sum(one[name]["outcome"] == outcome for name in asked) for one in (before, after))
        yield f"{outcome:8}" + "".join(f"{_share(count, len(asked)):>18}" for count in counts)
    changes = {name: (before[name]["outcome"], after[name]["outcome"]) for name in asked}
    for outcome in OUTCOMES:
        became = [
            f"{name} (was {was})" for name, (was, now) in changes.items() if now == outcome != was
        ]
        yield from _named(f"became {outcome}", became)
    yield _sign_test(list(changes.values()))
    yield from _named(
        "not compared, their question or SQL differs", [name for name in both if name not in same]
    )
    yield from _named("not compared, their SQL fails", [name for name in same if name not in asked])
    yield from _named("only in the old report", [name for name in before if name not in after])
    yield from _named("only in the new report", [name for name in after if name not in before])


def _named(what: str, ids: Sequence[str]) -> Iterator[str]:
    if ids:
        yield f"{what}: {len(ids)}: {', '.join(ids)}"


def _sign_test(changes: Iterable[tuple[str, str]]) -> str:
    """Return how likely as many changes to or from right, shared as unevenly, are if each went
    either way by chance.
    """
    gained, lost = (
        sum(was != now and (was, now)[side] == "right" for was, now in changes) for side in (1, 0)
    )
    total = gained + lost
    tail = sum(math.comb(total, k) for k in range(min(gained, lost) + 1)) / 2**total
    return (
        f"right gained {gained}, lost {lost}: p = {min(1.0, 2 * tail):.3g} (sign test, two-sided)"
    )
