"""Answers to questions, the events on the way to them, and runs."""

from typing import Any, Literal

from pydantic import Field

from agent.answers.requested_chart import ChartType
from agent.extensions.points import Tone
from agent.flows.ask.state import GenerationMethod
from agent.progress import ToolCallStatus
from agent.tools.export_tool import ExportFormat
from api.models.analysis_models import FindingModel
from api.models.model_base import Envelope, ReplyModel, Sometimes, Timestamp
from common.text import Lang
from common.values import FailureReason, PeriodUnit, QuestionType
from knowledge.results.written_values import NumberFormat
from store import RunState


class AnswerExportModel(ReplyModel):
    call_id: str
    format: ExportFormat
    url: str = Field(description="A path of this service")


class AnswerClassificationInfoModel(ReplyModel):
    question_type: Sometimes[QuestionType] = None
    confidence: Sometimes[float] = Field(None, ge=0, le=1)
    method: Sometimes[str] = None
    reason: Sometimes[str] = None


class AnswerFigureModel(ReplyModel):
    figure: str = Field(description="As it is written")
    call_id: str


class AnswerSourceModel(ReplyModel):
    call_id: str
    tool: str
    sql: str
    row_count: int = Field(ge=0)


class AnswerExampleModel(ReplyModel):
    """The example whose SQL it is, with the literals of the question; only with verified_example"""

    example_id: str
    trust: Literal["personal", "reviewed", "certified"]


class BudgetLeftModel(ReplyModel):
    """The rest of the caller's budget for models today"""

    tokens_left: int | None = Field(description="null: tokens have no bound")
    money_left: float | None = Field(description="null: money has no bound")
    currency: str
    renews_at: Timestamp


class AnswerUsageModel(ReplyModel):
    llm_calls: Sometimes[int] = None
    prompt_tokens: Sometimes[int] = None
    completion_tokens: Sometimes[int] = None
    budget: Sometimes[BudgetLeftModel] = Field(
        None, description="Where the operator has set budgets"
    )


class QueryResultModel(ReplyModel):
    columns: list[str]
    column_types: list[str] = Field(description="PostgreSQL type names")
    labels: Sometimes[list[str]] = Field(
        None, description="What the columns are called, in the answer's language"
    )
    units: Sometimes[list[str | None]] = Field(
        None,
        description="In what the columns' numbers are measured; null when they have no unit or "
        "it isn't known",
    )
    periods: Sometimes[list[PeriodUnit | None]] = Field(
        None,
        description="The unit that a column's times are cut to: with `month`, 2026-10-01 "
        "means October 2026",
    )
    formats: Sometimes[list[NumberFormat | None]] = Field(
        None,
        description="How a column's numbers are written: `money` in groups of three digits with "
        "two decimals, `number` in groups, `percent` in groups with two decimals at most, "
        "`plain` as they are (years, keys); null for a column of other values",
    )
    value_labels: Sometimes[list[dict[str, str] | None]] = Field(
        None,
        description="What readers call the stored values of a column, by the value as text: codes "
        "that the column's comment or the semantic file explains; null for a column without. "
        "Absent where no column has any",
    )
    rows: list[list[Any]] = Field(
        description="One value per column. Numbers keep all their digits; dates and times are "
        "ISO 8601"
    )
    totals: Sometimes[list[Any]] = Field(
        None,
        description="What each column of sums or counts adds up to over all rows; null for a "
        "column whose values must not be added. Absent when there is no such column, or only some "
        "of the rows are here",
    )
    conditions: Sometimes[list[str]] = Field(
        None,
        description="Of which rows the figures are, in words: the period and the conditions of "
        "the query. Only with a `chart`; empty: of all rows",
    )
    row_count: int
    is_limited: bool = Field(
        description="Whether there was more than is shown: rows, or text in cells"
    )
    cut_columns: Sometimes[list[str]] = Field(
        None,
        description="Columns in which values were too long: what is kept of those is text that "
        "ends in …. Only there when there are any",
    )


class ChartModel(ReplyModel):
    """A chart that shows the result better than its table. Absent when a table is best"""

    type: ChartType
    x: str | None = Field(
        description="The column along the horizontal axis, or of a pie's slices; null for a number"
    )
    y: str = Field(description="The column with the figures")
    series: str | None = Field(description="The column whose values have a line or a colour each")
    title: str
    unit: str | None = Field(description="Of y")
    others: Sometimes[list[str]] = Field(
        None, description="Columns of further figures of that unit, drawn beside y"
    )
    step: Sometimes[float] = Field(
        None, description="Of a histogram: figures of x that far apart are added up in one bar"
    )
    order: Sometimes[list[Any]] = Field(
        None, description="The values of x as they are drawn; absent: as the rows have them"
    )
    series_order: Sometimes[list[Any]] = Field(None, description="The same of series")


class CardFactModel(ReplyModel):
    label: str
    value: str


class CardModel(ReplyModel):
    """A card that one of the operator's renderers adds to the answer; plain text"""

    title: str
    text: str
    tone: Tone
    facts: list[CardFactModel]
    share: Sometimes[float] = Field(None, description="Drawn as a bar", ge=0, le=1)
    link: Sometimes[str] = Field(None, description="Where the title leads")


class ChosenDatabaseModel(ReplyModel):
    name: str
    source: Literal[
        "request", "only", "conversation", "name", "words", "model", "user", "default"
    ] = Field(
        description="Why that one: the request named it, the caller may ask no other, the "
        "conversation was about it, the question calls it by its name, it knows the question's "
        "words best, the model chose it among several that do, the user chose it, or it is the "
        "default"
    )


