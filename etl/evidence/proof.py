"""The evidence for a draft: built over samples, tested, and tested whether its tests can fail."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import InvalidSql, QueryTimeout
from common.text import Text
from common.values import QueryResult
from etl.evidence.draft_checks import checks_of
from etl.evidence.fixture_worlds import World
from etl.evidence.mutants import Mutant, mutants_of
from etl.evidence.sample_build import SampleBuild, made_result, result_of
from etl.evidence.static_checks import findings
from etl.evidence.unit_proof import MutationScore, UnitProof
from etl.meaning.bound import BoundIntent
from etl.meaning.decisions import DecidedFigures, Decision
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import DraftTest
from etl.rendering.dbt_project import dbt_files
from etl.rendering.layout import Layout
from etl.schemas.evidence import (
    BuiltModel,
    EvidenceTest,
    LedgerEntry,
    MeasureTotal,
    MutantReport,
    ScratchReport,
    Survivor,
    TestReport,
)
from etl.scratch.dbt_runs import DbtResult, run_dbt
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_build import ScratchBuild
from etl.scratch.source_sampling import Samples
from postgres.identifiers import quoted

_MOST_MUTANTS = 240


def _nobody() -> None:
    """Tell nobody that a build waits."""


@dataclass(frozen=True)
class ProofOptions:
    """The extent of a proof.

    Attributes:
        name: the name of the run and its attempt, by which its schemas are named.
        mutants: whether broken models are tried.
        preview_rows: most rows of the target that are shown.
        waits: is called when other builds have to end before.
        worlds: made-up rows beside those that are made here.
        reference: the rules' own draft, whose target has to have the same rows; None: it is that.
        decisions: what was decided for each assumption, by its id; what they are about is counted.
    """

    name: str
    mutants: bool = True
    preview_rows: int = 200
    waits: Callable[[], None] = _nobody
    worlds: Sequence[World] = ()
    reference: Draft | None = None
    decisions: Mapping[str, Decision] = field(default_factory=dict)


@dataclass(frozen=True)
class DraftProof:
    """The findings of a proof.

    Attributes:
        tests: those that go into the artefact.
        preview: rows of the target; None when it could not be built.
        failure: PostgreSQL's message when it refused a model, or that a statement took too long.
        decided: what the sampled rows say of the decisions, as far as they could be counted.
    """

    report: TestReport
    tests: tuple[DraftTest, ...]
    preview: QueryResult | None = None
    warnings: tuple[Text, ...] = ()
    failure: InvalidSql | QueryTimeout | None = None
    decided: Mapping[str, DecidedFigures] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Tell whether it is about all rows of the sources."""
        scratch = self.report.scratch
        if scratch is None:
            return False

        return all(table.is_whole for table in scratch.tables.values())


def make_tests(draft: Draft, bound: BoundIntent) -> tuple[DraftTest, ...]:
    """Return the tests that need no build; `prove` adds unit tests."""
    return tuple(checks_of(draft, bound))


async def prove(
    draft: Draft,
    bound: BoundIntent,
    scratch: ScratchDatabase,
    samples: Samples,
    options: ProofOptions,
) -> DraftProof:
    """Build the draft in scratch and test it.

    Raises:
        DatabaseUnavailable: there is no scratch database, or it is one that must not be used.
        QueryTimeout: a statement took too long there.
    """
    clock = _Clock({"sample": samples.ms, "build": 0.0, "test": 0.0, "mutate": 0.0})
    clock.enter("build")
    async with scratch.build(options.name, options.waits) as build:
        proving = _Proving(draft, bound, build, samples, options, clock, scratch.options.dbt)
        try:
            await proving.run()
        except InvalidSql as exc:
            proving.failure = exc

        clock.enter("build")

    clock.enter(None)
    return proving.proof()


class _Clock:
    """Counts the time of each part of the work, each moment for one part."""

    def __init__(self, milliseconds: dict[str, float]) -> None:
        self._milliseconds = milliseconds
        self._part: str | None = None
        self._since = time.perf_counter()

    def enter(self, part: str | None) -> None:
        """Begin a part, or go on with one."""
        now = time.perf_counter()
        if self._part is not None:
            self._milliseconds[self._part] += (now - self._since) * 1000

        self._part = part
        self._since = now

    @property
    def timings_ms(self) -> dict[str, float]:
        return {part: round(ms, 1) for part, ms in self._milliseconds.items()}


