"""Bind an example's SQL to another question that says the same with other literals.

Every literal is bound again from the new question: a number or a period of the same kind, a text
that is stored in the same column. Whatever is doubtful binds nothing. The result still has to pass
guard and EXPLAIN, as any draft.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import combinations

from common.inquiry import StoredValue
from common.values import Catalog, Column, Table
from knowledge.experience.period_literals import expressions, split
from knowledge.experience.phrasing import Phrasing, Piece, same_words
from knowledge.experience.shapes import ExampleShape, Form, LiteralSlot, interval_parts
from knowledge.language.spelling import same
from sqltree.constants import Constant, with_constants
from sqltree.references import ColumnComparison, ColumnReferences, references

_LONGEST = 16  # pieces of one name or value
_MOST_WAYS = 50  # in which words may be shared out among names
_SHORT = 3  # letters; a Latin word this short has to be written as it is stored
_WILDCARDS = frozenset("%_\\")
_EQUALITIES = ("AEXPR_OP =", "AEXPR_IN =", "AEXPR_OP_ANY =")


@dataclass(frozen=True)
class ReuseContext:
    """The catalogue and the stored values that are known while a question is asked.

    Attributes:
        found: stored values that the question names, beside those of the catalogue.
    """

    catalog: Catalog
    found: tuple[StoredValue, ...] = ()


def bound(shape: ExampleShape, asked: Phrasing, context: ReuseContext) -> str | None:
    """Return the example's SQL with the literals of the question.

    None when the question says something else, when a literal fits nothing, or when there are two
    ways to read it.
    """
    ways = list(_ways(shape, asked.pieces))
    if len(ways) > _MOST_WAYS:
        return None

    statements = {_written(shape, asked, way, context) for way in ways}
    statements.discard(None)
    if len(statements) == 1:
        return statements.pop()

    return None


# ------------------------------------------------------------------------------
# the question's words

_Way = tuple[tuple[int, int], ...]
"""First piece of each slot in the new question, and the one after its last."""


def _ways(shape: ExampleShape, pieces: Sequence[Piece]) -> Iterator[_Way]:
    """Yield the ways to lay the question over the example's; at most one more than `_MOST_WAYS`."""
    steps = _steps(shape)
    pending: list[tuple[int, int, _Way]] = [(0, 0, ())]
    yielded = 0
    while pending and yielded <= _MOST_WAYS:
        step, at, way = pending.pop()
        if step == len(steps):
            if at == len(pieces):
                yielded += 1
                yield way

            continue

        expected = steps[step]
        if isinstance(expected, LiteralSlot):
            for last in _ends(expected, pieces, at):
                pending.append((step + 1, last, (*way, (at, last))))
        elif same_words(tuple(pieces[at : at + 1]), (expected,)):
            pending.append((step + 1, at + 1, way))


def _ends(slot: LiteralSlot, pieces: Sequence[Piece], first: int) -> Iterable[int]:
    """Return the places where a literal for the slot may end that begins with the piece `first`."""
    if first == len(pieces):
        return ()
    if slot.kind == "text":
        return range(first + 1, min(first + _LONGEST, len(pieces)) + 1)
    if slot.kind == pieces[first].kind:
        return (first + 1,)

    return ()


def _steps(shape: ExampleShape) -> list[Piece | LiteralSlot]:
    """Return the pieces and slots that the question has to match one after the other."""
    steps: list[Piece | LiteralSlot] = []
    at = 0
    for slot in shape.slots:
        steps += [*shape.phrasing.pieces[at : slot.first], slot]
        at = slot.last

    return [*steps, *shape.phrasing.pieces[at:]]


# ------------------------------------------------------------------------------
# the literals


def _written(shape: ExampleShape, asked: Phrasing, way: _Way, context: ReuseContext) -> str | None:
    """Return the example's SQL with the literals of one way; None if one of them fits nothing."""
    changes: dict[Constant, str] = {}
    figures: dict[Constant, str] = {}
    for slot, (first, last) in zip(shape.slots, way, strict=True):
        if slot.kind == "text":
            new_literals = _texts(shape, slot, asked, (first, last), context)
        else:
            new_literals = _figures(slot, asked.pieces[first])
            figures |= new_literals or {}

        if new_literals is None:
            return None

        changes |= new_literals

    if _keep_their_order(figures):
        return with_constants(shape.sql, changes)

    return None


def _keep_their_order(figures: Mapping[Constant, str]) -> bool:
    """Tell whether the ends of a range are still its ends.

    Between 200 and 100 lies nothing, which nobody asks for.
    """
    for first, second in combinations(figures, 2):
        if not first.may_bound_with(second):
            continue

        before = _compared(first.value, second.value)
        after = _compared(figures[first], figures[second])
        if before * after < 0:
            return False

    return True


def _compared(one: str, other: str) -> int:
    """Return -1, 0 or 1: whether a figure is less than another, equal or greater."""
    first = _order(one)
    second = _order(other)
    return (first > second) - (first < second)


def _order(figure: str) -> tuple[Decimal, str]:
    """Return a key by which numbers, and the texts of dates, are ordered."""
    try:
        return Decimal(figure), ""
    except InvalidOperation:
        return Decimal(0), figure


