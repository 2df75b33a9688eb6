"""Makes the index of a large catalogue in a process of its own, so that answers don't wait for it.

`python -m knowledge.index_process FOLDER ADDRESS…` reads a pickled catalogue from stdin and writes
a file for each part into the folder. It ends when stdin is closed, as when its parent dies.
Catalogues that say the same have one folder: the first worker of a host that needs an index has it
made, the others wait for it and read the same files.
"""

import fcntl
import gc
import hashlib
import importlib
import logging
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from common.values import Catalog, Column, Table
from knowledge.index import CatalogIndex, IndexPart, NotMade, addresses, index_of

_log = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
_LARGE = 1_000  # tables; smaller catalogues are indexed faster than a process begins
_TIMEOUT_S = 600.0
_MOST_KEPT = 4  # indexes of different catalogues
# Rooms whose files say what an index is like
_ROOMS = (_ROOT / "common", _ROOT / "knowledge", _ROOT / "rules", _ROOT / "sqltree")
_PICKLES = 5  # protocol, which writes frames of 64 KB
_CATALOG = "catalog"
_COMPLAINT_CHARS = 500


class IndexProcesses:
    """Gives parts of the indexes of large catalogues, made by processes that end with their work.

    Args:
        folder: where the parts are handed over; workers of one host may share it. Made when needed,
            for this user alone, because what is read from there is trusted.
        least_tables: how many tables make a catalogue large.
    """

    def __init__(self, folder: Path, least_tables: int = _LARGE) -> None:
        self._folder = folder
        self._least_tables = least_tables
        self._turn = threading.Lock()
        self._requests: weakref.WeakKeyDictionary[CatalogIndex, _Request] = (
            weakref.WeakKeyDictionary()
        )

    def made(self, part: IndexPart[Any], index: CatalogIndex) -> Any:
        """Return the value of a part; blocks until it is there.

        Raises:
            NotMade: the catalogue is small, or the process failed; the log says why.
        """
        if len(index.catalog.tables) < self._least_tables:
            raise NotMade

        with self._turn:
            request = self._requests.setdefault(index, _Request())

        try:
            with request.turn:
                if request.has_failed:
                    raise NotMade
                if request.folder is None:
                    request.has_failed = True
                    request.folder = self._handed(index.catalog, part)
                    request.has_failed = False

            return _load_part(request.folder / part.address, index.catalog)
        except (OSError, pickle.PickleError, EOFError, subprocess.SubprocessError) as exc:
            _log.warning("the index of a large catalogue is made by the service itself: %s", exc)
            raise NotMade from exc

    def _handed(self, catalog: Catalog, part: IndexPart[Any]) -> Path:
        """Return the folder with the parts of this catalogue; have them made if they are not."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as request:
            digest = _written(catalog, request)
            folder = self._folder / digest
            with _locked(self._folder / "lock"):
                if not (folder / part.address).exists():
                    self._remove_oldest()
                    request.seek(0)
                    self._make(request, folder)

                os.utime(folder)

        return folder

    def _make(self, request: IO[bytes], folder: Path) -> None:
        new_folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            _run(request, new_folder)
            shutil.rmtree(folder, ignore_errors=True)
            new_folder.rename(folder)
        finally:
            shutil.rmtree(new_folder, ignore_errors=True)

    def _remove_oldest(self) -> None:
        """Remove what is beyond the latest; who reads one of these files goes on."""
        folders = [path for path in self._folder.iterdir() if path.is_dir()]
        folders.sort(key=lambda path: path.stat().st_mtime)
        for left in folders[: -(_MOST_KEPT - 1)]:
            shutil.rmtree(left, ignore_errors=True)


@dataclass
class _Request:
    """The folder of a catalogue's parts, once they are made."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    folder: Path | None = None
    has_failed: bool = False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock by which one process of a host makes an index at a time."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run(request: IO[bytes], folder: Path) -> None:
    """Run the process on a request.

    Raises:
        SubprocessError: it failed, or took too long.
    """
    command = [sys.executable, "-m", "knowledge.index_process", str(folder), *addresses()]
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={},  # it has no use for secrets
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        )
        assert process.stdin is not None
        try:
            # The pipe stays open: its end tells the process that this one has died.
            shutil.copyfileobj(request, process.stdin)
            process.stdin.flush()
            code = process.wait(_TIMEOUT_S)
        finally:
            process.kill()
            with suppress(OSError):
                process.stdin.close()

            process.wait()

        if code != 0:
            complaints.seek(0)
            complaint = complaints.read().decode("utf-8", "replace").strip()
            raise subprocess.SubprocessError(complaint[-_COMPLAINT_CHARS:] or f"it ended by {code}")


# ------------------------------------------------------------------------------
# pickled catalogues and parts


class _InTurns:
    """A file whose `read` and `write` are Python's own, so that other threads get their turns.

    Without it one call reads or writes all, and every other thread waits for its end.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def readline(self) -> bytes:
        return self._file.readline()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


class _PartPickler(pickle.Pickler):
    """Writes what stands in the catalogue by its place."""

    def __init__(self, file: IO[bytes], index: CatalogIndex) -> None:
        super().__init__(file, _PICKLES)
        places: dict[int, Any] = {id(index.catalog): _CATALOG}
        for number, table in enumerate(index.catalog.tables):
            places[id(table)] = number
            for place, column in enumerate(table.columns):
                places.setdefault(id(column), (number, place))

        self._places = places

    def persistent_id(self, obj: object) -> Any:
        return self._places.get(id(obj))


class _PartUnpickler(pickle.Unpickler):
    """Reads it back as the objects of this process's catalogue."""

    def __init__(self, file: Any, catalog: Catalog) -> None:
        super().__init__(file)
        self._catalog = catalog

    def persistent_load(self, place: Any) -> Catalog | Table | Column:
        if place == _CATALOG:
            return self._catalog
        if isinstance(place, int):
            return self._catalog.tables[place]

        number, at = place
        column: Column = self._catalog.tables[number].columns[at]
        return column


def _written(catalog: Catalog, file: IO[bytes]) -> str:
    """Write the catalogue; return what tells it, and this version of the product, from others."""
    in_turns = _InTurns(file)
    in_turns.digest.update(_version())
    pickle.Pickler(in_turns, _PICKLES).dump(_without_row_counts(catalog))
    return in_turns.digest.hexdigest()


def _without_row_counts(catalog: Catalog) -> Catalog:
    tables = (replace(table, row_estimate=-1) for table in catalog.tables)
    return replace(catalog, tables=tuple(tables))


def _version() -> bytes:
    """Return what changes with the product's files, without which an index would not fit."""
    stamps = [sys.version]
    for room in _ROOMS:
        for path in sorted(room.rglob("*")):
            if path.suffix in (".py", ".toml"):
                status = path.stat()
                stamps.append(f"{path} {status.st_mtime_ns} {status.st_size}")

    return "\n".join(stamps).encode()


def _load_part(path: Path, catalog: Catalog) -> Any:
    with path.open("rb") as file:
        return _PartUnpickler(_InTurns(file), catalog).load()


# ------------------------------------------------------------------------------
# the process itself


def main(folder: Path, wanted: list[str]) -> None:
    """Make the parts of the catalogue on stdin, one after the other."""
    gc.disable()  # what is made stays until the process ends
    catalog: Catalog = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    index = index_of(catalog)
    for address in wanted:
        module, _, name = address.partition(":")
        part: IndexPart[Any] = getattr(importlib.import_module(module), name)
        with (folder / address).open("wb") as file:
            _PartPickler(file, index).dump(part.make(index))


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass

    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
