"""`/api/v0/conversations`: lists, shows, renames, clears and deletes a user's conversations.

A conversation of another user is answered with 404, like one that does not exist.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from flask import Blueprint, Response, request

from api.access.callers import acting_as
from api.models.request_models import RenameBody
from api.requests import (
    Reader,
    json_object,
    parse_conversation_id,
    parse_page,
    parse_reader,
)
from api.responses import reply
from api.waiting import from_store
from common.envelope import success
from common.errors import InvalidRequest, NotFound
from common.text import Text
from common.values import Turn
from store import Conversation, Conversations, InvalidCursor

T = TypeVar("T")

_DONE = Text("处理完成", "Done")
_EXAMPLE = '{"title": "Revenue of 2026"}'
_CURSOR = Text(
    "cursor 无效：必须是上一页返回的 next_cursor。",
    "cursor is not valid: it must be the next_cursor of the page before.",
)


def conversations_blueprint(conversations: Conversations) -> Blueprint:
    """Return the blueprint of all endpoints, over the conversations of one store."""
    blueprint = Blueprint("conversations", __name__, url_prefix="/api/v0/conversations")

    @blueprint.get("")
    def list_conversations() -> Response:
        reader, (limit, cursor) = _reader(request.args), parse_page(request.args)
        page = _page_from(conversations.page(_user(reader), limit, cursor))
        listed = [_conversation_json(conversation) for conversation in page.conversations]
        return _success({"conversations": listed, "next_cursor": page.next_cursor}, reader)

    @blueprint.delete("")
    def delete_conversations() -> Response:
        reader = _reader(request.args)
        deleted = from_store(conversations.delete_all(_user(reader)))
        return _success({"deleted": deleted}, reader)

    @blueprint.get("/<conversation_id>")
    def read_conversation(conversation_id: str) -> Response:
        conversation_id = parse_conversation_id(conversation_id)
        reader, (limit, cursor) = _reader(request.args), parse_page(request.args)
        page = _page_from(conversations.turns(_user(reader), conversation_id, limit, cursor))
        if page is None:
            raise _not_found(conversation_id)

        data = {
            "conversation": _conversation_json(page.conversation),
            "turns": [_shown(turn) for turn in page.turns],
            "next_cursor": page.next_cursor,
        }
        return _success(data, reader)

    @blueprint.patch("/<conversation_id>")
    def rename_conversation(conversation_id: str) -> Response:
        conversation_id = parse_conversation_id(conversation_id)
        body = json_object(request, _EXAMPLE)
        reader, title = _reader(body), RenameBody.read(body).title
        renaming = conversations.rename(_user(reader), conversation_id, title)
        _require(from_store(renaming), conversation_id)
        return _success({"conversation_id": conversation_id, "title": title}, reader)

    @blueprint.delete("/<conversation_id>")
    def delete_conversation(conversation_id: str) -> Response:
        conversation_id = parse_conversation_id(conversation_id)
        reader = _reader(request.args)
        deleting = conversations.delete(_user(reader), conversation_id)
        _require(from_store(deleting), conversation_id)
        return _success({"deleted": 1}, reader)

    @blueprint.delete("/<conversation_id>/turns")
    def clear_conversation(conversation_id: str) -> Response:
        conversation_id = parse_conversation_id(conversation_id)
        reader = _reader(request.args)
        clearing = conversations.clear(_user(reader), conversation_id)
        _require(from_store(clearing), conversation_id)
        return _success({"conversation_id": conversation_id, "turn_count": 0}, reader)

    return blueprint


def _reader(fields: Mapping[str, Any]) -> Reader:
    return parse_reader(fields, request.headers.get("Accept-Language"))


def _user(reader: Reader) -> str:
    return acting_as(reader.user_id).owner


def _page_from(work: Coroutine[Any, Any, T]) -> T:
    """Return the page that the store reads; refuse a cursor that it does not know."""
    try:
        return from_store(work)
    except InvalidCursor as exc:
        raise InvalidRequest(_CURSOR, field="cursor") from exc


def _require(was_found: bool, conversation_id: str) -> None:
    if not was_found:
        raise _not_found(conversation_id)


def _not_found(conversation_id: str) -> NotFound:
    return NotFound(
        Text(f"没有会话 {conversation_id}。", f"There is no conversation {conversation_id}.")
    )


def _success(data: dict[str, Any], reader: Reader) -> Response:
    return reply(success(data, _DONE.to(reader.lang)))


def _conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {
        "conversation_id": conversation.conversation_id,
        "title": conversation.title,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "turn_count": conversation.turn_count,
    }


def _shown(turn: Turn) -> dict[str, Any]:
    """Return a turn, with the key names that an answer uses for the same values."""
    return {
        "run_id": turn.run_id,
        "question": turn.question,
        "question_type": turn.question_type,
        "routing_mode": turn.routing_mode,
        "response": turn.answer,
        "sql": turn.sql,
        "row_count": turn.row_count,
        "columns": list(turn.columns),
        "rows": [list(row) for row in turn.all_rows or turn.rows],
        **turn.described,
        **({} if turn.chart is None else {"chart": dict(turn.chart)}),
        **turn.offers,
        **({} if turn.failure is None else {"failure": dict(turn.failure)}),
        **({} if turn.database is None else {"database": turn.database}),
        "asked_at": turn.asked_at,
    }
