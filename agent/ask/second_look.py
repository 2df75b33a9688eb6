"""Looks for stored spellings when a query finds nothing, because a filter may spell a stored value differently.

A literal is replaced only by a stored value that is the same text written differently, that differs by a word which
only says what kind of place or company it is ("陕西", "陕西省"), or that differs by one typing error
(`knowledge.spelling`). Columns that identify things take only the first; columns that name people take words for
companies as well, because any other difference means somebody else. A value that is only similar is never used: the
answer stays empty and asks the user.

Only columns whose stored values are all known are judged.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from common.text import Text
from common.values import Catalog, QueryResult
from databases.references import Comparison, references
from knowledge.identity import allowed, near_value
from knowledge.spelling import alike, did_you_mean

_MOST_JUDGED = 20  # comparisons of one query; a longer list rarely is the reason for an empty result
_MOST_OFFERED = 3
_WILDCARDS = re.compile(r"[%_\\]")


@dataclass(frozen=True)
class Replacement:
    """The literal of `comparison` is not stored; `stored` is the stored value it means."""

    comparison: Comparison
    stored: str

    @property
    def notice(self) -> Text:
        """Tells the user which value was used."""
        column, literal = self.comparison.column.name, self.comparison.text
        return Text(
            f"{column} 中没有“{literal}”，已改按“{self.stored}”查询。",
            f'{column} holds no "{literal}"; "{self.stored}" was used instead.',
        )


@dataclass(frozen=True)
class Missing:
    """The literal of `comparison` is not stored; `choices` resemble it, the most alike first, at least one."""

    comparison: Comparison
    choices: tuple[str, ...]

    @property
    def notice(self) -> Text:
        """Asks the user which value was meant."""
        return did_you_mean(self.comparison.text, self.choices)


def looks_empty(result: QueryResult) -> bool:
    """Whether nothing was found: no rows, or one row of zeros and nulls, which is what aggregates make of no rows."""
    if not result.rows:
        return True
    return result.row_count == 1 and all(
        value is None or (value == 0 and value is not False) for value in result.rows[0]
    )


def replacements(sql: str, catalog: Catalog) -> tuple[Replacement, ...]:
    """The literals of `sql` that no row has, each with the stored value that they spell differently."""
    found = ((comparison, _stored_for(comparison)) for comparison in _unfounded(sql, catalog))
    return tuple(
        Replacement(comparison, stored)
        for comparison, stored in found
        # Skip values with wildcards for a pattern: there they would match other values.
        if stored is not None and not (comparison.is_pattern and _WILDCARDS.search(stored))
    )


def missing(sql: str, catalog: Catalog) -> tuple[Missing, ...]:
    """The literals of `sql` that no row has, where stored values are only similar."""
    found: dict[str, Missing] = {}
    for comparison in _unfounded(sql, catalog):
        choices = alike(comparison.text, comparison.column.values)[:_MOST_OFFERED]
        if choices and _stored_for(comparison) is None:
            found.setdefault(comparison.text, Missing(comparison, choices))
    return tuple(found.values())


def _stored_for(comparison: Comparison) -> str | None:
    return near_value(comparison.text, comparison.column.values, allowed(comparison.table, comparison.column))


def _unfounded(sql: str, catalog: Catalog) -> Iterator[Comparison]:
    for comparison in references(sql, catalog).comparisons[:_MOST_JUDGED]:
        column = comparison.column
        if column.is_complete and not any(map(comparison.finds, column.values)):
            yield comparison


def rewritten(sql: str, changes: Iterable[Replacement]) -> str:
    """`sql` with the literals replaced."""
    for change in sorted(changes, key=lambda change: -change.comparison.start):
        where = change.comparison
        literal = f"{where.before}{change.stored}{where.after}".replace("'", "''")
        sql = f"{sql[: where.start]}'{literal}'{sql[where.end :]}"
    return sql
