"""The file of API keys and the command that manages it."""

import hmac
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.access.key_file import InvalidKeyRequest, KeyFile, KeysUnreadable
from api.keys import main
from common.redaction import redacted
from tests.support.live import ROOT, clean_environment

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "api_keys.json"


@pytest.fixture
def command(path: Path) -> Command:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "api.keys", *arguments],
            cwd=ROOT,
            env=clean_environment({"API_KEYS_FILE": str(path)}),
            capture_output=True,
            text=True,
            timeout=240,
        )

    return run


def test_a_key_is_made_listed_and_revoked_by_the_command(command: Command, path: Path) -> None:
    made = command(
        "create",
        "--user",
        "alice",
        "--group",
        "sales",
        "--group",
        "ops",
        "--name",
        "CI",
        "--acts-for-others",
    )
    assert made.returncode == 0
    text = made.stdout.strip()
    assert re.fullmatch(r"citu_key_[\w-]{43}", text)
    assert text not in made.stderr
    assert text not in path.read_text()

    keys = KeyFile(path)
    key = keys.find(text)
    assert key is not None
    assert (key.user_id, key.groups, key.acts_for_others, key.name) == (
        "alice",
        ("sales", "ops"),
        True,
        "CI",
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    listed = command("list")
    assert listed.returncode == 0
    assert re.search(
        rf"{key.key_id} +alice +sales,ops +- +yes +CI +.*never +…{text[-4:]}\n", listed.stdout
    )
    assert text not in listed.stdout
    assert key.sha256 not in listed.stdout

    revoked = command("revoke", key.key_id)
    assert (revoked.returncode, revoked.stdout) == (0, f"{key.key_id} of alice is revoked.\n")
    assert keys.find(text) is None
    assert keys.is_needed()
    assert "a key is needed all the same" in command("list").stdout


def test_the_command_says_what_is_wrong(command: Command, path: Path) -> None:
    unknown = command("revoke", "key_0")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == "There is no key 'key_0': 'list' shows their ids.\n"
    assert not path.exists()
    assert command("create").returncode == 2
    path.write_text("{}")
    corrupt = command("create", "--user", "alice")
    assert corrupt.returncode == 1
    assert corrupt.stderr == f"{path} is not a file of API keys: it has no version 1.\n"
    assert path.read_text() == "{}"  # what may be somebody's is not overwritten


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"user_id": " "}, "the user must be"),
        ({"user_id": "a\nb"}, "the user must be"),
        ({"user_id": "\udcff"}, "the user must be"),
        ({"user_id": "a" * 257}, "the user must be"),
        ({"user_id": "a", "groups": ("a b",)}, "the group 'a b' must be"),
        ({"user_id": "a", "name": "\0"}, "the name must be"),
        ({"user_id": "a", "expires_in_days": 0}, "the days until it expires must be"),
        ({"user_id": "a", "expires_in_days": float("nan")}, "the days until it expires must be"),
        ({"user_id": "a", "expires_in_days": 1e9}, "the days until it expires must be"),
    ],
)
def test_keys_that_can_not_be(path: Path, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidKeyRequest, match=sentence):
        KeyFile(path).create(**values)
    assert not path.exists()


def test_an_expired_key_is_none(path: Path) -> None:
    keys = KeyFile(path)
    text, key = keys.create("alice", expires_in_days=1)
    assert keys.find(text) == key
    document = json.loads(path.read_text())
    document["keys"][0]["expires_at"] = "2020-01-01T00:00:00.000+00:00"
    path.write_text(json.dumps(document))
    assert keys.find(text) is None
    assert [one.is_expired() for one in keys.all()] == [True]
    assert keys.is_needed()


def _entry(**changes: Any) -> bytes:
    entry = {
        "key_id": "key_1",
        "user_id": "alice",
        "groups": [],
        "acts_for_others": False,
        "name": "",
        "ending": "abcd",
        "sha256": "0" * 64,
        "created_at": "2026-01-01T00:00:00.000+00:00",
        "expires_at": None,
    }
    return json.dumps({"version": 1, "keys": [entry | changes]}).encode()


