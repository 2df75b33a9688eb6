"""Folders that servers of tests work in."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it has a name nobody knows before
_ENOUGH_BYTES = 4 * 1024**3  # all databases of one run take a third of it
_PREFIX = "citu-test-"
_OLD_S = 86_400  # no run takes as long


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Yield a temporary folder that the server's user can enter when we are root.

    Pytest's own folders are closed to others.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def _parent() -> Path | None:
    """Return memory, where nothing waits for a disk, if there is enough; None: where TMPDIR
    says.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return None
    memory = os.statvfs(_MEMORY)
    may_run_programs = not memory.f_flag & os.ST_NOEXEC
    is_enough = memory.f_bavail * memory.f_frsize >= _ENOUGH_BYTES
    if not (may_run_programs and is_enough):
        return None
    _remove_left_behind()
    return _MEMORY


def _remove_left_behind() -> None:
    """Give back the memory of runs that were killed."""
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        if folder.stat().st_mtime < time.time() - _OLD_S:
            shutil.rmtree(folder, ignore_errors=True)
