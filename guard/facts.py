"""Facts about the connected server: its functions, types, operators and system relations.

They are read from the server's catalogue; until there is a connection, `BUILTIN` holds what
PostgreSQL 15 to 18 ship. `functions.txt` lists the built-in functions without side effects.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from common.word_files import words

Name = tuple[str, ...]
"""A name as a query writes it: its parts, the most specific last."""
Key = tuple[str, str]
"""(schema, name) of a relation."""


def qualifier_of(name: Name) -> str | None:
    """Return the part before the last: a relation's schema, a column's table; None without one."""
    if len(name) > 1:
        return name[-2]

    return None


@dataclass(frozen=True)
class ServerColumn:
    """A column of a relation or composite type.

    Attributes:
        row: the composite type of its values or, with `is_array`, of their elements; None for other
            types.
        type: (schema, name) of its type.
    """

    name: str
    row: Key | None = None
    is_array: bool = False
    type: Key = ("", "")


CodeNode = tuple[str, int, int]
"""Something that runs code: its kind (`databases.catalog.code_graph` lists them), OID, and the
column's number."""


class CodeEdge(NamedTuple):
    """One step of the graph: the code it belongs to is run by `runner`.

    Attributes:
        way: `view` or `policy` where the code is in a relation's view query or policy, which its
            owner wrote.
    """

    runner: CodeNode
    way: str = ""


