"""The bodies and query strings that endpoints take."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from agent.analysis.analysis_limits import MOST_HORIZON
from agent.answers.table_files import FORMATS
from agent.flows.ask.routing import ROUTING_MODES
from api.fields import (
    UNUSABLE,
    Checked,
    Flag,
    Identifier,
    ShortText,
    choice,
    number_up_to,
    one_of,
    short_text,
    some_of,
    text_up_to,
    unknown_fields,
    wrong,
)
from common.errors import InvalidRequest
from common.learning import MAX_SENTENCE_CHARS, MAX_SQL_CHARS, Rating, Trust
from common.text import Lang, Text
from common.values import ANALYSIS_KINDS, AnalysisKind, QuestionType
from etl.lineage.lineage_graph import Direction
from store import LearntState

PICTURE = "png"

_MAX_TITLE_CHARS = 200
_MAX_NOTE_CHARS = 500
_MAX_ANSWER_DEPTH = 32  # of lists and objects: graphs, checkpoints and schemas are recursive
# Unicode categories that a title on one line can't show: controls, surrogates, line and paragraph
# separators.
_NOT_IN_A_TITLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_UNUSABLE_ANSWER = Text(
    "answer 无效：文本不能含 NUL 或不完整字符，数字不能是 NaN、无穷大或超出 64 位，嵌套最多 32 "
    "层。",
    "answer is not valid: no text in it may have NUL or broken characters, no number may be NaN, "
    "infinite or beyond 64 bits, and it may be nested 32 deep at most.",
)
_MISSING = Text("缺少 {}：请填写要问的问题。", "{} is missing: say what you want to know.")
_BLANK = Text("{} 不能为空：请填写要问的问题。", "{} is blank: say what you want to know.")
_TITLE = Text(
    f"1 到 {_MAX_TITLE_CHARS} 个字符、不含换行等控制字符的字符串",
    f"a string of 1 to {_MAX_TITLE_CHARS} characters without line breaks or other control "
    "characters",
)
_NO_TITLE = Text(f"title 无效：必须是{_TITLE.zh}。", f"title is not valid: it must be {_TITLE.en}.")
_NO_MODIFIED_SQL = Text(
    "缺少 modified_sql：rating 为 need_modification 时请填写改正后的 SQL。",
    "modified_sql is missing: with need_modification, give the corrected SQL.",
)
_SQL_ELSEWHERE = Text(
    "modified_sql 只能与 rating = need_modification 一起使用。",
    "modified_sql goes with need_modification only.",
)


def question_text(field: str, value: object, max_chars: int) -> str:
    """Return the question in a body's `field` without blanks around it.

    Raises:
        InvalidRequest: it is missing, blank, too long, or no text that can be kept.
    """
    if value is None:
        raise InvalidRequest(
            Text(_MISSING.zh.format(field), _MISSING.en.format(field)), field=field
        )
    if not isinstance(value, str):
        raise wrong(field, "一个字符串", "a string")

    text = value.strip()
    if not text:
        raise InvalidRequest(Text(_BLANK.zh.format(field), _BLANK.en.format(field)), field=field)
    if len(text) > max_chars:
        raise InvalidRequest(
            Text(
                f"{field} 过长：{len(text)} 个字符，最多 {max_chars} 个。",
                f"{field} is too long: {len(text)} characters, at most {max_chars}.",
            ),
            field=field,
        )
    if UNUSABLE.search(text):
        raise wrong(field, "不含 NUL 或不完整字符的文本", "text without NUL or broken characters")

    return text


def _title(field: str, value: object) -> str:
    title = value.strip() if isinstance(value, str) else ""
    is_on_one_line = all(unicodedata.category(c) not in _NOT_IN_A_TITLE for c in title)
    if 0 < len(title) <= _MAX_TITLE_CHARS and is_on_one_line:
        return title

    raise wrong(field, _TITLE.zh, _TITLE.en)


def _note(field: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= _MAX_NOTE_CHARS and not UNUSABLE.search(value):
        return value.strip()

    raise wrong(
        field,
        f"至多 {_MAX_NOTE_CHARS} 个字符的文本",
        f"a text of at most {_MAX_NOTE_CHARS} characters",
    )


def _statement(field: str, value: object) -> str:
    if isinstance(value, str):
        return value

    raise wrong(field, "一个字符串", "a string")


def _object(field: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value

    raise wrong(field, "一个对象", "an object")


def _any(_field: str, value: object) -> object:
    return value


def _chat_name(field: str, value: object) -> str:
    """Take an empty name for none, as clients send it."""
    return "" if value == "" else short_text(field, value)


def _kinds_of_analysis(field: str, value: object) -> tuple[AnalysisKind, ...]:
    if not isinstance(value, list) or not value:
        zh, en = "、".join(ANALYSIS_KINDS), ", ".join(ANALYSIS_KINDS)
        raise wrong(field, f"非空列表，元素为 {zh}", f"a list, not empty, of {en}")

    check = choice(*ANALYSIS_KINDS)
    return tuple(cast(AnalysisKind, check(field, kind)) for kind in value)


def _horizon(field: str, value: object) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and 1 <= cast(int, value) <= MOST_HORIZON:
        return cast(int, value)

    raise wrong(field, f"1 到 {MOST_HORIZON} 的整数", f"a whole number from 1 to {MOST_HORIZON}")


def _answer(field: str, value: object) -> object:
    if not can_be_kept(value):
        raise InvalidRequest(_UNUSABLE_ANSWER, field=field)

    return value


def can_be_kept(value: Any, depth: int = 0) -> bool:
    """Tell whether all stores and checkpoints give the JSON `value` back as it is."""
    if isinstance(value, str):
        return not UNUSABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 2**63  # more than that, a checkpoint can't hold
    if value is None:
        return True

    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return depth < _MAX_ANSWER_DEPTH and all(can_be_kept(part, depth + 1) for part in parts)


_CHAT_NAME = {"type": "string", "maxLength": 256}
_CHAT_METADATA = {
    "type": "object",
    "properties": {
        "starter_ui_request": {"type": "boolean", "description": "Asks for the greeting"}
    },
}
LangField = Annotated[Lang, one_of("zh", "en")]


DatabaseName = Annotated[
    ShortText,
    Field(
        description="Name of the database that is asked, where there are several; see `/databases`"
    ),
]


class RequestFields(BaseModel):
    """The fields of a body or a query string. Missing ones and null are the same.

    Attributes:
        missing: the sentence about each required field that is not there.
        nullable: required fields of which null is a value.
    """

    model_config = ConfigDict(frozen=True)
    missing: ClassVar[Mapping[str, Text]] = {}
    nullable: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def read(cls, sent: Mapping[str, Any], **context: Any) -> Self:
        """Check the fields one after the other.

        Args:
            sent: the body or the query string; fields that nobody reads are left out.
            context: what checks need beside the value: `max_chars`, `agents`.

        Raises:
            InvalidRequest: a field is missing or wrong; names it and what is allowed.
        """
        named = {
            field: value
            for field, value in sent.items()
            if field in cls.model_fields and (value is not None or field in cls.nullable)
        }
        for field, text in cls.missing.items():
            if field not in named:
                raise InvalidRequest(text, field=field)

        return cls.model_validate(named, context=context)

    @classmethod
    def notices(cls, sent: Mapping[str, Any]) -> tuple[Text, ...]:
        """Return a notice that names the fields which nobody reads, if there are any."""
        return unknown_fields(sent, tuple(cls.model_fields))


class AskingFields(RequestFields):
    """The fields that every request to an agent may have beside its question."""

    user_id: ShortText | None = None
    conversation_id: Identifier | None = Field(
        None, description="Continues a conversation; made up when absent"
    )
    lang: LangField | None = Field(
        None, description="Language of the answer; default: the question's"
    )
    stream_tokens: Flag | None = Field(
        True, description="Whether text is streamed while it is written"
    )
    database: DatabaseName | None = None
    on_disconnect: Annotated[Literal["cancel", "continue"], one_of("cancel", "continue")] | None = (
        Field(
            None,
            description="What becomes of the run when the last client that watches it leaves; "
            "default: cancel, with an Idempotency-Key continue",
        )
    )


class AskBody(AskingFields):
    missing = {
        "question": Text(_MISSING.zh.format("question"), _MISSING.en.format("question")),
    }

    question: str = Field(description="In Chinese or English; the longest length is configurable")
    agent: str | None = Field(
        None,
        description="Which agent answers; default: configured. `tool_loop` and `tool_graph` are "
        "models that call tools; without a model, rules answer in their place. `etl` drafts "
        "transformations, and takes the fields of EtlAsk as well",
    )
    routing_mode: Annotated[str, one_of(*ROUTING_MODES)] | None = Field(
        None,
        description="How the kind of question is decided; default: configured. Only for `ask`",
    )
    context_type: Annotated[QuestionType, one_of("DATABASE", "CHAT")] | None = Field(
        None, description="Kind of the previous turn. Only for `ask`"
    )
    table: ShortText | None = Field(None, description="The table the question is about")

    @field_validator(
        "question",
        mode="plain",
        json_schema_input_type=Annotated[str, Field(min_length=1, max_length=2000)],
    )
    @classmethod
    def _check_question(cls, value: object, info: ValidationInfo) -> str:
        return question_text("question", value, (info.context or {})["max_chars"])

    @field_validator(
        "agent",
        mode="plain",
        json_schema_input_type=Literal["ask", "tool_loop", "tool_graph", "etl"] | None,
    )
    @classmethod
    def _check_agent(cls, value: object, info: ValidationInfo) -> str:
        return choice(*(info.context or {})["agents"])("agent", value)


class SqlBody(RequestFields):
    missing = {"sql": Text("缺少 sql：请填写要执行的查询。", "sql is missing: give the query.")}

    sql: Annotated[str, Checked(_statement, {"type": "string", "minLength": 1})] = Field(
        description="One statement"
    )
    lang: LangField | None = Field(
        None, description="Language of messages; default: Accept-Language, else English"
    )
    user_id: ShortText | None = None
    database: DatabaseName | None = None


class ChatRequestBody(RequestFields):
    # `api.vanna.chat_requests` refuses a missing message where the request needs one.
    model_config = ConfigDict(frozen=True, json_schema_extra={"required": ["message"]})

    conversation_id: Annotated[str, Checked(_chat_name, _CHAT_NAME)] | None = Field(
        None, description="Any name; the conversation is the caller's own"
    )
    request_id: Annotated[str, Checked(_chat_name, _CHAT_NAME)] | None = Field(
        None,
        description="Any name of this request: the same request under the same name joins its run",
    )
    metadata: Annotated[dict[str, Any], Checked(_object, _CHAT_METADATA)] | None = None
    message: Annotated[Any, Checked(_any, {"type": "string", "maxLength": 2000})] = Field(
        None,
        description="The question; empty: the greeting. `/feedback good RUN_ID` and `/feedback bad "
        "RUN_ID` rate an answer, `/answer RUN_ID INTERRUPT_ID ANSWER` answers a run that waits",
    )
    user_id: ShortText | None = None


class ResumeBody(RequestFields):
    missing = {
        "interrupt_id": Text(
            "缺少 interrupt_id：请填写要回答的问题的 interrupt_id。",
            "interrupt_id is missing: give that of the question you answer.",
        ),
        "answer": Text("缺少 answer：请填写答案。", "answer is missing: give your answer."),
    }
    nullable = frozenset({"answer"})

    interrupt_id: Identifier
    answer: Annotated[Any, Checked(_answer, {})] = Field(
        description="One of the choices, what the schema says, or a text"
    )
    user_id: ShortText | None = None
    lang: LangField | None = None


class FeedbackBody(RequestFields):
    missing = {
        "run_id": Text(
            "缺少 run_id：请填写要评价的回答的 run_id。",
            "run_id is missing: give that of the answer.",
        ),
        "rating": Text(
            "缺少 rating：请填写 satisfied、unsatisfied、need_modification 或 skip。",
            "rating is missing: give satisfied, unsatisfied, need_modification or skip.",
        ),
    }

    rating: Annotated[Rating, one_of(*get_args(Rating))]
    modified_sql: Annotated[str, text_up_to(MAX_SQL_CHARS)] | None = Field(
        None,
        description="The corrected SQL; needed with need_modification, and with nothing else",
    )
    lang: LangField | None = Field(None, description="Language of messages")
    user_id: ShortText | None = None
    run_id: Identifier = Field(description="Of the answer")
    comment: Annotated[str, text_up_to(MAX_SENTENCE_CHARS)] | None = None
    conversation_id: Identifier | None = Field(
        None,
        description="The answer's conversation, in which it is found longer than its run is kept",
    )

    @field_validator("modified_sql", mode="after")
    @classmethod
    def _check_it_belongs(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("rating") != "need_modification":
            raise InvalidRequest(_SQL_ELSEWHERE, field="modified_sql")

        return value

    def checked(self) -> Self:
        """Return the body itself.

        Raises:
            InvalidRequest: a correction is announced and not given.
        """
        if self.rating == "need_modification" and not (self.modified_sql or "").strip():
            raise InvalidRequest(_NO_MODIFIED_SQL, field="modified_sql")

        return self


class ReviewVerdictBody(RequestFields):
    trust: Annotated[Trust, one_of(*get_args(Trust))] | None = Field(
        None, description="What the reviewer saw; another one now is 409"
    )
    user_id: ShortText | None = None
    lang: LangField | None = None


class RenameBody(RequestFields):
    missing = {"title": _NO_TITLE}

    user_id: ShortText | None = None
    lang: LangField | None = Field(
        None, description="Language of messages; default: Accept-Language, else English"
    )
    title: Annotated[
        str,
        Checked(_title, {"type": "string", "minLength": 1, "maxLength": _MAX_TITLE_CHARS}),
    ] = Field(description="On one line; space around it is removed")


class ProposalBody(RequestFields):
    missing = {
        "before": Text(
            "缺少 before：请填写要替换的各行。", "before is missing: say which lines change."
        ),
        "after": Text(
            "缺少 after：请填写修改后的各行。", "after is missing: say what they should be."
        ),
    }

    before: Annotated[str, Checked(_statement, {"type": "string"})] = Field(
        description="Lines that stand once in the file; empty: `after` is added at its end"
    )
    after: Annotated[str, Checked(_statement, {"type": "string"})] = Field(
        description="What they should be; empty: they are removed"
    )
    revision: ShortText | None = Field(
        None, description="Of the file that was read; another one by now is 409"
    )
    note: (
        Annotated[str, Checked(_note, {"type": "string", "maxLength": _MAX_NOTE_CHARS})] | None
    ) = Field(None, description="Why")
    user_id: ShortText | None = None
    lang: LangField | None = None


class AnalyzeBody(RequestFields):
    lang: LangField | None = Field(None, description="Language of texts")
    user_id: ShortText | None = None
    what: (
        Annotated[
            tuple[AnalysisKind, ...],
            Checked(
                _kinds_of_analysis,
                {"type": "array", "minItems": 1, "items": {"enum": list(ANALYSIS_KINDS)}},
            ),
        ]
        | None
    ) = Field(None, description="All but forecast by default")
    measure: ShortText | None = Field(None, description="Name or label of a column of figures")
    by: ShortText | None = Field(None, description="Name or label of a column of groups or times")
    horizon: (
        Annotated[
            int,
            Checked(_horizon, {"type": "integer", "minimum": 1, "maximum": MOST_HORIZON}),
        ]
        | None
    ) = Field(None, description="Periods to forecast")
    conversation_id: Identifier | None = Field(
        None,
        description="The run's conversation, in which its SQL is found longer than the run is kept",
    )


class ReaderQuery(RequestFields):
    """The user whose data are asked for, and the language of messages."""

    user_id: ShortText | None = Field(
        None,
        description="Whose; a caller with a key that speaks for its own user only is always that "
        "user",
    )
    lang: LangField | None = Field(
        None, description="Language of messages; default: Accept-Language, else English"
    )


class LoginQuery(RequestFields):
    to: str | None = Field(
        None, description="What the page shows afterwards: `c/` and the id of a conversation"
    )


class LoginAnswerQuery(RequestFields):
    """The query with which the issuer sends a browser back, as OpenID Connect has it."""

    state: str | None = None
    code: str | None = None
    iss: str | None = None
    error: str | None = None


class DatabaseQuery(RequestFields):
    database: DatabaseName | None = None


class LangQuery(RequestFields):
    lang: LangField | None = Field(
        None, description="Language of messages; default: Accept-Language, else English"
    )


class PageQuery(RequestFields):
    limit: Annotated[int, number_up_to(100)] = Field(20, description="Most entries of the page")
    cursor: ShortText | None = Field(None, description="`next_cursor` of the page before")


class LearntQuery(RequestFields):
    trust: Annotated[tuple[Trust, ...], some_of(*get_args(Trust))] | None = Field(
        None,
        description=f"One or more by commas: {', '.join(get_args(Trust))}. A shared lesson counts "
        "as reviewed, any other as personal",
    )
    state: Annotated[tuple[LearntState, ...], some_of(*get_args(LearntState))] | None = Field(
        None, description=f"One or more by commas: {', '.join(get_args(LearntState))}"
    )


class SearchQuery(RequestFields):
    missing = {"q": Text("缺少 q：请填写要查找的内容。", "q is missing: say what you look for.")}

    q: str = Field(
        description="What is looked for, in Chinese or English: words or a whole question"
    )
    limit: Annotated[int, number_up_to(50)] = Field(10, description="Most tables")

    @field_validator("q", mode="plain", json_schema_input_type=Annotated[str, Field(min_length=1)])
    @classmethod
    def _check_q(cls, value: str, info: ValidationInfo) -> str:
        max_chars = (info.context or {})["max_chars"]
        text = value.strip()
        if not text:
            raise InvalidRequest(cls.missing["q"], field="q")
        if len(text) > max_chars or UNUSABLE.search(text):
            raise wrong(
                "q",
                f"不含 NUL、最多 {max_chars} 个字符的文本",
                f"a text of at most {max_chars} characters without NUL",
            )

        return text


class CompletionQuery(RequestFields):
    missing = {"q": Text("缺少 q：请填写光标前的文字。", "q is missing: send what is typed.")}

    q: str = Field(description="What stands before the cursor")
    limit: Annotated[int, number_up_to(20)] = Field(8, description="Most completions")

    @field_validator("q", mode="plain", json_schema_input_type=str)
    @classmethod
    def _check_q(cls, value: str, info: ValidationInfo) -> str:
        max_chars = (info.context or {})["max_chars"]
        if len(value) > max_chars or UNUSABLE.search(value):
            raise wrong(
                "q",
                f"不含 NUL、最多 {max_chars} 个字符的文本",
                f"a text of at most {max_chars} characters without NUL",
            )

        return value


_NO_TABLE = Text("缺少 table：请填写表名。", "table is missing: name a table.")


class ImpactQuery(RequestFields):
    missing = {"table": _NO_TABLE}

    table: ShortText = Field(description="Name of a table or view, with or without its schema")
    column: ShortText | None = Field(None, description="Only what has to do with this column of it")


class LineageQuery(RequestFields):
    missing = {"table": _NO_TABLE}

    table: ShortText = Field(description="Name of a table or view, with or without its schema")
    column: ShortText | None = Field(None, description="Only what has to do with this column of it")
    direction: Annotated[Direction, one_of(*get_args(Direction))] = "both"
    depth: Annotated[int, number_up_to(10)] = Field(3, description="How many steps are followed")
    format: Annotated[str, one_of("json", "mermaid", "cypher")] = "json"


STORED_VALUES = "stored"


class ExportQuery(RequestFields):
    format: Annotated[str, one_of(*FORMATS, PICTURE)] = next(iter(FORMATS))
    values: Annotated[str, one_of("labels", STORED_VALUES)] = Field(
        "labels",
        description="Of `csv` and `xlsx`: columns and values by what readers call them, or "
        "as they are stored",
    )
    conversation_id: Identifier | None = Field(
        None,
        description="The run's conversation, in which its SQL is found longer than the run is kept",
    )
    call_id: ShortText | None = Field(
        None,
        description="A tool's call of this run that found rows: its rows instead of the answer's, "
        "as long as the run is kept",
    )


class ArtefactQuery(RequestFields):
    conversation_id: Identifier | None = Field(None, description="The run's conversation")


class EventsQuery(RequestFields):
    after: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="The last event there is no need of: its id, or its number"
    )


def event_number(after: str | None, run_id: str) -> int | None:
    """Return the number of the event that `after` names by its number or its id, or None.

    Raises:
        InvalidRequest: it is neither a number nor the id of an event of this run.
    """
    if after is None:
        return None

    number = after.removeprefix(f"{run_id}:")
    if re.fullmatch("[0-9]{1,9}", number):
        return int(number)

    raise wrong(
        "after",
        "该运行的事件 id（如 run_…:7）或其序号",
        "the id of an event of the run (such as run_…:7), or its number",
    )
