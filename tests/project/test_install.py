"""`make install`: once, also when asked twice at the same time, and failures in one sentence."""

import os
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
UNREACHABLE = "http://127.0.0.1:9/simple"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return _checkout(tmp_path)


def _checkout(parent: Path) -> Path:
    folder = parent / "with space 目录"
    folder.mkdir()
    for name in ("Makefile", "install.py"):
        shutil.copy(PROJECT / name, folder)
    (folder / "locks").mkdir()
    for path in (folder / "requirements.txt", folder / "locks" / "requirements.txt"):
        path.write_text("# nothing\n")
    return folder


def _surroundings() -> dict[str, str]:
    """The environment without what a make above this one leaves in it."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }


def make(checkout: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["make", f"PYTHON={sys.executable}", *arguments],
        cwd=checkout,
        env=_surroundings()
        | {"PIP_INDEX_URL": UNREACHABLE, "PIP_EXTRA_INDEX_URL": "", "HOME": ""}
        | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    return process.communicate(timeout=240)[0]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a checkout into which two have installed at once, and what each of them said."""
    checkout = _checkout(tmp_path_factory.mktemp("installed"))
    (checkout / ".venv/bin").mkdir(parents=True)
    # An environment whose Python was removed is made again.
    (checkout / ".venv/bin/python").symlink_to("/nowhere/python")
    both = [make(checkout, "install") for _ in range(2)]
    spoken = [said(process) for process in both]
    assert [process.returncode for process in both] == [0, 0], spoken
    return checkout, spoken


@pytest.mark.slow
def test_it_installs_once(installed: tuple[Path, list[str]]) -> None:
    checkout, spoken = installed
    assert "".join(spoken).count("Installing") == 1
    assert (checkout / ".venv/bin/python").exists()

    again = make(checkout, "install")
    assert (said(again), again.returncode) == ("", 0)

    _lock(checkout, "flask==0.0.0.1 --hash=sha256:" + 64 * "0")
    for _ in range(2):
        changed = make(checkout, "install")
        lines = said(changed).splitlines()
        assert changed.returncode != 0
        assert len(lines) == 3 and lines[-1].startswith(
            "make"
        )  # what is done, what went wrong, and make's own line
        assert "package index is out of reach" in lines[1]
        assert "install.log" in lines[1] and (checkout / ".venv/install.log").stat().st_size > 0


def _lock(checkout: Path, *lines: str) -> None:
    (checkout / "locks/requirements.txt").write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.slow
def test_a_machine_without_network_takes_wheels_that_were_tested_and_no_others(
    installed: tuple[Path, list[str]],
) -> None:
    checkout, _ = installed
    wheel = checkout / "wheelhouse" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    about = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", about)
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    _lock(checkout, "tiny==1.0 --hash=sha256:" + 64 * "0")
    refused = make(checkout, "install")
    assert "not the one that was tested" in said(refused)
    assert refused.returncode != 0

    _lock(checkout, "tiny==1.0 --hash=sha256:" + sha256(wheel.read_bytes()).hexdigest())
    taken = make(checkout, "install")
    assert "from wheelhouse" in said(taken)
    assert taken.returncode == 0
    python = checkout / ".venv/bin/python"
    assert subprocess.call([str(python), "-c", "import tiny"]) == 0

    wheel.unlink()
    _lock(checkout, "other==1.0 --hash=sha256:" + 64 * "0")
    assert "has no other==1.0 for this system" in said(make(checkout, "install"))


def test_a_missing_python_is_named(checkout: Path) -> None:
    process = make(checkout, "PYTHON=python-that-is-not-there", "install")
    assert "there is no 'python-that-is-not-there'" in said(process)
    assert process.returncode != 0
