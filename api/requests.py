"""Bodies of requests, checked field by field, and what a client is told about a field that is wrong."""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from flask import Request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from agent.ask.routing import ROUTING_MODES
from agent.ask.sql_desk import GivenSql
from agent.flow import Question, new_conversation_id
from common.errors import InvalidRequest
from common.text import Lang, Text, language_of

_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
# NUL can't be stored or sent to PostgreSQL; a lone surrogate is half a character and can't be encoded.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_MAX_NAME_CHARS = 256
_MAX_TITLE_CHARS = 200
_MAX_PAGE = 100
_DEFAULT_PAGE = 20
# Categories of characters a line of a list can't show: controls, halves of characters, line and paragraph breaks.
_NOT_IN_A_TITLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ASK_FIELDS = frozenset(
    ("question", "agent", "user_id", "conversation_id", "routing_mode", "context_type", "table", "lang")
    + ("stream_tokens", "on_disconnect")
)
_SQL_FIELDS = frozenset(("sql", "lang", "user_id"))
# Of unknown fields, in the warning that names them.
_NAMED_FIELDS, _FIELD_CHARS = 10, 40
_BROKEN_BODY = Text(
    "请求体不完整或分块格式有误。", "The request body was cut off, or is not in the chunks its headers promise."
)
_MISSING = Text("缺少 question：请填写要问的问题。", "question is missing: say what you want to know.")
_NO_SQL = Text("缺少 sql：请填写要执行的查询。", "sql is missing: give the query.")
_NO_INTERRUPT = Text(
    "缺少 interrupt_id：请填写要回答的问题的 interrupt_id。",
    "interrupt_id is missing: give that of the question you answer.",
)
_NO_ANSWER = Text("缺少 answer：请填写答案。", "answer is missing: give your answer.")
_BLANK = Text("question 不能为空：请填写要问的问题。", "question is blank: say what you want to know.")


@dataclass(frozen=True)
class AskRequest:
    """A checked body of both ask endpoints.

    Attributes:
        on_disconnect: what becomes of the run when the client leaves; None: it does not say.
    """

    question: Question
    on_disconnect: Literal["cancel", "continue"] | None


@dataclass(frozen=True)
class Reader:
    """Whose conversations are meant, as far as the request says so, and the language to answer in."""

    user_id: str | None
    lang: Lang


def body_of(request: Request) -> bytes:
    """The body, whole.

    Raises:
        InvalidRequest: it is too large, or it is not what the headers say: cut off, or in broken chunks.
    """
    try:
        return request.get_data()
    except RequestEntityTooLarge as exc:
        limit = request.max_content_length
        text = Text(f"请求体过大，最多 {limit} 字节。", f"The request body is too large; at most {limit} bytes.")
        raise InvalidRequest(text) from exc
    except (OSError, ParseException, BadRequest) as exc:  # as gunicorn's and werkzeug's streams say it
        raise InvalidRequest(_BROKEN_BODY) from exc


def json_of(request: Request) -> Any:
    """The body as JSON, whatever its content type says; None when it is none.

    Raises:
        InvalidRequest: as `body_of`.
    """
    body_of(request)
    try:
        return request.get_json(force=True, silent=True)
    except RecursionError:  # thousands of brackets
        return None


