"""Choose the columns of a table that matter to a question, when there is no room for all."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from common.values import Column, Table
from knowledge.language.question_terms import Form
from knowledge.language.terms import terms_with_roots
from knowledge.words import WORDS

_MAX_COMMENT = 160  # characters that are looked at
# Columns of each sort that are usually enough.
_MOST_SAID = 12
_MOST_LABELS = 2
_MOST_DATES = 2
_MOST_MEASURES = 3
# As types begin in PostgreSQL.
_DATES, _MEASURES, _TEXTS = (
    WORDS.english.phrases(f"types.{one}") for one in ("dates", "measures", "texts")
)
_LABELS = frozenset(
    term for phrase in WORDS.both("relevance.labels") for term in terms_with_roots(phrase)
)


class InformativeColumns(NamedTuple):
    """The columns of a table, those that tell most about its rows first.

    Attributes:
        order: positions of all of them: those of keys, then those that the question says, what
            names and dates a row, what is measured, then the others.
        keys: how many of them are keys, or join the table to others.
        usual: how many are enough unless there is room for more.
    """

    order: tuple[int, ...]
    keys: int
    usual: int


def informative_columns(
    table: Table, joining: Collection[str], asked: Mapping[str, Form], held: Collection[str] = ()
) -> InformativeColumns:
    """Choose the columns of `table` that matter.

    Args:
        joining: columns by which it is joined to others.
        asked: the forms of the question's words.
        held: columns with a value that the question names.
    """
    keys = {*table.primary_key, *table.referring_columns, *joining}
    scores = [_said(column, asked) + (column.name in held) for column in table.columns]
    key_positions = [at for at, column in enumerate(table.columns) if column.name in keys]
    by_score = sorted(range(len(scores)), key=lambda at: -scores[at])
    best_scored = [at for at in by_score if scores[at]]
    usual = dict.fromkeys(
        (
            *key_positions,
            *best_scored[:_MOST_SAID],
            *_labels(table)[:_MOST_LABELS],
            *_dates(table)[:_MOST_DATES],
            *_measures(table)[:_MOST_MEASURES],
        )
    )
    order = dict.fromkeys((*usual, *by_score))
    return InformativeColumns(tuple(order), len(key_positions), len(usual))


def _said(column: Column, asked: Mapping[str, Form]) -> float:
    """Rate how much of the question the column's names say; each word counts once."""
    best: dict[str, float] = {}
    names = [column.name, (column.comment or "")[:_MAX_COMMENT]]
    if column.meaning:
        names.extend(column.meaning.names.all)

    for text in names:
        for term in _terms(text) & asked.keys():
            form = asked[term]
            if not form.is_faint:
                best[form.word] = max(form.share, best.get(form.word, 0.0))

    return sum(best.values())


@lru_cache(maxsize=50_000)
def _terms(text: str) -> frozenset[str]:
    return terms_with_roots(text)


def _labels(table: Table) -> list[int]:
    """Return positions of columns that name a row: the semantic file's, else such as `title`."""
    meant: tuple[str, ...] = ()
    if table.meaning:
        meant = table.meaning.label_columns

    labels = []
    named_so = []
    for at, column in enumerate(table.columns):
        if column.name in meant:
            labels.append(at)

        is_text = column.type.startswith(_TEXTS)
        if is_text and _terms(column.name) & _LABELS:
            named_so.append(at)

    return labels or named_so


def _of_types(table: Table, types: tuple[str, ...]) -> list[int]:
    """Return positions of columns whose types begin so."""
    positions = []
    for at, column in enumerate(table.columns):
        if column.type.startswith(types):
            positions.append(at)

    return positions


def _measures(table: Table) -> list[int]:
    return _of_types(table, _MEASURES)


def _dates(table: Table) -> list[int]:
    """Return dates and times, first the one that the semantic file says periods are about."""
    meant = None
    if table.meaning:
        meant = table.meaning.date_column

    dates = _of_types(table, _DATES)
    return sorted(dates, key=lambda at: table.columns[at].name != meant)
