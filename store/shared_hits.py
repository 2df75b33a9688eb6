"""Counts requests in the store from any thread."""

from common import runtime
from common.rate_limits import SharedHit
from store import Store

# A request that is refused takes a second one: it asks when there is room.
_MOST_ACCESSES = 2


def shared_hit(store: Store, timeout_s: float) -> SharedHit | None:
    """Return a function that counts a request in the store; None where the store counts none.

    Args:
        timeout_s: seconds that one access to the store may take.
    """
    counts = store.request_counts
    if counts is None:
        return None

    def hit(caller: str, most: int, window_s: int) -> float:
        return runtime.run(counts.hit(caller, most, window_s), _MOST_ACCESSES * timeout_s)

    return hit
