"""Errors, as every endpoint answers them."""

from typing import Any, Literal

from pydantic import Field

from api.models.model_base import ReplyModel, Sometimes, Timestamp


class PlanModel(ReplyModel):
    total_cost: float = Field(description="In the planner's units")
    rows: int = Field(description="Rows of the result")
    scans: list[str] = Field(description="Tables it reads, the most expensive first")


class ErrorModel(ReplyModel):
    type: Literal["error"]
    error: str
    error_type: Literal[
        "invalid_request",
        "unauthorized",
        "not_found",
        "forbidden",
        "insufficient_scope",
        "forbidden_keywords",
        "forbidden_object",
        "forbidden_origin",
        "conflict",
        "idempotency_key_reused",
        "upgrade_required",
        "request_timeout",
        "uri_too_long",
        "headers_too_large",
        "too_many_connections",
        "rate_limited",
        "budget_exhausted",
        "syntax_error",
        "validation_exception",
        "cost_exceeded",
        "too_many_streams",
        "service_stopping",
        "sockets_unavailable",
        "query_timeout",
        "issuer_unavailable",
        "keys_unavailable",
        "llm_unavailable",
        "database_unavailable",
        "store_unavailable",
        "cancelled",
        "internal_error",
    ]
    field: Sometimes[str] = None
    suggestions: Sometimes[list[str]] = Field(
        None, description="Names that exist and may have been meant"
    )
    sign_in: Sometimes[str] = Field(
        None, description="Where people sign in with a browser, from the service's address on"
    )
    plan: Sometimes[PlanModel] = None
    retryable: bool
    retry_after_s: Sometimes[int] = None
    renews_at: Sometimes[Timestamp] = Field(None, description="When a budget begins anew")
    node: str | None = None
    conversation_id: Sometimes[str] = None
    run_id: Sometimes[str] = None
    request_id: str
    state_summary: Sometimes[dict[str, Any]] = None
    timestamp: Timestamp
