"""`python -m benchmarks accuracy`: how many questions of a file are answered rightly, and what
became of them since.

docs/accuracy.md says how to use it.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from app_config import Settings
from benchmarks.accuracy_judging import Ask, Judged, citu_at, citu_here, measure, measured_settings
from benchmarks.accuracy_questions import AccuracyQuestion, read_questions
from benchmarks.accuracy_report import comparison, lines, read_report, report

_MOST_AT_ONCE = 64


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this measurement has, and `--questions`, which it shares."""
    group = parser.add_argument_group("accuracy")
    group.add_argument(
        "--database-url",
        default="",
        help="the database of the questions (default: DATABASE_URL, demo)",
    )
    group.add_argument("--limit", type=int, help="ask only the first questions")
    group.add_argument(
        "--concurrency", type=_at_once, default=4, help="questions asked at once (default 4)"
    )
    group.add_argument(
        "--report", type=Path, help="write what became of each question to this file, as JSON"
    )
    group.add_argument(
        "--url", default="", help="ask this running Citu, which must answer about the same database"
    )
    group.add_argument(
        "--api-key", default="", help="its key (default: CITU_API_KEY of the environment)"
    )
    group.add_argument(
        "--compare",
        type=Path,
        nargs=2,
        metavar=("OLD", "NEW"),
        help="compare two reports; ask nothing",
    )


def _at_once(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _MOST_AT_ONCE:
        raise argparse.ArgumentTypeError(f"1 to {_MOST_AT_ONCE}")
    return number


def run(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Measure or compare; yield the lines to be shown.

    Args:
        folder: for what Citu keeps meanwhile.

    Raises:
        OSError: a file can't be read or written.
        UnreadableReport: a file to be compared is no report.
        NotLetIn, psycopg2.OperationalError: see `measure`.
    """
    if options.compare:
        yield from comparison(*map(read_report, options.compare))
        return
    questions, bad = read_questions(options.questions)
    if options.report:
        options.report.touch()  # fails now if it can't be written, not after all questions
    settings = Settings.from_env()
    with ExitStack() as stack:
        if options.url:
            ask = citu_at(options.url, options.api_key or os.environ.get("CITU_API_KEY", ""))
            answered_by, database_url = options.url, options.database_url or settings.database_url
        else:
            settings = measured_settings(
                settings, folder, database_url=options.database_url, concurrency=options.concurrency
            )
            ask, services = stack.enter_context(citu_here(settings))
            answered_by, database_url = services.thinker, services.sources.asked()
        judged = _judged(questions[: options.limit], ask, database_url, options.concurrency)
    found = report(judged, bad, files=options.questions, answered_by=answered_by)
    if options.report:
        options.report.write_text(json.dumps(found, ensure_ascii=False, indent=1), "utf-8")
    yield from lines(found)


def _judged(
    questions: Sequence[AccuracyQuestion], ask: Ask, database_url: str, concurrency: int
) -> list[Judged]:
    """Return what became of the questions, up to where somebody pressed Ctrl-C."""
    judged: list[Judged] = []
    try:
        for one in measure(questions, ask, database_url, concurrency=concurrency):
            judged.append(one)
            if sys.stderr.isatty():
                print(f"\r{len(judged)} of {len(questions)} ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    return judged
