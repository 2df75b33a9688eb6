"""`python -m benchmarks [name]`: the measurements, by default all of _MEASUREMENTS in one run.

`accuracy` is none of these: it asks questions of one's own, about a database of one's own.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg2

from app_config import ConfigurationError
from benchmarks import (
    accuracy,
    agent_cost,
    answer_cost,
    chosen_databases,
    counted_questions,
    day_of_load,
    etl_mutation,
    file_loading,
    first_paint,
    flow_cost,
    hosts,
    interruptions,
    killed_drafts,
    large_schema,
    left_clients,
    many_sockets,
    many_streams,
    observing_cost,
    offers,
    protocol_parity,
    protocols,
    retrieval,
    rule_answers,
    slow_requests,
    store_cost,
    three_clusters,
    transformations,
)
from benchmarks.accuracy_judging import NotLetIn
from benchmarks.accuracy_report import UnreadableReport
from databases.source import InvalidDatabaseUrl, database_sources
from llm.providers import InvalidEndpoint

_MISTAKES = (
    *(OSError, UnreadableReport, NotLetIn, psycopg2.OperationalError),
    *(ConfigurationError, InvalidDatabaseUrl, InvalidEndpoint),
)


def main() -> None:
    """Measure on the embedded demo database and prints the findings."""
    parser = argparse.ArgumentParser(description="What Citu costs, and what its rules answer")
    parser.add_argument(
        "what",
        nargs="?",
        choices=[*_MEASUREMENTS, "accuracy"],
        help="one measurement (default: all)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=10,
        help="answer_cost, agent_cost, observing_cost: blocks; left_clients: clients (10)",
    )
    parser.add_argument(
        "--answers",
        type=int,
        default=50,
        help="answer_cost, observing_cost: answers a block (50)",
    )
    parser.add_argument(
        "--streams", type=int, default=1000, help="many_streams: questions at once (default 1000)"
    )
    parser.add_argument(
        "--host-streams", type=int, default=64, help="hosts: questions at once (default 64)"
    )
    parser.add_argument(
        "--interruptions", type=int, default=500, help="interruptions: questions (default 500)"
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="day_of_load: how long (default 10)"
    )
    parser.add_argument(
        "--rate", type=float, default=20.0, help="day_of_load: questions a second (default 20)"
    )
    parser.add_argument(
        "--counted",
        type=int,
        default=10_000,
        help="counted_questions: questions (default 10000)",
    )
    parser.add_argument(
        "--kills", type=int, default=25, help="counted_questions: workers killed (default 25)"
    )
    parser.add_argument(
        "--sockets",
        type=int,
        default=400,
        help="many_sockets: WebSockets open at once (default 400)",
    )
    parser.add_argument(
        "--slow-clients",
        type=int,
        default=300,
        help="slow_requests: slow connections at once (default 300)",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="slow_requests: how long (default 60)"
    )
    parser.add_argument(
        "--tables", type=int, default=10_000, help="large_schema: tables (default 10000)"
    )
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="files: rows of the file (default 1000000)"
    )
    parser.add_argument(
        "--questions",
        type=Path,
        nargs="+",
        default=[],
        help="retrieval, accuracy: files of JSON lines",
    )
    parser.add_argument(
        "--schemas",
        type=Path,
        help="retrieval: folder of .sql files or JSON file of their databases",
    )
    parser.add_argument(
        "--pool", type=int, default=retrieval.POOL, help="retrieval: tables of the one schema"
    )
    parser.add_argument(
        "--drafts", type=int, default=40, help="etl_mutation: intents that are drawn (default 40)"
    )
    parser.add_argument(
        "--draw", type=int, default=1, help="etl_mutation: which intents (default 1)"
    )
    parser.add_argument(
        "--shows",
        action="store_true",
        help="chosen_databases, etl_mutation: list what was not right",
    )
    accuracy.add_options(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="citu-bench-") as folder:
        Path(folder).chmod(0o755)  # as root, the embedded server runs as another user
        if options.what == "accuracy":
            _accuracy(Path(folder), parser, options)
            return
        sources = database_sources("", "", Path(folder))
        try:
            database_url = sources.asked()
            for name in [options.what] if options.what else _MEASUREMENTS:
                _MEASUREMENTS[name](database_url, Path(folder), options)
        finally:
            sources.hold.release()


def _answer_cost(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = answer_cost.run(database_url, folder, rounds=options.rounds, answers=options.answers)
    print(f"{'':20}{'added ms (median)':>20}{'CPU ms per answer':>20}")
    for endpoint in answer_cost.ENDPOINTS:
        bare, citu = found[endpoint, "bare stack"], found[endpoint, "Citu"]
        for name, cost in (("bare stack", bare), ("Citu", citu)):
            print(f"{endpoint + ', ' + name:20}{cost['ms']:>20.2f}{cost['cpu_ms']:>20.2f}")
        slower, dearer = citu["ms"] / bare["ms"], citu["cpu_ms"] / bare["cpu_ms"]
        print(f"{endpoint + ', ratio':20}{slower:>20.2f}{dearer:>20.2f}")


def _agent_cost(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    print("\n".join(agent_cost.run(database_url, folder, questions=options.rounds * 3).lines()))


def _first_paint(
    database_url: str,  # noqa: ARG001 - as the others
    folder: Path,
    options: argparse.Namespace,  # noqa: ARG001 - as the others
) -> None:
    print(first_paint.run(folder))


def _protocols(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = protocols.run(database_url, folder, rounds=options.rounds * 20)
    for name, cost in found.items():
        times = f"{cost.elapsed:>8.2f} ms{cost.added:>+8.2f}"
        print(f"{name:24}{times}, processor {cost.cpu:>6.2f} ms")
    print(f"budget above ask_agent: {protocols.BUDGET_MS:g} ms")


def _left_clients(
    database_url: str,  # noqa: ARG001 - as the others
    folder: Path,
    options: argparse.Namespace,
) -> None:
    for name, seconds in left_clients.run(folder, rounds=options.rounds):
        median = statistics.median(seconds)
        print(f"{name:24}{median:>8.2f} s{max(seconds):>8.2f} s at most", flush=True)

    print(f"budget: {left_clients.BUDGET_S:g} s")


def _many_streams(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = many_streams.run(database_url, folder, streams=options.streams)
    print("\n".join([*found.lines(), *found.problems[:3]]))


def _many_sockets(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    print("\n".join(many_sockets.run(database_url, folder, sockets=options.sockets).lines()))


def _slow_requests(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = slow_requests.run(
        database_url, folder, clients=options.slow_clients, seconds=options.seconds
    )
    print("\n".join(found.lines()))


def _store_cost(_database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    for name, cost in store_cost.run(folder).items():
        print(
            f"{name}, median ms: append {cost['append']:.2f}, recent {cost['recent']:.2f},"
            f" both {cost['both']:.2f} (budget {store_cost.BUDGET_MS:g})"
        )


def _large_schema(_database_url: str, folder: Path, options: argparse.Namespace) -> None:
    print("\n".join(large_schema.run(folder, tables=options.tables).lines()))


def _rules(database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    for line in rule_answers.run(database_url, folder):
        print(line, flush=True)


def _protocol_parity(database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    for line in protocol_parity.run(database_url, folder):
        print(line, flush=True)


def _offers(database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    for line in offers.run(database_url, folder):
        print(line, flush=True)


def _etl_mutation(_database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = etl_mutation.run(folder, drafts=options.drafts, number=options.draw)
    print("\n".join(found.lines(shows=options.shows)))


def _retrieval(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    for line in retrieval.run(
        options.database_url or database_url,
        folder,
        files=options.questions,
        schemas=options.schemas,
        pool=options.pool,
    ):
        print(line, flush=True)


def _chosen_databases(_database_url: str, folder: Path, options: argparse.Namespace) -> None:
    for line in chosen_databases.run(folder, shows=options.shows):
        print(line, flush=True)


def _three_clusters(_database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    for line in three_clusters.run(folder):
        print(line, flush=True)


def _files(_database_url: str, folder: Path, options: argparse.Namespace) -> None:
    for line in file_loading.run(folder, rows=options.rows):
        print(line, flush=True)


def _accuracy(folder: Path, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if not options.compare and not options.questions:
        parser.error("accuracy needs --questions or --compare")
    if options.url and not (options.database_url or os.environ.get("DATABASE_URL")):
        parser.error("with --url, accuracy needs --database-url to run the questions' own SQL")
    try:
        for line in accuracy.run(folder, options):
            print(line, flush=True)
    except _MISTAKES as exc:
        raise SystemExit(f"{parser.prog} accuracy: {exc}") from exc


def _interruptions(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    print("\n".join(interruptions.run(database_url, folder, count=options.interruptions).lines()))


def _hosts(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    hosts.run(database_url, folder, streams=options.host_streams)


def _counted_questions(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = counted_questions.run(
        database_url, folder, questions=options.counted, kills=options.kills
    )
    print("\n".join(found.lines()), flush=True)


def _observing_cost(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = observing_cost.run(database_url, folder, rounds=options.rounds, answers=options.answers)
    print("\n".join(found.lines()), flush=True)


def _day_of_load(database_url: str, folder: Path, options: argparse.Namespace) -> None:
    found = day_of_load.run(database_url, folder, minutes=options.minutes, rate=options.rate)
    print("\n".join(found.lines()), flush=True)


def _transformations(_database_url: str, folder: Path, options: argparse.Namespace) -> None:
    for found in transformations.run(folder, rounds=options.rounds):
        print("\n".join(found.lines()), flush=True)


def _flow_cost(database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    print("\n".join(flow_cost.run(database_url, folder).lines()), flush=True)


def _killed_drafts(_database_url: str, folder: Path, _options: argparse.Namespace) -> None:
    print("\n".join(killed_drafts.run(folder).lines()), flush=True)


_MEASUREMENTS: dict[str, Callable[[str, Path, argparse.Namespace], None]] = {
    "answer_cost": _answer_cost,
    "agent_cost": _agent_cost,
    "many_streams": _many_streams,
    "protocols": _protocols,
    "protocol_parity": _protocol_parity,
    "left_clients": _left_clients,
    "first_paint": _first_paint,
    "many_sockets": _many_sockets,
    "slow_requests": _slow_requests,
    "store_cost": _store_cost,
    "large_schema": _large_schema,
    "rules": _rules,
    "offers": _offers,
    "retrieval": _retrieval,
    "chosen_databases": _chosen_databases,
    "three_clusters": _three_clusters,
    "files": _files,
    "interruptions": _interruptions,
    "hosts": _hosts,
    "observing_cost": _observing_cost,
    "day_of_load": _day_of_load,
    "counted_questions": _counted_questions,
    "etl_mutation": _etl_mutation,
    "transformations": _transformations,
    "killed_drafts": _killed_drafts,
    "flow_cost": _flow_cost,
}

if __name__ == "__main__":
    main()
