"""The database in which drafts are built: who may build now, and that it is no other database."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import psycopg2

from common.errors import CituError, DatabaseUnavailable, InvalidSql
from common.fair_slots import FairSlots
from common.ports import UrlSource
from common.text import Text
from databases.database_identity import DatabaseIdentity, identify
from databases.source import EmbeddedSource
from etl.scratch.scratch_build import ScratchBuild, end_build, open_build, sweep
from etl.scratch.scratch_errors import ScratchFull, unavailable
from etl.scratch.scratch_options import ScratchOptions

T = TypeVar("T")
_log = logging.getLogger(__name__)

# Other workers build there too, each as many drafts at once as this one.
_PATIENCE_S = 60.0
_PAUSE_S = 0.2
_NOT_OWNED = Text(
    "SCRATCH_DATABASE_URL 的角色不是该数据库的所有者。请使用一个专用数据库及其所有者。",
    "The role of SCRATCH_DATABASE_URL doesn't own its database. Give it a database of its own.",
)


class ScratchDatabase:
    """Opens builds, so many at once, each with a connection and schemas of its own.

    Args:
        source: where it is.
        options: its limits.
        others: gives the databases that it must not be, by the settings that name them.
    """

    def __init__(
        self,
        source: UrlSource,
        options: ScratchOptions,
        others: Callable[[], Mapping[str, UrlSource]],
    ) -> None:
        self._source = source
        self.options = options
        self._others = others
        self._slots = FairSlots(options.builds)
        self._checking = asyncio.Lock()

    async def ready(self) -> str:
        """Return the URL as `check` does, after waiting while all connections are taken.

        Of many requests one checks at a time: a check takes a connection from builds.
        """

        async def checked() -> str:
            async with self._checking:
                return await asyncio.to_thread(self.check)

        return await _patiently(checked)

    def check(self) -> str:
        """Return the URL, after looking which database it leads to; blocks.

        Raises:
            DatabaseUnavailable: it can't be reached, is one of the others, or its role doesn't own
                it; the message names the setting.
        """
        url = self._source()
        others = self._others_to_compare()
        identity, is_owner = _identify(url)
        if not is_owner:
            raise DatabaseUnavailable(_NOT_OWNED)

        for setting, other in others.items():
            if _identify(other())[0] == identity:
                raise DatabaseUnavailable(_is_the(setting))

        return url

    def _others_to_compare(self) -> Mapping[str, UrlSource]:
        """Return the others; an embedded one needs no comparing with others that are embedded."""
        others = self._others()
        if not isinstance(self._source, EmbeddedSource):
            return others

        return {
            setting: source
            for setting, source in others.items()
            if not isinstance(source, EmbeddedSource)
        }

    @asynccontextmanager
    async def build(
        self, name: str, waits: Callable[[], None] = lambda: None
    ) -> AsyncIterator[ScratchBuild]:
        """Open a build; its schemas are dropped when the block ends.

        Args:
            name: the name of the run and its attempt; what an earlier build of that name has left
                is dropped first.
            waits: is called when others have to end before.

        Raises:
            DatabaseUnavailable: as `check`.
        """
        slot = self._slots.take()
        if slot is None:
            waits()
            slot = await self._slots.acquire()

        try:
            build = await self._open_build(_schema(name))
            try:
                yield build
            finally:
                await asyncio.shield(self._end(build))
        finally:
            slot.release()

    async def _open_build(self, schema: str) -> ScratchBuild:
        url = await self.ready()

        async def opened() -> ScratchBuild:
            with suppress(InvalidSql):  # another worker has swept the same
                await sweep(url, self.options)

            return await open_build(url, schema, self.options)

        return await _patiently(opened)

    async def _end(self, build: ScratchBuild) -> None:
        try:
            await _patiently(lambda: end_build(build, self.options))
        except CituError as exc:
            _log.warning("schemas of a build stay until they are swept: %s", exc.text.en)


async def _patiently(do: Callable[[], Awaitable[T]]) -> T:
    """Run a function that needs a connection, again and again while all of them are taken."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await do()
        except ScratchFull:
            if time.monotonic() > deadline:
                raise

        await asyncio.sleep(_PAUSE_S)


def _schema(name: str) -> str:
    return f"etl_{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"


def _identify(url: str) -> tuple[DatabaseIdentity, bool]:
    try:
        return identify(url)
    except psycopg2.Error as exc:
        raise unavailable(exc) from exc


def _is_the(setting: str) -> Text:
    return Text(
        f"SCRATCH_DATABASE_URL 与 {setting} 指向同一个数据库。请为草稿使用另一个数据库。",
        f"SCRATCH_DATABASE_URL leads to the same database as {setting}. Give drafts another one.",
    )
