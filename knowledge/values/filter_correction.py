"""Look for stored spellings when a query finds nothing.

A filter may spell a stored value differently.

A literal is replaced only by a stored value that is the same text written differently, that differs
by a word which only says what kind of place or company it is ("陕西", "陕西省"), or that differs by
one typing error (`knowledge.language.spelling`). Columns that identify things take only the first;
columns that name people take words for companies as well, because any other difference means
somebody else. A value that is only similar is never used: the answer stays empty and asks the user.

Columns are judged whose stored values are all known; of others, the values that were looked up for
the question.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.inquiry import StoredValue
from common.text import Text
from common.values import Catalog, QueryResult
from knowledge.language.spelling import alike, did_you_mean
from knowledge.values.identity import near_value, value_tests
from knowledge.values.value_search import sql_literal
from sqltree.references import ColumnComparison, references

# Comparisons of one query; a longer list rarely is the reason for an empty result.
_MOST_JUDGED = 20
_MOST_OFFERED = 3
_WILDCARDS = re.compile(r"[%_\\]")


@dataclass(frozen=True)
class Replacement:
    """The literal of `comparison` is not stored; `stored` is the stored value it means."""

    comparison: ColumnComparison
    stored: str

    @property
    def notice(self) -> Text:
        """Tell the user which value was used."""
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
        """Ask the user which value was meant."""
        return did_you_mean(self.comparison.text, self.choices)


def looks_empty(result: QueryResult) -> bool:
    """Tell whether nothing was found.

    No rows, or one row of zeros and nulls, which aggregates make of no rows.
    """
    if not result.rows:
        return True
    if result.row_count != 1:
        return False

    return all(map(_is_nothing, result.rows[0]))


def _is_nothing(value: Any) -> bool:
    if value is None:
        return True
    if value is False:
        return False

    return bool(value == 0)


def replacements(
    sql: str, catalog: Catalog, stored_values: Sequence[StoredValue] = ()
) -> tuple[Replacement, ...]:
    """Return literals of `sql` that no row has, with the stored values they spell differently."""
    meant = [one for one in stored_values if one.is_meant]
    changes = []
    for comparison in missing_comparisons(sql, catalog, stored_values):
        stored = _stored_for(comparison, meant)
        if stored is None:
            continue

        # In a pattern, a value's wildcards would match other values.
        has_wildcards = _WILDCARDS.search(stored) is not None
        if comparison.is_pattern and has_wildcards:
            continue

        changes.append(Replacement(comparison, stored))

    return tuple(changes)


def missing_literals(
    sql: str, catalog: Catalog, stored_values: Sequence[StoredValue] = ()
) -> tuple[MissingLiteral, ...]:
    """Return literals of `sql` that no row has, where stored values are only similar."""
    meant = [one for one in stored_values if one.is_meant]
    judged: dict[str, MissingLiteral] = {}
    for comparison in missing_comparisons(sql, catalog, stored_values):
        values = _known(comparison, stored_values)
        choices = alike(comparison.text, values)[:_MOST_OFFERED]
        if not choices:
            continue
        if _stored_for(comparison, meant) is None:
            judged.setdefault(comparison.text, MissingLiteral(comparison, choices))

    return tuple(judged.values())


def taken_for(sql: str, stored_values: Iterable[StoredValue]) -> tuple[Text, ...]:
    """Say which words of the question `sql` compares with a value spelled otherwise."""
    sentences = []
    for one in stored_values:
        is_spelled_otherwise = one.is_meant and not one.is_exact
        if is_spelled_otherwise and sql_literal(one.value) in sql:
            sentence = Text(
                f"“{one.said}”按“{one.value}”查询。",
                f'"{one.said}" was taken to mean "{one.value}".',
            )
            sentences.append(sentence)

    return tuple(sentences)


def _stored_for(comparison: ColumnComparison, meant: Sequence[StoredValue]) -> str | None:
    values = _known(comparison, meant)
    ways = value_tests(comparison.table, comparison.column)
    return near_value(comparison.text, values, ways)


def missing_comparisons(
    sql: str, catalog: Catalog, stored_values: Sequence[StoredValue] = ()
) -> Iterator[ColumnComparison]:
    """Yield comparisons of `sql` with a text that no row has.

    As far as the values of their columns are known.
    """
    for comparison in references(sql, catalog).comparisons[:_MOST_JUDGED]:
        values = _known(comparison, stored_values)
        if not values and not comparison.column.is_complete:
            continue

        is_stored = any(map(comparison.finds, values))
        if not is_stored:
            yield comparison


def _known(comparison: ColumnComparison, stored_values: Sequence[StoredValue]) -> tuple[str, ...]:
    """Return the values of the column: all, or those that were looked up."""
    if comparison.column.is_complete:
        return comparison.column.values

    place = (comparison.table.key, comparison.column.name)
    values = []
    for one in stored_values:
        if (one.table, one.column) == place:
            values.append(one.value)

    return tuple(values)


def rewritten(sql: str, changes: Iterable[Replacement]) -> str:
    """Replace the literals in `sql`."""
    for change in sorted(changes, key=lambda change: -change.comparison.start):
        where = change.comparison
        literal = sql_literal(f"{where.before}{change.stored}{where.after}")
        sql = f"{sql[: where.start]}{literal}{sql[where.end :]}"

    return sql
