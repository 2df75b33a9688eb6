"""Folders that servers of tests work in."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A temporary folder that the server's user can enter when we are root (pytest's own are
    closed).
    """
    folder = Path(tempfile.mkdtemp(prefix="citu-test-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)
