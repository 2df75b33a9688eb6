"""Unit tests of a draft, and how many broken models they notice.

Worlds of made-up rows are built once; the rows of each model must be the interpreter's. A broken
model is caught when its rows differ in one of the worlds. The first worlds are kept, and those
that caught something.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from common.errors import InvalidSql
from common.text import Text
from etl.evidence.fixture_worlds import World, WorldMaker
from etl.evidence.increments import before_late_rows, built_again, increment_query
from etl.evidence.mutants import Mutant
from etl.evidence.source_rows import few_rows
from etl.evidence.stage import BuildStage, difference, differing_rows, unqualified, world_stage
from etl.meaning.bound import BoundIntent
from etl.meaning.evaluation import NotComputable
from etl.meaning.interpreter import Meaning, evaluate
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import DraftTest, TypedRows, UnitCase
from etl.rendering.select_rendering import render_select
from etl.scratch.scratch_build import ScratchBuild
from etl.scratch.scratch_loading import known_types, typed_values
from postgres.identifiers import quoted

TableKey = tuple[str, str]
# Models may join many tables, all of which have few rows here.
_PLAN_AS_WRITTEN = "SET join_collapse_limit = 1; SET from_collapse_limit = 1; SET jit = off"
_SEARCH_S = 3.0  # seconds after which no further worlds are looked for
_KEPT = 3  # of the worlds that every draft is built in, whatever they catch
_MIXED = 2  # worlds that every draft is built in
_MOST_IN_VAIN = 5  # worlds that show nothing new, after which no further ones are looked for
_NO_SQL = "42"  # the class of SQLSTATE for syntax, unknown names and types that don't fit
_MOST_MIXED = 20  # worlds that are built while there are mutants that none has shown


@dataclass
class _BuiltWorld:
    """A world in scratch, with the rows of its models."""

    world: World
    stage: BuildStage
    sources: tuple[TypedRows, ...]
    expected: TypedRows
    failures: int
    has_caught: bool = False


@dataclass(frozen=True)
class _Trial:
    """A mutant as SQL, and the query that counts the rows by which it differs from the model."""

    mutant: Mutant
    text: str
    query: str


@dataclass
class MutationScore:
    """The numbers of mutants; those that PostgreSQL refuses are not counted."""

    caught: int = 0
    equivalent: int = 0
    survivors: list[Mutant] = field(default_factory=list)


class UnitProof:
    """Builds a draft over made-up worlds, keeps tests of them, and tries broken models there."""

    def __init__(self, draft: Draft, bound: BoundIntent, build: ScratchBuild) -> None:
        self._draft = draft
        self._bound = bound
        self._build = build
        self._maker = WorldMaker(bound, columns_read(draft, bound))
        self._worlds: list[_BuiltWorld] = []
        self._types: set[str] = set()

    async def build_worlds(self, proposed: Iterable[World] = ()) -> None:
        """Build the first worlds.

        Args:
            proposed: further ones, whose tests are kept whatever they catch.

        Raises:
            InvalidSql: PostgreSQL refused a model.
        """
        written = {column.type for source in self._bound.sources for column in source.table.columns}
        self._types = await known_types(self._build, written)
        for world in await asyncio.to_thread(self._first_worlds):
            await self._enter(world)

        for world in proposed:
            entered = await self._enter(world)
            if entered is not None:
                entered.has_caught = True

    def _first_worlds(self) -> list[World]:
        mixed = (self._maker.mixed(number) for number in range(1, _MIXED + 1))
        return [*self._maker.variants(), *mixed, *self._maker.bounds()]

    async def _enter(self, world: World) -> _BuiltWorld | None:
        """Build a world; None where the interpreter can't compute its rows."""
        try:
            tables = world.by_source(self._bound)
            meaning = await asyncio.to_thread(evaluate, self._bound, tables)
        except NotComputable:
            return None

        sources = tuple(self._sources(world))
        stage = await world_stage(self._build, self._draft, sources)
        target = self._draft.meant
        expected = _expected_rows(target, meaning)
        actual = f"SELECT * FROM {stage.model(target.name)}"
        failures = await differing_rows(self._build, actual, expected)
        built = _BuiltWorld(world, stage, sources, expected, failures)
        self._worlds.append(built)
        return built

    def _sources(self, world: World) -> Iterator[TypedRows]:
        for table in self._maker.tables:
            typed = {}
            for column in self._maker.columns(table):
                is_known = column.type in self._types
                typed[column.name] = column.type if is_known else "text"

            rows = [tuple(row[name] for name in typed) for row in world.tables[table.key]]
            yield TypedRows(table.schema, table.name, tuple(typed.items()), tuple(rows))

    # mutants

    async def try_mutants(self, mutants: Iterable[Mutant]) -> MutationScore:
        """Run each mutant in the worlds until one shows it, and survivors in further worlds."""
        left = []
        for mutant in mutants:
            left.append(await asyncio.to_thread(self._trial, mutant))

        score = MutationScore()
        for world in self._worlds_without_failures():
            left = await self._try(left, world, score)

        left = await self._without_equivalent(left, score)
        left = await self._search(left, score)
        score.survivors = [trial.mutant for trial in left]
        await self._build.search(self._build.schema)
        return score

    async def _search(self, left: list[_Trial], score: MutationScore) -> list[_Trial]:
        """Try mutants in further worlds until these show nothing more; return what is left."""
        started = time.monotonic()
        in_vain = 0
        for number in range(_MIXED, _MOST_MIXED):
            is_late = time.monotonic() - started > _SEARCH_S
            if not left or is_late or in_vain == _MOST_IN_VAIN:
                break

            world = await asyncio.to_thread(self._maker.mixed, number + 1)
            built = await self._enter(world)
            if built is None or built.failures:
                continue

            before = len(left)
            left = await self._try(left, built, score)
            in_vain = in_vain + 1 if len(left) == before else 0

        return left

    async def _without_equivalent(
        self, trials: Iterable[_Trial], score: MutationScore
    ) -> list[_Trial]:
        """Return the mutants that are not proven to be equivalent; count the others."""
        left = []
        for trial in trials:
            if trial.mutant.is_equivalent or await self._is_planned_alike(trial):
                score.equivalent += 1
            else:
                left.append(trial)

        return left

    def _trial(self, mutant: Mutant) -> _Trial:
        """Return the mutant with the query that finds rows in which it differs from its model."""
        model = self._draft.model(mutant.node)
        text = render_select(mutant.select, unqualified, jinja=False)
        columns = list(model.types)
        query = difference(text, f"TABLE {quoted(mutant.node)}", columns)
        return _Trial(mutant, text, query)

    def _worlds_without_failures(self) -> list[_BuiltWorld]:
        return [world for world in self._worlds if not world.failures]

    async def _try(
        self, trials: Sequence[_Trial], world: _BuiltWorld, score: MutationScore
    ) -> list[_Trial]:
        """Return the mutants that the world does not show; drop those that are no SQL."""
        await self._build.search(world.stage.schema)
        await self._build.execute(_PLAN_AS_WRITTEN)
        left = []
        for trial in trials:
            is_caught = await self._is_caught(trial)
            if is_caught:
                score.caught += 1
                world.has_caught = True
            elif is_caught is not None:
                left.append(trial)

        return left

    async def _is_caught(self, trial: _Trial) -> bool | None:
        """Tell whether the mutant gives other rows or fails; None where it is no SQL."""
        try:
            rows = await self._build.rows(trial.query)
        except InvalidSql as exc:
            sqlstate = exc.sqlstate or ""
            return None if sqlstate.startswith(_NO_SQL) else True

        return bool(rows.rows[0][0])

    async def _is_planned_alike(self, trial: _Trial) -> bool:
        """Tell whether PostgreSQL itself makes the same of the mutant as of the model."""
        model = self._draft.model(trial.mutant.node)
        original = render_select(model.select, unqualified, jinja=False)
        plans = []
        for text in (original, trial.text):
            rows = await self._build.rows(f"EXPLAIN (VERBOSE, COSTS OFF) {text}")
            plans.append(rows.rows)

        return plans[0] == plans[1]

    # late rows

    async def late_rows(self) -> tuple[DraftTest, int] | None:
        """Return the test that a build after late rows gives the rows of a full build.

        None where nothing is added to what is there, or no made-up row could be late.
        """
        target = self._draft.meant
        if target.merge_key is None or target.increment is None:
            return None

        for world in self._worlds_without_failures():
            before = before_late_rows(world.world, self._bound)
            if before is not None:
                return await self._late_rows(world, before)

        return None

    async def _late_rows(self, world: _BuiltWorld, before: World) -> tuple[DraftTest, int]:
        target = self._draft.meant
        earlier = await world_stage(self._build, self._draft, tuple(self._sources(before)))
        there = earlier.model(target.name)
        columns = list(target.types)
        full = f"TABLE {world.stage.model(target.name)}"
        query = difference(built_again(target, world.stage, there), full, columns)
        rows = await self._build.rows(query)
        again = increment_query(target, world.stage, there)
        inputs = [await self._input_rows(world, name) for name in target.node.inputs]
        inputs.append(await self._rows_in(there, target))
        expected = await self._rows_in(f"({again}) AS again", target)
        case = UnitCase(world.sources, tuple(inputs), expected)
        test_id = f"late_rows_{target.name}"
        test = DraftTest(test_id, "late_rows", target.name, _LATE_ROWS, case=case)
        return test, int(rows.rows[0][0])

    # tests

    async def tests(self) -> list[tuple[DraftTest, int]]:
        """Return the unit tests that are kept, each with the number of rows that differ."""
        worlds = self._worlds[:_KEPT]
        for world in self._worlds[_KEPT:]:
            if world.has_caught or world.failures:
                worlds.append(world)

        results = []
        for number, world in enumerate(worlds, 1):
            for model in self._draft.models:
                test = await self._test(world, model, number)
                if test is not None:
                    results.append(test)

        return results

    async def _test(
        self, world: _BuiltWorld, model: DraftModel, number: int
    ) -> tuple[DraftTest, int] | None:
        """Return the test of a model in a world, and the number of rows that differ."""
        if model.is_further:
            return None  # nobody but the SQL itself says which rows are expected

        is_target = model.name == self._draft.meant.name
        if world.failures and not is_target:
            return None

        reads_source = model.node.layer == "ODS"
        if reads_source and number > 1:
            return None  # its rows are those of the source in each world

        expected, failures = await self._expected(world, model)
        case = None
        if reads_source and not failures:
            case = await self._source_case(world, model)
        if case is None:
            case = await self._case(world, model, expected)

        test_id = f"unit_{model.name}_{number}"
        return DraftTest(test_id, "unit", model.name, _TITLE, case=case), failures

    async def _case(self, world: _BuiltWorld, model: DraftModel, expected: TypedRows) -> UnitCase:
        """Return the rows of the world that a model reads, with those that are expected of it."""
        inputs = [await self._input_rows(world, name) for name in model.node.inputs]
        needed = self._tables_behind(model)
        sources = [rows for rows in world.sources if (rows.schema, rows.name) in needed]
        return UnitCase(tuple(sources), tuple(inputs), expected)

    async def _source_case(self, world: _BuiltWorld, model: DraftModel) -> UnitCase | None:
        """Return a few rows of a source and what its model makes of them; None without meaning."""
        (name,) = model.node.inputs
        inputs = [rows for rows in world.sources if f"{rows.schema}.{rows.name}" == name]
        if model.meaning is None or not inputs:
            return None

        input_rows = few_rows(inputs[0])
        names = [column for column, _ in input_rows.columns]
        rows = [dict(zip(names, row, strict=True)) for row in input_rows.rows]
        try:
            meaning = evaluate(model.meaning, {model.meaning.base.name: rows})
        except NotComputable:
            return None

        expected = _expected_rows(model, meaning)
        written = await self._rows_in(
            f"({typed_values(expected)}) AS meant", model, meaning.columns
        )
        return UnitCase((input_rows,), (input_rows,), written)

    async def _expected(self, world: _BuiltWorld, model: DraftModel) -> tuple[TypedRows, int]:
        """Return the rows that are meant, and how many of those that are built differ."""
        expected, failures = world.expected, world.failures
        if model.name != self._draft.meant.name:
            expected_rows = await self._meant(world, model)
            if expected_rows is None:
                return await self._rows_of(world, model), 0

            built = f"SELECT * FROM {world.stage.model(model.name)}"
            expected, failures = (
                expected_rows,
                await differing_rows(self._build, built, expected_rows),
            )

        if failures:
            return expected, failures

        # The same rows, with numbers written as PostgreSQL writes them, which dbt compares.
        names = [name for name, _ in expected.columns]
        return await self._rows_of(world, model, names), 0

    async def _meant(self, world: _BuiltWorld, model: DraftModel) -> TypedRows | None:
        """Return the interpreter's rows of a model before the target; None without any."""
        if model.meaning is None or not model.meaning.target.columns:
            return None

        tables = world.world.by_source(model.meaning)
        try:
            meaning = await asyncio.to_thread(evaluate, model.meaning, tables)
        except NotComputable:
            return None

        return _expected_rows(model, meaning)

    async def _input_rows(self, world: _BuiltWorld, name: str) -> TypedRows:
        for rows in world.sources:
            if f"{rows.schema}.{rows.name}" == name:
                return rows

        return await self._rows_of(world, self._draft.model(name))

    async def _rows_of(
        self, world: _BuiltWorld, model: DraftModel, names: Sequence[str] | None = None
    ) -> TypedRows:
        """Return the rows of a model, with values as PostgreSQL's text."""
        return await self._rows_in(world.stage.model(model.name), model, names)

    async def _rows_in(
        self, relation: str, model: DraftModel, names: Sequence[str] | None = None
    ) -> TypedRows:
        types = model.types
        columns = tuple((name, types[name]) for name in names or types)
        listed = ", ".join(f"{quoted(name)}::text" for name, _ in columns)
        rows = await self._build.rows(f"SELECT {listed} FROM {relation}")
        return TypedRows("", model.name, columns, tuple(rows.rows))

    def _tables_behind(self, model: DraftModel) -> set[TableKey]:
        """Return the tables of the datasource that a model is made of."""
        tables: set[TableKey] = set()
        for table in model.select.find_all(exp.Table):
            if table.db:
                tables.add((table.db, table.name))

        read = [other for other in self._draft.models if other.name in model.node.inputs]
        for other in read:
            tables |= self._tables_behind(other)

        return tables


