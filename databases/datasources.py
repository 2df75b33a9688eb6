"""The databases that may be asked, by name: the only way to one, and never to one without its
guard.

All actors share one pool of connections and one reading of the catalogue per database. What is
judged and shown is kept per database and rights, so that nobody is answered by what somebody with
other rights may see.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from common.actor import Actor
from common.audit import Audit, NoAudit, Occasion
from common.errors import NotFound
from common.ports import Database, Definitions, UrlSource
from common.text import Text
from common.values import Catalog
from databases.catalog.catalog import Annotate, Knowledge
from databases.catalog.readers import readers_of
from databases.catalog.row_policies import PolicyCheck, ReachableObjects
from databases.catalog.view_sources import ViewSources
from databases.engines.capabilities import Capabilities
from databases.execution.audited import AuditedDatabase
from databases.execution.guarded import ActorDatabase, GuardedDatabase, Prepare
from databases.execution.plan_estimate import CostLimits
from databases.execution.postgres import PostgresDatabase
from databases.options import EVERYBODY, DatabaseOptions, DatabaseRights
from databases.row_context import RowContext
from databases.row_view import RowView, without_row_facts
from guard import Guard, ServerFacts
from guard.facts import Key, Name
from guard.functions import FunctionRule
from guard.row_rules import OPEN, ActorRows
from postgres.pool import ConnectionCounts

NO_DATABASE = Text("没有您可以查询的数据库。", "There is no database that you may ask.")
NO_FILES = Text(
    "您现在没有可以查询的文件：还没有上传，或者已被删除。"
    "请上传文件并确认导入（POST /api/v0/files）。",
    "You have no files that can be asked: none was uploaded, or they have been deleted. Upload one "
    "and confirm it (POST /api/v0/files).",
)
DEFAULT = "default"
"""The database of questions that name none."""
_MOST_PARTS = 100  # of databases that are divided, of which something is known
_MOST_CONNECTED = 8  # of these, that keep idle connections


@dataclass(frozen=True)
class Datasource:
    """A database that may be asked: where it is, how, and what its operator says of it.

    Attributes:
        groups: the groups of actors that may ask it; None: every actor. For others it does not
            exist.
        part_of: gives the part of it that an actor has, as a database of its own with a catalogue
            and connections of its own: the same object while it is the same part, None where the
            actor has none. Without it all actors ask the whole.
    """

    source: UrlSource
    options: DatabaseOptions
    annotate: Annotate | None = None
    groups: frozenset[str] | None = None
    part_of: "Callable[[Actor], Datasource | None] | None" = None

    def is_open_to(self, actor: Actor) -> bool:
        """Tell whether the actor may ask it."""
        if self.part_of is not None:
            return self.part_of(actor) is not None

        return self.groups is None or not self.groups.isdisjoint(actor.groups)


@dataclass(frozen=True)
class RowProblems:
    """The ways by which rows that rules mean to hide are shown.

    Attributes:
        context: past the server's policies; None where these are told nothing (`ROW_CONTEXT` off).
        rules: mistakes in the file of row rules; None without one.
    """

    context: tuple[Text, ...] | None
    rules: tuple[str, ...] | None


class Datasources:
    """Opens databases for actors. Connects to nothing and starts no thread until one is first used.

    Args:
        datasources: the databases by name.
        audit: takes note of statements.
        prepare: see `GuardedDatabase`.
        span: see `PostgresDatabase`.

    Raises:
        AccessRuleError: an object in the options is not written as a rule.
    """

    def __init__(
        self,
        datasources: Mapping[str, Datasource],
        *,
        audit: Audit | None = None,
        prepare: Prepare | None = None,
        span: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._audit = audit or NoAudit()
        self._prepare = prepare
        self._span = span
        self._shared: dict[str, _Shared] = {}
        self._parts: OrderedDict[int, _Shared] = OrderedDict()
        self.replace(datasources)

    def replace(self, datasources: Mapping[str, Datasource]) -> None:
        """Ask these databases from now on; those that stay the same object keep what is known.

        Statements that run on others end as they would have; their idle connections are closed.

        Raises:
            AccessRuleError: as the constructor; then nothing has changed.
        """
        before = self._shared
        shared = {}
        for name, datasource in datasources.items():
            entry = before.get(name)
            if entry is None or entry.datasource is not datasource:
                entry = _Shared(datasource, self._prepare, self._span)

            shared[name] = entry

        self._shared = shared
        for name, entry in before.items():
            if shared.get(name) is not entry:
                entry.inner.close()

    def names(self, actor: Actor) -> tuple[str, ...]:
        """Return the names of the databases that the actor may ask."""
        open_names = []
        for name, shared in self._shared.items():
            if shared.datasource.is_open_to(actor):
                open_names.append(name)

        return tuple(open_names)

    def open(self, name: str, actor: Actor, occasion: Occasion | None = None) -> Database:
        """Return the database as the actor may see it; calling it again costs nothing.

        The audit log is added here, so that no caller can forget to.

        Args:
            occasion: what statements are for; each is noted in the audit log. Without one nothing
                is noted: for looking at the catalogue and for judging statements, not for running
                them.

        Raises:
            NotFound: there is no database of that name for the actor; the message names those
                there are.
        """
        database = self._found_for(actor, name).asked_by(actor)
        if occasion is None:
            return database

        return AuditedDatabase(database, self._audit, occasion)

    def definitions(self, name: str) -> Definitions:
        """Return the database's definitions whoever asks, without denials of groups or row rules.

        It is for comparing definitions and for planning: no rows can be read. Nothing of it may be
        shown to callers.

        Raises:
            NotFound: there is no database of that name.
        """
        return self._shared_by_name(name).guarded(EVERYBODY)

    async def ping(self, name: str) -> None:
        """Return when the database has answered.

        Raises:
            DatabaseUnavailable: it does not.
            NotFound: there is no database of that name.
        """
        await self._shared_by_name(name).guarded(EVERYBODY).ping()

    async def view_sources(self, name: str, actor: Actor) -> tuple[ViewSources, ...]:
        """Return the views that the actor may see, each with what it reads of what it may see.

        The definitions name other relations, too: they are for working out, not for showing.

        Raises:
            NotFound: as `open`.
        """
        shared = self._found_for(actor, name)
        catalog = await shared.asked_by(actor).catalog()
        open_views = []
        for view in await shared.inner.view_sources():
            if view.view in catalog.by_key:
                open_views.append(view.among(catalog))

        return tuple(open_views)

    async def reread(self, name: str) -> None:
        """Read the database's catalogue again in this process.

        Raises:
            DatabaseUnavailable, QueryTimeout: it can't be read and there is no earlier copy.
            NotFound: there is no database of that name.
        """
        await self._shared_by_name(name).inner.reread()

    async def capabilities(self, name: str) -> Capabilities:
        """Return what the database's server can do, whether that is enough or not.

        Raises:
            DatabaseUnavailable, QueryTimeout: it can't be found out.
            NotFound: there is no database of that name.
        """
        return await self._shared_by_name(name).inner.capabilities()

    def row_problems(self, name: str) -> RowProblems:
        """Return what shows rows past the rules, as far as the database was read.

        Raises:
            NotFound: there is no database of that name.
        """
        return self._shared_by_name(name).row_problems()

    def _shared_by_name(self, name: str) -> "_Shared":
        shared = self._shared.get(name)
        if shared is None:
            raise NotFound(_unknown_name_text(name, self._shared))

        return shared

    def _found_for(self, actor: Actor, name: str) -> "_Shared":
        shared = self._shared.get(name)
        if shared is None or not shared.datasource.is_open_to(actor):
            raise NotFound(self.no_files(name) or _unknown_name_text(name, self.names(actor)))
        if shared.datasource.part_of is None:
            return shared

        part = shared.datasource.part_of(actor)
        if part is None:  # it has gone since
            raise NotFound(NO_FILES)

        return self._part(part)

    def no_files(self, name: str) -> Text | None:
        """Return what to say to those who have no part of a database; None: it has no parts."""
        shared = self._shared.get(name)
        if shared is None or shared.datasource.part_of is None:
            return None

        return NO_FILES

    def _part(self, part: Datasource) -> "_Shared":
        """Return what is known of a part.

        What was asked longest ago is forgotten, and before that gives up its idle connections.
        """
        latest = islice(reversed(self._parts), _MOST_CONNECTED)
        if id(part) not in latest:
            self._disconnect_others()

        shared = self._parts.get(id(part))
        if shared is None:  # the entry holds the object, so that no other gets its id
            shared = _Shared(part, self._prepare, self._span)
            self._parts[id(part)] = shared

        self._parts.move_to_end(id(part))
        while len(self._parts) > _MOST_PARTS:
            _, left = self._parts.popitem(last=False)
            left.inner.close()

        return shared

    def _disconnect_others(self) -> None:
        """Close idle connections of parts but the latest: a server has a hundred for all."""
        for older in islice(reversed(self._parts.values()), _MOST_CONNECTED - 1, None):
            older.inner.close()

    def stuck_connections(self, name: str) -> int:
        """Return the connections of the database that hold statements PostgreSQL does not stop.

        Raises:
            NotFound: there is no database of that name.
        """
        return self._shared_by_name(name).inner.stuck_connections

    def connections(self) -> ConnectionCounts:
        """Return how many connections to all databases there are now, and who waits for one."""
        total = ConnectionCounts()
        for shared in (*self._shared.values(), *self._parts.values()):
            total += shared.inner.connections

        return total

    def close(self) -> None:
        """Close idle connections; the next use opens new ones."""
        for shared in (*self._shared.values(), *self._parts.values()):
            shared.inner.close()


class _Shared:
    """The part of one database that all actors share, and the guarded ones by rights."""

    def __init__(
        self,
        datasource: Datasource,
        prepare: Prepare | None,
        span: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.datasource = datasource
        self._options = datasource.options
        self._prepare = prepare
        self._group_denials = self._options.group_denials
        guard = self._options.guard()
        self._policies = PolicyCheck(partial(_reach, guard)) if self._options.row_context else None
        secure = self._policies.secured if self._policies else None
        self.inner = PostgresDatabase(
            datasource.source, self._options, guard.visible, datasource.annotate, secure, span
        )
        self._plan_limits = CostLimits(
            cost=self._options.max_plan_cost, rows=self._options.max_plan_rows
        )
        self._guarded = {EVERYBODY: GuardedDatabase(self.inner, guard, self._plan_limits, prepare)}

    def asked_by(self, actor: Actor) -> GuardedDatabase | ActorDatabase:
        rows = self._rows_of(actor)
        guarded = self.guarded(DatabaseRights.of(self._denied_names(actor), rows), rows)
        if rows.is_open and not self._options.row_context:
            return guarded

        return ActorDatabase(
            guarded, RowView(rows, RowContext.of(actor) if self._options.row_context else None)
        )

    def guarded(self, rights: DatabaseRights, rows: ActorRows = OPEN) -> GuardedDatabase:
        return self._guarded.get(rights) or self._guarded.setdefault(
            rights, self._database_for_rights(rights, rows)
        )

    def row_problems(self) -> RowProblems:
        rules = self._options.row_rules
        policies = self._policies
        return RowProblems(
            context=None if policies is None else policies.problems or (),
            rules=None if rules is None else rules.problems,
        )

    def _rows_of(self, actor: Actor) -> ActorRows:
        rules = self._options.row_rules
        if rules is None:
            return OPEN

        return rules.of(actor if actor.is_vouched_for else replace(actor, user_id=None))

    def _denied_names(self, actor: Actor) -> frozenset[Name]:
        return frozenset().union(*(self._group_denials.get(group, ()) for group in actor.groups))

    def _database_for_rights(self, rights: DatabaseRights, rows: ActorRows) -> GuardedDatabase:
        guard = self._options.guard(rights)
        limits = self._plan_limits
        if not rights.hides_rows:
            return GuardedDatabase(
                self.inner, guard, limits, self._prepare, narrow=partial(_visible, guard)
            )

        return GuardedDatabase(
            self.inner,
            guard,
            limits,
            self._prepare,
            narrow=lambda knowledge: _without_hidden(_visible(guard, knowledge), rows, knowledge),
            hides=partial(_hidden, rows),
        )


def _visible(guard: Guard, knowledge: Knowledge) -> Catalog:
    return guard.visible(knowledge.catalog, knowledge.facts)


def _without_hidden(catalog: Catalog, rows: ActorRows, knowledge: Knowledge) -> Catalog:
    """Return the catalogue without relations that these actors can't read, and without what is
    known of rows of others.

    What `rows` says here depends on nothing but what `DatabaseRights` compares.
    """
    limits = rows.limits(knowledge)
    if limits.closed:
        tables = tuple(table for table in catalog.tables if table.key not in limits.closed)
        catalog = replace(catalog, tables=tables).coherent()

    masked = {place[:2] for place in limits.masked}
    hiding = readers_of(limits.ruled, knowledge.facts) | (
        readers_of(masked, knowledge.facts) - masked
    )
    return without_row_facts(catalog, hiding, limits.masked)


def _hidden(rows: ActorRows, knowledge: Knowledge) -> frozenset[Key]:
    """Return the relations that show rows or values which may be hidden from these actors."""
    limits = rows.limits(knowledge)
    return readers_of({*limits.ruled, *(place[:2] for place in limits.masked)}, knowledge.facts)


def _reach(guard: Guard, facts: ServerFacts) -> ReachableObjects:
    return ReachableObjects(
        guard.access.may_read,
        FunctionRule(facts, guard.allowed_functions).is_configured,
        facts.version,
    )


def _unknown_name_text(name: str, names: Iterable[str]) -> Text:
    existing = sorted(names)
    if not existing:
        return NO_DATABASE

    return Text(
        f"没有名为 {name} 的数据库，可用的数据库：{'、'.join(existing)}。",
        f"There is no database named {name}; there are: {', '.join(existing)}.",
    )
