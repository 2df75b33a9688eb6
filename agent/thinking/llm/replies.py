"""Reads a model's reply as SQL, as a reason why there is none, or as prose.

`reply_shapes` finds the SQL in a reply; the guard judges what it does.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent.thinking.llm.reasoning import without_reasoning
from agent.thinking.llm.reply_shapes import FoundSql, Grade, json_values, sql_in
from common.errors import ForbiddenStatement
from common.text import Lang, Text
from common.values import Draft, FailureReason, NoSql, Sql

MAX_EXPLANATION_CHARS = 500  # the most of a model's explanation that the user is shown

REPHRASE = Text(
    "请尝试重新描述您的问题或询问其他内容。",
    "Try to rephrase your question, or ask something else.",
)
_PROMPTS: dict[FailureReason, Text] = {
    "missing_database_info": Text(
        "数据库中没有相关的表或字段信息，请您提供更多具体信息或修改问题。",
        "The database has no table or column for this. Give more details or change the question.",
    ),
    "ambiguous_question": Text(
        "您的问题需要更多信息才能准确查询，请提供更详细的描述。",
        "The question needs more information to be answered precisely. "
        "Describe in more detail what you want to know.",
    ),
    "unknown_generation_failure": Text(
        "无法生成有效的SQL查询，请尝试重新描述您的问题。",
        "No valid SQL could be written for this question. Try to rephrase it.",
    ),
}
_CUT_OFF = Text(
    "模型的回答过长而被截断，没有得到完整的SQL。请缩小问题范围后重试。",
    "The model's reply was cut off before the SQL was complete. Ask a narrower question.",
)
WITHHELD = Text(
    "模型或其内容审核拒绝回答这个问题。请换一种问法。",
    "The model, or its content filter, refused to answer this question. Try to rephrase it.",
)


def sql_from_reply(
    reply: str, lang: Lang, *, known_tables: Collection[str] = (), is_cut: bool = False
) -> Draft:
    """Read the reply to a prompt for SQL.

    Args:
        known_tables: lower-case names of the tables that exist; they tell unfenced SQL from prose.
        is_cut: the model was stopped before the end of its reply. SQL at the end may then be
            incomplete: a statement without its last condition would run and answer wrongly.

    Several statements in one block are returned as they are, for the guard to refuse. Of several
    blocks, the one that the reply calls final counts, else the last that is a query.

    Raises:
        ForbiddenStatement: the model says that the question asks for a write.
    """
    text = without_reasoning(reply)
    found = sql_in(text, frozenset(known_tables), is_cut=is_cut)
    declined = _refusal_in(text, found, lang)
    if declined:
        return declined
    if is_cut and not (found and found.is_closed):
        return NoSql("unknown_generation_failure", _CUT_OFF.to(lang))

    if found:
        return Sql(found.sql)

    return _prose(_explanation(text), lang)


def refusal_outcome(refusal: str, lang: Lang) -> NoSql:
    """Return the outcome when the model refuses to answer, with its own words if it gave any."""
    if refusal.strip():
        return _prose(refusal, lang)

    return NoSql("llm_explanation", WITHHELD.to(lang))


# ------------------------------------------------------------------------------
# declining

# `NO_SQL: reason: explanation` as the prompts ask for it, in any case, with or without what should
# follow, also in a comment, a fence or JSON. Without the colon it is a marker only where nothing
# else stands on the line.
_MARKER = re.compile(
    r"\bNO_SQL\b[`*\"']{0,3}"
    r"(?:[ \t]*[:：,，–—-]+[ \t]*|[ \t]+(?=\w+_\w+)|[ \t]*+(?=[.。!]?[`*\"')}\]]{0,3}[^\S\n]*+$))"
    r"[\"'`*]{0,3}([A-Za-z_]*)[\"'`*]{0,3}[ \t]*[:：,，–—-]*[ \t]*(.*)",
    re.MULTILINE | re.IGNORECASE,
)
_LABEL_ENDS = (":", "：")
_QUOTES = "\"'>"
_AROUND = "`* \t\"'{}[]()<>/|\\"  # signs around an explanation
_DECORATION_SIGNS = f" \t\r\f\v\u00a0\u3000-#*`{{([/|{_QUOTES}"
_WORD = re.compile(r"\bNO_SQL\b[`*\"':：]{0,4}", re.IGNORECASE)
_REASONS: dict[str, FailureReason] = {
    "missing_database_info": "missing_database_info",
    "ambiguous_question": "ambiguous_question",
}
_WRITE = "write_requested"


def _refusal_in(text: str, found: FoundSql | None, lang: Lang) -> NoSql | None:
    if found and found.grade is Grade.QUERY and _is_name_in(found.sql):
        return None

    marker = _declining_marker(text)
    if marker is None:
        return None

    word = marker[1].lower()
    explanation = _capped(_WORD.sub(" ", marker[2]).strip(_AROUND))
    if word == _WRITE:
        operation = re.match(r"[A-Za-z]+", explanation)
        raise ForbiddenStatement(operation[0].upper() if operation else "WRITE")

    reason = _REASONS.get(word)
    if reason is None:
        return _prose(f"{marker[1]} {explanation}", lang)

    advice = _PROMPTS[reason].to(lang)
    return NoSql(reason, f"{explanation} {advice}" if explanation else advice)


def _declining_marker(text: str) -> re.Match[str] | None:
    for marker in _MARKER.finditer(text):
        if _declines(text, marker):
            return marker

    return None


def _declines(text: str, marker: re.Match[str]) -> bool:
    """Tell whether the marker declines: it gives a reason, or nothing but a label is before it."""
    if marker[1].lower() in {*_REASONS, _WRITE}:
        return True

    line_start = text.rfind("\n", 0, marker.start()) + 1
    line = text[line_start : marker.start()]
    label = line.rstrip(_DECORATION_SIGNS)
    decoration = line[len(label) :]
    is_quoted = any(quote in decoration for quote in _QUOTES)
    return not label or is_quoted or label.endswith(_LABEL_ENDS)


def _is_name_in(sql: str) -> bool:
    """Tell whether the query uses the marker's word as a name or literal: it declines nothing."""
    without_comments = re.sub(r"--[^\n]*|/\*.*?(?:\*/|\Z)", " ", sql, flags=re.DOTALL)
    return bool(_WORD.search(without_comments))


def _prose(text: str, lang: Lang) -> NoSql:
    explanation = _capped(_WORD.sub(" ", text))
    if not re.search(r"\w", explanation):
        return NoSql("unknown_generation_failure", _PROMPTS["unknown_generation_failure"].to(lang))

    return NoSql("llm_explanation", f"{explanation} {REPHRASE.to(lang)}")


def _capped(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= MAX_EXPLANATION_CHARS:
        return text

    return text[: MAX_EXPLANATION_CHARS - 1].rstrip() + "…"


_EXPLANATION_KEYS = ("explanation", "reason", "error", "message", "answer", "response")
_DECORATION = re.compile(r"^[ \t]*(?:```\w*|--+|/\*+|\*+/)[ \t]*", re.MULTILINE)


def _explanation(text: str) -> str:
    """Return the text of a reply without SQL, without fences and comment signs.

    Of a JSON object it is only the message.
    """
    for value, _, _ in json_values(text):
        if isinstance(value, dict):
            return _message_in(value)

    return _DECORATION.sub("", text)


def _message_in(value: Mapping[str, Any]) -> str:
    for key in _EXPLANATION_KEYS:
        message = value.get(key)
        if isinstance(message, str):
            return message

    return ""
