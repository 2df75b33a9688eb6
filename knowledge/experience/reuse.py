"""An example's SQL for another question that says the same with other literals.

Every literal is bound again from the new question: a number or a period of the same kind, a text that is stored in the
same column. Whatever is doubtful binds nothing. The result still has to pass guard and EXPLAIN, as any draft.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import combinations

from common.inquiry import StoredValue
from common.values import Catalog, Column, Table
from databases.constants import Constant, with_constants
from databases.references import Comparison, References, references
from knowledge.experience.dates import expressions, split
from knowledge.experience.phrasing import Phrasing, Piece
from knowledge.experience.shapes import Shape, Slot, interval_parts
from knowledge.spelling import same

_LONGEST = 16  # pieces of one name or value
_MOST_WAYS = 50  # in which words may be shared out among names
_SHORT = 3  # letters; a Latin word this short has to be written as it is stored
_WILDCARDS = frozenset("%_\\")
_EQUALITIES = ("AEXPR_OP =", "AEXPR_IN =", "AEXPR_OP_ANY =")


@dataclass(frozen=True)
class Known:
    """What is known of the database while a question is asked.

    Attributes:
        found: stored values that the question names, beside those of the catalogue.
    """

    catalog: Catalog
    found: tuple[StoredValue, ...] = ()


def bound(shape: Shape, asked: Phrasing, known: Known) -> str | None:
    """The example's SQL with the literals of the question; None when the question says something else, when a literal
    fits nothing, or when there are two ways to read it."""
    ways = list(_ways(shape, asked.pieces))
    if len(ways) > _MOST_WAYS:
        return None
    written = {sql for way in ways if (sql := _written(shape, asked, way, known)) is not None}
    return written.pop() if len(written) == 1 else None


# ------------------------------------------------------------------------------------------------- the question's words

_Way = tuple[tuple[int, int], ...]
"""First piece of each slot in the new question, and the one after its last."""


def _ways(shape: Shape, pieces: Sequence[Piece]) -> Iterator[_Way]:
    """How the question can be laid over the example's, word by word; at most one more than `_MOST_WAYS`."""
    steps = _steps(shape)
    pending: list[tuple[int, int, _Way]] = [(0, 0, ())]
    given = 0
    while pending and given <= _MOST_WAYS:
        step, at, way = pending.pop()
        if step == len(steps):
            if at == len(pieces):
                given += 1
                yield way
            continue
        wanted = steps[step]
        if isinstance(wanted, Piece):
            if at < len(pieces) and (pieces[at].kind, pieces[at].text) == (wanted.kind, wanted.text):
                pending.append((step + 1, at + 1, way))
            continue
        longest = _LONGEST if wanted.kind == "text" else 1
        for last in range(at + 1, min(at + longest, len(pieces)) + 1):
            if wanted.kind in ("text", pieces[at].kind):
                pending.append((step + 1, last, (*way, (at, last))))


def _steps(shape: Shape) -> list[Piece | Slot]:
    """What the question has to hold one after the other."""
    steps: list[Piece | Slot] = []
    at = 0
    for slot in shape.slots:
        steps += [*shape.phrasing.pieces[at : slot.first], slot]
        at = slot.last
    return [*steps, *shape.phrasing.pieces[at:]]


# --------------------------------------------------------------------------------------------------------- the literals


def _written(shape: Shape, asked: Phrasing, way: _Way, known: Known) -> str | None:
    changes: dict[Constant, str] = {}
    figures: dict[Constant, str] = {}
    for slot, (first, last) in zip(shape.slots, way, strict=True):
        bind = _texts if slot.kind == "text" else _figures
        found = bind(shape, slot, asked, (first, last), known)
        if found is None:
            return None
        changes |= found
        figures |= {} if slot.kind == "text" else found
    return with_constants(shape.sql, changes) if _keep_their_order(figures) else None


def _keep_their_order(figures: Mapping[Constant, str]) -> bool:
    """Whether the ends of a range are still its ends: between 200 and 100 lies nothing, which nobody asks for."""
    for one, other in combinations(figures, 2):
        if one.may_bound_with(other):
            was, now = (_order(one.value), _order(other.value)), (_order(figures[one]), _order(figures[other]))
            if (was[0] < was[1] and now[0] > now[1]) or (was[0] > was[1] and now[0] < now[1]):
                return False
    return True


def _order(figure: str) -> tuple[Decimal, str]:
    """By what numbers, and the texts of dates, are ordered."""
    try:
        return Decimal(figure), ""
    except InvalidOperation:
        return Decimal(0), figure


