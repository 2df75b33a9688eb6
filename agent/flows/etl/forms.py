"""The forms in which the flow asks its user: JSON Schema with labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.flows.flow import UserQuestion
from common.text import Lang, Text
from etl.schemas.requirement import Ambiguity

CANCEL = "__cancel__"
MOST_AT_ONCE = 5  # ambiguities of one form

_CANCEL_LABEL = Text("放弃这次请求", "Give the request up")
_PROMPT = Text("请先确认：{}", "Please decide first: {}")
_JUDGE = Text("草稿已构建并通过测试，请评价。", "The draft is built and its tests pass. How is it?")
_JUDGE_FAILED = Text(
    "修改后的草稿没有通过测试，请评价。", "With your change the draft does not pass. How is it?"
)
_RATINGS: Mapping[str, Text] = {
    "satisfied": Text("满意", "Satisfied"),
    "unsatisfied": Text("不满意", "Not satisfied"),
    "need_modification": Text("需要修改 SQL", "The SQL needs a change"),
    "skip": Text("跳过", "Skip"),
}
_COMMENT = Text("意见", "Comment")
_SQL = Text("按节点修改后的 SQL", "Changed SQL by node")
_MOST_COMMENT_CHARS = 2_000
_MOST_SQL_CHARS = 20_000


def clarify_question(ambiguities: Sequence[Ambiguity], lang: Lang) -> UserQuestion:
    """Return the form with one field for each of the first ambiguities."""
    asked = ambiguities[:MOST_AT_ONCE]
    prompt = _PROMPT.to(lang).format(" ".join(ambiguity.prompt for ambiguity in asked))
    schema = {
        "type": "object",
        "properties": {one.id: _field(one, lang) for one in asked},
        "required": [one.id for one in asked],
        "additionalProperties": False,
    }
    return UserQuestion("clarify", prompt, schema=schema)


def _field(ambiguity: Ambiguity, lang: Lang) -> dict[str, Any]:
    field = {"type": "string", "title": ambiguity.prompt, "x-kind": ambiguity.kind}
    if not ambiguity.choices:
        return {**field, "minLength": 1, "maxLength": 200}

    values = [choice.value for choice in ambiguity.choices]
    labels = [choice.label for choice in ambiguity.choices]
    return {
        **field,
        "enum": [*values, CANCEL],
        "x-labels": [*labels, _CANCEL_LABEL.to(lang)],
    }


def feedback_question(
    shown: Mapping[str, Any], code: Mapping[str, str], refusal: str | None, lang: Lang
) -> UserQuestion:
    """Return the form for a rating.

    Args:
        shown: what is judged: `evidence`, `artefact` and `summary` as in the answer.
        code: the SQL of the nodes, which may be changed.
        refusal: why the last change was not taken over; None when it was.
    """
    judge = _JUDGE if shown["evidence"]["status"] == "passed" else _JUDGE_FAILED
    prompt = " ".join(filter(None, (refusal, judge.to(lang))))
    rating = {
        "type": "string",
        "enum": list(_RATINGS),
        "x-labels": [label.to(lang) for label in _RATINGS.values()],
    }
    nodes = {name: _sql_field(sql) for name, sql in code.items()}
    schema = {
        "type": "object",
        "properties": {
            "rating": rating,
            "comment": {
                "type": ["string", "null"],
                "title": _COMMENT.to(lang),
                "maxLength": _MOST_COMMENT_CHARS,
            },
            "modified_sql": {
                "type": ["object", "null"],
                "title": _SQL.to(lang),
                "properties": nodes,
                "additionalProperties": False,
            },
        },
        "required": ["rating"],
        "additionalProperties": False,
    }
    return UserQuestion("feedback", prompt, schema=schema, details=shown)


def _sql_field(sql: str) -> dict[str, Any]:
    field = {"type": "string", "minLength": 1, "maxLength": _MOST_SQL_CHARS}
    # SQL that is longer than may be sent back is no text to begin with.
    if len(sql) <= _MOST_SQL_CHARS:
        return {**field, "default": sql}

    return field
