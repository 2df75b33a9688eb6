"""`GET /api/v0/runs/{run_id}/artefact`: what a run made, as an archive or file by file."""

from flask import Blueprint, Response, request

from agent.services.artefact_service import ArtefactService
from api.access.callers import acting_as
from api.models.request_models import ArtefactQuery
from api.requests import Reader, parse_reader, parse_run_id
from api.responses import accepted_media, reply, set_file_name
from api.waiting import from_store
from common.envelope import success
from common.text import Text

_LISTED = Text("产物文件列表", "Files of the artefact")


def artefacts_blueprint(service: ArtefactService) -> Blueprint:
    """Return the blueprint of all endpoints, over one service."""
    blueprint = Blueprint("artefacts", __name__, url_prefix="/api/v0/runs")

    @blueprint.get("/<run_id>/artefact")
    def read_artefact(run_id: str) -> Response:
        archive = from_store(service.archive(_owner(_reader()), parse_run_id(run_id)))
        response = Response(archive.data, content_type=accepted_media("application/zip"))
        name = archive.target.get("relation", run_id)
        set_file_name(response, name, "zip", otherwise=run_id)
        return _tagged(response, archive.sha256)

    @blueprint.get("/<run_id>/artefact/files")
    def list_artefact_files(run_id: str) -> Response:
        reader = _reader()
        archive = from_store(service.archive(_owner(reader), parse_run_id(run_id)))
        files = [{**file.listed(), "language": file.language} for file in archive.files]
        return reply(success({"files": files}, _LISTED.to(reader.lang)))

    @blueprint.get("/<run_id>/artefact/files/<path:path>")
    def read_artefact_file(run_id: str, path: str) -> Response:
        file = from_store(service.file(_owner(_reader()), parse_run_id(run_id), path))
        response = Response(file.data, content_type="text/plain; charset=utf-8")
        return _tagged(response, file.sha256)

    return blueprint


def _tagged(response: Response, digest: str) -> Response:
    """Return the response; of what the client has already, only that it is the same."""
    response.set_etag(digest)
    response.make_conditional(request)
    return response


def _reader() -> Reader:
    ArtefactQuery.read(request.args)
    return parse_reader(request.args, request.headers.get("Accept-Language"))


def _owner(reader: Reader) -> str:
    return acting_as(reader.user_id).owner
