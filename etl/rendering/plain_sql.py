"""A draft as SQL files for psql."""

from collections.abc import Iterator

from etl.planning.draft_model import Draft, DraftModel
from etl.rendering.layout import BUILD_FILE, SOURCES_FILE, Layout, SourceTable
from etl.rendering.select_rendering import identifier_text, prove_query

File = tuple[str, str]
"""The path and the text of a file."""


def source_view(source: SourceTable) -> str:
    """Return the statement that makes the view of a table of the datasource."""
    columns = ", ".join(identifier_text(name) for name in source.columns)
    table = f"{identifier_text(source.schema)}.{identifier_text(source.name)}"
    return f"CREATE VIEW {identifier_text(source.view)} AS SELECT {columns} FROM {table};\n"


def model_statement(model: DraftModel, layout: Layout) -> str:
    """Return the statement that makes a model's relation, all names without a schema.

    Raises:
        StatementRejected: the model's SELECT is not one query.
    """
    query = layout.texts.query(model.select, layout.sql_name, jinja=False)
    prove_query(query)
    return f"CREATE {_relation_kind(model)} {identifier_text(model.relation)} AS\n{query};\n"


def plain_files(draft: Draft, layout: Layout) -> Iterator[File]:
    """Yield the files by which psql builds the draft, without dbt."""
    yield SOURCES_FILE, "".join(source_view(source) for source in layout.sources)
    for model in draft.models:
        yield layout.plain_model(model), model_statement(model, layout)

    yield BUILD_FILE, _build(draft, layout)


def _relation_kind(model: DraftModel) -> str:
    is_view = model.node.materialization == "view"
    return "VIEW" if is_view else "TABLE"


def _build(draft: Draft, layout: Layout) -> str:
    """Return what builds all, in one transaction: either everything is new or nothing is."""
    lines = ["\\set ON_ERROR_STOP on", "SET client_min_messages = warning;", "BEGIN;"]
    for model in reversed(draft.models):
        lines.append(f"DROP {_relation_kind(model)} IF EXISTS {identifier_text(model.relation)};")

    for source in layout.sources:
        lines.append(f"DROP VIEW IF EXISTS {identifier_text(source.view)};")

    lines.append(f"\\ir {_in_folder(SOURCES_FILE)}")
    lines.extend(f"\\ir {_in_folder(layout.plain_model(model))}" for model in draft.models)
    lines.append("COMMIT;")
    return "\n".join(lines) + "\n"


def _in_folder(path: str) -> str:
    return path.removeprefix("sql/")
