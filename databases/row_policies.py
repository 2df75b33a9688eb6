"""Row-level security as the connected role meets it: which tables have it, and what shows their rows past the policies.

Policies don't hold for superusers, for roles with BYPASSRLS, and for a table's owner unless it is FORCEd. A view reads
with the rights of its owner unless it is a `security_invoker` (PostgreSQL 15 and newer), a materialised view shows the
rows that it was filled with, and a partition that is read directly knows no policy of its table.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import psycopg2

from common.errors import DatabaseUnavailable
from common.postgres.arrays import parse_array
from common.postgres.connection import Connection
from common.text import Text
from databases import row_policy_texts as texts
from databases.guard import ServerFacts
from databases.guard.facts import Key

_log = logging.getLogger(__name__)
_INVOKER_SINCE = 150000

_ROLE = """
SELECT r.rolname, r.rolsuper, r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""

# schema, name, whether its policies don't hold for the role because it owns the table
_SECURED = """
SELECT n.nspname, c.relname,
       NOT c.relforcerowsecurity AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity AND c.relkind IN ('r', 'p')
ORDER BY n.nspname, c.relname
"""

# schema and name of a partition or child without row-level security that the role may read, and of a table above it
# that has it
_CHILDREN = """
WITH RECURSIVE below (child, parent) AS (
    SELECT i.inhrelid, c.oid FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
    WHERE c.relrowsecurity
    UNION SELECT i.inhrelid, b.parent FROM below b JOIN pg_catalog.pg_inherits i ON i.inhparent = b.child)
SELECT n.nspname, c.relname, pn.nspname, p.relname FROM below b
JOIN pg_catalog.pg_class c ON c.oid = b.child JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class p ON p.oid = b.parent JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2, 3, 4
"""

# schema and name of a table without row-level security, and of one below it that has it
_PARENTS = """
WITH RECURSIVE above (child, parent) AS (
    SELECT c.oid, i.inhparent FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE c.relrowsecurity
    UNION SELECT a.child, i.inhparent FROM above a JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.parent)
SELECT n.nspname, p.relname, cn.nspname, c.relname FROM above a
JOIN pg_catalog.pg_class p ON p.oid = a.parent JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
JOIN pg_catalog.pg_class c ON c.oid = a.child JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
WHERE NOT p.relrowsecurity AND pg_catalog.has_any_column_privilege(p.oid, 'SELECT')
ORDER BY 1, 2, 3, 4
"""

# For views over tables with row-level security, at any depth: OID, schema, name, kind, owner, whether it reads with the
# rights of whoever asks, whether the role may read it, the OIDs of what it reads, and of the tables among these whose
# policies don't hold for its owner
_VIEWS = """
WITH RECURSIVE edge AS MATERIALIZED (
    SELECT DISTINCT w.ev_class AS view, d.refobjid AS read FROM pg_catalog.pg_rewrite w
    JOIN pg_catalog.pg_class c ON c.oid = w.ev_class AND c.relkind IN ('v', 'm')
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
        AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class
), reader AS (
    SELECT oid FROM pg_catalog.pg_class WHERE relrowsecurity
    UNION SELECT e.view FROM reader r JOIN edge e ON e.read = r.oid
)
SELECT c.oid, n.nspname, c.relname, c.relkind, o.rolname,
       coalesce((SELECT w.option_value IN ('true', 'on', 'yes', '1')
                 FROM pg_catalog.pg_options_to_table(c.reloptions) w WHERE w.option_name = 'security_invoker'), false),
       pg_catalog.has_any_column_privilege(c.oid, 'SELECT'),
       (SELECT pg_catalog.array_agg(e.read) FROM edge e WHERE e.view = c.oid),
       (SELECT pg_catalog.array_agg(t.oid) FROM pg_catalog.pg_class t
        WHERE t.relrowsecurity AND (o.rolsuper OR o.rolbypassrls OR NOT t.relforcerowsecurity
                                    AND pg_catalog.pg_has_role(c.relowner, t.relowner, 'USAGE')))
FROM reader r JOIN pg_catalog.pg_class c ON c.oid = r.oid AND c.relkind IN ('v', 'm')
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
ORDER BY n.nspname, c.relname
"""

# OID, schema and name of the tables with row-level security
_TABLES = """
SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relrowsecurity
"""

