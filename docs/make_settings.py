"""Writes the settings of app_config.py into the tables of configuration.md and into .env.example.

Run `python docs/make_settings.py` after a change of them; a test compares.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app_config import SECTIONS, Settings  # noqa: E402 - the path is set above

PAGE = ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / ".env.example"
_TABLE = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- end of settings -->)", re.DOTALL)
_ABOUT = (
    "# Copy to .env and fill in what you need; an empty value means the default. "
    "docs/configuration.md explains each line.\n"
)


def page() -> str:
    """Return configuration.md with its tables made anew, one for each section in their order."""
    tables = iter(_tables())
    return _TABLE.sub(lambda _: next(tables), PAGE.read_text("utf-8"))


def example() -> str:
    """Return .env.example: every setting, empty, under the headings of configuration.md."""
    lines = [_ABOUT]
    for declared in fields(Settings):
        if declared.name in SECTIONS:
            lines.append(f"\n# {SECTIONS[declared.name]}\n")
        lines.append(f"{declared.name.upper()}=\n")
    return "".join(lines)


def _tables() -> Iterator[str]:
    rows: list[str] = []
    for declared in fields(Settings):
        if declared.name in SECTIONS and rows:
            yield _table(rows)
            rows = []
        rows.append(_row(declared))
    yield _table(rows)


def _table(rows: list[str]) -> str:
    return "| setting | default | meaning |\n|---|---|---|\n" + "".join(rows)


def _row(declared: "Field[Any]") -> str:
    meaning = declared.metadata["meaning"]
    return f"| `{declared.name.upper()}` | {_shown(declared.default)} | {meaning} |\n"


def _shown(default: object) -> str:
    if default == "":
        return "*(empty)*"
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    EXAMPLE.write_text(example(), "utf-8")
