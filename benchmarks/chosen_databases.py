"""How often the database that a question is about is chosen.

The demo and the databases of the tests, of `benchmarks/studied` and of `benchmarks/held_out` are
asked by one service, by names that say nothing, five of them to a caller. Every question that can
be answered is asked without naming a database, each in a conversation of its own, without a model:

- right: the database that the question was written for;
- asked: Citu asks back, and that database is among the choices;
- wrong: another one, or choices without it.

Then five databases of 200 tables each are asked, and five others (`trades`). There it is known
which databases a question fits: where several do, asking back with all of them is right, and
choosing is a guess.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from agent.bootstrap import Services, bootstrap
from agent.database_choice import DatabaseDoubt
from agent.question import Question
from app_config import Settings
from benchmarks import trades
from benchmarks.rule_answers import CHAT, HELD_OUT, database_of, names_in
from common.actor import Actor
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.offline_questions import FIXTURES, REFUSE, Case, cases_of

_STUDIED = HELD_OUT.parent / "studied"
_TUNED = FIXTURES / "offline"
_AT_ONCE = 5  # databases that one caller may ask
_MADE = 250
_OF_SEVERAL = ("asked back", "choices missing", "guessed")
_GOOD = ("right", "asked back")
_DEMO_QUESTIONS = ("questions_zh.sql", "questions_en.sql", "questions_more.sql")


def run(data_dir: Path, *, shows: bool = False) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        shows: whether questions of the tests' databases that were not right are listed.
    """
    with ExitStack() as stack:
        server = stack.enter_context(_server(data_dir))
        groups: dict[str, list[tuple[str, Case]]] = {"tuned": [], "studied": [], "held out": []}
        entries: dict[str, dict[str, Any]] = {"d0": {"url": "demo", "groups": _groups(0)}}
        for file in _DEMO_QUESTIONS:
            groups["tuned"] += [("d0", case) for case in _of(FIXTURES, file)]
        for group, folder in (("tuned", _TUNED), ("studied", _STUDIED), ("held out", HELD_OUT)):
            for database in names_in(folder):
                number = len(entries)
                name = f"d{number}"
                url = stack.enter_context(database_of(server, folder / f"{database}.sql"))
                entries[name] = {"url": url, "groups": _groups(number)}
                cases = _of(folder, f"{database}_questions.sql")
                groups[group] += [(name, case) for case in cases]
        path = data_dir / "databases.yaml"
        path.write_text(json.dumps({"databases": entries}), "utf-8")
        services = stack.enter_context(_services(path, data_dir))
        yield f"{len(entries)} databases, {_AT_ONCE} to a caller"
        yield from asyncio.run(_measured(services, groups, shows=shows))

    for cluster in (trades.FIRST, trades.SECOND):
        yield from run_trades(data_dir, cluster, shows=shows)


def run_trades(
    data_dir: Path, cluster: trades.Cluster, *, shows: bool = False, count: int = _MADE
) -> Iterator[str]:
    """Yield the lines of the report about five databases of 200 tables each.

    Args:
        shows: whether the questions that may be studied and were not right are listed.
        count: of the questions that are made in each language, of each group.
    """
    kept = trades.trades(cluster)
    with ExitStack() as stack:
        server = stack.enter_context(_server(data_dir))
        entries: dict[str, dict[str, Any]] = {}
        for trade in kept.things:
            file = data_dir / f"{trade}.sql"
            file.write_text(f"{trades.ddl(kept, trade)};{trades.references(kept, trade)}", "utf-8")
            entries[trade] = {"url": stack.enter_context(database_of(server, file))}
            meanings = trades.semantic_file(kept, trade)
            if meanings is not None:
                path = data_dir / f"{trade}.yaml"
                path.write_text(json.dumps(meanings), "utf-8")
                entries[trade]["semantic_file"] = str(path)

        path = data_dir / "trades.yaml"
        path.write_text(json.dumps({"databases": entries}), "utf-8")
        services = stack.enter_context(_services(path, data_dir))
        size = len(next(iter(kept.things.values())))
        yield f"{len(entries)} databases of {size} tables each ({', '.join(entries)})"
        groups = _trade_groups(kept, count)
        yield from asyncio.run(_measured_trades(services, groups, shows=shows))


