"""The queries of the system catalogue: what a role may read, and what the guard must know.

Their number does not depend on the number of tables. Every identifier is qualified, so that no
search_path can lead elsewhere. The comment before each query says what its columns are.
"""

# Relations of extensions hold no data of the user's, but may hold secrets or other sessions'
# statements.
_OWNED_BY_EXTENSION = """EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid
        AND d.deptype = 'e')"""

IS_USER_SCHEMA = "n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"

# What the role may read, whole or by some columns.
_READABLE = f"""
    SELECT c.oid, n.nspname, c.relname, c.relkind, c.reltuples,
           pg_catalog.has_table_privilege(c.oid, 'SELECT') AS is_whole
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND {IS_USER_SCHEMA}
      AND NOT {_OWNED_BY_EXTENSION}
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
      AND (pg_catalog.has_table_privilege(c.oid, 'SELECT')
           OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
"""

# Types of columns whose first and last day are read.
_DAYS = "'date', 'timestamp', 'timestamptz'"

# oid, schema, name, kind, row estimate, bytes on disk, comment
RELATIONS = f"""
SELECT r.oid, r.nspname, r.relname, r.relkind,
       CASE WHEN r.relkind = 'v' OR r.relkind = 'f' AND r.reltuples = 0 THEN -1
            WHEN r.relkind <> 'p' THEN r.reltuples
            ELSE coalesce((SELECT sum(l.reltuples) FROM pg_catalog.pg_partition_tree(r.oid) p
                           JOIN pg_catalog.pg_class l ON l.oid = p.relid
                           WHERE p.isleaf AND l.reltuples >= 0), -1) END::int8,
       CASE WHEN r.relkind IN ('r', 'm') THEN pg_catalog.pg_relation_size(r.oid)
            WHEN r.relkind = 'p' THEN (SELECT sum(pg_catalog.pg_relation_size(p.relid))
                                       FROM pg_catalog.pg_partition_tree(r.oid) p
                                       WHERE p.isleaf) END,
       d.description
FROM ({_READABLE}) r
LEFT JOIN pg_catalog.pg_description d
  ON d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objoid = r.oid AND d.objsubid = 0
ORDER BY r.nspname, r.relname
"""

# Types whose values can be read as text without running anybody's code: PostgreSQL's own strings,
# enums, types stored as text (citext), and domains over them. Other types of the string category
# may have a cast or output of their own.
_TEXT_TYPES = """
WITH RECURSIVE base (oid, base) AS (
    SELECT oid, oid FROM pg_catalog.pg_type WHERE typcategory IN ('S', 'E') AND typtype <> 'd'
    UNION ALL SELECT t.oid, base.base FROM base
    JOIN pg_catalog.pg_type t ON t.typbasetype = base.oid)
SELECT base.oid FROM base JOIN pg_catalog.pg_type b ON b.oid = base.base
LEFT JOIN pg_catalog.pg_cast c ON c.castsource = b.oid
    AND c.casttarget = 'pg_catalog.text'::pg_catalog.regtype
WHERE CASE WHEN b.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
               THEN b.typname NOT IN ('name', 'char')
           WHEN b.typtype = 'e' THEN c.oid IS NULL
           ELSE c.castmethod = 'b' END"""

# table's oid, name, type, nullable, comment, whether its values may be sampled, whether it holds
# days, its type's oid, and that of the type that may be an enum: the type itself, a domain's base
# or an array's element
COLUMNS = f"""
SELECT r.oid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       d.description,
       s.oid IS NOT NULL,
       coalesce(b.typname, t.typname) IN ({_DAYS})
       AND coalesce(b.typnamespace, t.typnamespace) = 'pg_catalog'::pg_catalog.regnamespace,
       t.oid, coalesce(nullif(t.typbasetype, 0), nullif(t.typelem, 0), t.oid)
FROM ({_READABLE}) r
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
LEFT JOIN ({_TEXT_TYPES}) s ON s.oid = a.atttypid
LEFT JOIN pg_catalog.pg_description d
  ON d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objoid = r.oid
      AND d.objsubid = a.attnum
WHERE r.is_whole OR pg_catalog.has_column_privilege(r.oid, a.attnum, 'SELECT')
ORDER BY r.oid, a.attnum
"""

