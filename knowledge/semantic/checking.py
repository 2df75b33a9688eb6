"""Checks a semantic file against its database, before a service uses it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from common.actor import NOBODY
from common.ports import UrlSource
from common.values import Catalog, Column
from databases import DEFAULT, DatabaseOptions, Datasource, Datasources
from knowledge.semantic.binding import tables_called
from knowledge.semantic.format import read_file
from knowledge.semantic.layer import SemanticLayer
from knowledge.semantic.near import did_you_mean
from knowledge.semantic.problems import Problem


def read_catalog(source: UrlSource, options: DatabaseOptions) -> Catalog:
    """The catalogue of the database, sampled, as a service with these options reads it; closes its connections.

    Raises:
        DatabaseUnavailable, QueryTimeout: it can't be read.
    """
    return _catalog(Datasource(source, options))


def problems_of(path: Path, source: UrlSource, options: DatabaseOptions) -> tuple[Problem, ...]:
    """What of the file at `path` does not fit the database, by line.

    Raises:
        SemanticFileError: the file can't be read or is not valid.
        DatabaseUnavailable, QueryTimeout: the database can't be read.
    """
    layer = SemanticLayer(path, allowed_functions=options.allowed_functions, logs=False)
    _catalog(Datasource(source, options, layer.annotate))
    return layer.problems or ()


def doubts_about(path: Path, catalog: Catalog) -> Iterator[Problem]:
    """Values that the file names and no row holds, of columns all of whose values are known."""
    for entry in read_file(path).tables:
        for table in tables_called(entry.name.text, catalog):
            for said in entry.columns:
                column = table.column(said.name.text)
                if column is not None and column.is_complete and not column.allowed:
                    unknown = (spot for spot, _ in said.values if spot.text not in column.values)
                    yield from (_doubt(spot.line, spot.text, column) for spot in unknown)


def _doubt(line: int, value: str, column: Column) -> Problem:
    return Problem(line, f"no row has the value {value!r} in {column.name!r}{did_you_mean(value, column.values)}")


def _catalog(datasource: Datasource) -> Catalog:
    datasources = Datasources({DEFAULT: datasource})
    try:
        return asyncio.run(datasources.open(DEFAULT, NOBODY).catalog())
    finally:
        datasources.close()
