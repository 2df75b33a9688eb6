"""Row-level security as the connected role meets it: which tables have it, and what shows their
rows past the policies.

Policies don't hold for superusers, for roles with BYPASSRLS, and for a table's owner unless it is
FORCEd. A view reads with the rights of its owner unless it is a `security_invoker` (PostgreSQL 15
and newer), a materialised view shows the rows that it was filled with, and a partition that is read
directly knows no policy of its table.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import psycopg2

from common.errors import DatabaseUnavailable
from common.text import Text
from databases.catalog import row_policy_texts as texts
from guard import ServerFacts
from guard.facts import Key
from postgres.arrays import parse_texts
from postgres.connection import Connection

_log = logging.getLogger(__name__)
_INVOKER_SINCE = 150000

_ROLE = """
SELECT r.rolname, r.rolsuper, r.rolbypassrls
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""

# schema, name, whether its policies don't hold for the role because it owns the table
_SECURED = """
SELECT n.nspname, c.relname,
       NOT c.relforcerowsecurity AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity AND c.relkind IN ('r', 'p')
ORDER BY n.nspname, c.relname
"""

# Pairs of a table with row-level security and a relative without: a partition or child (true), or a
# parent.
_RELATIVES = """
WITH RECURSIVE below (relative, secured) AS (
    SELECT i.inhrelid, c.oid FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
    WHERE c.relrowsecurity
    UNION SELECT i.inhrelid, b.secured FROM below b
    JOIN pg_catalog.pg_inherits i ON i.inhparent = b.relative
), above (relative, secured) AS (
    SELECT i.inhparent, c.oid FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE c.relrowsecurity
    UNION SELECT i.inhparent, a.secured FROM above a
    JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.relative
), related AS (
    SELECT relative, secured, true AS is_child FROM below
    UNION SELECT *, false FROM above
)
SELECT r.relative, r.secured, r.is_child FROM related r
JOIN pg_catalog.pg_class c ON c.oid = r.relative
WHERE NOT c.relrowsecurity AND c.relkind IN ('r', 'p')
"""

# whether it is a child; schema and name of such a relative that the role may read, and of its table
_READABLE_RELATIVES = f"""
SELECT r.is_child, n.nspname, c.relname, sn.nspname, s.relname FROM ({_RELATIVES}) r
JOIN pg_catalog.pg_class c ON c.oid = r.relative
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class s ON s.oid = r.secured
JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace
WHERE pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1 DESC, 2, 3, 4, 5
"""

# For views over tables with row-level security or relatives of these, at any depth: OID, schema,
# name, kind, owner, whether it reads with the rights of whoever asks, whether the role may read it,
# the OIDs of what it reads, and of the tables whose policies don't hold for its owner
_VIEWS = f"""
WITH RECURSIVE edge AS MATERIALIZED (
    SELECT DISTINCT w.ev_class AS view, d.refobjid AS read FROM pg_catalog.pg_rewrite w
    JOIN pg_catalog.pg_class c ON c.oid = w.ev_class AND c.relkind IN ('v', 'm')
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
        AND d.objid = w.oid
        AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class
), reader AS (
    (SELECT oid FROM pg_catalog.pg_class WHERE relrowsecurity
     UNION SELECT relative FROM ({_RELATIVES}) r)
    UNION SELECT e.view FROM reader r JOIN edge e ON e.read = r.oid
)
SELECT c.oid, n.nspname, c.relname, c.relkind, o.rolname,
       coalesce((SELECT w.option_value IN ('true', 'on', 'yes', '1')
                 FROM pg_catalog.pg_options_to_table(c.reloptions) w
                 WHERE w.option_name = 'security_invoker'), false),
       pg_catalog.has_any_column_privilege(c.oid, 'SELECT'),
       (SELECT pg_catalog.array_agg(e.read) FROM edge e WHERE e.view = c.oid),
       (SELECT pg_catalog.array_agg(t.oid) FROM pg_catalog.pg_class t
        WHERE t.relrowsecurity AND (o.rolsuper OR o.rolbypassrls OR NOT t.relforcerowsecurity
                                    AND pg_catalog.pg_has_role(c.relowner, t.relowner, 'USAGE')))
FROM reader r JOIN pg_catalog.pg_class c ON c.oid = r.oid AND c.relkind IN ('v', 'm')
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
ORDER BY n.nspname, c.relname
"""

# OID, schema and name of the tables with row-level security and of their relatives, and whether
# they have it
_TABLES = f"""
SELECT c.oid, n.nspname, c.relname, c.relrowsecurity
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity OR c.oid IN (SELECT relative FROM ({_RELATIVES}) r)
"""

# schema, name and owner of functions that run with their owner's rights and that the role may call
_DEFINERS = """
SELECT DISTINCT n.nspname, p.proname, o.rolname FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
WHERE p.prosecdef AND n.nspname <> 'pg_catalog'
    AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class ReachableObjects:
    """The relations and functions that statements may use.

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

    def __init__(self, reach: Callable[[ServerFacts], ReachableObjects]) -> None:
        self.problems: tuple[Text, ...] | None = None
        self._reach = reach

    async def secured(self, connection: Connection, facts: ServerFacts) -> frozenset[Key]:
        """Return the tables with row-level security; see `databases.catalog.catalog.Secure`.

        Raises:
            DatabaseUnavailable: the server hides them.
        """
        try:
            policies = await read_policies(connection, self._reach(facts))
        except psycopg2.ProgrammingError as exc:
            _log.error(
                "ROW_CONTEXT: what has row-level security can't be read: SQLSTATE %s", exc.pgcode
            )
            raise DatabaseUnavailable(texts.UNREADABLE) from exc

        noted = self.problems or ()
        for problem in policies.problems:
            if problem not in noted:
                _log.warning("ROW_CONTEXT: %s", problem.en)

        self.problems = policies.problems
        return policies.secured


