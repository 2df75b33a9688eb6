"""Runs many cases of one mechanism in one test and reports all that fail, because a test costs more
than a case.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class Cases:
    """Collects the failures of cases; see `all_cases`."""

    def __init__(self) -> None:
        self.failed: list[tuple[object, BaseException]] = []

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Record a failure inside, which `all_cases` reports at its end."""
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever it is, it is told
            self.failed.append((name, error))


@contextmanager
def all_cases() -> Iterator[Cases]:
    """Fail at its end if cases within it have failed, with the name and the error of each."""
    cases = Cases()
    yield cases
    if cases.failed:
        told = "\n\n".join(
            f"{name}\n{type(error).__name__}: {error}" for name, error in cases.failed
        )
        raise AssertionError(f"{len(cases.failed)} cases failed:\n\n{told}") from cases.failed[0][1]
