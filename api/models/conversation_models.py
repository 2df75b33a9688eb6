"""Conversations and their turns."""

from typing import Any, Literal

from pydantic import Field

from api.models.asking_models import ChartModel
from api.models.model_base import ClosedReplyModel, Sometimes, Timestamp
from common.values import TurnType


class ConversationModel(ClosedReplyModel):
    conversation_id: str
    title: str = Field(
        description="Made of the first question, in a few words, until it is given another"
    )
    created_at: Timestamp
    updated_at: Timestamp = Field(description="Of the latest turn")
    turn_count: int = Field(description="Turns kept", ge=0)


class ConversationListModel(ClosedReplyModel):
    conversations: list[ConversationModel]
    next_cursor: str | None = Field(description="Leads to the next page; null: there is none")


class TurnFailureModel(ClosedReplyModel):
    """The error that the turn ended in. No later question goes on from such a turn"""

    error_type: str = Field(
        description="As in the error, like the others; `cancelled` when it was stopped"
    )
    message: str
    error: str
    retryable: bool
    hint: Sometimes[str] = None


class TurnModel(ClosedReplyModel):
    run_id: str
    question: str
    question_type: TurnType | None = Field(description="null with a `failure`, like `routing_mode`")
    routing_mode: str | None
    response: str = Field(description="With a `failure`, what went wrong")
    database: Sometimes[str] = Field(
        None, description="The database that it is about; only where there are several"
    )
    sql: str | None = Field(
        description="With a `failure`, the statement that it is about, if there is one"
    )
    row_count: int | None = Field(description="Rows of the whole result", ge=0)
    columns: list[str]
    rows: list[list[Any]] = Field(description="All rows of a small result; else the first few")
    column_types: Sometimes[list[str]] = Field(
        None,
        description="As in the answer, like those that follow; left out where there are no rows",
    )
    labels: Sometimes[list[str]] = None
    units: Sometimes[list[str | None]] = None
    periods: Sometimes[list[str | None]] = None
    formats: Sometimes[list[str | None]] = None
    value_labels: Sometimes[list[dict[str, str] | None]] = None
    totals: Sometimes[list[Any]] = Field(None, description="Over all rows of the result")
    conditions: Sometimes[list[str]] = None
    chart: Sometimes[ChartModel] = None
    choices: Sometimes[list[str]] = Field(
        None, description="As in the answer, like those that follow; left out where there are none"
    )
    rewrites: Sometimes[list[str]] = None
    follow_ups: Sometimes[list[str]] = None
    failure: Sometimes[TurnFailureModel] = None
    asked_at: Timestamp


class ConversationPageModel(ClosedReplyModel):
    conversation: ConversationModel
    turns: list[TurnModel]
    next_cursor: str | None = Field(description="Leads to the earlier turns; null: there are none")


class RenamedModel(ClosedReplyModel):
    conversation_id: str
    title: str


class ClearedModel(ClosedReplyModel):
    conversation_id: str
    turn_count: Literal[0]


class DeletedModel(ClosedReplyModel):
    deleted: int = Field(description="How many conversations were forgotten", ge=0)
