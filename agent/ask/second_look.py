"""A second look at an empty result: a filter may name what is stored in another spelling.

A literal is replaced only by a stored value that is the same text written differently, that differs by a word which
only says what kind of place or company it is ("陕西", "陕西省"), or by one slip of the pen (`knowledge.spelling`).
Of a column that names people or identifies things only the first will do, because there whatever differs is another
person. What is merely similar is never taken: the answer stays empty and asks.

Only columns whose stored values are all known are judged.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from common.text import Text
from common.values import Catalog, Column, QueryResult, Table
from databases.references import Comparison, references
from knowledge.identity import identifies, names_people
from knowledge.spelling import COMPANIES, KINDS, PLACES, alike, did_you_mean, misspelt, same, units_apart

_MOST_JUDGED = 20  # texts of one query; long lists are rarely the reason why nothing is found
_MOST_OFFERED = 3
_WILDCARDS = re.compile(r"[%_\\]")

Nearness = Callable[[str, str], bool]


@dataclass(frozen=True)
class Replacement:
    """`comparison`'s literal is not stored; `stored` is what is."""

    comparison: Comparison
    stored: str

    @property
    def notice(self) -> Text:
        """What the user must know about it."""
        column, literal = self.comparison.column.name, self.comparison.text
        return Text(
            f"{column} 中没有“{literal}”，已改按“{self.stored}”查询。",
            f'{column} holds no "{literal}"; "{self.stored}" was used instead.',
        )


@dataclass(frozen=True)
class Missing:
    """`comparison`'s literal is not stored, and `choices` only resemble it: the most alike first, at least one."""

    comparison: Comparison
    choices: tuple[str, ...]

    @property
    def notice(self) -> Text:
        """What the user is asked."""
        return did_you_mean(self.comparison.text, self.choices)


def looks_empty(result: QueryResult) -> bool:
    """Whether nothing was found: no rows, or one row of zeros and nulls, which is what aggregates make of no rows."""
    if not result.rows:
        return True
    return result.row_count == 1 and all(
        value is None or (value == 0 and value is not False) for value in result.rows[0]
    )


def replacements(sql: str, catalog: Catalog) -> tuple[Replacement, ...]:
    """The literals of `sql` that no row can have, each with the stored value that is the same in another spelling."""
    found = ((comparison, _stored_for(comparison)) for comparison in _unfounded(sql, catalog))
    return tuple(
        Replacement(comparison, stored)
        for comparison, stored in found
        # In a pattern, a value that holds wildcards would mean something else.
        if stored is not None and not (comparison.is_pattern and _WILDCARDS.search(stored))
    )


def missing(sql: str, catalog: Catalog) -> tuple[Missing, ...]:
    """The literals of `sql` that no row can have and that stored values merely resemble, with these."""
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


def allowed(table: Table, column: Column) -> tuple[Nearness, ...]:
    """In which ways a text may differ from a value of the column and still mean it, the surest first."""
    if identifies(table, column):
        return (same,)
    if names_people(table, column):
        return (same, _companies_apart)  # customers may be companies, and nobody is called "Ltd"
    return (same, _units_apart, misspelt)


def _companies_apart(one: str, other: str) -> bool:
    return units_apart(one, other, COMPANIES)


def _units_apart(one: str, other: str) -> bool:
    return units_apart(one, other, (*PLACES, *COMPANIES, *KINDS))


def rewritten(sql: str, changes: Iterable[Replacement]) -> str:
    """`sql` with the literals replaced."""
    for change in sorted(changes, key=lambda change: -change.comparison.start):
        where = change.comparison
        literal = f"{where.before}{change.stored}{where.after}".replace("'", "''")
        sql = f"{sql[: where.start]}'{literal}'{sql[where.end :]}"
    return sql


def near_value(literal: str, values: Iterable[str], ways: Iterable[Nearness]) -> str | None:
    """The one of `values` that is `literal` in another spelling; None when there is none, or more than one."""
    stored = tuple(values)
    for is_near in ways:
        near = [value for value in stored if is_near(literal, value)]
        if near:
            return near[0] if len(near) == 1 else None
    return None
