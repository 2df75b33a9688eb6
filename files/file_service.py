"""What people do with their files: upload, correct, confirm, replace, append, share, delete."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from common import timestamps
from common.actor import Actor
from common.errors import Conflict, DatabaseUnavailable, Forbidden, InvalidRequest, NotFound
from common.ports import UrlSource
from common.text import Lang, Text
from files.draft_folder import DraftFolder
from files.drafts import (
    DraftTable,
    assembled,
    differences,
    merged,
    planned,
    reading_options,
)
from files.file_index import FileIndex, FileRecord, schema_of
from files.loading.file_records import ensure_records, forget_record, save_record
from files.loading.load_plan import LoadMode, LoadPlan
from files.reading.sheets import storable
from files.shown_files import shown_draft, shown_record
from files.worker_process import FileWorker, UploadSource
from postgres.connection_errors import UNREACHABLE

T = TypeVar("T")
_UNKNOWN = Text("没有这个文件。", "There is no such file.")
_NOBODY = Text(
    "只有可以识别的用户才能上传文件：请使用 API key。",
    "Only users who are known can bring files: use an API key.",
)
_NOT_YOURS = Text("只有上传者可以修改这个文件。", "Only who brought the file can change it.")
_CHANGED = Text(
    "这个文件在此期间被修改：请重新查看差异。",
    "The file was changed meanwhile: look at the differences again.",
)
_NO_TABLE = Text("没有要导入的表。", "No table is to be loaded.")
_NOTHING_FITS = Text(
    "没有一张表与原文件对应：工作表的名称应相同。",
    "None of the sheets belongs to a table of the file: they are matched by their names.",
)
_DRAFTS = Text(
    "等待确认的文件太多：请先确认或删除一些。",
    "Too many files wait to be confirmed: confirm or delete some.",
)
_MOST_DRAFTS = 20  # of one owner
_CONNECT_S = 5


@dataclass(frozen=True)
class FileLimits:
    """Bounds of one owner's files: bytes and tables in all, seconds to read one."""

    max_bytes: int
    max_tables: int
    timeout_s: float


