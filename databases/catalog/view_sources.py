"""Reads which columns of which relations each view is made of, as PostgreSQL notes it.

A rewrite rule depends on every column that its query names and on every relation that it reads:
`pg_depend` tells this exactly, also for `count(*)` and for subqueries in LATERAL.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from common.values import Catalog
from databases.catalog.catalog_queries import IS_USER_SCHEMA
from guard.facts import Key
from postgres.connection import Connection

# view, its kind and definition, what it reads, and the column that it names there (NULL: none)
_QUERY = f"""
SELECT n.nspname, v.relname, v.relkind, sn.nspname, s.relname, a.attname,
       pg_catalog.pg_get_viewdef(v.oid)
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind IN ('v', 'm')
JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
     AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
     AND d.refobjid <> v.oid
JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind IN ('r', 'p', 'v', 'm', 'f')
JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = s.oid AND a.attnum = d.refobjsubid
     AND d.refobjsubid > 0
WHERE {IS_USER_SCHEMA}
ORDER BY 1, 2, 4, 5, a.attnum"""


@dataclass(frozen=True)
class ViewSources:
    """A view and what it reads.

    Attributes:
        definition: its query, with every relation qualified that is not in the search path.
        sources: the columns that it names of each relation, in their order.
    """

    view: Key
    kind: Literal["view", "matview"]
    definition: str
    sources: tuple[tuple[Key, tuple[str, ...]], ...]

    def among(self, catalog: Catalog) -> "ViewSources":
        """Return the view with only the sources and columns that the catalogue has."""
        sources = []
        for key, columns in self.sources:
            table = catalog.by_key.get(key)
            if table is not None:
                seen = tuple(name for name in columns if table.column(name) is not None)
                sources.append((key, seen))

        return replace(self, sources=tuple(sources))


async def read_view_sources(connection: Connection) -> tuple[ViewSources, ...]:
    """Return all views with what they read; raises psycopg2's errors."""
    kinds: dict[Key, tuple[str, str]] = {}
    columns: defaultdict[Key, dict[Key, list[str]]] = defaultdict(dict)
    for schema, name, kind, of_schema, of_name, column, text in (
        await connection.query(_QUERY)
    ).rows:
        view, source = (str(schema), str(name)), (str(of_schema), str(of_name))
        kinds[view] = (str(kind), str(text))
        named = columns[view].setdefault(source, [])
        if column is not None:
            named.append(str(column))

    views_read = []
    for view, (kind, text) in kinds.items():
        sources = tuple((source, tuple(named)) for source, named in columns[view].items())
        views_read.append(
            ViewSources(view, "matview" if kind == "m" else "view", text.rstrip(";"), sources)
        )

    return tuple(views_read)
