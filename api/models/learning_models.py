"""What is learnt: examples, lessons, imports."""

from typing import Any, Literal

from pydantic import Field

from api.models.asking_models import QueryResultModel
from api.models.error_models import PlanModel
from api.models.model_base import ReplyModel
from common.learning import ExampleSource, FailureType, Trust
from common.text import Lang
from knowledge.learning.intake import LineStatus
from store import LearntState


class DraftNodeModel(ReplyModel):
    node: str
    sql: str


class LearntDraftModel(ReplyModel):
    """A draft of a transformation that is kept as a reference"""

    meaning: str = Field(description="The same for requests that mean the same")
    intent: dict[str, Any]
    code: list[DraftNodeModel] = Field(description="The SQL of its models, in topological order")
    target: str
    answers: dict[str, str] = Field(description="What decided what was open, by its id")


class FailedDraftModel(ReplyModel):
    """The request for a transformation that a lesson is about"""

    meaning: str


class ExampleModel(ReplyModel):
    kind: Literal["example", "etl"] = Field(
        description="etl: a draft of a transformation; `sql` is all of it as one query"
    )
    example_id: str
    question: str
    sql: str
    lang: Lang
    author: str = Field(description="Whose it is; of a shared one, who brought it")
    reviewer: str | None = Field(description="Who decided on it last")
    state: LearntState = Field(
        description="stale: a table it reads has changed, and it is not used until it is proven "
        "again; rejected: a reviewer found it wrong"
    )
    created_at: str
    trust: Trust = Field(
        description="candidate, personal: its author's alone; reviewed, certified: everybody's"
    )
    source: ExampleSource
    tables: list[str] = Field(description="schema.name of what it reads")
    proven_at: str = Field(description="When guard and EXPLAIN accepted it last")
    uses: int
    stale_reason: str | None = Field(description="Why it is stale")
    etl: LearntDraftModel | None = Field(description="Of the kind `etl`")


class LessonModel(ReplyModel):
    kind: Literal["lesson"]
    lesson_id: str
    question: str
    sql: str | None = Field(description="The wrong statement")
    lang: Lang
    author: str
    reviewer: str | None
    state: Literal["active", "rejected"]
    created_at: str
    is_shared: bool = Field(description="Whether a reviewer has approved it")
    failure_type: FailureType
    root_cause: str
    avoidance_hint: str
    etl: FailedDraftModel | None = Field(description="Of a draft of a transformation")


class LearntModel(ReplyModel):
    run_id: str
    rating: str
    example: ExampleModel | None = Field(description="What is kept as an example; null: nothing")
    lesson: LessonModel | None
    query_result: QueryResultModel | None = Field(description="Of the corrected SQL")
    plan: PlanModel | None
    warnings: list[str] = Field(description="Why nothing was learnt, for example")
    timestamp: str


class ExampleListModel(ReplyModel):
    examples: list[ExampleModel]
    next_cursor: str | None = Field(description="Leads to older ones; null: there are none")


class LessonListModel(ReplyModel):
    lessons: list[LessonModel]
    next_cursor: str | None = Field(description="Leads to older ones; null: there are none")


class ImportedLineModel(ReplyModel):
    line: int = Field(description="Its number, from 1")
    status: LineStatus = Field(
        description="known: it was there; full: there is no room; refused: by guard or EXPLAIN; "
        "invalid: it can't be read"
    )
    id: str | None = Field(description="Of the example or lesson")
    error_type: str | None
    error: str | None


class ImportedModel(ReplyModel):
    lines: list[ImportedLineModel]
    counts: dict[str, int] = Field(description="Lines by status")
