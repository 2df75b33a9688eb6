"""Judges which functions a query may call.

PostgreSQL itself marks which of its functions have side effects (`pg_proc.provolatile`). Those
marked IMMUTABLE or STABLE are allowed, and a few VOLATILE ones that only read a clock or draw
random numbers. Some functions without side effects do harm, too: `DENIED` refuses, by category,
those that run SQL given as text or read files, sessions, settings, privileges or the catalogue.
Functions of users and extensions are allowed only by name, in the configuration.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from common.errors import ForbiddenObject, InvalidSql, StatementRejected
from common.text import Text
from guard import refusal_texts as texts
from guard.facts import Key, Name, ServerFacts
from guard.grammar import SYNTAX_SINCE
from guard.refusal_texts import refusal_of_object

HARMLESS_VOLATILE = frozenset(
    (
        "random",
        "random_normal",
        "gen_random_uuid",
        "uuidv4",
        "uuidv7",
        "clock_timestamp",
        "timeofday",
    )
    + ("array_sample", "array_shuffle")
)

_SQL_TEXT = Text(
    "它会执行以文本给出的SQL或导出整库结构", "it runs SQL given as text or dumps whole tables"
)
_SESSION = Text(
    "它读取或改变会话、账号或连接信息",
    "it reads or changes the session, its role or its connection",
)
_SETTINGS = Text("它读取或改变服务器设置", "it reads or changes server settings")
_CATALOG = Text("它读取系统目录或权限信息", "it reads the system catalogue or privileges")
_SERVER = Text(
    "它涉及服务器内部状态、文件、锁或系统目录",
    "it reaches server internals, files, locks or the catalogue",
)
_UNKNOWN = Text("不是已知的无副作用函数", "it is not known to be free of side effects")
_STATE = Text("它会改变数据库状态", "it changes the state of the database")

# The first match decides. All names with `pg_` are refused but the harmless ones that the last
# pattern names.
DENIED: tuple[tuple[re.Pattern[str], Text], ...] = tuple(
    (re.compile(rf"\A(?:{pattern})"), reason)
    for pattern, reason in (
        (r"(table|query|cursor|schema|database)_to_xml(schema|_and_xmlschema)?|ts_stat", _SQL_TEXT),
        (
            r"(current|session|system)_(user|role|query|database|catalog|schemas?)"
            r"|user|getpgusername",
            _SESSION,
        ),
        (r"inet_(client|server)_(addr|port)|row_security_active", _SESSION),
        (
            r"current_setting|set_config|setseed|get_current_ts_config|getdatabaseencoding|version",
            _SETTINGS,
        ),
        (r"icu_unicode_version|unicode_version", _SETTINGS),
        (r"(nextval|currval|setval|lastval)|txid_.*|lo_.*|loread|lowrite|currtid2?", _STATE),
        (r"has_.*_privilege|.*acl.*|format_type|(col|obj|shobj)_description|querytree", _CATALOG),
        (r"(to_)?reg(?!exp|r_).*", _CATALOG),
        (
            r".*_(in|recv)",
            _CATALOG,
        ),  # input functions of types take the type's OID; some look names up
        (r"fmgr_.*|satisfies_hash_partition|mxid_age", _SERVER),
        (
            r"oidvectortypes|unique_key_recheck|suppress_redundant_updates_trigger"
            r"|tsvector_update_trigger.*",
            _SERVER,
        ),
        (r"dblink.*|crosstab.*|connectby|xpath_table", _SQL_TEXT),
        (
            r"binary_upgrade_.*|RI_FKey_.*|brin_(de)?summarize_.*"
            r"|gin_clean_pending_list|amvalidate",
            _SERVER,
        ),
        (
            r"pg_(?!(typeof|column_size|collation_for|size_(pretty|bytes)"
            r"|input_(is_valid|error_info)|lsn)$).*",
            _SERVER,
        ),
    )
)


@dataclass(frozen=True)
class QualifiedName:
    """A name in a query: (`name`,), (`schema`, `name`) or (`database`, `schema`, `name`)."""

    parts: Name

    @property
    def name(self) -> str:
        """Return the name without its schema."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """Return the schema it is qualified with."""
        if len(self.parts) > 1:
            return self.parts[-2]

        return None


@dataclass(frozen=True)
class Call(QualifiedName):
    """A call of a function, as the tree has it.

    Attributes:
        arguments: the text of each that is a plain string; None for others.
        location: byte offset in the text.
    """

    arguments: tuple[str | None, ...] = ()
    location: int = 0


@dataclass(frozen=True)
class FunctionRule:
    """Judges calls. `allowed` are configured names: `schema.name`, `schema.*`, or `name` for any
    schema.
    """

    facts: ServerFacts
    allowed: Collection[str] = ()

    def as_read(self, calls: Iterable[Call], syntax: Iterable[Call]) -> list[Call]:
        """Return the calls as the connected server reads them.

        Args:
            calls: as our grammar reads them; it qualifies the names of functions that have a syntax
                of their own.
            syntax: expressions that are no calls in our grammar, but may be in an older one.
        """
        version = self.facts.version // 10_000
        if not version:
            return list(calls)

        as_read = [_as_read_by(version, call) for call in calls]
        as_read += [call for call in syntax if _is_newer(call.name, version)]
        return as_read

    def judge(self, call: Call) -> StatementRejected | None:
        """Return the refusal of `call`, or None when it may be called."""
        if self._is_builtin(call):
            return self._judge_builtin(call)

        schemas = self._schemas(call)
        is_builtin = not schemas and self.facts.is_complete
        if is_builtin:
            reason = denial(call)
            if reason:
                return _forbidden_function(call, reason)

            return _missing(call)

        return self._unless_configured(call, schemas)

    def judge_field(self, name: str) -> StatementRejected | None:
        """Return the refusal of `value.name` where that may be a call written like a field."""
        call = Call((name,))
        visible = self._visible_schemas(name)
        schemas = [schema for schema in visible if (schema, name) in self.facts.unary_routines]
        refusal = self._unless_configured(call, schemas)
        if refusal is not None:
            return refusal

        reason = None
        if self._may_be_unary(name):
            reason = self._reason_against(call)
        if reason:
            return _forbidden_function(call, reason)

        return None

    def _may_be_unary(self, name: str) -> bool:
        """Tell whether a built-in of that name may be called with one argument."""
        is_cast = name in self.facts.types
        is_known = is_cast or name in self.facts.unary_builtins
        if self.facts.is_complete:
            return is_known

        return is_known or "_" in name

    def is_configured(self, key: Key) -> bool:
        """Tell whether the operator lists the function of that schema and name."""
        return self._is_configured(key[0], Call(key))

    def _unless_configured(self, call: Call, schemas: Sequence[str]) -> StatementRejected | None:
        """Return the refusal of a function in one of the schemas that the operator doesn't list."""
        for schema in schemas:
            is_harmless = (schema, call.name) in self.facts.range_constructors
            is_allowed = is_harmless or self._is_configured(schema, call)
            if not is_allowed:
                return refusal_of_object(f"{schema}.{call.name}", texts.RISKY_FUNCTION)

        return None

    def _is_builtin(self, call: Call) -> bool:
        if call.schema is not None:
            return call.schema == "pg_catalog"
        if not self.facts.is_complete:
            return True
        if call.name in self.facts.builtins:
            return True

        # A cast may be written like a call.
        is_type = call.name in self.facts.types
        is_own = call.name in self.facts.routines
        return is_type and not is_own

    def _judge_builtin(self, call: Call) -> StatementRejected | None:
        reason = self._reason_against(call)
        if reason:
            return _forbidden_function(call, reason)

        is_function = call.name in self.facts.builtins
        is_known = is_function or call.name in self.facts.types
        if is_known or self._is_configured("pg_catalog", call):
            return None
        if self.facts.is_complete:
            return _missing(call)

        return _forbidden_function(call, _UNKNOWN)

    def _reason_against(self, call: Call) -> Text | None:
        """Return why a built-in may not be called; None: it may, or the operator lists it."""
        if self._is_configured("pg_catalog", call):
            return None

        return denial(call) or self._side_effect(call)

    def _side_effect(self, call: Call) -> Text | None:
        is_pure = self.facts.builtins.get(call.name, True)
        if is_pure or call.name in HARMLESS_VOLATILE:
            return None
        if call.name == "ts_rewrite":  # with a query as its text, which `denial` refuses
            return None

        return _STATE

    def _schemas(self, call: Call) -> Sequence[str]:
        """Return the schemas in which the called function may be, if it is no built-in."""
        if call.schema is None:
            return self._visible_schemas(call.name)

        existing = self.facts.routines.get(call.name, frozenset())
        is_named = call.schema in existing or not self.facts.is_complete
        if is_named:
            return (call.schema,)

        return ()

    def _visible_schemas(self, name: str) -> Sequence[str]:
        schemas = self.facts.routines.get(name, frozenset())
        return list(filter(schemas.__contains__, self.facts.search_path))

    def _is_configured(self, schema: str, call: Call) -> bool:
        return not {call.name, f"{schema}.{call.name}", f"{schema}.*"}.isdisjoint(self.allowed)