@dataclass(frozen=True)
class CodeGraph:
    """Maps code that PostgreSQL may run without a statement naming it to what runs the code.

    Attributes:
        functions: those that are not IMMUTABLE or not the caller's own: `v` VOLATILE, `d` SECURITY
            DEFINER, `s` STABLE, `b` built-in ones that an operator, cast or domain of the user's
            calls.
        edges: for each function, and for each thing that runs code, what runs it in turn.
        names: the names of all of these: schema and name, and the column's.
        makers: for types, and casts from them, the functions and symbols of which a value may be of
            that type.
    """

    functions: Mapping[CodeNode, str] = field(default_factory=dict)
    edges: Mapping[CodeNode, tuple[CodeEdge, ...]] = field(default_factory=dict)
    names: Mapping[CodeNode, Name] = field(default_factory=dict)
    makers: Mapping[CodeNode, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class UserOperator:
    """An operator outside `pg_catalog`.

    Attributes:
        oid: its OID, which `CodeGraph` knows it by.
        schema: where it is.
        operands: (schema, name) of its operands' types.
    """

    oid: int
    schema: str
    operands: tuple[Key, ...]


@dataclass(frozen=True)
class ServerFacts:
    """Describes the connected server. Names are spelled as in the catalogue.

    Attributes:
        builtins: functions of `pg_catalog`; true when every overload is IMMUTABLE or STABLE.
        routines: other functions, each name with the schemas it occurs in.
        risky_routines: (schema, name) of those of which an overload may have side effects.
        reading_routines: those of which an overload is not IMMUTABLE, but for extensions' STABLE
            ones.
        unary_routines: (schema, name) of those that may be called with one argument, and so be
            written like its field.
        range_constructors: (schema, name) of those that only make ranges.
        unary_builtins: the functions of `pg_catalog` that may be called with one argument.
        own_arguments: for names that users' functions share with built-in ones: (schema, name) of
            the types that IMMUTABLE ones of them take.
        row_results: functions whose value is or may be a row, each with the columns that all of
            that name give.
        attributes: all relations outside the system's schemas and composite types, each with its
            columns in order.
        code: what PostgreSQL may run although no statement names it.
        catalog_types: types whose values are names looked up in the catalogue, and all that hold
            them.
        catalog_columns: relations with columns of such types, and these.
        version: the server's (150004 is 15.4), 0 when it is unknown.
        encoding: the database's.
        parents: partitions and inheritance children, each with its topmost parents.
        columns: relations the role may read, each with its columns' names.
        column_sources: (schema, table, column) of generated columns, each with the columns it is
            computed from.
        view_definitions: views' queries, also of materialised ones.
        materialized_views: those that are read like tables.
        read_functions: for relations, (schema, name) of the user's functions that reading them
            calls, in a view's query or a policy, and that may read tables.
        types: names of types that may be called like a function (`date('2024-01-01')`).
        system_relations: tables and views of `pg_catalog`.
        relations: (schema, name) of all other tables and views.
        extension_relations: (schema, name) of those that belong to an extension.
        operators: symbols of operators outside `pg_catalog`, each with these.
        builtin_operators: symbols of those in `pg_catalog`.
        equal_types: types of `pg_catalog` that an operator `=` of its own compares.
        read_conditions: tables that run more than a scan when they are read: the conditions of
            their policies, and None for those of other servers.
        is_followable: whether the server has told what reading a relation leads to: views,
            policies, generated columns.
        search_path: schemas of unqualified names, `pg_catalog` implied first.
        is_complete: whether a name missing here does not exist in the server.
    """

    builtins: Mapping[str, bool]
    routines: Mapping[str, frozenset[str]] = field(default_factory=dict)
    risky_routines: frozenset[Key] = frozenset()
    reading_routines: frozenset[Key] = frozenset()
    unary_routines: frozenset[Key] = frozenset()
    range_constructors: frozenset[Key] = frozenset()
    unary_builtins: frozenset[str] = frozenset()
    own_arguments: Mapping[str, frozenset[Key]] = field(default_factory=dict)
    row_results: Mapping[str, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[Key, tuple[ServerColumn, ...]] = field(default_factory=dict)
    code: CodeGraph = field(default_factory=CodeGraph)
    catalog_types: frozenset[Key] = frozenset()
    catalog_columns: Mapping[Key, frozenset[str]] = field(default_factory=dict)
    version: int = 0
    encoding: str = "UTF8"
    parents: Mapping[Key, frozenset[Key]] = field(default_factory=dict)
    columns: Mapping[Key, Collection[str]] = field(default_factory=dict)
    column_sources: Mapping[tuple[str, str, str], Collection[str]] = field(default_factory=dict)
    view_definitions: Mapping[Key, str] = field(default_factory=dict)
    materialized_views: frozenset[Key] = frozenset()
    read_functions: Mapping[Key, Collection[Key]] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    system_relations: frozenset[str] = frozenset()
    relations: frozenset[Key] = frozenset()
    extension_relations: frozenset[Key] = frozenset()
    operators: Mapping[str, tuple[UserOperator, ...]] = field(default_factory=dict)
    builtin_operators: frozenset[str] = frozenset()
    equal_types: frozenset[str] = frozenset()
    read_conditions: Mapping[Key, Sequence[str | None]] = field(default_factory=dict)
    is_followable: bool = False
    search_path: tuple[str, ...] = ("public",)
    is_complete: bool = False

    @cached_property
    def column_names(self) -> frozenset[str]:
        """Return the names of all columns of relations and composite types."""
        names: set[str] = set()
        for columns in self.attributes.values():
            names.update(column.name for column in columns)

        return frozenset(names)

    @property
    def reads_as_parsed(self) -> bool:
        """Tell whether the server reads names as the parser does; see `guard.name_encoding`."""
        return self.encoding == "UTF8"

    def key(self, schema: str | None, name: str) -> Key:
        """Return where the search path leads to a relation of that name.

        Where there is none, it is the path's first schema.
        """
        if schema is not None:
            return (schema, name)

        for visible in self.search_path:
            if (visible, name) in self.relations:
                return (visible, name)

        first = ""
        if self.search_path:
            first = self.search_path[0]

        return (first, name)


CATALOG_TYPES = words(
    "regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc "
    "regprocedure regrole "
    "regtype aclitem"
)
"""Types whose values are names looked up in the catalogue, or privileges."""
POPULATING = words(
    "json_populate_record json_populate_recordset jsonb_populate_record jsonb_populate_recordset"
)
"""Functions that make a row of their first argument's type."""
SHOWING_FUNCTIONS = words("count format concat concat_ws to_json to_jsonb")
"""Functions that take values of any type and only show or count them."""

_BUILTIN_TYPES = (CATALOG_TYPES - {"aclitem"}) | words(
    "bit bool bpchar box bytea char cidr circle date daterange float4 float8 inet int2 int4 "
    "int4range int8 int8range "
    "interval json jsonb line lseg macaddr money name numeric numrange oid path point polygon "
    "text time timestamp "
    "timestamptz timetz tsquery tsrange tstzrange tsvector uuid varbit varchar xml"
)


def _builtin_functions() -> dict[str, bool]:
    text = Path(__file__).with_name("functions.txt").read_text("utf-8")
    functions = {}
    for line in text.splitlines():
        is_comment = line.startswith("#")
        if not is_comment:
            functions[line] = True

    return functions


_BUILTIN_FUNCTIONS = _builtin_functions()
BUILTIN = ServerFacts(
    builtins=_BUILTIN_FUNCTIONS, unary_builtins=frozenset(_BUILTIN_FUNCTIONS), types=_BUILTIN_TYPES
)
