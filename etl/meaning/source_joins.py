"""Joins: the rows of one more source beside each combination."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from etl.meaning.bound import JoinSourceStep
from etl.meaning.combinations import Combination, SourceRow, values_of
from etl.meaning.evaluation import has_null, same_value

_Key = tuple[Any, ...]
# Types whose values have equal hashes where they are equal, whatever their columns' types are.
_HASHED_ALIKE = (int, Decimal, str)


@dataclass
class JoinOutcome:
    """The combinations behind a join, and what it did to those before it.

    Attributes:
        unmatched: how many met no row, though their key has no NULL.
        null_keys: how many have a NULL in their key.
        repeated: how many there are more, because one met several rows.
        filtered: how many were left out.
    """

    combinations: list[Combination] = field(default_factory=list)
    unmatched: int = 0
    null_keys: int = 0
    repeated: int = 0
    filtered: int = 0

    def figures(self) -> dict[str, int]:
        """Return the counts by their names in the ledger."""
        return {
            "filtered": self.filtered,
            "unmatched": self.unmatched,
            "repeated": self.repeated,
            "null_keys": self.null_keys,
        }


def join_source(
    step: JoinSourceStep,
    combinations: Sequence[Combination],
    right_rows: Sequence[SourceRow],
    time_zone: str,
) -> JoinOutcome:
    """Join the rows of `step.right` to combinations that don't hold any of them yet."""
    right = _RightRows(step, right_rows, time_zone)
    outcome = JoinOutcome()
    for combination in combinations:
        key = tuple(combination.value(left) for left, _ in step.on)
        matches = right.matching(key)
        if has_null(key):
            outcome.null_keys += 1
        elif not matches:
            outcome.unmatched += 1

        extended = _extended(step, combination, matches)
        if extended:
            outcome.repeated += len(extended) - 1
        else:
            outcome.filtered += 1

        outcome.combinations.extend(extended)

    return outcome


class _RightRows:
    """The rows that a join looks at, found by their keys."""

    def __init__(self, step: JoinSourceStep, rows: Sequence[SourceRow], time_zone: str) -> None:
        self._time_zone = time_zone
        self._keyed: list[tuple[_Key, SourceRow]] = []
        for row in rows:
            values = values_of(step.right, row)
            key = tuple(values(right) for _, right in step.on)
            if not has_null(key):
                self._keyed.append((key, row))

        self._by_key = _rows_by_key(self._keyed)

    def matching(self, key: _Key) -> Sequence[SourceRow]:
        """Return the rows with an equal key; a key with a NULL equals none."""
        if has_null(key):
            return ()
        if self._by_key is not None and _is_hashed_alike(key):
            return self._by_key.get(key, ())

        matches = []
        for other, row in self._keyed:
            if self._is_same(key, other):
                matches.append(row)

        return matches

    def _is_same(self, key: _Key, other: _Key) -> bool:
        pairs = zip(key, other, strict=True)
        return all(same_value(one, another, self._time_zone) for one, another in pairs)


def _rows_by_key(
    keyed: Sequence[tuple[_Key, SourceRow]],
) -> Mapping[_Key, Sequence[SourceRow]] | None:
    """Return the rows by their keys; None where equal keys may have other hashes."""
    rows: dict[_Key, list[SourceRow]] = defaultdict(list)
    for key, row in keyed:
        if not _is_hashed_alike(key):
            return None

        rows[key].append(row)

    return rows


def _is_hashed_alike(key: _Key) -> bool:
    return all(isinstance(value, _HASHED_ALIKE) for value in key)


def _extended(
    step: JoinSourceStep, combination: Combination, matches: Sequence[SourceRow]
) -> list[Combination]:
    """Return the combinations that a join makes of one."""
    matched = [combination] if matches else []
    unmatched = [] if matches else [combination]
    with_matches = [combination.with_row(step.right, row) for row in matches]
    by_kind = {
        "left": with_matches + unmatched,
        "inner": with_matches,
        "semi": matched,
        "anti": unmatched,
    }
    return by_kind[step.how]
