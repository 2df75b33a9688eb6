"""The pictures of the page: they can be made, of every scene, and the READMEs have those of today's
layout.
"""

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.page.pictures import DOCS, LANGUAGES, NARROW, SCENES, WIDE, take
from tests.support.live import ROOT

OWN = [name for name, scene in SCENES.items() if not scene.needs_model]
SHOWN = list(zip(OWN, itertools.cycle(LANGUAGES)))  # every second scene in the other language


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height in a PNG's header."""
    header = picture.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", header[16:])
    return width, height


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lang"), SHOWN)
def test_every_scene_can_be_pictured(
    browser: Browser, live_server: str, tmp_path: Path, name: str, lang: str
) -> None:
    """In a narrow dark window, where least fits; fails on errors and on sideways scrolling."""
    look: dict[str, Any] = {"viewport": NARROW, "color_scheme": "dark"}
    take(browser, live_server, SCENES[name], lang, tmp_path / "scene.png", **look)
    assert size_of(tmp_path / "scene.png") == (NARROW["width"], NARROW["height"])


def test_the_readmes_show_the_page() -> None:
    for lang, name in DOCS.items():
        assert size_of(ROOT / "docs/images" / name) == (WIDE["width"], WIDE["height"])
        readme = ROOT / ("README.zh-CN.md" if lang == "zh" else "README.md")
        assert f"](docs/images/{name})" in readme.read_text("utf-8")