@dataclass(frozen=True)
class Policies:
    """Tables with row-level security, and what bypasses it.

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


async def read_policies(connection: Connection, reach: ReachableObjects) -> Policies:
    """Find the tables with row-level security and what bypasses it; raises psycopg2's errors."""
    secured: list[Key] = []
    owned: list[Key] = []
    for schema, name, is_owned in (await connection.query(_SECURED)).rows:
        secured.append((schema, name))
        if is_owned == "t":
            owned.append((schema, name))

    if not secured:
        return Policies(problems=(texts.NONE,))

    problems = [
        *await _of_role(connection, owned),
        *await _of_relatives(connection, reach),
        *await _of_views(connection, reach),
        *await _of_functions(connection, reach),
    ]
    return Policies(frozenset(secured), tuple(problems))


async def _of_role(connection: Connection, owned: Iterable[Key]) -> list[Text]:
    """Return the problems of the connected role, and of the tables that it owns."""
    ((role, is_super, bypasses),) = (await connection.query(_ROLE)).rows
    if is_super == "t":  # who owns everything
        return [_filled_text(texts.SUPERUSER, role=role)]

    problems = [_filled_text(texts.OWNED, name=_dotted_name(key)) for key in owned]
    if bypasses == "t":
        problems.insert(0, _filled_text(texts.BYPASSES, role=role))

    return problems


async def _of_relatives(connection: Connection, reach: ReachableObjects) -> list[Text]:
    problems: list[Text] = []
    rows = (await connection.query(_READABLE_RELATIVES)).rows
    for is_child, schema, name, other_schema, other in rows:
        key = (schema, name)
        if not reach.may_read(key):
            continue

        saying = texts.CHILD if is_child == "t" else texts.PARENT
        secured = (other_schema, other)
        problems.append(_filled_text(saying, name=_dotted_name(key), other=_dotted_name(secured)))

    return problems


async def _of_views(connection: Connection, reach: ReachableObjects) -> list[Text]:
    views = await _read_views(connection)
    if not views:
        return []

    tables: dict[str, Key] = {}
    unsecured: set[str] = set()
    for oid, schema, name, has_policies in (await connection.query(_TABLES)).rows:
        tables[oid] = (schema, name)
        if has_policies == "f":
            unsecured.add(oid)

    passing = _Passing(views, tables, frozenset(unsecured))
    relatives = {tables[oid] for oid in unsecured}
    is_old = 0 < reach.version < _INVOKER_SINCE
    problems: list[Text] = []
    for oid, view in views.items():
        if not view.is_readable or not reach.may_read(view.key):
            continue

        past = passing.tables_past_policies(oid)
        if past:
            saying = _saying(view, is_old=is_old)
            if past <= relatives:
                saying = texts.VIEW_OF_RELATIVE

            names = ", ".join(sorted(map(_dotted_name, past)))
            problems.append(
                _filled_text(saying, name=_dotted_name(view.key), other=names, owner=view.owner)
            )

    return problems


def _saying(view: _View, *, is_old: bool) -> Text:
    """Return how to say that the view passes by policies; before PostgreSQL 15 it `is_old`."""
    if view.is_stored:
        return texts.STORED

    return texts.OLD_VIEW if is_old else texts.VIEW


async def _read_views(connection: Connection) -> dict[str, _View]:
    """Return the rows of `_VIEWS` by their OIDs."""
    views: dict[str, _View] = {}
    rows = (await connection.query(_VIEWS)).rows
    for oid, schema, name, kind, owner, invoker, readable, reads, passes in rows:
        views[oid] = _View(
            (schema, name),
            is_stored=kind == "m",
            owner=owner,
            is_invoker=invoker == "t",
            is_readable=readable == "t",
            reads=parse_texts(reads),
            owner_passes=frozenset(parse_texts(passes)),
        )

    return views


@dataclass
class _Passing:
    """Finds out which tables' policies a view passes by.

    Attributes:
        tables: those with row-level security, and their relatives.
        unsecured: the relatives, which have no policies of their own.
    """

    views: Mapping[str, _View]
    tables: Mapping[str, Key]
    unsecured: frozenset[str]
    _known: dict[tuple[str, frozenset[str] | None], frozenset[Key]] = field(default_factory=dict)

    def tables_past_policies(
        self, oid: str, reader: frozenset[str] | None = None
    ) -> frozenset[Key]:
        """Return the tables of which the view shows rows that policies would hide.

        Args:
            reader: tables whose policies don't hold for whose rights it is read with; None: the
                connected role, of which other problems speak.
        """
        if (oid, reader) not in self._known:
            # Until it is known: views may lead back to themselves.
            self._known[oid, reader] = frozenset()
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
            elif self._is_open(read, reader):
                yield self.tables[read]

    def _is_open(self, table: str, reader: frozenset[str] | None) -> bool:
        """Tell whether the reader's rights show all rows of the table."""
        if table in self.unsecured:
            return True

        return reader is not None and table in reader and table in self.tables


async def _of_functions(connection: Connection, reach: ReachableObjects) -> list[Text]:
    rows = (await connection.query(_DEFINERS)).rows
    owners = {(schema, name): owner for schema, name, owner in rows}  # overloads have one name
    return [
        _filled_text(texts.DEFINER, name=_dotted_name(key), owner=owner)
        for key, owner in owners.items()
        if reach.may_call(key)
    ]


def _dotted_name(key: Key) -> str:
    return ".".join(key)


def _filled_text(text: Text, **values: object) -> Text:
    return Text(text.zh.format(**values), text.en.format(**values))
