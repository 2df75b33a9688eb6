"""The subject of an analysis: measures of a result, their groups, and the time they are over."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.analysis.analysis_limits import MOST_MEASURES
from common.errors import InvalidRequest
from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn, as_period
from knowledge.results.value_labels import value_labels
from rules.schema.table_facts import is_averaged

_TIMESTAMPS = ("date", "timestamp", "timestamptz")
_NO_SUCH = Text(
    "{field} 无效：结果中可选的列是：{names}。",
    "{field} is not valid: of this result choose {names}.",
)
_NOTHING = Text("无", "none")


@dataclass(frozen=True)
class SubjectColumn:
    """A column and its number, from 1, by which statements call it: names may occur twice."""

    number: int
    column: ResultColumn
    type: str

    @property
    def name(self) -> str:
        """Return the column's name in the result."""
        return self.column.output.name

    @property
    def label(self) -> str:
        """Return the column's name for people."""
        return self.column.label

    def said(self, value: str, lang: Lang) -> str:
        """Return what readers call a value of the column."""
        label = value_labels(self.column.output, lang).get(value)
        return label or str(as_period(value, self.column.period))

    @property
    def is_timestamp(self) -> bool:
        """Tell whether PostgreSQL knows its values as dates or times; others are text or years."""
        return self.type in _TIMESTAMPS

    @property
    def adds_up(self) -> bool:
        """Tell whether its figures have a sum: averages, shares, rates and prices have none."""
        output = self.column.output
        if output.is_total:
            return True
        if output.function or output.is_share or output.is_computed:
            return False
        if self.column.unit == "%" or not output.column:
            return False

        return not is_averaged(output.column)


@dataclass(frozen=True)
class Subject:
    """The columns that are analysed.

    Attributes:
        groups: what rows are about, the plainest first.
    """

    measures: tuple[SubjectColumn, ...]
    groups: tuple[SubjectColumn, ...]
    times: tuple[SubjectColumn, ...]


def subject_of(
    columns: Sequence[ResultColumn], result: QueryResult, measure: str | None, by: str | None
) -> Subject:
    """Choose the columns of the result to analyse.

    Args:
        measure: name or label of the one measure that is asked about.
        by: name or label of the group or time that it is split by.

    Raises:
        InvalidRequest: the result has no such measure, group or time.
    """
    by_role: defaultdict[str, list[SubjectColumn]] = defaultdict(list)
    typed = zip(columns, result.column_types, strict=True)
    for number, (column, kind) in enumerate(typed, 1):
        by_role[column.role].append(SubjectColumn(number, column, kind))

    measures, groups, times = by_role["measure"], by_role["category"], by_role["time"]
    if measure is not None:
        measures = [_column_named("measure", measure, measures)]
    if by is not None:
        chosen = _column_named("by", by, [*groups, *times])
        groups, times = ([chosen], []) if chosen in groups else ([], [chosen])

    groups.sort(key=_is_key)
    return Subject(tuple(measures[:MOST_MEASURES]), tuple(groups), tuple(times))


def _column_named(field: str, name: str, columns: Sequence[SubjectColumn]) -> SubjectColumn:
    for column in columns:
        if column.name == name:
            return column

    for column in columns:
        if column.label == name:
            return column

    names = [column.name for column in columns]
    zh, en = "、".join(names) or _NOTHING.zh, ", ".join(names) or _NOTHING.en
    problem = Text(
        _NO_SUCH.zh.format(field=field, names=zh), _NO_SUCH.en.format(field=field, names=en)
    )
    raise InvalidRequest(problem, field=field)


def _is_key(column: SubjectColumn) -> bool:
    """Tell whether it identifies rows that a name beside it says better."""
    table, stored = column.column.output.table, column.column.output.column
    if table is None or stored is None:
        return False
    if stored.name in table.primary_key:
        return True

    return any(stored.name in key.columns for key in table.foreign_keys)


def described_columns(columns: Sequence[ResultColumn], result: QueryResult) -> list[dict[str, Any]]:
    """Return the columns as the HTTP contract has them."""
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
