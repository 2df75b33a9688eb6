"""Which files there are, and which tables an actor may ask: kept in memory, read again on change.

It is asked on the event loop, for each question. So it reads in a thread of its own, and whoever
asks waits for that only a moment, and not at all while the workspace is away.
"""

import hashlib
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from common.actor import Actor
from common.after_fork import restart_after_fork
from common.errors import DatabaseUnavailable
from common.ports import UrlSource
from databases.datasources import Datasource
from databases.options import DatabaseOptions
from databases.source import WorkspaceSources
from files.loading.file_records import ALL, CHANGES
from postgres.connection_errors import UNREACHABLE

FILES = "files"
"""The name by which people's files are asked as a database."""

_log = logging.getLogger(__name__)
_LOOK_S = 1.0  # between two looks whether files have changed
_RETRY_S = 5.0  # after one that failed
_PATIENCE_S = 0.25
_CONNECT_S = 2
_MOST_PARTS = 500
_SETTINGS = "-c statement_timeout=2000 -c lock_timeout=1000"


@dataclass(frozen=True)
class FileRecord:
    """A file whose tables are loaded.

    Attributes:
        tables: each with `name`, `title`, `rows`, `bytes`, `columns`, `key` and `references`.
        version: grows with each change.
    """

    id: str
    owner: str
    name: str
    groups: tuple[str, ...]
    tables: tuple[Mapping[str, Any], ...]
    created_at: datetime
    changed_at: datetime
    version: int


def schema_of(owner: str) -> str:
    """Return the schema of an owner's tables: readable, and no other owner's."""
    digest = hashlib.blake2b(owner.encode(), digest_size=6).hexdigest()
    readable = re.sub(r"[^a-z0-9]+", "_", owner.lower()).strip("_")[:30]
    return f"files_{readable}_{digest}".replace("__", "_")


@dataclass(frozen=True)
class _Snapshot:
    """The files as they were read, with the number of changes until then."""

    number: int = -1
    records: tuple[FileRecord, ...] = ()


class FileIndex:
    """Knows the files and the parts of the workspace that actors may ask.

    Args:
        sources: the sources of the workspace.
        options: the options of the parts.
        mark: a file that is there from the first upload on; None: look without it. While it is
            missing nothing is connected to, so that nobody pays for what nobody uses.
        serves_strangers: whether callers whom nobody knows are served; then what nobody's user
            brought is nobody's.
    """

    def __init__(
        self,
        sources: WorkspaceSources,
        options: DatabaseOptions,
        mark: Path | None = None,
        *,
        serves_strangers: bool = False,
    ) -> None:
        self._sources = sources
        self._options = options
        self._mark = mark
        self._serves_strangers = serves_strangers
        self._snapshot = _Snapshot()
        self._parts: OrderedDict[tuple[Any, ...], Datasource] = OrderedDict()
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget the state of the parent process."""
        self._lock = threading.Lock()
        self._reading: Future[None] | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._next_look = 0.0
        self._is_away = False

    def are_there(self) -> bool:
        """Tell whether anybody has brought files."""
        return bool(self.records())

    def were_there(self) -> bool:
        """Tell whether anybody has ever brought files."""
        return self._mark is None or self._mark.exists()

    def records(self) -> tuple[FileRecord, ...]:
        """Return all files, as they were about a second ago."""
        self._look()
        return self._snapshot.records

    def of(self, actor: Actor) -> tuple[FileRecord, ...]:
        """Return the files whose tables the actor may ask."""
        return tuple(record for record in self.records() if self._is_open(record, actor))

    def is_owner(self, record: FileRecord, actor: Actor) -> bool:
        """Tell whether the actor brought the file: who only says so has brought nothing."""
        if not self.can_own(actor):
            return False

        return record.owner == actor.owner

    def can_own(self, actor: Actor) -> bool:
        """Tell whether the actor is somebody whose files can be told from others'."""
        is_somebody = actor.user_id is not None or not self._serves_strangers
        return is_somebody and actor.is_vouched_for

    def _is_open(self, record: FileRecord, actor: Actor) -> bool:
        is_shared = not set(record.groups).isdisjoint(actor.groups)
        return is_shared or self.is_owner(record, actor)

    def part_of(self, actor: Actor) -> Datasource | None:
        """Return the tables of the actor as a database; None: there are none.

        It is the same object until one of the files changes.
        """
        records = self.of(actor)
        if not records:
            return None

        own = schema_of(actor.owner)
        key = (own, *((record.id, record.version) for record in records))
        own_part = self._parts.get(key)
        if own_part is None:
            own_part = self._parts[key] = self._part(own, records)

        self._parts.move_to_end(key)
        while len(self._parts) > _MOST_PARTS:
            self._parts.popitem(last=False)

        return own_part

    def _part(self, own: str, records: Iterable[FileRecord]) -> Datasource:
        allowed = []
        for record in records:
            schema = schema_of(record.owner)
            allowed += [f"{schema}.{table['name']}" for table in record.tables]

        source = partial(_with_path, self._sources.reads, own)
        return Datasource(source, replace(self._options, allowed_objects=tuple(allowed)))

    def _look(self) -> None:
        """Read the files again when it is time; wait for it a moment."""
        now = time.monotonic()
        if now < self._next_look or not self.is_used():
            return

        reading = self._started_reading(now)
        if self._is_away:
            return

        try:
            reading.result(_PATIENCE_S)
        except NotInTime:
            self._is_away = True
        except DatabaseUnavailable:
            pass

    def _started_reading(self, now: float) -> Future[None]:
        """Return the reading that is under way, or begin one."""
        with self._lock:
            if self._reading is not None and not self._reading.done():
                return self._reading

            self._next_look = now + (_RETRY_S if self._is_away else _LOOK_S)
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "files")

            self._reading = self._executor.submit(self.read)
            return self._reading

    def is_used(self) -> bool:
        """Tell whether there may be files: whether it is worth looking."""
        return self._mark is None or self._mark.exists()

    def read(self) -> None:
        """Read the files now; for threads.

        Raises:
            DatabaseUnavailable: the workspace can't be read; the files stay as they were known.
        """
        try:
            self._read_records()
        except (psycopg.Error, DatabaseUnavailable) as error:
            if not self._is_away:
                _log.warning("the workspace of files can't be read: %s", type(error).__name__)

            self._is_away = True
            raise DatabaseUnavailable(UNREACHABLE) from error

        self._is_away = False

    def _read_records(self) -> None:
        url = make_conninfo(self._sources.writes(), connect_timeout=_CONNECT_S, options=_SETTINGS)
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            try:
                row = connection.execute(CHANGES).fetchone()
                if row is not None and row[0] == self._snapshot.number:
                    return

                records = connection.execute(ALL).fetchall()
            except psycopg.errors.UndefinedTable:
                return  # nobody has brought any file

            number = row[0] if row is not None else 0

        self._snapshot = _Snapshot(number, tuple(map(_record, records)))


def _with_path(source: UrlSource, schema: str) -> str:
    """Return the address with a search path, so that an owner's tables need no schema."""
    return make_conninfo(source(), options=f"-c search_path={schema}")


def _record(row: tuple[Any, ...]) -> FileRecord:
    file_id, owner, name, groups, tables, created_at, changed_at, version = row
    return FileRecord(
        file_id, owner, name, tuple(groups), tuple(tables), created_at, changed_at, version
    )
