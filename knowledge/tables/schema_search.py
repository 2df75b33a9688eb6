"""Tables for a question, with the reasons: which words said which name, comment or value, which
example reads them, and which table led there.

The tables are ranked without the values that may not be shown, so that neither a reason nor the
order of the tables tells whether such a value is stored. The same ranking serves prompts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from common.learning import Example
from common.meanings import TableKey
from common.values import Table
from knowledge.index import IndexPart
from knowledge.language.question_terms import Form, forms
from knowledge.language.terms import terms_with_roots
from knowledge.tables.relevance import Hints, RankedTable, TableIndex
from knowledge.tables.table_texts import SchemaTextPart, TextKind, no_values
from knowledge.values.personal_data import open_values

_MOST_REASONS = 12  # of one table
_MOST_EXAMPLES = 3  # whose tables are found by the examples' questions
_LEAST_SAID = 0.5  # of a question's words, what the question of such an example says at least


@dataclass(frozen=True)
class WordReason:
    """Words of the question that something of a table says.

    Attributes:
        words: singular and in lower case; of Chinese, pairs of characters.
        kind: what says them: a name, comment or stored value, or what the semantic file says.
        text: what says them.
        column: the column, if it is one of a column.
        is_literal: whether all of them stand there; else as words of the same stem, abbreviated or
            in other words.
    """

    words: tuple[str, ...]
    kind: TextKind
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
class TableMatch:
    """A table that has to do with a question, and why.

    Attributes:
        score: only means something beside those of the same answer.
        examples: those of similar questions that read the table.
        is_near: whether a model's vectors say that it means what the question means.
    """

    table: Table
    score: float
    words: tuple[WordReason, ...]
    examples: tuple[Example, ...]
    links: tuple[LinkReason, ...]
    is_near: bool


class SchemaSearch:
    """Searches the tables of one catalogue.

    Args:
        ranking: `RANKING`, or `RANKING_WITHOUT_VALUES` where stored values may be no reasons.
    """

    def __init__(self, ranking: TableIndex) -> None:
        self._ranking = ranking

    def matches(
        self,
        question: str,
        most: int,
        near: Sequence[TableKey] = (),
        examples: Sequence[Example] = (),
    ) -> list[TableMatch]:
        """Return the tables that have to do with the question, at most `most`, the most relevant
        first.

        Args:
            near: those that mean what it means, the nearest first.
            examples: those of similar questions, the most alike first; the questions are a further
                text of the tables that the examples read.
        """
        asked = forms(question)
        alike = _alike(asked, examples)
        matches = []
        for ranked in self._ranking.found(question, most, _hints(alike, near)):
            texts = self._ranking.texts_of(ranked.table)
            is_near = ranked.table.key in near
            matches.append(_match(ranked, texts, asked, alike, is_near=is_near))

        return _called_so_first(matches, asked)

    def tables(
        self,
        question: str,
        most: int,
        near: Sequence[TableKey] = (),
        examples: Sequence[Example] = (),
    ) -> list[Table]:
        """Return the tables of `matches` alone: their reasons take longer to find than they do."""
        alike: Sequence[Example] = ()
        if examples:
            alike = _alike(forms(question), examples)

        numbers = self._ranking.found(question, most, _hints(alike, near))
        return [one.table for one in numbers]


RANKING = IndexPart(
    lambda index: TableIndex(index.catalog, open_values),
    ignores_row_counts=True,
    address="knowledge.tables.schema_search:RANKING",
)
"""Finds tables also by their stored values, but by none that may not be shown."""

RANKING_WITHOUT_VALUES = IndexPart(
    lambda index: TableIndex(index.catalog, no_values), ignores_row_counts=True
)


def _called_so_first(matches: list[TableMatch], asked: Mapping[str, Form]) -> list[TableMatch]:
    """Return the matches, first those whose tables' names have all that is looked for.

    Their scores are raised above the others': a table with many columns and values may say a word
    more often than the one that is called by it.
    """
    words = {form.word for form in asked.values() if not form.is_faint}
    if not words:
        return matches

    best = max((match.score for match in matches), default=0.0)
    called = []
    others = []
    for match in matches:
        if _is_called(match, words):
            called.append(replace(match, score=best + match.score))
        else:
            others.append(match)

    return [*called, *others]


def _is_called(match: TableMatch, words: Set[str]) -> bool:
    """Tell whether one of the table's own names says all the words literally."""
    for reason in match.words:
        is_table_name = reason.kind == "name" and reason.column is None
        if is_table_name and reason.is_literal and words <= set(reason.words):
            return True

    return False


def _alike(asked: Mapping[str, Form], examples: Iterable[Example]) -> tuple[Example, ...]:
    """Return the first examples whose questions share enough words with the question."""
    words = {form.word for form in asked.values() if not form.is_faint}
    least = max(1.0, _LEAST_SAID * len(words))
    saying = []
    for example in examples:
        common_words = words & _said_by(example, asked)
        if len(common_words) >= least:
            saying.append(example)
        if len(saying) == _MOST_EXAMPLES:
            break

    return tuple(saying)


def _said_by(example: Example, asked: Mapping[str, Form]) -> set[str]:
    common_terms = asked.keys() & terms_with_roots(example.question)
    return {asked[term].word for term in common_terms}


def _hints(alike: Iterable[Example], near: Sequence[TableKey]) -> Hints:
    return Hints(alike=tuple(example.tables for example in alike), near=tuple(near))


def _match(
    ranked: RankedTable,
    texts: Iterable[SchemaTextPart],
    asked: Mapping[str, Form],
    alike: Iterable[Example],
    *,
    is_near: bool,
) -> TableMatch:
    informative_words = {term: form for term, form in asked.items() if not form.is_faint}
    texts = list(texts)
    word_reasons = list(_word_reasons(texts, informative_words))
    if not word_reasons:
        word_reasons = list(_word_reasons(texts, asked))

    reasons = sorted(word_reasons, key=lambda reason: (not reason.is_literal, -len(reason.words)))
    links = tuple(_link(ranked.table, other, points=points) for other, points in ranked.led_by)
    reading = tuple(example for example in alike if ranked.table.key in example.tables)
    return TableMatch(
        ranked.table, ranked.score, tuple(reasons[:_MOST_REASONS]), reading, links, is_near
    )


def _word_reasons(
    texts: Iterable[SchemaTextPart], asked: Mapping[str, Form]
) -> Iterator[WordReason]:
    for kind, text, column in texts:
        common_terms = asked.keys() & terms_with_roots(text)
        if not common_terms:
            continue

        words = {asked[term].word for term in common_terms}
        is_literal = words <= common_terms
        yield WordReason(tuple(sorted(words)), kind, text, column, is_literal)


def _link(table: Table, other: Table, *, points: bool) -> LinkReason:
    pointing, pointed_at = other, table
    if points:
        pointing, pointed_at = table, other

    is_declared = any(key.target == pointed_at.key for key in pointing.foreign_keys)
    return LinkReason(other, is_declared, points)
