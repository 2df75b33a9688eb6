"""What of a result is analysed: its measures, the groups they are of, and the time they are over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.analysis.limits import MOST_MEASURES
from common.errors import InvalidRequest
from common.text import Text
from common.values import QueryResult
from knowledge.result_columns import ResultColumn
from rules.schema.facts import is_averaged

_TIMESTAMPS = ("date", "timestamp", "timestamptz")
_NO_SUCH = Text("{field} 无效：结果中可选的列是：{names}。", "{field} is not valid: of this result choose {names}.")
_NOTHING = Text("无", "none")


@dataclass(frozen=True)
class Place:
    """A column and where it stands, from 1; statements call columns by their places, because names may occur twice."""

    number: int
    column: ResultColumn
    type: str

    @property
    def name(self) -> str:
        """As the result calls it."""
        return self.column.output.name

    @property
    def label(self) -> str:
        """What people call it."""
        return self.column.label

    @property
    def is_timestamp(self) -> bool:
        """Whether PostgreSQL knows its values as dates or times; others are text or years."""
        return self.type in _TIMESTAMPS

    @property
    def adds_up(self) -> bool:
        """Whether a sum of its figures over rows means something: not of averages, shares, rates and prices."""
        output = self.column.output
        if output.is_total:
            return True
        if output.function or output.is_share or output.is_computed or self.column.unit == "%" or not output.column:
            return False
        return not is_averaged(output.column)


@dataclass(frozen=True)
class Subject:
    """What is analysed.

    Attributes:
        groups: what rows are about, the plainest first.
    """

    measures: tuple[Place, ...]
    groups: tuple[Place, ...]
    times: tuple[Place, ...]


def subject_of(columns: Sequence[ResultColumn], result: QueryResult, measure: str | None, by: str | None) -> Subject:
    """What of the result is analysed.

    Args:
        measure: name or label of the one measure that is asked about.
        by: name or label of the group or time that it is split by.

    Raises:
        InvalidRequest: the result has no such measure, group or time.
    """
    places = [
        Place(number, column, kind)
        for number, (column, kind) in enumerate(zip(columns, result.column_types, strict=True), 1)
    ]
    measures = [one for one in places if one.column.role == "measure"]
    groups = [one for one in places if one.column.role == "category"]
    times = [one for one in places if one.column.role == "time"]
    if measure is not None:
        measures = [_chosen("measure", measure, measures)]
    if by is not None:
        chosen = _chosen("by", by, [*groups, *times])
        groups, times = ([chosen], []) if chosen in groups else ([], [chosen])
    groups.sort(key=_is_key)
    return Subject(tuple(measures[:MOST_MEASURES]), tuple(groups), tuple(times))


def _chosen(field: str, said: str, places: Sequence[Place]) -> Place:
    named = [one for one in places if one.name == said] or [one for one in places if one.label == said]
    if named:
        return named[0]
    zh, en = ("、".join(one.name for one in places), ", ".join(one.name for one in places))
    in_zh = _NO_SUCH.zh.format(field=field, names=zh or _NOTHING.zh)
    raise InvalidRequest(Text(in_zh, _NO_SUCH.en.format(field=field, names=en or _NOTHING.en)), field=field)


def _is_key(place: Place) -> bool:
    """Whether it identifies rows that a name beside it says better."""
    table, stored = place.column.output.table, place.column.output.column
    if table is None or stored is None:
        return False
    return stored.name in table.primary_key or any(stored.name in key.columns for key in table.foreign_keys)


def described_columns(columns: Sequence[ResultColumn], result: QueryResult) -> list[dict[str, Any]]:
    """The columns as the HTTP contract has them."""
    return [
        {
            "name": column.output.name,
            "type": kind,
            "label": column.label,
            "unit": column.unit,
            "role": column.role,
            "period": column.period,
        }
        for column, kind in zip(columns, result.column_types, strict=True)
    ]
