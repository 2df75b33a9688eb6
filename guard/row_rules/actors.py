"""Apply row rules for one actor: the only way in from outside this package."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from common.actor import Actor
from common.errors import ForbiddenObject
from guard.columns import Read
from guard.facts import Key
from guard.row_rules.planning import Plan, refused_grants
from guard.row_rules.predicates import ATTRIBUTE, ActorValues
from guard.row_rules.relations import Relations
from guard.row_rules.rewriting import rewrite
from guard.row_rules.rule_binding import BoundTable, KnownServer, Refusals, bind
from guard.row_rules.rule_file import Grant, RuleFile, read_file
from guard.row_rules.subqueries import masked_columns, subquery
from guard.row_rules.unseen_reading import UnseenReading
from sqltree.parsing import Node

_log = logging.getLogger(__name__)

Qualify = Callable[[Node], bool]
"""Changes a query's tree; says whether it did."""

_REMEMBERED = (
    256  # rewritten statements kept, because a statement is planned and run one after the other
)


@dataclass(frozen=True)
class ActorRows:
    """Opens the part of the ruled tables that one actor may see. Equal values see the same.

    Attributes:
        ruled: (schema, table) of the tables of the file of which the actor may not see all rows.
        masked: (schema, table, column) of the columns that are masked in some or all rows.
        grants: the tables that are limited, each with the places of the grants in the file that
            count for the actor.
        values: the actor's values, where grants depend on them.
        rules: the file's, where anything is limited.
    """

    ruled: frozenset[Key] = frozenset()
    masked: frozenset[tuple[str, str, str]] = frozenset()
    grants: tuple[tuple[Key, tuple[int, ...]], ...] = ()
    values: ActorValues = field(default_factory=ActorValues)
    rules: "RowRules | None" = None

    @property
    def is_open(self) -> bool:
        """Tell whether nothing limits this actor."""
        return self.rules is None

    def rewritten(
        self, statement: str, server: KnownServer, qualify: Qualify = lambda _: False
    ) -> str:
        """Return the statement over nothing but what the actor may see; the same text when it reads
        nothing that is limited, and uses no contested name.

        Args:
            statement: proven by the guard to be one query.
            server: what the server has, as it was read for everybody.
            qualify: what that guard changes before a statement is sent, `Guard.qualify`.

        Raises:
            ForbiddenObject, ValidationFailed, InvalidSql: it can't be rewritten, or reads what rows
                can't be told of.
            DatabaseUnavailable: the server does not tell what views read.
        """
        if self.rules is None:
            return statement

        return self.rules.rewritten(statement, self, server, qualify)

    def limits(self, server: KnownServer) -> "RowLimits":
        """Return what this means for each table of the catalogue. Following thousands of views
        takes a while.
        """
        if self.rules is None:
            return RowLimits()

        return self.rules.limits(self, server)


OPEN = ActorRows()
"""Nothing is limited."""


class RowLimits(NamedTuple):
    """Objects of which no stored values, ranges or row counts may be shown to an actor.

    Attributes:
        closed: tables and views that can't be read at all, for example views over ruled tables.
        ruled: those of which the actor may not see all rows: children of ruled tables as well as
            these.
        masked: (schema, table, column) of columns that are masked in some or all rows.
    """

    closed: frozenset[Key] = frozenset()
    ruled: frozenset[Key] = frozenset()
    masked: frozenset[tuple[str, str, str]] = frozenset()


class _Bound(NamedTuple):
    """Holds the rules as a server has them, and statements that were rewritten by them."""

    server: KnownServer
    tables: dict[Key, BoundTable]
    relations: dict[frozenset[Key], Relations]
    rewritten: OrderedDict[tuple[ActorRows, str, Qualify], str]


