"""A draft's tests as SQL files: each ends in one SELECT, and holds when that gives no row."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from etl.planning.draft_model import Draft, DraftModel, nodes_behind
from etl.planning.draft_test import DraftTest, TypedRows, UnitCase
from etl.rendering.column_tests import failing_rows
from etl.rendering.layout import Layout
from etl.rendering.plain_sql import File
from etl.rendering.select_rendering import identifier_text, prove_query
from etl.rendering.value_rows import row_selects, together

Columns = Sequence[tuple[str, str]]
"""Names with PostgreSQL's types."""
_PROVEN_ROWS = 5
_WARNING = "-- A warning: its rows are told, and break nothing.\n"


def plain_test_files(draft: Draft, tests: tuple[DraftTest, ...], layout: Layout) -> Iterator[File]:
    """Yield the file of each test that is more than the build itself."""
    paths = layout.plain_tests(tests)
    for test in tests:
        text = _test_text(draft, test, layout)
        if text is not None:
            yield paths[test.id], text


def _test_text(draft: Draft, test: DraftTest, layout: Layout) -> str | None:
    if test.kind == "late_rows":
        return None  # plain SQL always builds everything anew
    if test.case is not None:
        return _unit_test(draft, test.case, test.node, layout)

    failures = failing_rows(test)
    if failures is None:
        return None

    query = layout.texts.query(failures, layout.sql_name, jinja=False)
    prove_query(query)
    head = _WARNING if test.is_warning else ""
    return f"{head}{query};\n"


# ------------------------------------------------------------------------------
# unit tests


def _unit_test(draft: Draft, case: UnitCase, node: str, layout: Layout) -> str:
    """Return a script that builds what leads to a model from made-up rows, and leaves nothing."""
    model = draft.model(node)
    schema = f"etl_unit_{node}"[:63]
    lines = ["BEGIN;", f"CREATE SCHEMA {schema};", f"SET LOCAL search_path TO {schema};"]
    for rows in case.sources:
        source = layout.source(rows.schema, rows.name)
        lines.append(
            f"CREATE TABLE {identifier_text(source.view)} AS\n{layout.texts.values(rows)};"
        )

    for one in models_behind(draft, model):
        path = layout.plain_model(one).removeprefix("sql/")
        lines.append(f"\\ir ../{path}")

    lines.append(f"{differences(case.expected, model, layout)};")
    lines.append("ROLLBACK;")
    return "\n".join(lines) + "\n"


def models_behind(draft: Draft, model: DraftModel) -> list[DraftModel]:
    """Return the model and those that it reads, in topological order."""
    nodes = [one.node for one in draft.models]
    behind = nodes_behind(nodes, model.name)
    return [one for one in draft.models if one.name in behind]


def differences(expected: TypedRows, model: DraftModel, layout: Layout) -> str:
    """Return a query for the rows that are there and should not be, and the other way round."""
    types = {column.name: column.type for column in model.node.columns}
    columns = tuple((name, types.get(name, type_)) for name, type_ in expected.columns)
    values = row_selects(replace(expected, columns=columns))
    # Further rows are literals like the first ones, and too many for a proof.
    prove_query(_differences(columns, values[:_PROVEN_ROWS], model, layout))
    return _differences(columns, values, model, layout)


def _differences(columns: Columns, values: Sequence[str], model: DraftModel, layout: Layout) -> str:
    names = ",\n    ".join(identifier_text(name) for name, _ in columns)
    listed = _LISTED.format(names=names, values=together(values, indent=_INDENT))
    built = _BUILT.format(names=names, relation=layout.plain_place(model))
    sides = (("built", built, listed), ("expected", listed, built))
    return "\nUNION ALL\n".join(
        _ONLY_IN.format(side=side, one=one, other=other) for side, one, other in sides
    )


# Rows are many and their query has one shape, so that it is written without a tree.
_INDENT = " " * 4
_BUILT = """\
  SELECT
    {names}
  FROM {relation}"""
# In a subquery, because UNION and EXCEPT bind alike.
_LISTED = """\
  SELECT
    {names}
  FROM (
    {values}
  ) AS etl_expected"""
_ONLY_IN = """\
SELECT
  '{side}' AS etl_side,
  rest.*
FROM (
{one}
  EXCEPT ALL
{other}
) AS rest"""
