"""Gives users the files that their runs made."""

from common.errors import NotFound
from common.text import Text
from etl.archive import Archive, ArchivedFile
from store import Artefacts

_NONE = Text(
    "这次运行没有产物，或它已不再保存。",
    "This run has no artefact, or it is no longer kept.",
)
_NO_FILE = Text(
    "产物中没有这个文件：请从 files 列表中选取。",
    "The artefact has no such file: take one of the list at `files`.",
)


class ArtefactService:
    """Finds artefacts; those of one user do not exist for another."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts

    async def archive(self, user_id: str, run_id: str) -> Archive:
        """Return the latest archive that the run made.

        Raises:
            NotFound: the user has no artefact of such a run, or it is no longer kept.
            StoreUnavailable: the store can't be read.
        """
        artefact = await self._artefacts.find(user_id, run_id)
        if artefact is None:
            raise NotFound(_NONE)

        return Archive(artefact.data)

    async def file(self, user_id: str, run_id: str, path: str) -> ArchivedFile:
        """Return one file of the archive.

        Raises:
            NotFound, StoreUnavailable: as `archive`; also for a path that is not in its list.
        """
        archive = await self.archive(user_id, run_id)
        archived_file = archive.file(path)
        if archived_file is None:
            raise NotFound(_NO_FILE)

        return archived_file
