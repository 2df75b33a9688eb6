"""How much memory this process takes at most while something is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROCESS = Path("/proc/self")
_FORGET_PEAK = "5"  # what clear_refs takes for it


class Growth:
    """`megabytes` by which the process had grown at its largest."""

    megabytes = 0.0


@contextmanager
def peak_growth() -> Iterator[Growth]:
    """Measures the `with` block; the growth is known after it."""
    growth = Growth()
    (_PROCESS / "clear_refs").write_text(_FORGET_PEAK)
    before = _megabytes("VmRSS")
    try:
        yield growth
    finally:
        growth.megabytes = _megabytes("VmHWM") - before


def _megabytes(key: str) -> float:
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) / 1024
