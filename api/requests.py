"""Reads requests: bodies as JSON, whose things they are about, and the question they ask.

Fields are checked by the models in `api.models.request_models`.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from flask import Request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from agent.question import Question, new_conversation_id
from agent.services.sql_service import GivenSql
from api.fields import UNUSABLE, identifier, short_text, wrong
from api.models.etl_models import EtlAskBody
from api.models.request_models import (
    AskBody,
    DatabaseQuery,
    PageQuery,
    ReaderQuery,
    ResumeBody,
    SqlBody,
)
from common.errors import BodyTooLarge, InvalidRequest
from common.text import Lang, Text, language_of
from etl.schemas.requirement import UserIntent

_BROKEN_BODY = Text(
    "请求体不完整或分块格式有误。",
    "The request body was cut off, or is not in the chunks its headers promise.",
)
_NO_REQUEST = Text(
    "缺少 question 或 intent：请说明要构建什么。",
    "question and intent are missing: say what is to be built, by one of them.",
)
_ASK_ALONE = ("routing_mode", "context_type", "table")
ETL = "etl"


@dataclass(frozen=True)
class AskRequest:
    """A checked body of both ask endpoints.

    Attributes:
        question: still without an actor, because that depends on the caller's key as well.
        user_id: the user that the body names; only some callers may name one.
        on_disconnect: what happens to the run when the client leaves; None: the body does not say.
    """

    question: Question
    user_id: str | None
    on_disconnect: Literal["cancel", "continue"] | None


@dataclass(frozen=True)
class Reader:
    """The user that a request to read names, if any, and the language to answer in."""

    user_id: str | None
    lang: Lang


def body_of(request: Request) -> bytes:
    """Return the whole body.

    Raises:
        BodyTooLarge: it is longer than MAX_BODY_BYTES.
        InvalidRequest: it is shorter than its headers say, or in broken chunks.
    """
    try:
        return request.get_data()
    except RequestEntityTooLarge as exc:
        limit = request.max_content_length
        text = Text(
            f"请求体过大，最多 {limit} 字节。",
            f"The request body is too large; at most {limit} bytes.",
        )
        raise BodyTooLarge(text) from exc
    except (OSError, ParseException, BadRequest) as exc:
        # The streams of gunicorn and werkzeug raise these.
        raise InvalidRequest(_BROKEN_BODY) from exc


def json_of(request: Request) -> Any:
    """Return the body as JSON, whatever the content type; None when it is not JSON.

    Raises:
        BodyTooLarge, InvalidRequest: as `body_of`.
    """
    body_of(request)
    try:
        return request.get_json(force=True, silent=True)
    except RecursionError:  # thousands of nested brackets
        return None


def json_object(request: Request, example: str | Text) -> dict[str, Any]:
    """Return the body as a JSON object, whatever the content type.

    Args:
        example: a body that the endpoint takes.

    Raises:
        BodyTooLarge: as `body_of`.
        InvalidRequest: it is not a JSON object, or can't be read.
    """
    body = json_of(request)
    if isinstance(body, dict):
        return body

    zh, en = example if isinstance(example, Text) else (example, example)
    raise InvalidRequest(
        Text(
            f"请求体必须是 JSON 对象，例如 {zh}。",
            f"The body must be a JSON object, for example {en}.",
        )
    )


def parse_ask(body: dict[str, Any], max_question_chars: int, agents: Collection[str]) -> AskRequest:
    """Return the checked body of both ask endpoints.

    Args:
        max_question_chars: longest question, in characters.
        agents: names of the flows that can be asked.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    fields = AskBody.read(body, max_chars=max_question_chars, agents=agents)
    return AskRequest(
        question=Question(
            question=fields.question,
            agent=fields.agent,
            conversation_id=fields.conversation_id or new_conversation_id(),
            continues=fields.conversation_id is not None,
            notices=AskBody.notices(body),
            lang=fields.lang,
            routing_mode=fields.routing_mode,
            context_type=fields.context_type,
            table=fields.table,
            stream_tokens=fields.stream_tokens is not False,
            database=fields.database,
        ),
        user_id=fields.user_id,
        on_disconnect=fields.on_disconnect,
    )


def parse_etl_ask(body: dict[str, Any], max_question_chars: int) -> AskRequest:
    """Return the checked body of a request for a transformation.

    Raises:
        InvalidRequest: a field is wrong, or both `question` and `intent` are missing; names the
            field and what is allowed.
    """
    fields = EtlAskBody.read(body, max_chars=max_question_chars)
    question = fields.question or _summary_of(fields.intent, max_question_chars)
    intent = fields.intent
    if intent is not None:
        intent = intent.model_copy(update={"summary": question})

    return AskRequest(
        question=Question(
            question=question,
            agent=ETL,
            conversation_id=fields.conversation_id or new_conversation_id(),
            continues=fields.conversation_id is not None,
            notices=_etl_notices(body),
            lang=fields.lang,
            stream_tokens=fields.stream_tokens is not False,
            database=fields.database,
            details={
                "intent": intent.model_dump(mode="json") if intent is not None else None,
                "options": fields.options.model_dump(mode="json"),
            },
        ),
        user_id=fields.user_id,
        on_disconnect=fields.on_disconnect,
    )


