"""Reads which code of the user's PostgreSQL may run for a relation, type or operator although no
statement names it.

`guard.closure` judges by it. It is read from the functions on, level by level: each level is one
query about whatever runs what the level before found. Most servers have few such functions, so
that hardly anything of a large catalogue is looked at more than once.

The parts of the query, and what is left out on purpose:

- DEFAULTs of columns and CHECKs of tables never run when rows are read, and triggers neither:
  `DEFAULT my_uuid()` must not close a table.
- Handlers of foreign servers, index and table access methods, and whatever else takes an `internal`
  argument, can be written in C only, by who may install libraries in the server.
- A materialised view was computed when it was refreshed, a stored generated column when its row
  was written.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from string import Formatter

import psycopg2

from databases.catalog.catalog_queries import IS_USER_SCHEMA
from databases.catalog.loop_yielding import yielding_to_loop
from guard.facts import CodeEdge, CodeGraph, CodeNode, Name
from postgres.arrays import parse_texts
from postgres.connection import Connection, Row

_MAX_LEVELS = 200  # of views over views, types in types
_FIRST_USER_OID = 16384
_IS_OWN = f"{{0}} >= {_FIRST_USER_OID}"

# The built-in functions that CHECKs of domains call; the server notes no dependency on these.
_CALLED_BY_DOMAINS = f"""
    SELECT m[1]::oid AS function, k.contypid AS type
    FROM pg_catalog.pg_constraint k,
        pg_catalog.regexp_matches(k.conbin::text, ':funcid ([0-9]+) ', 'g') m
    WHERE k.contypid >= {_FIRST_USER_OID}"""

# oid, schema, name, and what it may do: 'v' act (VOLATILE), 'd' read with its owner's rights
# (SECURITY DEFINER), 's' read (STABLE), 'b' it is built in, but an operator, cast or domain of the
# user's calls it
_FUNCTIONS = f"""
SELECT p.oid, n.nspname, p.proname,
       CASE WHEN p.oid < {_FIRST_USER_OID} THEN 'b' WHEN p.provolatile = 'v' THEN 'v'
            WHEN p.prosecdef THEN 'd' ELSE 's' END
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('f', 'w') AND p.prorettype NOT IN (
          'pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
  AND NOT ('pg_catalog.internal'::pg_catalog.regtype = ANY (p.proargtypes::oid[])
           AND p.prolang IN (
               SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname IN ('c', 'internal')))
  AND (p.oid >= {_FIRST_USER_OID}
       AND (p.provolatile = 'v' OR p.prosecdef OR p.provolatile = 's' AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_depend e
                WHERE e.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.objid = p.oid
                  AND e.deptype = 'e'))
       OR p.oid IN (SELECT o.oprcode FROM pg_catalog.pg_operator o WHERE {_IS_OWN.format("o.oid")})
          AND p.oid < {_FIRST_USER_OID}
       OR p.oid IN (SELECT c.castfunc FROM pg_catalog.pg_cast c WHERE {_IS_OWN.format("c.oid")})
          AND p.oid < {_FIRST_USER_OID}
       OR p.provolatile <> 'i' AND p.oid IN (SELECT d.function FROM ({_CALLED_BY_DOMAINS}) d))
