"""The file of API keys, which says whose key a request carries.

A key is 256 random bits, and only its SHA-256 is kept. Slow hashes protect passwords, which can be
guessed; 256 random bits can't, so a slow hash would only slow every request down. A presented key
is hashed and compared with every stored hash, each in constant time, so that the time taken tells
nothing about any key.

Every process sees a change of the file at its next request. Writers take turns and replace the file
as a whole. Once the file exists, requests need a key, also when none of its keys is valid any more.
While the file can't be read, or after it was lost, nobody is admitted.
"""

import fcntl
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api.access.names import MOST_NAME_CHARS, is_name
from common.actor import ATTRIBUTE_NAME, Attributes, attributes_of
from common.timestamps import utc_text

_log = logging.getLogger(__name__)

PREFIX = "citu_key_"
_VERSION = 1
_MADE = b"keys were made\n"  # written into the lock file, which stays when the file of keys is lost
_MAX_DAYS = 36500
_DIGEST = re.compile(r"[0-9a-f]{64}")
_GROUP = re.compile(r"[\w.:-]{1,64}")


class KeysUnreadable(Exception):
    """The file can't be read or written, or holds no API keys; the message says why."""


class InvalidKeyRequest(ValueError):
    """A key can't be made as asked, or does not exist; the message is for the operator."""


@dataclass(frozen=True)
class ApiKey:
    """One key as the file keeps it.

    Attributes:
        key_id: names the key in `list` and `revoke`; not secret.
        user_id: the user whose conversations and runs the key opens.
        groups: names on which rights depend.
        acts_for_others: requests with this key may say on whose behalf they are made.
        name: the operator's own name for the key, or empty.
        ending: the key's last four characters, by which its holder recognises it.
        sha256: the SHA-256 of the whole key, in hexadecimal.
        created_at: ISO 8601, UTC.
        expires_at: ISO 8601, UTC; None: the key does not expire.
        attributes: names with values, which row rules may name.
    """

    key_id: str
    user_id: str
    groups: tuple[str, ...]
    acts_for_others: bool
    name: str
    ending: str
    sha256: str
    created_at: str
    expires_at: str | None
    attributes: Attributes = ()

    def is_expired(self) -> bool:
        """Tell whether the key has expired."""
        if self.expires_at is None:
            return False

        return datetime.fromisoformat(self.expires_at) <= datetime.now(UTC)


@dataclass(frozen=True)
class _Read:
    """One reading of the file.

    Attributes:
        stamp: differs for every state of the file; None: there is no file.
        failure: why there are no keys although they are needed.
    """

    stamp: tuple[int, ...] | None
    keys: tuple[ApiKey, ...] = ()
    failure: str | None = None


