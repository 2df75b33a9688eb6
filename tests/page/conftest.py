"""A browser and a running Citu, shared by all tests of the page."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402

from tests.conftest import alone, shared_data_dir  # noqa: E402
from tests.page.browsers import BROWSERS, browser_path, flags  # noqa: E402
from tests.page.browsing import opened, start_over  # noqa: E402
from tests.support.forking import begin_imports  # noqa: E402
from tests.support.live import serving  # noqa: E402

expect.set_options(timeout=60_000)  # by default 5 s, in which a busy machine doesn't always answer


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield an installed Chromium."""
    path = browser_path()
    if path is None:
        pytest.skip(f"no Chromium is installed (looked for {', '.join(BROWSERS)})")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=flags())
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def imports() -> None:
    """Begin the imports of the service: each process would keep the others waiting for its own."""
    begin_imports()


@pytest.fixture(scope="package")
def live_server(
    imports: None, demo_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the base URL of a Citu of its own, on the embedded demo database, which is there
    already, without a model.
    """
    folder = tmp_path_factory.mktemp("live")
    files = {"AUDIT_LOG": str(folder / "audit.jsonl"), "API_KEYS_FILE": str(folder / "keys.json")}
    with ExitStack() as stack:
        with alone():
            citu = stack.enter_context(
                serving(folder / "log", model=None, DATA_DIR=str(shared_data_dir()), **files)
            )
        yield f"http://127.0.0.1:{citu.port}"


@pytest.fixture
def page(browser: Browser, live_server: str) -> Iterator[Page]:
    """Yield the page in Chinese, in a wide light window."""
    with opened(browser, live_server) as page:
        yield page


@pytest.fixture(scope="module")
def page_of_module(browser: Browser, live_server: str) -> Iterator[Page]:
    """One page for all tests of a module."""
    with opened(browser, live_server) as page:
        yield page


@pytest.fixture
def used_page(page_of_module: Page) -> Iterator[Page]:
    """Yield the module's page, in a new conversation and answered by the service again.

    Loading the page takes longer than most of what tests do with it. For tests that change nothing
    that the browser keeps.
    """
    start_over(page_of_module)
    yield page_of_module
    page_of_module.unroute_all()
