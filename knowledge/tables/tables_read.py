"""Tell which tables a statement reads, and whether they are still defined as when it was proven."""

from collections.abc import Iterable
from hashlib import blake2b

from common.ports import Inspected
from common.values import Catalog, Table

_HASH_BYTES = 16


def tables_read(inspected: Inspected, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return (schema, name) of the tables that a proven query reads, in alphabetical order.

    A name without a schema is looked for along the search path of `catalog`, as PostgreSQL does. A
    table that is newer than the catalogue is taken to be in the first schema of the path: its hash
    changes as soon as it is known.
    """
    return tuple(sorted({_key(name, catalog) for name in inspected.tables}))


def tables_hash(tables: Iterable[tuple[str, str]], catalog: Catalog) -> str:
    """Hash the tables' definitions: kinds, columns with their types, and primary keys.

    Comments, stored values, row counts and other tables have no part in it. A table that is gone
    has its own hash.
    """
    digest = blake2b(digest_size=_HASH_BYTES)
    for key in sorted(set(tables)):
        definition = _definition(catalog.by_key.get(key))
        digest.update(repr((key, definition)).encode("utf-8", "surrogatepass"))

    return digest.hexdigest()


def _definition(table: Table | None) -> object:
    if table is None:
        return None

    columns = tuple((column.name, column.type) for column in table.columns)
    return (table.kind, columns, table.primary_key)


def _key(name: str, catalog: Catalog) -> tuple[str, str]:
    """Return schema and table that a name, qualified or not, means by the search path."""
    schema, dot, table = name.partition(".")
    qualified = (schema, table)
    if dot and qualified in catalog.by_key:
        return qualified

    keys = [(each, name) for each in catalog.search_path]
    for key in keys:
        if key in catalog.by_key:
            return key

    if dot or not keys:
        return qualified

    return keys[0]
