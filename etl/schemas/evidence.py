"""What a build showed: tests, totals, mutants, and the ledger of rows."""

from typing import Any, Literal

from pydantic import Field

from etl.schemas.strict import StrictModel

TestStatus = Literal["pass", "fail", "skipped"]
TestKind = Literal[
    "unit",
    "grain",
    "reconcile",
    "not_null",
    "unique",
    "relationships",
    "accepted_values",
    "idempotent",
    "late_rows",
    "contract",
    "static",
]


class SampledTable(StrictModel):
    """How much of a source was copied: `rows` of `of`, which is null when it is not known."""

    rows: int
    of: int | None
    is_whole: bool


class ScratchReport(StrictModel):
    """Where the draft was built, and from which samples."""

    server_version: str
    schema_: str = Field(alias="schema")
    tables: dict[str, SampledTable]


class BuiltModel(StrictModel):
    """A node that was built."""

    node: str
    rows: int
    ms: float


class EvidenceTest(StrictModel):
    """A test of the draft; `failures` counts the rows that break it."""

    id: str
    kind: TestKind
    node: str
    status: TestStatus
    failures: int = 0
    detail: str | None = None
    is_warning: bool = False


class LedgerEntry(StrictModel):
    """Rows that came into an operation and went out of it, and why."""

    operation: int
    table: str
    rows_in: int
    rows_out: int
    filtered: int = 0
    unmatched: int = 0
    repeated: int = 0
    null_keys: int = 0


class MeasureTotal(StrictModel):
    """A measure's total as built and by an independent query; decimals as text."""

    measure: str
    built: str | None
    independent: str | None
    difference: str | None
    of: Literal["sample", "whole"]


class Survivor(StrictModel):
    """A broken model that no test noticed."""

    operator: str
    node: str
    detail: str


class MutantReport(StrictModel):
    """How many broken models the tests noticed: tried = caught + equivalent + survivors."""

    tried: int
    caught: int
    equivalent: int
    survivors: list[Survivor] = Field(default_factory=list)


class TestReport(StrictModel):
    """The evidence for a draft."""

    __test__ = False  # no test class, whatever its name says

    status: Literal["passed", "failed", "not_run"]
    built_by: Literal["dbt", "sql"] | None = None
    scratch: ScratchReport | None = None
    models: list[BuiltModel] = Field(default_factory=list)
    tests: list[EvidenceTest] = Field(default_factory=list)
    ledger: list[LedgerEntry] = Field(default_factory=list)
    totals: list[MeasureTotal] = Field(default_factory=list)
    mutants: MutantReport | None = None
    diff: dict[str, Any] | None = None
    timings_ms: dict[str, float] = Field(default_factory=dict)
