"""`/api/v0/files`: files that people bring, from the upload to the tables that they ask."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from api.access.callers import acting_as, is_authenticated, is_sent_by_operator
from api.file_uploads import Upload, taken_upload
from api.models.file_models import ConfirmFileBody, FileChangesBody
from api.models.request_models import ReaderQuery
from api.requests import Reader, json_object, parse_reader
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import result_of
from common.actor import Actor
from common.envelope import success
from common.errors import Forbidden, InvalidRequest, NotFound
from common.text import Text
from files.file_service import FileService
from files.loading.load_plan import Way

_DONE = Text("处理完成", "Done")
_DRAFTED = Text("请检查并确认", "Check and confirm it")
_LOADED = Text("已导入", "Loaded")
_DELETED = Text("已删除", "Deleted")
_NO_FILES = Text("这个服务不接收文件。", "This service takes no files.")
_NO_KEY = Text(
    "上传文件需要 API key：否则无法区分文件属于谁。",
    "To bring files you need an API key: without one nobody can tell whose they are.",
)
_NO_CHANGE = Text(
    "缺少 tables 或 groups：请说明要改什么。", "tables or groups is missing: say what to change."
)
_EXAMPLE = '{"tables": [{"sheet": "0", "name": "sales"}]}'


def files_blueprint(
    files: FileService | None, slots: QuestionSlots, *, max_file_bytes: int
) -> Blueprint:
    """Return the blueprint; without `files` it answers that none are taken.

    A request takes one of the `slots` for questions.
    """
    blueprint = Blueprint("files", __name__, url_prefix="/api/v0/files")

    def service() -> FileService:
        if files is None:
            raise NotFound(_NO_FILES)
        return files

    def upload(way: Way, file_id: str | None) -> Response:
        taking = service()
        if not (is_authenticated() or is_sent_by_operator()):
            raise Forbidden(_NO_KEY)
        taken = taken_upload(request, taking.folder.begin, max_file_bytes)
        try:
            reader = _reader_of(taken)
            actor = acting_as(reader.user_id)
            work = taking.uploaded(actor, taken.path, taken.name, reader.lang)
            if file_id is not None:
                work.close()
                work = taking.changed(
                    actor, file_id, taken.path, taken.name, way, reader.lang
                )
            draft = result_of(work, slots, request.environ)
        finally:
            taken.path.unlink(missing_ok=True)
        return reply(success(draft, _DRAFTED.to(reader.lang), 201))

    @blueprint.post("")
    def upload_file() -> Response:
        return upload("new", None)

    @blueprint.post("/<file_id>/replace")
    def replace_file(file_id: str) -> Response:
        return upload("replace", file_id)

    @blueprint.post("/<file_id>/append")
    def append_file(file_id: str) -> Response:
        return upload("append", file_id)

    @blueprint.get("")
    def list_files() -> Response:
        reader, actor = _reader()
        listing = service().listed(actor, reader.lang)
        return reply(success(result_of(listing, slots, request.environ), _DONE.to(reader.lang)))

    @blueprint.get("/<file_id>")
    def read_file(file_id: str) -> Response:
        reader, actor = _reader()
        found = result_of(service().found(actor, file_id, reader.lang), slots, request.environ)
        return reply(success(found, _DONE.to(reader.lang)))

    @blueprint.patch("/<file_id>")
    def change_file(file_id: str) -> Response:
        body = FileChangesBody.read(json_object(request, _EXAMPLE))
        reader = _named(body.user_id, body.lang)
        actor = acting_as(reader.user_id)
        if body.tables is not None:
            work = service().corrected(actor, file_id, body.tables, reader.lang)
        elif body.groups is not None:
            work = service().shared(actor, file_id, body.groups, reader.lang)
        else:
            raise InvalidRequest(_NO_CHANGE, field="tables")
        changed = result_of(work, slots, request.environ)
        return reply(success(changed, _DONE.to(reader.lang)))

    @blueprint.post("/<file_id>/confirm")
    def confirm_file(file_id: str) -> Response:
        given = json_object(request, _EXAMPLE) if request.content_length else {}
        body = ConfirmFileBody.read(given)
        reader = _named(body.user_id, body.lang)
        actor = acting_as(reader.user_id)
        work = service().confirmed(actor, file_id, body.tables or (), reader.lang)
        loaded = result_of(work, slots, request.environ)
        return reply(success(loaded, _LOADED.to(reader.lang)))

    @blueprint.delete("/<file_id>")
    def delete_file(file_id: str) -> Response:
        reader, actor = _reader()
        result_of(service().deleted(actor, file_id), slots, request.environ)
        return reply(success({"id": file_id}, _DELETED.to(reader.lang)))

    return blueprint


def _reader() -> tuple[Reader, Actor]:
    reader = parse_reader(request.args, request.headers.get("Accept-Language"))
    return reader, acting_as(reader.user_id)


def _named(user_id: str | None, lang: str | None) -> Reader:
    return _reader_from({"user_id": user_id, "lang": lang})


def _reader_of(upload: Upload) -> Reader:
    """Return the reader that the form names, or the query string."""
    fields = {name: upload.fields.get(name) for name in ReaderQuery.model_fields}
    return _reader_from({**request.args.to_dict(), **{k: v for k, v in fields.items() if v}})


def _reader_from(given: Mapping[str, Any]) -> Reader:
    said = {name: value for name, value in given.items() if value is not None}
    return parse_reader(said, request.headers.get("Accept-Language"))
