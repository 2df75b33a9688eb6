"""Writes docs/licences.md: the packages that Citu is installed with, and their licences.

Run `make licences` after a change of the lock files; a test compares the names and versions.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
LOCK = ROOT / "locks" / "requirements.txt"
_PIN = re.compile(r"^[A-Za-z0-9].*?==[^\\\n]*", re.MULTILINE)
_ABOUT = """# Licences

Citu runs on these packages, each under its own licence. The table is made by `make licences` from
what the packages say of themselves; those for other systems than Linux are left out, and so are
those of tests, linters and extras. `make sbom` writes the list of all of them for programs, in
CycloneDX's format, with the hashes of their files.

| package | version | licence |
|---|---|---|
"""


def locked() -> dict[str, str]:
    """Return the versions of the packages that this system gets, by name."""
    found = {}
    for line in _PIN.findall(LOCK.read_text("utf-8")):
        requirement = Requirement(line.strip())
        if requirement.marker is None or requirement.marker.evaluate():
            found[requirement.name] = next(iter(requirement.specifier)).version
    return found


def main() -> None:
    """Write docs/licences.md from the installed packages."""
    versions = locked()
    options = ["--from=mixed", "--format=json", "--with-system", "--packages", *versions]
    told = subprocess.run(
        [sys.executable, "-m", "piplicenses", *options], check=True, capture_output=True, text=True
    )
    rows = [
        (package["Name"], package["Version"], _short(package["License"]))
        for package in json.loads(told.stdout)
    ]
    rows.sort(key=lambda row: row[0].lower())
    PAGE.write_text(_ABOUT + "".join(f"| {' | '.join(row)} |\n" for row in rows), "utf-8")


def _short(licence: str) -> str:
    """Return the licence's name where a package gives the whole text."""
    return licence.strip().partition("\n")[0].replace("|", "/")[:80]


if __name__ == "__main__":
    main()
