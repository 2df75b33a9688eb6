"""The drawer of the semantic file: searched, and a change of it proposed and withdrawn."""

import pytest
from playwright.sync_api import Browser, expect

from tests.page.browsing import axe_violations, load_axe, opened


@pytest.mark.parametrize(
    ("locale", "width", "scheme"),
    [("zh-CN", 1280, "light"), pytest.param("en-GB", 390, "dark", marks=pytest.mark.slow)],
)
def test_the_semantic_file_is_searched_and_a_change_proposed(
    browser: Browser, live_server: str, locale: str, width: int, scheme: str
) -> None:
    words = {
        "zh-CN": ("审核", "语义文件", "建议修改", "提交建议", "撤回", "已撤回"),
        "en-GB": (
            *("Review", "Semantic file", "Propose a change", "Propose it", "Withdraw"),
            "withdrawn",
        ),
    }
    review, semantic, change, propose, withdraw, withdrawn = words[locale]
    view = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with opened(browser, live_server, locale=locale, **view) as page:
        load_axe(page)
        page.get_by_role("button", name=review).click()
        page.get_by_role("button", name=semantic).press("Enter")
        drawer = page.get_by_role("dialog")
        entries = drawer.locator(".semantic-entry")
        expect(entries.filter(has_text="service_area_overview")).to_have_count(1)
        assert axe_violations(page) == []
        drawer.get_by_role("searchbox").fill("service_area_overview")
        shown = drawer.locator(".semantic-entry:visible")
        expect(shown).to_have_count(1)
        if shown.get_attribute("open") is None:
            shown.locator("summary").click()
        shown.get_by_role("button", name=change).click()
        field = shown.locator("textarea")
        lines = field.input_value()
        assert "sql: |" in lines
        field.fill(lines.replace("sql: |", "sqll: |"))
        shown.get_by_role("button", name=propose).click()
        expect(shown.locator(".failure")).to_contain_text("sqll")
        field.fill(lines.replace("business overview", "business at a glance"))
        shown.get_by_role("button", name=propose).click()
        expect(drawer.locator(".semantic-sent")).to_be_visible()
        first = drawer.locator(".review").first
        expect(first.locator(".diff-added")).to_contain_text("business at a glance")
        expect(first).to_contain_text("knowledge.semantic apply prop_")
        assert axe_violations(page) == []
        first.get_by_role("button", name=withdraw).click()
        drawer.locator(".semantic-proposals > summary").click()
        expect(drawer.locator(".review").first).to_contain_text(withdrawn)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
