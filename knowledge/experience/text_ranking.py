"""Find the entries that have to do with a question: BM25 over their words.

What is shared and what is a user's own are separate indexes. One question is looked up in both as
if they were one, so that what others have of their own changes nothing, not even an order.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import log

from knowledge.language.question_terms import forms

_K1, _B = 1.2, 0.4  # BM25's constants
# entries; a word that more of them have is ignored when the question has rarer ones
_COMMON = 1_000
_LEAST_SHARE = 0.3  # of the best score: what is found below it is there by chance


class TextIndex:
    """Entries by their words; it does not change.

    Args:
        entries: the words of each entry (`knowledge.language.terms.terms_with_roots`), by its id.
    """

    def __init__(self, entries: Mapping[str, frozenset[str]]) -> None:
        self.lengths = {entry: len(words) for entry, words in entries.items()}
        self.total = sum(self.lengths.values())
        self._holding: defaultdict[str, list[str]] = defaultdict(list)
        for entry, words in entries.items():
            for word in words:
                self._holding[word].append(entry)

    def holding(self, word: str) -> Sequence[str]:
        """Return the entries with that word."""
        return self._holding.get(word, ())


def ranked(question: str, indexes: Iterable[TextIndex], most: int) -> list[str]:
    """Return the ids of at most `most` entries that have to do with the question, best first."""
    indexes = tuple(indexes)
    count = sum(len(index.lengths) for index in indexes)
    if not count:
        return []

    scores = _scores(question, indexes, count)
    best = max(scores.values(), default=0.0)
    leading = nlargest(most, scores, key=lambda entry: (scores[entry], entry))
    return [entry for entry in leading if scores[entry] >= best * _LEAST_SHARE]


def _scores(question: str, indexes: Sequence[TextIndex], count: int) -> Mapping[str, float]:
    """Return the scores of the entries that share a word with the question.

    Args:
        count: the number of all entries.
    """
    mean = sum(index.total for index in indexes) / count or 1.0
    scores: defaultdict[str, float] = defaultdict(float)
    best_of_word: defaultdict[str, dict[str, float]] = defaultdict(dict)
    asked = forms(question)
    for term, frequency in _rarest_first(asked, indexes):
        if scores and frequency > _COMMON:
            break

        rarity = log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        weight = rarity * asked[term].share * (_K1 + 1)
        best = best_of_word[asked[term].word]
        for index in indexes:
            for entry in index.holding(term):
                score = weight / (1 + _K1 * (1 - _B + _B * index.lengths[entry] / mean))
                before = best.get(entry, 0.0)
                if score > before:  # of the ways to say a word only the best counts
                    best[entry] = score
                    scores[entry] += score - before

    return scores


def _rarest_first(terms: Iterable[str], indexes: Sequence[TextIndex]) -> list[tuple[str, int]]:
    """Return the terms that some entry has, with the number of the entries."""
    frequencies = []
    for term in terms:
        frequency = sum(len(index.holding(term)) for index in indexes)
        if frequency:
            frequencies.append((term, frequency))

    return sorted(frequencies, key=lambda one: one[1])
