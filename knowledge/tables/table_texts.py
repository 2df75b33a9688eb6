"""Texts by which a table is found: names, comments, stored values, the semantic file's words."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from common.meanings import BilingualNames, Metric
from common.text import Text
from common.values import Catalog, Column, Table

MOST_VALUES = 20  # stored values of one column
_MOST_NAMES = 60  # of one column's stored values in the semantic file
_MAX_COMMENT, _MAX_VALUE = 400, 60  # characters

TextKind = Literal[
    "name", "comment", "column", "column_comment", "value", "meaning", "column_meaning", "metric"
]
ShownValues = Callable[[Table, Column], Sequence[str]]
"""The values of a table's column by which the table may be found."""


class SchemaTextPart(NamedTuple):
    """A text of a table.

    Attributes:
        kind: where it stands; `meaning`, `column_meaning` and `metric` are of the semantic file.
        column: the column, if it is a text of one.
    """

    kind: TextKind
    text: str
    column: str | None = None


def all_values(_table: Table, column: Column) -> Sequence[str]:
    """Return all known values of the column."""
    return column.values


def no_values(_table: Table, _column: Column) -> Sequence[str]:
    """Return no values of the column, for texts that are shown to everybody."""
    return ()


def metrics_of(catalog: Catalog) -> Mapping[tuple[str, str], Sequence[Metric]]:
    """Return the metrics by the tables they are computed over."""
    metrics_by_table: defaultdict[tuple[str, str], list[Metric]] = defaultdict(list)
    for metric in catalog.metrics:
        metrics_by_table[metric.table].append(metric)

    return metrics_by_table


def texts_of(
    table: Table, shown: ShownValues, metrics: Sequence[Metric] = ()
) -> Iterator[SchemaTextPart]:
    """Yield all texts of the table, long ones cut; of values only those that are `shown`."""
    yield SchemaTextPart("name", table.name)
    if table.comment:
        yield SchemaTextPart("comment", table.comment[:_MAX_COMMENT])
    if table.meaning:
        for text in _meant(table.meaning.names, table.meaning.description):
            yield SchemaTextPart("meaning", text)

    for metric in metrics:
        yield SchemaTextPart("metric", metric.name)
        for text in _meant(metric.names, metric.description):
            yield SchemaTextPart("metric", text)

    for column in table.columns:
        yield from _texts_of_column(table, column, shown)


def _texts_of_column(table: Table, column: Column, shown: ShownValues) -> Iterator[SchemaTextPart]:
    yield SchemaTextPart("column", column.name, column.name)
    if column.comment:
        yield SchemaTextPart("column_comment", column.comment[:_MAX_COMMENT], column.name)
    if column.values:
        for value in shown(table, column)[:MOST_VALUES]:
            yield SchemaTextPart("value", value[:_MAX_VALUE], column.name)

    for text in _column_meant(column):
        yield SchemaTextPart("column_meaning", text, column.name)


def _column_meant(column: Column) -> Iterator[str]:
    meaning = column.meaning
    if meaning is None:
        return

    yield from _meant(meaning.names, meaning.description)
    if meaning.is_sensitive:
        return

    for value in meaning.values[:_MOST_NAMES]:
        yield from _meant(value.names, None)


def _meant(names: BilingualNames, description: Text | None) -> Iterator[str]:
    texts = [*names.all]
    if description is not None:
        texts.extend(filter(None, description))

    for text in texts:
        yield text[:_MAX_COMMENT]