"""

# The multirange of a range doesn't exist on every server.
_MULTIRANGE = "(pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid"
# A B-tree or hash family's members run without being named where values of their types are sorted,
# grouped and compared. Members for two types concern the user's one; those for built-in types only
# those for which the family has the default operator class.
_OF_FAMILY = f"""
    SELECT u.type FROM unnest(ARRAY[m.one, m.other]) AS u (type)
    WHERE m.method IN ('btree', 'hash')
      AND ({_IS_OWN.format("u.type")}
           OR NOT ({_IS_OWN.format("m.one")} OR {_IS_OWN.format("m.other")})
           AND EXISTS (SELECT FROM pg_catalog.pg_opclass k WHERE k.opcfamily = m.family
                       AND k.opcintype = u.type AND k.opcdefault))"""
_CLASSES_OF_FAMILY = f"""
    SELECT k.oid FROM pg_catalog.pg_opclass k WHERE k.opcfamily = m.family
      AND ({_IS_OWN.format("k.oid")} OR k.opcintype IN (m.one, m.other)
           AND NOT ({_IS_OWN.format("m.one")} OR {_IS_OWN.format("m.other")}))"""
_SUPPORT = """
    SELECT p.amproc::oid AS member, p.amprocfamily AS family, p.amproclefttype AS one,
           p.amprocrighttype AS other, a.amname AS method
    FROM pg_catalog.pg_amproc p JOIN pg_catalog.pg_opfamily f ON f.oid = p.amprocfamily
    JOIN pg_catalog.pg_am a ON a.oid = f.opfmethod WHERE p.amproc = ANY ({f})"""
_STRATEGIES = """
    SELECT p.amopopr AS member, p.amopfamily AS family, p.amoplefttype AS one,
           p.amoprighttype AS other, a.amname AS method
    FROM pg_catalog.pg_amop p JOIN pg_catalog.pg_am a ON a.oid = p.amopmethod
    WHERE p.amopopr = ANY ({o})"""
# What depends on an object that the level before found, but for relations and their columns.
_DEPENDENTS = """
    SELECT d.classid, d.objid, d.objsubid, r.kind, r.oid
    FROM (SELECT 'f' AS kind, unnest({f}) AS oid, 'pg_catalog.pg_proc'::pg_catalog.regclass AS class
          UNION ALL SELECT 'o', unnest({o}), 'pg_catalog.pg_operator'::pg_catalog.regclass
          UNION ALL SELECT 't', unnest({t}), 'pg_catalog.pg_type'::pg_catalog.regclass) r
    JOIN pg_catalog.pg_depend d ON d.refclassid = r.class AND d.refobjid = r.oid
    WHERE d.deptype <> 'e'"""

_HELD = "SELECT 't' AS kind, unnest({t}) AS oid UNION ALL SELECT 'g', unnest({g})"

# Each gives rows (kind, oid, column, way, kind, oid, column): what is run, and what runs it.
# Kinds: 'f' function, 'o' operator, 'k' operator class, 't' type, 'g' type as a cast's target, 'h'
# row type whose fields are such targets, 'c' cast between built-in types, 'r' relation, 'a' its
# column, 'p' its partition key.
_CODE = {
    "aggregates": """
SELECT 'f', u.oid, 0, '', 'f', a.aggfnoid::oid, 0 FROM pg_catalog.pg_aggregate a, unnest(ARRAY[
    a.aggtransfn::oid, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn,
    a.aggminvtransfn, a.aggmfinalfn]) AS u (oid)
WHERE u.oid = ANY ({f}) AND a.aggfnoid::oid >= 16384
UNION ALL SELECT 'o', a.aggsortop, 0, '', 'f', a.aggfnoid::oid, 0 FROM pg_catalog.pg_aggregate a
WHERE a.aggsortop = ANY ({o})""",
    "operators": """
SELECT 'f', u.oid, 0, '', 'o', o.oid, 0
FROM pg_catalog.pg_operator o, unnest(ARRAY[o.oprcode::oid, o.oprrest, o.oprjoin]) AS u (oid)
WHERE u.oid = ANY ({f})
UNION ALL SELECT 'o', u.oid, 0, '', 'o', o.oid, 0
FROM pg_catalog.pg_operator o, unnest(ARRAY[o.oprcom, o.oprnegate]) AS u (oid)
WHERE u.oid = ANY ({o})""",
    "families": f"""
SELECT m.kind, m.member, 0, '', x.kind, x.oid, 0
FROM (SELECT 'f' AS kind, s.* FROM ({_SUPPORT}) s
      UNION ALL SELECT 'o', s.* FROM ({_STRATEGIES}) s) m,
