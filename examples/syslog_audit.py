"""A sink of the audit log: the system's log, by the local socket or a server's UDP port 514.

    AUDIT_SINKS=examples.syslog_audit:syslog_audit
    SYSLOG_ADDRESS=logs.example.com

SYSLOG_ADDRESS is the example's own variable of the environment; without it, it is /dev/log.
"""

import json
import logging
import os
from collections.abc import Mapping
from logging.handlers import SYSLOG_UDP_PORT, SysLogHandler
from typing import Any

from agent.extensions.points import Provided

_LOCAL = "/dev/log"


class SyslogAudit:
    """Implements `AuditSink`; connects with the first entry."""

    def __init__(self, address: str | tuple[str, int]) -> None:
        self._address = address
        self._handler: SysLogHandler | None = None

    def write(self, entry: Mapping[str, Any]) -> None:
        """Send the entry as one line of JSON."""
        if self._handler is None:
            self._handler = SysLogHandler(self._address, SysLogHandler.LOG_AUTHPRIV)
            self._handler.ident = "citu-audit: "

        text = json.dumps(entry, ensure_ascii=False, default=str)
        self._handler.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))

    def close(self) -> None:
        """Close the socket; the next entry opens another."""
        if self._handler is not None:
            self._handler.close()
            self._handler = None


def syslog_audit(_provided: Provided) -> SyslogAudit:
    """Return the sink; `AUDIT_SINKS` names this function."""
    host, _, port = os.environ.get("SYSLOG_ADDRESS", "").partition(":")
    if not host:
        return SyslogAudit(_LOCAL)

    return SyslogAudit((host, int(port or SYSLOG_UDP_PORT)))