def _expected_rows(model: DraftModel, meaning: Meaning) -> TypedRows:
    types = model.types
    columns = tuple((name, types[name]) for name in meaning.columns)
    return TypedRows("", model.name, columns, tuple(meaning.rows))


def columns_read(draft: Draft, bound: BoundIntent) -> Mapping[TableKey, list[str]]:
    """Return the columns of each table of the datasource that the draft's models read."""
    source_tables = {source.table.key: source.table for source in bound.sources}
    read: dict[TableKey, list[str]] = {}
    for model in draft.models:
        named = {column.name for column in model.select.find_all(exp.Column)}
        for table in model.select.find_all(exp.Table):
            stored = source_tables.get((table.db, table.name))
            if stored is None:
                continue  # another model

            columns = [column.name for column in stored.columns]
            earlier = read.get(stored.key, [])
            own = filter(named.__contains__, columns)
            read[stored.key] = list(dict.fromkeys([*earlier, *own]))

    return read


_LATE_ROWS = Text(
    "回看期内迟到的行，与全量重建的结果一致。",
    "Rows that come late, within the lookback, give what building everything anew gives.",
)
_TITLE = Text(
    "对构造的样例行，模型给出的行与需求的含义一致。",
    "For made-up rows the model gives the rows that the request means.",
)