LATERAL (SELECT 't' AS kind, t.type AS oid FROM ({_OF_FAMILY}) t
         UNION ALL SELECT 'k', k.oid FROM ({_CLASSES_OF_FAMILY}) k
         UNION ALL SELECT 'o', o.amopopr FROM pg_catalog.pg_amop o
         WHERE o.amopfamily = m.family AND {_IS_OWN.format("o.amopopr")}) x""",
    "types": f"""
SELECT 'f', u.oid, 0, '', 't', t.oid, 0
FROM pg_catalog.pg_type t, unnest(ARRAY[t.typinput::oid, t.typoutput, t.typreceive, t.typsend,
                                        t.typmodin, t.typmodout]) AS u (oid)
WHERE u.oid = ANY ({{f}})
UNION ALL SELECT 'f', c.castfunc, 0, '', u.kind, u.oid, 0
FROM pg_catalog.pg_cast c, LATERAL (VALUES
    ('t', c.castsource, {_IS_OWN.format("c.castsource")}
          OR {_IS_OWN.format("c.oid")} AND c.casttarget < {_FIRST_USER_OID}
          AND c.castcontext = 'i'),
    ('t', c.casttarget, c.castcontext = 'i' AND {_IS_OWN.format("c.casttarget")}),
    ('g', c.casttarget, {_IS_OWN.format("c.casttarget")}),
    ('c', c.oid, c.castsource < {_FIRST_USER_OID} AND c.casttarget < {_FIRST_USER_OID})
) AS u (kind, oid, counts)
WHERE u.counts AND c.castfunc = ANY ({{f}})
UNION ALL SELECT 'f', u.oid, 0, '', 't', r.rngtypid, 0
FROM pg_catalog.pg_range r, unnest(ARRAY[r.rngcanonical::oid, r.rngsubdiff]) AS u (oid)
WHERE u.oid = ANY ({{f}})
UNION ALL SELECT 'k', r.rngsubopc, 0, '', 't', r.rngtypid, 0
FROM pg_catalog.pg_range r WHERE r.rngsubopc = ANY ({{k}})
UNION ALL SELECT d.kind, d.oid, 0, '', 't', k.contypid, 0
FROM ({_DEPENDENTS}) d JOIN pg_catalog.pg_constraint k
  ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND k.oid = d.objid
WHERE k.contypid <> 0 AND (d.kind, d.oid) <> ('t', k.contypid)
UNION ALL SELECT 'f', d.function, 0, '', 't', d.type, 0
FROM ({_CALLED_BY_DOMAINS}) d WHERE d.function = ANY ({{f}})""",
    "holders": f"""
SELECT u.kind, u.oid, 0, '', u.kind, t.oid, 0
FROM ({_HELD}) u JOIN pg_catalog.pg_type t ON t.typelem = u.oid AND t.typcategory = 'A'
UNION ALL SELECT u.kind, u.oid, 0, '', u.kind, t.oid, 0
FROM ({_HELD}) u JOIN pg_catalog.pg_type t ON t.typbasetype = u.oid AND t.typtype = 'd'
UNION ALL SELECT 't', r.rngsubtype, 0, '', 't', u.oid, 0
FROM pg_catalog.pg_range r, unnest(ARRAY[r.rngtypid, {_MULTIRANGE}]) AS u (oid)
WHERE u.oid IS NOT NULL AND r.rngsubtype = ANY ({{t}})
UNION ALL SELECT u.kind, u.oid, 0, '', h.kind, c.reltype, 0
FROM ({_HELD}) u
JOIN pg_catalog.pg_attribute a ON a.atttypid = u.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.reltype <> 0
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND {IS_USER_SCHEMA}
JOIN (VALUES ('t', 't'), ('g', 'g'), ('g', 'h')) AS h (held, kind) ON h.held = u.kind""",
    "columns": f"""
