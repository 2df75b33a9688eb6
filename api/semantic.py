"""`/api/v0/semantic`: the semantic file, and proposals to change it, for reviewers."""

from flask import Blueprint, Response, request

from agent.services.database_services import ServedDatabases
from agent.services.semantic_service import SemanticService, WantedChange
from api.access.callers import acting_as
from api.access.rights import GroupRights
from api.models.request_models import ProposalBody
from api.requests import Reader, json_object, parse_database, parse_reader
from api.responses import reply
from api.slots import QuestionSlots
from api.waiting import from_store, result_of
from common.actor import Actor
from common.envelope import success
from common.errors import Forbidden
from common.text import Text

_DONE = Text("处理完成", "Done")
_REVIEWERS_ONLY = Text(
    "只有审核人可以查看语义文件（REVIEWER_GROUPS）。",
    "Only reviewers may see the semantic file (REVIEWER_GROUPS).",
)
_EXAMPLE = '{"before": "    names: {en: revenue}", "after": "    names: {en: [revenue, turnover]}"}'


def semantic_blueprint(
    databases: ServedDatabases, rights: GroupRights, slots: QuestionSlots
) -> Blueprint:
    """Return the blueprint; a proposal takes one of the `slots` for questions, because it is held
    against the catalogue.
    """
    blueprint = Blueprint("semantic", __name__, url_prefix="/api/v0/semantic")

    def reviewer(reader: Reader) -> Actor:
        actor = acting_as(reader.user_id)
        if not rights.is_reviewer(actor):
            raise Forbidden(_REVIEWERS_ONLY)

        return actor

    def service(actor: Actor) -> SemanticService:
        return databases.of(parse_database(request.args), actor).semantic

    @blueprint.get("")
    def read_semantic_file() -> Response:
        reader = _reader()
        semantic_file = result_of(service(reviewer(reader)).file(), slots, request.environ)
        return reply(success(semantic_file, _DONE.to(reader.lang)))

    @blueprint.get("/proposals")
    def list_proposals() -> Response:
        reader = _reader()
        proposals = from_store(service(reviewer(reader)).listed())
        return reply(success({"proposals": proposals}, _DONE.to(reader.lang)))

    @blueprint.post("/proposals")
    def propose_change() -> Response:
        body = json_object(request, _EXAMPLE)
        reader = parse_reader({**request.args, **body}, request.headers.get("Accept-Language"))
        proposal_body = ProposalBody.read(body)
        actor = reviewer(reader)
        change = WantedChange(
            proposal_body.before,
            proposal_body.after,
            proposal_body.revision,
            proposal_body.note or "",
        )
        work = service(actor).propose(actor, change)
        proposal = result_of(work, slots, request.environ)
        return reply(success({"proposal": proposal}, _DONE.to(reader.lang), 201))

    @blueprint.delete("/proposals/<proposal_id>")
    def withdraw_proposal(proposal_id: str) -> Response:
        reader = _reader()
        actor = reviewer(reader)
        settled = from_store(service(actor).withdraw(actor, proposal_id))
        return reply(success({"proposal": settled}, _DONE.to(reader.lang)))

    return blueprint


def _reader() -> Reader:
    return parse_reader(request.args, request.headers.get("Accept-Language"))
