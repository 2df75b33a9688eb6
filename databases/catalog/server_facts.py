"""Reads what the guard must know about the connected server: see `guard.facts` for what each of it
means.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import psycopg2

from common.values import Catalog
from databases.catalog import catalog_queries as queries
from databases.catalog.code_graph import read_code_graph
from databases.catalog.loop_yielding import yielding_to_loop
from guard import BUILTIN, ServerFacts
from guard.facts import Key, UserOperator
from guard.facts import ServerColumn as GuardColumn
from postgres.arrays import parse_array, parse_texts
from postgres.connection import Connection

# The columns of truth values of `catalog_queries.ROUTINES`, in order.
_ROUTINE_FLAGS = ("unary", "risky", "range", "reading")
_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")
_log = logging.getLogger(__name__)


async def read_facts(
    connection: Connection, catalog: Catalog, *, trusts_functions: bool = True
) -> ServerFacts:
    """Return the facts, with the columns of the tables in `catalog`; raises psycopg2's errors.

    Args:
        trusts_functions: whether the server tells which functions have side effects; if not, the
            guard's built-in list is all that is known of them.
    """
    columns = {
        table.key: frozenset(column.name for column in table.columns)
        async for table in yielding_to_loop(catalog.tables)
    }
    facts = await _known_facts(connection, trusts_functions=trusts_functions)
    relations = facts.relations | columns.keys()
    facts = replace(
        facts, relations=relations, columns=columns, parents=await _read_parents(connection)
    )
    try:
        return await _followable(facts, connection)
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("what views and tables run can't be read; nothing is read unasked")
        return facts


async def _followable(facts: ServerFacts, connection: Connection) -> ServerFacts:
    """Return the facts, with what the server runs when a relation is read: views' queries,
    policies, generated columns.
    """
    definitions, materialized = await _read_views(connection)
    return replace(
        facts,
        column_sources=await _read_generated(connection),
        view_definitions=definitions,
        materialized_views=materialized,
        read_functions=await _read_functions_run(connection),
        read_conditions=await _read_conditions(connection),
        is_followable=True,
    )


async def _read_generated(connection: Connection) -> Mapping[tuple[str, str, str], Collection[str]]:
    rows = (await connection.query(queries.GENERATED)).rows
    return {
        (schema, table, column): parse_texts(sources) for schema, table, column, sources in rows
    }


async def _read_functions_run(connection: Connection) -> Mapping[Key, Collection[Key]]:
    functions: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, relation, place, function in (await connection.query(queries.READ_FUNCTIONS)).rows:
        functions[schema, relation].add((place, function))

    return functions


async def _read_conditions(connection: Connection) -> Mapping[Key, Sequence[str | None]]:
    conditions: defaultdict[Key, list[str | None]] = defaultdict(list)
    for schema, name, condition in (await connection.query(queries.READ_CONDITIONS)).rows:
        conditions[schema, name].append(condition)

    return conditions


async def _read_parents(connection: Connection) -> Mapping[Key, frozenset[Key]]:
    parents: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, name, parent_schema, parent in (await connection.query(queries.PARENTS)).rows:
        parents[schema, name].add((parent_schema, parent))

    return {key: frozenset(above) for key, above in parents.items()}


async def _read_views(connection: Connection) -> tuple[Mapping[Key, str], frozenset[Key]]:
    """Return views' queries, and which of them are materialised.

    All are empty when a lock keeps one from being read; a view with an empty one is never harmless.
    """
    try:
        rows = (await connection.query(queries.VIEWS)).rows
    except psycopg2.OperationalError as exc:
        if exc.pgcode is None:  # the connection is gone
            raise

        _log.warning("views' definitions can't be read now: SQLSTATE %s", exc.pgcode)
        without_definitions = queries.VIEWS.replace("pg_catalog.pg_get_viewdef(c.oid)", "NULL")
        rows = (await connection.query(without_definitions)).rows

    definitions: dict[Key, str] = {}
    materialized: set[Key] = set()
    for schema, name, definition, is_materialized in rows:
        key = (schema, name)
        definitions[key] = definition or ""
        if is_materialized == "t":
            materialized.add(key)

    return definitions, frozenset(materialized)


async def _known_facts(connection: Connection, *, trusts_functions: bool) -> ServerFacts:
    ((version, encoding),) = (await connection.query(queries.VERSION)).rows
    number = int(version)
    listed = replace(BUILTIN, search_path=connection.search_path, version=number, encoding=encoding)
    if not trusts_functions:
        return listed

    try:
        return replace(await _server_facts(connection), version=number, encoding=encoding)
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("the server's functions can't be read; the guard uses its built-in list")
        return listed


async def _server_facts(connection: Connection) -> ServerFacts:
    types = (await connection.query(queries.TYPES)).rows
    relations = (await connection.query(queries.ALL_RELATIONS)).rows
    own: list[Key] = []
    of_extensions: list[Key] = []
    for schema, name, is_extension in relations:
        if is_extension == "t":
            of_extensions.append((schema, name))
        else:
            own.append((schema, name))

    facts = ServerFacts(
        builtins={},
        row_results=await _read_row_results(connection),
        attributes=await _read_attributes(connection),
        types=frozenset(name for (name,) in types),
        system_relations=frozenset(name for schema, name in own if schema == "pg_catalog"),
        relations=frozenset(key for key in own if key[0] not in _SYSTEM_SCHEMAS),
        extension_relations=frozenset(of_extensions),
        search_path=connection.search_path,
        is_complete=True,
    )
    return await _with_functions(await _with_code(facts, connection), connection)


async def _with_code(facts: ServerFacts, connection: Connection) -> ServerFacts:
    """Return the facts, with what runs or is chosen by the types at hand."""
    catalog_types: set[Key] = set()
    catalog_columns: defaultdict[Key, set[str]] = defaultdict(set)
    for schema, name, column in (await connection.query(queries.CATALOG_TYPES)).rows:
        if column is None:
            catalog_types.add((schema, name))
        else:
            catalog_columns[schema, name].add(column)

    operand_types: dict[str, str] = dict((await connection.query(queries.BUILTIN_OPERATORS)).rows)
    return replace(
        facts,
        code=await read_code_graph(connection),
        catalog_types=frozenset(catalog_types),
        catalog_columns={key: frozenset(columns) for key, columns in catalog_columns.items()},
        operators=await _read_operators(connection),
        builtin_operators=frozenset(operand_types),
        equal_types=frozenset(parse_texts(operand_types.get("="))),
    )


async def _read_operators(connection: Connection) -> Mapping[str, tuple[UserOperator, ...]]:
    operators: defaultdict[str, list[UserOperator]] = defaultdict(list)
    for symbol, oid, schema, *operands in (await connection.query(queries.USER_OPERATORS)).rows:
        types = zip(operands[::2], operands[1::2], strict=True)
        # A prefix operator has no left operand.
        keys = tuple(key for key in types if None not in key)
        operators[symbol].append(UserOperator(int(oid), schema, keys))

    return {symbol: tuple(operators_of_symbol) for symbol, operators_of_symbol in operators.items()}


async def _with_functions(facts: ServerFacts, connection: Connection) -> ServerFacts:
    builtins = (await connection.query(queries.BUILTINS)).rows
    routines = (await connection.query(queries.ROUTINES)).rows
    schemas: defaultdict[str, set[str]] = defaultdict(set)
    for schema, name, *_ in routines:
        schemas[name].add(schema)

    own_arguments: defaultdict[str, frozenset[Key]] = defaultdict(frozenset)
    flagged: defaultdict[str, set[Key]] = defaultdict(set)
    for schema, name, *flags, types in routines:
        if types:
            own_arguments[name] |= frozenset(map(_key, parse_texts(types)))

        for flag, value in zip(_ROUTINE_FLAGS, flags, strict=True):
            if value == "t":
                flagged[flag].add((schema, name))

    return replace(
        facts,
        builtins={name: is_pure == "t" for name, is_pure, *_ in builtins},
        unary_builtins=frozenset(name for name, _, is_unary in builtins if is_unary == "t"),
        routines={name: frozenset(places) for name, places in schemas.items()},
        unary_routines=frozenset(flagged["unary"]),
        risky_routines=frozenset(flagged["risky"]),
        range_constructors=frozenset(flagged["range"]),
        reading_routines=frozenset(flagged["reading"]),
        own_arguments=dict(own_arguments),
    )


async def _read_row_results(connection: Connection) -> Mapping[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for name, columns in (await connection.query(queries.ROW_RESULTS)).rows:
        declared = frozenset(parse_texts(columns))
        results[name] = results.get(name, declared) & declared

    return results


async def _read_attributes(connection: Connection) -> Mapping[Key, tuple[GuardColumn, ...]]:
    rows = (await connection.query(queries.ATTRIBUTES)).rows
    keys = {int(oid): (schema, name) for oid, schema, name, *_ in rows}
    type_names = (await connection.query(queries.TYPE_NAMES)).rows
    types = {int(oid): (schema, name) for oid, schema, name in type_names}
    attributes: dict[Key, tuple[GuardColumn, ...]] = {}
    async for oid, _, _, names, row_types, kinds in yielding_to_loop(rows):
        columns: list[GuardColumn] = []
        oids = zip(parse_array(row_types, int), parse_array(kinds, int), strict=True)
        for name, (row_type, kind) in zip(parse_texts(names), oids, strict=True):
            row = keys.get(abs(row_type))
            columns.append(
                GuardColumn(name, row, is_array=row_type < 0, type=types.get(kind, ("", "")))
            )

        attributes[keys[int(oid)]] = tuple(columns)

    return attributes


def _key(name: str) -> Key:
    schema, _, rest = name.partition(".")
    return schema, rest
