"""Has files read and loaded by `files.file_worker`, and ends it when nobody waits for it."""

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.errors import DatabaseUnavailable, InvalidRequest, QueryTimeout
from common.text import Text
from files.loading.load_plan import LoadPlan
from files.reading.reading_limits import LIMITS, ReadingLimits
from postgres.connection_errors import UNREACHABLE

_log = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
_AT_ONCE = 2  # workers of one process
_LINE_BYTES = 64 * 1024 * 1024
_MEMORY_BYTES = 1024 * 1024 * 1024  # of a worker's addresses, of which it uses a part
_TOO_MUCH = Text(
    "文件太大或太复杂，无法读取：请拆分，或另存为 CSV。",
    "The file is too large or too intricate to be read: split it, or save it as CSV.",
)
_SLOW = Text("读取文件的时间太长。", "It takes too long to read the file.")

OnRows = Callable[[int], None]


def file_refused(text: Text) -> InvalidRequest:
    """Return the error for a file that can't become a table."""
    return InvalidRequest(text, field="file")


@dataclass(frozen=True)
class UploadSource:
    """An upload, and what its user has said of its sheets, by their keys."""

    path: Path
    name: str
    options: dict[str, dict[str, Any]]


class FileWorker:
    """Runs workers, a few at once; the others wait.

    Args:
        folder: where archives are unpacked; what is left there is removed with each worker.
        timeout_s: seconds one may take.

    Attributes:
        peak_bytes: most memory that a worker had until now.
    """

    def __init__(self, folder: Path, timeout_s: float, limits: ReadingLimits = LIMITS) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._limits = limits
        self._slots: asyncio.Semaphore | None = None
        self.peak_bytes = 0

    async def draft(self, upload: UploadSource) -> list[dict[str, Any]]:
        """Return what the upload's sheets would become.

        Raises:
            InvalidRequest: it can't be read; says why.
            QueryTimeout: it takes too long.
        """
        drafts: list[dict[str, Any]] = await self._run(upload, {"do": "draft"}, _ignored)
        return drafts

    async def load(
        self, upload: UploadSource, plan: LoadPlan, on_rows: OnRows
    ) -> list[dict[str, Any]]:
        """Carry out a plan; return what became of its tables.

        Raises:
            InvalidRequest: rows can't be read, or there would be too many; nothing has changed.
            QueryTimeout: it takes too long; nothing has changed.
            DatabaseUnavailable: the workspace went away.
        """
        loaded: list[dict[str, Any]] = await self._run(
            upload, {"do": "load", "plan": asdict(plan)}, on_rows
        )
        return loaded

    async def _run(self, upload: UploadSource, task: dict[str, Any], on_rows: OnRows) -> Any:
        self._slots = self._slots or asyncio.Semaphore(_AT_ONCE)
        async with self._slots:
            self._folder.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(dir=self._folder)
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._run_worker(
                        {**task, **self._task_for(upload, folder)}, on_rows
                    )
            except TimeoutError as exc:
                raise QueryTimeout(_SLOW) from exc
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def _task_for(self, upload: UploadSource, folder: str) -> dict[str, Any]:
        return {
            "path": str(upload.path),
            "name": upload.name,
            "options": upload.options,
            "folder": folder,
            "limits": asdict(self._limits),
            "memory_bytes": _MEMORY_BYTES,
            "cpu_s": max(1, int(self._timeout_s)),
        }

    async def _run_worker(self, task: dict[str, Any], on_rows: OnRows) -> Any:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "files.file_worker",
            cwd=_ROOT,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaints = asyncio.create_task(process.stderr.read())
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(json.dumps(task).encode())
                await process.stdin.drain()
                process.stdin.close()

            async for line in process.stdout:
                message = json.loads(line)
                if "rows" not in message:
                    self.peak_bytes = max(self.peak_bytes, message.get("peak_bytes", 0))
                    return _result(message, await complaints)

                on_rows(message["rows"])

            _log.warning("a worker of files died: %s", (await complaints)[-500:])
            raise file_refused(_TOO_MUCH)
        finally:
            complaints.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

            await process.wait()


def _result(message: dict[str, Any], complaints: bytes) -> Any:
    if "refused" in message:
        raise file_refused(Text(*message["refused"]))
    if "failed" in message:
        _log.warning("files could not be loaded: %s", complaints[-500:])
        raise DatabaseUnavailable(UNREACHABLE)

    return message["done"]


def _ignored(_rows: int) -> None:
    """Take no notice of progress."""
