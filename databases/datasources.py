"""The databases that may be asked, by name: the only way to one, and never to one without its guard.

All actors share one pool of connections and one reading of the catalogue per database. What is judged and shown is kept
per database and rights, so that nobody is answered by what somebody with other rights may see.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from common.actor import Actor
from common.audit import Audit, NoAudit, Occasion
from common.errors import NotFound
from common.ports import Database, UrlSource
from common.text import Text
from databases.audited import AuditedDatabase
from databases.catalog import Annotate
from databases.guarded import GuardedDatabase, Prepare
from databases.options import EVERYBODY, DatabaseOptions, Rights
from databases.postgres import PostgresDatabase

DEFAULT = "default"
"""The database of questions that name none."""


@dataclass(frozen=True)
class Datasource:
    """A database that may be asked: where it is, how, and what its operator says of it."""

    source: UrlSource
    options: DatabaseOptions
    annotate: Annotate | None = None


class Datasources:
    """Opens databases for actors. Connects to nothing and starts no thread until one is first used.

    Args:
        datasources: the databases by name.
        audit: takes note of statements.
        prepare: see `GuardedDatabase`.

    Raises:
        AccessRuleError: an object in the options is not written as a rule.
    """

    def __init__(
        self, datasources: Mapping[str, Datasource], *, audit: Audit | None = None, prepare: Prepare | None = None
    ) -> None:
        self._audit = audit or NoAudit()
        self._shared = {name: _Shared(datasource, prepare) for name, datasource in datasources.items()}

    def open(self, name: str, actor: Actor, occasion: Occasion | None = None) -> Database:
        """The database as the actor may see it; calling it again costs nothing.

        Every actor may ask every database. The audit log is added here, so that no caller can forget to.

        Args:
            occasion: what statements are for; each is noted in the audit log. Without one nothing is noted: for
                looking at the catalogue and for judging statements, not for running them.

        Raises:
            NotFound: there is no database of that name; the message names those there are.
        """
        if name not in self._shared:
            raise NotFound(_unknown(name, self._shared))
        database = self._shared[name].guarded(actor)
        return database if occasion is None else AuditedDatabase(database, self._audit, occasion)

    @property
    def stuck_connections(self) -> int:
        """Connections that are taken by statements that PostgreSQL does not stop, of all databases."""
        return sum(shared.inner.stuck_connections for shared in self._shared.values())

    def close(self) -> None:
        """Closes idle connections; the next use opens new ones."""
        for shared in self._shared.values():
            shared.inner.close()


class _Shared:
    """What all actors share of one database, and the guarded ones by rights."""

    def __init__(self, datasource: Datasource, prepare: Prepare | None) -> None:
        self._options = datasource.options
        self._prepare = prepare
        self._group_denials = self._options.group_denials
        guard = self._options.guard()
        self.inner = PostgresDatabase(datasource.source, self._options, guard.visible, datasource.annotate)
        self._guarded = {EVERYBODY: GuardedDatabase(self.inner, guard, self._options.plan_limits, prepare)}

    def guarded(self, actor: Actor) -> GuardedDatabase:
        rights = self._rights_of(actor)
        return self._guarded.get(rights) or self._guarded.setdefault(rights, self._narrowed(rights))

    def _rights_of(self, actor: Actor) -> Rights:
        return Rights(frozenset().union(*(self._group_denials.get(group, ()) for group in actor.groups)))

    def _narrowed(self, rights: Rights) -> GuardedDatabase:
        guard = self._options.guard(rights)
        return GuardedDatabase(self.inner, guard, self._options.plan_limits, self._prepare, narrow=guard.visible)


def _unknown(name: str, names: Iterable[str]) -> Text:
    known = sorted(names)
    return Text(
        f"没有名为 {name} 的数据库，可用的数据库：{'、'.join(known)}。",
        f"There is no database named {name}; there are: {', '.join(known)}.",
    )
