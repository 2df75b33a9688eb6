"""`GET /metrics`: the metrics of all workers, for operators."""

from flask import Blueprint, Response, request

from api.access.callers import acting_as
from api.access.rights import GroupRights
from common.errors import Forbidden
from common.metrics import CONTENT_TYPE, Metrics
from common.text import Text

_OPERATORS_ONLY = Text(
    "只有运维人员可以查看指标：请使用属于 OPERATOR_GROUPS 中某个组的 API 密钥。",
    "Only operators may read metrics: use an API key of one of the groups in OPERATOR_GROUPS.",
)


def metrics_blueprint(metrics: Metrics, rights: GroupRights) -> Blueprint:
    """Return the endpoint; `rights` say who is an operator."""
    blueprint = Blueprint("metrics", __name__)

    @blueprint.get("/metrics")
    def read_metrics() -> Response:
        actor = acting_as(request.args.get("user_id"))
        if not rights.is_operator(actor):
            raise Forbidden(_OPERATORS_ONLY)

        return Response(metrics.text(), content_type=CONTENT_TYPE)

    return blueprint