# table's oid, 'p', 'u' or 'f', columns, target's schema, name and columns
KEYS = f"""
SELECT k.conrelid, k.contype,
       (SELECT pg_catalog.array_agg(a.attname ORDER BY u.n)
        FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum),
       n.nspname, c.relname,
       (SELECT pg_catalog.array_agg(a.attname ORDER BY u.n)
        FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum)
FROM ({_READABLE}) r
JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid AND k.contype IN ('p', 'u', 'f')
LEFT JOIN pg_catalog.pg_class c ON c.oid = k.confrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY k.conrelid, k.conname
"""

# oid of a table with partitions on other servers, and the columns of its partition key
SPREAD_BY_PARTITIONS = """
SELECT p.partrelid,
       (SELECT pg_catalog.array_agg(a.attname ORDER BY u.n)
        FROM unnest(p.partattrs::pg_catalog.int2[]) WITH ORDINALITY AS u (attnum, n)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = u.attnum)
FROM pg_catalog.pg_partitioned_table p
WHERE EXISTS (SELECT FROM pg_catalog.pg_inherits i
              JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
              WHERE i.inhparent = p.partrelid AND c.relkind = 'f')
"""

# oid of a table that Citus distributes, and its distribution column
SPREAD_BY_CITUS = """
SELECT d.logicalrelid::pg_catalog.oid,
       ARRAY[pg_catalog.column_to_column_name(d.logicalrelid, d.partkey)]
FROM pg_catalog.pg_dist_partition d WHERE d.partkey IS NOT NULL
"""

# what is noted of attached sources; see `source_notes`
SOURCE_NOTES = """
SELECT d.description FROM pg_catalog.pg_foreign_server s
JOIN pg_catalog.pg_description d
  ON d.classoid = 'pg_catalog.pg_foreign_server'::pg_catalog.regclass AND d.objoid = s.oid
WHERE d.description LIKE '{"citu_source": %'
"""

# schema, table, column, most common values, whether they are all
STATISTICS = f"""
SELECT s.schemaname, s.tablename, s.attname, s.most_common_vals,
       s.n_distinct = pg_catalog.array_length(s.most_common_freqs, 1)
       AND s.null_frac + (SELECT sum(f) FROM unnest(s.most_common_freqs) f) > 0.999
FROM pg_catalog.pg_stats s
JOIN ({_READABLE}) r ON r.nspname = s.schemaname AND r.relname = s.tablename
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attname = s.attname
JOIN ({_TEXT_TYPES}) t ON t.oid = a.atttypid
WHERE s.inherited = (r.relkind = 'p') AND s.most_common_vals IS NOT NULL AND s.avg_width <= 200
"""

# schema, table, column, and the least and the greatest of its days that statistics hold, with those
# among the most common ones
PERIODS = f"""
SELECT s.schemaname, s.tablename, s.attname,
       (s.histogram_bounds::text::text[])[1],
       (s.histogram_bounds::text::text[])[
           pg_catalog.array_length(s.histogram_bounds::text::text[], 1)],
       s.most_common_vals
FROM pg_catalog.pg_stats s
JOIN ({_READABLE}) r ON r.nspname = s.schemaname AND r.relname = s.tablename
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attname = s.attname
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
WHERE s.inherited = (r.relkind = 'p') AND coalesce(b.typname, t.typname) IN ({_DAYS})
"""

# oid of an enum, its labels in order
LABELS = """
SELECT e.enumtypid, pg_catalog.array_agg(e.enumlabel ORDER BY e.enumsortorder)
FROM pg_catalog.pg_enum e
GROUP BY e.enumtypid
"""

# oid of a table, or else of a domain, and a CHECK that may list values
CHECKS = f"""
SELECT oid, domain, expression
FROM (SELECT k.conrelid AS oid, k.contypid AS domain,
             pg_catalog.pg_get_expr(k.conbin, k.conrelid) AS expression
      FROM pg_catalog.pg_constraint k
      WHERE k.contype = 'c' AND k.convalidated
        AND (k.contypid <> 0 OR k.conrelid IN (SELECT r.oid FROM ({_READABLE}) r))
     ) k
WHERE expression LIKE '%=%' AND pg_catalog.length(expression) < 8000
"""

