"""`/api/v0/files`: files that people bring, from the upload to the tables that they ask."""

from collections.abc import Coroutine, Mapping
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
from common.text import Lang, Text
from files.file_service import FileService
from files.loading.load_plan import LoadMode

FILES_PATH = "/api/v0/files"
"""Where files are sent to."""

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
    blueprint = Blueprint("files", __name__, url_prefix=FILES_PATH)
    requests = _FileRequests(files, slots, max_file_bytes)
    blueprint.post("")(requests.upload_file)
    blueprint.get("")(requests.list_files)
    blueprint.get("/<file_id>")(requests.read_file)
    blueprint.patch("/<file_id>")(requests.change_file)
    blueprint.delete("/<file_id>")(requests.delete_file)
    blueprint.post("/<file_id>/confirm")(requests.confirm_file)
    blueprint.post("/<file_id>/replace")(requests.replace_file)
    blueprint.post("/<file_id>/append")(requests.append_file)
    return blueprint


class _FileRequests:
    """Answers the requests; Flask names each endpoint after its method."""

    def __init__(
        self, files: FileService | None, slots: QuestionSlots, max_file_bytes: int
    ) -> None:
        self._files = files
        self._slots = slots
        self._max_file_bytes = max_file_bytes

    def upload_file(self) -> Response:
        return self._taken("new", None)

    def replace_file(self, file_id: str) -> Response:
        return self._taken("replace", file_id)

    def append_file(self, file_id: str) -> Response:
        return self._taken("append", file_id)

    def list_files(self) -> Response:
        reader, actor = _reader()
        return self._response_of(self._service().listed(actor, reader.lang), _DONE, reader.lang)

    def read_file(self, file_id: str) -> Response:
        reader, actor = _reader()
        file = self._service().found(actor, file_id, reader.lang)
        return self._response_of(file, _DONE, reader.lang)

    def change_file(self, file_id: str) -> Response:
        body = FileChangesBody.read(json_object(request, _EXAMPLE))
        reader = _reader_from({"user_id": body.user_id, "lang": body.lang})
        actor = acting_as(reader.user_id)
        if body.tables is not None:
            work = self._service().corrected(actor, file_id, body.tables, reader.lang)
        elif body.groups is not None:
            work = self._service().shared(actor, file_id, body.groups, reader.lang)
        else:
            raise InvalidRequest(_NO_CHANGE, field="tables")

        return self._response_of(work, _DONE, reader.lang)

    def confirm_file(self, file_id: str) -> Response:
        given = json_object(request, _EXAMPLE) if request.content_length else {}
        body = ConfirmFileBody.read(given)
        reader = _reader_from({"user_id": body.user_id, "lang": body.lang})
        actor = acting_as(reader.user_id)
        loading = self._service().confirmed(actor, file_id, body.tables or (), reader.lang)
        return self._response_of(loading, _LOADED, reader.lang)

    def delete_file(self, file_id: str) -> Response:
        reader, actor = _reader()
        result_of(self._service().deleted(actor, file_id), self._slots, request.environ)
        return reply(success({"id": file_id}, _DELETED.to(reader.lang)))

    def _service(self) -> FileService:
        if self._files is None:
            raise NotFound(_NO_FILES)

        return self._files

    def _response_of(
        self, work: Coroutine[Any, Any, dict[str, Any]], message: Text, lang: Lang
    ) -> Response:
        return reply(success(result_of(work, self._slots, request.environ), message.to(lang)))

    def _taken(self, way: LoadMode, file_id: str | None) -> Response:
        """Take the file of the request; answer with its draft."""
        service = self._service()
        if not (is_authenticated() or is_sent_by_operator()):
            raise Forbidden(_NO_KEY)

        upload = taken_upload(request, service.folder.begin, self._max_file_bytes)
        try:
            reader = _reader_of(upload)
            actor = acting_as(reader.user_id)
            work = service.drafted(actor, upload.path, upload.name, reader.lang, way, file_id)
            draft = result_of(work, self._slots, request.environ)
        finally:
            upload.path.unlink(missing_ok=True)

        return reply(success(draft, _DRAFTED.to(reader.lang), 201))


def _reader() -> tuple[Reader, Actor]:
    reader = parse_reader(request.args, request.headers.get("Accept-Language"))
    return reader, acting_as(reader.user_id)


def _reader_of(upload: Upload) -> Reader:
    """Return the reader that the form names, or the query string."""
    fields = {name: upload.fields.get(name) for name in ReaderQuery.model_fields}
    return _reader_from({**request.args.to_dict(), **{k: v for k, v in fields.items() if v}})


def _reader_from(query: Mapping[str, Any]) -> Reader:
    fields = {name: value for name, value in query.items() if value is not None}
    return parse_reader(fields, request.headers.get("Accept-Language"))