# schema, name and owner of functions that run with their owner's rights and that the role may call
_DEFINERS = """
SELECT DISTINCT n.nspname, p.proname, o.rolname FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
WHERE p.prosecdef AND n.nspname <> 'pg_catalog' AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Reach:
    """What statements may read and call.

    Attributes:
        may_read: whether the operator's settings leave the relation open.
        may_call: whether they let statements call the function of that schema and name.
        version: the server's, as a number.
    """

    may_read: Callable[[Key], bool]
    may_call: Callable[[Key], bool]
    version: int


class PolicyCheck:
    """Looks at the policies whenever the catalogue is read, and says in the log what is new.

    Args:
        reach: what statements may read and call on the server that the facts describe.

    Attributes:
        problems: what shows rows past policies, as of the latest reading; None before the first.
    """

    def __init__(self, reach: Callable[[ServerFacts], Reach]) -> None:
        self.problems: tuple[Text, ...] | None = None
        self._reach = reach

    async def secured(self, connection: Connection, facts: ServerFacts) -> frozenset[Key]:
        """The tables with row-level security; see `databases.catalog.Secure`.

        Raises:
            DatabaseUnavailable: the server hides them.
        """
        try:
            found = await read_policies(connection, self._reach(facts))
        except psycopg2.ProgrammingError as exc:
            _log.error("ROW_CONTEXT: what has row-level security can't be read: SQLSTATE %s", exc.pgcode)
            raise DatabaseUnavailable(texts.UNREADABLE) from exc
        for problem in found.problems:
            if problem not in (self.problems or ()):
                _log.warning("ROW_CONTEXT: %s", problem.en)
        self.problems = found.problems
        return found.secured


@dataclass(frozen=True)
class Policies:
    """What was found.

    Attributes:
        secured: the tables with row-level security.
        problems: what shows rows past their policies, and what to do about it.
    """

    secured: frozenset[Key] = frozenset()
    problems: tuple[Text, ...] = ()


@dataclass
class _View:
    """A row of `_VIEWS`."""

    key: Key
    is_stored: bool
    owner: str
    is_invoker: bool
    is_readable: bool
    reads: tuple[str, ...]
    owner_passes: frozenset[str]


async def read_policies(connection: Connection, reach: Reach) -> Policies:
    """Looks for tables with row-level security and what bypasses it; raises psycopg2's errors."""
    secured = [(_key(schema, name), owned) for schema, name, owned in (await connection.query(_SECURED)).rows]
    problems = [*await _of_role(connection), *(_owned(key) for key, owned in secured if owned == "t")]
    problems += await _of_families(connection, reach)
    problems += await _of_views(connection, reach)
    problems += await _of_functions(connection, reach)
    if not secured:
        problems = [texts.NONE]
    return Policies(frozenset(key for key, _ in secured), tuple(problems))


async def _of_role(connection: Connection) -> list[Text]:
    ((role, is_super, bypasses),) = (await connection.query(_ROLE)).rows
    if is_super == "t":
        return [_filled(texts.SUPERUSER, role=role)]
    return [_filled(texts.BYPASSES, role=role)] if bypasses == "t" else []


async def _of_families(connection: Connection, reach: Reach) -> list[Text]:
    found = []
    for saying, query in ((texts.CHILD, _CHILDREN), (texts.PARENT, _PARENTS)):
        for schema, name, other_schema, other in (await connection.query(query)).rows:
            key, related = _key(schema, name), _key(other_schema, other)
            if reach.may_read(key):
                found.append(_filled(saying, name=_named(key), other=_named(related)))
    return found


async def _of_views(connection: Connection, reach: Reach) -> list[Text]:
    views = {}
    for oid, schema, name, kind, owner, invoker, readable, reads, passes in (await connection.query(_VIEWS)).rows:
        views[str(oid)] = _View(
            _key(schema, name),
            kind == "m",
            str(owner),
            invoker == "t",
            readable == "t",
            tuple(parse_array(reads or "{}", str)),
            frozenset(parse_array(passes or "{}", str)),
        )
    if not views:
        return []
    tables = {str(oid): _key(schema, name) for oid, schema, name in (await connection.query(_TABLES)).rows}
    passing = _Passing(views, tables)
    is_old = 0 < reach.version < _INVOKER_SINCE
    found = []
    for oid, view in views.items():
        past = passing.tables_past_policies(oid) if view.is_readable and reach.may_read(view.key) else frozenset()
        if past:
            saying = texts.STORED if view.is_stored else texts.OLD_VIEW if is_old else texts.VIEW
            names = ", ".join(sorted(map(_named, past)))
            found.append(_filled(saying, name=_named(view.key), other=names, owner=view.owner))
    return found


@dataclass
class _Passing:
    """Finds out which tables' policies a view passes by."""

    views: Mapping[str, _View]
    tables: Mapping[str, Key]
    _known: dict[tuple[str, frozenset[str] | None], frozenset[Key]] = field(default_factory=dict)

    def tables_past_policies(self, oid: str, reader: frozenset[str] | None = None) -> frozenset[Key]:
        """The tables of which the view shows rows that policies would hide.

        Args:
            reader: tables whose policies don't hold for whose rights it is read with; None: the connected role, of
                which other problems speak.
        """
        if (oid, reader) not in self._known:
            self._known[oid, reader] = frozenset()  # until it is known: views may lead back to themselves
            self._known[oid, reader] = frozenset(self._past(self.views[oid], reader))
        return self._known[oid, reader]

    def _past(self, view: _View, reader: frozenset[str] | None) -> Iterator[Key]:
        if view.is_stored:
            reader = frozenset(self.tables)
        elif not view.is_invoker:
            reader = view.owner_passes
        for read in view.reads:
            if read in self.views:
                yield from self.tables_past_policies(read, reader)
            elif read in self.tables and reader is not None and read in reader:
                yield self.tables[read]


async def _of_functions(connection: Connection, reach: Reach) -> list[Text]:
    rows = (await connection.query(_DEFINERS)).rows
    owners = {_key(schema, name): str(owner) for schema, name, owner in rows}
    return [_filled(texts.DEFINER, name=_named(key), owner=owners[key]) for key in owners if reach.may_call(key)]


def _owned(key: Key) -> Text:
    return _filled(texts.OWNED, name=_named(key))


def _key(schema: object, name: object) -> Key:
    return (str(schema), str(name))


def _named(key: Key) -> str:
    return ".".join(key)


def _filled(text: Text, **values: object) -> Text:
    return Text(text.zh.format(**values), text.en.format(**values))
