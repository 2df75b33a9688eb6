"""The plain, immutable values that layers exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, get_args

from common.meanings import ColumnMeaning, Columns, Metric, TableMeaning, has_columns
from common.text import Text

T = TypeVar("T")

QuestionType = Literal["DATABASE", "CHAT"]
TurnType = Literal["DATABASE", "CHAT", "ETL"]
"""What a turn of a conversation was: a question of one kind, or a draft of a transformation."""
RelationKind = Literal["table", "view", "materialized view"]
PeriodUnit = Literal["hour", "day", "week", "month", "quarter", "year"]
"""What times are cut to."""

# ------------------------------------------------------------------------------
# a database and its tables


@dataclass(frozen=True)
class Column:
    """A column as the catalogue describes it.

    Attributes:
        type: PostgreSQL's own spelling (`format_type`), for example `numeric(12,2)`.
        values: stored values known by sampling (text columns with few distinct ones); empty means
            unknown, not none.
        is_complete: whether `values` are all the distinct values there were at sampling time.
        allowed: the only values it can have, as text and in their order: an enum's labels, or what
            a CHECK lists; empty when nothing says so.
        period: the first and the last day (ISO dates) of a date or timestamp column, as of sampling
            or the planner's statistics.
        meaning: what the semantic file says of it.
    """

    name: str
    type: str
    comment: str | None = None
    nullable: bool = True
    values: tuple[str, ...] = ()
    is_complete: bool = False
    allowed: tuple[str, ...] = ()
    period: tuple[str, str] | None = None
    meaning: ColumnMeaning | None = None


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key: `columns` of its table reference `target_columns` of the table `target`."""

    columns: tuple[str, ...]
    target: tuple[str, str]
    target_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view that the connected role may read.

    Attributes:
        kind: `table` (also partitioned and foreign ones), `view` or `materialized view`.
        unique_keys: the columns of each UNIQUE constraint.
        row_estimate: the planner's row count; -1 when never analysed or a view.
        meaning: what the semantic file says of it.
        distributed_by: the columns by which its rows are spread over several servers; empty where
            they are not.
        has_hidden_rows: whether rules may hide rows or values of it from those who see this
            catalogue; then nothing that it stores is known here: no values, no periods, no number
            of rows.
    """

    schema: str
    name: str
    kind: RelationKind
    columns: tuple[Column, ...]
    comment: str | None = None
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    row_estimate: int = -1
    meaning: TableMeaning | None = None
    distributed_by: tuple[str, ...] = ()
    has_hidden_rows: bool = False

    # One object, because what is worked out of thousands of tables refers to it many times
    @cached_property
    def key(self) -> tuple[str, str]:
        """Return (schema, name), to which foreign keys refer."""
        return (self.schema, self.name)

    @property
    def declared_keys(self) -> list[tuple[str, ...]]:
        """Return the columns of each key that the table declares, the primary key's first."""
        return [key for key in (self.primary_key, *self.unique_keys) if key]

    @property
    def referring_columns(self) -> frozenset[str]:
        """Return the names of all columns of its foreign keys."""
        names: set[str] = set()
        for key in self.foreign_keys:
            names.update(key.columns)

        return frozenset(names)

    def column(self, name: str) -> Column | None:
        """Return the column of that exact name."""
        for column in self.columns:
            if column.name == name:
                return column

        return None


