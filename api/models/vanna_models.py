"""Chunks of Vanna's chat protocol."""

from typing import Any, Literal

from pydantic import Field

from api.models.error_models import ErrorModel
from api.models.model_base import ReplyModel, Sometimes, Timestamp


class ChatComponentModel(ReplyModel):
    id: str
    type: Literal[
        "text",
        "status_card",
        "dataframe",
        "chart",
        "button_group",
        "status_bar_update",
        "task_tracker_update",
        "chat_input_update",
    ]
    lifecycle: Literal["create", "replace", "remove"] = Field(
        description="`remove` comes only in answers to repeated requests, before what is shown anew"
    )
    children: list[str]
    timestamp: Timestamp
    visible: bool
    interactive: bool
    data: dict[str, Any] = Field(description="As Vanna defines it for the type")


class ChatChunkSimpleModel(ReplyModel):
    """The same as plain text"""

    type: Literal["text"]
    text: str


class ChatChunkErrorModel(ReplyModel):
    """The error that the chunk's text shows"""

    error_type: Sometimes[str] = None
    error: Sometimes[str] = None
    retryable: Sometimes[bool] = None
    retry_after_s: Sometimes[int] = None
    field: Sometimes[str] = None


class ChatChunkModel(ReplyModel):
    rich: ChatComponentModel
    simple: ChatChunkSimpleModel | None = Field(description="The same as plain text")
    conversation_id: str
    request_id: str
    timestamp: float = Field(description="Seconds since 1970, UTC")
    run_id: Sometimes[str] = Field(None, description="Of the run that answers")
    error: Sometimes[ChatChunkErrorModel] = Field(
        None, description="With the text that shows an error"
    )


class ChatResponseModel(ReplyModel):
    chunks: list[ChatChunkModel]
    conversation_id: str
    request_id: str
    total_chunks: int = Field(ge=0)


class ChatRefusalModel(ReplyModel):
    code: int
    success: Literal[False]
    message: str
    data: ErrorModel
    chunks: list[ChatChunkModel]
    conversation_id: str
    request_id: str
    total_chunks: int = Field(ge=0)
