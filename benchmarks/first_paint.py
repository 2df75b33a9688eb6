"""Measures when an installed Chromium shows the first text of the page, with nothing kept from an
earlier visit.
"""

import statistics
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.page.browsers import browser_path, flags
from tests.support.live import serving_afresh

_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def run(data_dir: Path, *, visits: int = 10) -> str:
    """Return the finding as a person reads it; without a Chromium, that there is none."""
    program = browser_path()
    if program is None:
        return "no Chromium is installed: nothing was measured"
    with (
        serving_afresh(data_dir / "first_paint.log", DATA_DIR=str(data_dir)) as citu,
        sync_playwright() as engines,
    ):
        browser = engines.chromium.launch(executable_path=program, args=flags())
        found = [_visit(browser, f"http://127.0.0.1:{citu.port}/") for _ in range(visits)]
        browser.close()
    return (
        f"first paint: median {statistics.median(found):.0f} ms, "
        f"slowest {max(found):.0f} ms (bar 500)"
    )


def _visit(browser: Browser, address: str) -> float:
    """Return milliseconds from the request to the first text."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_function(f"{_PAINTED.removesuffix('.startTime')} !== undefined")
    painted = float(page.evaluate(_PAINTED))
    context.close()
    return painted
