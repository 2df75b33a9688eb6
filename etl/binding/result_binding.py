"""The result of joined rows without an aggregate: its columns, and the source of its rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from common.text import Text
from etl.binding.intent_checks import MOST_NAME_BYTES
from etl.binding.join_binding import JoinTree
from etl.binding.request_findings import RequestFindings, choice
from etl.binding.result_names import name_with_table
from etl.binding.scope import IntentScope, ResultName, tree_column
from etl.meaning.bound import (
    BoundColumn,
    BoundOutput,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    RowTest,
    Step,
    steps_among,
)
from etl.meaning.read_columns import columns_of_expression, columns_of_tests


class ResultBinding:
    """Makes the result of joined rows: asks for its grain, and names its columns."""

    def __init__(self, scope: IntentScope, findings: RequestFindings, tree: JoinTree) -> None:
        self._scope = scope
        self._findings = findings
        self._tree = tree

    # grain

    def with_grain(self, steps: Sequence[Step], order: int) -> list[Step]:
        """Return the steps so that no left join repeats rows that were not meant to be.

        Raises:
            NotBound: the grain was not chosen yet, or can't be had.
        """
        rights = _repeating(steps)
        if not rights or self._tree.is_open:
            return list(steps)

        base = self._tree.base
        prompt = Text(
            f"{base} 的一行对应 {'、'.join(rights)} 的多行，结果的一行是什么？",
            f"A row of {base} meets several rows of {', '.join(rights)}. "
            f"What is a row of the result?",
        )
        choices = []
        for name in (base, *rights):
            choices.append(choice(name, self._grain_label(name)))

        chosen = self._findings.choose("grain", base, prompt, choices, order)
        needed = _chain(chosen, steps)
        return self._without(steps, {name for name in rights if name not in needed})

    def _grain_label(self, name: str) -> str:
        return self._findings.shown(Text(f"{name} 的一行", f"one row of {name}"))

    def _without(self, steps: Sequence[Step], dropped: set[str]) -> list[Step]:
        """Return the steps without sources whose rows would repeat others.

        A source on which conditions stand is looked up: it selects.
        """
        gone = _with_those_behind(steps, dropped)
        selecting: dict[str, tuple[RowTest, ...]] = {}
        kept: list[Step] = []
        for step in steps:
            sources = _sources_read(step) & gone
            if not sources:
                kept.append(step)
            elif isinstance(step, FilterStep) and len(sources) == 1 and sources <= dropped:
                (name,) = sources
                if step.stage == "rows" and _sources_read(step) != {name}:
                    raise self._refusal(_sources_read(step))

                selecting[name] = (*selecting.get(name, ()), *step.tests)
            else:
                raise self._refusal(sources)

        steps_left: list[Step] = []
        for step in kept:
            steps_left.extend(_replaced(step, gone, selecting))

        return steps_left

    def _refusal(self, sources: set[str]) -> Exception:
        listed = ", ".join(sorted(sources))
        return self._findings.refuse(
            "unsupported",
            Text(
                f"结果的一行是 {self._tree.base} 的一行时，不能使用 {listed} 的列。",
                f"Where a row of the result is one of {self._tree.base}, columns of {listed} can't "
                f"be used.",
            ),
        )

    # columns

    def outputs(self, steps: Sequence[Step]) -> tuple[BoundOutput, ...]:
        """Return the columns of the joined rows by the names that they have in the result.

        A name that two sources have is that of the base; the others' begin with their source.
        """
        columns = self._joined_columns(steps)
        shared = Counter(column.name for column in columns)
        taken = set(self._scope.made)
        outputs: list[BoundOutput] = []
        for column in columns:
            wanted = column.name
            if column.source != self._tree.base and shared[wanted] > 1:
                wanted = name_with_table(column.source, column.name)

            name = _free_name(wanted, taken, f"{column.source}_{column.name}")
            taken.add(name)
            outputs.append(BoundOutput(name, column))

        for made in self._scope.made:
            outputs.append(BoundOutput(made, BoundColumn("", made)))

        return tuple(outputs)

    def _joined_columns(self, steps: Sequence[Step]) -> list[BoundColumn]:
        """Return the columns of the base and of what is joined to it."""
        columns = self._columns_of(self._tree.base)
        for step in steps_among(steps, JoinSourceStep):
            if step.how in ("left", "inner"):
                columns.extend(self._columns_of(step.right))

        return columns

    def _columns_of(self, source: str) -> list[BoundColumn]:
        table = self._scope.sources[source].table
        return [BoundColumn(source, column.name) for column in table.columns]

    def result_names(self, outputs: Sequence[BoundOutput]) -> dict[str, ResultName]:
        """Return the names of the result with their types."""
        names: dict[str, ResultName] = {}
        for output in outputs:
            type_ = self._scope.type_of(output.column)
            money = self._scope.money_in(tree_column(output.column))
            names[output.name] = ResultName(type_, output.column, money)

        return names


def repeated_keys(steps: Sequence[Step]) -> frozenset[BoundColumn]:
    """Return the columns that joins make equal to one of an earlier source."""
    keys: set[BoundColumn] = set()
    for step in steps_among(steps, JoinSourceStep):
        keys.update(right for _, right in step.on)

    return frozenset(keys)


def _repeating(steps: Sequence[Step]) -> list[str]:
    """Return the sources of which a left join adds several rows to one."""
    rights = []
    for step in steps_among(steps, JoinSourceStep):
        if step.is_multiple and step.how == "left":
            rights.append(step.right)

    return rights


def _chain(chosen: str, steps: Sequence[Step]) -> set[str]:
    """Return the sources through which one is joined, itself as well."""
    chain = {chosen}
    for step in reversed(steps_among(steps, JoinSourceStep)):
        if step.right in chain:
            chain |= step.left_sources

    return chain


def _with_those_behind(steps: Sequence[Step], dropped: set[str]) -> set[str]:
    """Return the sources and all that are joined to them."""
    gone = set(dropped)
    for step in steps_among(steps, JoinSourceStep):
        if step.left_sources & gone:
            gone.add(step.right)

    return gone


def _sources_read(step: Step) -> set[str]:
    """Return the sources whose columns a step over joined rows reads."""
    columns: list[BoundColumn] = []
    if isinstance(step, FilterStep):
        columns = columns_of_tests(step.tests)
    elif isinstance(step, ExpressionStep):
        columns = columns_of_expression(step.expression)
    elif isinstance(step, MapStep):
        columns = [step.column]
    elif isinstance(step, RateStep):
        columns = [step.amount, step.currency, step.day]

    return {column.source for column in columns}


def _replaced(
    step: Step, gone: set[str], selecting: "dict[str, tuple[RowTest, ...]]"
) -> list[Step]:
    """Return what stands for a step when these sources are not joined."""
    if not isinstance(step, JoinSourceStep) or step.right not in gone:
        return [step]

    tests = selecting.get(step.right)
    if tests is None:
        return []

    narrowed = FilterStep(step.order, "table", tests, step.right)
    return [narrowed, replace(step, how="semi", is_multiple=False)]


def _free_name(wanted: str, taken: set[str], other: str) -> str:
    """Return a name that is not taken and that PostgreSQL does not cut."""
    begin = other if wanted in taken else wanted
    free = _cut_to_bytes(begin, MOST_NAME_BYTES)
    number = 2
    while free in taken:
        mark = f"_{number}"
        free = _cut_to_bytes(begin, MOST_NAME_BYTES - len(mark)) + mark
        number += 1

    return free


def _cut_to_bytes(name: str, most_bytes: int) -> str:
    return name.encode()[:most_bytes].decode(errors="ignore")
