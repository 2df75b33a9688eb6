"""Reads what the guard must know about the connected server: see `databases.guard.facts` for what each of it means."""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import psycopg2

from common.postgres.arrays import parse_array
from common.postgres.connection import Connection
from common.values import Catalog
from databases import catalog_queries as queries
from databases.guard import BUILTIN, ServerFacts
from databases.guard.facts import Column as GuardColumn
from databases.guard.facts import Key, TypeEffect
from databases.turns import in_turns

_log = logging.getLogger(__name__)


async def read_facts(connection: Connection, catalog: Catalog) -> ServerFacts:
    """The facts, with the columns of the tables in `catalog`; raises psycopg2's errors."""
    columns = {
        table.key: frozenset(column.name for column in table.columns) async for table in in_turns(catalog.tables)
    }
    facts = await _known_facts(connection)
    relations = facts.relations | columns.keys()
    facts = replace(facts, relations=relations, columns=columns, parents=await _read_parents(connection))
    try:
        return await _followable(facts, connection)
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("what views and tables run can't be read; nothing is read unasked")
        return facts


async def _followable(facts: ServerFacts, connection: Connection) -> ServerFacts:
    """The facts, with what the server runs when a relation is read: views' queries, policies, generated columns."""
    reading = (await connection.query(queries.READING)).rows
    return replace(
        facts,
        reading_operators=frozenset(str(name) for is_operator, name in reading if is_operator == "t"),
        reading_cast_types=frozenset(str(name) for is_operator, name in reading if is_operator == "f"),
        column_sources=await _read_generated(connection),
        view_definitions=await _read_views(connection),
        read_functions=await _read_functions_run(connection),
        read_conditions=await _read_conditions(connection),
        is_followable=True,
    )


async def _read_generated(connection: Connection) -> Mapping[tuple[str, str, str], Collection[str]]:
    rows = (await connection.query(queries.GENERATED)).rows
    return {
        (str(schema), str(table), str(column)): parse_array(sources or "{}", str)
        for schema, table, column, sources in rows
    }


async def _read_functions_run(connection: Connection) -> Mapping[Key, Collection[Key]]:
    functions: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, relation, place, function in (await connection.query(queries.READ_FUNCTIONS)).rows:
        functions[str(schema), str(relation)].add((str(place), str(function)))
    return functions


async def _read_conditions(connection: Connection) -> Mapping[Key, Sequence[str | None]]:
    conditions: defaultdict[Key, list[str | None]] = defaultdict(list)
    for schema, name, condition in (await connection.query(queries.READ_CONDITIONS)).rows:
        conditions[str(schema), str(name)].append(condition)
    return conditions


async def _read_parents(connection: Connection) -> Mapping[Key, frozenset[Key]]:
    parents: defaultdict[Key, set[Key]] = defaultdict(set)
    for schema, name, parent_schema, parent in (await connection.query(queries.PARENTS)).rows:
        parents[str(schema), str(name)].add((str(parent_schema), str(parent)))
    return {key: frozenset(above) for key, above in parents.items()}


async def _read_views(connection: Connection) -> Mapping[Key, str]:
    """Views' queries, all empty when a lock keeps one from being read; a view with an empty one is never harmless."""
    try:
        rows = (await connection.query(queries.VIEWS)).rows
    except psycopg2.OperationalError as exc:
        if exc.pgcode is None:  # the connection is gone
            raise
        _log.warning("views' definitions can't be read now: SQLSTATE %s", exc.pgcode)
        rows = (await connection.query(queries.VIEWS.replace("pg_catalog.pg_get_viewdef(c.oid)", "NULL"))).rows
    return {(str(schema), str(name)): definition or "" for schema, name, definition in rows}


