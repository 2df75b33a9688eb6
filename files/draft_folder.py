"""Uploads whose drafts wait for their user: the file, and what was said of it, in a folder each."""

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

_ID = re.compile(r"file_[0-9a-f]{24}")
_CONTENT, _DRAFT = "content", "draft.json"


def new_file_id() -> str:
    """Return `file_` + 96 random bits."""
    return f"file_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class DraftFolder:
    """Keeps uploads for `ttl_s` seconds after they were last looked at.

    The first upload makes `mark`, by which it is known that there may be files.
    """

    path: Path
    ttl_s: float

    @property
    def mark(self) -> Path:
        """Return the file that is there from the first upload on."""
        return self.path / "used"

    @property
    def work(self) -> Path:
        """Return the folder in which archives are unpacked."""
        return self.path / "work"

    def put(self, upload: Path) -> str:
        """Move an upload here; return its new id."""
        self.sweep()
        file_id = new_file_id()
        folder = self._folder(file_id)
        folder.mkdir(parents=True)
        upload.replace(folder / _CONTENT)
        self.mark.touch()
        return file_id

    def begin(self) -> Path:
        """Return a new path to write an upload to."""
        incoming = self.path / "incoming"
        incoming.mkdir(parents=True, exist_ok=True)
        return incoming / secrets.token_hex(12)

    def content(self, file_id: str) -> Path:
        """Return where an upload is."""
        return self._folder(file_id) / _CONTENT

    def save(self, file_id: str, draft: dict[str, Any]) -> None:
        """Keep a draft in one step."""
        folder = self._folder(file_id)
        beside = folder / f"{_DRAFT}.{secrets.token_hex(4)}"
        beside.write_text(json.dumps(draft, ensure_ascii=False), "utf-8")
        beside.replace(folder / _DRAFT)

    def read(self, file_id: str) -> dict[str, Any] | None:
        """Return a draft; None: there is none of that id."""
        if not _ID.fullmatch(file_id):
            return None

        try:
            text = (self._folder(file_id) / _DRAFT).read_text("utf-8")
            os.utime(self._folder(file_id))
        except (FileNotFoundError, NotADirectoryError):
            return None

        draft: dict[str, Any] = json.loads(text)
        return draft

    def drafts(self) -> Iterator[dict[str, Any]]:
        """Yield the drafts that are kept, as JSON values, in the order of their ids."""
        for folder in sorted(self.path.glob("file_*")):
            draft = self.read(folder.name)
            if draft is not None:
                yield draft

    def remove(self, file_id: str) -> None:
        """Remove an upload and its draft."""
        shutil.rmtree(self._folder(file_id), ignore_errors=True)

    def sweep(self) -> None:
        """Remove what has been waiting too long, and what an ended process left behind."""
        oldest = time.time() - self.ttl_s
        patterns = ("file_*", "incoming/*", "work/*")
        for path in chain.from_iterable(map(self.path.glob, patterns)):
            if _is_older(path, oldest):
                _remove(path)

    def _folder(self, file_id: str) -> Path:
        assert _ID.fullmatch(file_id)
        return self.path / file_id


def _is_older(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
