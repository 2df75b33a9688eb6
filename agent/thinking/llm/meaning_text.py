"""What the semantic file says of tables, columns and metrics, as lines of a prompt's description of the database.

It is data like comments are: on one line each, cut to a length, and unable to close what stands around it.
"""

from collections.abc import Callable, Iterator

from common.meanings import ColumnMeaning, Metric, Names, TableKey
from common.text import Text
from common.values import Column, Table
from knowledge.safe_text import identifier, one_line

_MAX_NAMES = 8  # of one thing
_MAX_VALUE_NAMES = 3
_MAX_NAME_CHARS = 40
_MAX_TEXT = 160
_MAX_SQL = 400

NameOf = Callable[[TableKey], str | None]
"""What a table is called in SQL; None when the description does not show it."""


def table_lines(table: Table, name_of: NameOf) -> Iterator[str]:
    """The lines below the head of a table."""
    meaning = table.meaning
    if meaning is None:
        return
    if said := _said(meaning.names, meaning.description):
        yield f"  -- {said}"
    if meaning.label_columns:
        yield f"  -- a row is named by {', '.join(map(identifier, meaning.label_columns))}"
    if meaning.date_column:
        yield f"  -- periods are about {identifier(meaning.date_column)}"
    if meaning.default_filter:
        yield f"  -- unless asked otherwise: {_sql(meaning.default_filter)}"
    for join in meaning.joins:
        target = name_of(join.target)
        if target:
            pairs = zip(join.columns, join.target_columns, strict=True)
            yield f"  -- join {target} by {', '.join(f'{identifier(own)} = {identifier(its)}' for own, its in pairs)}"


def table_remark(table: Table) -> str:
    """What follows a table's comment where it has but one line."""
    said = _said(table.meaning.names, None) if table.meaning else ""
    return f"  -- {said}" if said else ""


def column_remark(column: Column) -> str:
    """What follows a column's own comment."""
    meaning = column.meaning
    if meaning is None:
        return ""
    unit = f"in {_both(meaning.unit)}" if meaning.unit else ""
    parts = [part for part in (_said(meaning.names, meaning.description), unit) if part]
    return f"  -- {'; '.join(parts)}" if parts else ""


def values_called(meaning: ColumnMeaning | None) -> dict[str, str]:
    """Stored values with what people call them, ` (已付, paid)`; none of a sensitive column."""
    if meaning is None or meaning.is_sensitive:
        return {}
    return {one.value: f" ({_listed(one.names, _MAX_VALUE_NAMES)})" for one in meaning.values}


def metric_line(metric: Metric) -> str:
    """The line of a metric, below its table."""
    facts = [f"  METRIC {_sql(metric.expression)}"]
    facts += [f"WHERE {_sql(metric.filter)}"] if metric.filter else []
    said = [_said(metric.names, metric.description), f"in {_both(metric.unit)}" if metric.unit else ""]
    said += [f"by {identifier(metric.date_column)}" if metric.date_column else ""]
    said += [f"per {', '.join(map(identifier, metric.grain))}" if metric.grain else ""]
    return f"{' '.join(facts)}  -- {'; '.join(part for part in said if part)}"


def _said(names: Names, description: Text | None) -> str:
    called = f"called {_listed(names, _MAX_NAMES)}" if names.all else ""
    text = one_line(_both(description), _MAX_TEXT) if description else ""
    return ": ".join(part for part in (called, text) if part)


def _listed(names: Names, most: int) -> str:
    """The names of both languages; of too many, the first ones of each."""
    every = names.all if len(names.all) <= most else (*names.zh[: most // 2], *names.en[: most - most // 2])
    return ", ".join(one_line(name, _MAX_NAME_CHARS) for name in every)


def _both(text: Text) -> str:
    zh, en = (one_line(part, _MAX_TEXT) for part in text)
    return zh if zh == en else f"{zh} / {en}"


def _sql(text: str) -> str:
    """An expression on one line; one that is too long to be shown whole is left out."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SQL and one_line(line, _MAX_SQL) == line else "…"
