"""The metrics that a service measures, each with its kind, its labels and its description.

Labels hold what the program and its operator named: no users, tables, questions or paths that
callers wrote. So the number of series is bounded.
"""

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["counter", "gauge", "histogram"]

# Seconds of requests, questions and their steps: from a cached page to the limit of a question.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0)
# Seconds of accesses to databases on the same network.
_SHORT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_ROWS = (0.0, 1.0, 10.0, 50.0, 200.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Attributes:
        buckets: upper bounds of a histogram, in the metric's unit.
    """

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()


METRICS = (
    MetricSpec(
        "http_server_request_duration_seconds",
        "histogram",
        ("route", "method", "status"),
        "from the request to its answer; of streams, to their first byte. Requests that no route "
        "takes have the route `none`",
        _SECONDS,
    ),
    MetricSpec(
        "db_client_operation_duration_seconds",
        "histogram",
        ("operation",),
        "one statement on a datasource (`explain`, `run`, or `stream` to its first rows), judged "
        "by the guard and waiting for its connection included",
        _SHORT_SECONDS,
    ),
    MetricSpec(
        "db_client_connection_count",
        "gauge",
        ("state",),
        "connections to the datasources that are `used` or `idle`",
    ),
    MetricSpec(
        "db_client_connection_pending_requests",
        "gauge",
        (),
        "statements that wait for a connection",
    ),
    MetricSpec(
        "gen_ai_client_operation_duration_seconds",
        "histogram",
        ("operation", "provider", "model"),
        "one call of the model, its retries included",
        _SECONDS,
    ),
    MetricSpec(
        "citu_questions_total",
        "counter",
        ("agent", "outcome", "error_type"),
        "questions that ended: `completed`, `error` or `cancelled`. Each counts once, when its "
        "last event is kept",
    ),
    MetricSpec(
        "citu_node_duration_seconds",
        "histogram",
        ("agent", "node"),
        "one step of a question",
        _SECONDS,
    ),
    MetricSpec("citu_streams_open", "gauge", (), "answers that are being streamed over HTTP"),
    MetricSpec(
        "citu_stream_duration_seconds",
        "histogram",
        (),
        "one stream over HTTP, from its request to its end",
        _SECONDS,
    ),
    MetricSpec(
        "citu_runs_waiting",
        "gauge",
        (),
        "runs that began to wait for their user since the service was started, without those that "
        "were answered or cancelled. Runs that are forgotten unanswered still count",
    ),
    MetricSpec(
        "citu_guard_refusals_total",
        "counter",
        ("error_type",),
        "statements that were refused before they ran, as the audit log has them",
    ),
    MetricSpec(
        "citu_sql_rows",
        "histogram",
        (),
        "rows of one statement that ran, as the audit log has them",
        _ROWS,
    ),
    MetricSpec(
        "citu_repairs_total",
        "counter",
        ("outcome",),
        "statements that were given back for repair: `success` or `failed`",
    ),
    MetricSpec(
        "citu_model_tokens_total",
        "counter",
        ("direction",),
        "tokens of prompts (`input`) and replies (`output`), as the endpoint counts them",
    ),
    MetricSpec(
        "citu_feedback_total",
        "counter",
        ("verdict",),
        "ratings that users gave: `satisfied`, `unsatisfied` or `need_modification`",
    ),
    MetricSpec(
        "citu_catalog_read_duration_seconds",
        "histogram",
        ("outcome",),
        "one reading of a datasource's catalogue: `done` or `failed`",
        _SECONDS,
    ),
    MetricSpec(
        "citu_store_write_duration_seconds",
        "histogram",
        ("outcome",),
        "one write of runs to the store, which may hold many of them: `done` or `failed`",
        _SHORT_SECONDS,
    ),
    MetricSpec(
        "citu_event_loop_lag_seconds",
        "histogram",
        (),
        "how much later than asked the event loop of a worker woke up, taken once a second",
        _SHORT_SECONDS,
    ),
)
"""All metrics; every one says what a worker has measured since the service was started."""
