"""`/api/v0/knowledge`: examples and lessons, listed, reviewed, deleted, imported and exported."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from agent.services.learning.learning_service import LearningService
from api.access.callers import acting_as
from api.access.rights import GroupRights, speaks_for_themselves
from api.learning_requests import parse_item_id, parse_lines, parse_seen, parse_wanted
from api.requests import Reader, body_of, json_object, parse_database, parse_page, parse_reader
from api.responses import accepted_media, reply
from api.slots import QuestionSlots
from api.waiting import from_store, result_of
from common.actor import Actor
from common.envelope import success, to_bytes
from common.errors import Forbidden, InvalidRequest
from common.runtime import run
from common.text import Text
from store import InvalidCursor, LearnedFilter, LearntKind, ReviewVerdict

T = TypeVar("T")

_DONE = Text("处理完成", "Done")
_REVIEWERS_ONLY = Text(
    "只有审核人可以这样做（REVIEWER_GROUPS）。", "Only reviewers may do this (REVIEWER_GROUPS)."
)
_ANYBODY = Text(
    "没有 API 密钥时，任何人都可能自称是这个用户，因此不能删除。",
    "Without an API key anybody could pass for this user, so nothing can be deleted.",
)
_CURSOR = Text(
    "cursor 无效：必须是上一页返回的 next_cursor。",
    "cursor is not valid: it must be the next_cursor of the page before.",
)
_EXAMPLE = '{"trust": "candidate"}'
_LINES_MEDIA = "application/x-ndjson; charset=utf-8"
_EXPORT_S = 60.0  # for one item of an export
_KINDS: tuple[tuple[LearntKind, tuple[ReviewVerdict, ...]], ...] = (
    ("example", ("approve", "certify", "reject")),
    ("lesson", ("approve", "reject")),
)


def learning_blueprint(
    databases: ServedDatabases, rights: GroupRights, slots: QuestionSlots
) -> Blueprint:
    """Return the blueprint of all endpoints.

    An import takes one of the `slots` for questions, because it plans SQL.
    """
    blueprint = Blueprint("learning", __name__, url_prefix="/api/v0/knowledge")
    for kind, verdicts in _KINDS:
        _add_kind(blueprint, databases, rights, kind, verdicts)

    @blueprint.post("/import")
    def import_lines() -> Response:
        reader = _reader()
        actor = _reviewer(rights, reader)
        service = _service(databases, actor)
        intake = service.take(parse_lines(body_of(request)), actor, reader.lang)
        return reply(success(result_of(intake, slots, request.environ), _DONE.to(reader.lang)))

    @blueprint.get("/export")
    def export_lines() -> Response:
        actor = acting_as(_reader().user_id)
        items = _service(databases, actor).export(_wanted(rights, actor), actor)
        first = from_store(_next(items))  # while an error can still be told
        return Response(_lines(first, items), content_type=accepted_media(_LINES_MEDIA))

    return blueprint


def _add_kind(
    blueprint: Blueprint,
    databases: ServedDatabases,
    rights: GroupRights,
    kind: LearntKind,
    verdicts: tuple[ReviewVerdict, ...],
) -> None:
    """Add the endpoints of one kind of item, examples or lessons, to the blueprint."""

    def list_items() -> Response:
        reader, (limit, cursor) = _reader(), parse_page(request.args)
        actor = acting_as(reader.user_id)
        service = _service(databases, actor)
        reading = service.page(kind, _wanted(rights, actor), actor, limit, cursor)
        items, following = _page_from(reading)
        return reply(success({f"{kind}s": items, "next_cursor": following}, _DONE.to(reader.lang)))

    def delete_item(**address: str) -> Response:
        reader, item_id = _reader(), parse_item_id(address[f"{kind}_id"])
        actor = acting_as(reader.user_id)
        if not speaks_for_themselves():
            raise Forbidden(_ANYBODY)

        service = _service(databases, actor)
        from_store(service.delete(kind, item_id, actor, is_reviewer=rights.is_reviewer(actor)))
        return reply(success({"deleted": 1}, _DONE.to(reader.lang)))

    def review_item(verdict: ReviewVerdict) -> Callable[..., Response]:
        def view(**address: str) -> Response:
            body = json_object(request, _EXAMPLE) if body_of(request) else {}
            reader = parse_reader({**request.args, **body}, request.headers.get("Accept-Language"))
            actor = _reviewer(rights, reader)
            seen = parse_seen(body)
            item_id = parse_item_id(address[f"{kind}_id"])
            service = _service(databases, actor, body)
            item = from_store(service.review(kind, item_id, actor, verdict, seen))
            return reply(success({kind: item}, _DONE.to(reader.lang)))

        return view

    blueprint.add_url_rule(f"/{kind}s", f"list_{kind}s", list_items, methods=["GET"])
    item_path = f"/{kind}s/<{kind}_id>"
    blueprint.add_url_rule(item_path, f"delete_{kind}", delete_item, methods=["DELETE"])
    for verdict in verdicts:
        blueprint.add_url_rule(
            f"{item_path}/{verdict}", f"{verdict}_{kind}", review_item(verdict), methods=["POST"]
        )


def _service(
    databases: ServedDatabases, actor: Actor, body: Mapping[str, Any] | None = None
) -> LearningService:
    """Return what is learnt about the database that the query string names, or the body."""
    return databases.of(parse_database({**request.args, **(body or {})}), actor).learning


def _reader() -> Reader:
    return parse_reader(request.args, request.headers.get("Accept-Language"))


def _reviewer(rights: GroupRights, reader: Reader) -> Actor:
    actor = acting_as(reader.user_id)
    if not rights.is_reviewer(actor):
        raise Forbidden(_REVIEWERS_ONLY)

    return actor


def _wanted(rights: GroupRights, actor: Actor) -> LearnedFilter:
    """Return the query's items that the actor may see: reviewers see everybody's."""
    wanted_items = parse_wanted(request.args)
    return LearnedFilter(
        None if rights.is_reviewer(actor) else actor.owner, wanted_items.trusts, wanted_items.states
    )


def _page_from(work: Coroutine[Any, Any, T]) -> T:
    """Return the page that the store reads; refuse a cursor that it does not know."""
    try:
        return from_store(work)
    except InvalidCursor as exc:
        raise InvalidRequest(_CURSOR, field="cursor") from exc


async def _next(items: AsyncIterator[dict[str, Any]]) -> dict[str, Any] | None:
    return await anext(items, None)


def _lines(
    item: dict[str, Any] | None, following: AsyncIterator[dict[str, Any]]
) -> Iterator[bytes]:
    """Yield one line per item.

    An error in the middle breaks the connection, so that nobody takes half of it for all.
    """
    while item is not None:
        yield to_bytes(item) + b"\n"
        item = run(_next(following), _EXPORT_S)
