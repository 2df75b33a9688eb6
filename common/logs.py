"""Logs on stderr: JSON lines, each with the id of the request it belongs to; on a terminal, lines to be read."""

import logging
import sys
import time
from contextvars import ContextVar

from common.envelope import to_log_line
from common.redaction import described, redacted

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Id of the request being served; asyncio tasks started for a request inherit it."""

PACKAGES = ("serving", "api", "agent", "rules", "knowledge", "databases", "common", "unified_api")
"""The loggers of Citu's own code."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one JSON object: time (UTC), level, logger, request_id, message, exception, and any `extra`.

    Whatever is logged, no credentials and no paths of stack traces stand in it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "request_id": request_id.get(),
            "message": record.getMessage(),
        }
        line.update({key: value for key, value in vars(record).items() if key not in _STANDARD})
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = described(record.exc_info[1])
        line = {key: redacted(value) if isinstance(value, str) else value for key, value in line.items()}
        try:
            return to_log_line(line)
        except TypeError:
            return to_log_line({key: redacted(str(value)) for key, value in line.items()})


class TerminalLines(logging.Formatter):
    """A record as a line for whoever watches: when, what, and for a request its answer and the time it took."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields = vars(record)
        said = record.getMessage()
        if "path" in fields and "status" in fields:
            said = f"{fields['method']} {fields['path']} {fields['status']} in {fields['ms']:.0f} ms"
        if record.exc_info and record.exc_info[1] is not None:
            said += f": {described(record.exc_info[1])}"
        level = "" if record.levelno <= logging.INFO else f"{record.levelname} "
        line = redacted(f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {level}{said}")
        return to_log_line(line)[1:-1].replace('\\"', '"')  # the escapes of JSON without its quotes


def _is_of_a_question(record: logging.LogRecord) -> bool:
    """Whether it is more than a file of the page, or a look at whether the service is alive."""
    path = vars(record).get("path")
    return path is None or record.levelno > logging.INFO or str(path).startswith("/api/")


def configure(level: str) -> None:
    """Sends everything from `level` up to stderr; libraries below WARNING stay silent.

    Nobody wants to see the page's files on a terminal, so of requests only those of the API are shown there.
    """
    handler = logging.StreamHandler(sys.stderr)
    if sys.stderr.isatty():
        handler.setFormatter(TerminalLines())
        handler.addFilter(_is_of_a_question)
    else:
        handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel("WARNING")
    for name in PACKAGES:
        logging.getLogger(name).setLevel(level)
