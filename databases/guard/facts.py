"""What the guard knows about the connected server: its functions, types, operators and system relations.

They are read from the server's catalogue; until there is a connection, `BUILTIN` holds what PostgreSQL 15 to 18 ship.
`functions.txt` lists the built-in functions without side effects.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Key = tuple[str, str]
"""(schema, name) of a relation."""


@dataclass(frozen=True)
class Column:
    """A column of a relation or composite type.

    Attributes:
        row: the composite type of its values or, with `is_array`, of their elements; None for other types.
        category: of its type (`pg_type.typcategory`).
    """

    name: str
    row: Key | None = None
    is_array: bool = False
    category: str = ""


@dataclass(frozen=True)
class TypeEffect:
    """Code that PostgreSQL may run for a type of the user's, or for what holds one, although no statement names it.

    Attributes:
        kind: `check`, `bounds`, `to`, `from`, `implicit`, `operator`, `sorting` or `catalog`;
            `catalog_queries.TYPE_EFFECTS` says what each means and what its `detail` is.
        type: the type, or the relation whose column it is.
        column: that column, or None for a type.
        is_own: whether it is about that type itself, not one that holds it.
    """

    kind: str
    detail: str
    type: Key
    column: str | None = None
    is_own: bool = True


@dataclass(frozen=True)
class ServerFacts:
    """What the guard judges by. Names are spelled as in the catalogue.

    Attributes:
        builtins: functions of `pg_catalog`; true when every overload is IMMUTABLE or STABLE.
        routines: other functions, each name with the schemas it occurs in.
        risky_routines: (schema, name) of those of which an overload may have side effects.
        unary_routines: (schema, name) of those that may be called with one argument, and so be written like its field.
        range_constructors: (schema, name) of those that only make ranges.
        unary_builtins: the functions of `pg_catalog` that may be called with one argument.
        any_type_builtins: those that take values of any type without a cast.
        row_results: functions whose value is or may be a row, each with the columns that all of that name give.
        attributes: all relations outside the system's schemas and composite types, each with its columns in order.
        type_effects: what PostgreSQL may run for values although no statement names it.
        version: the server's (150004 is 15.4), 0 when it is unknown.
        encoding: the database's.
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
        read_conditions: tables that run more than a scan when they are read: the conditions of their policies, and None
            for those of other servers.
        is_followable: whether the server has told what reading a relation leads to: views, policies, generated columns.
        reading_operators: symbols of operators that only the user has, and whose function may read tables.
        reading_cast_types: types, and their arrays, to which a cast of the user's leads that may read tables.
        plain_operators: those shared operators that take values of built-in types only: the symbol, and the categories
            of the left operand's type (empty if there is none) and of the right one's.
        result_categories: categories of the types that the functions of `pg_catalog` return, as one string.
        search_path: schemas of unqualified names, `pg_catalog` implied first.
        is_complete: whether a name missing here does not exist in the server.
    """

    builtins: Mapping[str, bool]
    routines: Mapping[str, frozenset[str]] = field(default_factory=dict)
    risky_routines: frozenset[Key] = frozenset()
    unary_routines: frozenset[Key] = frozenset()
    range_constructors: frozenset[Key] = frozenset()
    unary_builtins: frozenset[str] = frozenset()
    any_type_builtins: frozenset[str] = frozenset()
    row_results: Mapping[str, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[Key, tuple[Column, ...]] = field(default_factory=dict)
    type_effects: tuple[TypeEffect, ...] = ()
    version: int = 0
    encoding: str = "UTF8"
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
    read_conditions: Mapping[Key, Sequence[str | None]] = field(default_factory=dict)
    is_followable: bool = False
    reading_operators: frozenset[str] = frozenset()
    reading_cast_types: frozenset[str] = frozenset()
    plain_operators: frozenset[tuple[str, str, str]] = frozenset()
    result_categories: Mapping[str, str] = field(default_factory=dict)
    search_path: tuple[str, ...] = ("public",)
    is_complete: bool = False

    @cached_property
    def column_names(self) -> frozenset[str]:
        """Every column's name, in whatever relation or composite type."""
        return frozenset(column.name for columns in self.attributes.values() for column in columns)

    @property
    def reads_as_parsed(self) -> bool:
        """Whether the server reads names as the parser does; see `databases.guard.readings`."""
        return self.encoding == "UTF8"

    def key(self, schema: str | None, name: str) -> Key:
        """Where the search path leads an unqualified relation; its first schema when there is none of that name."""
        if schema is not None:
            return (schema, name)
        places = [place for place in self.search_path if (place, name) in self.relations]
        return ((places or self.search_path or ("",))[0], name)


def words(text: str) -> frozenset[str]:
    """The blank-separated words of `text`, as a set."""
    return frozenset(text.split())


CATALOG_TYPES = words(
    "regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole "
    "regtype aclitem"
)
"""Types whose values are names looked up in the catalogue, or privileges."""
POPULATING = words("json_populate_record json_populate_recordset jsonb_populate_record jsonb_populate_recordset")
"""Functions that make a row of their first argument's type."""
SHOWING_FUNCTIONS = words("count format concat concat_ws to_json to_jsonb")
"""Functions that take values of any type and only show or count them."""

_BUILTIN_TYPES = (CATALOG_TYPES - {"aclitem"}) | words(
    "bit bool bpchar box bytea char cidr circle date daterange float4 float8 inet int2 int4 int4range int8 int8range "
    "interval json jsonb line lseg macaddr money name numeric numrange oid path point polygon text time timestamp "
    "timestamptz timetz tsquery tsrange tstzrange tsvector uuid varbit varchar xml"
)


def _builtin_functions() -> dict[str, bool]:
    text = Path(__file__).with_name("functions.txt").read_text("utf-8")
    return dict.fromkeys((line for line in text.splitlines() if not line.startswith("#")), True)


_BUILTIN_FUNCTIONS = _builtin_functions()
BUILTIN = ServerFacts(builtins=_BUILTIN_FUNCTIONS, unary_builtins=frozenset(_BUILTIN_FUNCTIONS), types=_BUILTIN_TYPES)