SELECT 't', a.atttypid, 0, '', 'a', a.attrelid, a.attnum
FROM unnest({{t}}) AS u (oid) JOIN pg_catalog.pg_attribute a ON a.atttypid = u.oid
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND {IS_USER_SCHEMA}
UNION ALL SELECT d.kind, d.oid, 0, '', 'a', f.adrelid, f.adnum
FROM ({_DEPENDENTS}) d JOIN pg_catalog.pg_attrdef f
  ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND f.oid = d.objid
JOIN pg_catalog.pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
    AND a.attgenerated = 'v'
UNION ALL SELECT 'a', s.relation, s.number, '', 'a', i.inhparent, p.attnum
FROM unnest({{a}}, {{n}}) AS s (relation, number)
JOIN pg_catalog.pg_inherits i ON i.inhrelid = s.relation
JOIN pg_catalog.pg_attribute c ON c.attrelid = s.relation AND c.attnum = s.number
JOIN pg_catalog.pg_attribute p ON p.attrelid = i.inhparent AND p.attname = c.attname
    AND NOT p.attisdropped""",
    "relations": f"""
SELECT d.kind, d.oid, 0, '', 'r', x.indrelid, 0
FROM ({_DEPENDENTS}) d JOIN pg_catalog.pg_index x
  ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND x.indexrelid = d.objid
  WHERE d.kind <> 't'
UNION ALL SELECT 'k', u.oid, 0, '', 'r', x.indrelid, 0
FROM pg_catalog.pg_index x, unnest(x.indclass::oid[]) AS u (oid) WHERE u.oid = ANY ({{k}})
UNION ALL SELECT d.kind, d.oid, 0, '', 'r', s.stxrelid, 0
FROM ({_DEPENDENTS}) d JOIN pg_catalog.pg_statistic_ext s
  ON d.classid = 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass AND s.oid = d.objid
UNION ALL SELECT d.kind, d.oid, 0, '', 'p', p.partrelid, 0
FROM ({_DEPENDENTS}) d JOIN pg_catalog.pg_partitioned_table p
  ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND p.partrelid = d.objid
      AND d.objsubid = 0
UNION ALL SELECT 'k', u.oid, 0, '', 'p', p.partrelid, 0
FROM pg_catalog.pg_partitioned_table p, unnest(p.partclass::oid[]) AS u (oid)
WHERE u.oid = ANY ({{k}})
UNION ALL SELECT 'a', s.relation, s.number, '', 'p', p.partrelid, 0
FROM unnest({{a}}, {{n}}) AS s (relation, number) JOIN pg_catalog.pg_partitioned_table p
  ON p.partrelid = s.relation AND s.number = ANY (p.partattrs::int2[])
UNION ALL SELECT 'p', u.oid, 0, '', 'r', u.oid, 0 FROM unnest({{p}}) AS u (oid)
UNION ALL SELECT 'p', i.inhparent, 0, '', k.kind, i.inhrelid, 0
FROM pg_catalog.pg_inherits i, (VALUES ('p'), ('r')) AS k (kind) WHERE i.inhparent = ANY ({{p}})
UNION ALL SELECT 'r', i.inhrelid, 0, '', 'r', i.inhparent, 0
FROM pg_catalog.pg_inherits i WHERE i.inhrelid = ANY ({{r}})""",
}
# What runs when a relation is read because its owner wrote it there.
_QUERIES = f"""
    SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass AS class, w.oid, w.ev_class AS relation,
           'view' AS way, w.ev_action::text AS tree
    FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE w.ev_type = '1' AND c.relkind = 'v' AND {IS_USER_SCHEMA}
    UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, p.polrelid,
           'policy', p.polqual::text
    FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
    WHERE c.relrowsecurity AND p.polcmd IN ('r', '*')"""
_READ = f"""
SELECT d.kind, d.oid, 0, q.way, 'r', q.relation, 0
FROM ({_DEPENDENTS}) d JOIN ({_QUERIES}) q ON q.class = d.classid AND q.oid = d.objid
UNION ALL SELECT 'r', d.refobjid, 0, '', 'r', q.relation, 0
FROM pg_catalog.pg_depend d JOIN ({_QUERIES}) q ON q.class = d.classid AND q.oid = d.objid
WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = ANY ({{r}})
  AND d.refobjid <> q.relation