@dataclass
class _Findings:
    models: list[BuiltModel] = field(default_factory=list)
    results: list[EvidenceTest] = field(default_factory=list)
    ledger: tuple[LedgerEntry, ...] = ()
    totals: list[MeasureTotal] = field(default_factory=list)
    mutants: MutantReport | None = None
    decided: Mapping[str, DecidedFigures] = field(default_factory=dict)


class _Proving:
    def __init__(
        self,
        draft: Draft,
        bound: BoundIntent,
        build: ScratchBuild,
        samples: Samples,
        options: ProofOptions,
        clock: _Clock,
        dbt: Path | None,
    ) -> None:
        self._draft = draft
        self._bound = bound
        self._build = build
        self._samples = samples
        self._options = options
        self._tests: list[DraftTest] = []
        self._found = _Findings()
        self._clock = clock
        self._dbt = dbt
        self._is_built_by_dbt = False
        self._preview: QueryResult | None = None
        self._sample_build = SampleBuild(draft, bound, build, samples)
        self.failure: InvalidSql | None = None

    async def run(self) -> None:
        """Build the draft, test it, and try its tests on broken models.

        Raises:
            InvalidSql: PostgreSQL refused a model.
        """
        self._clock.enter("sample")
        await self._sample_build.load()
        self._clock.enter("build")
        self._found.models = await self._sample_build.build_models()
        self._clock.enter("test")
        if self._options.reference is not None:
            compared = await self._sample_build.compare_with_draft(self._options.reference)
            self._found.results.append(compared)
            if compared.status == "fail":
                return

        await self._test()
        self._clock.enter("mutate")
        await self._test_units()
        self._clock.enter("build")
        if self._dbt is not None:
            await self._build_by_dbt(self._dbt)

    async def _test(self) -> None:
        # In a thread: trees of large drafts would keep the loop from what others wait for.
        self._tests = list(await asyncio.to_thread(make_tests, self._draft, self._bound))
        results = self._found.results
        for model in self._draft.models:
            wrong = await asyncio.to_thread(_wrong_parts, model)
            results.append(made_result(f"static_{model.name}", "static", model.name, wrong))

        for test in self._tests:
            results.append(await self._sample_build.run(test))

        for name in dict.fromkeys((self._draft.meant.name, self._draft.target.name)):
            again = await self._sample_build.is_same_again(self._draft.model(name))
            results.append(again)

        self._found.totals = await self._sample_build.totals()
        meaning = await self._sample_build.meaning(self._options.decisions)
        if meaning is not None:
            self._found.ledger = (*meaning.ledger, *self._further_entries(meaning.ledger))
            self._found.decided = meaning.decided

        results.append(await self._sample_build.compare(meaning))
        self._preview = await self._sample_build.preview(self._options.preview_rows)

    def _further_entries(self, ledger: Sequence[LedgerEntry]) -> Iterator[LedgerEntry]:
        """Yield the rows that a further model read and gave; why is not known."""
        target = self._draft.target
        if not target.is_further:
            return

        rows = {built.node: built.rows for built in self._found.models}
        last = max((entry.operation for entry in ledger), default=0)
        yield LedgerEntry(
            operation=last + 1,
            table=self._draft.meant.name,
            rows_in=rows[self._draft.meant.name],
            rows_out=rows[target.name],
        )

    async def _test_units(self) -> None:
        units = UnitProof(self._draft, self._bound, self._build)
        await units.build_worlds(self._options.worlds)
        if self._options.mutants:
            mutants = _some(await asyncio.to_thread(_all_mutants, self._draft))
            self._found.mutants = _report(await units.try_mutants(mutants))

        unit_tests = await units.tests()
        late = await units.late_rows()
        for test, failures in [*unit_tests, late] if late else unit_tests:
            self._tests.append(test)
            self._found.results.append(result_of(test, failures))

    async def _build_by_dbt(self, dbt: Path) -> None:
        """Build and test the project as its users will; a test has to pass both ways."""
        layout = Layout(self._draft)
        files = dbt_files(self._draft, self._bound, layout, tuple(self._tests), "en")
        schema = await self._build.further_schema()
        variables = layout.schema_variables(self._build.source_schemas)
        run = await run_dbt(dbt, files, self._build, schema, variables)
        target = self._draft.target
        if run.failure is not None:
            failed = made_result(f"dbt_{target.name}", "contract", target.name, 1)
            self._found.results.append(failed.model_copy(update={"detail": run.failure}))
            return

        self._is_built_by_dbt = True
        self._found.results = list(_with_dbt_results(self._found.results, run.results))
        if any(result.status == "fail" for result in self._found.results):
            return  # dbt builds no model behind one whose tests fail

        built = f"TABLE {quoted(schema)}.{quoted(target.relation)}"
        self._found.results.append(await self._sample_build.compare_with(built))

    # the report

    def proof(self) -> DraftProof:
        """Return what was found so far."""
        return DraftProof(
            report=self._report(),
            tests=tuple(self._tests),
            preview=self._preview,
            warnings=tuple(self._sample_build.warnings),
            failure=self.failure,
            decided=self._found.decided,
        )

    def _report(self) -> TestReport:
        findings = self._found
        failed = []
        for result in findings.results:
            if result.status == "fail" and not result.is_warning:
                failed.append(result)

        is_whole = self.failure is None and not failed
        tables = {
            f"{schema}.{name}": sample.summary
            for (schema, name), sample in self._samples.tables.items()
        }
        scratch = ScratchReport(
            server_version=self._build.server_version, schema=self._build.schema, tables=tables
        )
        return TestReport(
            status="passed" if is_whole else "failed",
            built_by="dbt" if self._is_built_by_dbt else "sql",
            scratch=scratch,
            models=findings.models,
            tests=findings.results,
            ledger=list(findings.ledger),
            totals=findings.totals,
            mutants=findings.mutants,
            timings_ms=self._clock.timings_ms,
        )