async def _known_facts(connection: Connection) -> ServerFacts:
    ((version, encoding),) = (await connection.query(queries.VERSION)).rows
    number = int(version or 0)
    try:
        return replace(await _server_facts(connection), version=number, encoding=str(encoding))
    except psycopg2.ProgrammingError:  # some hosts hide parts of the catalogue
        _log.warning("the server's functions can't be read; the guard uses its built-in list")
        return replace(BUILTIN, search_path=connection.search_path, version=number, encoding=str(encoding))


async def _server_facts(connection: Connection) -> ServerFacts:
    types = (await connection.query(queries.TYPES)).rows
    relations = (await connection.query(queries.ALL_RELATIONS)).rows
    operators = (await connection.query(queries.OPERATORS)).rows
    effects = (await connection.query(queries.TYPE_EFFECTS)).rows
    own = [(str(schema), str(name)) for schema, name, is_extension in relations if is_extension == "f"]
    facts = ServerFacts(
        builtins={},
        row_results=await _read_row_results(connection),
        attributes=await _read_attributes(connection),
        types=frozenset(str(name) for (name,) in types),
        system_relations=frozenset(name for schema, name in own if schema == "pg_catalog"),
        relations=frozenset(key for key in own if key[0] not in ("pg_catalog", "information_schema")),
        extension_relations=frozenset((str(schema), str(name)) for schema, name, ext in relations if ext == "t"),
        volatile_operators=frozenset(str(symbol) for symbol, *_ in operators),
        shared_operators=frozenset(str(symbol) for symbol, is_shared, *_ in operators if is_shared == "t"),
        plain_operators=frozenset(
            (str(symbol), left, right)
            for symbol, is_shared, left, right in operators
            if is_shared == "t" and left is not None and right is not None
        ),
        type_effects=tuple(
            TypeEffect(str(kind), str(detail), (str(schema), str(name)), column, is_own == "t")
            for kind, detail, schema, name, column, is_own in effects
        ),
        search_path=connection.search_path,
        is_complete=True,
    )
    return await _with_functions(facts, connection)


async def _with_functions(facts: ServerFacts, connection: Connection) -> ServerFacts:
    builtins = (await connection.query(queries.BUILTINS)).rows
    routines = (await connection.query(queries.ROUTINES)).rows
    schemas: defaultdict[str, set[str]] = defaultdict(set)
    for schema, name, *_ in routines:
        schemas[str(name)].add(str(schema))
    return replace(
        facts,
        builtins={str(name): is_pure == "t" for name, is_pure, *_ in builtins},
        result_categories={str(name): str(categories) for name, *_, categories in builtins},
        unary_builtins=frozenset(str(name) for name, _, is_unary, *_ in builtins if is_unary == "t"),
        any_type_builtins=frozenset(str(name) for name, _, _, takes_any, _ in builtins if takes_any == "t"),
        routines={name: frozenset(places) for name, places in schemas.items()},
        unary_routines=frozenset((str(place), str(name)) for place, name, unary, _, _ in routines if unary == "t"),
        risky_routines=frozenset((str(place), str(name)) for place, name, _, risky, _ in routines if risky == "t"),
        range_constructors=frozenset((str(place), str(name)) for place, name, *_, ranges in routines if ranges == "t"),
    )


async def _read_row_results(connection: Connection) -> Mapping[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for name, columns in (await connection.query(queries.ROW_RESULTS)).rows:
        declared = frozenset(parse_array(columns, str)) if columns else frozenset()
        results[str(name)] = results.get(str(name), declared) & declared
    return results


async def _read_attributes(connection: Connection) -> Mapping[Key, tuple[GuardColumn, ...]]:
    rows = (await connection.query(queries.ATTRIBUTES)).rows
    keys = {int(oid or 0): (str(schema), str(name)) for oid, schema, name, *_ in rows}
    return {
        keys[int(oid or 0)]: tuple(
            GuardColumn(name, keys.get(abs(row)), is_array=row < 0, category=category)
            for name, row, category in zip(
                parse_array(names or "{}", str), parse_array(kinds or "{}", int), categories or "", strict=True
            )
        )
        async for oid, _, _, names, kinds, categories in in_turns(rows)
    }
