"""Writes the semantic file's meanings as JSON, for the endpoints that describe the schema."""

from typing import Any

from common.meanings import BilingualNames, ColumnMeaning, Metric, TableMeaning
from common.text import Text


def table_meaning(meaning: TableMeaning | None) -> dict[str, Any] | None:
    """Return the semantic file's meaning of a table; None without one."""
    if meaning is None:
        return None

    return {
        "names": _names(meaning.names),
        "description": _text_json(meaning.description),
        "label_columns": list(meaning.label_columns),
        "date_column": meaning.date_column,
        "filter": meaning.default_filter,
        "joins": [
            {
                "columns": list(join.columns),
                "schema": join.target[0],
                "table": join.target[1],
                "target_columns": list(join.target_columns),
            }
            for join in meaning.joins
        ],
    }


def column_meaning(meaning: ColumnMeaning | None) -> dict[str, Any] | None:
    """Return the semantic file's meaning of a column, without values of a sensitive one."""
    if meaning is None:
        return None

    values = meaning.values
    if meaning.is_sensitive:
        values = ()

    return {
        "names": _names(meaning.names),
        "description": _text_json(meaning.description),
        "unit": _text_json(meaning.unit),
        "values": [{"value": value.value, "names": _names(value.names)} for value in values],
    }


def metric(declared: Metric) -> dict[str, Any]:
    """Return a metric of a table."""
    return {
        "name": declared.name,
        "names": _names(declared.names),
        "description": _text_json(declared.description),
        "unit": _text_json(declared.unit),
        "expression": declared.expression,
        "filter": declared.filter,
        "date_column": declared.date_column,
        "grain": list(declared.grain),
    }


def _names(names: BilingualNames) -> dict[str, list[str]]:
    return {"zh": list(names.zh), "en": list(names.en)}


def _text_json(text: Text | None) -> dict[str, str] | None:
    if text:
        return {"zh": text.zh, "en": text.en}

    return None
