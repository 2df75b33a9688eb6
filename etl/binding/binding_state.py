"""The state of a binding: the steps so far, and what they tell about columns and sources."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from common.text import Text
from common.values import Catalog
from etl.binding.condition_binding import ConditionBinding
from etl.binding.join_binding import JoinTree
from etl.binding.request_findings import RequestFindings
from etl.binding.scope import IntentScope
from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundCondition,
    BoundOutput,
    RowTest,
    Stage,
    Step,
)
from etl.meaning.read_columns import columns_of_tests


@dataclass
class BindingState:
    """The steps so far, and what later ones must know of them.

    Attributes:
        fixed: columns that conditions hold to one value.
        conditioned: columns that conditions read.
        rates: names of sources of rates, which are not joined.
        apart: names of keys of groups that were added so that each currency has its own figures.
    """

    catalog: Catalog
    findings: RequestFindings
    scope: IntentScope
    tree: JoinTree
    today: date
    time_zone: str
    steps: list[Step] = field(default_factory=list)
    outputs: tuple[BoundOutput, ...] = ()
    fixed: set[BoundColumn] = field(default_factory=set)
    conditioned: set[BoundColumn] = field(default_factory=set)
    rates: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)

    def conditions(self, operation: int) -> ConditionBinding:
        """Return the binding of an operation's conditions, as things stand now."""
        return ConditionBinding(self.scope, self.findings, self.today, self.time_zone, operation)

    def note_conditions(self, tests: Sequence[RowTest]) -> None:
        """Remember which columns conditions read."""
        self.conditioned.update(columns_of_tests(tests))
        for test in tests:
            if isinstance(test, BoundCondition) and _is_fixing(test):
                self.fixed.add(test.column)

    def stage_of(self, columns: Iterable[BoundColumn], order: int) -> tuple[Stage, str]:
        """Return where a step over these columns works, and the source if it works on one.

        Raises:
            NotBound: the columns are not there at this point.
        """
        sources: set[str] = set()
        is_of_joined_rows = False
        for column in columns:
            sources |= self.scope.sources_of(column)
            if not column.source and self.scope.made[column.name].stage == "rows":
                is_of_joined_rows = True

        if len(sources) == 1 and not is_of_joined_rows:
            (source,) = sources
            if self.is_before_join(source):
                return "table", source

        self._check_joined(sources, order)
        return "rows", ""

    def is_before_join(self, source: str) -> bool:
        """Tell whether a step that comes now works on one source alone."""
        is_base = source == self.tree.base
        if not is_base:
            return source not in self.tree.joined

        return not any(is_of_rows(step) for step in self.steps)

    def _check_joined(self, sources: Iterable[str], order: int) -> None:
        for name in sorted(sources):
            if name in self.tree.looked_up:
                raise self.findings.refuse(
                    "unsupported",
                    Text(
                        f"操作 {order}：{name} 只用于 semi 或 anti 连接，其列不能使用。",
                        f"Operation {order}: {name} is only looked up (semi, anti), so its columns "
                        f"can't be used.",
                    ),
                )
            if name != self.tree.base and name not in self.tree.joined and not self.tree.is_open:
                raise self.findings.refuse(
                    "unsupported",
                    Text(
                        f"操作 {order} 使用 {name} 的列，但 {name} 此时尚未连接。",
                        f"Operation {order} uses columns of {name}, which is not joined before it.",
                    ),
                )


def is_of_rows(step: Step) -> bool:
    """Tell whether a step works on joined rows or makes them."""
    if isinstance(step, AggregateStep):
        return False

    return step.stage == "rows"


def _is_fixing(condition: BoundCondition) -> bool:
    """Tell whether a condition leaves one value of its column."""
    if condition.operator == "in":
        if not isinstance(condition.value, tuple):
            return False

        return len(condition.value) == 1

    return condition.operator == "="
