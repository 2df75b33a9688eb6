"""Find, of very many names, those that may be spelled like a word.

They share most pairs of characters with it.

Comparing a word with each of a hundred thousand names takes seconds; with the few hundred found
here, milliseconds.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial

_FEW = 2_000  # names that are all compared, where comparing takes microseconds
_MOST_COMPARED = 200  # of more names


class LikeNames:
    """Names, found by the pairs of characters that they hold.

    Args:
        few: up to so many names, all of them are compared.
    """

    def __init__(self, names: Sequence[str], *, few: int = _FEW) -> None:
        self.names = names
        holding: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
        if len(names) > few:
            for number, name in enumerate(names):
                for pair in _pairs(name):
                    holding[pair].append(number)

        self._holding = dict(holding)

    def like(self, word: str) -> Sequence[int]:
        """Return the numbers of the names worth comparing with `word`, in order.

        All, unless there are very many.
        """
        if not self._holding:
            return range(len(self.names))

        shared = Counter[int]()
        for pair in _pairs(word):
            shared.update(self._holding.get(pair, ()))

        most = (number for number, _ in shared.most_common(4 * _MOST_COMPARED))
        # Of two names that share equally many pairs, the shorter one is more alike.
        ranked = sorted(most, key=lambda number: (-shared[number], len(self.names[number])))
        return sorted(ranked[:_MOST_COMPARED])

    def names_like(self, word: str) -> list[str]:
        """Return the names worth comparing with `word`, in order."""
        return [self.names[number] for number in self.like(word)]


def _pairs(name: str) -> set[str]:
    folded = f" {name.casefold()}"
    return {folded[at : at + 2] for at in range(len(folded) - 1)}
