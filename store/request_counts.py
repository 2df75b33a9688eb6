"""The port for counts of requests, where all workers of all hosts count together."""

from typing import Protocol


class RequestCounts(Protocol):
    """Counts requests of callers over a sliding window. All methods raise `StoreUnavailable`."""

    async def hit(self, caller: str, most: int, window_s: int) -> float:
        """Count a request; return 0, or seconds after which there is room if it is one too many.

        What is one too many is not counted. Requests of the window before count by the part of it
        that is still within the latest `window_s` seconds, as if they had come evenly.
        """