def _figures(slot: LiteralSlot, piece: Piece) -> Mapping[Constant, str] | None:
    """Return a number or period in all the ways in which the SQL expresses that of the example."""
    changes: dict[Constant, str] = {}
    for constant, form in slot.constants:
        value = _expressed(piece, slot.kind, constant, form)
        if value is None:
            return None

        is_no_limit = constant.role == "limit" and not Decimal(value)
        if is_no_limit:
            return None

        changes[constant] = value

    return changes


def _expressed(piece: Piece, kind: str, constant: Constant, form: Form) -> str | None:
    """Return the constant for another number or period; None if that can't be expressed so."""
    if form == "interval":
        parts = interval_parts(constant.value)
        if parts is not None:
            return f"{piece.text} {parts[1]}"

        return None

    if form == "itself" and kind in ("integer", "decimal"):
        return piece.text

    day = expressions(piece).get(form)
    if day is None:
        return None

    _, time_of_day = split(constant.value)
    return day + time_of_day


def _texts(
    shape: ExampleShape,
    slot: LiteralSlot,
    asked: Phrasing,
    place: tuple[int, int],
    context: ReuseContext,
) -> Mapping[Constant, str] | None:
    """Return a name or value as it is stored in the column that the SQL compares with the
    example's.
    """
    spoken = asked.between(*place)
    pieces = asked.pieces[slice(*place)]
    if spoken == shape.phrasing.between(slot.first, slot.last):
        return {}
    if not _are_named_alike(pieces, shape.phrasing.pieces[slot.first : slot.last]):
        return None

    read = references(shape.sql, context.catalog)
    if _tells_who(shape.others, read):
        return None

    compared = {
        column_comparison.start: column_comparison for column_comparison in read.comparisons
    }
    changes: dict[Constant, str] = {}
    for constant, _ in slot.constants:
        comparison = compared.get(constant.start)
        if comparison is None:
            return None

        value = _stored(spoken, comparison, context)
        if value is None:
            value = _any_text(spoken, pieces, comparison)
        if value is None or _is_elsewhere(value, comparison, read, context):
            return None

        changes[constant] = f"{comparison.before}{value}{comparison.after}"

    return changes


def _are_named_alike(pieces: Sequence[Piece], before: Sequence[Piece]) -> bool:
    """Tell whether a name may stand for another one, though it may be a mere number or period.

    "of 2024" says a year where the example says a shop, even if a shop is called so.
    """
    kinds = {piece.kind for piece in pieces}
    if kinds & {"word", "quote"}:
        return True

    kinds_before = {piece.kind for piece in before}
    return kinds == kinds_before


def _stored(spoken: str, comparison: ColumnComparison, context: ReuseContext) -> str | None:
    """Return the one value of the column that is said; None where there are several, or none is
    known.
    """
    stored = set(_values_of(comparison.table, comparison.column, context))
    values = [value for value in stored if _is_said(spoken, value)]
    if len(values) != 1:
        return None

    value = values[0]
    has_wildcards = bool(_WILDCARDS & set(value))
    if has_wildcards and comparison.is_pattern:
        return None

    return value


def _any_text(spoken: str, pieces: Sequence[Piece], comparison: ColumnComparison) -> str | None:
    """Return the text, if it is quoted and looked for anywhere in a column; then no row has to have
    it.
    """
    is_anywhere = bool(comparison.before) and bool(comparison.after)
    if not is_anywhere:
        return None
    if len(pieces) != 1 or pieces[0].kind != "quote":
        return None
    if _WILDCARDS & set(pieces[0].text):
        return None

    return spoken


def _is_said(spoken: str, value: str) -> bool:
    if spoken.isascii() and len(spoken) <= _SHORT:
        return spoken == value.strip()

    return same(spoken, value)


def _values_of(table: Table, column: Column, context: ReuseContext) -> Iterator[str]:
    yield from column.values
    yield from column.allowed
    for stored_value in context.found:
        if (stored_value.table, stored_value.column) == (table.key, column.name):
            yield stored_value.value


def _is_elsewhere(
    value: str, comparison: ColumnComparison, read: ColumnReferences, context: ReuseContext
) -> bool:
    """Tell whether the value may be one of another column, which lacks that of the example."""
    for table in _tables(read):
        for column in table.columns:
            if (table.key, column.name) == (comparison.table.key, comparison.column.name):
                continue

            values = set(_values_of(table, column, context))
            if value in values and comparison.text not in values:
                return True

    return False


def _tells_who(others: Iterable[Constant], read: ColumnReferences) -> bool:
    """Tell whether a constant that stays is the key of a thing, which another name would change."""
    keys: set[str] = set()
    for table in _tables(read):
        keys |= _keys(table)

    for other in others:
        if not other.column or other.operator not in _EQUALITIES:
            continue
        if other.column[-1] in keys:
            return True

    return False


def _tables(read: ColumnReferences) -> list[Table]:
    return [table for table in read.sources.values() if table is not None]


def _keys(table: Table) -> set[str]:
    """Return the columns that are a key, or refer to one, by themselves."""
    foreign_keys = [key.columns for key in table.foreign_keys]
    names: set[str] = set()
    for key in (table.primary_key, *table.unique_keys, *foreign_keys):
        if len(key) == 1:
            names.update(key)

    return names
