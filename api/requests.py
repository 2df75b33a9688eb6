"""Checks bodies and query strings of requests field by field, and tells the client which field is wrong and why."""

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from flask import Request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from agent.ask.routing import ROUTING_MODES
from agent.ask.sql_desk import GivenSql
from agent.flow import Question, new_conversation_id
from api.fields import UNUSABLE, choice, flag, identifier, optional, short_text, unknown_fields, whole_number, wrong
from common.errors import InvalidRequest
from common.text import Lang, Text, language_of

_MAX_TITLE_CHARS = 200
_MAX_ANSWER_DEPTH = 32  # of lists and objects: graphs, checkpoints and schemas are recursive
_MAX_PAGE = 100
_DEFAULT_PAGE = 20
_MAX_FOUND = 50  # tables
_DEFAULT_FOUND = 10
# Unicode categories that a title on one line can't show: controls, surrogates, line and paragraph separators.
_NOT_IN_A_TITLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ASK_FIELDS = frozenset(
    ("question", "agent", "user_id", "conversation_id", "routing_mode", "context_type", "table", "lang")
    + ("stream_tokens", "on_disconnect")
)
_SQL_FIELDS = frozenset(("sql", "lang", "user_id"))
_BROKEN_BODY = Text(
    "请求体不完整或分块格式有误。", "The request body was cut off, or is not in the chunks its headers promise."
)
_MISSING = Text("缺少 {}：请填写要问的问题。", "{} is missing: say what you want to know.")
_NO_SQL = Text("缺少 sql：请填写要执行的查询。", "sql is missing: give the query.")
_NO_INTERRUPT = Text(
    "缺少 interrupt_id：请填写要回答的问题的 interrupt_id。",
    "interrupt_id is missing: give that of the question you answer.",
)
_NO_ANSWER = Text("缺少 answer：请填写答案。", "answer is missing: give your answer.")
_NO_SEARCH = Text("缺少 q：请填写要查找的内容。", "q is missing: say what you look for.")
_UNUSABLE_ANSWER = Text(
    "answer 无效：文本不能含 NUL 或不完整字符，数字不能是 NaN、无穷大或超出 64 位，嵌套最多 32 层。",
    "answer is not valid: no text in it may have NUL or broken characters, no number may be NaN, infinite or "
    "beyond 64 bits, and it may be nested 32 deep at most.",
)
_BLANK = Text("{} 不能为空：请填写要问的问题。", "{} is blank: say what you want to know.")


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
    """The user whose conversations or runs the request names, if any, and the language to answer in."""

    user_id: str | None
    lang: Lang


def body_of(request: Request) -> bytes:
    """The whole body.

    Raises:
        InvalidRequest: it is too large, shorter than its headers say, or in broken chunks.
    """
    try:
        return request.get_data()
    except RequestEntityTooLarge as exc:
        limit = request.max_content_length
        text = Text(f"请求体过大，最多 {limit} 字节。", f"The request body is too large; at most {limit} bytes.")
        raise InvalidRequest(text) from exc
    except (OSError, ParseException, BadRequest) as exc:  # what the streams of gunicorn and werkzeug raise
        raise InvalidRequest(_BROKEN_BODY) from exc


def json_of(request: Request) -> Any:
    """The body as JSON, whatever the content type; None when it is not JSON.

    Raises:
        InvalidRequest: as `body_of`.
    """
    body_of(request)
    try:
        return request.get_json(force=True, silent=True)
    except RecursionError:  # thousands of nested brackets
        return None


def json_object(request: Request, example: str | Text) -> dict[str, Any]:
    """The body as a JSON object, whatever the content type.

    Args:
        example: a body that the endpoint takes.

    Raises:
        InvalidRequest: it is not a JSON object, or can't be read.
    """
    body = json_of(request)
    if isinstance(body, dict):
        return body
    zh, en = example if isinstance(example, Text) else (example, example)
    raise InvalidRequest(
        Text(f"请求体必须是 JSON 对象，例如 {zh}。", f"The body must be a JSON object, for example {en}.")
    )


