"""Writes what the semantic file says of tables, columns and metrics into the prompts' schema.

Its texts are data as comments are: on one line each, cut to a length, and unable to close the tags
around them.
"""

from collections.abc import Callable, Iterable, Iterator

from common.meanings import BilingualNames, ColumnMeaning, Metric, PreferredJoin, TableKey
from common.text import Text
from common.values import Column, Table
from knowledge.language.safe_text import identifier, one_line

_MAX_NAMES = 8  # of one thing
_MAX_VALUE_NAMES = 3
_MAX_NAME_CHARS = 40
_MAX_TEXT = 160
_MAX_SQL = 400

NameOf = Callable[[TableKey], str | None]
"""Gives a table's name in SQL; None when the description does not show it."""


def table_lines(table: Table, name_of: NameOf) -> Iterator[str]:
    """Yield the lines below the head of a table."""
    meaning = table.meaning
    if meaning is None:
        return

    names = _names_text(meaning.names, meaning.description)
    if names:
        yield f"  -- {names}"
    if meaning.label_columns:
        yield f"  -- a row is named by {', '.join(map(identifier, meaning.label_columns))}"
    if meaning.date_column:
        yield f"  -- periods are about {identifier(meaning.date_column)}"
    if meaning.default_filter:
        yield f"  -- unless asked otherwise: {_sql(meaning.default_filter)}"

    for join in meaning.joins:
        target = name_of(join.target)
        if target:
            yield f"  -- join {target} by {_join_condition(join)}"


def _join_condition(join: PreferredJoin) -> str:
    pairs = zip(join.columns, join.target_columns, strict=True)
    return ", ".join(f"{identifier(own)} = {identifier(target)}" for own, target in pairs)


def table_remark(table: Table) -> str:
    """Return the remark behind the comment of a table that gets one line."""
    if table.meaning is None:
        return ""

    return _remark([_names_text(table.meaning.names, None)])


def column_remark(column: Column) -> str:
    """Return the remark behind a column's own comment."""
    meaning = column.meaning
    if meaning is None:
        return ""

    return _remark([_names_text(meaning.names, meaning.description), _in_unit(meaning.unit)])


def _remark(parts: Iterable[str]) -> str:
    remark = "; ".join(filter(None, parts))
    return f"  -- {remark}" if remark else ""


def _in_unit(unit: Text | None) -> str:
    return f"in {_both(unit)}" if unit else ""


def values_called(meaning: ColumnMeaning | None) -> dict[str, str]:
    """Return stored values with their names, ` (已付, paid)`; none of a sensitive column."""
    if meaning is None or meaning.is_sensitive:
        return {}

    return {value.value: f" ({_listed(value.names, _MAX_VALUE_NAMES)})" for value in meaning.values}


def metric_line(metric: Metric) -> str:
    """Return the line of a metric, below its table."""
    sql = f"METRIC {_sql(metric.expression)}"
    if metric.filter:
        sql += f" WHERE {_sql(metric.filter)}"

    remarks = [_names_text(metric.names, metric.description), _in_unit(metric.unit)]
    if metric.date_column:
        remarks.append(f"by {identifier(metric.date_column)}")
    if metric.grain:
        remarks.append(f"per {', '.join(map(identifier, metric.grain))}")

    return f"  {sql}  -- {'; '.join(filter(None, remarks))}"


def _names_text(names: BilingualNames, description: Text | None) -> str:
    called = f"called {_listed(names, _MAX_NAMES)}" if names.all else ""
    text = one_line(_both(description), _MAX_TEXT) if description else ""
    return ": ".join(part for part in (called, text) if part)


def _listed(names: BilingualNames, most: int) -> str:
    """List the names of both languages; of too many, the first ones of each."""
    listed = names.all
    if len(listed) > most:
        half = most // 2
        listed = (*names.zh[:half], *names.en[: most - half])

    return ", ".join(one_line(name, _MAX_NAME_CHARS) for name in listed)


def _both(text: Text) -> str:
    zh, en = (one_line(part, _MAX_TEXT) for part in text)
    return zh if zh == en else f"{zh} / {en}"


def _sql(text: str) -> str:
    """Put an expression on one line; leave out one that is too long to be shown whole."""
    line = " ".join(text.split())
    is_shown_whole = len(line) <= _MAX_SQL and one_line(line, _MAX_SQL) == line
    return line if is_shown_whole else "…"
