"""What the row rules leave one actor."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from common.actor import Actor
from common.values import Catalog
from databases.guard.facts import Key, ServerFacts


class Known(Protocol):
    """What is known of the asked database; `databases.catalog.Knowledge` is one."""

    @property
    def catalog(self) -> Catalog:
        """All tables that the role may read."""

    @property
    def facts(self) -> ServerFacts:
        """What the guard judges by."""


@dataclass(frozen=True)
class ActorRows:
    """What one actor may see of the ruled tables. Actors with equal values see the same.

    Attributes:
        ruled: (schema, table) of the tables of which not every row and value may be shown to this actor: neither may
            their stored values, ranges and row counts.
        masked: (schema, table, column) of the columns that are masked in some or all rows.
        functions: user-defined functions that may still be called, `schema.name`: others could read ruled tables.
    """

    ruled: frozenset[Key] = frozenset()
    masked: frozenset[tuple[str, str, str]] = frozenset()
    functions: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether nothing limits this actor."""
        return not self.ruled

    def rewritten(self, statement: str, known: Known) -> str:
        """The statement over nothing but what the actor may see.

        Args:
            statement: proven by the guard to be one query.
            known: what the server has, as it was read for everybody.

        Raises:
            ForbiddenObject, ValidationFailed: it can't be rewritten, or reads what can't be told apart by rows.
        """
        if self.is_open:
            return statement
        raise NotImplementedError

    def closed(self, known: Known) -> frozenset[Key]:
        """Relations that can't be read at all under these rules: views over ruled tables, parents of ruled ones."""
        return frozenset()


OPEN = ActorRows()
"""Nothing is limited."""


class RowRules:
    """The rules of one file.

    Attributes:
        problems: what is wrong with the file for the server as it was last looked at by `check`, `file:line: text`
            each; the rules concerned show nothing.
    """

    def __init__(self) -> None:
        self.problems: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: Path) -> "RowRules":
        """The rules in the file at `path`.

        Raises:
            RowRulesError: it can't be read or is not valid; names file, line and what to do.
        """
        return cls()

    def of(self, actor: Actor) -> ActorRows:
        """What the actor may see."""
        return OPEN

    def check(self, known: Known) -> tuple[str, ...]:
        """Compares the rules with the server, remembers the `problems` and says new ones in the log."""
        return self.problems
