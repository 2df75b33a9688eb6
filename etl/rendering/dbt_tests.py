"""A draft's tests as dbt runs them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from etl.meaning.value_kinds import kind_of_type
from etl.planning.draft_model import DraftModel
from etl.planning.draft_test import DraftTest, TypedRows
from etl.rendering.column_tests import failing_rows, is_of_column
from etl.rendering.jinja_text import jinja_string, raw_text
from etl.rendering.layout import Layout
from etl.rendering.plain_sql import File
from etl.rendering.value_rows import values_query
from postgres.identifiers import quoted

_PADDED = "character("  # not that of `character varying(…)`
_AS_WARNING = "{{ config(severity='warn') }}\n\n"


def is_generic(test: DraftTest) -> bool:
    """Tell whether dbt has the test itself, which writes a parent's column unquoted."""
    if not is_of_column(test):
        return False
    if test.parent is None:
        return True

    _, column = test.parent
    return quoted(column) == column


def generic_tests(tests: Iterable[DraftTest], column: str) -> list[dict[str, Any]]:
    """Return the entries of a column's tests."""
    entries = []
    for test in tests:
        is_own = test.columns == (column,)
        if is_own and is_generic(test):
            entries.append(_generic(test))

    return entries


def _generic(test: DraftTest) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": test.id}
    arguments = _arguments(test)
    if arguments is not None:
        entry["arguments"] = arguments
    if test.is_warning:
        entry["config"] = {"severity": "warn"}

    return {test.kind: entry}


def _arguments(test: DraftTest) -> dict[str, Any] | None:
    if test.kind == "accepted_values":
        return {"values": [raw_text(value) for value in test.values]}
    if test.kind == "relationships" and test.parent is not None:
        model, column = test.parent
        return {"to": f"ref('{model}')", "field": raw_text(column)}

    return None


def singular_tests(tests: Iterable[DraftTest], layout: Layout) -> Iterator[File]:
    """Yield the files of tests whose rows are failures."""
    for test in tests:
        failures = None if is_generic(test) else failing_rows(test)
        if failures is None:
            continue

        query = layout.texts.query(failures, layout.dbt_name, jinja=True)
        head = _AS_WARNING if test.is_warning else ""
        yield f"tests/{test.id}.sql", f"{head}{query}\n"


def unit_tests(
    model: DraftModel, tests: Iterable[DraftTest], layout: Layout
) -> Iterator[dict[str, Any]]:
    """Yield the entries of a model's unit tests."""
    if _has_odd_names(model):
        return  # dbt puts such names into a unit test's SQL as they are

    for test in tests:
        is_own = test.node == model.name
        if is_own and test.case is not None and test.case.inputs is not None:
            yield _unit_test(test.id, model, test.case.inputs, test.case.expected, layout)


def _has_odd_names(model: DraftModel) -> bool:
    return any('"' in column.name for column in model.node.columns)


def _unit_test(
    name: str, model: DraftModel, inputs: Iterable[TypedRows], expected: TypedRows, layout: Layout
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "model": model.name,
        "given": [_given_input(rows, model, layout) for rows in inputs],
        "expect": _expected(expected),
    }
    if model.node.materialization == "incremental":
        is_again = any(_is_own(rows, model) for rows in inputs)
        entry["overrides"] = {"macros": {"is_incremental": is_again}}

    return entry


def _is_own(rows: TypedRows, model: DraftModel) -> bool:
    return not rows.schema and rows.name == model.name


def _given_input(rows: TypedRows, model: DraftModel, layout: Layout) -> dict[str, Any]:
    if _is_own(rows, model):
        # dbt can't look up the columns of a relation that has not been built.
        return {"input": "this", "format": "sql", "rows": layout.texts.values(rows)}
    if rows.schema:
        source = layout.source(rows.schema, rows.name)
        named = f"source({jinja_string(source.group)}, {jinja_string(source.key)})"
    else:
        named = f"ref({jinja_string(rows.name)})"

    return {"input": named, "format": "sql", "rows": layout.texts.values(rows)}


def _expected(rows: TypedRows) -> dict[str, Any]:
    """Return the expected rows: listed, unless dbt can't name the type of one of their columns.

    It takes types from the information schema, which calls all arrays ARRAY, and a `character(3)`
    one of a single letter.
    """
    types = [type_ for _, type_ in rows.columns]
    is_padded = any(type_.startswith(_PADDED) for type_ in types)
    if is_padded or "other" in map(kind_of_type, types):
        return {"format": "sql", "rows": values_query(rows)}

    names = [name for name, _ in rows.columns]
    return {"rows": _dicts(names, rows.rows)}


def _dicts(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    listed = []
    for row in rows:
        written = {}
        for name, value in zip(names, row, strict=True):
            written[name] = yaml_value(value)

        listed.append(written)

    return listed


def yaml_value(value: Any) -> Any:
    """Return a value as YAML has it: decimals, days and moments as text."""
    write = _WRITERS.get(type(value))
    if write is None:
        return raw_text(str(value))

    return write(value)


def _as_it_is(value: Any) -> Any:
    return value


_WRITERS: Mapping[type, Callable[[Any], Any]] = {
    type(None): _as_it_is,
    bool: _as_it_is,
    int: _as_it_is,
    float: _as_it_is,
    Decimal: lambda value: format(value, "f"),
    date: lambda value: value.isoformat(),
    datetime: lambda value: value.isoformat(sep=" "),
}