def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object, whatever its content type says.

    Raises:
        InvalidRequest: it is not one, or can't be read.
    """
    body = json_of(request)
    if isinstance(body, dict):
        return body
    raise InvalidRequest(
        Text(
            '请求体必须是 JSON 对象，例如 {"question": "各服务区的营业收入排行"}。',
            'The body must be a JSON object, for example {"question": "Revenue ranking by service area"}.',
        )
    )


def parse_ask(body: dict[str, Any], max_question_chars: int, agents: Collection[str]) -> AskRequest:
    """A checked `AskRequest`.

    Args:
        agents: names of the flows that can be asked.

    Raises:
        InvalidRequest: naming the field and what is allowed.
    """
    question = _question(body.get("question"), max_question_chars)
    return AskRequest(
        question=Question(
            question=question,
            agent=_optional(body, "agent", _choice(*agents)),
            conversation_id=_optional(body, "conversation_id", _identifier) or new_conversation_id(),
            continues=body.get("conversation_id") is not None,
            notices=_unknown_fields(body, _ASK_FIELDS),
            user_id=_optional(body, "user_id", _name),
            lang=_optional(body, "lang", _choice("zh", "en")),
            routing_mode=_optional(body, "routing_mode", _choice(*ROUTING_MODES)),
            context_type=_optional(body, "context_type", _choice("DATABASE", "CHAT")),
            table=_optional(body, "table", _name),
            stream_tokens=_optional(body, "stream_tokens", _flag) is not False,
        ),
        on_disconnect=_optional(body, "on_disconnect", _choice("cancel", "continue")),
    )


def parse_answer(body: dict[str, Any]) -> tuple[str, Any]:
    """`interrupt_id` and `answer` of a body that resumes a run; what shape the answer has is the question's to say.

    Raises:
        InvalidRequest: one of them is missing, or can't be an id.
    """
    interrupt_id = _optional(body, "interrupt_id", _identifier)
    if interrupt_id is None:
        raise InvalidRequest(_NO_INTERRUPT, field="interrupt_id")
    if "answer" not in body:
        raise InvalidRequest(_NO_ANSWER, field="answer")
    return interrupt_id, body["answer"]


def parse_sql(body: dict[str, Any], accept_language: str | None) -> GivenSql:
    """The checked body of both SQL endpoints. Any text is a statement: what it is worth is the guard's to say.

    Raises:
        InvalidRequest: naming the field and what is allowed.
    """
    sql = body.get("sql")
    if sql is None or (isinstance(sql, str) and not sql.strip()):
        raise InvalidRequest(_NO_SQL, field="sql")
    if not isinstance(sql, str):
        raise _wrong("sql", "一个字符串", "a string")
    lang = _optional(body, "lang", _choice("zh", "en")) or language_of_body({}, accept_language)
    user_id, notices = _optional(body, "user_id", _name), _unknown_fields(body, _SQL_FIELDS)
    return GivenSql(sql=sql, lang=lang, user_id=user_id, notices=notices)


def parse_reader(fields: Mapping[str, Any], accept_language: str | None) -> Reader:
    """`user_id` and `lang` of a query string or a body.

    Raises:
        InvalidRequest: naming the field and what is allowed.
    """
    lang = _optional(fields, "lang", _choice("zh", "en")) or language_of_body({}, accept_language)
    return Reader(_optional(fields, "user_id", _name), lang)


def parse_page(query: Mapping[str, str]) -> tuple[int, str | None]:
    """`limit` and `cursor` of a query string; what a cursor is worth is the store's to say.

    Raises:
        InvalidRequest: naming the field and what is allowed.
    """
    return _optional(query, "limit", _page_size) or _DEFAULT_PAGE, _optional(query, "cursor", _name)


def parse_conversation_id(text: str) -> str:
    """The id in an address.

    Raises:
        InvalidRequest: no conversation can have it.
    """
    return _identifier("conversation_id", text)


def parse_run_id(text: str) -> str:
    """The id in an address.

    Raises:
        InvalidRequest: no run can have it.
    """
    return _identifier("run_id", text)


def parse_after(query: Mapping[str, str], run_id: str) -> int | None:
    """`after`: the number of the last event a client has, or its id.

    Raises:
        InvalidRequest: it is neither.
    """
    text = query.get("after")
    if text is None:
        return None
    number = text.removeprefix(f"{run_id}:")
    if re.fullmatch("[0-9]{1,9}", number):
        return int(number)
    raise _wrong(
        "after",
        "该运行的事件 id（如 run_…:7）或其序号",
        "the id of an event of the run (such as run_…:7), or its number",
    )


def parse_idempotency_key(key: str | None) -> str | None:
    """The value of the header `Idempotency-Key`, if there is one.

    Raises:
        InvalidRequest: it is not a text of visible characters.
    """
    if key is None or re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        return key
    raise _wrong("Idempotency-Key", "1 到 255 个可见 ASCII 字符", "1 to 255 visible ASCII characters without spaces")


def parse_title(body: Mapping[str, Any]) -> str:
    """A conversation's new title, trimmed.

    Raises:
        InvalidRequest: there is none that fits on a line.
    """
    value = body.get("title")
    title = value.strip() if isinstance(value, str) else ""
    if 0 < len(title) <= _MAX_TITLE_CHARS and not any(unicodedata.category(c) in _NOT_IN_A_TITLE for c in title):
        return title
    raise _wrong(
        "title",
        f"1 到 {_MAX_TITLE_CHARS} 个字符、不含换行等控制字符的字符串",
        f"a string of 1 to {_MAX_TITLE_CHARS} characters without line breaks or other control characters",
    )


def language_of_body(body: object, accept_language: str | None) -> Lang:
    """Best guess at the language for an error about a body that may be anything."""
    if isinstance(body, dict):
        if body.get("lang") in ("zh", "en"):
            lang: Lang = body["lang"]
            return lang
        if isinstance(body.get("question"), str) and body["question"].strip():
            return language_of(body["question"])
    return "zh" if (accept_language or "").lower().startswith("zh") else "en"


def _unknown_fields(body: Mapping[str, Any], known: Collection[str]) -> tuple[Text, ...]:
    """What to tell a client that sends fields that nobody reads: which ones, and what they may have been meant for."""
    unknown = [field for field in body if field not in known]
    if not unknown:
        return ()
    named = [_field_and_guess(field, known) for field in unknown[:_NAMED_FIELDS]]
    more = " …" if len(unknown) > _NAMED_FIELDS else ""
    zh = "、".join(name.zh for name in named)
    en = ", ".join(name.en for name in named)
    return (
        Text(f"请求中有未知字段，已忽略：{zh}{more}。", f"Unknown fields of the request were ignored: {en}{more}."),
    )


def _field_and_guess(field: str, known: Collection[str]) -> Text:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in field[:_FIELD_CHARS])
    close = get_close_matches(field[:_FIELD_CHARS].lower(), known, n=1)
    if not close:
        return Text(shown, shown)
    return Text(f"{shown}（是否指 {close[0]}？）", f"{shown} (did you mean {close[0]}?)")


def _question(value: object, max_chars: int) -> str:
    if value is None:
        raise InvalidRequest(_MISSING, field="question")
    if not isinstance(value, str):
        raise _wrong("question", "一个字符串", "a string")
    text = value.strip()
    if not text:
        raise InvalidRequest(_BLANK, field="question")
    if len(text) > max_chars:
        raise InvalidRequest(
            Text(
                f"question 过长：{len(text)} 个字符，最多 {max_chars} 个。",
                f"question is too long: {len(text)} characters, at most {max_chars}.",
            ),
            field="question",
        )
    if _UNUSABLE.search(text):
        raise _wrong("question", "不含 NUL 或不完整字符的文本", "text without NUL or broken characters")
    return text


def _optional(body: Mapping[str, Any], field: str, parse: Callable[[str, object], Any]) -> Any:
    value = body.get(field)
    return None if value is None else parse(field, value)


def _choice(*choices: str) -> Callable[[str, object], str]:
    def parse(field: str, value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise _wrong(field, "、".join(choices) + " 之一", "one of " + ", ".join(choices))

    return parse


def _flag(field: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(field, "true 或 false", "true or false")


def _identifier(field: str, value: object) -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise _wrong(
        field, "1 到 128 个字母、数字或 _ . : - 组成的字符串", "a string of 1 to 128 letters, digits, _ . : or -"
    )


def _page_size(field: str, value: object) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,3}", value) and 1 <= int(value) <= _MAX_PAGE:
        return int(value)
    raise _wrong(field, f"1 到 {_MAX_PAGE} 的整数", f"a whole number from 1 to {_MAX_PAGE}")


def _name(field: str, value: object) -> str:
    if isinstance(value, str) and 0 < len(value) <= _MAX_NAME_CHARS and not _UNUSABLE.search(value):
        return value
    raise _wrong(field, f"1 到 {_MAX_NAME_CHARS} 个字符的字符串", f"a string of 1 to {_MAX_NAME_CHARS} characters")


def _wrong(field: str, zh: str, en: str) -> InvalidRequest:
    return InvalidRequest(Text(f"{field} 无效：必须是{zh}。", f"{field} is not valid: it must be {en}."), field=field)
