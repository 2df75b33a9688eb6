"""Groups of combinations, and the figures of each."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import product
from typing import Any

from etl.meaning.bound import AggregateStep, BoundKey, BoundMeasure
from etl.meaning.calendar_periods import period_of, periods_between
from etl.meaning.combinations import Combination, first_of_each_row, measured_value
from etl.meaning.evaluation import known_values
from etl.meaning.figures import figure, row_identity
from etl.meaning.windows import Row


@dataclass
class _Group:
    """The combinations of one key, whose values stand under their names in the result."""

    key: Row
    combinations: list[Combination] = field(default_factory=list)


def grouped_rows(
    step: AggregateStep, combinations: Iterable[Combination], time_zone: str
) -> list[Row]:
    """Return the row of each group, then those of the periods that a spine fills."""
    rows = []
    for group in _groups(step, combinations, time_zone):
        row = dict(group.key)
        for measure in step.measures:
            row[measure.name] = _measured(measure, group.combinations, time_zone)

        rows.append(row)

    if not step.has_spine:
        return rows

    return [*rows, *_missing_periods(step, rows)]


def _groups(
    step: AggregateStep, combinations: Iterable[Combination], time_zone: str
) -> Iterable[_Group]:
    """Return the groups; without keys there is one, also of no combinations."""
    names = [key.name for key in step.keys]
    groups: dict[Hashable, _Group] = {}
    if not step.keys:
        groups[row_identity({}, names)] = _Group({})

    for combination in combinations:
        key = {one.name: _key_value(one, combination, time_zone) for one in step.keys}
        group = groups.setdefault(row_identity(key, names), _Group(key))
        group.combinations.append(combination)

    return groups.values()


def _key_value(key: BoundKey, combination: Combination, time_zone: str) -> Any:
    value = combination.value(key.column)
    if key.unit is None or value is None:
        return value

    return period_of(value, key.unit, time_zone)


def _measured(measure: BoundMeasure, group: Sequence[Combination], time_zone: str) -> Any:
    """Aggregate over the rows of the measure's source, each once."""
    counted = first_of_each_row(measure.source, measure.tests, group, time_zone)
    if measure.value is None:
        return len(counted)

    values = [measured_value(measure.value, one, time_zone) for one in counted]
    return _figure_of(measure, values)


def _figure_of(measure: BoundMeasure, values: Sequence[Any]) -> Any:
    value = figure(measure.function, values)
    if value is None and measure.is_zero_when_empty:
        return 0

    return value


def _missing_periods(step: AggregateStep, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each period without one, for each combination of the other keys."""
    spine = _spine_of(step)
    names = [key.name for key in step.keys]
    present = {row_identity(row, names) for row in rows}
    of_nothing = {measure.name: _figure_of(measure, ()) for measure in step.measures}
    for period, others in product(_periods(spine, rows), _other_keys(step, spine, rows)):
        key = {**others, spine.name: period}
        if row_identity(key, names) not in present:
            yield key | of_nothing


def _spine_of(step: AggregateStep) -> BoundKey:
    """Return the one key that has periods."""
    for key in step.keys:
        if key.unit is not None:
            return key

    raise ValueError("a spine needs a key with a unit")


def _other_keys(step: AggregateStep, spine: BoundKey, rows: Sequence[Row]) -> list[Row]:
    """Return the combinations of the keys beside the spine's that occur, each once."""
    names = [key.name for key in step.keys if key is not spine]
    row_by_key: dict[Hashable, Row] = {}
    for row in rows:
        values = {name: row[name] for name in names}
        row_by_key.setdefault(row_identity(values, names), values)

    return list(row_by_key.values())


def _periods(spine: BoundKey, rows: Sequence[Row]) -> list[date]:
    """Return every period from the first to the last of the rows; none where none has one."""
    days = known_values(row[spine.name] for row in rows)
    if spine.unit is None or not days:
        return []

    return list(periods_between(min(days), max(days), spine.unit))
