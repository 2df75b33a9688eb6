"""An intent and a catalogue → a bound intent, or what is open, assumed and not possible."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from common.text import Lang, Text
from common.values import Catalog, Table
from etl.binding.binding_state import BindingState
from etl.binding.column_words import is_undone
from etl.binding.intent_checks import CheckedOperation, check_intent, invalid
from etl.binding.join_binding import JoinPlanner, JoinTree, PlannedJoin
from etl.binding.request_findings import NotBound, RequestFindings, UserChoice
from etl.binding.scope import IntentScope, column_label, said_names, tree_column
from etl.binding.source_tables import bind_sources, tables_named
from etl.binding.step_binding import StepBinding, is_conditioned
from etl.binding.target_binding import TargetBinding
from etl.meaning.bound import (
    BoundColumn,
    BoundCondition,
    BoundIntent,
    BoundTarget,
    ExpressionTest,
    FilterStep,
    JoinSourceStep,
    Step,
    steps_among,
)
from etl.meaning.decisions import Decision, DroppedRows, JoinedRows, NoRows
from etl.meaning.row_expressions import (
    ExpressionRefused,
    columns_of,
    parse_expression,
    type_of,
    with_time_zone,
)
from etl.schemas.parameters import (
    AggregateParameters,
    DedupParameters,
    FilterParameters,
    JoinParameters,
    SinkParameters,
    TransformParameters,
    WindowParameters,
)
from etl.schemas.requirement import AnalysisResult, IntentSource, Materialization, UserIntent

_MOST_SHOWN_VALUES = 5
_WORDS_OF_EXPRESSION = re.compile(r"\w+")


@dataclass(frozen=True)
class BindingOptions:
    """The settings that decide beside the intent.

    Attributes:
        time_zone: in which periods of moments are cut.
        today: to which relative days refer.
        materialization: how the target is kept; comes before what the intent says.
        lang: the language of questions and other texts.
    """

    time_zone: str
    today: date
    materialization: Materialization | None = None
    lang: Lang = "zh"


@dataclass(frozen=True)
class BindingResult:
    """A bound intent, or None and why not.

    Attributes:
        decisions: which rows the assumptions decide about, by their ids.
        chosen: what its user has chosen.
    """

    bound: BoundIntent | None
    analysis: AnalysisResult
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    chosen: tuple[UserChoice, ...] = ()


def bind_intent(
    intent: UserIntent,
    catalog: Catalog,
    answers: Mapping[str, str],
    options: BindingOptions,
    findings: RequestFindings | None = None,
) -> BindingResult:
    """Bind an intent to the catalogue that its user sees.

    Args:
        intent: as given, or as read from a sentence.
        catalog: what is not in it does not exist.
        answers: the values of choices, by the ids of ambiguities asked before.
        options: what decides beside the intent.
        findings: what was found about the sentence that the intent was read from; they are added
            to.

    Raises:
        InvalidRequest: the intent is wrong, whatever is answered; `field` names the part.
    """
    found = RequestFindings(answers, options.lang) if findings is None else findings
    return _IntentBinding(intent, catalog, found, options).result()


class _IntentBinding:
    def __init__(
        self,
        intent: UserIntent,
        catalog: Catalog,
        findings: RequestFindings,
        options: BindingOptions,
    ) -> None:
        self._intent = intent
        self._catalog = catalog
        self._options = options
        self._operations = check_intent(intent)
        self._findings = findings
        self._scope = IntentScope(self._findings)
        self._unused: list[str] = []
        _check_zone(options.time_zone)

    def result(self) -> BindingResult:
        bound = self._bind_intent()
        analysis = self._findings.analysis(self._intent, "given")
        found = self._findings
        if not found.is_clear:
            bound = None

        return BindingResult(bound, analysis, found.decisions, found.chosen)

    def _bind_intent(self) -> BoundIntent | None:
        sources = (*self._intent.data_sources, *self._unlisted_sources())
        bind_sources(sources, self._catalog, self._findings, self._scope)
        if not self._findings.is_clear:
            return None

        rates = self._named_rates()
        self._show_only(set(self._scope.visible) - rates)
        try:
            base = self._base()
        except NotBound:
            return None

        planned, is_open = self._planned_joins(base)
        self._leave_out_unused()
        tree = JoinTree(self._scope, base, is_open=is_open)
        state = BindingState(
            self._catalog,
            self._findings,
            self._scope,
            tree,
            self._options.today,
            self._options.time_zone,
        )
        self._bind_operations(state, planned)
        target = self._target(state)
        if target is None:
            return None

        return self._bound_intent(state, target)

    # sources

    def _unlisted_sources(self) -> list[IntentSource]:
        """Return tables that joins name although they are not among the sources."""
        listed = set()
        for source in self._intent.data_sources:
            for one in _names_of(source):
                listed.add(one)

        names: dict[str, None] = {}
        for operation in self._operations:
            parameters = operation.parameters
            if isinstance(parameters, JoinParameters):
                names.update(dict.fromkeys((parameters.left, parameters.right)))

        unlisted = []
        for name in names:
            if name not in listed:
                unlisted.append(name)

        sources: list[IntentSource] = []
        for name in unlisted:
            if self._is_other(name):
                sources.append(IntentSource(table_name=name))

        return sources

    def _is_other(self, name: str) -> bool:
        """Tell whether a name means a table that none of the sources is."""
        tables = tables_named(name, None, self._catalog)
        listed = set()
        for source in self._intent.data_sources:
            for table in tables_named(source.table_name, source.schema_name, self._catalog):
                listed.add(table.key)

        return not any(table.key in listed for table in tables)

    def _named_rates(self) -> set[str]:
        """Return the names of sources from which rates are taken."""
        rate_sources: set[str] = set()
        for operation in self._operations:
            parameters = operation.parameters
            if not isinstance(parameters, TransformParameters) or parameters.rate is None:
                continue

            table = parameters.rate.table
            if table in self._scope.names:
                rate_sources.add(self._scope.names[table])

        return rate_sources

    def _show_only(self, names: Collection[str]) -> None:
        self._scope.visible = [name for name in self._scope.visible if name in names]

    def _leave_out_unused(self) -> None:
        for name in self._unused:
            text = Text(f"{name} 没有被任何操作使用。", f"No operation uses {name}.")
            self._findings.assume("unused_table", text, decides=NoRows())

        self._show_only(set(self._scope.visible) - set(self._unused))

    def _base(self) -> str:
        """Return the table on the left of the first join, else the first source that is used."""
        for operation in self._operations:
            if isinstance(operation.parameters, JoinParameters):
                source = self._scope.source_named(operation.parameters.left, operation.order)
                return source.name

        visible = self._scope.visible or list(self._scope.sources)
        for name in visible:
            if self._is_used(name, ()):
                return name

        return visible[0]

    # joins

    def _planned_joins(self, base: str) -> tuple[dict[int, list[PlannedJoin]], bool]:
        """Return the joins by operation, 0 for those that none says; and whether some are open."""
        planner = JoinPlanner(self._catalog, self._findings, self._scope)
        planner.begin(base)
        planned: dict[int, list[PlannedJoin]] = {}
        is_open = False
        for operation in self._operations:
            if isinstance(operation.parameters, JoinParameters):
                try:
                    joins = planner.plan(operation, operation.parameters)
                    _place_joins(planned, operation.order, joins)
                except NotBound:
                    is_open = True
                    planner.leave_open(operation.parameters.right)

        for name in self._scope.visible:
            if name in planner.joined:
                continue
            if self._is_used(name, planner.joined):
                try:
                    planned.setdefault(0, []).extend(planner.plan_unsaid(name))
                except NotBound:
                    is_open = True
            else:
                self._unused.append(name)

        return planned, is_open

    def _is_used(self, name: str, joined: Sequence[str]) -> bool:
        """Tell whether an operation names a source, or a column that none of the joined has."""
        spellings = []
        for spelling, source_name in self._scope.names.items():
            if source_name == name:
                spellings.append(spelling)

        columns = self._column_names(name).difference(*map(self._column_names, joined))
        for operation in self._intent.operations:
            for text in _texts_in(operation.parameters):
                if text in columns or _is_about_table(text, spellings):
                    return True

        return False

    def _column_names(self, source: str) -> set[str]:
        """Return the names by which columns of a source may be called."""
        names: set[str] = set()
        for column in self._scope.sources[source].table.columns:
            names.update((column.name, *said_names(column)))

        return names

    # steps

    def _bind_operations(
        self, state: BindingState, planned: Mapping[int, list[PlannedJoin]]
    ) -> None:
        """Bind the operations in their order.

        Joins that no operation states are put before the first operation that needs them.
        """
        binding = StepBinding(state)
        unsaid = self._place_of_unsaid_joins()
        for place, operation in enumerate(self._operations):
            if place == unsaid:
                self._join_unsaid(binding, planned)

            try:
                if isinstance(operation.parameters, JoinParameters):
                    binding.join(planned.get(operation.order, ()), operation.order)
                elif not isinstance(operation.parameters, SinkParameters):
                    binding.bind(operation)
            except NotBound:
                if _makes_result(operation):
                    return  # what follows is about a result that is not known yet
                if isinstance(operation.parameters, TransformParameters):
                    self._scope.unmade.add(operation.parameters.as_)

        if unsaid == len(self._operations):
            self._join_unsaid(binding, planned)
        if self._findings.is_clear:
            self._begin_result(binding)

    def _join_unsaid(self, binding: StepBinding, planned: Mapping[int, list[PlannedJoin]]) -> None:
        if 0 not in planned:
            return

        try:
            binding.join(planned[0], 0)
        except NotBound:
            return

    def _place_of_unsaid_joins(self) -> int:
        """Return before which operation sources are joined that no operation joins.

        Behind all joins, else behind what narrows single tables at the beginning.
        """
        joins = []
        for place, operation in enumerate(self._operations):
            if isinstance(operation.parameters, JoinParameters):
                joins.append(place)

        if joins:
            return joins[-1] + 1

        for place, operation in enumerate(self._operations):
            if not _is_about_one_table(operation):
                return place

        return len(self._operations)

    def _begin_result(self, binding: StepBinding) -> None:
        try:
            binding.begin_result(self._operations[-1].order if self._operations else 0)
        except NotBound:
            return

    # the target

    def _target(self, state: BindingState) -> BoundTarget | None:
        sinks = []
        for operation in self._operations:
            if isinstance(operation.parameters, SinkParameters):
                sinks.append(operation)

        binding = TargetBinding(state, self._intent.data_target, sinks[0] if sinks else None)
        try:
            binding.check()
            if self._findings.is_clear:
                return binding.bind(self._options.materialization)
        except NotBound:
            return None

        return None

    def _bound_intent(self, state: BindingState, target: BoundTarget) -> BoundIntent:
        joins = steps_among(state.steps, JoinSourceStep)
        names = [state.tree.base, *(step.right for step in joins)]
        names.extend(state.rates)
        filters = []
        for name in names:
            for one in self._semantic_filter(state, name):
                filters.append(one)

        self._assume_undone_rows(state, names)
        return BoundIntent(
            summary=self._intent.summary,
            sources=tuple(self._scope.sources[name] for name in names),
            steps=(*filters, *state.steps),
            target=target,
            time_zone=self._options.time_zone,
            outputs=state.outputs,
        )

    # rows that are left out, and rows that one may want to leave out

    def _semantic_filter(self, state: BindingState, name: str) -> Iterator[Step]:
        """Yield the semantic file's filter of a table, unless the intent says otherwise."""
        meaning = self._scope.sources[name].table.meaning
        if meaning is None or meaning.default_filter is None:
            return
        if is_conditioned(state, name, meaning.filter_columns):
            return

        condition = meaning.default_filter
        try:
            test = self._own_condition(condition, name)
        except ExpressionRefused:
            self._findings.refuse(
                "unsupported",
                Text(
                    f"语义文件中 {name} 的条件 {condition} 不能用于转换；请自行给出条件。",
                    f"The semantic file's filter of {name}, {condition}, can't be used here; give "
                    f"a filter of your own.",
                ),
            )
            return

        text = Text(
            f"{name} 只取满足 {condition} 的行（语义文件）。",
            f"Of {name}, only rows with {condition} count, says the semantic file.",
        )
        decides = DroppedRows(0, name)
        self._findings.assume("semantic_filter", text, decides=decides, is_semantic=True)
        yield FilterStep(0, "table", (test,), name)

    def _own_condition(self, text: str, name: str) -> ExpressionTest:
        parsed = parse_expression(text)
        table = self._scope.sources[name].table
        bound = parsed.copy()
        for column in list(columns_of(bound)):
            column.replace(tree_column(BoundColumn(name, _stored_name(column.name, table))))

        # A column alone can't be replaced in itself
        if isinstance(parsed, exp.Column):
            bound = tree_column(BoundColumn(name, _stored_name(parsed.name, table)))

        type_of(bound, self._scope.type_in_tree)
        zoned = with_time_zone(bound, self._scope.type_in_tree, self._options.time_zone)
        return ExpressionTest(zoned)

    def _assume_undone_rows(self, state: BindingState, names: Sequence[str]) -> None:
        """Note values that look like those of void rows where nothing is said of them."""
        for name in names:
            for column in self._scope.sources[name].table.columns:
                bound = BoundColumn(name, column.name)
                if bound not in state.conditioned:
                    self._assume_kept(bound, column.values)

    def _assume_kept(self, column: BoundColumn, stored_values: Sequence[str]) -> None:
        """Note those of a column's values that look like void ones."""
        values = [value for value in stored_values if is_undone(value)]
        if not values:
            return

        name, listed = column_label(column), ", ".join(values[:_MOST_SHOWN_VALUES])
        text = Text(f"{name} 为 {listed} 的行保留在内。", f"Rows with {name} {listed} are kept.")
        undone = BoundCondition(column, "in", tuple(values))
        decides = JoinedRows(column.source, ((undone,),))
        self._findings.assume("undone_kept", text, decides=decides)


