"""Measures the guard's time per statement, on the allowed statements of its specification, without
its cache.
"""

import contextlib
import statistics
import time

from common.errors import StatementRejected
from guard import Guard
from tests.support.guarded_statements import ALLOWED

_BUDGET_MS = 0.5  # for the median statement


def run(rounds: int = 50) -> dict[str, float]:
    """Return milliseconds per statement: `median` and `p99` over all statements, each timed by its
    fastest of `rounds`.
    """
    fastest = [_fastest(case.sql, rounds) for case in ALLOWED]
    return {"median": statistics.median(fastest), "p99": statistics.quantiles(fastest, n=100)[98]}


def _fastest(sql: str, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        guard = Guard()  # a new one each time, because a guard caches its verdicts
        started = time.perf_counter()
        with contextlib.suppress(StatementRejected):  # a few statements need the server's catalogue
            guard.check(sql)
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


if __name__ == "__main__":
    found = run()
    print(
        f"guard, ms per statement: median {found['median']:.3f} (budget {_BUDGET_MS}), "
        f"p99 {found['p99']:.3f}"
    )