UNION ALL SELECT 'a', s.relation, s.number, q.way, 'r', q.relation, 0
FROM unnest({{a}}, {{n}}) AS s (relation, number) JOIN pg_catalog.pg_class c ON c.oid = s.relation
JOIN pg_catalog.pg_depend d
  ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = s.relation
JOIN ({_QUERIES}) q ON q.class = d.classid AND q.oid = d.objid
WHERE (q.relation <> s.relation OR q.way = 'policy')
  AND (d.refobjsubid = s.number OR q.tree LIKE '%:varattno 0 :vartype ' || c.reltype || ' %')"""

# kind, oid, column; its name
_NAMES = """
SELECT 'o', o.oid, 0, ARRAY[n.nspname, o.oprname] FROM pg_catalog.pg_operator o
JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace WHERE o.oid = ANY ({o})
UNION ALL SELECT 'f', p.oid, 0, ARRAY[n.nspname, p.proname] FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = ANY ({f})
UNION ALL SELECT u.kind, t.oid, 0, ARRAY[n.nspname, t.typname] FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace,
(VALUES ('t', {t}), ('g', {g}), ('h', {h})) AS u (kind, oids) WHERE t.oid = ANY (u.oids)
UNION ALL SELECT 'c', c.oid, 0, ARRAY['pg_catalog', s.typname, t.typname] FROM pg_catalog.pg_cast c
JOIN pg_catalog.pg_type s ON s.oid = c.castsource JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
WHERE c.oid = ANY ({c})
UNION ALL SELECT 'r', c.oid, 0, ARRAY[n.nspname, c.relname] FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ({r})
UNION ALL SELECT 'a', a.attrelid, a.attnum, ARRAY[n.nspname, c.relname, a.attname]
FROM unnest({a}, {n}) AS s (relation, number)
JOIN pg_catalog.pg_attribute a ON a.attrelid = s.relation AND a.attnum = s.number
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"""

# kind and oid of a type, or of a cast from it; a function or symbol of which a value may be of that
# type, and that takes none
_MAKERS = """
WITH made (kind, oid, type) AS (
    SELECT 't', u.oid, u.oid FROM unnest({t}) AS u (oid)
    UNION ALL SELECT 'c', c.oid, c.castsource FROM pg_catalog.pg_cast c WHERE c.oid = ANY ({c}))
