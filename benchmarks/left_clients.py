"""Measures how long PostgreSQL goes on with a statement whose client has left, by each protocol.

The service runs as a process of its own, a scripted model writes a statement without an end, and
the client closes its socket once the statement runs.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.synthetic_schema import database_of
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.live import GAUGES, Citu, Watch, eventually, serving_afresh
from tests.support.openai_server import OpenAiServer
from tests.support.questions import ASK, ENDLESS, OTHER_PROTOCOLS, STREAM, SYNC, send

BUDGET_S = 2.0
_NAME = "left_clients"
_WORD = "endless"
_PATIENCE_S = 60.0
REQUESTS = {
    "ask_agent": (SYNC, ASK),
    "ask_agent_stream": (STREAM, ASK),
    **OTHER_PROTOCOLS,
}
"""Requests whose clients leave, by what they are called: path and body."""


def run(folder: Path, *, rounds: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the seconds for which the SQL ran on, by what was asked.

    Args:
        folder: where the embedded server is.
    """
    server = EmbeddedServer.acquire(folder)
    try:
        with (
            database_of(folder, _NAME, 0, GAUGES) as url,
            OpenAiServer(lambda _: ENDLESS) as model,
            closing(Watch(server.admin_url, url)) as watch,
        ):
            settings = {
                "DATA_DIR": str(folder),
                "DATABASE_URL": url,
                "OPENAI_API_KEY": "test",
                "OPENAI_BASE_URL": model.url,
                "OPENAI_MODEL": "scripted",
                "ROUTING_MODE": "database_direct",
                "AUDIT_LOG": "off",
            }
            with serving_afresh(folder / f"{_NAME}.log", **settings) as citu:
                for name, (path, body) in REQUESTS.items():
                    yield name, [_left(citu, watch, path, body) for _ in range(rounds)]
    finally:
        server.release()


def _left(citu: Citu, watch: Watch, path: str, body: dict[str, object]) -> float:
    """Ask, leave when the statement runs, and return the seconds until it is gone."""
    with send(citu.port, path, body):
        eventually(lambda: watch.running(_WORD), _PATIENCE_S)

    left = time.perf_counter()
    eventually(lambda: not watch.running(_WORD), _PATIENCE_S)
    return time.perf_counter() - left