# the version as a number: 150004 is 15.4
VERSION = """
SELECT pg_catalog.current_setting('server_version_num'),
       pg_catalog.current_setting('server_encoding')
"""

# Whether it may be called with one argument: such a call can be written like a field,
# `value.function`.
_TAKES_ONE = "(p.prokind <> 'p' AND p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1)"

# name, whether no overload is volatile, whether one takes a single argument
BUILTINS = f"""
SELECT p.proname, bool_and(p.provolatile <> 'v'), bool_or({_TAKES_ONE})
FROM pg_catalog.pg_proc p
WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace GROUP BY p.proname
"""

# Functions that may have side effects: VOLATILE ones, and those that run with their owner's rights.
_IS_RISKY = "({0}.provolatile = 'v' OR {0}.prosecdef)"

# These don't exist on every server.
_MULTIRANGE = "(pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid"

# Whether a function of an extension is marked STABLE: these read settings, not tables.
_IS_STABLE_OF_EXTENSION = """({0}.provolatile = 's' AND EXISTS (
    SELECT FROM pg_catalog.pg_depend e WHERE e.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
    AND e.objid = {0}.oid AND e.deptype = 'e'))"""

# schema, name, whether an overload takes a single argument, whether one may have side effects (an
# aggregate: what it is made of), whether all are constructors of ranges (which compare bounds and
# put them into their form) without any, whether one may read tables, and where built-in functions
# share the name, the types that IMMUTABLE ones take
ROUTINES = f"""
WITH own AS MATERIALIZED (
    SELECT p.*, n.nspname FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname <> 'pg_catalog'
), risky_aggregate AS MATERIALIZED (
    SELECT a.aggfnoid::oid AS oid FROM own JOIN pg_catalog.pg_aggregate a ON a.aggfnoid = own.oid
    LEFT JOIN pg_catalog.pg_operator o ON o.oid = a.aggsortop,
    unnest(ARRAY[a.aggtransfn::oid, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn,
                 a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn, o.oprcode]) AS u (oid)
    JOIN pg_catalog.pg_proc m ON m.oid = u.oid WHERE {_IS_RISKY.format("m")}
), risky_range AS MATERIALIZED (
    SELECT u.oid FROM pg_catalog.pg_range r JOIN pg_catalog.pg_opclass k ON k.oid = r.rngsubopc
    JOIN pg_catalog.pg_amproc s ON s.amprocfamily = k.opcfamily
    JOIN pg_catalog.pg_proc f ON f.oid IN (r.rngcanonical::oid, s.amproc::oid),
    unnest(ARRAY[r.rngtypid, {_MULTIRANGE}]) AS u (oid)
    WHERE u.oid IS NOT NULL AND {_IS_RISKY.format("f")}
)
SELECT p.nspname, p.proname, bool_or({_TAKES_ONE}),
       bool_or({_IS_RISKY.format("p")} OR p.oid IN (SELECT oid FROM risky_aggregate)),
       bool_and(p.prosrc ~ '^(multi)?range_constructor' AND l.lanname = 'internal'
                AND p.prorettype NOT IN (SELECT oid FROM risky_range)),
       bool_or({_IS_RISKY.format("p")} OR p.provolatile = 's'
           AND NOT {_IS_STABLE_OF_EXTENSION.format("p")}
               OR p.oid IN (SELECT oid FROM risky_aggregate)),
       CASE WHEN p.proname IN (SELECT b.proname FROM pg_catalog.pg_proc b
                               WHERE b.pronamespace = 'pg_catalog'::pg_catalog.regnamespace) THEN (
           SELECT pg_catalog.array_agg(DISTINCT n.nspname || '.' || t.typname)
           FROM own q, unnest(q.proargtypes::oid[]) AS u (oid)
           JOIN pg_catalog.pg_type t ON t.oid = u.oid
           JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
           WHERE q.nspname = p.nspname AND q.proname = p.proname AND q.provolatile = 'i'
               AND NOT q.prosecdef
             AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace) END
FROM own p JOIN pg_catalog.pg_language l ON l.oid = p.prolang GROUP BY p.nspname, p.proname
"""