class KeyFile:
    """The keys of one file; several threads and processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._read: _Read | None = None

    def is_needed(self) -> bool:
        """Tell whether requests need a key: the file exists, whatever it holds, or existed once."""
        current = self._current()
        return current.stamp is not None or current.failure is not None

    def find(self, presented: str) -> ApiKey | None:
        """Return the key whose text was presented; None: it is unknown or has expired.

        Raises:
            KeysUnreadable: the file can't be read, so that nobody can be admitted.
        """
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).hexdigest()
        matching = [key for key in self.all() if hmac.compare_digest(key.sha256, digest)]
        for key in matching:
            if not key.is_expired():
                return key

        return None

    def all(self) -> tuple[ApiKey, ...]:
        """Return every key, expired ones included; empty when there is no file.

        Raises:
            KeysUnreadable: the file can't be read, or is gone, or is not a file of API keys.
        """
        current = self._current()
        if current.failure is not None:
            raise KeysUnreadable(current.failure)

        return current.keys

    def text(self) -> str:
        """Return the content of the file; empty: there is none.

        Raises:
            KeysUnreadable: the file can't be read, or is gone, or is not a file of API keys.
        """
        if not self.is_needed():
            return ""

        return _text_of(self.all())

    def replace(self, text: str) -> None:
        """Replace the file by another's text.

        Raises:
            KeysUnreadable: the text is not that of a file of API keys, or can't be written.
        """
        try:
            keys = _parsed(text.encode())
        except ValueError as exc:
            raise KeysUnreadable(f"these are no API keys: {exc}") from exc

        self._write(lambda: keys)

    def create(
        self,
        user_id: str,
        *,
        groups: tuple[str, ...] = (),
        acts_for_others: bool = False,
        name: str = "",
        expires_in_days: float | None = None,
        attributes: Attributes = (),
    ) -> tuple[str, ApiKey]:
        """Make a key and return its text, which is kept nowhere, and what the file keeps of it.

        Raises:
            InvalidKeyRequest: a value is not allowed.
            KeysUnreadable: the file can't be read or written.
        """
        _check(user_id, groups, name, expires_in_days)
        _check_attributes(attributes)
        text = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        expires_at = None
        if expires_in_days is not None:
            expires_at = utc_text(now + timedelta(days=expires_in_days))

        key = ApiKey(
            key_id=f"key_{secrets.token_hex(4)}",
            user_id=user_id,
            groups=groups,
            acts_for_others=acts_for_others,
            name=name,
            ending=text[-4:],
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            created_at=utc_text(now),
            expires_at=expires_at,
            attributes=attributes,
        )
        self._change(lambda keys: (*keys, key))
        return text, key

    def revoke(self, key_id: str) -> ApiKey:
        """Remove a key from the file and return what the file kept of it.

        Raises:
            InvalidKeyRequest: there is no key of that id.
            KeysUnreadable: the file can't be read or written.
        """
        revoked: list[ApiKey] = []

        def without(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            remaining: list[ApiKey] = []
            for key in keys:
                if key.key_id == key_id:
                    revoked.append(key)
                else:
                    remaining.append(key)

            if not revoked:
                problem = f"there is no key {key_id!r}: 'list' shows their ids"
                raise InvalidKeyRequest(problem)

            return tuple(remaining)

        self._change(without)
        return revoked[0]

    def _current(self) -> _Read:
        read = self._read
        is_valid = read is not None and read.failure is None
        if read is not None and is_valid and read.stamp == _stamp(self.path):
            return read

        with self._lock:
            before, current = self._read, self._load()
            self._read = current
            was_logged = before is not None and before.failure == current.failure
            if current.failure is not None and not was_logged:
                _log.error("nobody can be let in: %s", current.failure)

            return current

    def _load(self) -> _Read:
        try:
            with self.path.open("rb") as file:
                return _Read(_stamp_of(os.fstat(file.fileno())), _parsed(file.read()))
        except FileNotFoundError:
            return self._missing()
        except OSError as exc:
            return _Read(None, failure=f"{self.path} can't be read: {exc.strerror}")
        except ValueError as exc:
            return _Read(None, failure=f"{self.path} is not a file of API keys: {exc}")

    def _missing(self) -> _Read:
        """Return the state without a file: no keys are needed unless there was one once."""
        if self._read is None:
            was_there = self.path.is_symlink() or _was_made(self.path)
        else:
            was_there = self._read.stamp is not None or self._read.failure is not None

        if not was_there:
            return self._read or _Read(None)

        lock = _lock_of(self.path)
        failure = f"{self.path} is gone; to go on without keys, delete {lock} too"
        return _Read(None, failure=failure)

    def _change(self, change: Callable[[tuple[ApiKey, ...]], tuple[ApiKey, ...]]) -> None:
        self._write(lambda: change(KeyFile(self.path).all()))

    def _write(self, keys: Callable[[], tuple[ApiKey, ...]]) -> None:
        """Replace the file, while no other process writes it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _one_writer(self.path) as lock:
                _replace(self.path, keys())
                os.pwrite(lock, _MADE, 0)
        except OSError as exc:
            raise KeysUnreadable(f"{self.path} can't be written: {exc.strerror}") from exc


def _check(user_id: str, groups: tuple[str, ...], name: str, expires_in_days: float | None) -> None:
    _check_text("the user", user_id)
    if name:
        _check_text("the name", name)

    for group in groups:
        if not _GROUP.fullmatch(group):
            problem = f"the group {group!r} must be 1 to 64 letters, digits, _ . : or -"
            raise InvalidKeyRequest(problem)

    if expires_in_days is None:
        return
    if not 0 < expires_in_days <= _MAX_DAYS:
        problem = f"the days until it expires must be more than 0 and at most {_MAX_DAYS}"
        raise InvalidKeyRequest(problem)


