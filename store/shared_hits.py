"""Counts requests in the store from any thread."""

from common import runtime
from common.rate_limits import SharedHit
from store import Store

_PATIENCE = 2.0  # times the limit of an access, since one that is refused is looked at again


def shared_hit(store: Store, timeout_s: float) -> SharedHit | None:
    """Return what counts a request in the store; None where the store has no place for that."""
    counts = store.request_counts
    if counts is None:
        return None

    def hit(caller: str, most: int, window_s: int) -> float:
        return runtime.run(counts.hit(caller, most, window_s), _PATIENCE * timeout_s)

    return hit