def parse_ask(body: dict[str, Any], max_question_chars: int, agents: Collection[str]) -> AskRequest:
    """The checked body of both ask endpoints.

    Args:
        max_question_chars: longest question, in characters.
        agents: names of the flows that can be asked.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    question = question_text("question", body.get("question"), max_question_chars)
    return AskRequest(
        question=Question(
            question=question,
            agent=optional(body, "agent", choice(*agents)),
            conversation_id=optional(body, "conversation_id", identifier) or new_conversation_id(),
            continues=body.get("conversation_id") is not None,
            notices=unknown_fields(body, _ASK_FIELDS),
            lang=optional(body, "lang", choice("zh", "en")),
            routing_mode=optional(body, "routing_mode", choice(*ROUTING_MODES)),
            context_type=optional(body, "context_type", choice("DATABASE", "CHAT")),
            table=optional(body, "table", short_text),
            stream_tokens=optional(body, "stream_tokens", flag) is not False,
        ),
        user_id=parse_user_id(body),
        on_disconnect=optional(body, "on_disconnect", choice("cancel", "continue")),
    )


def parse_answer(body: dict[str, Any]) -> tuple[str, Any]:
    """`interrupt_id` and `answer` of a body that resumes a run; the shape of the answer is checked later.

    Raises:
        InvalidRequest: one of them is missing, `interrupt_id` can't be an id, or `answer` is nothing a store can keep.
    """
    interrupt_id = optional(body, "interrupt_id", identifier)
    if interrupt_id is None:
        raise InvalidRequest(_NO_INTERRUPT, field="interrupt_id")
    if "answer" not in body:
        raise InvalidRequest(_NO_ANSWER, field="answer")
    if not _is_usable(body["answer"]):
        raise InvalidRequest(_UNUSABLE_ANSWER, field="answer")
    return interrupt_id, body["answer"]


def _is_usable(value: Any, depth: int = 0) -> bool:
    """Whether all stores and checkpoints can keep the JSON `value`, and give it back as it is."""
    if isinstance(value, str):
        return not UNUSABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 2**63  # more than that, a checkpoint can't hold
    if value is None:
        return True
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return depth < _MAX_ANSWER_DEPTH and all(_is_usable(part, depth + 1) for part in parts)


def parse_sql(body: dict[str, Any], accept_language: str | None) -> GivenSql:
    """The checked body of both SQL endpoints, still without an actor. Any text passes as SQL; the guard judges it.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    sql = body.get("sql")
    if sql is None or (isinstance(sql, str) and not sql.strip()):
        raise InvalidRequest(_NO_SQL, field="sql")
    if not isinstance(sql, str):
        raise wrong("sql", "一个字符串", "a string")
    lang = optional(body, "lang", choice("zh", "en")) or language_of_body({}, accept_language)
    return GivenSql(sql=sql, lang=lang, notices=unknown_fields(body, _SQL_FIELDS))


def parse_user_id(fields: Mapping[str, Any]) -> str | None:
    """The `user_id` of a query string or a body; None: it names nobody. Only some callers may name one.

    Raises:
        InvalidRequest: it can't be the name of a user.
    """
    name: str | None = optional(fields, "user_id", short_text)
    return name


def parse_reader(fields: Mapping[str, Any], accept_language: str | None) -> Reader:
    """`user_id` and `lang` of a query string or a body; `lang` defaults to `Accept-Language`, else English.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    lang = optional(fields, "lang", choice("zh", "en")) or language_of_body({}, accept_language)
    return Reader(parse_user_id(fields), lang)


def parse_page(query: Mapping[str, str]) -> tuple[int, str | None]:
    """`limit` (1 to 100, default 20) and `cursor` of a query string; only the store can tell whether a cursor is valid.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    return optional(query, "limit", whole_number(_MAX_PAGE)) or _DEFAULT_PAGE, optional(query, "cursor", short_text)


