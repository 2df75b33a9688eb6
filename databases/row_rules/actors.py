"""What the row rules leave one actor: the only way in from outside this package."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from common.actor import Actor
from common.errors import ForbiddenObject
from databases.guard.access import Read
from databases.guard.facts import Key
from databases.guard.parsing import Node
from databases.row_rules.binding import BoundTable, Known, Refusals, bind
from databases.row_rules.format import Grant, RuleFile, read_file
from databases.row_rules.judging import UnseenReading
from databases.row_rules.planning import Plan, refused_grants
from databases.row_rules.relations import Relations
from databases.row_rules.rewriting import rewrite
from databases.row_rules.subqueries import ActorValues, masked_columns, subquery

_log = logging.getLogger(__name__)
_REMEMBERED = 256  # rewritten statements kept, because a statement is planned and run one after the other


@dataclass(frozen=True)
class ActorRows:
    """What one actor may see of the ruled tables. Actors with equal values see the same.

    Attributes:
        ruled: (schema, table) of the tables of the file of which the actor may not see all rows.
        masked: (schema, table, column) of the columns that are masked in some or all rows.
        grants: the tables that are limited, each with the places of the grants in the file that count for the actor.
        values: of the actor, where grants depend on them.
        rules: the file's, where anything is limited.
    """

    ruled: frozenset[Key] = frozenset()
    masked: frozenset[tuple[str, str, str]] = frozenset()
    grants: tuple[tuple[Key, tuple[int, ...]], ...] = ()
    values: ActorValues = field(default_factory=ActorValues)
    rules: "RowRules | None" = None

    @property
    def is_open(self) -> bool:
        """Whether nothing limits this actor."""
        return self.rules is None

    def rewritten(self, statement: str, known: Known) -> str:
        """The statement over nothing but what the actor may see; the same text when it reads nothing that is limited.

        Args:
            statement: proven by the guard to be one query.
            known: what the server has, as it was read for everybody.

        Raises:
            ForbiddenObject, ValidationFailed, InvalidSql: it can't be rewritten, or reads what rows can't be told of.
            DatabaseUnavailable: the server does not tell what views read.
        """
        return statement if self.rules is None else self.rules.rewritten(statement, self, known)

    def limits(self, known: Known) -> "Limits":
        """What this means for each table of the catalogue. Following thousands of views takes a while."""
        return Limits() if self.rules is None else self.rules.limits(self, known)


OPEN = ActorRows()
"""Nothing is limited."""


class Limits(NamedTuple):
    """What may not be shown to an actor beside the rows of statements: stored values, ranges, row counts.

    Attributes:
        closed: tables and views that can't be read at all, for example views over ruled tables.
        ruled: those of which the actor may not see all rows: children of ruled tables as well as these.
        masked: (schema, table, column) of columns that are masked in some or all rows.
    """

    closed: frozenset[Key] = frozenset()
    ruled: frozenset[Key] = frozenset()
    masked: frozenset[tuple[str, str, str]] = frozenset()


class _Bound(NamedTuple):
    """The rules as a server has them, and statements that were rewritten by them."""

    known: Known
    tables: dict[Key, BoundTable]
    relations: dict[frozenset[Key], Relations]
    rewritten: OrderedDict[tuple[ActorRows, str], str]


class RowRules:
    """The rules of one file, for one database.

    Attributes:
        problems: what does not fit the server as it was last looked at, `file:line: text` each; the tables concerned
            can't be read by the actors concerned.
    """

    def __init__(self, file: RuleFile) -> None:
        self.problems: tuple[str, ...] = ()
        self._file = file
        self._unseen = UnseenReading(file.functions)
        self._refusals: Refusals = {}
        self._bound: _Bound | None = None

    @classmethod
    def load(cls, path: Path) -> "RowRules":
        """The rules in the file at `path`.

        Raises:
            RowRulesError: it can't be read or is not valid; names file, line and what to do.
        """
        return cls(read_file(path))

    def of(self, actor: Actor) -> ActorRows:
        """What the actor may see."""
        ruled: set[Key] = set()
        masked: set[tuple[str, str, str]] = set()
        counting: dict[Key, tuple[int, ...]] = {}
        used: set[str] = set()
        for rule in self._file.tables:
            places = tuple(place for place, grant in enumerate(rule.grants) if grant.is_for(actor.groups))
            grants = [rule.grants[place] for place in places]
            columns = masked_columns(grants)
            if columns or all(grant.rows is not None for grant in grants):
                counting[rule.key] = places
                masked.update((*rule.key, column) for column in columns)
                used.update(*map(_placeholders, grants))
            if all(grant.rows is not None for grant in grants):
                ruled.add(rule.key)
        if not counting:
            return OPEN
        values = ActorValues(
            actor.user_id if "user_id" in used else None, tuple(sorted(set(actor.groups))) if "groups" in used else ()
        )
        return ActorRows(frozenset(ruled), frozenset(masked), tuple(sorted(counting.items())), values, self)

    async def check(self, known: Known, plan: Plan | None = None) -> tuple[str, ...]:
        """Compares the rules with the server; remembers the `problems`, and says new ones in the log.

        Args:
            plan: says why PostgreSQL can't plan a statement, None if it can (`databases.catalog.Plan`). With it, each
                grant is tried alone, which finds what only PostgreSQL knows: types, functions.
        """
        if plan is not None:
            tables, _ = bind(self._file, known)
            self._refusals = await refused_grants(tables, plan)
            self._bound = None
        self._bound_to(known)
        return self.problems

    def rewritten(self, statement: str, rows: ActorRows, known: Known) -> str:
        """See `ActorRows.rewritten`."""
        bound = self._bound_to(known)
        done = bound.rewritten.get((rows, statement))
        if done is None:
            done = bound.rewritten[rows, statement] = self._rewrite(statement, rows, bound)
            while len(bound.rewritten) > _REMEMBERED:
                bound.rewritten.popitem(last=False)
        return done

    def limits(self, rows: ActorRows, known: Known) -> Limits:
        """See `ActorRows.limits`."""
        relations = self._relations(rows, self._bound_to(known))
        closed: set[Key] = set()
        ruled: set[Key] = set()
        masked: set[tuple[str, str, str]] = set()
        for key in known.catalog.by_key:
            try:
                table = relations.rule(Read(key))
            except ForbiddenObject:
                closed.add(key)
                continue
            if table is not None:
                ruled.update([key] if table.rule in rows.ruled else [])
                masked.update((*key, column) for *rule, column in rows.masked if tuple(rule) == table.rule)
        return Limits(frozenset(closed), frozenset(ruled), frozenset(masked))

    def _rewrite(self, statement: str, rows: ActorRows, bound: _Bound) -> str:
        facts, tables = bound.known.facts, bound.known.catalog.by_key
        self._unseen.refuse(statement, facts)
        counting = dict(rows.grants)

        def show(table: BoundTable, source: Node, columns: Sequence[str]) -> Node:
            return subquery(table, counting[table.rule], rows.values, source, columns)

        return rewrite(statement, facts, tables, self._relations(rows, bound).of, show)

    def _relations(self, rows: ActorRows, bound: _Bound) -> Relations:
        limited = frozenset(key for key, _ in rows.grants)
        if limited not in bound.relations:
            made = Relations(bound.known.facts, bound.tables, limited, self._file.views, self._file.functions)
            bound.relations[limited] = made
        return bound.relations[limited]

    def _bound_to(self, known: Known) -> _Bound:
        bound = self._bound
        if bound is None or known.facts is not bound.known.facts or known.catalog is not bound.known.catalog:
            tables, problems = bind(self._file, known, self._refusals)
            for problem in problems:
                if problem not in self.problems:
                    _log.error("ROW_RULES: %s", problem)
            self.problems = problems
            bound = self._bound = _Bound(known, tables, {}, OrderedDict())
        return bound


def _placeholders(grant: Grant) -> frozenset[str]:
    found = [grant.rows, *(mask for _, mask in grant.masks)]
    return frozenset().union(*(sql.placeholders for sql in found if sql is not None))
