"""Puts rows into scratch: tables typed as those of the datasource, filled with samples or made-up
rows.
"""

from collections.abc import Sequence

from common.text import Text
from common.values import Table
from etl.meaning.value_kinds import kind_of_type
from etl.planning.draft_test import TypedRows
from etl.scratch.scratch_build import ScratchBuild
from etl.scratch.scratch_values import literal
from etl.scratch.source_sampling import Samples, TableSample
from postgres.identifiers import quoted, quoted_list

_TEXT = "text"


async def load_samples(build: ScratchBuild, samples: Samples) -> list[Text]:
    """Fill tables of scratch with the samples; return warnings of types that it lacks.

    Raises:
        InvalidSql, QueryTimeout, DatabaseUnavailable: it failed.
    """
    warnings: list[Text] = []
    for sample in samples.tables.values():
        warnings += await _load(build, sample)

    return warnings


async def _load(build: ScratchBuild, sample: TableSample) -> list[Text]:
    table = sample.table
    written = {name: _type_of(table, name) for name in sample.columns}
    server_types = await known_types(build, set(written.values()))
    types = dict(written)
    warnings = []
    for name, type_ in written.items():
        if type_ not in server_types:
            types[name] = _TEXT
            warnings.append(_unknown_type(table, name, type_))

    schema = await build.source_schema(table.schema)
    relation = f"{quoted(schema)}.{quoted(table.name)}"
    await build.execute(create_table(relation, list(types.items())))
    await build.copy_text(schema, table.name, sample.columns, sample.rows)
    await build.execute(f"ANALYZE {relation}")
    return warnings


def _type_of(table: Table, name: str) -> str:
    column = table.column(name)
    return column.type if column else _TEXT


async def known_types(build: ScratchBuild, types: set[str]) -> set[str]:
    """Return the types among these that the scratch server has."""
    if not types:
        return set()

    listed = ", ".join(f"({literal(written)})" for written in sorted(types))
    rows = await build.rows(
        f"SELECT t.name FROM (VALUES {listed}) AS t (name) WHERE to_regtype(t.name) IS NOT NULL"
    )
    return {str(name) for (name,) in rows.rows}


def create_table(relation: str, columns: Sequence[tuple[str, str]], kind: str = "TABLE") -> str:
    """Return the statement that creates an empty table.

    Args:
        relation: its name, quoted where needed.
        columns: names and types.
        kind: `TABLE` or `TEMPORARY TABLE`.
    """
    listed = ", ".join(f"{quoted(name)} {_collated(written)}" for name, written in columns)
    return f"CREATE {kind} {relation} ({listed})"


def _collated(written: str) -> str:
    """Return a type whose texts are sorted alike on every server."""
    if kind_of_type(written) == "text":
        return f'{written} COLLATE "C"'

    return written


def insert_rows(relation: str, rows: TypedRows) -> str | None:
    """Return the statement that fills a table with these rows; None without any."""
    if not rows.rows:
        return None

    names = quoted_list(name for name, _ in rows.columns)
    return f"INSERT INTO {relation} ({names}) VALUES {_value_lists(rows)}"


def _value_lists(rows: TypedRows) -> str:
    lists = []
    for row in rows.rows:
        values = ", ".join(map(literal, row))
        lists.append(f"({values})")

    return ", ".join(lists)


def typed_values(rows: TypedRows) -> str:
    """Return a query that gives these rows with their types, also when there are none."""
    if not rows.rows:
        nulls = [f"NULL::{written} AS {quoted(name)}" for name, written in rows.columns]
        return f"SELECT {', '.join(nulls)} WHERE false"

    names = []
    typed = []
    for place, (name, written) in enumerate(rows.columns):
        names.append(f"c{place}")
        typed.append(f"CAST(v.c{place} AS {written}) AS {quoted(name)}")

    values = f"(VALUES {_value_lists(rows)}) AS v ({', '.join(names)})"
    return f"SELECT {', '.join(typed)} FROM {values}"


def _unknown_type(table: Table, column: str, written: str) -> Text:
    place = f"{table.schema}.{table.name}.{column}"
    return Text(
        f"草稿库没有类型 {written}，{place} 按文本处理。",
        f"The scratch database has no type {written}, so {place} is text there.",
    )