def _is_about_table(text: str, spellings: Sequence[str]) -> bool:
    """Tell whether a text is one of a table's names, or holds a column with one before it."""
    if text in spellings:
        return True

    return any(f"{spelling}." in text for spelling in spellings)


def _texts_in(value: object) -> Iterator[str]:
    """Yield all texts in the parameters of an operation."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts_in(inner)
            if name == "expression":
                yield from _WORDS_OF_EXPRESSION.findall(str(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)


def _stored_name(text: str, table: Table) -> str:
    """Return the column's name; one that is not quoted may be written in upper case."""
    if table.column(text) is not None:
        return text

    return text.lower()


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        zh, en = "没有这个时区。", "there is no such time zone."
        raise invalid("options.time_zone", zh, en) from error


def _makes_result(operation: CheckedOperation) -> bool:
    return isinstance(operation.parameters, AggregateParameters | WindowParameters)


def _is_about_one_table(operation: CheckedOperation) -> bool:
    parameters = operation.parameters
    if isinstance(parameters, DedupParameters):
        return True
    if isinstance(parameters, FilterParameters | TransformParameters):
        return parameters.table is not None

    return False


def _place_joins(
    planned: dict[int, list[PlannedJoin]], order: int, joins: list[PlannedJoin]
) -> None:
    """Put the joins of an operation among those by order: before the lookup that they narrow."""
    narrowed = joins[-1].left if joins and joins[-1].narrows_left else None
    for earlier in planned.values():
        for place, join in enumerate(earlier):
            if join.right == narrowed:
                earlier[place:place] = joins
                return

    planned[order] = joins


def _names_of(source: IntentSource) -> tuple[str, ...]:
    """Return the names that a source has in an intent, before it is looked up."""
    if source.alias is not None:
        return (source.alias,)
    if source.schema_name is None:
        return (source.table_name,)

    return (source.table_name, f"{source.schema_name}.{source.table_name}")
