"""What a table says of itself, by which it is found: names, comments, stored values, what the
semantic file adds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from common.meanings import BilingualNames, Metric
from common.text import Text
from common.values import Catalog, Column, Table

MOST_VALUES = 20  # stored values of one column
_MOST_NAMES = 60  # of one column's stored values in the semantic file
_MAX_COMMENT, _MAX_VALUE = 400, 60  # characters

Kind = Literal[
    "name", "comment", "column", "column_comment", "value", "meaning", "column_meaning", "metric"
]
ShownValues = Callable[[Table, Column], Sequence[str]]
"""The values of a table's column by which the table may be found."""


class Said(NamedTuple):
    """A text of a table.

    Attributes:
        kind: where it stands; `meaning`, `column_meaning` and `metric` are of the semantic file.
        column: the column, if it is a text of one.
    """

    kind: Kind
    text: str
    column: str | None = None


def all_values(_table: Table, column: Column) -> Sequence[str]:
    """Return all known values of the column."""
    return column.values


def metrics_of(catalog: Catalog) -> Mapping[tuple[str, str], Sequence[Metric]]:
    """The metrics by the tables they are computed over."""
    found: defaultdict[tuple[str, str], list[Metric]] = defaultdict(list)
    for metric in catalog.metrics:
        found[metric.table].append(metric)
    return found


def texts_of(table: Table, shown: ShownValues, metrics: Sequence[Metric] = ()) -> Iterator[Said]:
    """All texts of the table, long ones cut; of values only those that are `shown`."""
    yield Said("name", table.name)
    if table.comment:
        yield Said("comment", table.comment[:_MAX_COMMENT])
    if table.meaning:
        yield from (
            Said("meaning", text) for text in _meant(table.meaning.names, table.meaning.description)
        )
    for metric in metrics:
        yield from (
            Said("metric", text)
            for text in (metric.name, *_meant(metric.names, metric.description))
        )
    for column in table.columns:
        yield Said("column", column.name, column.name)
        if column.comment:
            yield Said("column_comment", column.comment[:_MAX_COMMENT], column.name)
        for value in shown(table, column)[:MOST_VALUES] if column.values else ():
            yield Said("value", value[:_MAX_VALUE], column.name)
        yield from (Said("column_meaning", text, column.name) for text in _column_meant(column))


def _column_meant(column: Column) -> Iterator[str]:
    meaning = column.meaning
    if meaning is None:
        return
    yield from _meant(meaning.names, meaning.description)
    for value in meaning.values[:_MOST_NAMES] if not meaning.is_sensitive else ():
        yield from _meant(value.names, None)


def _meant(names: BilingualNames, description: Text | None) -> Iterator[str]:
    yield from (name[:_MAX_COMMENT] for name in names.all)
    yield from (text[:_MAX_COMMENT] for text in description or () if text)