def _summary_of(intent: UserIntent | None, max_chars: int) -> str:
    """Return the question of a request that has but an intent."""
    if intent is None:
        raise InvalidRequest(_NO_REQUEST, field="question")

    summary = intent.summary.strip()
    if not summary or UNUSABLE.search(summary):
        raise wrong("intent.summary", "非空文本", "text that is not blank")

    return summary[:max_chars]


def _etl_notices(body: Mapping[str, Any]) -> tuple[Text, ...]:
    """Return notices of the fields that nobody reads, and of those that other agents read."""
    others = [field for field in _ASK_ALONE if body.get(field) is not None]
    rest = {field: value for field, value in body.items() if field not in _ASK_ALONE}
    notices = EtlAskBody.notices(rest)
    if not others:
        return notices

    zh, en = "、".join(others), ", ".join(others)
    without_effect = Text(
        f"以下参数对 etl 无效：{zh}。", f"Without effect for the agent etl: {en}."
    )
    return (*notices, without_effect)


def parse_answer(body: dict[str, Any]) -> tuple[str, Any]:
    """Return `interrupt_id` and the unchecked `answer` of a body that resumes a run.

    Raises:
        InvalidRequest: one of them is missing, `interrupt_id` can't be an id, or `answer` is
            nothing a store can keep.
    """
    fields = ResumeBody.read(body)
    return fields.interrupt_id, fields.answer


def parse_sql(body: dict[str, Any], accept_language: str | None) -> GivenSql:
    """Return the checked body of both SQL endpoints, still without an actor.

    Any text passes as SQL; the guard judges it.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    is_blank = isinstance(body.get("sql"), str) and not body["sql"].strip()
    fields = SqlBody.read({**body, "sql": None} if is_blank else body)
    lang = fields.lang or language_of_body({}, accept_language)
    return GivenSql(
        sql=fields.sql, lang=lang, notices=SqlBody.notices(body), database=fields.database
    )


def parse_user_id(fields: Mapping[str, Any]) -> str | None:
    """Return the `user_id` of a query string or a body; None: it names nobody.

    Only some callers may name one.

    Raises:
        InvalidRequest: it can't be the name of a user.
    """
    return ReaderQuery.read({"user_id": fields.get("user_id")}).user_id


def parse_reader(fields: Mapping[str, Any], accept_language: str | None) -> Reader:
    """Return `user_id` and `lang`, which defaults to `Accept-Language` and else to English.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    query = ReaderQuery.read(fields)
    lang = query.lang or language_of_body({}, accept_language)
    return Reader(query.user_id, lang)


def parse_database(fields: Mapping[str, Any]) -> str | None:
    """Return the name of the database that a query string or a body gives, which may be none.

    Raises:
        InvalidRequest: no database can have this name.
    """
    return DatabaseQuery.read(fields).database


def parse_page(query: Mapping[str, str]) -> tuple[int, str | None]:
    """Return `limit` (1 to 100, default 20) and `cursor`, which only the store can judge.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    page = PageQuery.read(query)
    return page.limit, page.cursor


def parse_table_name(text: str, field: str = "name") -> str:
    """Return the table's name in an address, or in an argument that is called `field`.

    Raises:
        InvalidRequest: no table can have this name.
    """
    return short_text(field, text)


def parse_conversation_id(text: str) -> str:
    """Return the conversation's id in an address.

    Raises:
        InvalidRequest: no conversation can have this id.
    """
    return identifier("conversation_id", text)


def parse_run_id(text: str) -> str:
    """Return the run's id in an address.

    Raises:
        InvalidRequest: no run can have this id.
    """
    return identifier("run_id", text)


def parse_idempotency_key(key: str | None) -> str | None:
    """Return the value of the header `Idempotency-Key`, or None.

    Raises:
        InvalidRequest: it is not made of 1 to 255 visible ASCII characters.
    """
    if key is None or re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        return key

    raise wrong(
        "Idempotency-Key",
        "1 到 255 个可见 ASCII 字符",
        "1 to 255 visible ASCII characters without spaces",
    )


def language_of_body(body: object, accept_language: str | None) -> Lang:
    """Return the language for an error about a body, which need not be valid.

    It is that of `lang`, else the question's, else `Accept-Language`.
    """
    fields = body if isinstance(body, dict) else {}
    if fields.get("lang") in ("zh", "en"):
        lang: Lang = fields["lang"]
        return lang

    for name in ("question", "message"):
        question = fields.get(name)
        if isinstance(question, str) and question.strip():
            return language_of(question)

    preferred = accept_language or ""
    prefers_chinese = preferred.lower().startswith("zh")
    return "zh" if prefers_chinese else "en"