class FileService:
    """Reads, confirms, shares and removes files, for any number of callers at once.

    Args:
        writes: gives the address of the workspace for the role that makes tables.
        reader: the role that questions are asked with; None: the same.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        index: FileIndex,
        folder: DraftFolder,
        worker: FileWorker,
        writes: UrlSource,
        reader: str | None,
        limits: FileLimits,
    ) -> None:
        self._index = index
        self.folder = folder
        self._worker = worker
        self._writes = writes
        self._reader = reader
        self._limits = limits
        self._has_records = False

    @property
    def peak_bytes(self) -> int:
        """Return the most memory that reading or loading a file took until now."""
        return self._worker.peak_bytes

    async def drafted(  # noqa: PLR0913 - of the file, its user, and what it is for
        self, actor: Actor, path: Path, name: str, lang: Lang, way: LoadMode, changes: str | None
    ) -> dict[str, Any]:
        """Take a file; return its draft. The caller removes the path if it is still there.

        Args:
            changes: the id of the file whose rows are replaced or appended to; None: a new one.

        Raises:
            Forbidden: nobody knows the actor, or the file to be changed is somebody else's.
            NotFound: there is no such file.
            InvalidRequest: the new one can't be read, or has nothing of the other.
        """
        await asyncio.to_thread(self._check_owner, actor)
        target = None
        if changes is not None:
            target = await self._own_record(actor, changes)

        file_id = await asyncio.to_thread(self.folder.put, path)
        draft: dict[str, Any] = {
            "id": file_id,
            "owner": actor.owner,
            "name": storable(name),
            "way": way,
            "target": target.id if target else None,
            "version": target.version if target else None,
            "created_at": timestamps.now(),
            "said": {},
        }
        try:
            draft["read"] = await self._worker.draft(self._source(draft))
            tables = self._tables(draft)
            if target is not None and not any(table.into for table in tables):
                raise InvalidRequest(_NOTHING_FITS, field="file")

            await asyncio.to_thread(self.folder.save, file_id, draft)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.folder.remove, file_id))
            raise

        return self._shown_draft(draft, tables, lang)

    async def listed(self, actor: Actor, lang: Lang) -> dict[str, Any]:
        """Return the files that the actor may ask, its drafts, and what it may still keep."""
        await self._refresh()
        records = self._index.of(actor)
        owned = self._owned_by(actor)
        drafts = []
        for draft in await asyncio.to_thread(self._drafts_of, actor):
            drafts.append(self._shown_draft(draft, self._tables(draft), lang))

        return {
            "files": [
                shown_record(record, is_own=self._index.is_owner(record, actor))
                for record in records
            ],
            "drafts": drafts,
            "quota": {
                "bytes": sum(table["bytes"] for one in owned for table in one.tables),
                "max_bytes": self._limits.max_bytes,
                "tables": sum(len(one.tables) for one in owned),
                "max_tables": self._limits.max_tables,
            },
        }

    async def found(self, actor: Actor, file_id: str, lang: Lang) -> dict[str, Any]:
        """Return a file or a draft; raises `NotFound`."""
        draft = await self._draft_of(actor, file_id)
        if draft is not None:
            return self._shown_draft(draft, self._tables(draft), lang)

        record = await self._record(actor, file_id)
        return shown_record(record, is_own=self._index.is_owner(record, actor))

    async def corrected(
        self, actor: Actor, file_id: str, corrections: Sequence[dict[str, Any]], lang: Lang
    ) -> dict[str, Any]:
        """Correct a draft; return it.

        Raises:
            NotFound: there is no such draft of the actor.
            InvalidRequest: what is said can't be.
        """
        draft = await self._draft_of(actor, file_id)
        if draft is None:
            raise NotFound(_UNKNOWN)

        draft = await self._with_corrections(draft, corrections)
        await asyncio.to_thread(self.folder.save, file_id, draft)
        return self._shown_draft(draft, self._tables(draft), lang)

    async def _with_corrections(
        self, draft: dict[str, Any], corrections: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        all_corrections = merged(draft["said"], corrections)
        changed = {**draft, "said": all_corrections}
        self._tables(changed)  # refuses what can't be, before anything is read again
        if reading_options(all_corrections) != reading_options(draft["said"]):
            changed["read"] = await self._worker.draft(self._source(changed))
            self._tables(changed)

        return changed

    async def confirmed(
        self,
        actor: Actor,
        file_id: str,
        corrections: Sequence[dict[str, Any]],
        lang: Lang,
        on_rows: Callable[[int], None] = lambda _rows: None,
    ) -> dict[str, Any]:
        """Load a draft as tables; return the file, with what became of each table.

        Raises:
            NotFound: there is no such draft of the actor.
            Conflict: the file that it changes is another one by now.
            InvalidRequest: it can't be loaded; nothing has changed.
        """
        draft = await self._draft_of(actor, file_id)
        if draft is None:
            raise NotFound(_UNKNOWN)

        draft = await self._with_corrections(draft, corrections)
        await asyncio.to_thread(self.folder.save, file_id, draft)
        await self._refresh()
        target = self._target(draft)
        tables = self._tables(draft)
        if not self._has_records:
            await self._in_workspace(ensure_records)
            self._has_records = True

        url = await asyncio.to_thread(self._writes)
        plan = self._plan(draft, tables, target, url)
        loaded = await self._worker.load(self._source(draft), plan, on_rows)
        await self._refresh()
        await asyncio.to_thread(self.folder.remove, file_id)
        record_id = draft["target"] or file_id
        shown = await self.found(actor, record_id, lang)
        return {**shown, "loaded": [_loaded_table_json(one, lang) for one in loaded]}

    def _plan(
        self,
        draft: dict[str, Any],
        tables: Sequence[DraftTable],
        target: FileRecord | None,
        url: str,
    ) -> LoadPlan:
        way: LoadMode = draft["way"]
        if way == "append":
            tables = [table for table in tables if table.into is not None]

        to_load = tuple(planned(tables, way))
        if not to_load:
            raise InvalidRequest(_NO_TABLE, field="tables")

        record: dict[str, Any] = {
            "id": draft["target"] or draft["id"],
            "owner": draft["owner"],
            "name": draft["name"] if target is None else target.name,
            "groups": list(target.groups) if target else [],
            "tables": [dict(table) for table in target.tables] if target else [],
        }
        return LoadPlan(
            url,
            schema_of(draft["owner"]),
            self._reader,
            self._limits.max_bytes,
            self._limits.max_tables,
            self._limits.timeout_s,
            record,
            to_load,
        )

    async def shared(
        self, actor: Actor, file_id: str, groups: Sequence[str], lang: Lang
    ) -> dict[str, Any]:
        """Let groups of the actor ask the tables of a file, and no others; return the file.

        Raises:
            NotFound, Forbidden: the file is not the actor's.
            InvalidRequest: one of the groups is not the actor's.
        """
        record = await self._own_record(actor, file_id)
        foreign = sorted(set(groups) - set(actor.groups) - set(record.groups))
        if foreign:
            text = Text(
                f"您不属于组 {'、'.join(foreign)}。", f"You don't belong to {', '.join(foreign)}."
            )
            raise InvalidRequest(text, field="groups")

        def save(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
            values = {"id": record.id, "owner": record.owner, "name": record.name}
            tables = [dict(table) for table in record.tables]
            save_record(connection, {**values, "groups": sorted(set(groups))}, tables)

        await self._in_workspace(save)
        await self._refresh()
        return await self.found(actor, file_id, lang)

    async def deleted(self, actor: Actor, file_id: str) -> None:
        """Delete a file with its tables, or a draft.

        Raises:
            NotFound, Forbidden: it is not the actor's.
        """
        if await self._draft_of(actor, file_id) is not None:
            await asyncio.to_thread(self.folder.remove, file_id)
            return

        record = await self._own_record(actor, file_id)
        await self._in_workspace(partial(_delete, record))
        await self._refresh()

    def _check_owner(self, actor: Actor) -> None:
        if not self._index.can_own(actor):
            raise Forbidden(_NOBODY)
        if len(list(self._drafts_of(actor))) >= _MOST_DRAFTS:
            raise InvalidRequest(_DRAFTS, field="file")

    def _drafts_of(self, actor: Actor) -> list[dict[str, Any]]:
        if not self._index.can_own(actor):
            return []

        return [draft for draft in self.folder.drafts() if draft["owner"] == actor.owner]

    async def _draft_of(self, actor: Actor, file_id: str) -> dict[str, Any] | None:
        if not self._index.can_own(actor):
            return None

        draft = await asyncio.to_thread(self.folder.read, file_id)
        if draft is None or draft["owner"] != actor.owner:
            return None

        return draft

    async def _record(self, actor: Actor, file_id: str) -> FileRecord:
        await self._refresh()
        for record in self._index.of(actor):
            if record.id == file_id:
                return record

        raise NotFound(_UNKNOWN)

    async def _own_record(self, actor: Actor, file_id: str) -> FileRecord:
        record = await self._record(actor, file_id)
        if not self._index.is_owner(record, actor):
            raise Forbidden(_NOT_YOURS)

        return record

    def _owned_by(self, actor: Actor) -> list[FileRecord]:
        return [record for record in self._index.records() if self._index.is_owner(record, actor)]

    def _target(self, draft: dict[str, Any]) -> FileRecord | None:
        """Return the file that a draft changes; raises `Conflict` if it is another one by now."""
        if draft["target"] is None:
            return None

        for record in self._index.records():
            if record.id == draft["target"] and record.version == draft["version"]:
                return record

        raise Conflict(_CHANGED)

    def _tables(self, draft: dict[str, Any]) -> tuple[DraftTable, ...]:
        records = self._index.records()
        existing = {record.id: record for record in records if record.owner == draft["owner"]}
        target = existing.get(draft["target"])
        own = list(existing.values())
        return assembled(draft["read"], draft["said"], own, target, draft["way"])

    def _shown_draft(
        self, draft: dict[str, Any], tables: Sequence[DraftTable], lang: Lang
    ) -> dict[str, Any]:
        compared = [differences(table, draft["way"]) for table in tables]
        return shown_draft(draft, tables, compared, lang)

    def _source(self, draft: dict[str, Any]) -> UploadSource:
        return UploadSource(
            self.folder.content(draft["id"]), draft["name"], reading_options(draft["said"])
        )

    async def _refresh(self) -> None:
        """Look at the files as they are now, also where another process has changed them."""
        if self._index.is_used():
            await asyncio.to_thread(self._index.read)

    async def _in_workspace(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], T]) -> T:
        """Return what `act` gives, in one transaction of the workspace."""

        def work() -> T:
            url = self._writes()
            connecting = psycopg.connect(url, connect_timeout=_CONNECT_S)
            with closing(connecting) as connection, connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '30s'")
                return act(connection)

        try:
            return await asyncio.to_thread(work)
        except psycopg.Error as error:
            raise DatabaseUnavailable(UNREACHABLE) from error


def _delete(record: FileRecord, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    schema = schema_of(record.owner)
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [schema])
    for table in record.tables:
        place = sql.SQL(".").join(map(sql.Identifier, (schema, table["name"])))
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(place))

    forget_record(connection, record.id)


def _loaded_table_json(loaded_table: dict[str, Any], lang: Lang) -> dict[str, Any]:
    return {
        "table": loaded_table["name"],
        "rows": loaded_table["rows"],
        "added": loaded_table["added"],
        "left_out": [
            {"column": column, "count": count, "rows": rows}
            for column, (count, *rows) in loaded_table["left_out"].items()
        ],
        "notes": [Text(*note).to(lang) for note in loaded_table["notes"]],
    }
