"""Reads the files of an artefact, and the target of its plan, from its zip archive."""

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
    """A file of an archive."""

    path: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Return the SHA-256 digest of the file, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def language(self) -> str:
        """Return the name that editors have for the kind of file; `text` for an unknown ending."""
        ending = self.path[self.path.rfind(".") :]
        return _LANGUAGES.get(ending, "text")

    def listed(self) -> dict[str, Any]:
        """Return the path, size in bytes and digest, as answers of the API list files."""
        return {"path": self.path, "bytes": len(self.data), "sha256": self.sha256}


@dataclass(frozen=True)
class Archive:
    """A zip archive, read when its files are asked for."""

    data: bytes

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 digest of the archive, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def files(self) -> tuple[ArchivedFile, ...]:
        """Return the files in their order in the archive."""
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
        """Return the plan's target, the relation that is built; empty where the plan names none."""
        plan = self.file(_PLAN)
        if plan is None:
            return {}

        target = json.loads(plan.data).get("target")
        if not isinstance(target, dict):
            return {}

        return target
