"""What the user reads when the store fails; the reason is in the log, without hosts, names or passwords."""

import logging
import time

from common.text import Text

_QUIET_S = 60.0  # a store that comes and goes is written about as seldom as this

UNREACHABLE = Text(
    "会话存储暂时无法访问，请稍后重试。", "The store of conversations and runs can't be reached. Try again later."
)
SLOW = Text(
    "会话存储没有及时响应，请稍后重试。", "The store of conversations and runs doesn't answer in time. Try again later."
)


class Trouble:
    """Tells the log that a server fails, once, and that it is back, once, however many calls notice it."""

    def __init__(self, log: logging.Logger, name: str) -> None:
        self._log = log
        self._name = name
        self._is_told = False
        self._told_at = float("-inf")

    def fails(self, why: str) -> None:
        """A call has failed."""
        if not self._is_told and time.monotonic() - self._told_at >= _QUIET_S:
            self._is_told, self._told_at = True, time.monotonic()
            self._log.warning("%s fails: %s", self._name, why)

    def works(self) -> None:
        """A call has succeeded."""
        if self._is_told:
            self._is_told = False
            self._log.warning("%s is back", self._name)
