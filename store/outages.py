"""The messages for users when the store fails, and its reasons in the log, without hosts, names or
passwords.
"""

import logging
import time

from common.text import Text

_QUIET_S = 60.0  # least time between log lines about a store that keeps failing and recovering

UNREACHABLE = Text(
    "会话存储暂时无法访问，请稍后重试。",
    "The store of conversations and runs can't be reached. Try again later.",
)
SLOW = Text(
    "会话存储没有及时响应，请稍后重试。",
    "The store of conversations and runs doesn't answer in time. Try again later.",
)

BUSY = Text(
    "同一内容正被多处同时修改，请稍后重试。",
    "The same thing is being changed from several places at once. Try again later.",
)


class OutageLog:
    """Logs once that a server fails and once that it is back, however many calls notice it."""

    def __init__(self, log: logging.Logger, name: str) -> None:
        self._log = log
        self._name = name
        self._is_told = False
        self._told_at = float("-inf")

    def fails(self, why: str) -> None:
        """Note that a call has failed."""
        if not self._is_told and time.monotonic() - self._told_at >= _QUIET_S:
            self._is_told, self._told_at = True, time.monotonic()
            self._log.warning("%s fails: %s", self._name, why)

    def works(self) -> None:
        """Note that a call has succeeded."""
        if self._is_told:
            self._is_told = False
            self._log.warning("%s is back", self._name)