SELECT m.kind, m.oid, p.proname FROM pg_catalog.pg_proc p,
unnest(p.prorettype || coalesce(p.proallargtypes, '{{}}')) AS u (type)
JOIN made m ON m.type = u.type
WHERE u.type <> ALL (p.proargtypes::oid[])
UNION SELECT m.kind, m.oid, o.oprname FROM pg_catalog.pg_operator o
JOIN made m ON m.type = o.oprresult
WHERE o.oprresult NOT IN (o.oprleft, o.oprright)"""

_KINDS = "fokghtcrp"


def _kinds_in(part: str) -> set[str]:
    """Return the kinds of nodes that a part of the query is about."""
    return {field for _, field, _, _ in Formatter().parse(part) if field}


_KINDS_OF_PARTS = {part: _kinds_in(part) for part in (*_CODE.values(), _READ)}


@dataclass(frozen=True)
class _Level:
    """The nodes that one query is about."""

    nodes: Sequence[CodeNode]

    def put_into(self, query: str) -> str:
        """Return the query about these nodes."""
        oids: defaultdict[str, list[int]] = defaultdict(list)
        numbers: list[int] = []
        for kind, oid, number in self.nodes:
            oids[kind].append(oid)
            if kind == "a":
                numbers.append(number)

        arrays = {kind: _array(oids[kind], "oid") for kind in (*_KINDS, "a")}
        return query.format(**arrays, n=_array(numbers, "int2"))


def _array(numbers: Iterable[int], of: str) -> str:
    return f"'{{{','.join(map(str, numbers))}}}'::{of}[]"


async def read_code_graph(connection: Connection) -> CodeGraph:
    """Return the graph; without what views and policies run where the server hides that.

    Raises psycopg2's errors.
    """
    functions: dict[CodeNode, str] = {}
    names: dict[CodeNode, Name] = {}
    for oid, schema, name, kind in (await connection.query(_FUNCTIONS)).rows:
        node = ("f", int(oid), 0)
        functions[node] = kind
        names[node] = (schema, name)

    edges = await _edges_from(list(functions), connection)
    used = functions.keys() & edges.keys()
    if not used:
        return CodeGraph()

    runners = {edge.runner for edge in chain.from_iterable(edges.values())}
    reached = runners | edges.keys()
    names |= await _read_names(reached, connection)
    return CodeGraph(
        functions={node: functions[node] for node in used},
        edges={node: tuple(edges_of) for node, edges_of in edges.items()},
        names={node: names[node] for node in reached & names.keys()},
        makers=await _read_makers(reached, connection),
    )


async def _edges_from(
    functions: list[CodeNode], connection: Connection
) -> Mapping[CodeNode, list[CodeEdge]]:
    """Return everything that runs one of them, directly or through others."""
    edges: dict[CodeNode, list[CodeEdge]] = {}
    seen = set(functions)
    level = functions
    for _ in range(_MAX_LEVELS):
        if not level:
            break

        nodes: list[CodeNode] = []
        rows = await _read_level(level, connection)
        async for kind, oid, number, way, runner_kind, runner, runner_number in yielding_to_loop(
            rows
        ):
            edge = CodeEdge((runner_kind, int(runner), int(runner_number)), way)
            edges.setdefault((kind, int(oid), int(number)), []).append(edge)
            if edge.runner not in seen:
                seen.add(edge.runner)
                nodes.append(edge.runner)

        level = nodes

    return edges


async def _read_level(level: Sequence[CodeNode], connection: Connection) -> list[Row]:
    """Return the rows of `_CODE` and `_READ` about the nodes."""
    rows: list[Row] = []
    kinds = {kind for kind, _, _ in level}
    for part, kinds_of_part in _KINDS_OF_PARTS.items():
        if kinds & kinds_of_part:
            rows += await _rows_of(_Level(level).put_into(part), connection)

    return rows


async def _read_names(nodes: Iterable[CodeNode], connection: Connection) -> Mapping[CodeNode, Name]:
    names: dict[CodeNode, Name] = {}
    rows = (await connection.query(_Level(sorted(nodes)).put_into(_NAMES))).rows
    async for kind, oid, number, name in yielding_to_loop(rows):
        names[kind, int(oid), int(number)] = parse_texts(name)

    return names


async def _rows_of(query: str, connection: Connection) -> list[Row]:
    try:
        return (await connection.query(query)).rows
    except psycopg2.errors.InsufficientPrivilege:  # some hosts hide parts of the catalogue
        return []


async def _read_makers(
    reached: Iterable[CodeNode], connection: Connection
) -> Mapping[CodeNode, frozenset[str]]:
    """Return the names of what makes values of the types reached."""
    types = sorted(node for node in reached if node[0] in ("t", "c"))
    makers: defaultdict[CodeNode, set[str]] = defaultdict(set)
    for kind, oid, name in (await connection.query(_Level(types).put_into(_MAKERS))).rows:
        makers[kind, int(oid), 0].add(name)

    return {node: frozenset(functions) for node, functions in makers.items()}