def test_the_entry_the_next_test_spoils_is_a_good_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(_entry())
    assert KeyFile(path).all()[0].user_id == "alice"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"version": 2, "keys": []}',
        b'{"version": 1}',
        b'{"version": 1, "keys": [1]}',
        b'{"version": 1, "keys": [{}]}',
        b"[" * 100_000,
        _entry(sha256="x"),
        _entry(user_id=" "),
        _entry(user_id=None),
        _entry(groups="ab"),
        _entry(groups=[1]),
        _entry(acts_for_others="no"),
        _entry(expires_at=1),
        _entry(expires_at="never"),
        _entry(expires_at="2030-01-01T00:00:00"),
        _entry(more=1),
    ],
)
def test_a_file_that_is_no_file_of_keys_admits_nobody(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    keys = KeyFile(path)
    text, _key = keys.create("alice")
    assert keys.find(text)
    good = path.read_bytes()
    path.write_bytes(content)
    for _ in range(3):
        assert keys.is_needed()
        with pytest.raises(KeysUnreadable):
            keys.find(text)
    assert len(caplog.records) == 1
    assert str(path) in redacted(caplog.records[0].getMessage())
    path.write_bytes(good)
    assert keys.find(text)


def test_a_file_that_is_gone_admits_nobody(path: Path) -> None:
    keys = KeyFile(path)
    assert not keys.is_needed()
    text, _key = keys.create("alice")
    assert keys.is_needed()
    path.unlink()
    assert keys.is_needed()
    with pytest.raises(KeysUnreadable, match="is gone"):
        keys.find(text)
    assert KeyFile(path).is_needed(), "also to a process that starts now"
    with pytest.raises(KeysUnreadable, match="delete"):
        KeyFile(path).create("bob")
    path.with_name(f"{path.name}.lock").unlink()
    assert not KeyFile(path).is_needed()


def test_a_command_that_failed_makes_no_service_need_keys(path: Path) -> None:
    with pytest.raises(InvalidKeyRequest):
        KeyFile(path).revoke("key_none")
    assert not KeyFile(path).is_needed()


def test_a_file_that_can_not_be_opened_admits_nobody(path: Path) -> None:
    path.mkdir(parents=True)
    assert KeyFile(path).is_needed()
    dangling = path / "link"
    dangling.symlink_to(path / "nowhere")
    assert KeyFile(dangling).is_needed()
    below_a_file = path / "file"
    below_a_file.write_text("")
    assert KeyFile(below_a_file / "keys.json").is_needed()


def test_every_stored_key_is_compared_whole_whatever_was_presented(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyFile(path)
    texts = [keys.create(f"user {n}")[0] for n in range(4)]
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def noting(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noting)
    for presented in (texts[0], texts[3], "citu_key_", ""):
        compared.clear()
        keys.find(presented)
        assert compared == [(64, 64)] * 4


@given(presented=st.text())
def test_no_other_text_is_a_key(tmp_path_factory: pytest.TempPathFactory, presented: str) -> None:
    keys = KeyFile(tmp_path_factory.getbasetemp() / "property.json")
    if not keys.is_needed():
        keys.create("alice")
    assert keys.find(presented) is None


def test_writers_take_turns_and_readers_never_see_half_a_file(path: Path) -> None:
    KeyFile(path).create("first")
    failures: list[Exception] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                assert KeyFile(path).all()
            except Exception as error:  # noqa: BLE001 - reported below
                failures.append(error)

    def write(number: int) -> None:
        for _ in range(5):
            _text, key = KeyFile(path).create(f"writer {number}")
            KeyFile(path).revoke(key.key_id)
            KeyFile(path).create(f"writer {number}")

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in (reader, *writers):
        thread.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert failures == []
    found = KeyFile(path).all()
    assert len(found) == len({key.key_id for key in found}) == 1 + 4 * 5
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "api_keys.json",
        "api_keys.json.lock",
    ]


def test_a_write_that_fails_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _key = KeyFile(path).create("alice")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeysUnreadable, match=r"can't be written: No space left on device"):
        KeyFile(path).create("bob")
    assert [key.user_id for key in KeyFile(path).all()] == ["alice"]
    assert KeyFile(path).find(text)
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "api_keys.json",
        "api_keys.json.lock",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes for other users")
def test_what_root_makes_belongs_to_the_owner_of_the_folder(path: Path) -> None:
    path.parent.mkdir()
    os.chown(path.parent, 65534, 65534)
    KeyFile(path).create("alice")
    with suppress(InvalidKeyRequest):
        KeyFile(path).revoke("key_unknown")
    assert {(file.stat().st_uid, file.stat().st_gid) for file in path.parent.iterdir()} == {
        (65534, 65534)
    }


def test_a_key_has_attributes_and_the_file_of_others_stays_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir(exist_ok=True)
    monkeypatch.setenv("API_KEYS_FILE", str(path))
    keys = KeyFile(path)
    plain, _ = keys.create("bob")
    assert "attributes" not in path.read_text(), "an older version may read it, too"
    command = ["create", "--user", "ann", "--attribute", "region=north"]
    assert main([*command, "--attribute", "region=a=b", "--attribute", "level=3"]) == 0
    ann = next(key for key in KeyFile(path).all() if key.user_id == "ann")
    assert ann.attributes == (("level", ("3",)), ("region", ("north", "a=b")))
    found = KeyFile(path).find(plain)
    assert found is not None
    assert found.attributes == ()
    for wrong in ("region", "1a=b", "a.b=c", "a=\0"):
        assert main([*command, "--attribute", wrong]) == 1
