"""Checks the requests about feedback and about what is learnt."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from agent.services.learning.feedback_service import GivenFeedback
from api.fields import identifier
from api.models.request_models import FeedbackBody, LearntQuery, ReviewVerdictBody
from api.requests import language_of_body
from common.actor import NOBODY
from common.errors import InvalidRequest
from common.learning import Trust
from common.text import Text
from store import LearntState

_EMPTY = Text(
    '请求体是空的：每行要有一个 JSON 对象，例如 {"question": "…", "sql": "SELECT …"}。',
    'The body is empty: it takes one JSON object per line, such as {"question": "…", "sql": '
    '"SELECT …"}.',
)
_NO_LINES = Text("请求体必须是 UTF-8 的 JSON Lines。", "The body must be JSON Lines in UTF-8.")


@dataclass(frozen=True)
class WantedItems:
    """The filter of a list or an export."""

    trusts: tuple[Trust, ...]
    states: tuple[LearntState, ...]


def parse_feedback(
    body: dict[str, Any], accept_language: str | None
) -> tuple[GivenFeedback, str | None]:
    """Return the checked feedback, still without an actor, and the user that the body names.

    Raises:
        InvalidRequest: a field is missing or wrong; names it and what is allowed.
    """
    fields = FeedbackBody.read(body).checked()
    feedback = GivenFeedback(
        run_id=fields.run_id,
        rating=fields.rating,
        actor=NOBODY,
        lang=fields.lang or language_of_body({}, accept_language),
        comment=fields.comment,
        modified_sql=fields.modified_sql,
        conversation_id=fields.conversation_id,
        notices=FeedbackBody.notices(body),
    )
    return feedback, fields.user_id


def parse_item_id(id_: str) -> str:
    """Return the id of an example or a lesson in an address. Raises `InvalidRequest`."""
    return identifier("id", id_)


def parse_wanted(query: Mapping[str, str]) -> WantedItems:
    """Return `trust` and `state` of a query string, each with its commas split; default: all.

    Raises:
        InvalidRequest: there is none of that name.
    """
    learnt_query = LearntQuery.read(query)
    return WantedItems(
        trusts=learnt_query.trust or get_args(Trust),
        states=learnt_query.state or get_args(LearntState),
    )


def parse_seen(body: Mapping[str, Any]) -> Trust | None:
    """Return `trust` of a verdict's body: what the reviewer saw. Raises `InvalidRequest`."""
    return ReviewVerdictBody.read(body).trust


def parse_lines(body: bytes) -> str:
    """Return the body of an import as text.

    Raises `InvalidRequest`: it is not UTF-8, or has nothing but blank lines.
    """
    try:
        lines = body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(_NO_LINES) from exc

    if not lines.strip():
        raise InvalidRequest(_EMPTY)

    return lines
