"""Values with which a row passes all conditions of an intent.

A condition may compare what steps compute, columns of several tables, or figures of groups. So the
values are not derived from the conditions but tried: in a world of one row for each table the
interpreter says how far that row comes.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etl.evidence.boundary_values import Place
from etl.meaning.bound import BoundIntent
from etl.meaning.evaluation import NotComputable
from etl.meaning.interpreter import Tables, evaluate

Values = Mapping[Place, Any]
Progress = tuple[int, int, int]
"""Steps that leave a row, rows of the target, and values in these that are neither NULL nor 0."""

_TRIES = 160
_MOST_IN_VAIN = 50
_STEPS = 80
_PLACES_AT_ONCE = 3
_NOTHING: Progress = (-1, 0, 0)


A_KEY = "a key"
"""Stands for whatever key a row refers to."""


class FulfillingValues:
    """The values with which rows pass all conditions, found by trying.

    Attributes:
        values: those of each column that may stand beside the plain ones of others, the plain one
            first.
        choices: values for the columns, which come through together.

    Args:
        candidates: the values that are tried for each column, the most usual first.
        rows_of: makes the world that has these values.
    """

    def __init__(
        self,
        intent: BoundIntent,
        candidates: Mapping[Place, Sequence[Any]],
        rows_of: Callable[[Values], Tables],
    ) -> None:
        self._intent = intent
        self._candidates = {place: values for place, values in candidates.items() if values}
        self._rows_of = rows_of
        self._plain = {place: values[0] for place, values in self._candidates.items()}
        self._best = self._progress(self._plain)
        self._search()
        self.values = {place: self._fulfilling(place) for place in self._candidates}
        self.choices = self._walk()

    def _progress(self, values: Values) -> Progress:
        try:
            meaning = evaluate(self._intent, self._rows_of(values))
        except NotComputable:
            return _NOTHING

        passed = sum(entry.rows_out > 0 for entry in meaning.ledger)
        telling_values = sum(value not in (None, 0) for row in meaning.rows for value in row)
        return passed, len(meaning.rows), telling_values

    def _search(self) -> None:
        """Change a few values at a time, and keep a change with which rows get further."""
        chance = _chance()
        in_vain = 0
        for _ in range(_TRIES):
            if in_vain == _MOST_IN_VAIN:
                break

            in_vain += 1
            changed = self._random_change(self._plain, chance)
            reached = self._progress(changed)
            if reached > self._best:
                self._plain, self._best = changed, reached
                in_vain = 0

    def _walk(self) -> list[Values]:
        """Return values of all columns that pass together, each a few changes away from another."""
        chance = _chance()
        choices: list[Values] = [self._plain]
        for _ in range(_STEPS):
            changed = self._random_change(chance.choice(choices), chance)
            if self._is_as_good(changed):
                choices.append(changed)

        return choices

    def _random_change(self, values: Values, chance: random.Random) -> dict[Place, Any]:
        places = []
        for place, candidates in self._candidates.items():
            if len(candidates) > 1:
                places.append(place)

        count = chance.randint(1, _PLACES_AT_ONCE)
        changed = dict(values)
        for place in chance.sample(places, min(count, len(places))):
            changed[place] = chance.choice(self._candidates[place])

        return changed

    def _is_as_good(self, values: Values) -> bool:
        steps_and_rows = self._progress(values)[:2]
        return steps_and_rows >= self._best[:2]

    def _fulfilling(self, place: Place) -> list[Any]:
        """Return the plain value, and those that may stand in its place."""
        plain = self._plain[place]
        values = [plain]
        for value in self._candidates[place]:
            is_same = value is plain or (type(value) is type(plain) and value == plain)
            if is_same:
                continue
            if self._is_as_good({**self._plain, place: value}):
                values.append(value)

        return values


def _chance() -> random.Random:
    return random.Random(0)  # noqa: S311 - the same values each time, nothing secret