# Functions whose value is or may be a row: name, the row's columns where they are declared
ROW_RESULTS = """
SELECT p.proname, CASE
    WHEN t.typrelid <> 0 THEN (
        SELECT pg_catalog.array_agg(a.attname) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)
    WHEN p.proargmodes IS NOT NULL THEN (
        SELECT pg_catalog.array_agg(u.name)
        FROM unnest(p.proargnames, p.proargmodes) AS u (name, mode)
        WHERE u.mode IN ('o', 'b', 't')) END
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t ON t.oid = p.prorettype
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
WHERE t.typtype IN ('c', 'p') OR b.typtype = 'c'
"""

# relation's or composite type's OID, schema and name, its columns in order, for each of them the
# OID of the composite type of its values (of its elements: negative) or 0, and the OID of its type
ATTRIBUTES = f"""
SELECT c.oid, n.nspname, c.relname, pg_catalog.array_agg(a.attname ORDER BY a.attnum),
       pg_catalog.array_agg(CASE WHEN e.typrelid <> 0 THEN -e.typrelid::int8
                                 ELSE coalesce(b.typrelid, t.typrelid)::int8 END ORDER BY a.attnum),
       pg_catalog.array_agg(t.oid::int8 ORDER BY a.attnum)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_type e ON e.oid = coalesce(b.typelem, t.typelem) AND t.typcategory = 'A'
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND {IS_USER_SCHEMA}
GROUP BY c.oid, n.nspname, c.relname
"""

# names usable as `type(value)`
TYPES = "SELECT DISTINCT typname FROM pg_catalog.pg_type WHERE typtype IN ('b', 'd', 'e', 'r', 'm')"

# schema, name, whether it belongs to an extension
ALL_RELATIONS = f"""
SELECT n.nspname, c.relname, {_OWNED_BY_EXTENSION}
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_(toast|temp)'
"""

# oid, schema, name
TYPE_NAMES = """
SELECT t.oid, n.nspname, t.typname FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.oid IN (SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attnum > 0)
"""

# symbol, oid, schema, and schema and name of each operand's type of an operator of the user's
USER_OPERATORS = """
SELECT o.oprname, o.oid, n.nspname, ln.nspname, l.typname, rn.nspname, r.typname
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
LEFT JOIN pg_catalog.pg_type l ON l.oid = o.oprleft
LEFT JOIN pg_catalog.pg_namespace ln ON ln.oid = l.typnamespace
LEFT JOIN pg_catalog.pg_type r ON r.oid = o.oprright
LEFT JOIN pg_catalog.pg_namespace rn ON rn.oid = r.typnamespace
WHERE o.oprnamespace <> 'pg_catalog'::pg_catalog.regnamespace
"""

# symbol of built-in operators, and the types of which two values are compared by it
BUILTIN_OPERATORS = """
SELECT o.oprname, pg_catalog.array_agg(t.typname)
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_type t ON t.oid = o.oprright
WHERE o.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace
    AND (o.oprname <> '=' OR o.oprleft = o.oprright)
GROUP BY o.oprname
"""

# schema and name of a type whose values are read and written by the names of the server's own
# objects, or that holds such a type; or of a relation, and its column of such a type
CATALOG_TYPES = f"""
WITH RECURSIVE held (type) AS (
    SELECT t.oid FROM pg_catalog.pg_type t
    WHERE t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
        AND t.typname ~ '^(reg[a-z]+|aclitem)$'
    UNION SELECT c.whole FROM held h JOIN (
        SELECT typelem AS part, oid AS whole FROM pg_catalog.pg_type
        WHERE typcategory = 'A' AND typelem <> 0
        UNION ALL SELECT typbasetype, oid FROM pg_catalog.pg_type WHERE typtype = 'd'
        UNION ALL SELECT rngsubtype, rngtypid FROM pg_catalog.pg_range
        UNION ALL SELECT a.atttypid, c.reltype
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.reltype <> 0 AND {IS_USER_SCHEMA}
    ) c ON c.part = h.type)
SELECT n.nspname, t.typname, NULL FROM held h
JOIN pg_catalog.pg_type t ON t.oid = h.type JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
UNION ALL SELECT n.nspname, c.relname, a.attname FROM held h
JOIN pg_catalog.pg_attribute a ON a.atttypid = h.type AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {IS_USER_SCHEMA}
"""

