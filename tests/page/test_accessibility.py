"""axe-core finds nothing that keeps people from using the page, in light and in dark."""

import hashlib

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browsing import (
    AXE,
    RANKING,
    answer_with,
    ask,
    axe_violations,
    completed,
    expect_state,
    frame,
    load_axe,
    opened,
)
from tests.support.effort import slow_beyond


def test_axe_is_the_file_that_its_readme_names() -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() in (AXE.parent / "README.md").read_text()


@pytest.mark.parametrize("scheme", slow_beyond(1, ["light", "dark"]))
def test_axe_finds_nothing(browser: Browser, live_server: str, scheme: str) -> None:
    with opened(browser, live_server, color_scheme=scheme) as page:
        load_axe(page)
        found: dict[str, list[str]] = {}
        page.locator(".example").first.wait_for()
        page.locator("#question").press_sequentially("收")
        page.locator("#completions [role=option]").first.wait_for()
        found["completions"] = axe_violations(page)
        page.locator("#question").clear()
        found |= {"start": axe_violations(page)}
        expect_state(ask(page, RANKING), "done")
        page.locator("canvas").wait_for()
        found["answer"] = axe_violations(page)
        page.locator(".view[data-view=table]").click()
        page.locator(".about summary").click()
        page.locator(".block-tools button").first.click()
        page.locator("button[data-text-title=feedback_wrong]").click()
        page.locator("#settings summary").click()
        found["opened"] = axe_violations(page)
        page.keyboard.press("Escape")
        found |= _drawers(page)
        expect_state(ask(page, "SELECT shop_id, shop_name FROM shop LIMIT 3"), "done")
        found["two tables"] = axe_violations(page)
        expect_state(ask(page, "DELETE FROM service_area"), "failed")
        _offer(page)
        found["refused"] = axe_violations(page)
    assert found == dict.fromkeys(found, [])


def _drawers(page: Page) -> dict[str, list[str]]:
    found = {}
    for name, content in (("history", ".chat"), ("schema", ".chat"), ("reviews", ".drawer-note")):
        page.locator(f"#show-{name}").click()
        page.locator(f"#{name} {content}").first.wait_for()
        found[name] = axe_violations(page)
        if name == "schema":
            page.locator("#schema .chat-open").first.click()
            page.locator("#schema .columns").wait_for()
            found["table"] = axe_violations(page)
        page.keyboard.press("Escape")
    return found


def _offer(page: Page) -> None:
    offers = {"choices": ["甲", "乙"], "rewrites": ["丙"], "follow_ups": ["丁"]}
    answer_with(page, frame(completed(response="好", warnings=["注意"], **offers)))
    expect_state(ask(page, "?"), "done")
