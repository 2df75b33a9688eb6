"""Which tables a statement reads, and a hash of how they are defined, which tells whether its proof
still holds.
"""

from collections.abc import Iterable
from hashlib import blake2b

from common.ports import Inspected
from common.values import Catalog, Table

_HASH_BYTES = 16


def tables_read(inspected: Inspected, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """(schema, name) of the tables that a proven query reads, in alphabetical order.

    A name without a schema is looked for along the search path of `catalog`, as PostgreSQL does. A
    table that is newer than the catalogue is taken to be in the first schema of the path: its hash
    changes as soon as it is known.
    """
    return tuple(sorted({_key(name, catalog) for name in inspected.tables}))


def tables_hash(tables: Iterable[tuple[str, str]], catalog: Catalog) -> str:
    """A hash of the tables' definitions: kinds, columns with their types, and primary keys.

    Comments, stored values, row counts and other tables have no part in it. A table that is gone
    has its own hash.
    """
    digest = blake2b(digest_size=_HASH_BYTES)
    for key in sorted(set(tables)):
        digest.update(
            repr((key, _definition(catalog.by_key.get(key)))).encode("utf-8", "surrogatepass")
        )
    return digest.hexdigest()


def _definition(table: Table | None) -> object:
    if table is None:
        return None
    return (
        table.kind,
        tuple((column.name, column.type) for column in table.columns),
        table.primary_key,
    )


def _key(name: str, catalog: Catalog) -> tuple[str, str]:
    schema, dot, table = name.partition(".")
    if dot and (schema, table) in catalog.by_key:
        return (schema, table)
    keys = [(each, name) for each in catalog.search_path]
    known = next((key for key in keys if key in catalog.by_key), None)
    return known or ((schema, table) if dot or not keys else keys[0])
