"""Measures what the flow of transformations costs other questions: the same ones, in turn by a
service that has it and one that has not.

Both run in this process, answer by rules and share the database, so that what else the machine does
falls on both. The processor's time is that of the process, which holds nothing else meanwhile.
"""

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from agent import bootstrap
from app_config import Settings
from benchmarks.answer_cost import QUESTION
from databases.app_database import ensure_app_database
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.asking import Asking

_FLOW = "etl"


@dataclass(frozen=True)
class FlowCost:
    """Seconds of processor for each question, with the flow and without it, in pairs."""

    with_flow: Sequence[float]
    without: Sequence[float]

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        ratios = [one / other for one, other in zip(self.with_flow, self.without, strict=True)]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        return [
            f"{len(ratios)} questions to each: {statistics.median(self.with_flow) * 1000:.1f} ms of"
            f" processor with the flow {_FLOW}, {statistics.median(self.without) * 1000:.1f} ms"
            f" without; {ratio:.2f} times, median of pairs (quartiles {low:.2f} and {high:.2f})"
        ]


def run(database_url: str, data_dir: Path, *, questions: int = 100) -> FlowCost:
    """Ask a service with the flow and one without it the same question in turn.

    Each comes first in every other pair.
    """
    server = EmbeddedServer.acquire(data_dir)
    try:
        settings = Settings(
            database_url=database_url,
            data_dir=str(data_dir),
            app_database_url=ensure_app_database(server),
        )
        return _measured(settings, questions)
    finally:
        server.release()


def _measured(settings: Settings, questions: int) -> FlowCost:
    with ExitStack() as stack:
        with_flow = stack.enter_context(Asking(settings))
        others = [build for build in bootstrap.FLOWS if build.__name__.strip("_") != _FLOW]
        assert len(others) < len(bootstrap.FLOWS)
        with patch.object(bootstrap, "FLOWS", others):
            without = stack.enter_context(Asking(settings))

        spent: dict[bool, list[float]] = {True: [], False: []}
        services = [(True, with_flow), (False, without)]
        for _, service in services:  # the catalogue is read, and code is loaded
            _seconds(service)
        for _ in range(questions):
            for has_flow, service in services:
                spent[has_flow].append(_seconds(service))

            services.reverse()

    return FlowCost(spent[True], spent[False])


def _seconds(service: Asking) -> float:
    before = time.process_time()
    status, answer = service.sync({"question": QUESTION})
    assert status == 200, answer
    return time.process_time() - before