def _trade_groups(kept: trades.Trades, count: int) -> dict[str, list[trades.TradeQuestion]]:
    groups = {"written": trades.hand_written(kept.cluster)}
    for is_held_out in (False, True):
        kind = "studied"
        if is_held_out:
            kind = "held out" if kept.cluster == trades.FIRST else "studied, other sentences"
        for lang in trades.LANGUAGES:
            made = trades.made_questions(kept, lang, count, held_out=is_held_out)
            foreign = [one for one in made if trades.is_foreign(kept, one, lang)]
            groups[f"{kind}, {lang}"] = [one for one in made if one not in foreign]
            groups[f"{kind}, {lang}, of names in another language"] = foreign

    return {name: questions for name, questions in groups.items() if questions}


async def _measured_trades(
    services: Services, groups: dict[str, list[trades.TradeQuestion]], *, shows: bool
) -> list[str]:
    lines = []
    await services.warm()
    for group, questions in groups.items():
        counts: Counter[str] = Counter()
        started = time.perf_counter()
        for asked in questions:
            verdict, found = await _trade_verdict(services, asked)
            counts[verdict] += 1
            if shows and not group.startswith("held out") and verdict not in _GOOD:
                lines.append(f"  {verdict}: {asked.text} ({sorted(asked.fits)}: {found})")

        milliseconds = (time.perf_counter() - started) * 1000 / max(1, len(questions))
        lines.append(f"{group}: {len(questions)} questions; {milliseconds:.1f} ms each")
        one = counts["right"] + counts["asked"] + counts["wrong"]
        lines.append(f"  one fits: {_shares(counts, ('right', 'asked', 'wrong'), one)}")
        several = len(questions) - one
        lines.append(f"  several fit: {_shares(counts, _OF_SEVERAL, several)}")
    await services.aclose()
    return lines


def _shares(counts: Counter[str], names: tuple[str, ...], total: int) -> str:
    return ", ".join(
        f"{name} {counts[name]} ({counts[name] / max(1, total):.1%})" for name in names
    )


async def _trade_verdict(services: Services, asked: trades.TradeQuestion) -> tuple[str, object]:
    chosen = await services.chooser.chosen(Question(asked.text))
    names: set[str | None] = set()
    if isinstance(chosen, DatabaseDoubt):
        names.update(chosen.names)
    else:
        names.add(chosen.database)
    if len(asked.fits) == 1:
        if not asked.fits <= names:
            return "wrong", sorted(map(str, names))
        return ("right" if len(names) == 1 else "asked"), sorted(map(str, names))

    if len(names) == 1:
        return "guessed", sorted(map(str, names))
    return ("asked back" if asked.fits <= names else "choices missing"), sorted(map(str, names))


async def _measured(
    services: Services, groups: dict[str, list[tuple[str, Case]]], *, shows: bool
) -> list[str]:
    lines = []
    await services.warm()
    for group, cases in groups.items():
        counts: Counter[str] = Counter()
        started = time.perf_counter()
        for database, case in cases:
            verdict, found = await _verdict(services, database, case.question)
            counts[verdict] += 1
            if shows and group != "held out" and verdict != "right":
                lines.append(f"  {verdict}: {case.question} ({database}: {found})")
        milliseconds = (time.perf_counter() - started) * 1000 / max(1, len(cases))
        shares = ", ".join(
            f"{name} {counts[name]} ({counts[name] / max(1, len(cases)):.1%})"
            for name in ("right", "asked", "wrong")
        )
        lines.append(f"{group}: {len(cases)} questions: {shares}; {milliseconds:.1f} ms each")
    await services.aclose()
    return lines


async def _verdict(services: Services, database: str, question: str) -> tuple[str, object]:
    actor = Actor("asker", tuple(_groups(int(database.removeprefix("d")))))
    chosen = await services.chooser.chosen(Question(question, actor=actor))
    if isinstance(chosen, DatabaseDoubt):
        return ("asked" if database in chosen.names else "wrong"), chosen.names
    return ("right" if chosen.database == database else "wrong"), chosen.database


def _groups(number: int) -> list[str]:
    """Return the groups that may ask the database of that number, of which five have one."""
    return [f"g{number // _AT_ONCE}"]


def _of(folder: Path, name: str) -> list[Case]:
    """Return the questions of a file that can be answered."""
    return [case for case in cases_of(folder / name) if case.gold not in (REFUSE, CHAT)]


@contextmanager
def _services(databases_file: Path, data_dir: Path) -> Iterator[Services]:
    settings = Settings(databases_file=str(databases_file), data_dir=str(data_dir), audit_log="off")
    services = bootstrap(settings)
    try:
        yield services
    finally:
        services.sources.hold.release()  # the server writes into its folder while anybody holds it


@contextmanager
def _server(data_dir: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer.acquire(data_dir)
    try:
        yield server
    finally:
        server.release()
