"""Writes docs/licences.md: the packages that Citu is installed with, and their licences.

Run `make licences` after a change of the lock files; a test compares the names and versions. The
page is the same whichever Python makes it: of packages that only others need, it keeps what it has.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
LOCK = ROOT / "locks" / "requirements.txt"
_PIN = re.compile(r"^[A-Za-z0-9].*?==[^\\\n]*", re.MULTILINE)
_ROW = re.compile(r"^\| (\S+) \| (\d\S*) \| (.+) \|$", re.MULTILINE)
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_ABOUT = """# Licences

Citu runs on these packages, each under its own licence. The table is made by `make licences` from
what the packages say of themselves, for Linux and Python 3.11 and later: where versions of Python
take different packages, it has all of them. Those of tests, linters and extras are left out.
`make sbom` writes the list of all packages for programs, in CycloneDX's format, with the hashes of
their files.

| package | version | licence |
|---|---|---|
"""

Package = tuple[str, str]
"""Canonical name and version."""


def locked() -> set[Package]:
    """Return the packages that are installed on Linux by any version of Python."""
    found = set()
    for line in _PIN.findall(LOCK.read_text("utf-8")):
        requirement = Requirement(line.strip())
        version = next(iter(requirement.specifier)).version
        if any(_is_taken(requirement, python) for python in _PYTHONS):
            found.add((str(canonicalize_name(requirement.name)), version))

    return found


def _is_taken(requirement: Requirement, python: str) -> bool:
    if requirement.marker is None:
        return True

    linux: Mapping[str, str] = {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": python,
        "python_full_version": f"{python}.99",
    }
    return requirement.marker.evaluate({**default_environment(), **linux})


def shown() -> dict[Package, tuple[str, str, str]]:
    """Return the rows of the page as it is."""
    rows = _ROW.findall(PAGE.read_text("utf-8"))
    return {_package(name, version): (name, version, text) for name, version, text in rows}


def _package(name: str, version: str) -> Package:
    return str(canonicalize_name(name)), version


def installed(names: set[str]) -> dict[Package, tuple[str, str, str]]:
    """Return a row for each of these packages that is installed."""
    options = ["--from=mixed", "--format=json", "--with-system", "--packages", *sorted(names)]
    told = subprocess.run(
        [sys.executable, "-m", "piplicenses", *options], check=True, capture_output=True, text=True
    )
    return {
        _package(one["Name"], one["Version"]): (
            one["Name"],
            one["Version"],
            _short(one["License"]),
        )
        for one in json.loads(told.stdout)
    }


def main() -> None:
    """Write docs/licences.md from the installed packages."""
    wanted = locked()
    rows = {**shown(), **installed({name for name, _ in wanted})}
    listed = sorted(rows[package] for package in wanted & rows.keys())
    listed.sort(key=lambda row: row[0].lower())
    PAGE.write_text(_ABOUT + "".join(f"| {' | '.join(row)} |\n" for row in listed), "utf-8")
    missing = wanted - rows.keys()
    if missing:
        names = ", ".join(f"{name} {version}" for name, version in sorted(missing))
        sys.exit(f"Not installed here: {names}. Run this with another Python, too.")


def _short(licence: str) -> str:
    """Return the licence's name where a package gives the whole text."""
    return licence.strip().partition("\n")[0].replace("|", "/")[:80]


if __name__ == "__main__":
    main()
