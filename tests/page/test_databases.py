"""The switch beside the question, where there are several databases."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.page.browsing import ask, expect_state, opened
from tests.support.live import serving

SHOP = """
CREATE TABLE customer (customer_id int PRIMARY KEY, name text);
CREATE TABLE payment (payment_id int PRIMARY KEY, price numeric);
INSERT INTO customer VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid');
INSERT INTO payment VALUES (1, 10);
"""
CLINIC = """
CREATE TABLE patient (patient_id int PRIMARY KEY, name text);
CREATE TABLE visit (visit_id int PRIMARY KEY, price numeric);
INSERT INTO patient VALUES (1, 'Kim'), (2, 'Lee');
INSERT INTO visit VALUES (1, 500);
"""


@pytest.fixture(scope="module")
def address(
    make_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page_databases")
    entries = {
        "shop": {"url": make_database(SHOP), "names": {"en": "Shop", "zh": "商店"}},
        "clinic": {"url": make_database(CLINIC)},
    }
    (folder / "databases.yaml").write_text(json.dumps({"databases": entries}), "utf-8")
    file = str(folder / "databases.yaml")
    with serving(folder / "log", model=None, DATABASES_FILE=file) as citu:
        yield f"http://127.0.0.1:{citu.port}"


def test_the_question_chooses_unless_the_user_does(browser: Browser, address: str) -> None:
    with opened(browser, address, locale="en-GB") as page:
        switch = page.get_by_label("Database")
        expect(switch.locator("option")).to_have_text(["By the question", "Shop (shop)", "clinic"])
        turn = ask(page, "how many customers are there")
        expect_state(turn, "done")
        expect(turn.locator(".sql .count")).to_have_text("shop")

        turn = ask(page, "total price")
        expect(turn.locator(".asked")).to_have_count(0)  # the conversation is about the shop
        expect_state(turn, "done")
        page.get_by_role("button", name="New chat").click()
        turn = ask(page, "total price")
        turn.locator(".asked").get_by_role("button", name="clinic").click()
        expect(turn).to_have_attribute("data-state", "done")
        expect(turn.locator(".rows")).to_contain_text("500")

        switch.select_option("clinic")
        page.get_by_role("button", name="New chat").click()
        expect(page.locator("#examples")).to_contain_text("patient")
        turn = ask(page, "total price")
        expect_state(turn, "done")
        expect(turn.locator(".sql .count")).to_have_text("clinic")
        page.reload()
        expect(page.get_by_label("Database")).to_have_value("clinic")
