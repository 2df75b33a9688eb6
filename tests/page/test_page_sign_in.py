"""Signing in on the page, at an issuer, and signing out."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import alone, shared_data_dir
from tests.page.browsing import (
    RANKING,
    ask,
    axe_violations,
    expect_state,
    load_axe,
    opened,
)
from tests.support.live import free_port, serving
from tests.support.token_issuer import AUDIENCE, TokenIssuer, issuing


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with issuing() as running:
        yield running


@pytest.fixture(scope="module")
def address(
    issuer: TokenIssuer,
    imports: None,
    demo_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The address of a service whose people sign in at the issuer."""
    folder, port = tmp_path_factory.mktemp("signing_in"), free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {
        "PORT": str(port),
        "PUBLIC_URL": address,
        "OAUTH_ISSUER": issuer.url,
        "OAUTH_AUDIENCE": AUDIENCE,
        "OIDC_CLIENT_ID": issuer.client[0],
        "DATA_DIR": str(shared_data_dir()),
        "AUDIT_LOG": str(folder / "audit.jsonl"),
        "API_KEYS_FILE": str(folder / "keys.json"),
    }
    with ExitStack() as stack:
        with alone():
            stack.enter_context(serving(folder / "log", model=None, **settings))
        yield address


@pytest.fixture
def page(browser: Browser, address: str, issuer: TokenIssuer) -> Iterator[Page]:
    with opened(browser, address, also=issuer.url) as page:
        yield page
    issuer.person, issuer.refuses = {"sub": "ann"}, ""


def _press_tab_until(page: Page, wanted: Locator) -> None:
    expect(wanted).to_be_visible()
    for _ in range(60):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("it is not reached by the keyboard")


def test_a_question_is_answered_once_its_reader_has_signed_in(
    page: Page, issuer: TokenIssuer
) -> None:
    issuer.person = {"sub": "<b>王芳</b>", "groups": ["sales"]}
    expect(page.locator("#examples")).to_contain_text("登录后")
    ask(page, RANKING)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("请登录")
    expect(dialog.get_by_label("API 密钥", exact=True)).to_be_visible()
    load_axe(page)
    assert axe_violations(page) == []
    sign_in = dialog.get_by_role("button", name="登录", exact=True)
    _press_tab_until(page, sign_in)
    page.keyboard.press("Enter")

    expect(page.locator(".turn")).to_have_count(1)
    expect_state(page.locator(".turn"), "done")
    assert page.evaluate("document.cookie") == "", "scripts can't read the session"
    _press_tab_until(page, page.locator("#settings > summary"))
    page.keyboard.press("Enter")
    expect(page.locator("#key-row")).to_contain_text("已登录： <b>王芳</b>")

    _press_tab_until(page, page.get_by_role("button", name="退出"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{issuer.url}/logout*")
    page.go_back()
    page.reload()
    expect(page.locator("#examples")).to_contain_text("登录后")
    expect(page.locator(".turn")).to_have_count(0)


@pytest.mark.slow
def test_why_nobody_is_signed_in_is_said(page: Page, issuer: TokenIssuer) -> None:
    issuer.refuses = "access_denied"
    page.get_by_role("button", name="登录").click()
    page.get_by_role("dialog").get_by_role("button", name="登录", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("没有获得许可")
    assert page.url.endswith("/"), "and not again after a reload"
    ask(page, RANKING)
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("没有获得许可")
