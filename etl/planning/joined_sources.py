"""How the rows of an intent's sources stand in the combinations that its joins make."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import filterfalse

from common.values import Table
from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    DedupStep,
    JoinSourceStep,
)

ROW = "etl_row"
"""The column by which rows of a source without a key are told apart."""


class JoinedSources:
    """Consequences of the declared keys for the combinations of an intent."""

    def __init__(self, intent: BoundIntent, only: Collection[str] | None = None) -> None:
        """Look at all joins, or at those of `only` some sources."""
        self._intent = intent
        self._joins: list[JoinSourceStep] = []
        for step in combining_joins(intent):
            if only is None or step.right in only:
                self._joins.append(step)

        self._keys = {source.name: self._unique_keys(source.name) for source in intent.sources}

    @property
    def names(self) -> list[str]:
        """Return the sources that combinations hold rows of, the base first."""
        return [self._intent.base.name, *(step.right for step in self._joins)]

    def is_once(self, source: str) -> bool:
        """Tell whether each row of the source is in at most one combination."""
        return self._determined([source]) == set(self.names)

    def is_always(self, source: str) -> bool:
        """Tell whether each combination has a row of the source."""
        if source == self._intent.base.name:
            return True

        inner = []
        for step in self._joins:
            if step.how == "inner":
                inner.append(step.right)

        return source in inner

    def identity(self, source: str) -> Sequence[BoundColumn]:
        """Return columns that tell the source's rows apart; they are NULL only without a row."""
        key = declared_identity(self._intent.source(source).table)
        return [BoundColumn(source, name) for name in key or (ROW,)]

    def is_repeating(self, source: str) -> bool:
        """Tell whether the join of a source may repeat the rows that are there before."""
        for step in self._joins:
            if step.right == source:
                return not self._is_unique(source, _right_columns(step))

        return False

    @property
    def most_repeated(self) -> int:
        """Return how many joins repeat rows."""
        return sum(self.is_repeating(name) for name in self.names)

    @property
    def repeating(self) -> list[str]:
        """Return sources whose rows together tell the combinations apart, the base first."""
        telling = [self._intent.base.name]
        while True:
            determined = self._determined(telling)
            missing = next(filterfalse(determined.__contains__, self.names), None)
            if missing is None:
                return telling

            telling.append(missing)

    def _determined(self, sources: Iterable[str]) -> set[str]:
        """Return the sources of which a row of these leaves at most one row to choose."""
        determined = set(sources)
        while True:
            reached: set[str] = set()
            for step in self._joins:
                reached.update(self._reached(step, determined))

            if reached <= determined:
                return determined

            determined |= reached

    def _reached(self, step: JoinSourceStep, determined: set[str]) -> Iterator[str]:
        """Yield the sides of a join that have one row at most for a row of the other side."""
        is_reached = step.left_sources <= determined
        if is_reached and self._is_unique(step.right, _right_columns(step)):
            yield step.right

        left = step.only_left
        if left is None or step.right not in determined:
            return

        left_columns = {column.name for column, _ in step.on}
        if self._is_unique(left, left_columns):
            yield left

    def _is_unique(self, source: str, columns: set[str]) -> bool:
        return any(columns.issuperset(key) for key in self._keys[source])

    def _unique_keys(self, source: str) -> list[tuple[str, ...]]:
        """Return the keys of which a value that is not NULL has one row, dedups considered."""
        table = self._intent.source(source).table
        keys = table.declared_keys
        for step in self._intent.steps_of(DedupStep):
            if step.stage == "table" and step.source == source:
                keys.append(step.keys)

        return keys


def _right_columns(step: JoinSourceStep) -> set[str]:
    return {right.name for _, right in step.on}


def combining_joins(intent: BoundIntent) -> Iterator[JoinSourceStep]:
    """Yield the joins that add columns of their right source to the rows."""
    for step in intent.steps_of(JoinSourceStep):
        if step.how in ("left", "inner"):
            yield step


def declared_identity(table: Table) -> tuple[str, ...]:
    """Return the columns of a key without NULL; empty when the table declares none."""
    if table.primary_key:
        return table.primary_key

    required = {column.name for column in table.columns if not column.nullable}
    for key in filter(None, table.unique_keys):
        if required.issuperset(key):
            return key

    return ()
