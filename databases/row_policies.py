"""Row-level security as the connected role meets it: which tables have it, and what shows their rows past the policies.

Policies don't hold for superusers, for roles with BYPASSRLS, and for a table's owner unless it is FORCEd. A view reads
with the rights of its owner unless it is a `security_invoker` (PostgreSQL 15 and newer), a materialised view shows the
rows that it was filled with, and a partition that is read directly knows no policy of its table.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import psycopg2

from common.errors import DatabaseUnavailable
from common.postgres.arrays import parse_array
from common.postgres.connection import Connection
from common.text import Text
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

# schema and name of a partition or child without row-level security that the role may read, and of the table that has it
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
            raise DatabaseUnavailable(_UNREADABLE) from exc
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
        problems = [_NONE]
    return Policies(frozenset(key for key, _ in secured), tuple(problems))


async def _of_role(connection: Connection) -> list[Text]:
    ((role, is_super, bypasses),) = (await connection.query(_ROLE)).rows
    if is_super == "t":
        return [_filled(_SUPERUSER, role=role)]
    return [_filled(_BYPASSES, role=role)] if bypasses == "t" else []


async def _of_families(connection: Connection, reach: Reach) -> list[Text]:
    found = []
    for saying, query in ((_CHILD, _CHILDREN), (_PARENT, _PARENTS)):
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
            saying = _STORED if view.is_stored else _OLD_VIEW if is_old else _VIEW
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
    functions: defaultdict[Key, str] = defaultdict(str)
    for schema, name, owner in (await connection.query(_DEFINERS)).rows:
        functions[_key(schema, name)] = str(owner)
    return [_filled(_DEFINER, name=_named(key), owner=owner) for key, owner in functions.items() if reach.may_call(key)]


def _owned(key: Key) -> Text:
    return _filled(_OWNED, name=_named(key))


def _key(schema: object, name: object) -> Key:
    return (str(schema), str(name))


def _named(key: Key) -> str:
    return ".".join(key)


def _filled(text: Text, **values: object) -> Text:
    return Text(text.zh.format(**values), text.en.format(**values))


_UNREADABLE = Text(
    "数据库隐藏了部分系统目录，无法确认行级安全策略（ROW_CONTEXT）。",
    "The server hides parts of its catalogue: it can't be told what has row-level security (ROW_CONTEXT).",
)
_NONE = Text(
    "数据库中没有任何表启用行级安全：ROW_CONTEXT 不起作用。请为表执行 ALTER TABLE … ENABLE ROW LEVEL SECURITY 并创建策略。",
    "no table has row-level security, so ROW_CONTEXT changes nothing: ALTER TABLE … ENABLE ROW LEVEL SECURITY, and "
    "create policies",
)
_SUPERUSER = Text(
    "数据库账号 {role} 是超级用户，任何策略对它都不生效：请改用普通账号连接。",
    "the role {role} is a superuser, for whom no policy holds: connect as a role that is none",
)
_BYPASSES = Text(
    "数据库账号 {role} 有 BYPASSRLS 属性，任何策略对它都不生效：请执行 ALTER ROLE … NOBYPASSRLS，或改用其他账号连接。",
    "the role {role} has BYPASSRLS, so that no policy holds for it: ALTER ROLE … NOBYPASSRLS, or connect as another",
)
_OWNED = Text(
    "数据库账号是 {name} 的所有者，其策略对它不生效：请执行 ALTER TABLE {name} FORCE ROW LEVEL SECURITY，或改用其他账号连接。",
    "the role owns {name}, whose policies therefore don't hold for it: ALTER TABLE {name} FORCE ROW LEVEL SECURITY, or "
    "connect as another role",
)
_CHILD = Text(
    "{name} 是 {other} 的分区或子表，自身没有启用行级安全，直接读取时不受策略限制：请为它启用行级安全，或收回其 SELECT 权限。",
    "{name} is a partition or child of {other} without row-level security of its own, so that reading it directly shows "
    "all rows: enable it there too, or revoke SELECT on it",
)
_PARENT = Text(
    "读取 {name} 会同时读取 {other}，但不执行后者的策略：请也为 {name} 启用行级安全。",
    "reading {name} reads {other} as well, without the policies of {other}: enable row-level security on {name} too",
)
_VIEW = Text(
    "视图 {name} 以其所有者 {owner} 的权限读取 {other}，策略对该所有者不生效：请执行 ALTER VIEW … SET (security_invoker = true)"
    "（也可能是它所读取的视图），或用 DENIED_OBJECTS 禁止读取。",
    "the view {name} reads {other} past the policies, which don't hold for the owner of it ({owner}) or of a view that "
    "it reads: ALTER VIEW … SET (security_invoker = true), or close it by DENIED_OBJECTS",
)
_OLD_VIEW = Text(
    "视图 {name} 以其所有者 {owner} 的权限读取 {other}，策略对该所有者不生效：PostgreSQL 15 以下没有 security_invoker，请把视图"
    "交给受策略限制的所有者，或用 DENIED_OBJECTS 禁止读取。",
    "the view {name} reads {other} past the policies, which don't hold for the owner of it ({owner}) or of a view that "
    "it reads: before PostgreSQL 15 there is no security_invoker, so give it to an owner for whom they hold, or close "
    "it by DENIED_OBJECTS",
)
_STORED = Text(
    "物化视图 {name} 保存了 {other} 的行，任何人都能看到全部：请收回其 SELECT 权限，或用 DENIED_OBJECTS 禁止读取。",
    "the materialised view {name} holds rows of {other} and shows them to everybody: revoke SELECT on it, or close it "
    "by DENIED_OBJECTS",
)
_DEFINER = Text(
    "ALLOWED_FUNCTIONS 允许的函数 {name} 以其所有者 {owner} 的权限运行（SECURITY DEFINER），可能绕过策略：请确认它不返回受限的行，"
    "否则从 ALLOWED_FUNCTIONS 中移除。",
    "the function {name} of ALLOWED_FUNCTIONS runs with the rights of its owner {owner} (SECURITY DEFINER), and may read "
    "past policies: take it out of ALLOWED_FUNCTIONS unless it gives nothing that they hide",
)
