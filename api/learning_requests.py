"""Checks the requests about feedback and about what is learnt."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from agent.learning.feedback_desk import GivenFeedback
from api.fields import choice, identifier, optional, text, unknown_fields, wrong
from api.requests import parse_reader
from common.actor import NOBODY
from common.errors import InvalidRequest
from common.learning import MAX_SENTENCE_CHARS, MAX_SQL_CHARS, Rating, Trust
from common.store import State
from common.text import Text

_FIELDS = frozenset(("run_id", "rating", "comment", "modified_sql", "conversation_id", "user_id", "lang"))
_NO_RUN = Text("缺少 run_id：请填写要评价的回答的 run_id。", "run_id is missing: give that of the answer.")
_NO_RATING = Text(
    "缺少 rating：请填写 satisfied、unsatisfied、need_modification 或 skip。",
    "rating is missing: give satisfied, unsatisfied, need_modification or skip.",
)
_NO_SQL = Text(
    "缺少 modified_sql：rating 为 need_modification 时请填写改正后的 SQL。",
    "modified_sql is missing: with need_modification, give the corrected SQL.",
)
_SQL_ELSEWHERE = Text(
    "modified_sql 只能与 rating = need_modification 一起使用。", "modified_sql goes with need_modification only."
)
_EMPTY = Text(
    '请求体是空的：每行要有一个 JSON 对象，例如 {"question": "…", "sql": "SELECT …"}。',
    'The body is empty: it takes one JSON object per line, such as {"question": "…", "sql": "SELECT …"}.',
)
_NO_LINES = Text("请求体必须是 UTF-8 的 JSON Lines。", "The body must be JSON Lines in UTF-8.")


@dataclass(frozen=True)
class WantedItems:
    """Which things a list or an export shows."""

    trusts: tuple[Trust, ...]
    states: tuple[State, ...]


def parse_feedback(body: dict[str, Any], accept_language: str | None) -> tuple[GivenFeedback, str | None]:
    """The checked feedback, still without an actor, and the user that the body names.

    Raises:
        InvalidRequest: a field is missing or wrong; names it and what is allowed.
    """
    for field, missing in (("run_id", _NO_RUN), ("rating", _NO_RATING)):
        if body.get(field) is None:
            raise InvalidRequest(missing, field=field)
    rating: Rating = choice(*get_args(Rating))("rating", body["rating"])  # type: ignore[assignment]
    sql = optional(body, "modified_sql", text(MAX_SQL_CHARS))
    if rating == "need_modification" and not (sql or "").strip():
        raise InvalidRequest(_NO_SQL, field="modified_sql")
    if rating != "need_modification" and sql is not None:
        raise InvalidRequest(_SQL_ELSEWHERE, field="modified_sql")
    reader = parse_reader(body, accept_language)
    given = GivenFeedback(
        run_id=identifier("run_id", body["run_id"]),
        rating=rating,
        actor=NOBODY,
        lang=reader.lang,
        comment=optional(body, "comment", text(MAX_SENTENCE_CHARS)),
        modified_sql=sql,
        conversation_id=optional(body, "conversation_id", identifier),
        notices=unknown_fields(body, _FIELDS),
    )
    return given, reader.user_id


def parse_item_id(given: str) -> str:
    """The id of an example or a lesson in an address. Raises `InvalidRequest`."""
    return identifier("id", given)


def parse_wanted(query: Mapping[str, str]) -> WantedItems:
    """`trust` and `state` of a query string: one or more by commas; all of them when they are missing.

    Raises:
        InvalidRequest: there is none of that name.
    """
    return WantedItems(
        trusts=optional(query, "trust", _several(*get_args(Trust))) or get_args(Trust),
        states=optional(query, "state", _several(*get_args(State))) or get_args(State),
    )


def parse_seen(body: Mapping[str, Any]) -> Trust | None:
    """`trust` of a verdict's body: what the reviewer saw. Raises `InvalidRequest`."""
    seen: Trust | None = optional(body, "trust", choice(*get_args(Trust)))
    return seen


def parse_lines(body: bytes) -> str:
    """The body of an import as text. Raises `InvalidRequest`: it is not UTF-8, or has nothing but blank lines."""
    try:
        lines = body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(_NO_LINES) from exc
    if not lines.strip():
        raise InvalidRequest(_EMPTY)
    return lines


def _several(*choices: str) -> Callable[[str, object], tuple[str, ...]]:
    def parse(field: str, value: object) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in str(value).split(","))
        if all(part in choices for part in parts):
            return tuple(dict.fromkeys(parts))
        raise wrong(field, "、".join(choices) + " 中的一个或多个（逗号分隔）", "by commas, of " + ", ".join(choices))

    return parse
