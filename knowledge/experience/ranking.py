"""Which entries have to do with a question: BM25 over their words, cut as those of tables are.

What is shared and what is a user's own are separate indexes. One question is looked up in both as if they were one, so
that what others have of their own changes nothing, not even an order.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import log

from knowledge.question_terms import forms

_K1, _B = 1.2, 0.4  # BM25's constants
_COMMON = 1_000  # entries; a word that more of them have is ignored when the question has rarer ones
_LEAST_SHARE = 0.3  # of the best score: what is found below it is there by chance


class TextIndex:
    """Entries by their words; it does not change.

    Args:
        entries: the words of each entry (`knowledge.terms.terms_with_roots`), by its id.
    """

    def __init__(self, entries: Mapping[str, frozenset[str]]) -> None:
        self.lengths = {entry: len(words) for entry, words in entries.items()}
        self.total = sum(self.lengths.values())
        self._holding: defaultdict[str, list[str]] = defaultdict(list)
        for entry, words in entries.items():
            for word in words:
                self._holding[word].append(entry)

    def holding(self, word: str) -> Sequence[str]:
        """The entries with that word."""
        return self._holding.get(word, ())


def ranked(question: str, indexes: Iterable[TextIndex], most: int) -> list[str]:
    """Ids of the entries that have to do with the question, at most `most`, the most alike first."""
    indexes = tuple(indexes)
    count = sum(len(index.lengths) for index in indexes)
    if not count:
        return []
    mean = sum(index.total for index in indexes) / count or 1.0
    scores: defaultdict[str, float] = defaultdict(float)
    counted: defaultdict[str, dict[str, float]] = defaultdict(dict)
    asked = forms(question)
    held = {term: [index.holding(term) for index in indexes] for term in asked}
    held_by = {term: containing for term in held if (containing := sum(map(len, held[term])))}
    for term, containing in sorted(held_by.items(), key=lambda one: one[1]):
        if scores and containing > _COMMON:
            break
        rarity = log(1 + (count - containing + 0.5) / (containing + 0.5)) * asked[term].share * (_K1 + 1)
        of_word = counted[asked[term].word]
        for index, holding in zip(indexes, held[term], strict=True):
            for entry in holding:  # of the ways to say a word only the best counts
                score = rarity / (1 + _K1 * (1 - _B + _B * index.lengths[entry] / mean))
                before = of_word.get(entry, 0.0)
                if score > before:
                    of_word[entry] = score
                    scores[entry] += score - before
    best = max(scores.values(), default=0.0)
    leading = nlargest(most, scores, key=lambda entry: (scores[entry], entry))
    return [entry for entry in leading if scores[entry] >= best * _LEAST_SHARE]
