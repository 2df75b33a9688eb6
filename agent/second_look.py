"""A second look at an empty result: where a filter compares a column with a text that it does not hold, but it holds
one that is nearly the same, the query most likely meant that one.

Only columns whose stored values are all known are judged. What counts as nearly the same is strict, because a wrong
guess answers another question: the same text but for case, width, blanks and punctuation; one being the other with
something added at its end ("陕西", "陕西省"); or one misspelt word. Digits never differ.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from common.database.references import Comparison, references
from common.text import Text
from common.values import Catalog, QueryResult

_MOST_ADDED = 2  # one text may be this many times as long as the other that it begins with
_SHORTEST_MISSPELT = 5  # characters; one letter more or less makes another word of a shorter one
_LONGEST_MISSPELT = 40  # what is longer is a code or a sentence
_MOST_JUDGED = 20  # texts of one query; long lists are rarely the reason why nothing is found
_WILDCARDS = re.compile(r"[%_\\]")
_LONG = 10  # characters of a word that may hold two slips


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


def looks_empty(result: QueryResult) -> bool:
    """Whether nothing was found: no rows, or one row of zeros and nulls, which is what aggregates make of no rows."""
    if not result.rows:
        return True
    return result.row_count == 1 and all(
        value is None or (value == 0 and value is not False) for value in result.rows[0]
    )


def replacements(sql: str, catalog: Catalog) -> tuple[Replacement, ...]:
    """The literals of `sql` that no row can have, each with the stored value that was most likely meant."""
    found = []
    for comparison in references(sql, catalog).comparisons[:_MOST_JUDGED]:
        column = comparison.column
        if column.is_complete and not any(map(comparison.finds, column.values)):
            stored = near_value(comparison.text, column.values)
            # In a pattern, a value that holds wildcards would mean something else.
            if stored is not None and not (comparison.is_pattern and _WILDCARDS.search(stored)):
                found.append(Replacement(comparison, stored))
    return tuple(found)


def rewritten(sql: str, changes: Iterable[Replacement]) -> str:
    """`sql` with the literals replaced."""
    for change in sorted(changes, key=lambda change: -change.comparison.start):
        where = change.comparison
        literal = f"{where.before}{change.stored}{where.after}".replace("'", "''")
        sql = f"{sql[: where.start]}'{literal}'{sql[where.end :]}"
    return sql


def near_value(literal: str, values: Iterable[str]) -> str | None:
    """The one of `values` that is nearly `literal`; None when there is none, or more than one."""
    stored = tuple(values)
    for is_near in _NEARNESS:
        near = [value for value in stored if is_near(literal, value)]
        if near:
            return near[0] if len(near) == 1 else None
    return None


def _is_same(one: str, other: str) -> bool:
    return bool(_folded(one)) and _folded(one) == _folded(other)


def _is_extended(one: str, other: str) -> bool:
    """Whether one begins with the other, as words do: "Beijing City", but not "Nigeria" with "Niger"."""
    shorter, longer = sorted((_plain(one), _plain(other)), key=len)
    if not _folded(shorter) or not longer.startswith(shorter) or len(longer) > _MOST_ADDED * len(shorter):
        return False
    ends_word = not shorter[-1].isascii() or not longer[len(shorter)].isalnum()
    return ends_word and _digits(one) == _digits(other)


def _is_misspelt(one: str, other: str) -> bool:
    """Whether all words are the same but one long one, which differs in a slip; only in alphabets, where a letter does
    not make another name as it does in Chinese."""
    words, others = _plain(one).split(), _plain(other).split()
    if len(words) != len(others) or _digits(one) != _digits(other):
        return False
    different = [(a, b) for a, b in zip(words, others, strict=True) if a != b]
    return len(different) == 1 and _is_slip(*different[0])


def _is_slip(one: str, other: str) -> bool:
    shortest = min(len(one), len(other))
    if (
        not _SHORTEST_MISSPELT <= shortest <= _LONGEST_MISSPELT
        or one[0] != other[0]
        or not (_is_alphabetic(one) and _is_alphabetic(other))
    ):
        return False
    most = 2 if shortest >= _LONG else 1
    return abs(len(one) - len(other)) <= most and _edits(one, other, most) <= most


def _is_alphabetic(word: str) -> bool:
    return all(unicodedata.category(letter) in ("Ll", "Lm", "Mn") for letter in word)


def _edits(one: str, other: str, most: int) -> int:
    """Letters added, left out, changed or swapped with their neighbour; counts no further than beyond `most`."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one):
        above, row = rows[i], [i + 1]
        for j, b in enumerate(other):
            steps = [above[j + 1] + 1, row[j] + 1, above[j] + (a != b)]
            if i and j and a == other[j - 1] and b == one[i - 1]:
                steps.append(rows[i - 1][j - 1] + 1)
            row.append(min(steps))
        rows.append(row)
        if min(row) > most:
            break
    return min(rows[-1]) if len(rows) <= len(one) else rows[-1][-1]


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, _plain(text)))


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", _plain(text))


_NEARNESS: tuple[Callable[[str, str], bool], ...] = (_is_same, _is_extended, _is_misspelt)
