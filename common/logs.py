"""Logs on stderr: JSON lines, each with the id of its request; on a terminal, readable lines."""

import logging
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from numbers import Number
from typing import Any

from common.envelope import to_log_line
from common.redaction import described, redacted

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Id of the request being served; asyncio tasks started for a request inherit it."""

PACKAGES = (
    "serving",
    "api",
    "agent",
    "etl",
    "rules",
    "knowledge",
    "databases",
    "store",
    "llm",
    "guard",
    "sqltree",
    "postgres",
    "common",
    "unified_api",
)
"""The loggers of Citu's own code."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_MOST_CHARS = 200  # of a text that a request, a library or another server may have written
_MOST_OF_MESSAGE = 2_000  # characters of our own words with all their arguments


def shortened(text: str, most: int = _MOST_CHARS) -> str:
    """Return at most so many characters of `text`, with … where some are missing."""
    if len(text) <= most:
        return text

    return f"{text[:most]}…"


def _shortened_value(value: Any) -> Any:
    if isinstance(value, str):
        return shortened(value)

    return value


class _Argument:
    """An argument of a message, shortened when the message is formatted."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return shortened(str(self._value))

    def __repr__(self) -> str:
        return shortened(repr(self._value))


def _argument(value: Any) -> Any:
    if isinstance(value, Number):
        return value  # %d and %f take nothing else

    return _Argument(value)


def _message(record: logging.LogRecord) -> str:
    """Return the record's text, shortened before anything reads it.

    Without arguments, libraries may have put foreign text into the message itself, so it is cut
    like an argument.
    """
    text = str(record.msg)
    arguments = record.args
    if not arguments:
        return shortened(text)
    if isinstance(arguments, Mapping):
        named = {name: _argument(value) for name, value in arguments.items()}
        return shortened(text % named, _MOST_OF_MESSAGE)

    listed = tuple(_argument(value) for value in arguments)
    return shortened(text % listed, _MOST_OF_MESSAGE)


class JsonLines(logging.Formatter):
    """A record as one JSON object.

    Its keys: time (UTC), level, logger, request_id, message, exception, and any `extra`. Whatever
    is logged, no credentials and no paths of stack traces stand in it.
    """

    def format(self, record: logging.LogRecord) -> str:
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{second}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "request_id": request_id.get(),
            "message": _message(record),
        }
        line.update(_extras(record))
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = described(record.exc_info[1])

        for key, value in line.items():
            if isinstance(value, str):
                line[key] = redacted(value)

        try:
            return to_log_line(line)
        except TypeError:  # an extra that JSON does not know
            as_text = {key: redacted(shortened(str(value))) for key, value in line.items()}
            return to_log_line(as_text)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that the caller of the log gave."""
    extras = {}
    for key, value in vars(record).items():
        if key not in _STANDARD:
            extras[key] = _shortened_value(value)

    return extras


class TerminalLines(logging.Formatter):
    """A record as a readable line: time, message, and of a request its status and duration."""

    def format(self, record: logging.LogRecord) -> str:
        fields = vars(record)
        text = _message(record)
        if "path" in fields and "status" in fields:
            request = f"{shortened(fields['method'])} {shortened(fields['path'])}"
            text = f"{request} {fields['status']} in {fields['ms']:.0f} ms"
            if "ended" in fields:
                text += f" ({fields['ended']})"

        if record.exc_info and record.exc_info[1] is not None:
            text += f": {described(record.exc_info[1])}"
        if record.levelno > logging.INFO:
            text = f"{record.levelname} {text}"

        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = redacted(f"{moment} {text}")
        return to_log_line(line)[1:-1].replace('\\"', '"')  # the escapes of JSON without its quotes


def _is_shown_on_terminal(record: logging.LogRecord) -> bool:
    """Tell whether it is more than a request for a file of the page or for the service's health."""
    if record.levelno > logging.INFO:
        return True

    path = vars(record).get("path")
    if path is None:
        return True

    return str(path).startswith("/api/")


def configure(level: str) -> None:
    """Send everything from `level` up to stderr; libraries below WARNING stay silent.

    Nobody wants to see the page's files on a terminal, so of requests only those of the API are
    shown there.
    """
    handler = logging.StreamHandler(sys.stderr)
    if sys.stderr.isatty():
        handler.setFormatter(TerminalLines())
        handler.addFilter(_is_shown_on_terminal)
    else:
        handler.setFormatter(JsonLines())

    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel("WARNING")
    for name in PACKAGES:
        logging.getLogger(name).setLevel(level)
