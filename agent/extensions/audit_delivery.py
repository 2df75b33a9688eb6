"""Brings what the audit log notes to the operator's sinks: in a thread of its own, so that no
question waits for them.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent.extensions.points import AuditSink
from common.after_fork import restart_after_fork

_log = logging.getLogger(__name__)

_MOST_WAITING = 10_000  # entries; beyond that new ones are left to the file alone
_LAST_S = 2.0  # that a service which ends waits for its sinks


class AuditDelivery:
    """Takes entries at once, and gives them to the sinks one after the other."""

    def __init__(self) -> None:
        self._sinks: Sequence[AuditSink] = ()
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget what waits; a forked child begins with nothing."""
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._lost = 0

    def deliver_to(self, sinks: Sequence[AuditSink]) -> None:
        """Give all entries from now on to these sinks."""
        self._sinks = tuple(sinks)

    def put(self, entry: Mapping[str, Any]) -> None:
        """Deliver an entry soon; return at once, raise nothing."""
        if not self._sinks:
            return

        with self._change:
            if len(self._waiting) >= _MOST_WAITING:
                self._lost += 1
                return

            self._waiting.append(entry)
            self._change.notify()
            if self._thread is None:
                self._is_over = False
                self._thread = threading.Thread(
                    target=self._deliver, name="audit-sinks", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Deliver what waits, for two seconds at most."""
        with self._change:
            thread, self._is_over = self._thread, True
            self._change.notify()

        if thread is not None:
            thread.join(_LAST_S)
            for sink in self._sinks:
                _run_guarded(sink, sink.close)

    def _deliver(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._is_over:
                    self._change.wait()

                if not self._waiting:
                    self._thread = None
                    return

                entry, lost, self._lost = self._waiting.popleft(), self._lost, 0

            if lost:
                _log.error("%d entries reached no audit sink: they are too slow", lost)
            for sink in self._sinks:
                _run_guarded(sink, partial(sink.write, dict(entry)))


def _run_guarded(sink: AuditSink, act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:  # noqa: BLE001 - the file has it, and the others get theirs
        _log.exception("an audit sink failed", extra={"sink": type(sink).__name__})