def _as_read_by(version: int, call: Call) -> Call:
    """Return the call as a server of that major version reads it: without our grammar's schema
    where the function has no syntax of its own there.
    """
    is_qualified_here = call.schema == "pg_catalog" and _is_newer(call.name, version)
    if is_qualified_here:
        return replace(call, parts=call.parts[-1:])

    return call


def _is_newer(name: str, version: int) -> bool:
    return SYNTAX_SINCE.get(name, 0) > version


def denial(call: Call) -> Text | None:
    """Return why a built-in is refused in which PostgreSQL sees no side effects; None: it isn't."""
    is_probe = call.name.startswith("pg_input_")
    if is_probe and not _is_harmless_probe(call):
        return _CATALOG

    # With two arguments, the second is SQL that it runs.
    runs_text = len(call.arguments) != 3  # noqa: PLR2004
    if runs_text and call.name == "ts_rewrite":
        return _SQL_TEXT

    name = call.name.removeprefix("_")  # `_regclass(…)` is a cast to regclass[]
    for pattern, reason in DENIED:
        if pattern.fullmatch(name):
            return reason

    return None


def probed_types(call: Call) -> list[str]:
    """Return the names in the type that `pg_input_is_valid(text, type)` is given."""
    is_probe = call.name.startswith("pg_input_")
    has_type = len(call.arguments) == 2  # noqa: PLR2004
    if not (is_probe and has_type):
        return []

    names = []
    for type_name in _TYPE_NAME.finditer(call.arguments[1] or ""):
        quoted = type_name["quoted"]
        name = type_name[0].lower()
        if quoted:
            name = quoted.replace('""', '"')

        names.append(name)

    return names


