"""Check a semantic file against its database, before a service uses it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from common.actor import NOBODY
from common.ports import UrlSource
from common.values import Catalog, Table
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.options import DatabaseOptions
from knowledge.semantic.closest_name import suggestion_after
from knowledge.semantic.layer import SemanticLayer
from knowledge.semantic.problems import Problem
from knowledge.semantic.semantic_binding import tables_called
from knowledge.semantic.semantic_format import ColumnEntry, read_file


def read_catalog(source: UrlSource, options: DatabaseOptions) -> Catalog:
    """Read the catalogue of the database, sampled, as a service with these options does.

    Closes its connections.

    Raises:
        DatabaseUnavailable, QueryTimeout: it can't be read.
    """
    return _catalog(Datasource(source, options))


def problems_of(path: Path, source: UrlSource, options: DatabaseOptions) -> tuple[Problem, ...]:
    """Find the entries of the file at `path` that do not fit the database; sorted by line.

    Raises:
        SemanticFileError: the file can't be read or is not valid.
        DatabaseUnavailable, QueryTimeout: the database can't be read.
    """
    layer = SemanticLayer(path, allowed_functions=options.allowed_functions, logs=False)
    _catalog(Datasource(source, options, layer.annotate))
    return layer.problems or ()


def doubts_about(path: Path, catalog: Catalog) -> Iterator[Problem]:
    """Find values that the file names and no row holds, as far as a column's values are known."""
    for entry in read_file(path).tables:
        for table in tables_called(entry.name.text, catalog):
            for column_entry in entry.columns:
                yield from _unknown_values(column_entry, table)


def _unknown_values(entry: ColumnEntry, table: Table) -> Iterator[Problem]:
    column = table.column(entry.name.text)
    if column is None or column.allowed or not column.is_complete:
        return

    for spot, _ in entry.values:
        if spot.text not in column.values:
            near = suggestion_after(spot.text, column.values)
            problem = f"no row has the value {spot.text!r} in {column.name!r}{near}"
            yield Problem(spot.line, problem)


def _catalog(datasource: Datasource) -> Catalog:
    datasources = Datasources({DEFAULT: datasource})
    try:
        return asyncio.run(datasources.open(DEFAULT, NOBODY).catalog())
    finally:
        datasources.close()
