"""Says how well catalogues know the words of a question, to tell which of them it is about."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from common.inquiry import StoredValue
from knowledge.language.cutting import has_han
from knowledge.language.question_terms import forms
from knowledge.language.terms import terms
from knowledge.tables.schema_search import TableMatch, WordReason
from knowledge.words import WORDS

_IN_OTHER_WORDS = 0.55  # what a word counts that is only said by the same stem or a synonym
_TRANSLATED = 0.9  # the same of a name that there is but in the other language
_BY_ONE_TABLE = 0.5  # the part of the score for what one table and its neighbours say together
_LEAST_PART = 0.3  # what a word counts at least that is but one of many in a text
_KNOWN = 0.4  # how well a catalogue must say a word for it to tell less of the others
_OF_ANY_DATABASE = frozenset(
    term for phrase in WORDS.both("relevance.of_any_database") for term in (phrase, *terms(phrase))
)


@dataclass(frozen=True)
class QuestionCoverage:
    """The words of a question that a catalogue says, each with how well, from 0 to 1.

    Attributes:
        anywhere: by any of its tables.
        together: by the table that says most of them and those that it can be joined to.
    """

    anywhere: Mapping[str, float]
    together: Mapping[str, float]


def telling_words(question: str) -> frozenset[str]:
    """Return the question's words that tell what it is about, as `WordReason` has them."""
    words = set()
    for form in forms(question).values():
        if not form.is_faint and not form.word.isdigit() and form.word not in _OF_ANY_DATABASE:
            words.add(form.word)

    return frozenset(words)


def coverage_of(
    informative_words: Collection[str], matches: Sequence[TableMatch], named: Sequence[str] = ()
) -> QuestionCoverage:
    """Return the coverage by the tables that were found for a question.

    Args:
        informative_words: its words that tell what it is about.
        named: words of the question that name the whole database.
    """
    beginning = _shared_beginning(matches)
    words_of = {
        match.table.key: _said(match.words, informative_words, beginning) for match in matches
    }
    anywhere: dict[str, float] = dict.fromkeys(named, 1.0)
    together: dict[str, float] = {}
    for match in matches:
        _add(anywhere, words_of[match.table.key])
        neighbours = dict(words_of[match.table.key])
        for link in match.links:
            _add(neighbours, words_of.get(link.table.key, {}))

        if sum(neighbours.values()) > sum(together.values()):
            together = neighbours

    _add(together, dict.fromkeys(named, 1.0))
    return QuestionCoverage(anywhere, together)


def with_values(
    coverage: QuestionCoverage, stored_values: Sequence[StoredValue]
) -> QuestionCoverage:
    """Return the coverage of a catalogue in whose tables values were found that a question names.

    A stored value is as good as a name: the words that said it are said by the catalogue.
    """
    by_values: dict[str, float] = {}
    for value in stored_values:
        if value.is_meant:
            how_well = 1.0 if value.is_exact else _IN_OTHER_WORDS
            _add(by_values, dict.fromkeys(telling_words(value.said), how_well))

    anywhere = dict(coverage.anywhere)
    together = dict(coverage.together)
    _add(anywhere, by_values)
    _add(together, by_values)
    return QuestionCoverage(anywhere, together)


def scores(coverages: Mapping[str, QuestionCoverage]) -> dict[str, float]:
    """Return how well each catalogue fits the question; only to be compared with one another.

    A word tells the less, the more of the catalogues know it. Chinese text is cut into overlapping
    words: for words within a longer one that some catalogue knows, nothing more is told.
    """
    within_others = _parts_of_others({word for one in coverages.values() for word in one.anywhere})
    known_by: dict[str, int] = {}
    for coverage in coverages.values():
        for word, how_well in coverage.anywhere.items():
            known_by[word] = known_by.get(word, 0) + (how_well >= _KNOWN)

    count = len(coverages)

    def weight(word: str) -> float:
        return math.log(1 + count / max(1, known_by.get(word, 1)))

    def weighed(shares: Mapping[str, float]) -> float:
        informative_words = (word for word in shares if word not in within_others)
        return sum(weight(word) * shares[word] for word in informative_words)

    score_by_name = {}
    for name, coverage in coverages.items():
        anywhere = weighed(coverage.anywhere)
        together = weighed(coverage.together)
        score_by_name[name] = (1 - _BY_ONE_TABLE) * anywhere + _BY_ONE_TABLE * together

    return score_by_name


def _parts_of_others(words: Collection[str]) -> set[str]:
    """Return the words of Chinese that are within another of them."""
    chinese = [word for word in words if not word.isascii()]
    parts = set()
    for word in chinese:
        longer = (other for other in chinese if other != word)
        if any(word in other for other in longer):
            parts.add(word)

    return parts


def _shared_beginning(matches: Sequence[TableMatch]) -> frozenset[str]:
    """Return the word that all names of tables begin with, such as `erp`, which says nothing."""
    first = {next(terms(match.table.name), "") for match in matches}
    if len(matches) < 2 or len(first) != 1:
        return frozenset()

    return frozenset(first)


def _said(
    reasons: Sequence[WordReason], informative_words: Collection[str], beginning: Collection[str]
) -> dict[str, float]:
    """Return how well the reasons say each word: best is a text that says nothing else.

    What a text says in another language as well doesn't count.

    Args:
        beginning: the word that all names of tables begin with, if there is one.
    """
    share_by_word: dict[str, float] = {}
    for reason in reasons:
        texts = set(terms(reason.text))
        if reason.is_literal:
            languages = set(map(has_han, reason.words))
            texts = {word for word in texts if has_han(word) in languages}
        if reason.column is None and reason.kind == "name":
            texts -= set(beginning)

        part = len(reason.words) / max(len(reason.words), len(texts))
        how_well = _LEAST_PART + (1 - _LEAST_PART) * part
        is_han = any(map(has_han, reason.words))
        if not reason.is_literal and has_han(reason.text) == is_han:
            how_well *= _IN_OTHER_WORDS
        elif not reason.is_literal:
            how_well *= _TRANSLATED

        for word in reason.words:
            if word in informative_words:
                share_by_word[word] = max(share_by_word.get(word, 0.0), how_well)

    return share_by_word


def _add(into: dict[str, float], more: Mapping[str, float]) -> None:
    for word, how_well in more.items():
        into[word] = max(into.get(word, 0.0), how_well)