# schema and name of each partition or inheritance child, and of each of its ancestors
PARENTS = """
WITH RECURSIVE up (child, parent) AS (
    SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits
    UNION SELECT up.child, i.inhparent FROM up
    JOIN pg_catalog.pg_inherits i ON i.inhrelid = up.parent)
SELECT cn.nspname, c.relname, pn.nspname, p.relname FROM up
JOIN pg_catalog.pg_class c ON c.oid = up.child
JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
JOIN pg_catalog.pg_class p ON p.oid = up.parent
JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('r', 'p', 'f')
"""

# schema, table, generated column, columns that it is computed from
GENERATED = f"""
SELECT n.nspname, c.relname, a.attname, pg_catalog.array_agg(s.attname)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.refobjid = a.attrelid
    AND (d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid = f.oid
         OR d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = a.attrelid
            AND d.objsubid = a.attnum)
JOIN pg_catalog.pg_attribute s ON s.attrelid = a.attrelid AND s.attnum = d.refobjsubid
    AND s.attnum <> a.attnum
WHERE a.attgenerated <> '' AND {IS_USER_SCHEMA}
GROUP BY n.nspname, c.relname, a.attname
"""

# schema, name, query, whether its rows are stored
VIEWS = f"""
SELECT n.nspname, c.relname, pg_catalog.pg_get_viewdef(c.oid), c.relkind = 'm'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND {IS_USER_SCHEMA}
"""

# A function of the user's that may read tables. Those marked IMMUTABLE don't, and neither do those
# of extensions.
_MAY_READ = """(p.provolatile <> 'i' OR p.prosecdef)
  AND p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend e
    WHERE e.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.objid = p.oid
        AND e.deptype = 'e')"""

# schema and name of a relation; those of such a function that reading it calls: in a view's query
# or in a policy, also by an operator, a cast or a domain's check
READ_FUNCTIONS = f"""
SELECT DISTINCT n.nspname, c.relname, f.nspname, p.proname
FROM (SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass AS class, oid, ev_class AS relation
      FROM pg_catalog.pg_rewrite WHERE ev_type = '1'
      UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, oid, polrelid
      FROM pg_catalog.pg_policy) w
JOIN pg_catalog.pg_class c ON c.oid = w.relation
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_depend d ON d.classid = w.class AND d.objid = w.oid
LEFT JOIN pg_catalog.pg_operator o
    ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
LEFT JOIN pg_catalog.pg_constraint k
    ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND k.contypid = d.refobjid
LEFT JOIN pg_catalog.pg_depend x ON x.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass
    AND x.objid = k.oid
    AND x.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
JOIN pg_catalog.pg_proc p ON p.oid = CASE d.refclassid
    WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN d.refobjid
    WHEN 'pg_catalog.pg_operator'::pg_catalog.regclass THEN o.oprcode::pg_catalog.oid
    ELSE x.refobjid END
JOIN pg_catalog.pg_namespace f ON f.oid = p.pronamespace
WHERE {IS_USER_SCHEMA} AND {_MAY_READ}
"""

# schema and name of tables that run more than a scan when they are read: other servers' (null), and
# those with row-level security (the conditions of its policies)
READ_CONDITIONS = f"""
SELECT n.nspname, c.relname,
       CASE WHEN c.relkind <> 'f' THEN pg_catalog.pg_get_expr(p.polqual, p.polrelid) END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid AND p.polcmd IN ('r', '*')
WHERE (c.relkind = 'f' OR c.relrowsecurity AND p.polqual IS NOT NULL) AND {IS_USER_SCHEMA}
"""
