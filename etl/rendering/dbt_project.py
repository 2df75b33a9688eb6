"""A draft as a dbt project."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlglot import exp

from common.meanings import TableKey
from common.text import Lang
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import DraftTest
from etl.planning.sql_trees import variables_among
from etl.rendering.dbt_tests import generic_tests, singular_tests, unit_tests
from etl.rendering.jinja_text import jinja_string, raw_text
from etl.rendering.layer_texts import LAYER_TEXTS
from etl.rendering.layout import Layout, SourceTable, schema_variable
from etl.rendering.plain_sql import File
from etl.rendering.select_rendering import identifier_text, render_condition
from etl.rendering.source_freshness import loaded_at_field
from etl.rendering.yaml_files import YamlFiles
from etl.schemas.plan import NodeColumn
from postgres.identifiers import quoted

_TARGET = "etl_target_relation"
_FRESHNESS: Mapping[str, Any] = {"warn_after": {"count": 2, "period": "day"}}
_PROFILE: Mapping[str, Any] = {
    "type": "postgres",
    "host": "{{ env_var('ETL_HOST') }}",
    "port": "{{ env_var('ETL_PORT') | as_number }}",
    "user": "{{ env_var('ETL_USER') }}",
    "password": "{{ env_var('ETL_PASSWORD') }}",
    "dbname": "{{ env_var('ETL_DBNAME') }}",
    "schema": "{{ env_var('ETL_SCHEMA') }}",
    "threads": 1,
}


def dbt_files(
    draft: Draft, bound: BoundIntent, layout: Layout, tests: tuple[DraftTest, ...], lang: Lang
) -> Iterator[File]:
    """Yield the files of the project."""
    yaml = YamlFiles()
    yield "dbt_project.yml", yaml.text(_project(draft, layout))
    yield "profiles.yml", yaml.text(_profiles(layout))
    yield "models/sources.yml", yaml.text(_sources(bound, layout))
    for model in draft.models:
        yield layout.dbt_model(model), model_text(model, layout)

    for folder, models in _by_folder(draft).items():
        described = []
        units: list[dict[str, Any]] = []
        for model in models:
            described.append(_model_entry(model, bound, tests, lang))
            units.extend(unit_tests(model, tests, layout))

        content: dict[str, Any] = {"version": 2, "models": described}
        if units:
            content["unit_tests"] = units

        yield f"models/{folder}/_{folder}.yml", yaml.text(content)

    yield from singular_tests(tests, layout)


def variables(draft: Draft) -> dict[str, str]:
    """Return the days that can be set from outside, with their defaults."""
    values_by_name: dict[str, str] = {}
    for model in draft.models:
        values_by_name.update(variables_among(model.parts(exp.Anonymous)))

    return values_by_name


def model_text(model: DraftModel, layout: Layout) -> str:
    """Return a model's file."""
    naming = layout.dbt_name_in(model)
    lines = [_config(model), "", layout.texts.query(model.select, naming, jinja=True)]
    if model.increment is not None:
        kept = render_condition(model.increment, naming, jinja=True)
        lines.extend(["{% if is_incremental() %}", f"WHERE {kept}", "{% endif %}"])

    return "\n".join(lines) + "\n"


def _config(model: DraftModel) -> str:
    settings = {"materialized": jinja_string(model.node.materialization)}
    if model.node.materialization == "incremental":
        strategy = "delete+insert" if model.merge_key else "append"
        settings["incremental_strategy"] = jinja_string(strategy)
        settings["on_schema_change"] = jinja_string("fail")

    if model.merge_key:
        settings["unique_key"] = jinja_string(model.merge_key)
        if model.increment is not None:
            predicate = _computed_again(model.increment, model)
            settings["incremental_predicates"] = f"[{predicate}]"

    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{{{{ config({given}) }}}}"


def _computed_again(increment: exp.Expr, model: DraftModel) -> str:
    """Return which rows are deleted, as Jinja: all that are computed again.

    dbt deletes the periods that have new rows and puts `AND` before this. A period that has lost
    its last row has none, so the predicate has to let it go by itself.
    """

    def placeholder(_: exp.Table) -> str:
        return _TARGET

    condition = render_condition(increment, placeholder, jinja=False)
    parts = f"TRUE OR {condition}".split(_TARGET)
    name = identifier_text(model.relation)
    written = [parts[0], *(f'".{name}{part}' for part in parts[1:])]
    opened = [f'{part}"' for part in written[:-1]]
    return " ~ target.schema ~ ".join(jinja_string(part) for part in [*opened, written[-1]])


