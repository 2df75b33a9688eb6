"""Measures when an installed Chromium shows the first text of the page, and what it is sent until
an answer's chart stands, with nothing kept from an earlier visit.
"""

import statistics
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.page.browsers import browser_path, flags
from tests.page.browsing import RANKING, ask, expect_state
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
        start, whole = _weight(browser, f"http://127.0.0.1:{citu.port}/")
        browser.close()
    return (
        f"first paint: median {statistics.median(found):.0f} ms, "
        f"slowest {max(found):.0f} ms (bar 350)\n"
        f"sent: {start / 1000:.0f} kB to begin with, "
        f"{whole / 1000:.0f} kB with an answer and its chart (bar 200)"
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


def _weight(browser: Browser, address: str) -> tuple[float, float]:
    """Return the bytes on the wire of the page alone, and of the page with a chart."""
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    session = context.new_cdp_session(page)
    received: list[float] = []
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    page.goto(address, wait_until="networkidle")
    start = sum(received)
    turn = ask(page, RANKING)
    expect_state(turn, "done")
    turn.locator("canvas").wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)  # until the end of the answer's stream is told too
    context.close()
    return start, sum(received)