def parse_search(query: Mapping[str, str], max_chars: int) -> tuple[str, int]:
    """`q`, at most `max_chars` characters without blanks around it, and `limit` (1 to 50, default 10).

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    text = (query.get("q") or "").strip()
    if not text:
        raise InvalidRequest(_NO_SEARCH, field="q")
    if len(text) > max_chars or UNUSABLE.search(text):
        zh, en = f"不含 NUL、最多 {max_chars} 个字符的文本", f"a text of at most {max_chars} characters without NUL"
        raise wrong("q", zh, en)
    return text, optional(query, "limit", whole_number(_MAX_FOUND)) or _DEFAULT_FOUND


def parse_export(query: Mapping[str, str], formats: Collection[str]) -> tuple[str, str | None, str | None]:
    """`format`, one of `formats`, the first by default, `conversation_id` and `call_id` of a query string.

    Raises:
        InvalidRequest: a field is wrong; names the field and what is allowed.
    """
    kind = optional(query, "format", choice(*formats)) or next(iter(formats))
    return kind, optional(query, "conversation_id", identifier), optional(query, "call_id", short_text)


def parse_table_name(text: str) -> str:
    """The table's name in an address.

    Raises:
        InvalidRequest: no table can have this name.
    """
    return short_text("name", text)


def parse_conversation_id(text: str) -> str:
    """The conversation's id in an address.

    Raises:
        InvalidRequest: no conversation can have this id.
    """
    return identifier("conversation_id", text)


def parse_run_id(text: str) -> str:
    """The run's id in an address.

    Raises:
        InvalidRequest: no run can have this id.
    """
    return identifier("run_id", text)


def parse_after(query: Mapping[str, str], run_id: str) -> int | None:
    """The number in `after`, which names the last event that the client has by its number or its id; None: not given.

    Raises:
        InvalidRequest: it is neither a number nor the id of an event of this run.
    """
    text = query.get("after")
    if text is None:
        return None
    number = text.removeprefix(f"{run_id}:")
    if re.fullmatch("[0-9]{1,9}", number):
        return int(number)
    raise wrong(
        "after",
        "该运行的事件 id（如 run_…:7）或其序号",
        "the id of an event of the run (such as run_…:7), or its number",
    )


def parse_idempotency_key(key: str | None) -> str | None:
    """The value of the header `Idempotency-Key`, or None.

    Raises:
        InvalidRequest: it is not made of 1 to 255 visible ASCII characters.
    """
    if key is None or re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        return key
    raise wrong("Idempotency-Key", "1 到 255 个可见 ASCII 字符", "1 to 255 visible ASCII characters without spaces")


def parse_title(body: Mapping[str, Any]) -> str:
    """A conversation's new title, without blanks around it.

    Raises:
        InvalidRequest: it is missing, blank, too long, or does not fit on one line.
    """
    value = body.get("title")
    title = value.strip() if isinstance(value, str) else ""
    if 0 < len(title) <= _MAX_TITLE_CHARS and not any(unicodedata.category(c) in _NOT_IN_A_TITLE for c in title):
        return title
    raise wrong(
        "title",
        f"1 到 {_MAX_TITLE_CHARS} 个字符、不含换行等控制字符的字符串",
        f"a string of 1 to {_MAX_TITLE_CHARS} characters without line breaks or other control characters",
    )


def language_of_body(body: object, accept_language: str | None) -> Lang:
    """The language for an error about a body that need not be valid: its `lang`, its question's, `Accept-Language`."""
    if isinstance(body, dict):
        if body.get("lang") in ("zh", "en"):
            lang: Lang = body["lang"]
            return lang
        for asked in (body.get("question"), body.get("message")):
            if isinstance(asked, str) and asked.strip():
                return language_of(asked)
    return "zh" if (accept_language or "").lower().startswith("zh") else "en"


def question_text(field: str, value: object, max_chars: int) -> str:
    """The question in a body's `field`, without blanks around it.

    Raises:
        InvalidRequest: it is missing, blank, too long, or no text that can be kept.
    """
    if value is None:
        raise InvalidRequest(Text(_MISSING.zh.format(field), _MISSING.en.format(field)), field=field)
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
