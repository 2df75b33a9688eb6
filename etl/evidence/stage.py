"""A place in scratch where models are built over given rows: the samples, or a made-up world."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import TypedRows
from etl.rendering.select_rendering import render_select
from etl.scratch.scratch_build import ScratchBuild
from etl.scratch.scratch_loading import create_table, insert_rows, typed_values
from postgres.identifiers import quoted, quoted_list

TableKey = tuple[str, str]


@dataclass(frozen=True)
class BuildStage:
    """The relations of a stage: models, and the tables that they read.

    Attributes:
        schema: the schema of the models, and of tables made for a world.
        tables: the tables that stand for those of the datasource, quoted.
    """

    schema: str
    tables: Mapping[TableKey, str]

    def relation(self, table: exp.Table) -> str:
        """Return the relation on the stage for a table or model that a tree reads."""
        if table.db:
            return self.tables[table.db, table.name]

        return self.model(table.name)

    def model(self, name: str) -> str:
        """Return the relation of a model."""
        return f"{quoted(self.schema)}.{quoted(name)}"

    def text(self, query: exp.Query) -> str:
        """Return a query over tables and models as SQL."""
        return render_select(query, self.relation, jinja=False)


def unqualified(table: exp.Table) -> str:
    """Return a model's name for a session whose search path leads to its stage."""
    return quoted(table.name)


def sample_stage(build: ScratchBuild, tables: Sequence[TableKey]) -> BuildStage:
    """Return the stage of the samples that were loaded."""
    named = {}
    for schema, name in tables:
        named[schema, name] = f"{quoted(build.source_schemas[schema])}.{quoted(name)}"

    return BuildStage(build.schema, named)


async def world_stage(build: ScratchBuild, draft: Draft, tables: Sequence[TypedRows]) -> BuildStage:
    """Make tables with these rows, and all models over them, in a schema of their own.

    Raises:
        InvalidSql: PostgreSQL refused a model or failed while building it.
    """
    schema = await build.further_schema()
    # Names with a blank are no model's.
    named = {
        (rows.schema, rows.name): f'{quoted(schema)}."table {place}"'
        for place, rows in enumerate(tables)
    }
    stage = BuildStage(schema, named)
    await build.execute(await asyncio.to_thread(_script, stage, draft, tables))
    return stage


def _script(stage: BuildStage, draft: Draft, tables: Sequence[TypedRows]) -> str:
    statements = []
    for rows in tables:
        relation = stage.tables[rows.schema, rows.name]
        statements.append(create_table(relation, rows.columns, "UNLOGGED TABLE"))
        inserted = insert_rows(relation, rows)
        if inserted is not None:
            statements.append(inserted)

    statements += [model_table(stage, model) for model in draft.models]
    return ";\n".join(statements)


def model_table(stage: BuildStage, model: DraftModel) -> str:
    """Return the statement that builds a model as a table, whatever it is later."""
    return f"CREATE UNLOGGED TABLE {stage.model(model.name)} AS {stage.text(model.select)}"


def difference(actual: str, expected: str, columns: Sequence[str]) -> str:
    """Return a query that counts rows of one query that the other lacks, repeated ones included."""
    listed = quoted_list(columns)
    return (
        f"WITH built AS MATERIALIZED (SELECT {listed} FROM ({actual}) AS actual), "
        f"wanted AS MATERIALIZED (SELECT {listed} FROM ({expected}) AS expected) "
        "SELECT count(*) FROM ((TABLE built EXCEPT ALL TABLE wanted) "
        "UNION ALL (TABLE wanted EXCEPT ALL TABLE built)) AS differing"
    )


async def differing_rows(build: ScratchBuild, actual: str, expected: TypedRows) -> int:
    """Return how many rows of a query are unexpected, plus how many expected ones it lacks."""
    columns = [name for name, _ in expected.columns]
    rows = await build.rows(difference(actual, typed_values(expected), columns))
    return int(rows.rows[0][0])
