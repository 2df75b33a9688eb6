"""Asks the questions of the tests by every protocol, and counts those of which some protocol says
something else than Citu's own stream: text, SQL, rows, warnings, or the type of an error.

For protocols that have nothing but text, it is compared with the text that the answer has there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app_config import Settings
from benchmarks.rule_answers import DEMO_QUESTIONS, database_of
from databases.app_database import ensure_app_database
from databases.demo import SEMANTIC_FILE
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.asking import Asking
from tests.support.offline_questions import FIXTURES, cases_of
from tests.support.protocol_ways import WAYS, Asked, differences

_OFFLINE = FIXTURES / "offline"


def run(demo_url: str, data_dir: Path) -> Iterator[str]:
    """Compare all; yield the report line by line.

    Args:
        data_dir: where the embedded server is.
    """
    server = EmbeddedServer.acquire(data_dir)
    try:
        asked = differing = 0
        for title, question, found in _compared(server, demo_url):
            asked += 1
            differing += bool(found)
            yield from (f"  {title}: {question}: {one}" for one in found)

        yield f"{asked} questions by {len(WAYS)} protocols: {differing} told differently"
    finally:
        server.release()


def _compared(server: EmbeddedServer, demo_url: str) -> Iterator[tuple[str, str, list[str]]]:
    app_url = ensure_app_database(server, "protocol_parity_app")
    with _asking(demo_url, app_url, str(SEMANTIC_FILE)) as asking:
        for name in DEMO_QUESTIONS:
            yield from _about(asking, "demo", FIXTURES / name)

    for path in sorted(_OFFLINE.glob("*_questions.sql")):
        name = path.stem.removesuffix("_questions")
        with (
            database_of(server, _OFFLINE / f"{name}.sql") as url,
            _asking(url, app_url) as asking,
        ):
            yield from _about(asking, name, path)


def _about(asking: Asking, title: str, path: Path) -> Iterator[tuple[str, str, list[str]]]:
    for case in cases_of(path):
        yield title, case.question, differences(Asked(asking.client, case.question, {}))


@contextmanager
def _asking(url: str, app_url: str, semantic_file: str = "") -> Iterator[Asking]:
    settings = Settings(
        database_url=url, app_database_url=app_url, audit_log="off", semantic_file=semantic_file
    )
    with Asking(settings) as asking:
        yield asking
