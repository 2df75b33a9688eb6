"""Writes the settings of app_config.py into the tables of configuration.md, in both languages, and
into .env.example.

Run `python docs/make_settings.py` after a change of them; a test compares.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app_config import SECTIONS, Settings  # noqa: E402 - the path is set above

PAGE = ROOT / "docs" / "configuration.md"
PAGE_ZH = ROOT / "docs" / "zh" / "configuration.md"
MEANINGS_ZH = ROOT / "docs" / "zh" / "settings.toml"
EXAMPLE = ROOT / ".env.example"
_HEAD, _HEAD_ZH = "| setting | default | meaning |", "| 设置 | 默认值 | 含义 |"
_EMPTY, _EMPTY_ZH = "*(empty)*", "*（空）*"
_TABLE = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- end of settings -->)", re.DOTALL)
_ABOUT = (
    "# Copy to .env and fill in what you need; an empty value means the default. "
    "docs/configuration.md explains each line.\n"
)


def page() -> str:
    """Return configuration.md with its tables made anew, one for each section in their order."""
    meanings = {field.name.upper(): field.metadata["meaning"] for field in fields(Settings)}
    tables = iter(_tables(meanings, _HEAD, _EMPTY))
    return _TABLE.sub(lambda _: next(tables), PAGE.read_text("utf-8"))


def page_in_chinese() -> str:
    """Return zh/configuration.md made in the same way; each setting needs its Chinese meaning."""
    tables = iter(_tables(meanings_in_chinese(), _HEAD_ZH, _EMPTY_ZH))
    return _TABLE.sub(lambda _: next(tables), PAGE_ZH.read_text("utf-8"))


def meanings_in_chinese() -> dict[str, str]:
    """Return the Chinese meanings by the names of the settings."""
    meanings: dict[str, str] = tomllib.loads(MEANINGS_ZH.read_text("utf-8"))["meanings"]
    return meanings


def example() -> str:
    """Return .env.example: every setting, empty, under the headings of configuration.md."""
    lines = [_ABOUT]
    for declared in fields(Settings):
        if declared.name in SECTIONS:
            lines.append(f"\n# {SECTIONS[declared.name]}\n")
        lines.append(f"{declared.name.upper()}=\n")
    return "".join(lines)


def _tables(meanings: Mapping[str, str], head: str, empty: str) -> Iterator[str]:
    begin = f"{head}\n|---|---|---|\n"
    rows: list[str] = []
    for declared in fields(Settings):
        if declared.name in SECTIONS and rows:
            yield begin + "".join(rows)
            rows = []
        name = declared.name.upper()
        rows.append(f"| `{name}` | {_shown(declared.default, empty)} | {meanings[name]} |\n")
    yield begin + "".join(rows)


def _shown(default: object, empty: str) -> str:
    if default == "":
        return empty
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    PAGE_ZH.write_text(page_in_chinese(), "utf-8")
    EXAMPLE.write_text(example(), "utf-8")