class AnswerFields(ReplyModel):
    response: str
    response_type: QuestionType
    sql: Sometimes[str] = None
    query_result: Sometimes[QueryResultModel] = None
    chart: Sometimes[ChartModel] = None
    exports: Sometimes[list[AnswerExportModel]] = Field(
        None,
        description="Files of rows that the user was offered; each is made when it is fetched, "
        "as long as the run is kept",
    )
    summary: str | None = None
    sql_generation_failed: Sometimes[bool] = None
    failure_reason: Sometimes[FailureReason] = None
    choices: Sometimes[list[str]] = Field(
        None,
        description="Answers to the question back that `response` asks: each, asked next in the "
        "conversation, completes the question before it",
        min_length=1,
    )
    rewrites: Sometimes[list[str]] = Field(
        None,
        description="Questions near to the refused one that find rows",
        min_length=1,
        max_length=2,
    )
    follow_ups: Sometimes[list[str]] = Field(
        None,
        description="Questions to ask next in the conversation. Missing when they were not ready "
        "in time",
        min_length=1,
        max_length=3,
    )
    cards: Sometimes[list[CardModel]] = Field(
        None, description="By RESULT_RENDERERS", min_length=1, max_length=6
    )
    findings: Sometimes[list[FindingModel]] = Field(
        None,
        description="Of a question about the last result: what was computed of its rows",
        min_length=1,
    )
    database: Sometimes[ChosenDatabaseModel] = Field(
        None, description="The database that was asked; only where there are several"
    )
    conversation_id: str
    run_id: str
    execution_path: list[str]
    classification_info: AnswerClassificationInfoModel
    agent: Sometimes[str] = Field(None, description="Which agent answered")
    figures: Sometimes[list[AnswerFigureModel]] = Field(
        None,
        description="Of tool agents: each figure of the response with the call that gave it; "
        "`warnings` names those that no call gave",
    )
    sources: Sometimes[list[AnswerSourceModel]] = Field(
        None, description="Of tool agents: the queries that were run, oldest first"
    )
    routing_mode_used: str = Field(description="`agent` with a tool agent")
    routing_mode_source: Literal["request", "configuration"]
    sql_repair_applied: bool
    generation_method: Sometimes[GenerationMethod] = Field(
        None, description="Who wrote the SQL; only where there is any"
    )
    example: Sometimes[AnswerExampleModel] = Field(
        None,
        description="The example whose SQL it is, with the literals of the question; only with "
        "verified_example",
    )
    prompt_parts: Sometimes[dict[str, dict[str, int]]] = Field(
        None,
        description="By prompt (write_sql, repair_sql): its parts in their order, and the total, "
        "in estimated tokens; only where a model was asked for SQL",
    )
    warnings: list[str]
    usage: AnswerUsageModel
    timings_ms: dict[str, float]
    timestamp: Timestamp


class AnswerModel(AnswerFields):
    """An answer; `type` equals `response_type`"""

    type: QuestionType


class CompletedAnswerModel(AnswerFields):
    """`data` of a stream's last frame: the answer"""

    type: Literal["completed"]


class AskedUserModel(ReplyModel):
    """Instead of an answer: the run asks its user something and waits for `resume`"""

    type: Literal["question"]
    interrupt_id: str
    kind: str
    prompt: str
    choices: Sometimes[list[str]] = Field(None, description="One of them is the answer")
    schema_: Sometimes[dict[str, Any]] = Field(
        None,
        description="JSON Schema of the answer; without choices and schema any text is one",
        alias="schema",
    )
    conversation_id: str
    run_id: str
    timestamp: Timestamp


class UserQuestionModel(ReplyModel):
    """The question of a waiting run; only there while it waits"""

    interrupt_id: str
    kind: str
    prompt: str
    choices: Sometimes[list[str]] = Field(None, description="One of them is the answer")
    schema_: Sometimes[dict[str, Any]] = Field(
        None,
        description="JSON Schema of the answer; without choices and schema any text is one",
        alias="schema",
    )


class ToolEventModel(ReplyModel):
    """`data` of a frame: a tool's call begins or ends"""

    type: Literal["tool"]
    node: str
    call_id: str = Field(description="Unique within the run")
    name: str
    display_name: str
    arguments: dict[str, Any] = Field(description="As the model gave them, long ones shortened")
    status: ToolCallStatus
    ms: float | None = Field(description="null while it runs")
    summary: str | None = Field(description="What came of it, in one line; null while it runs")
    conversation_id: str
    run_id: str
    timestamp: Timestamp


class ResultEventModel(ReplyModel):
    """`data` of a frame: rows that a call found on the way to the answer"""

    type: Literal["result"]
    node: str
    call_id: str
    sql: str
    query_result: QueryResultModel
    chart: Sometimes[ChartModel] = None
    conversation_id: str
    run_id: str
    timestamp: Timestamp


class RunModel(ReplyModel):
    run_id: str
    conversation_id: str
    question: str
    state: RunState
    started_at: Timestamp
    last_event_id: str
    result: Envelope | None = Field(
        description="What the sync endpoint answers; null while the run goes on or waits"
    )
    waiting_for: Sometimes[UserQuestionModel] = None


class ExportedRowsModel(ReplyModel):
    columns: list[str]
    column_types: list[str]
    rows: list[list[Any]]
    row_count: int
    is_limited: bool


class CompletionModel(ReplyModel):
    kind: Literal["table", "column", "value", "question"]
    text: str = Field(description="The name, the value or the question")
    about: str | None = Field(description="The table of a column, or the column of a value")
    completed: str = Field(description="`q` with it in the place of what was begun")


class CompletionsModel(ReplyModel):
    completions: list[CompletionModel] = Field(description="The likeliest first")


class ExamplesModel(ReplyModel):
    examples: list[str]
    lang: Lang = Field(description="The language they are in")
