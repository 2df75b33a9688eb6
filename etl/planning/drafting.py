"""A bound intent → layered models: sources as they are, cleaned, joined, grouped, windowed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    BoundOutput,
    BoundSource,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    Step,
    WindowStep,
    tie_columns,
)
from etl.meaning.read_columns import bound_column
from etl.meaning.row_expressions import columns_of
from etl.planning.computed_columns import mapped_value, rated_value, window_value
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import UniqueNames, readable_name
from etl.planning.group_query import GroupPart, GroupQuery, columns_of_aggregate
from etl.planning.joined_sources import ROW, JoinedSources, declared_identity
from etl.planning.measure_parts import MeasurePart, columns_read, measure_parts
from etl.planning.needed_columns import needed_columns
from etl.planning.row_query import InputRows, RowQuery
from etl.planning.source_types import draft_type
from etl.planning.sql_trees import cast, column, selection, table
from etl.planning.target_columns import TargetColumns
from etl.planning.typed_values import TypedValue, computed_value
from etl.schemas.parameters import SortOrder
from etl.schemas.plan import ArchitecturePlan, ColumnRole, EtlNode, NodeColumn, PlanPattern
from etl.schemas.requirement import Layer, Materialization

Outputs = Sequence[tuple[str, BoundColumn]]
_MOST_NAMED_SOURCES = 4


def make_draft(bound: BoundIntent) -> Draft:
    """Plan the models of an intent and write the SELECT of each."""
    return _Drafting(bound).draft()


class _Drafting:
    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self._joined = JoinedSources(bound)
        self._needed = needed_columns(bound, self._joined)
        self._target = TargetColumns(bound)
        self._names = UniqueNames([bound.target.model])
        self._models: list[DraftModel] = []
        self._operations: list[int] = []  # of the model that is being written
        self._steps: list[Step] = []  # that have worked on the rows of that model
        self._alone: BoundSource | None = None  # the source that it cleans, before any joins
        self._rows: dict[str, InputRows] = {}  # of each source, as later models read it

    def draft(self) -> Draft:
        for name in self._needed:
            self._rows[name] = self._source_model(self._bound.source(name))

        for name in self._needed:
            if self._is_cleaned_apart(name):
                self._rows[name] = self._cleaned_model(name)

        is_grouped = self._bound.aggregate is not None
        self._finish(self._grouped_query() if is_grouped else self._ungrouped_query())
        plan = ArchitecturePlan(
            pattern=self._pattern(),
            nodes=[model.node for model in self._models],
            target=self._bound.target.model,
        )
        return Draft(plan, tuple(self._models))

    def _pattern(self) -> PlanPattern:
        joins = len(self._joined.names) - 1
        if self._bound.target.mode == "merge":
            return "incremental_merge"
        if joins and self._bound.aggregate is None:
            return "wide_table"
        if joins > 1:
            return "star_schema"

        return "simple_etl"

    # --------------------------------------------------------------------------
    # sources

    def _source_model(self, source: BoundSource) -> InputRows:
        """Write the model that reads a source: types are adapted, nothing else."""
        stored = {source_column.name: source_column for source_column in source.table.columns}
        names = UniqueNames()
        outputs: list[tuple[str, exp.Expr]] = []
        columns: list[NodeColumn] = []
        output_by_column: dict[BoundColumn, tuple[str, str]] = {}
        for name in self._needed[source.name]:
            if name == ROW:
                continue

            type_ = draft_type(stored[name].type)
            value: exp.Expr = column(name)
            if type_ != stored[name].type:
                value = cast(value, type_)

            output = names.column(readable_name(name), source.name)
            outputs.append((output, value))
            output_by_column[BoundColumn(source.name, name)] = (output, type_)
            role: ColumnRole = "key" if name in source.table.primary_key else "attribute"
            described = stored[name].comment
            columns.append(NodeColumn(name=output, type=type_, role=role, description=described))

        node = EtlNode(
            name=self._names.model("ods", source.name),
            layer="ODS",
            materialization="view",
            inputs=[f"{source.table.schema}.{source.table.name}"],
            operations=[],
            grain=[
                output_by_column[BoundColumn(source.name, name)][0]
                for name in source.table.primary_key
            ],
            columns=columns,
        )
        select = selection(outputs, table(source.table.name, source.table.schema))
        selected = [
            (output, source_column) for source_column, (output, _) in output_by_column.items()
        ]
        meaning = self._meaning(selected, [], [source])
        self._models.append(DraftModel(node, select, node.name, meaning=meaning))
        return InputRows(node.name, output_by_column)

    def _is_cleaned_apart(self, name: str) -> bool:
        """Tell whether a source's rows are changed before they are joined."""
        is_alone = len(self._needed) == 1
        if is_alone:
            return False

        if bool(self._table_steps(name)):
            return True

        return ROW in self._needed[name]

    def _table_steps(self, name: str) -> list[Step]:
        steps: list[Step] = []
        for step in self._bound.steps:
            is_of_table = _stage(step) == "table"
            if is_of_table and getattr(step, "source", None) == name:
                steps.append(step)

        return steps

    def _cleaned_model(self, name: str) -> InputRows:
        self._steps = []
        self._alone = self._bound.source(name)
        rows = self._cleaned(name)
        outputs = [(column.name, column) for column in rows.columns]
        grain = self._grain_of([name], outputs)
        return self._write("DWD", [name], rows, outputs, grain, "view")

    def _cleaned(self, name: str) -> RowQuery:
        """Return a source's rows after the steps that work on it alone."""
        rows = RowQuery(self._rows[name], self._bound.time_zone)
        for step in self._table_steps(name):
            self._apply(step, rows)

        if ROW in self._needed[name]:
            _number_rows(rows, name)

        return rows

    # --------------------------------------------------------------------------
    # joined rows

    def _combined(self, joined: JoinedSources) -> RowQuery:
        """Return the joined rows of some sources, with all steps that work on these."""
        self._steps = []
        self._alone = None
        base = self._bound.base.name
        is_alone = len(self._needed) == 1
        if is_alone:
            rows = self._cleaned(base)
        else:
            rows = RowQuery(self._rows[base], self._bound.time_zone)

        for step in self._bound.steps:
            if _stage(step) == "rows" and self._has_columns(step, rows, joined):
                self._apply(step, rows)

        return rows

    def _has_columns(self, step: Step, rows: RowQuery, joined: JoinedSources) -> bool:
        """Tell whether a join is one of those that are wanted, and a column can be computed."""
        if isinstance(step, JoinSourceStep):
            if step.how in ("semi", "anti"):
                return True

            return step.right in joined.names

        return set(columns_read(step)) <= set(rows.columns)

    def _grouped_query(self) -> RowQuery:
        step = self._bound.aggregate
        assert step is not None
        parts = measure_parts(self._bound, step)
        rows = self._combined(parts[0].joined)
        if rows.is_changed:
            rows = self._joined_model(rows, step, parts[0])

        group_parts = [GroupPart(parts[0].measures, parts[0].joined)]
        for part in parts[1:]:
            further = self._joined_model(self._combined(part.joined), step, part)
            group_parts.append(GroupPart(part.measures, part.joined, further.input_rows()))

        GroupQuery(step, rows, group_parts, self._bound.time_zone).apply()
        self._operations.append(step.order)
        self._steps = [row_step for row_step in self._bound.steps if _stage(row_step) == "rows"]
        self._steps.append(step)
        return self._windowed(step, rows)

    def _windowed(self, step: AggregateStep, rows: RowQuery) -> RowQuery:
        """Return the groups after the steps on them; windows are worked out over a model."""
        before, windowed = self._result_steps()
        for result_step in before:
            self._apply(result_step, rows)

        if windowed:
            outputs = [(column.name, column) for column in rows.columns]
            grain = [key.name for key in step.keys]
            stored = self._write("DWS", [self._bound.target.model], rows, outputs, grain, "table")
            rows = RowQuery(stored, self._bound.time_zone)

        for result_step in windowed:
            self._apply(result_step, rows)

        return rows

    def _joined_model(self, rows: RowQuery, step: AggregateStep, part: MeasurePart) -> RowQuery:
        own = replace(step, measures=part.measures)
        measured = columns_of_aggregate(own, part.joined)
        telling = part.joined.repeating
        keys = [key for name in telling for key in self._identity(name)]
        names = UniqueNames()
        columns = dict.fromkeys([*keys, *measured])
        outputs = [(names.column(needed.name, needed.source), needed) for needed in columns]
        grain = self._grain_of(telling, outputs)
        sources = part.joined.names[:_MOST_NAMED_SOURCES]
        stored = self._write("DWD", sources, rows, outputs, grain, "table")
        return RowQuery(stored, self._bound.time_zone)

    def _ungrouped_query(self) -> RowQuery:
        rows = self._combined(self._joined)
        outputs = [(output.name, output.column) for output in self._bound.outputs]
        before, windowed = self._result_steps()
        if windowed and rows.is_changed:
            grain = self._grain_of(self._joined.repeating, outputs)
            sources = self._joined.names[:_MOST_NAMED_SOURCES]
            stored = self._write("DWD", sources, rows, outputs, grain, "table")
            named = {BoundColumn("", name): stored.columns[value] for name, value in outputs}
            rows = RowQuery(InputRows(stored.name, named), self._bound.time_zone)
        else:
            rows.keep_columns(outputs)

        for result_step in [*before, *windowed]:
            self._apply(result_step, rows)

        return rows

    def _result_steps(self) -> tuple[list[Step], list[Step]]:
        """Return the steps on the result before its first window, and those from there on."""
        steps = []
        for step in self._bound.steps:
            if _stage(step) == "result":
                steps.append(step)

        for place, step in enumerate(steps):
            if isinstance(step, WindowStep):
                return steps[:place], steps[place:]

        return steps, []

    def _identity(self, name: str) -> list[BoundColumn]:
        """Return the declared key of a source, or the number of its row where there is one."""
        key = declared_identity(self._bound.source(name).table)
        if not key and ROW in self._needed[name]:
            key = (ROW,)

        return [BoundColumn(name, key_column) for key_column in key]

    def _grain_of(self, sources: Iterable[str], outputs: Outputs) -> list[str]:
        """Return the columns that tell rows apart; empty when they are not all there."""
        named: dict[BoundColumn, str] = {key_column: name for name, key_column in reversed(outputs)}
        grain: list[str] = []
        for source in sources:
            key = self._identity(source)
            names = [named[key_column] for key_column in key if key_column in named]
            if not key or len(names) < len(key):
                return []

            grain.extend(names)

        return grain

    # --------------------------------------------------------------------------
    # steps

    def _apply(self, step: Step, rows: RowQuery) -> None:
        self._operations.append(step.order)
        self._steps.append(step)
        if isinstance(step, JoinSourceStep):
            self._join(step, rows)
        elif isinstance(step, FilterStep):
            rows.filter(step.tests)
        elif isinstance(step, DedupStep):
            self._dedup(step, rows)
        elif isinstance(step, WindowStep):
            names = [*step.partition, *(name for name, _ in step.sorting)]
            if step.column is not None:
                names.append(step.column)

            rows.settle(BoundColumn("", name) for name in names)
            value = window_value(step, rows)
            rows.compute(BoundColumn("", step.name), value, is_window=True)
        else:
            self._compute(step, rows)

    def _compute(self, step: Step, rows: RowQuery) -> None:
        if isinstance(step, ExpressionStep):
            rows.settle(bound_column(node) for node in columns_of(step.expression))
            value = computed_value(step.expression, rows.value, self._bound.time_zone)
            rows.compute(BoundColumn("", step.name), value)
        elif isinstance(step, MapStep):
            rows.settle([step.column])
            rows.compute(BoundColumn("", step.name), mapped_value(step, rows.value))
        elif isinstance(step, RateStep):
            rows.settle([step.amount, step.currency, step.day])
            rates = self._rows[step.rates]
            value = rated_value(step, rows.value, rates, self._bound.time_zone)
            rows.compute(BoundColumn("", step.name), value)

    def _join(self, step: JoinSourceStep, rows: RowQuery) -> None:
        right = self._rows[step.right]
        if step.how in ("semi", "anti"):
            rows.keep_matching(right, step.on, is_anti=step.how == "anti")
        else:
            rows.join(right, step.on, is_inner=step.how == "inner")

    def _dedup(self, step: DedupStep, rows: RowQuery) -> None:
        keys = [BoundColumn(step.source, name) for name in step.keys]
        order: list[tuple[BoundColumn, SortOrder]] = []
        for name, direction in step.sorting:
            order.append((BoundColumn(step.source, name), direction))

        for name in tie_columns(step, self._bound.source(step.source).table):
            order.append((BoundColumn(step.source, name), "desc"))

        rows.dedup(keys, order or [(key, "desc") for key in keys])

    # --------------------------------------------------------------------------
    # models

    def _finish(self, rows: RowQuery) -> None:
        """Write the target: the columns that are asked for, then the technical ones."""
        target = self._bound.target
        self._target.add(rows)
        if self._target.is_incremental:
            rows.close()

        names = [*target.columns, *self._target.names]
        outputs = [(name, BoundColumn("", name)) for name in names]
        select, types = rows.select(outputs)
        grain = self._target_grain()
        node = EtlNode(
            name=target.model,
            layer=target.layer,
            materialization=target.materialization,
            inputs=self._inputs_of(select),
            operations=self._take_operations(),
            grain=grain,
            columns=self._node_columns(outputs, types, grain),
        )
        model = DraftModel(
            node,
            select,
            target.relation,
            self._target.increment(dict(zip(names, types, strict=True))),
            self._target.merge_key,
        )
        self._models.append(model)

    def _target_grain(self) -> list[str]:
        target, aggregate = self._bound.target, self._bound.aggregate
        if aggregate is not None:
            grain = [key.name for key in aggregate.keys]
        elif target.unique_key:
            grain = list(target.unique_key)
        else:
            outputs = [(output.name, output.column) for output in self._bound.outputs]
            grain = self._grain_of(self._joined.repeating, outputs)

        if set(grain) <= set(target.columns):
            return grain

        return []

    def _write(
        self,
        layer: Layer,
        parts: Sequence[str],
        rows: RowQuery,
        outputs: Outputs,
        grain: Sequence[str],
        materialization: Materialization,
    ) -> InputRows:
        """Write a model before the target."""
        select, types = rows.select(outputs)
        node = EtlNode(
            name=self._names.model(layer.lower(), *parts),
            layer=layer,
            materialization=materialization,
            inputs=self._inputs_of(select),
            operations=self._take_operations(),
            grain=list(grain),
            columns=self._node_columns(outputs, types, grain),
        )
        meaning = self._meaning_so_far(outputs)
        self._models.append(DraftModel(node, select, node.name, meaning=meaning))
        columns = {}
        for (output, result_column), type_ in zip(outputs, types, strict=True):
            columns[result_column] = (output, type_)

        return InputRows(node.name, columns)

    def _inputs_of(self, select: exp.Query) -> list[str]:
        """Return the models that a SELECT reads, in the order in which they are built."""
        read: set[str] = set()
        for place in select.find_all(exp.Table):
            if not place.db:
                read.add(place.name)

        names = []
        for model in self._models:
            if model.name in read:
                names.append(model.name)

        return names

    def _take_operations(self) -> list[int]:
        """Return the steps that the model carries out; those of the next one begin."""
        operations = list(dict.fromkeys(self._operations))
        self._operations = []
        return operations

    def _node_columns(
        self, outputs: Outputs, types: Sequence[str], grain: Sequence[str]
    ) -> list[NodeColumn]:
        columns = []
        for (name, bound), type_ in zip(outputs, types, strict=True):
            columns.append(self._node_column(name, bound, type_, grain))

        return columns

    def _meaning_so_far(self, outputs: Outputs) -> BoundIntent:
        """Return the intent whose rows are being written."""
        if self._alone is not None:
            return self._meaning_alone(self._alone.name, outputs)

        applied = {id(step) for step in self._steps}
        steps = []
        for step in self._bound.steps:
            if _stage(step) == "table" or id(step) in applied:
                steps.append(step)

        return self._meaning(outputs, steps, self._bound.sources)

    def _meaning_alone(self, name: str, outputs: Outputs) -> BoundIntent:
        """Return the intent of a source's rows, with the sources in which they are looked up."""
        names = [name]
        for looked_up in names:  # which grows meanwhile
            for step in self._table_steps(looked_up):
                if isinstance(step, JoinSourceStep) and step.right not in names:
                    names.append(step.right)

        steps = [step for looked_up in names for step in self._table_steps(looked_up)]
        in_order = []
        for step in self._bound.steps:
            if step in steps:
                in_order.append(step)

        return self._meaning(outputs, in_order, list(map(self._bound.source, names)))

    def _meaning(
        self, outputs: Outputs, steps: Sequence[Step], sources: Sequence[BoundSource]
    ) -> BoundIntent:
        """Return an intent of these steps, with these columns as its result."""
        selected = []
        for name, result_column in outputs:
            if result_column.name != ROW:
                selected.append(BoundOutput(name, result_column))

        columns = tuple(output.name for output in selected)
        is_grouped = any(isinstance(step, AggregateStep) for step in steps)
        return replace(
            self._bound,
            sources=tuple(sources),
            steps=tuple(steps),
            target=replace(self._bound.target, columns=columns),
            outputs=() if is_grouped else tuple(selected),
        )

    def _node_column(
        self, name: str, bound: BoundColumn, type_: str, grain: Sequence[str]
    ) -> NodeColumn:
        role: ColumnRole = "attribute"
        if name in grain:
            role = "key"
        if not bound.source:
            role = self._made_roles().get(name, role)
        if name.startswith("etl_"):
            role = "meta"

        return NodeColumn(name=name, type=type_, role=role, description=self._comment(bound))

    def _made_roles(self) -> dict[str, ColumnRole]:
        """Return the roles of the columns that the aggregate makes."""
        roles: dict[str, ColumnRole] = {}
        for measure in self._bound.measures:
            roles[measure.name] = "measure"

        for key in self._bound.keys:
            if key.unit:
                roles[key.name] = "period"

        return roles

    def _comment(self, bound: BoundColumn) -> str | None:
        if not bound.source:
            return None

        stored = self._bound.source(bound.source).table.column(bound.name)
        if stored is None or bound.name == ROW:
            return None

        return stored.comment


def _stage(step: Step) -> str:
    """Return where a step works; the aggregate itself works nowhere."""
    if isinstance(step, RateStep):
        return "rows"
    if isinstance(step, WindowStep):
        return "result"

    return getattr(step, "stage", "")


def _number_rows(rows: RowQuery, source: str) -> None:
    """Number rows, so that even equal ones are told apart, in an order that rows decide."""
    columns = rows.columns
    rows.settle(columns)
    number = exp.Window(
        this=exp.RowNumber(),
        order=rows.ordering([(sorting_column, "asc") for sorting_column in columns]),
    )
    value = TypedValue(number, "bigint")
    rows.compute(BoundColumn(source, ROW), value, is_window=True)
