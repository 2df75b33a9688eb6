"""An artefact as a zip archive: what is in it, read back from its bytes."""

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_PLAN = "plan.json"
_LANGUAGES = {
    ".sql": "sql",
    ".yml": "yaml",
    ".md": "markdown",
    ".json": "json",
    ".mmd": "mermaid",
}


@dataclass(frozen=True)
class ArchivedFile:
    """A file of an archive; `language` is what editors call its kind."""

    path: str
    data: bytes

    @property
    def sha256(self) -> str:
        """The digest of the file, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def language(self) -> str:
        """The kind of text, `text` where it has no name."""
        ending = self.path[self.path.rfind(".") :]
        return _LANGUAGES.get(ending, "text")

    def listed(self) -> dict[str, Any]:
        """Return what answers say of it."""
        return {"path": self.path, "bytes": len(self.data), "sha256": self.sha256}


@dataclass(frozen=True)
class Archive:
    """The archive with these bytes."""

    data: bytes

    @cached_property
    def sha256(self) -> str:
        """The digest of the archive, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def files(self) -> tuple[ArchivedFile, ...]:
        """Its files, in the order in which they lie there."""
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            return tuple(ArchivedFile(name, archive.read(name)) for name in archive.namelist())

    def file(self, path: str) -> ArchivedFile | None:
        """Return the file of exactly this path; None when there is none."""
        for file in self.files:
            if file.path == path:
                return file
        return None

    @property
    def target(self) -> dict[str, Any]:
        """What its plan says of the relation that it builds; empty when it says nothing."""
        plan = self.file(_PLAN)
        target = json.loads(plan.data).get("target") if plan is not None else None
        return target if isinstance(target, dict) else {}
