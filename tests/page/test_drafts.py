"""A drafted transformation on the page: its questions, its evidence and its files."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page.browsing import ask, axe_violations, load_axe, opened

DEADLINE_MS = 60_000


def _waits(turn: Locator) -> None:
    expect(turn).to_have_attribute("data-state", "waiting", timeout=DEADLINE_MS)


def _choose_agent(page: Page, agent: str) -> None:
    page.locator("#settings > summary").click()
    page.locator("#agent").select_option(agent)
    page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("locale", "width", "scheme", "period"),
    [
        ("zh-CN", 1280, "light", "月"),
        pytest.param("en-GB", 390, "dark", "年", marks=pytest.mark.slow),
    ],
)
def test_a_draft_is_asked_about_judged_and_taken_along(
    browser: Browser,
    live_server: str,
    tmp_path: Path,
    locale: str,
    width: int,
    scheme: str,
    period: str,
) -> None:
    options = {
        "locale": locale,
        "color_scheme": scheme,
        "viewport": {"width": width, "height": 800},
    }
    with opened(browser, live_server, **options) as page:
        load_axe(page)
        _choose_agent(page, "etl")
        turn = ask(page, f"服务区按{period}统计服务区数，写入 areas_by_period")
        _waits(turn)
        expect(turn.locator(".asked-radio")).to_have_count(3)  # two dates, and giving up
        called = re.compile(r"service_area\.opened_on \(.+\)")
        expect(turn.locator(".asked-radio", has_text=called)).to_have_count(1)
        turn.locator(".asked-radio input").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        hidden = re.compile("visually-hidden")
        expect(turn.locator(".asked-prompt").first).not_to_have_class(hidden)
        expect(turn.locator(".plan-place, .draft-tests")).not_to_have_count(0, timeout=DEADLINE_MS)
        _waits(turn)
        assert axe_violations(page) == []
        expect(turn.locator(".draft .answer-text")).to_contain_text("areas_by_period")
        turn.locator(".asked-object summary").focus()
        page.keyboard.press("Enter")
        expect(turn.locator("textarea.code").last).to_have_value(re.compile("GROUP BY"))
        turn.locator(".asked-radio input").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        expect(turn).to_have_attribute("data-state", "done", timeout=DEADLINE_MS)
        expect(turn.locator(".draft-learnt li")).to_have_count(1)
        expect(turn.locator(".draft-status.proven")).to_be_visible()
        counted = {"zh-CN": "全部数据", "en-GB": "of all rows"}[locale]
        expect(turn.locator(".draft-list").first).to_contain_text(counted)
        expect(turn.locator(".plan-box.target:visible")).to_have_count(1)
        expect(turn.locator(".rows tbody tr")).not_to_have_count(0)
        turn.locator(".draft-files select").select_option("sql/build.sql")
        turn.locator(".draft-files button.secondary").click()
        expect(turn.locator(".draft-file pre")).to_contain_text("areas_by_period")
        with page.expect_download() as download:
            turn.locator(".draft-files button.primary").click()
        download.value.save_as(tmp_path / "draft.zip")
        assert (tmp_path / "draft.zip").read_bytes().startswith(b"PK")
        turn.locator(".draft-part").evaluate_all(
            "parts => parts.forEach((part) => part.open = true)"
        )
        assert axe_violations(page) == []
        source = {"zh-CN": "来源", "en-GB": "Source"}[locale]
        expect(turn.locator(".ledger tbody tr").first).to_contain_text(source)
        wide = page.locator(":is(html, .ledger, .plan-place)").evaluate_all(
            "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        assert wide == 0
        # What was drafted is no kind of question that the next one could go on from.
        _choose_agent(page, "ask")
        answered = ask(page, "一共有多少个服务区")
        expect(answered).to_have_attribute("data-state", "done", timeout=DEADLINE_MS)
