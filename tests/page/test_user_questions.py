"""A run that asks its reader something: shown, answered, found again after a reload."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page.browsing import ask, expect_state, opened, port_of
from tests.support.http_stream import get_json
from tests.support.live import GAUGES, eventually, serving
from tests.support.survey.survey_flow import SURVEY

DEADLINE_MS = 30_000


@pytest.fixture(scope="module")
def survey_url(
    make_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Citu with the survey flow beside its own."""
    folder: Path = tmp_path_factory.mktemp("survey")
    with serving(
        folder / "log",
        model=None,
        program="tests/support/survey/serve.py",
        DATABASE_URL=make_database(GAUGES),
    ) as citu:
        yield f"http://127.0.0.1:{citu.port}"


def surveyed(page: Page) -> Locator:
    """The turn of a survey that has been begun; the page itself names no flow."""

    def name_the_flow(route: Route) -> None:
        body = json.loads(route.request.post_data or "")
        route.continue_(post_data={**body, "agent": "survey"})

    page.route("**/api/v0/ask_agent_stream", name_the_flow)
    return ask(page, SURVEY)


def is_waiting(turn: Locator) -> None:
    expect(turn).to_have_attribute("data-state", "waiting", timeout=DEADLINE_MS)


@pytest.mark.parametrize(
    ("locale", "said"), [("zh-CN", "等待您的回答"), ("en-GB", "Waiting for your answer")]
)
def test_choices_are_buttons_and_a_schema_is_a_field(
    browser: Browser, survey_url: str, locale: str, said: str
) -> None:
    with opened(browser, survey_url, locale=locale) as page:
        turn = surveyed(page)
        is_waiting(turn)
        expect(turn.locator(".steps-state")).to_have_text(said)
        expect(turn.locator(".asked-prompt")).to_have_text("Which column?")
        expect(turn.locator(".asked-choices button")).to_have_text(["n", "name"])
        turn.get_by_role("button", name="name", exact=True).click()

        field = turn.locator(".asked-field")
        expect(field).to_be_visible(timeout=DEADLINE_MS)
        field.fill("9")
        field.press("Enter")
        expect(turn.locator(".asked-failure")).to_contain_text("9")
        expect(field).to_be_focused()
        field.fill("2")
        field.press("Enter")

        expect(turn.locator(".answer")).to_have_text("gauge 1, gauge 2", timeout=DEADLINE_MS)
        expect_state(turn, "done")
        expect(turn.locator(".asked-answer")).to_have_text(["name", "2"])
        expect(turn.locator(".asked").last).to_be_focused()
        expect(turn.locator(".asked button, .asked input")).to_have_count(0)


def test_a_reload_finds_the_open_question(browser: Browser, survey_url: str) -> None:
    with opened(browser, survey_url) as page:
        is_waiting(surveyed(page))
        page.reload()
        turn = page.locator(".turn")
        is_waiting(turn)
        turn.get_by_role("button", name="n", exact=True).click()
        expect(turn.locator(".asked-field")).to_be_visible(timeout=DEADLINE_MS)
        page.reload()
        is_waiting(page.locator(".turn"))
        expect(turn.locator(".asked")).to_have_count(2)
        expect(turn.locator(".asked-choices")).to_have_count(0)
        turn.locator(".asked-field").fill("1")
        turn.locator(".asked-form button").click()
        expect(turn.locator(".answer")).to_have_text("1", timeout=DEADLINE_MS)


def test_what_another_tab_has_answered_goes_on(browser: Browser, survey_url: str) -> None:
    with opened(browser, survey_url) as page:
        turn = surveyed(page)
        is_waiting(turn)
        page.evaluate(
            """async (runId) => {
                const run = await (await fetch(`/api/v0/runs/${runId}`)).json();
                const {interrupt_id} = run.data.waiting_for;
                const body = JSON.stringify({interrupt_id, answer: "n"});
                const headers = {"Content-Type": "application/json"};
                await fetch(`/api/v0/runs/${runId}/resume`, {method: "POST", headers, body});
            }""",
            turn.get_attribute("data-run"),
        )
        turn.get_by_role("button", name="name", exact=True).click()
        expect(turn.locator(".asked-prompt").last).to_have_text(
            "How many of n?", timeout=DEADLINE_MS
        )


def test_who_stops_ends_the_run_that_waits(browser: Browser, survey_url: str) -> None:
    with opened(browser, survey_url) as page:
        turn = surveyed(page)
        is_waiting(turn)
        page.locator("#stop").click()
        expect_state(turn, "stopped")
        expect(turn.locator(".asked button")).to_have_count(0)
        run_id = turn.get_attribute("data-run")
        eventually(
            lambda: (
                get_json(port_of(survey_url), f"/api/v0/runs/{run_id}")[1]["data"]["state"]
                == "cancelled"
            )
        )
