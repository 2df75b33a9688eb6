"""Looks for stored spellings when a query finds nothing, because a filter may spell a stored value
differently.

A literal is replaced only by a stored value that is the same text written differently, that differs
by a word which only says what kind of place or company it is ("陕西", "陕西省"), or that differs by
one typing error (`knowledge.language.spelling`). Columns that identify things take only the first; columns
that name people take words for companies as well, because any other difference means somebody else.
A value that is only similar is never used: the answer stays empty and asks the user.

Columns are judged whose stored values are all known; of others, the values that were looked up for
the question.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from common.inquiry import StoredValue
from common.text import Text
from common.values import Catalog, QueryResult
from knowledge.language.spelling import alike, did_you_mean
from knowledge.values.identity import allowed, near_value
from sqltree.references import ColumnComparison, references

_MOST_JUDGED = (
    20  # comparisons of one query; a longer list rarely is the reason for an empty result
)
_MOST_OFFERED = 3
_WILDCARDS = re.compile(r"[%_\\]")


@dataclass(frozen=True)
class Replacement:
    """The literal of `comparison` is not stored; `stored` is the stored value it means."""

    comparison: ColumnComparison
    stored: str

    @property
    def notice(self) -> Text:
        """Tells the user which value was used."""
        column = self.comparison.column.name
        literal = self.comparison.text
        return Text(
            f"{column} 中没有“{literal}”，已改按“{self.stored}”查询。",
            f'{column} holds no "{literal}"; "{self.stored}" was used instead.',
        )


@dataclass(frozen=True)
class MissingLiteral:
    """The literal of `comparison` is not stored; `choices` resemble it, the most alike first, at
    least one.
    """

    comparison: ColumnComparison
    choices: tuple[str, ...]

    @property
    def notice(self) -> Text:
        """Asks the user which value was meant."""
        return did_you_mean(self.comparison.text, self.choices)


def looks_empty(result: QueryResult) -> bool:
    """Whether nothing was found: no rows, or one row of zeros and nulls, which is what aggregates
    make of no rows.
    """
    if not result.rows:
        return True
    return result.row_count == 1 and all(
        value is None or (value == 0 and value is not False) for value in result.rows[0]
    )


def replacements(
    sql: str, catalog: Catalog, found: Sequence[StoredValue] = ()
) -> tuple[Replacement, ...]:
    """The literals of `sql` that no row has, each with the stored value that they spell
    differently.
    """
    meant = [one for one in found if one.is_meant]
    judged = (
        (comparison, _stored_for(comparison, meant))
        for comparison in unfounded(sql, catalog, found)
    )
    return tuple(
        Replacement(comparison, stored)
        for comparison, stored in judged
        # Skip values with wildcards for a pattern: there they would match other values.
        if stored is not None and not (comparison.is_pattern and _WILDCARDS.search(stored))
    )


def missing(
    sql: str, catalog: Catalog, found: Sequence[StoredValue] = ()
) -> tuple[MissingLiteral, ...]:
    """The literals of `sql` that no row has, where stored values are only similar."""
    meant = [one for one in found if one.is_meant]
    judged: dict[str, MissingLiteral] = {}
    for comparison in unfounded(sql, catalog, found):
        choices = alike(comparison.text, _known(comparison, found))[:_MOST_OFFERED]
        if choices and _stored_for(comparison, meant) is None:
            judged.setdefault(comparison.text, MissingLiteral(comparison, choices))
    return tuple(judged.values())


def taken_for(sql: str, found: Iterable[StoredValue]) -> tuple[Text, ...]:
    """Sentences about words of the question that `sql` compares with a value spelled otherwise."""
    return tuple(
        Text(f"“{one.said}”按“{one.value}”查询。", f'"{one.said}" was taken to mean "{one.value}".')
        for one in found
        if one.is_meant and not one.is_exact and "'{}'".format(one.value.replace("'", "''")) in sql
    )


def _stored_for(comparison: ColumnComparison, meant: Sequence[StoredValue]) -> str | None:
    return near_value(
        comparison.text, _known(comparison, meant), allowed(comparison.table, comparison.column)
    )


def unfounded(
    sql: str, catalog: Catalog, found: Sequence[StoredValue] = ()
) -> Iterator[ColumnComparison]:
    """The comparisons of `sql` with a text that no row has, as far as the values of their columns
    are known.
    """
    for comparison in references(sql, catalog).comparisons[:_MOST_JUDGED]:
        known = _known(comparison, found)
        if (known or comparison.column.is_complete) and not any(map(comparison.finds, known)):
            yield comparison


def _known(comparison: ColumnComparison, found: Sequence[StoredValue]) -> tuple[str, ...]:
    """The values of the column: all, or those that were looked up."""
    table = comparison.table
    column = comparison.column
    if column.is_complete:
        return column.values
    return tuple(one.value for one in found if (one.table, one.column) == (table.key, column.name))


def rewritten(sql: str, changes: Iterable[Replacement]) -> str:
    """`sql` with the literals replaced."""
    for change in sorted(changes, key=lambda change: -change.comparison.start):
        where = change.comparison
        literal = f"{where.before}{change.stored}{where.after}".replace("'", "''")
        sql = f"{sql[: where.start]}'{literal}'{sql[where.end :]}"
    return sql
