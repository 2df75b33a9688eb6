"""What the ETL agent takes and answers."""

import json
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, ValidationInfo, field_validator

from api.fields import one_of, wrong
from api.models.asking_models import (
    AnswerUsageModel,
    AskedUserModel,
    CardModel,
    ChosenDatabaseModel,
    QueryResultModel,
)
from api.models.learning_models import ExampleModel, LessonModel
from api.models.model_base import ReplyModel, Sometimes, Timestamp
from api.models.request_models import AskingFields, can_be_kept, question_text
from common.errors import InvalidRequest
from common.text import Text
from etl.binding.intent_checks import check_intent
from etl.schemas.evidence import TestReport
from etl.schemas.plan import ArchitecturePlan, ReviewResult
from etl.schemas.rating import DraftFeedback
from etl.schemas.reading import read_model
from etl.schemas.requirement import Ambiguity, Assumption, Impossible, UserIntent
from etl.schemas.run_options import EtlOptions

_MOST_INTENT_BYTES = 64 * 1024
_TOO_LARGE = Text(
    f"intent 过大：最多 {_MOST_INTENT_BYTES // 1024} KiB。",
    f"intent is too large: at most {_MOST_INTENT_BYTES // 1024} KiB.",
)
_UNUSABLE_INTENT = Text(
    "intent 无效：文本不能含 NUL 或不完整字符，数字不能是 NaN、无穷大或超出 64 位，"
    "嵌套最多 32 层。",
    "intent is not valid: no text in it may have NUL or broken characters, no number may be NaN, "
    "infinite or beyond 64 bits, and it may be nested 32 deep at most.",
)


class EtlAskBody(AskingFields):
    """A request for a transformation, as a sentence or as an intent"""

    question: str | None = Field(
        None, description="What is to be built, in Chinese or English; this or `intent`"
    )
    agent: Annotated[Literal["etl"], one_of("etl")] | None = None
    intent: UserIntent | None = Field(
        None,
        description="What is to be built, as ordered operations; this or `question`, which then is "
        "its summary",
    )
    options: EtlOptions = Field(EtlOptions())

    @field_validator(
        "question",
        mode="plain",
        json_schema_input_type=Annotated[str, Field(min_length=1, max_length=2000)] | None,
    )
    @classmethod
    def _check_question(cls, value: object, info: ValidationInfo) -> str:
        return question_text("question", value, (info.context or {})["max_chars"])

    @field_validator("intent", mode="plain", json_schema_input_type=UserIntent | None)
    @classmethod
    def _check_intent(cls, value: object) -> UserIntent:
        if not can_be_kept(value):
            raise InvalidRequest(_UNUSABLE_INTENT, field="intent")

        size = len(json.dumps(value, ensure_ascii=False).encode())
        if size > _MOST_INTENT_BYTES:
            raise InvalidRequest(_TOO_LARGE, field="intent")

        intent = read_model(UserIntent, value, "intent")
        check_intent(intent)
        return intent

    @field_validator("options", mode="plain", json_schema_input_type=EtlOptions | None)
    @classmethod
    def _check_options(cls, value: object) -> EtlOptions:
        options = read_model(EtlOptions, value, "options")
        if options.time_zone is not None and not _is_time_zone(options.time_zone):
            raise wrong(
                "options.time_zone", "时区名，例如 Asia/Shanghai", "a time zone like Europe/Paris"
            )

        return options


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False

    return True


class ArtefactFileModel(ReplyModel):
    path: str
    bytes: int
    sha256: str


class ListedArtefactFileModel(ArtefactFileModel):
    language: Literal["sql", "yaml", "markdown", "json", "mermaid", "text"]


class ArtefactFilesModel(ReplyModel):
    files: list[ListedArtefactFileModel]


class ArtefactTargetModel(ReplyModel):
    node: str
    relation: str
    columns: list[str]


class ArtefactModel(ReplyModel):
    artefact_id: str
    url: str = Field(description="A path of this service, of the archive")
    files_url: str = Field(description="A path of this service, of the list of files")
    bytes: int
    sha256: str
    files: list[ArtefactFileModel]
    target: ArtefactTargetModel


class ClarificationModel(ReplyModel):
    """A question back, and the user's answer to it"""

    id: str
    kind: str
    prompt: str
    choices: list[dict[str, str]]
    answer: str | None


class EtlLearntModel(ReplyModel):
    """The example and the lesson that were learnt of a draft."""

    example: ExampleModel | None = Field(description="The reference that is kept; null: none")
    lesson: LessonModel | None


class EtlAnswerFields(ReplyModel):
    response: str
    response_type: Literal["ETL"]
    status: Literal[
        "proven", "unproven", "failed", "needs_input", "not_possible", "cancelled_by_user"
    ] = Field(
        description="`proven`: built, all tests passed, every total reconciles; `unproven`: there "
        "was no scratch database to build in; `needs_input`: see `questions`; `not_possible`: see "
        "`impossible`"
    )
    intent: UserIntent | None
    plan: ArchitecturePlan | None
    review: ReviewResult | None
    evidence: TestReport | None
    assumptions: list[Assumption]
    questions: list[Ambiguity] = Field(description="What is still to be answered")
    impossible: list[Impossible]
    clarifications: list[ClarificationModel]
    preview: QueryResultModel | None = Field(description="First rows of the target, of the sample")
    artefact: ArtefactModel | None
    generation_method: Literal["rules", "llm", "mixed"]
    feedback: DraftFeedback | None
    learned: EtlLearntModel | None
    cards: Sometimes[list[CardModel]] = Field(
        None, description="By RESULT_RENDERERS", min_length=1, max_length=6
    )
    database: Sometimes[ChosenDatabaseModel] = Field(
        None, description="The database that was asked; only where there are several"
    )
    conversation_id: str
    run_id: str
    agent: Sometimes[str] = None
    execution_path: list[str]
    warnings: list[str]
    usage: AnswerUsageModel
    timings_ms: dict[str, float]
    timestamp: Timestamp


class EtlAnswerModel(EtlAnswerFields):
    """A draft of a transformation with its evidence, or why there is none"""

    type: Literal["ETL"]


class CompletedEtlAnswerModel(EtlAnswerFields):
    """`data` of a stream's last frame: the draft"""

    type: Literal["completed"]


class EtlAskedUserModel(AskedUserModel):
    """Instead of an answer: the run asks its user something and waits for `resume`"""

    kind: Literal["clarify", "feedback"]
    summary: Sometimes[str] = Field(None, description="Of `feedback`: what was built")
    evidence: Sometimes[TestReport | None] = Field(None, description="Of `feedback`")
    artefact: Sometimes[ArtefactModel | None] = Field(None, description="Of `feedback`")