def reads_unseen(call: Call, facts: ServerFacts) -> bool:
    """Tell whether a function reads something that the statement's text does not show.

    It is a built-in, or an extension's.
    """
    reason = denial(call)
    if reason is _SQL_TEXT:
        return True

    is_named_builtin = call.schema in (None, "pg_catalog")
    is_known = call.name in facts.builtins or not facts.is_complete
    is_builtin = is_named_builtin and is_known
    reads_server = reason in (_CATALOG, _SERVER)
    return is_builtin and reads_server


_LOOKED_UP = re.compile(r"reg(?!exp)|aclitem|pg_|information_schema", re.IGNORECASE)
# Escapes (`U&"!0072egclass" UESCAPE '!'`) and comments could hide the name of a type.
_PLAIN_TYPE = re.compile(r'[\w\s.,()\[\]"]+')
_TYPE_NAME = re.compile(r'"(?P<quoted>(?:[^"]|"")+)"|\w+')


def _is_harmless_probe(call: Call) -> bool:
    """Tell whether `pg_input_is_valid(text, type)` names its type plainly, and the type's input
    looks no names up.
    """
    if len(call.arguments) != 2:  # noqa: PLR2004 - a text and a type
        return False

    type_name = call.arguments[1] or ""
    is_plain = _PLAIN_TYPE.fullmatch(type_name) is not None
    looks_up = _LOOKED_UP.search(type_name) is not None
    return is_plain and not looks_up


def _forbidden_function(call: Call, reason: Text) -> ForbiddenObject:
    name = ".".join(call.parts)
    zh = f"不允许使用函数 {name}：{reason.zh}。"
    return ForbiddenObject(name, Text(zh, f"The function {name} may not be used: {reason.en}."))


def _missing(call: Call) -> InvalidSql:
    """Return PostgreSQL's own refusal of a function that does not exist.

    It is made here, because a function that is created meanwhile could get through if PostgreSQL
    were asked.
    """
    name = ".".join(call.parts)
    en, zh = f"function {name} does not exist", f"函数 {name} 不存在"
    return InvalidSql(en, detail_zh=zh, sqlstate="42883", position=call.location + 1)
