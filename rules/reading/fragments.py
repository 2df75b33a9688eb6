"""Readings of a question: the fragments that patterns give, and what stands on both sides of an "or"."""

from dataclasses import dataclass, field, replace

from rules.query.query import Condition, Either, ref
from rules.reading.parts import Parts

_OR = Parts(flags=("or",))


@dataclass(frozen=True)
class Fragment:
    """A part of the question that a pattern gives for the words `start` up to `end`; `pattern` is its text."""

    start: int
    end: int
    cost: float
    parts: Parts
    pattern: str


@dataclass(frozen=True, order=True)
class Reading:
    """A way to understand the question; `lost` are places of words with a meaning that no pattern took."""

    cost: float
    fragments: tuple[Fragment, ...] = field(default=(), compare=False)
    lost: tuple[int, ...] = field(default=(), compare=False)

    @property
    def parts(self) -> Parts:
        """All parts together."""
        return sum(_alternatives(self.fragments), Parts())

    @property
    def taken(self) -> set[int]:
        """The places of the words that patterns took."""
        return {at for one in self.fragments for at in range(one.start, one.end)}


def _alternatives(fragments: tuple[Fragment, ...]) -> list[Parts]:
    """The parts of the fragments; conditions on both sides of an "or" become one that either meets."""
    found: list[Parts] = []
    joined = False
    for one in fragments:
        if one.parts == _OR and found:
            joined = True
            continue
        either = _either(found[-1], one.parts) if joined else None
        if either is not None:
            found[-1] = either
        else:
            found += [_OR, one.parts] if joined else [one.parts]
        joined = False
    return found + [_OR] * joined


def _either(first: Parts, second: Parts) -> Parts | None:
    """Both parts as one condition; None where one of them is more than a condition on rows."""
    sides = [_conditions(first), _conditions(second)]
    if not all(sides):
        return None
    kept = replace(first + second, conditions=(), thresholds=(), either=())
    known = first.either[0].conditions if first.either else ()
    conditions = (*known, *(one for side in sides for one in side if one not in known))
    return replace(kept, either=(Either(conditions),))


def _conditions(parts: Parts) -> tuple[Condition, ...]:
    """The one condition of the parts, or those of which one holds already."""
    if parts.either:
        return parts.either[0].conditions
    if len(parts.conditions) == 1:
        return parts.conditions
    compared = [one for one in parts.thresholds if one.link is not None and one.function is None]
    return tuple(Condition(ref(one.link), one.operator, one.operands) for one in compared if one.link)[:1]