# ------------------------------------------------------------------------------
# YAML


def _project(draft: Draft, layout: Layout) -> dict[str, Any]:
    days = variables(draft)
    project: dict[str, Any] = {
        "name": layout.project,
        "version": "1.0.0",
        "config-version": 2,
        "profile": layout.project,
        "require-dbt-version": [">=1.10.0", "<2.0.0"],
        "model-paths": ["models"],
        "test-paths": ["tests"],
        "target-path": "target",
        "clean-targets": ["target"],
        "flags": {"send_anonymous_usage_stats": False},
    }
    if days:
        project["vars"] = days

    return project


def _profiles(layout: Layout) -> dict[str, Any]:
    return {layout.project: {"target": "prod", "outputs": {"prod": dict(_PROFILE)}}}


def _sources(bound: BoundIntent, layout: Layout) -> dict[str, Any]:
    groups: dict[str, list[SourceTable]] = {}
    for source in layout.sources:
        groups.setdefault(source.group, []).append(source)

    comments = {source.table.key: source.table.comment for source in bound.sources}
    moments = {source.table.key: loaded_at_field(source.table) for source in bound.sources}
    listed = []
    for group, tables in groups.items():
        variable = schema_variable(group)
        default = jinja_string(_inside_quotes(tables[0].schema))
        entry = {
            "name": group,
            "schema": f"{{{{ var('{variable}', {default}) }}}}",
            "tables": [_source_entry(table, comments, moments) for table in tables],
        }
        listed.append(entry)

    return {"version": 2, "sources": listed}


def _source_entry(
    table: SourceTable,
    comments: Mapping[TableKey, str | None],
    moments: Mapping[TableKey, str | None],
) -> dict[str, Any]:
    key = (table.schema, table.name)
    entry: dict[str, Any] = {
        "name": table.key,
        "identifier": raw_text(_inside_quotes(table.name)),
    }
    comment = comments.get(key)
    if comment:
        entry["description"] = raw_text(comment)

    loaded_at = moments.get(key)
    if loaded_at is not None:
        entry["config"] = {"loaded_at_field": loaded_at, "freshness": dict(_FRESHNESS)}

    return entry


def _inside_quotes(name: str) -> str:
    """Return a name for dbt, which puts it between quotes as it is."""
    return name.replace('"', '""')


def column_name(name: str) -> str:
    """Return the name of a model's column for a YAML file."""
    return raw_text(_inside_quotes(name))


def _by_folder(draft: Draft) -> dict[str, list[DraftModel]]:
    folders: dict[str, list[DraftModel]] = {}
    for model in draft.models:
        folders.setdefault(model.node.layer.lower(), []).append(model)

    return folders


def _description(model: DraftModel, bound: BoundIntent, lang: Lang) -> str:
    if model.name == bound.target.model:
        return bound.summary

    text = LAYER_TEXTS[model.node.layer].to(lang)
    return text.format(inputs=", ".join(model.node.inputs))


def _column_entry(column: NodeColumn, tests: Iterable[DraftTest]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column_name(column.name), "data_type": column.type}
    if quoted(column.name) != column.name:
        entry["quote"] = True
    if column.description:
        entry["description"] = raw_text(column.description)

    checks = generic_tests(tests, column.name)
    if checks:
        entry["data_tests"] = checks

    return entry


def _model_entry(
    model: DraftModel, bound: BoundIntent, tests: Iterable[DraftTest], lang: Lang
) -> dict[str, Any]:
    own = [test for test in tests if test.node == model.name]
    columns = [_column_entry(column, own) for column in model.node.columns]
    config: dict[str, Any] = {
        "contract": {"enforced": True},
        "meta": {"grain": [raw_text(name) for name in model.node.grain]},
    }
    if model.relation != model.name:
        # dbt reads a model's own `config` without Jinja's escapes.
        config["alias"] = raw_text(model.relation)

    return {
        "name": model.name,
        "description": raw_text(_description(model, bound, lang)),
        "config": config,
        "columns": columns,
    }
