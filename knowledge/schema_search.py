"""Tables for a question, with the reasons: which words said which name, comment or value, and which table led there.

The index is one of its own, without the values that may not be shown, so that neither a reason nor the order of the
tables tells whether such a value is stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from common.values import Catalog, Table
from knowledge.personal_data import open_values
from knowledge.prepared import Prepared
from knowledge.question_terms import Form, forms
from knowledge.relevance import Ranked, TableIndex
from knowledge.terms import terms_with_roots

_MOST_REASONS = 12  # of one table
_MOST_VALUES = 20  # of one column that are looked at, as in the index
_MOST_CHARS = 400  # of a comment that are looked at, as in the index

Kind = Literal["name", "comment", "column", "column_comment", "value"]


@dataclass(frozen=True)
class WordReason:
    """Words of the question that something of a table says.

    Attributes:
        words: singular and in lower case; of Chinese, pairs of characters.
        kind: what says them: the table's name or comment, or a column's name, comment or value.
        text: that name, comment or value.
        column: the column, if it is one of a column.
        is_literal: whether all of them stand there; else as words of the same stem, abbreviated or in other words.
    """

    words: tuple[str, ...]
    kind: Kind
    text: str
    column: str | None
    is_literal: bool


@dataclass(frozen=True)
class LinkReason:
    """A better table that this one can be joined to.

    Attributes:
        is_declared: whether a foreign key says so; else names of columns do.
        points_to_it: whether this table refers to the other, not the other to this one.
    """

    table: Table
    is_declared: bool
    points_to_it: bool


@dataclass(frozen=True)
class Match:
    """A table that has to do with a question, and why.

    Attributes:
        score: only means something beside those of the same answer.
    """

    table: Table
    score: float
    words: tuple[WordReason, ...]
    links: tuple[LinkReason, ...]


class SchemaSearch:
    """Searches the tables of one catalogue.

    Args:
        samples: whether stored values are searched, those of personal columns never.
    """

    def __init__(self, catalog: Catalog, *, samples: bool) -> None:
        self._index = TableIndex(_showing(catalog, samples=samples))

    def matches(self, question: str, most: int) -> list[Match]:
        """The tables that have to do with the question, at most `most`, the most relevant first."""
        asked = forms(question)
        return [_match(ranked, asked) for ranked in self._index.found(question, most)]


SEARCHES = Prepared(lambda catalog: SchemaSearch(catalog, samples=True))
"""Of each catalogue object, where stored values may be shown."""

SEARCHES_WITHOUT_VALUES = Prepared(lambda catalog: SchemaSearch(catalog, samples=False))
"""Of each catalogue object, where none may."""


def _showing(catalog: Catalog, *, samples: bool) -> Catalog:
    """The catalogue without stored values that may not be shown."""

    def shown(table: Table) -> Table:
        if not any(column.values for column in table.columns):
            return table
        columns = (replace(one, values=open_values(table, one) if samples else ()) for one in table.columns)
        return replace(table, columns=tuple(columns))

    return replace(catalog, tables=tuple(map(shown, catalog.tables)))


def _match(ranked: Ranked, asked: Mapping[str, Form]) -> Match:
    reasons = sorted(_word_reasons(ranked.table, asked), key=lambda reason: (not reason.is_literal, -len(reason.words)))
    links = tuple(_link(ranked.table, other, points=points) for other, points in ranked.led_by)
    return Match(ranked.table, ranked.score, tuple(reasons[:_MOST_REASONS]), links)


def _word_reasons(table: Table, asked: Mapping[str, Form]) -> Iterator[WordReason]:
    for kind, text, column in _texts(table):
        said = [(term, asked[term]) for term in asked.keys() & terms_with_roots(text[:_MOST_CHARS])]
        if said:
            words = tuple(dict.fromkeys(sorted(form.word for _, form in said)))
            literal = {form.word for term, form in said if term == form.word}
            yield WordReason(words, kind, text, column, literal.issuperset(words))


def _texts(table: Table) -> Iterator[tuple[Kind, str, str | None]]:
    yield "name", table.name, None
    if table.comment:
        yield "comment", table.comment, None
    for column in table.columns:
        yield "column", column.name, column.name
        if column.comment:
            yield "column_comment", column.comment, column.name
        for value in column.values[:_MOST_VALUES]:
            yield "value", value, column.name


def _link(table: Table, other: Table, *, points: bool) -> LinkReason:
    pointing, pointed_at = (table, other) if points else (other, table)
    is_declared = any(key.target == pointed_at.key for key in pointing.foreign_keys)
    return LinkReason(other, is_declared, points)
