"""Say that an answer is about what its reader may see, where rules close rows or values to them.

How many rows are closed is never said, nor whether there are any: each sentence follows from the
statement, from the definitions of the database and from the rows that are shown alone.
"""

from collections.abc import Sequence

from common.text import Text
from common.values import Catalog, Column, QueryResult, Table
from knowledge.language.spoken_names import called
from knowledge.results.result_columns import ResultColumn
from sqltree.references import references

_NONE = Text("没有您有权查看的符合条件的记录{}。", "No rows that you may see match{}.")
NO_ROWS = Text("没有符合条件的记录{}。", "No rows match{}.")
_PARTLY = Text(
    "“{}”中有些内容可能不对您开放：这里只包括您有权查看的部分。",
    "Some of {} may be closed to you: this covers only what you may see.",
)
_GROUPS = Text(
    "{of}种“{label}”中，这里有{seen}种；其余的可能不对您开放。",
    'You see {seen} of {of} values of "{label}" here; the others may be closed to you.',
)


def partly_closed(sql: str, catalog: Catalog) -> tuple[Table, ...]:
    """Return the tables that `sql` reads of which rows or values may be closed to the reader."""
    sources = references(sql, catalog).sources.values()
    closed = [table for table in sources if table is not None and table.has_hidden_rows]
    return tuple(dict.fromkeys(closed))


def no_rows_said(sql: str, catalog: Catalog) -> Text:
    """Say that no row was found, or none that the reader may see; `{}` is for the period."""
    return _NONE if partly_closed(sql, catalog) else NO_ROWS


def notes_on_hidden_rows(
    sql: str, result: QueryResult, columns: Sequence[ResultColumn], catalog: Catalog
) -> tuple[Text, ...]:
    """Return sentences which say that the reader may not see all rows; none where all are open.

    They name the tables, and say how many of a column's allowed values the rows show.

    Args:
        columns: the columns of the result, whose values are looked at; none where the statement
            cuts the rows.
    """
    closed = partly_closed(sql, catalog)
    if not closed:
        return ()

    names = [called(table) for table in closed]
    covered = Text(
        _PARTLY.zh.format("、".join(name.zh for name in names)),
        _PARTLY.en.format(", ".join(f'"{name.en}"' for name in names)),
    )
    return covered, *_groups_seen(sql, result, columns, catalog)


def _groups_seen(
    sql: str, result: QueryResult, columns: Sequence[ResultColumn], catalog: Catalog
) -> list[Text]:
    """Compare groups with the values that the column's definition lists.

    Not where the statement itself chooses some of them.
    """
    is_chosen = result.is_limited or bool(references(sql, catalog).comparisons)
    if is_chosen or not any(column.output.function for column in columns):
        return []

    sentences = []
    for place, one in enumerate(columns):
        stored = _column_seen_in_part(one)
        if stored is None:
            continue

        seen = {str(row[place]) for row in result.rows} & set(stored.allowed)
        if 0 < len(seen) < len(stored.allowed):
            counts = {"seen": len(seen), "of": len(stored.allowed)}
            label = called(stored)
            chinese = _GROUPS.zh.format(label=label.zh, **counts)
            sentences.append(Text(chinese, _GROUPS.en.format(label=label.en, **counts)))

    return sentences


def _column_seen_in_part(column: ResultColumn) -> Column | None:
    """Return the stored column that is shown, if rows of its table may be hidden."""
    table = column.output.table
    if column.output.function or table is None or not table.has_hidden_rows:
        return None

    return column.output.column
