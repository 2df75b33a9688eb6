"""`make install`: once, also when asked twice at the same time, and failures in one sentence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
UNREACHABLE = "http://127.0.0.1:9/simple"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "with space 目录"
    folder.mkdir()
    for name in ("Makefile", "install.py"):
        shutil.copy(PROJECT / name, folder)
    (folder / "requirements.txt").write_text("# nothing\n")
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


def test_it_installs_once(checkout: Path) -> None:
    (checkout / ".venv/bin").mkdir(
        parents=True
    )  # an environment whose Python was removed is made again
    (checkout / ".venv/bin/python").symlink_to("/nowhere/python")
    both = [make(checkout, "install") for _ in range(2)]
    spoken = "".join(said(process) for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert spoken.count("Installing") == 1
    assert (checkout / ".venv/bin/python").exists()

    again = make(checkout, "install")
    assert (said(again), again.returncode) == ("", 0)

    (checkout / "requirements.txt").write_text("flask==0.0.0.1\n")
    for _ in range(2):
        changed = make(checkout, "install")
        lines = said(changed).splitlines()
        assert changed.returncode != 0
        assert len(lines) == 3 and lines[-1].startswith(
            "make"
        )  # what is done, what went wrong, and make's own line
        assert "package index is out of reach" in lines[1]
        assert "install.log" in lines[1] and (checkout / ".venv/install.log").stat().st_size > 0


def test_a_missing_python_is_named(checkout: Path) -> None:
    process = make(checkout, "PYTHON=python-that-is-not-there", "install")
    assert "there is no 'python-that-is-not-there'" in said(process)
    assert process.returncode != 0
