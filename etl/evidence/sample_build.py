"""The draft built over the samples: rows of models, tests, totals, and what the rows mean."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import psycopg

from common.errors import CituError
from common.text import Text
from common.values import QueryResult
from etl.evidence.increments import built_again
from etl.evidence.reconciliation import Reconciliation, reconciliations
from etl.evidence.stage import BuildStage, difference, model_table, sample_stage
from etl.meaning.bound import BoundIntent
from etl.meaning.decisions import Decision
from etl.meaning.evaluation import NotComputable
from etl.meaning.interpreter import Meaning, evaluate
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_test import DraftTest, TypedRows
from etl.rendering.column_tests import failing_rows
from etl.schemas.evidence import BuiltModel, EvidenceTest, MeasureTotal, TestStatus
from etl.scratch.scratch_build import ScratchBuild
from etl.scratch.scratch_loading import create_table, load_samples
from etl.scratch.scratch_values import as_text
from etl.scratch.source_sampling import Samples
from postgres.identifiers import quoted, quoted_list

_CONTRACT = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a
WHERE a.attrelid = {relation}::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_MEANT = "etl meant rows"
_NOT_COMPARED = Text(
    "样本中的数据无法由解释器计算（例如无穷大或公元前的时间），目标表没有与它核对。",
    "The interpreter can't compute the sampled rows (infinite or BC moments, for example): the "
    "target was not compared with it.",
)


class SampleBuild:
    """The build of a draft over samples."""

    def __init__(
        self, draft: Draft, bound: BoundIntent, build: ScratchBuild, samples: Samples
    ) -> None:
        self._draft = draft
        self._bound = bound
        self._build = build
        self._samples = samples
        self.stage: BuildStage | None = None
        self.warnings: list[Text] = []

    async def load(self) -> None:
        """Copy the samples into scratch."""
        self.warnings += await load_samples(self._build, self._samples)
        await self._index()
        self.stage = sample_stage(self._build, list(self._samples.tables))

    async def _index(self) -> None:
        """Index keys, by which the independent queries look rows up."""
        for (schema, name), sample in self._samples.tables.items():
            relation = f"{quoted(self._build.source_schemas[schema])}.{quoted(name)}"
            key = []
            for one in sample.table.primary_key:
                if one in sample.columns:
                    key.append(one)

            if key:
                await self._build.execute(f"CREATE INDEX ON {relation} ({quoted_list(key)})")

    @property
    def _stage(self) -> BuildStage:
        assert self.stage is not None, "samples are loaded first"
        return self.stage

    async def build_models(self) -> list[BuiltModel]:
        """Build the models as the plan says; return what was built.

        Raises:
            InvalidSql: PostgreSQL refused a model.
        """
        built = []
        for model in self._draft.models:
            started = time.perf_counter()
            kind = "VIEW" if model.node.materialization == "view" else "TABLE"
            relation = self._stage.model(model.name)
            query = self._stage.text(model.select)
            await self._build.execute(f"CREATE {kind} {relation} AS {query}")
            counted = await self._build.rows(f"SELECT count(*) FROM {relation}")
            ms = round((time.perf_counter() - started) * 1000, 1)
            built.append(BuiltModel(node=model.name, rows=int(counted.rows[0][0]), ms=ms))

        return built

    # tests

    async def run(self, test: DraftTest) -> EvidenceTest:
        """Run a test that is no unit test."""
        if test.kind == "contract":
            failures = await self._broken_contract(self._draft.model(test.node))
        else:
            query = failing_rows(test)
            if query is None:
                return result_of(test, None)

            failures = await self._count(self._stage.text(query))

        return result_of(test, failures)

    async def _count(self, query: str) -> int:
        rows = await self._build.rows(f"SELECT count(*) FROM ({query}) AS failing")
        return int(rows.rows[0][0])

    async def _broken_contract(self, model: DraftModel) -> int:
        relation = self._stage.model(model.name).replace("'", "''")
        rows = await self._build.rows(_CONTRACT.format(relation=f"'{relation}'"))
        built = [(str(name), _without_modifier(str(type_))) for name, type_ in rows.rows]
        planned = [(name, _without_modifier(type_)) for name, type_ in model.types.items()]
        missing = [pair for pair in planned if pair not in built]
        surplus = abs(len(built) - len(planned))
        return len(missing) + surplus

    async def is_same_again(self, target: DraftModel) -> EvidenceTest:
        """Build a model once more over the same rows and compare it with what is there."""
        columns = list(target.types)
        there = self._stage.model(target.name)
        again = self._stage.text(target.select)
        if target.node.materialization == "incremental":
            again = built_again(target, self._stage, there)

        query = difference(again, f"TABLE {there}", columns)
        rows = await self._build.rows(query)
        return made_result(f"idempotent_{target.name}", "idempotent", target.name, rows.rows[0][0])

    # figures

    async def totals(self) -> list[MeasureTotal]:
        """Return the measures' totals, as built and by queries of their own."""
        totals = []
        for reconciliation in reconciliations(self._bound):
            total = await self._total(reconciliation)
            if total is not None:
                totals.append(total)

        return totals

    async def _total(self, measure: Reconciliation) -> MeasureTotal | None:
        if measure.built is None or measure.independent is None:
            return None

        built = self._stage.text(measure.built)
        independent = self._stage.text(measure.independent)
        rows = await self._build.rows(
            f"SELECT b.v::text, i.v::text FROM ({built}) AS b (v), ({independent}) AS i (v)"
        )
        shown, other = rows.rows[0]
        return MeasureTotal(
            measure=measure.name,
            built=shown,
            independent=other,
            difference=_apart(shown, other),
            of="whole" if self._samples.is_whole else "sample",
        )

    # what the rows mean

    async def meaning(self, decisions: Mapping[str, Decision]) -> Meaning | None:
        """Return what the interpreter says of the sampled rows; None where it can't.

        Args:
            decisions: whose rows it counts.
        """
        try:
            tables = {}
            for source in self._bound.sources:
                tables[source.name] = await self._sampled_rows(source.table.key)

            return await asyncio.to_thread(evaluate, self._bound, tables, decisions)
        except (NotComputable, CituError, psycopg.Error):
            return None

    async def _sampled_rows(self, key: tuple[str, str]) -> Sequence[Mapping[str, Any]]:
        rows = await self._build.rows(f"SELECT * FROM {self._stage.tables[key]}")
        return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]

    async def compare(self, meaning: Meaning | None) -> EvidenceTest:
        """Compare the target with the rows that the interpreter says are meant.

        Without them the test is skipped, and a warning says so.
        """
        target = self._draft.meant
        test_id = f"reconcile_meaning_{target.name}"
        if meaning is None:
            self.warnings.append(_NOT_COMPARED)
            return EvidenceTest(id=test_id, kind="reconcile", node=target.name, status="skipped")

        columns = tuple((name, target.types[name]) for name in meaning.columns)
        rows = TypedRows("", _MEANT, columns, tuple(meaning.rows))
        relation = f"{quoted(self._build.schema)}.{quoted(_MEANT)}"
        await self._build.execute(create_table(relation, columns))
        await self._build.copy_values(self._build.schema, rows)
        query = difference(
            f"TABLE {self._stage.model(target.name)}", f"TABLE {relation}", meaning.columns
        )
        differing = await self._build.rows(query)
        return made_result(test_id, "reconcile", target.name, differing.rows[0][0])

    async def compare_with(self, built: str) -> EvidenceTest:
        """Compare the target with the same as another program built it, given as a query."""
        target = self._draft.target
        columns = list(target.types)
        query = difference(f"TABLE {self._stage.model(target.name)}", built, columns)
        rows = await self._build.rows(query)
        test_id = f"reconcile_dbt_{target.name}"
        return made_result(test_id, "reconcile", target.name, rows.rows[0][0])

    async def compare_with_draft(self, reference: Draft) -> EvidenceTest:
        """Compare the target with that of another draft of the same intent, over the same rows.

        Raises:
            InvalidSql: PostgreSQL refused a model of the other draft.
        """
        target = self._draft.meant
        schema = await self._build.further_schema()
        stage = BuildStage(schema, self._stage.tables)
        for model in reference.models:
            await self._build.execute(model_table(stage, model))

        columns = list(reference.meant.types)
        there = f"TABLE {self._stage.model(target.name)}"
        query = difference(there, f"TABLE {stage.model(reference.meant.name)}", columns)
        rows = await self._build.rows(query)
        test_id = f"reconcile_rules_{target.name}"
        return made_result(test_id, "reconcile", target.name, rows.rows[0][0])

    async def preview(self, most_rows: int) -> QueryResult:
        """Return the first rows of the target, in the order of its grain."""
        target = self._draft.target
        relation = self._stage.model(target.name)
        order = quoted_list(target.node.grain)
        sorting = f"ORDER BY {order} " if order else ""
        query = f"SELECT * FROM {relation} {sorting}LIMIT {most_rows + 1}"
        try:
            preview_rows = await self._build.rows(query)
        except psycopg.DataError:  # moments that Python's calendar lacks: infinity, 44 BC
            texts = ", ".join(f"{quoted(name)}::text" for name in target.types)
            query = f"SELECT {texts} FROM {relation} {sorting}LIMIT {most_rows + 1}"
            preview_rows = await self._build.rows(query)

        rows = tuple([_shown(value) for value in row] for row in preview_rows.rows[:most_rows])
        types = tuple(target.types.values())
        return QueryResult(preview_rows.columns, types, rows, len(preview_rows.rows) > most_rows)


def result_of(test: DraftTest, failures: int | None) -> EvidenceTest:
    """Return the result of a test; without a number of failures it was not run."""
    status: TestStatus = "fail" if failures else "pass"
    return EvidenceTest(
        id=test.id,
        kind=test.kind,
        node=test.node,
        status="skipped" if failures is None else status,
        failures=failures or 0,
        is_warning=test.is_warning,
    )


def made_result(test_id: str, kind: Any, node: str, failures: int) -> EvidenceTest:
    """Return the result of a check that is no test of the artefact."""
    return EvidenceTest(
        id=test_id,
        kind=kind,
        node=node,
        status="fail" if failures else "pass",
        failures=failures,
    )


def _apart(built: str | None, independent: str | None) -> str | None:
    """Return the difference of two numbers as text; None where one is no number."""
    try:
        return str(Decimal(built or "") - Decimal(independent or ""))
    except InvalidOperation:
        return None


def _without_modifier(type_: str) -> str:
    return type_.partition("(")[0].strip()


def _shown(value: Any) -> Any:
    """Return a value as results have it: a number where it is finite, else text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal) and math.isfinite(value):
        return value

    return as_text(value)