@dataclass(frozen=True)
class Catalog:
    """The tables that the connected role can read, as of one moment.

    Attributes:
        search_path: schemas whose tables need no qualification, in order.
        metrics: figures that the semantic file defines over these tables.
    """

    tables: tuple[Table, ...]
    search_path: tuple[str, ...] = ("public",)
    metrics: tuple[Metric, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str], Table]:
        """Return the tables by (schema, name)."""
        return {table.key: table for table in self.tables}

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Table, ...]]:
        """Return the tables by name, whatever their schema."""
        named: dict[str, tuple[Table, ...]] = {}
        for table in self.tables:
            named[table.name] = (*named.get(table.name, ()), table)

        return named

    def coherent(self) -> "Catalog":
        """Return the catalogue without keys, meanings and metrics on columns that it lacks."""
        columns: dict[tuple[str, str], frozenset[str]] = {}
        for table in self.tables:
            columns[table.key] = frozenset(column.name for column in table.columns)

        tables = [_with_keys_among(table, columns) for table in self.tables]
        metrics = []
        for metric in self.metrics:
            if not self._has_rows_of(metric, columns):
                continue

            reduced = metric.among(columns[metric.table])
            if reduced is not None:
                metrics.append(reduced)

        return replace(self, tables=tuple(tables), metrics=tuple(metrics))

    def _has_rows_of(self, metric: Metric, columns: Columns) -> bool:
        """Tell whether its table is there with the columns of its filter.

        Without them, the figure would be another one.
        """
        table = self.by_key.get(metric.table)
        if table is None:
            return False
        if table.meaning is None:
            return True

        return columns[table.key].issuperset(table.meaning.filter_columns)


def _with_keys_among(table: Table, columns: Columns) -> Table:
    own = columns[table.key]
    foreign = []
    for key in table.foreign_keys:
        has_target = has_columns(columns, key.target, key.target_columns)
        if has_target and own.issuperset(key.columns):
            foreign.append(key)

    primary = table.primary_key
    if not own.issuperset(primary):
        primary = ()

    meaning = table.meaning
    if meaning is not None:
        meaning = meaning.among(table.key, columns)

    return replace(table, primary_key=primary, foreign_keys=tuple(foreign), meaning=meaning)


# ------------------------------------------------------------------------------
# the result of a query


@dataclass(frozen=True)
class PlanEstimate:
    """The planner's estimate for a statement.

    Attributes:
        total_cost: in its cost units.
        rows: rows of the result.
        scans: names of the tables it reads, the most expensive first.
        is_shown: whether it may be told to who asks; not where it counts rows that are hidden from
            them.
    """

    total_cost: float
    rows: int
    scans: tuple[str, ...] = ()
    is_shown: bool = True

    def shown(self) -> dict[str, Any] | None:
        """Return the estimate as answers show it; None when it may not be told."""
        if not self.is_shown:
            return None

        return {"total_cost": self.total_cost, "rows": self.rows, "scans": self.scans}


@dataclass(frozen=True)
class QueryResult:
    """Rows ready for JSON.

    Attributes:
        columns: names, in order; duplicates stay as PostgreSQL gives them.
        column_types: PostgreSQL type names (`int8`, `numeric`, `date` …), one per column.
        rows: one list per row; values are None, bool, int, float, Decimal (sent as exact JSON
            numbers), str, or the lists and dicts of arrays and JSON columns. Dates and times are
            ISO 8601 text.
        row_count: number of rows here, at most the row cap.
        is_limited: whether the caps cut rows, or text in cells.
        cut_columns: columns with cells that were too long; these are cut and end in `…`.
        notices: what the database's server can't do, and what takes its place.
    """

    columns: tuple[str, ...]
    column_types: tuple[str, ...]
    rows: tuple[list[Any], ...]
    is_limited: bool = False
    cut_columns: tuple[str, ...] = ()
    notices: tuple[Text, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.rows)


# ------------------------------------------------------------------------------
# earlier turns


