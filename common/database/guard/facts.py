"""What the guard knows about the connected server: its functions, types, operators and system relations.

Read from the server's catalogue when there is a connection; `BUILTIN` is what PostgreSQL 15 to 18 ship, for when there
is none. The list beside this module holds the built-in functions without side effects.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str]
"""(schema, name) of a relation."""


@dataclass(frozen=True)
class Column:
    """A column of a relation or composite type; `row` is the composite type of its values or, with `is_array`, of
    their elements; `category` is its type's (`pg_type.typcategory`)."""

    name: str
    row: Key | None = None
    is_array: bool = False
    category: str = ""


@dataclass(frozen=True)
class TypeEffect:
    """Something that PostgreSQL may do with a type of the user's without being asked, or with what holds such a type.

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
    """Names as the catalogue spells them.

    Attributes:
        builtins: functions of `pg_catalog`; true when every overload is IMMUTABLE or STABLE.
        routines: other functions, each name with the schemas it occurs in.
        risky_routines: (schema, name) of those of which an overload may have side effects.
        unary_routines: (schema, name) of those that may be called with one argument, and so be written like its field.
        range_constructors: (schema, name) of those that only make ranges.
        unary_builtins: the functions of `pg_catalog` that may be called with one argument.
        any_type_builtins: those that take values of whatever type as they are.
        row_results: functions whose value is or may be a row; the columns that it has whichever of that name is called.
        attributes: all relations outside the system's schemas and composite types, each with its columns in order.
        type_effects: what may happen to values without being asked for.
        version: the server's (150004 is 15.4), 0 when it is unknown.
        parents: partitions and inheritance children, each with its topmost parents.
        columns: relations the role may read, each with its columns' names.
        view_definitions: views' queries, where access rules have to look into them.
        types: names of types that may be called like a function (`date('2024-01-01')`).
        system_relations: tables and views of `pg_catalog`.
        relations: (schema, name) of all other tables and views.
        extension_relations: (schema, name) of those that belong to an extension.
        volatile_operators: symbols of operators outside `pg_catalog` whose function may have side effects.
        shared_operators: those of them that built-in operators have as well.
        plain_operators: those of them for values of built-in types only: the symbol, and the categories of the left one
            (empty if there is none) and the right one.
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
    parents: Mapping[Key, frozenset[Key]] = field(default_factory=dict)
    columns: Mapping[Key, Collection[str]] = field(default_factory=dict)
    view_definitions: Mapping[Key, str] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    system_relations: frozenset[str] = frozenset()
    relations: frozenset[Key] = frozenset()
    extension_relations: frozenset[Key] = frozenset()
    volatile_operators: frozenset[str] = frozenset()
    shared_operators: frozenset[str] = frozenset()
    plain_operators: frozenset[tuple[str, str, str]] = frozenset()
    result_categories: Mapping[str, str] = field(default_factory=dict)
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
    "timestamptz timetz tsquery tsrange tstzrange tsvector uuid varbit varchar xml "
    "regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole "
    "regtype"
)


def _builtin_functions() -> dict[str, bool]:
    text = Path(__file__).with_name("functions.txt").read_text("utf-8")
    return dict.fromkeys((line for line in text.splitlines() if not line.startswith("#")), True)


_BUILTIN_FUNCTIONS = _builtin_functions()
BUILTIN = ServerFacts(builtins=_BUILTIN_FUNCTIONS, unary_builtins=frozenset(_BUILTIN_FUNCTIONS), types=_BUILTIN_TYPES)
