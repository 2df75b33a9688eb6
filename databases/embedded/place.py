"""Decides where an embedded server keeps its data and as which system user it runs.

For an ordinary user: in the data directory, as that user. PostgreSQL refuses to run as root, so for
root the server gets an unprivileged account, which must be able to reach its data. The modes of
folders that existed before are never widened for it: when it can't reach the data directory, the
data is kept elsewhere, and a file in the data directory says where.
"""

import fcntl
import logging
import os
import pwd
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from databases.embedded.home import (
    OWN_SERVER,
    USERS_LOCK,
    Account,
    EmbeddedServerError,
    Home,
    can_write,
    create_folder,
    lock_file,
    run_as,
    try_lock,
)

LOGGER = logging.getLogger(__name__)

FOLDER = "postgres"  # inside the data directory
ELSEWHERE = Path("/var/lib/citu")
_LOCATION = "location"  # file in the data directory's folder that names a home elsewhere
_OWNER = "data-directory"  # file in a home elsewhere that names the folder it belongs to
_SETTLED_S = 600  # seconds; a younger home may not be recorded yet


def find_home(data_dir: Path) -> Home:
    """Return the home of the server for `data_dir`; create the folders that are missing.

    Raises:
        EmbeddedServerError: no folder can be used.
    """
    own = data_dir.absolute() / FOLDER
    try:
        create_folder(own, 0o755 if os.geteuid() == 0 else 0o700)
        if os.geteuid() != 0:
            return Home(own, None)

        account = _account_for(own)
        return Home(_reachable(own, account), account)
    except OSError as exc:
        raise EmbeddedServerError(
            f"The data directory {data_dir} can't be used ({exc.strerror}): "
            "set DATA_DIR to a folder you may write to."
        ) from exc


def _account_for(own: Path) -> Account:
    """Return the owner of `own`; instead of root `postgres` or `nobody`, whichever exists."""
    owner = own.stat().st_uid
    if owner:
        entry = _entry(pwd.getpwuid, owner)
    else:
        entry = _entry(pwd.getpwnam, "postgres") or _entry(pwd.getpwnam, "nobody")

    if entry is None:
        raise EmbeddedServerError(
            "PostgreSQL refuses to run as root and there is no user 'postgres' or 'nobody' to run"
            f" it as: start Citu as an ordinary user, or {OWN_SERVER}."
        )

    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    try:
        run_as(account, ["/bin/sh", "-c", ":"])
    except OSError as exc:
        raise EmbeddedServerError(
            "PostgreSQL refuses to run as root, and root may not switch to the user"
            f" '{account.name}' here ({exc.strerror}): start Citu as an ordinary user, "
            f"or {OWN_SERVER}."
        ) from exc

    return account


def _entry(lookup: Callable[[Any], pwd.struct_passwd], key: int | str) -> pwd.struct_passwd | None:
    try:
        return lookup(key)
    except KeyError:
        return None


def _reachable(own: Path, account: Account) -> Path:
    """Return `own` if the account can work there, else the folder that `location` records."""
    record = own / _LOCATION
    recorded = Path(record.read_text().strip()) if record.exists() else None
    if recorded and recorded.is_dir():
        return recorded
    if (own / "cluster").exists() or (_runs_programs(own) and can_write(account, own)):
        return own

    elsewhere = ELSEWHERE / uuid.uuid4().hex
    with suppress(OSError):
        create_folder(ELSEWHERE, 0o755)
        _remove_abandoned()
        create_folder(elsewhere, 0o755)
        (elsewhere / _OWNER).write_text(f"{own}\n")

    if not can_write(account, elsewhere):
        raise EmbeddedServerError(
            f"The user '{account.name}', as whom PostgreSQL has to run because root may not, can't"
            f" reach {own} or {ELSEWHERE}: set DATA_DIR to a folder it can reach, or {OWN_SERVER}."
        )

    _record(elsewhere, record, recorded)
    chosen = Path(record.read_text().strip())
    LOGGER.warning(
        "user %s can't reach %s, so the embedded PostgreSQL keeps its data in %s",
        account.name,
        own,
        chosen,
    )
    return chosen


def _record(elsewhere: Path, record: Path, outdated: Path | None) -> None:
    """Write the place into `record` atomically; if two processes do so at once, the first one
    counts.
    """
    if outdated:
        LOGGER.warning(
            "%s names %s, which is gone: starting with an empty server", record, outdated
        )
        record.unlink(missing_ok=True)

    draft = record.with_name(elsewhere.name)
    draft.write_text(f"{elsewhere}\n")
    try:
        os.link(draft, record)
    except FileExistsError:
        shutil.rmtree(elsewhere)
    finally:
        draft.unlink()


def _runs_programs(directory: Path) -> bool:
    return not os.statvfs(directory).f_flag & getattr(os, "ST_NOEXEC", 0)  # unknown to macOS


def _remove_abandoned() -> None:
    """Remove homes elsewhere whose data directory was a temporary folder that has been deleted."""
    for owner in ELSEWHERE.glob(f"*/{_OWNER}"):
        folder = Path(owner.read_text().rstrip("\n"))
        is_young = time.time() - owner.stat().st_mtime <= _SETTLED_S
        is_recorded = (folder / _LOCATION).exists()
        if is_young or is_recorded or not _is_temporary(folder):
            continue
        if _is_unused(owner.parent):
            shutil.rmtree(owner.parent, ignore_errors=True)


def _is_temporary(folder: Path) -> bool:
    names = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - only compared
    roots = {Path(name).resolve() for name in names}
    return not roots.isdisjoint(folder.parents)


def _is_unused(directory: Path) -> bool:
    descriptor = lock_file(Home(directory, None), USERS_LOCK)
    try:
        return try_lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)
