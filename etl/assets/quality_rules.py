"""The rules that a table's values keep: by constraints, by the semantic file, by statistics."""

from collections.abc import Iterator

from common.values import Catalog, Column, Table
from etl.assets.table_layers import short_name
from etl.meaning.value_kinds import kind_of_type
from etl.schemas.knowledge_context import QualityRule
from knowledge.values.personal_data import open_values

_LEAST_VALUES, _MOST_VALUES = 2, 20  # of a text column, for which statistics suggest a rule


def quality_rules(table: Table, catalog: Catalog, *, samples: bool) -> list[QualityRule]:
    """Return the rules of a table; those of the server come first.

    Args:
        samples: whether stored values may be told; those of persons never are.
    """
    name = short_name(table, catalog)
    rules = [*_not_null(table, name), *_unique(table, name), *_references(table, name, catalog)]
    for column in table.columns:
        rules += _allowed_values_rules(column, name)

    rules += _semantic(table, name)
    if samples:
        rules += _suggested(table, name)

    return rules


def _not_null(table: Table, name: str) -> Iterator[QualityRule]:
    for column in table.columns:
        if not column.nullable:
            yield _enforced_rule(f"{name}.{column.name}", "not_null")


def _unique(table: Table, name: str) -> Iterator[QualityRule]:
    keys = dict.fromkeys((table.primary_key, *table.unique_keys))
    for columns in keys:
        if columns:
            yield _enforced_rule(_column_list(name, columns), "unique")


def _references(table: Table, name: str, catalog: Catalog) -> Iterator[QualityRule]:
    for key in table.foreign_keys:
        target = catalog.by_key.get(key.target)
        if target is not None:
            referred = _column_list(short_name(target, catalog), key.target_columns)
            yield _enforced_rule(_column_list(name, key.columns), "relationships", referred)


def _allowed_values_rules(column: Column, name: str) -> Iterator[QualityRule]:
    if column.allowed:
        yield _enforced_rule(f"{name}.{column.name}", "accepted_values", ", ".join(column.allowed))


def _semantic(table: Table, name: str) -> Iterator[QualityRule]:
    if table.meaning is None or table.meaning.default_filter is None:
        return

    yield QualityRule(
        column=name,
        rule="filter",
        value=table.meaning.default_filter,
        origin="semantic",
        enforced=False,
    )


def _suggested(table: Table, name: str) -> Iterator[QualityRule]:
    """Yield what the values that are stored now suggest, for texts of a few kinds alone."""
    for column in table.columns:
        if column.allowed or not column.is_complete:
            continue
        if kind_of_type(column.type) != "text":
            continue

        values = open_values(table, column)
        if _LEAST_VALUES <= len(values) <= _MOST_VALUES:
            yield QualityRule(
                column=f"{name}.{column.name}",
                rule="accepted_values",
                value=", ".join(values),
                origin="statistics",
                enforced=False,
            )


def _enforced_rule(column: str, rule: str, value: str | None = None) -> QualityRule:
    return QualityRule(column=column, rule=rule, value=value, origin="constraint", enforced=True)


def _column_list(table: str, columns: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{column}" for column in columns)
