"""What the guard knows about the connected server: its functions, types, operators and system relations.

Read from the server's catalogue when there is a connection; `BUILTIN` is what PostgreSQL 15 to 18 ship, for when there
is none. The list beside this module holds the built-in functions without side effects.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str]
"""(schema, name) of a relation."""


@dataclass(frozen=True)
class ServerFacts:
    """Names as the catalogue spells them.

    Attributes:
        builtins: functions of `pg_catalog`; true when every overload is IMMUTABLE or STABLE.
        routines: other functions, each name with the schemas it occurs in.
        risky_routines: (schema, name) of those of which an overload may have side effects.
        row_functions: names of those that take a row as their only argument, which may be written like its column.
        rows_taken: for those of them that take a relation's rows, which relations'.
        column_names: every column's name, in whatever relation.
        parents: partitions and inheritance children, each with its topmost parents.
        columns: relations the role may read, each with its columns' names.
        column_sources: (schema, table, column) of generated columns, each with the columns it is computed from.
        view_definitions: views' queries.
        read_functions: for relations, (schema, name) of the user's functions that reading them calls, in a view's query
            or a policy, and that may read tables.
        types: names of types that may be called like a function (`date('2024-01-01')`).
        system_relations: tables and views of `pg_catalog`.
        relations: (schema, name) of all other tables and views.
        extension_relations: (schema, name) of those that belong to an extension.
        volatile_operators: symbols of operators outside `pg_catalog` whose function may have side effects.
        shared_operators: those of them that built-in operators have as well.
        volatile_cast_types: types of the user's, and their arrays, to which a cast leads that may have side effects.
        read_conditions: tables that run more than a scan when they are read: the conditions of their policies, and None
            for those of other servers.
        is_followable: whether the server has told what reading a relation leads to: views, policies, generated columns.
        reading_operators: symbols of operators that only the user has, and whose function may read tables.
        reading_cast_types: types, and their arrays, to which a cast of the user's leads that may read tables.
        search_path: schemas of unqualified names, `pg_catalog` implied first.
        is_complete: whether a name missing here does not exist in the server.
    """

    builtins: Mapping[str, bool]
    routines: Mapping[str, frozenset[str]] = field(default_factory=dict)
    risky_routines: frozenset[Key] = frozenset()
    row_functions: frozenset[str] = frozenset()
    rows_taken: Mapping[str, frozenset[Key]] = field(default_factory=dict)
    column_names: frozenset[str] = frozenset()
    parents: Mapping[Key, frozenset[Key]] = field(default_factory=dict)
    columns: Mapping[Key, Collection[str]] = field(default_factory=dict)
    column_sources: Mapping[tuple[str, str, str], Collection[str]] = field(default_factory=dict)
    view_definitions: Mapping[Key, str] = field(default_factory=dict)
    read_functions: Mapping[Key, Collection[Key]] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    system_relations: frozenset[str] = frozenset()
    relations: frozenset[Key] = frozenset()
    extension_relations: frozenset[Key] = frozenset()
    volatile_operators: frozenset[str] = frozenset()
    shared_operators: frozenset[str] = frozenset()
    volatile_cast_types: frozenset[str] = frozenset()
    read_conditions: Mapping[Key, Sequence[str | None]] = field(default_factory=dict)
    is_followable: bool = False
    reading_operators: frozenset[str] = frozenset()
    reading_cast_types: frozenset[str] = frozenset()
    search_path: tuple[str, ...] = ("public",)
    is_complete: bool = False

    def key(self, schema: str | None, name: str) -> Key:
        """Where the search path leads an unqualified relation; its first schema when there is none of that name."""
        if schema is not None:
            return (schema, name)
        places = [place for place in self.search_path if (place, name) in self.relations]
        return ((places or self.search_path or ("",))[0], name)


def words(text: str) -> frozenset[str]:
    """The blank-separated words of `text`, as a set."""
    return frozenset(text.split())


_BUILTIN_TYPES = words(
    "bit bool bpchar box bytea char cidr circle date daterange float4 float8 inet int2 int4 int4range int8 int8range "
    "interval json jsonb line lseg macaddr money name numeric numrange oid path point polygon text time timestamp "
    "timestamptz timetz tsquery tsrange tstzrange tsvector uuid varbit varchar xml"
)


def _builtin_functions() -> dict[str, bool]:
    text = Path(__file__).with_name("functions.txt").read_text("utf-8")
    return dict.fromkeys((line for line in text.splitlines() if not line.startswith("#")), True)


BUILTIN = ServerFacts(builtins=_builtin_functions(), types=_BUILTIN_TYPES)