def _check_attributes(attributes: Attributes) -> None:
    for name, values in attributes:
        if not ATTRIBUTE_NAME.fullmatch(name):
            problem = f"the attribute {name!r} must be letters, digits and _, first no digit"
            raise InvalidKeyRequest(problem)

        for value in values:
            _check_text(f"the attribute {name}", value)


def _check_text(what: str, text: str) -> None:
    if not is_name(text):
        raise InvalidKeyRequest(f"{what} must be 1 to {MOST_NAME_CHARS} printable characters")


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        return _stamp_of(path.stat())
    except FileNotFoundError:
        return None
    except OSError:
        return ()  # never equals a real stamp, so the file is read again


def _stamp_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size


def _parsed(content: bytes) -> tuple[ApiKey, ...]:
    """Return the keys in the content of a file.

    Raises:
        ValueError: the content is anything else.
    """
    try:
        document = json.loads(content)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc

    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError(f"it has no version {_VERSION}")

    entries = document.get("keys")
    if not isinstance(entries, list):
        raise ValueError("it has no list of keys")

    return tuple(_key(entry) for entry in entries)


_NAMES = frozenset(field.name for field in fields(ApiKey))


_TEXTS = _NAMES - {"groups", "acts_for_others", "expires_at", "attributes"}


def _key(entry: Any) -> ApiKey:
    _check_entry(entry)
    attributes = attributes_of(entry.get("attributes", {}))
    return ApiKey(**{**entry, "groups": tuple(entry["groups"]), "attributes": attributes})


def _entry(key: ApiKey) -> dict[str, Any]:
    """Return what the file keeps of a key; without attributes as older versions know it."""
    entry = asdict(key)
    entry["attributes"] = {name: list(values) for name, values in key.attributes}
    if not key.attributes:
        del entry["attributes"]

    return entry


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict) or {"attributes", *entry} != _NAMES:
        raise ValueError("a key of it does not have the fields of one")

    groups = entry["groups"]
    texts = [entry[name] for name in _TEXTS]
    if not isinstance(groups, list) or not _are_texts(texts + groups):
        raise ValueError("a field of a key is not text")
    if not isinstance(entry["acts_for_others"], bool) or not _DIGEST.fullmatch(entry["sha256"]):
        raise ValueError("a key's acts_for_others or sha256 is not one")
    if not _is_expiry(entry["expires_at"]):
        raise ValueError("a key's expires_at is no time with a zone")
    if not entry["user_id"].strip():
        raise ValueError("a key has no user")
    if not _are_attributes(entry.get("attributes", {})):
        raise ValueError("a key's attributes are not names with lists of texts")


def _are_attributes(values: Any) -> bool:
    if not isinstance(values, dict):
        return False

    return all(isinstance(each, list) and _are_texts(each) for each in values.values())


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_expiry(value: Any) -> bool:
    if value is None:
        return True

    return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None


def _text_of(keys: Iterable[ApiKey]) -> str:
    document = {"version": _VERSION, "keys": [_entry(key) for key in keys]}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _was_made(path: Path) -> bool:
    """Tell whether keys were ever made here.

    A process that starts after the file was lost must still demand keys.
    """
    try:
        return _lock_of(path).stat().st_size > 0
    except OSError:
        return False


@contextmanager
def _one_writer(path: Path) -> Iterator[int]:
    """Wait for other writers and yield the open lock file.

    It is not the file of keys, because that is replaced.

    It is not the file of keys, because that is replaced.
    """
    descriptor = os.open(_lock_of(path), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _give_to_owner(descriptor, path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _replace(path: Path, keys: tuple[ApiKey, ...]) -> None:
    """Replace the file, so that readers see the old or the new content, never a part.

    Only its owner may read it.
    """
    path = path.resolve()
    # The mode of such a file is 0600.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_text_of(keys))
            file.flush()
            _give_to_owner(file.fileno(), path)
            os.fsync(file.fileno())

        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _give_to_owner(descriptor: int, path: Path) -> None:
    """Give a file that root writes to the owner of `path`, or of its folder while it is missing.

    The service may run as that other user, who must be able to read it.
    """
    if os.geteuid() == 0:
        owner = (path if path.exists() else path.parent).stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
