"""Whether the service can answer, and who the caller is."""

from typing import Literal

from pydantic import Field

from api.models.model_base import ReplyModel, Sometimes


class EngineModel(ReplyModel):
    name: str = Field(description="Such as PostgreSQL, Citus, TimescaleDB, CockroachDB")
    version: str | None = Field(description="null while it is unknown")
    postgresql: Sometimes[str] = Field(
        None, description="The version of the PostgreSQL that an extension such as Citus runs in"
    )


class DependencyModel(ReplyModel):
    status: Literal["ok", "degraded", "unavailable", "not_configured"] = Field(
        description="not_configured: the model, where rules answer, or what is not set up. "
        "degraded: entries of the semantic file or of the row rules don't fit the database and "
        "are not used, or something shows rows past the policies of the database"
    )
    name: Sometimes[str] = None
    problems: Sometimes[int] = Field(
        None,
        description="Of the semantic file, the policies and the row rules: how many; the log "
        "names each",
        ge=0,
    )
    stuck_connections: Sometimes[int] = Field(
        None,
        description="Of the database: connections taken by statements that PostgreSQL can't "
        "stop. Only there when there are any",
        ge=1,
    )


class AskedDatabaseStateModel(ReplyModel):
    status: Literal["ok", "unavailable"]
    engine: Sometimes[EngineModel] = None
    reason: Sometimes[str] = Field(
        None, description="Why its server can't be used, where that is more than being away"
    )
    stuck_connections: Sometimes[int] = Field(None, ge=1)


class AskedDatabasesStateModel(DependencyModel):
    engine: Sometimes[EngineModel] = None
    reason: Sometimes[str] = Field(
        None, description="Why its server can't be used, where that is more than being away"
    )
    databases: Sometimes[dict[str, AskedDatabaseStateModel]] = Field(
        None,
        description="Each by its name, where DATABASES_FILE names several; `degraded` when some "
        "are unavailable, or the file has changed and can't be used",
    )


class ReadyModel(ReplyModel):
    database: AskedDatabasesStateModel
    store: DependencyModel
    model: DependencyModel
    semantic_file: DependencyModel
    row_context: DependencyModel
    row_rules: DependencyModel


class StoppingServiceModel(ReplyModel):
    status: Literal["stopping"]


class StoppingModel(ReplyModel):
    service: StoppingServiceModel


class ListedDatabaseModel(ReplyModel):
    name: str = Field(description="What requests give as `database`")
    label: str = Field(description="What people call it")
    description: str | None
    is_default: bool
    state: Literal["ok", "unavailable"]
    reason: str | None = Field(description="Why it is unavailable")
    engine: EngineModel
    tables: int | None = Field(
        description="How many tables the caller may read; null while it is unavailable", ge=0
    )


class DatabaseListModel(ReplyModel):
    databases: list[ListedDatabaseModel]


class LoggedOutModel(ReplyModel):
    issuer_logout_url: str | None = Field(
        description="Where a browser goes on to end its session at the issuer; null: nowhere"
    )


class MeModel(ReplyModel):
    user_id: str | None = Field(
        description="Whose conversations and runs a request like this one is about; null: nobody "
        "is named, and `anonymous` is used"
    )
    groups: list[str] = Field(description="The key's, or the access token's")
    attributes: dict[str, list[str]] = Field(
        description="The key's, or the access token's: what row rules may name besides"
    )
    acts_for_others: bool = Field(
        description="Whether a request may name another user_id; false when this one does"
    )
    authenticated: bool = Field(
        description="Whether the request carries a valid key; false while the service has none"
    )
    has_session: bool = Field(
        description="Whether the caller has signed in on the page, by OIDC_CLIENT_ID"
    )
    is_reviewer: bool = Field(description="By REVIEWER_GROUPS")
    is_operator: bool = Field(description="By OPERATOR_GROUPS")