def _figures(
    shape: Shape, slot: Slot, asked: Phrasing, place: tuple[int, int], known: Known
) -> Mapping[Constant, str] | None:
    """A number or period in all the ways in which the SQL expresses that of the example."""
    del shape, known  # numbers need no looking up
    piece = asked.pieces[place[0]]
    changes: dict[Constant, str] = {}
    for constant, form in slot.constants:
        if form == "interval":
            parts = interval_parts(constant.value)
            value = f"{piece.text} {parts[1]}" if parts else None
        elif form == "itself" and slot.kind in ("integer", "decimal"):
            value = piece.text
        else:
            value = expressions(piece).get(form)
            value = None if value is None else value + split(constant.value)[1]
        if value is None or (constant.role == "limit" and not Decimal(value)):
            return None
        changes[constant] = value
    return changes


def _texts(
    shape: Shape, slot: Slot, asked: Phrasing, place: tuple[int, int], known: Known
) -> Mapping[Constant, str] | None:
    """A name or value as it is stored in the column that the SQL compares with that of the example."""
    said, before = asked.between(*place), shape.phrasing.between(slot.first, slot.last)
    if said == before:
        return {}
    if not _are_named_alike(asked.pieces[slice(*place)], shape.phrasing.pieces[slot.first : slot.last]):
        return None
    read = references(shape.sql, known.catalog)
    compared = {one.start: one for one in read.comparisons}
    if _tells_who(shape.others, read):
        return None
    changes: dict[Constant, str] = {}
    for constant, _ in slot.constants:
        comparison = compared.get(constant.start)
        value = _stored(said, comparison, known) if comparison else None
        if value is None and comparison and _may_be_any(comparison, asked.pieces[place[0] : place[1]]):
            value = said
        if comparison is None or value is None or _is_elsewhere(value, comparison, read, known):
            return None
        changes[constant] = f"{comparison.before}{value}{comparison.after}"
    return changes


def _are_named_alike(pieces: Sequence[Piece], before: Sequence[Piece]) -> bool:
    """Whether a name that is a mere number or period stands for another one: "of 2024" says a year where the example
    says a shop, even if a shop is called so."""
    kinds = {piece.kind for piece in pieces}
    return not kinds.isdisjoint(("word", "quote")) or kinds == {piece.kind for piece in before}


def _stored(said: str, comparison: Comparison, known: Known) -> str | None:
    """The one value of the column that is said; None where there are several, or none is known."""
    values = {value for value in _values_of(comparison.table, comparison.column, known) if _is_said(said, value)}
    if len(values) != 1:
        return None
    value = values.pop()
    return None if comparison.is_pattern and _WILDCARDS & set(value) else value


def _may_be_any(comparison: Comparison, pieces: Sequence[Piece]) -> bool:
    """Whether the SQL looks for a text anywhere in the column, and the question says one in quotation marks."""
    is_quoted = len(pieces) == 1 and pieces[0].kind == "quote" and not _WILDCARDS & set(pieces[0].text)
    return bool(comparison.before and comparison.after) and is_quoted


def _is_said(said: str, value: str) -> bool:
    if said.isascii() and len(said) <= _SHORT:
        return said == value.strip()
    return same(said, value)


def _values_of(table: Table, column: Column, known: Known) -> Iterator[str]:
    yield from column.values
    yield from column.allowed
    yield from (one.value for one in known.found if (one.table, one.column) == (table.key, column.name))


def _is_elsewhere(value: str, comparison: Comparison, read: References, known: Known) -> bool:
    """Whether the value may be meant as one of another column that does not hold that of the example."""
    for table in _tables(read):
        for column in table.columns:
            if (table.key, column.name) == (comparison.table.key, comparison.column.name):
                continue
            values = set(_values_of(table, column, known))
            if value in values and comparison.text not in values:
                return True
    return False


def _tells_who(others: Iterable[Constant], read: References) -> bool:
    """Whether a constant that stays names a thing by its key: it would be another thing's with another name."""
    named = {one.column[-1] for one in others if one.column and one.operator in _EQUALITIES}
    return any(named & _keys(table) for table in _tables(read))


def _tables(read: References) -> Iterator[Table]:
    return (table for table in read.sources.values() if table is not None)


def _keys(table: Table) -> set[str]:
    keys = (table.primary_key, *table.unique_keys, *(key.columns for key in table.foreign_keys))
    return {name for key in keys if len(key) == 1 for name in key}
