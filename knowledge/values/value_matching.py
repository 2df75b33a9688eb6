"""Tell which values found in a column the words of a question mean, and which are only alike."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from common.inquiry import StoredValue
from common.values import Column, Table
from knowledge.language.spelling import alike, edits, folded, same, unaccented
from knowledge.values.identity import Resembles, near_value, value_tests
from knowledge.values.personal_data import Privacy, is_private_value, privacy_of
from knowledge.values.value_patterns import Stretch

_MOST_OFFERED = 3

Place = tuple[tuple[str, str], str]
"""A column: its table's (schema, name), and its own name."""


@dataclass(frozen=True)
class SearchedColumn:
    """A column that is searched, with its table."""

    table: Table
    column: Column

    @property
    def place(self) -> Place:
        return self.table.key, self.column.name


@dataclass(frozen=True)
class Hit:
    """A value that a span of a stretch names, or that resembles it.

    Attributes:
        part_of: the longer span that may be a name; then the value counts only beside others (see
            `joined`).
    """

    stretch: Stretch
    span: tuple[int, int]
    value: StoredValue
    part_of: tuple[int, int] | None = None

    @property
    def is_meant(self) -> bool:
        """Tell whether the words stand for the value, as it is."""
        return self.value.is_meant and self.part_of is None

    def is_apart(self, other: "Hit") -> bool:
        """Tell whether they have no word in common."""
        start, end = self.span
        other_start, other_end = other.span
        return end <= other_start or other_end <= start


def hits_in(
    target: SearchedColumn, values: Sequence[str], stretches: Iterable[Stretch]
) -> Iterator[Hit]:
    """Yield the values of the column that the stretches name; none when they turn out personal."""
    privacy = privacy_of(target.table, target.column)
    if privacy is Privacy.PRIVATE:
        return

    tests = value_tests(target.table, target.column)
    is_open = privacy is Privacy.OPEN and len(tests) > 2  # else it holds persons or codes
    if not is_open:
        tests = tests[:1]

    keys = {}
    for value in values:
        if not is_private_value(value):
            keys[value] = unaccented(folded(value))

    for stretch in stretches:
        for span in stretch.spans:
            yield from _named(target, stretch, span, keys, tests, is_open=is_open)


def may_be_told(stored_value: StoredValue, table: Table, column: Column) -> bool:
    """Tell whether a model may see a value that was looked up.

    Of a column of names, only what is said itself.
    """
    if not stored_value.is_meant or is_private_value(stored_value.value):
        return False

    privacy = privacy_of(table, column)
    if privacy is Privacy.NAMES:
        return stored_value.is_exact

    return privacy is Privacy.OPEN


def _is_near(one: str, other: str) -> bool:
    """Tell whether comparing is worth its time."""
    if one.startswith(other):
        return True
    if other.startswith(one):
        return True

    return edits(one, other, 1) <= 1


def _named(
    target: SearchedColumn,
    stretch: Stretch,
    span: tuple[int, int],
    values: Mapping[str, str],
    tests: Iterable[Resembles],
    *,
    is_open: bool,
) -> Iterator[Hit]:
    """Yield the values that a span names; `values` have the form in which texts are compared."""
    words = stretch.said(*span)
    wide = stretch.widened(*span)
    key = stretch.keys[span]
    near = [value for value, form in values.items() if _is_near(key, form)]
    meant_value = _meant(words, near, tests)
    is_part = not is_open and wide != span  # a part of a person's name is another's
    if meant_value is not None:
        is_exact = same(words, meant_value)
        stored = StoredValue(
            words, target.table.key, target.column.name, meant_value, is_exact=is_exact
        )
        yield Hit(stretch, span, stored, part_of=wide if is_part else None)
        offers_others = is_part
    else:
        offers_others = wide == span and stretch.is_unknown(*span)

    if offers_others:
        yield from _hits_in(target, stretch, wide, values)


def _hits_in(
    target: SearchedColumn, stretch: Stretch, span: tuple[int, int], values: Mapping[str, str]
) -> Iterator[Hit]:
    words = stretch.said(*span)
    for value in alike(words, values)[:_MOST_OFFERED]:
        stored = StoredValue(
            words, target.table.key, target.column.name, value, is_exact=False, is_meant=False
        )
        yield Hit(stretch, span, stored)


def _meant(words: str, values: Sequence[str], tests: Iterable[Resembles]) -> str | None:
    """Return the value written so, else the only one that the words may stand for."""
    if words in values:
        return words

    return near_value(words, values, tests)


def joined(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield parts that make up a whole name in several columns of a table: first and last name."""
    parts_of: dict[tuple[int, tuple[int, int] | None, object], list[Hit]] = {}
    for hit in hits:
        name = (id(hit.stretch), hit.part_of, hit.value.table)
        parts_of.setdefault(name, []).append(hit)

    for (_, whole, _), parts in parts_of.items():
        if whole is None:
            continue

        for part in _filling(whole, parts):
            yield replace(part, part_of=None)


def _filling(whole: tuple[int, int], parts: Sequence[Hit]) -> list[Hit]:
    """Return parts of different columns that follow one another through the whole; else none."""
    chosen: dict[str, Hit] = {}
    at, end = whole
    while at < end:
        free = (hit for hit in parts if hit.span[0] == at and hit.value.column not in chosen)
        part = next(free, None)
        if part is None:
            return []

        chosen[part.value.column] = part
        at = part.span[1]

    if at == end:
        return list(chosen.values())

    return []


def longest(hits: Sequence[Hit], stretch: Stretch) -> Iterator[Hit]:
    """Yield the hits that count: meant before similar ones, long ones before those they touch."""
    chosen: list[Hit] = []
    own = [hit for hit in hits if hit.stretch is stretch]
    for hit in sorted(own, key=_rank):
        fits = all(_may_stand_beside(hit, other) for other in chosen)
        if fits:
            chosen.append(hit)
            yield hit


def _may_stand_beside(hit: Hit, other: Hit) -> bool:
    """Tell whether neither hides the other: they share no word, or are equally good readings."""
    if hit.is_apart(other):
        return True

    return hit.span == other.span and _rank(hit) == _rank(other)


def _rank(hit: Hit) -> tuple[bool, int, bool]:
    start, end = hit.span
    return (not hit.value.is_meant, start - end, not hit.value.is_exact)