class RowRules:
    """Holds the rules of one file, for one database.

    Attributes:
        problems: what does not fit the server as it was last looked at, `file:line: text` each; the
            tables concerned can't be read by the actors concerned.
    """

    def __init__(self, file: RuleFile) -> None:
        self.problems: tuple[str, ...] = ()
        self._file = file
        self._unseen = UnseenReading(file.functions)
        self._refusals: Refusals = {}
        self._bound: _Bound | None = None

    @classmethod
    def load(cls, path: Path) -> "RowRules":
        """Return the rules in the file at `path`.

        Raises:
            RowRulesError: it can't be read or is not valid; names file, line and what to do.
        """
        return cls(read_file(path))

    def of(self, actor: Actor) -> ActorRows:
        """Return what the actor may see."""
        ruled: set[Key] = set()
        masked: set[tuple[str, str, str]] = set()
        counting: dict[Key, tuple[int, ...]] = {}
        used: set[str] = set()
        for rule in self._file.tables:
            places = rule.places_for(actor)
            grants = [rule.grants[place] for place in places]
            columns = masked_columns(grants)
            is_ruled = all(grant.rows is not None for grant in grants)
            if is_ruled:
                ruled.add(rule.key)

            is_limited = is_ruled or columns
            if is_limited:
                counting[rule.key] = places
                for column in columns:
                    masked.add((*rule.key, column))

                used.update(*map(_placeholders, grants))

        if not counting:
            return OPEN

        return ActorRows(
            ruled=frozenset(ruled),
            masked=frozenset(masked),
            grants=tuple(sorted(counting.items())),
            values=_values_of(actor, used),
            rules=self,
        )

    async def check(self, server: KnownServer, plan: Plan | None = None) -> tuple[str, ...]:
        """Compare the rules with the server; remember the `problems`, and say new ones in the
        log.

        Args:
            plan: says why PostgreSQL can't plan a statement, None if it can
                (`databases.catalog.catalog.Plan`). With it, each grant is tried
                alone, which finds what only PostgreSQL knows: types, functions.
        """
        if plan is not None:
            tables, _ = bind(self._file, server)
            self._refusals = await refused_grants(tables, plan)
            self._bound = None

        self._bound_to(server)
        return self.problems

    def rewritten(
        self, statement: str, rows: ActorRows, server: KnownServer, qualify: Qualify
    ) -> str:
        bound = self._bound_to(server)
        key = (rows, statement, qualify)
        done = bound.rewritten.get(key)
        if done is None:
            done = bound.rewritten[key] = self._rewrite(statement, rows, bound, qualify)
            while len(bound.rewritten) > _REMEMBERED:
                bound.rewritten.popitem(last=False)

        return done

    def limits(self, rows: ActorRows, server: KnownServer) -> RowLimits:
        relations = self._relations(rows, self._bound_to(server))
        closed: set[Key] = set()
        ruled: set[Key] = set()
        masked: set[tuple[str, str, str]] = set()
        for key in server.catalog.by_key:
            try:
                table = relations.rule(Read(key))
            except ForbiddenObject:
                closed.add(key)
                continue

            if table is not None:
                if table.rule in rows.ruled:
                    ruled.add(key)

                for *rule, column in rows.masked:
                    if tuple(rule) == table.rule:
                        masked.add((*key, column))

        return RowLimits(frozenset(closed), frozenset(ruled), frozenset(masked))

    def _rewrite(self, statement: str, rows: ActorRows, bound: _Bound, qualify: Qualify) -> str:
        facts, tables = bound.server.facts, bound.server.catalog.by_key
        self._unseen.check(statement, facts)
        counting = dict(rows.grants)

        def show(table: BoundTable, source: Node, columns: Sequence[str]) -> Node:
            return subquery(table, counting[table.rule], rows.values, source, columns)

        def finish(select: Node) -> bool:
            is_qualified = qualify(select)
            if self._unseen.qualify(select):
                return True

            return is_qualified

        rule = self._relations(rows, bound).of
        return rewrite(statement, facts, tables, rule, show, finish)

    def _relations(self, rows: ActorRows, bound: _Bound) -> Relations:
        limited = frozenset(key for key, _ in rows.grants)
        if limited not in bound.relations:
            relations = Relations(
                bound.server.facts, bound.tables, limited, self._file.views, self._file.functions
            )
            bound.relations[limited] = relations

        return bound.relations[limited]

    def _bound_to(self, server: KnownServer) -> _Bound:
        bound = self._bound
        if (
            bound is None
            or server.facts is not bound.server.facts
            or server.catalog is not bound.server.catalog
        ):
            tables, problems = bind(self._file, server, self._refusals)
            for problem in problems:
                if problem not in self.problems:
                    _log.error("ROW_RULES: %s", problem)

            self.problems = problems
            bound = self._bound = _Bound(server, tables, {}, OrderedDict())

        return bound


def _values_of(actor: Actor, used: set[str]) -> ActorValues:
    """Return the actor's values for the placeholders that are used."""
    user_id = None
    if "user_id" in used:
        user_id = actor.user_id

    groups: list[str] = []
    if "groups" in used:
        groups = sorted(set(actor.groups))

    attributes = []
    for name, values in actor.attributes:
        if f"{ATTRIBUTE}.{name}" in used:
            attributes.append((name, tuple(sorted(set(values)))))

    return ActorValues(user_id, tuple(groups), tuple(attributes))


def _placeholders(grant: Grant) -> frozenset[str]:
    """Return the names of the placeholders in the grant's SQL."""
    return frozenset().union(*(sql.placeholders for sql in grant.expressions))