@dataclass(frozen=True)
class Turn:
    """One question of a conversation and its answer, or why it has none.

    Attributes:
        run_id: the id of the run that answered it.
        question_type, routing_mode: what it was taken for and how; None when `failure` is given.
        answer: the text the user was shown.
        sql, row_count: of an answer from the database, else None; with a `failure`, the SQL that it
            was about.
        columns, rows: the first few rows of the result, as JSON values.
        asked_at: ISO 8601, UTC, milliseconds.
        understood: what the question was understood as (`Sql.understood`, `NoSql.understood`); None
            when whoever answered it said nothing of that, empty when its words don't tell.
        described: `column_types`, `labels`, `units`, `periods`, `formats` and `totals` of these
            columns and the `conditions` of the rows, as the answer had them; empty for a turn of
            before they were kept.
        all_rows: all rows of a small result, so that it can be shown again as it was; else empty.
        chart: what the rows were shown as; None where a table showed them.
        offers: `choices`, `rewrites` and `follow_ups`, as far as the answer had them.
        failure: what is told of a question that ended in an error: `error_type`, `message`,
            `error`, `retryable` and `hint` as the error had them. It is shown to its user, and
            nothing is answered by it: see `Conversations.recent`.
        database: the name of the database that it is about; None: the default one.
    """

    run_id: str
    question: str
    question_type: TurnType | None
    routing_mode: str | None
    answer: str
    asked_at: str
    sql: str | None = None
    row_count: int | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    understood: Mapping[str, Any] | None = field(default=None, hash=False)
    described: Mapping[str, list[Any]] = field(default_factory=dict, hash=False)
    all_rows: tuple[tuple[Any, ...], ...] = ()
    chart: Mapping[str, Any] | None = field(default=None, hash=False)
    offers: Mapping[str, list[str]] = field(default_factory=dict, hash=False)
    failure: Mapping[str, Any] | None = field(default=None, hash=False)
    database: str | None = None


# ------------------------------------------------------------------------------
# results of skills


@dataclass(frozen=True)
class Usage:
    """The use of the model: calls attempted, and tokens as the endpoint reports them."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.llm_calls + other.llm_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


AnalysisKind = Literal["describe", "shares", "change", "outliers", "forecast"]
"""Analyses of a result's rows."""
ANALYSIS_KINDS: tuple[AnalysisKind, ...] = get_args(AnalysisKind)


@dataclass(frozen=True)
class Classification:
    """The kind of a question.

    Attributes:
        confidence: 0 to 1.
        method: `rule_based_strong_business`, `rule_based_medium_business`, `rule_based_follow_up`,
            `rule_based_chat`, `rule_based_default`, `llm` or `direct`.
        reason: one sentence, in the language of the answer.
        analysis: what computing may answer, for a question about the last result.
    """

    question_type: QuestionType
    confidence: float
    method: str
    reason: str
    analysis: tuple[AnalysisKind, ...] = ()


FailureReason = Literal[
    "missing_database_info", "ambiguous_question", "llm_explanation", "unknown_generation_failure"
]


@dataclass(frozen=True)
class Sql:
    """A statement that answers the question, not yet proven safe.

    Attributes:
        understood: the question's structure as JSON, which only who wrote it can read; kept with
            the turn, so that a follow-up can go on from it.
    """

    text: str
    understood: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Offer:
    """A question that the user may ask next.

    Attributes:
        sql: what answers it; None for a choice after which something else is asked back.
    """

    question: str
    sql: str | None = None


@dataclass(frozen=True)
class NoSql:
    """No statement could be written.

    Attributes:
        prompt: tells the user what to do, in the language of the answer.
        understood: what was understood of a question that asks back, and what is missing; see
            `Sql`.
        choices: what may be answered to it, each of which completes the question.
        rewrites: the same question in other words that can be answered, the nearest first; not yet
            run.
        examples: where there are no rewrites, other questions about the same tables; not yet run.
    """

    reason: FailureReason
    prompt: str
    understood: Mapping[str, Any] | None = field(default=None, hash=False)
    choices: tuple[Offer, ...] = ()
    rewrites: tuple[Offer, ...] = ()
    examples: tuple[Offer, ...] = ()


Draft = Sql | NoSql


@dataclass(frozen=True)
class SkillResult(Generic[T]):
    """A skill's conclusion, with its cost and warnings for the user.

    Attributes:
        prompt_parts: the parts of the prompt that a model was sent by name, each with its estimated
            tokens.
        offers: questions to ask next that the conclusion names.
    """

    value: T
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    prompt_parts: Mapping[str, int] = field(default_factory=dict, hash=False)
