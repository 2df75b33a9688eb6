"""Keyboard, narrow windows and contrast."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import RANKING, ask, expect_state, opened
from tests.support.effort import slow_beyond
from tests.support.live import ROOT


def test_shift_enter_is_a_new_line_and_enter_in_an_input_method_is_not_a_question(
    page: Page,
) -> None:
    box = page.locator("#question")
    box.fill("一")
    box.press("Shift+Enter")
    box.type("二")
    expect(box).to_have_value("一\n二")
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    expect(page.locator(".turn")).to_have_count(0)
    box.fill("  \n ")
    box.press("Enter")
    expect(page.locator(".turn")).to_have_count(0)


def test_the_question_box_has_the_focus_before_and_after(page: Page) -> None:
    expect(page.locator("#question")).to_be_focused()
    expect_state(ask(page, RANKING), "done")
    expect(page.locator("#question")).to_be_focused()


def test_all_modules_are_fetched_at_once(page: Page) -> None:
    preloaded = page.locator("link[rel=modulepreload]").evaluate_all(
        "links => links.map((link) => link.href)"
    )
    modules = {module.name for module in (ROOT / "static").glob("*.js")} - {
        "main.js",
        "reference.js",
        "early.js",
        # what clients of MCP show
        "mcp_answer.js",
        # what reads Markdown is fetched with the first answer that has any
        "markdown.js",
        # what shows drafts is fetched with the first of them
        "draft_view.js",
        "draft_texts.js",
        "plan_picture.js",
        # what shows earlier turns, with the first of them
        "past_turn.js",
        # what drawers show, when they are first wanted
        "drawer_texts.js",
        "history.js",
        "reviews.js",
        "schema.js",
        "semantic.js",
        "semantic_texts.js",
        # the hint about models, after everything else
        "first_run.js",
        "files.js",
        "file_form.js",
        "files_texts.js",
        "file_upload.js",
    }
    assert {href.rpartition("/")[2] for href in preloaded} == modules


def test_everything_can_be_reached_by_keyboard(page: Page) -> None:
    expect(page.locator(".example").first).to_be_visible()
    page.locator("body").press("Tab")
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"question", "ask", "example", "quiet"} <= reached


@pytest.mark.parametrize("scheme", slow_beyond(1, ["light", "dark"]))
def test_a_narrow_window_does_not_scroll_sideways(
    browser: Browser, live_server: str, scheme: str
) -> None:
    options: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme}
    with opened(browser, live_server, **options) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        expect_state(ask(page, RANKING), "done")
        page.locator("#settings summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        box = page.locator(".settings-panel").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


@pytest.mark.slow
def test_text_has_enough_contrast_in_both_schemes(browser: Browser, live_server: str) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, live_server, color_scheme=scheme) as page:
            for text, ground in CONTRASTS:
                assert _contrast(*_colours(page, text, ground)) >= 4.5, (scheme, text, ground)


CONTRASTS = [
    *(
        (text, ground)
        for text in ("--text", "--text-soft")
        for ground in ("--page", "--surface", "--sunken")
    ),
    ("--accent", "--surface"),
    ("--accent-text", "--accent"),
    ("--bad", "--bad-soft"),
    ("--text", "--bad-soft"),
    ("--text-soft", "--bad-soft"),
    ("--caution", "--page"),
]


def _colours(page: Page, *names: str) -> list[str]:
    found: list[str] = page.evaluate(
        (
            "(names) => names.map((name) => "
            "getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
        ),
        list(names),
    )
    return found


def _contrast(first: str, second: str) -> float:
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` as WCAG 2 defines it."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