def _wrong_parts(model: DraftModel) -> int:
    return len(list(findings(model)))


def _with_dbt_results(
    results: Iterable[EvidenceTest], by_dbt: Iterable[DbtResult]
) -> Iterator[EvidenceTest]:
    """Yield the results of the tests, then a failure for each model that dbt could not build.

    A test that fails in dbt has failed.
    """
    models: list[DbtResult] = []
    tests: dict[str, DbtResult] = {}
    for one in by_dbt:
        if one.kind == "model":
            models.append(one)
        else:
            tests[one.name] = one

    for result in results:
        yield _with_dbt(result, tests.get(result.id))

    for model in models:
        if model.status == "error":
            failed = made_result(f"dbt_{model.name}", "contract", model.name, 1)
            yield failed.model_copy(update={"detail": model.message})


def _with_dbt(result: EvidenceTest, other: DbtResult | None) -> EvidenceTest:
    """Return a test's result, failed where dbt found a failure."""
    if other is None or other.status in ("pass", "success", "skipped"):
        return result

    failures = max(result.failures, other.failures, 1)
    changes = {"status": "fail", "failures": failures, "detail": other.message or None}
    return result.model_copy(update=changes)


def _all_mutants(draft: Draft) -> list[Mutant]:
    return list(mutants_of(draft))


def _some(mutants: list[Mutant]) -> list[Mutant]:
    """Return at most `_MOST_MUTANTS` of the mutants, taken evenly."""
    if len(mutants) <= _MOST_MUTANTS:
        return mutants

    step = len(mutants) / _MOST_MUTANTS
    return [mutants[int(number * step)] for number in range(_MOST_MUTANTS)]


def _report(score: MutationScore) -> MutantReport:
    survivors = [
        Survivor(operator=survivor.operator, node=survivor.node, detail=survivor.detail)
        for survivor in score.survivors
    ]
    tried = score.caught + score.equivalent + len(survivors)
    return MutantReport(
        tried=tried, caught=score.caught, equivalent=score.equivalent, survivors=survivors
    )
