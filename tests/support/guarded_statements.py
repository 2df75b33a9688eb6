"""The guard's fixtures: a schema, and statements that it allows or refuses."""

import re
from pathlib import Path
from typing import NamedTuple

FIXTURES = Path(__file__).parents[1] / "fixtures" / "guard"
SCHEMA = (FIXTURES / "schema.sql").read_text("utf-8")


class GuardCase(NamedTuple):
    """A statement and the line above it."""

    reason: str
    sql: str

    @property
    def named(self) -> str:
        """Return what the refusal must name."""
        return self.reason.partition(": ")[0]


def guard_cases(name: str) -> list[GuardCase]:
    """Return each `-- reason` line after an empty one begins a case; it ends where the next
    begins.
    """
    text = (FIXTURES / name).read_text("utf-8")
    parts = re.split(r"\n\n-- ([^\n]*)\n", text)
    return [
        GuardCase(reason, sql.rstrip("\n"))
        for reason, sql in zip(parts[1::2], parts[2::2], strict=True)
    ]


ALLOWED = guard_cases("allowed.sql")
REJECTED = guard_cases("rejected.sql")
QUALIFIED = guard_cases("qualified.sql")
