"""A browser and a running Citu, shared by all tests of the page."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from tests.page.browsing import opened  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 60


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; no browser is downloaded."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium is installed")
    flags = ["--disable-gpu", "--disable-background-networking", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=flags)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a Citu of its own, on the embedded demo database, without a model."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("live")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"HOST": "127.0.0.1", "PORT": str(port), "DATA_DIR": str(folder / "data"), "DATABASE_URL": ""}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "unified_api.py"], cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            base_url = f"http://127.0.0.1:{port}"
            _wait_until_ready(base_url, server, folder / "log")
            yield base_url
        finally:
            server.terminate()
            server.wait(30)


def _wait_until_ready(base_url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(START_TIMEOUT_S * 5):
        try:
            with urllib.request.urlopen(f"{base_url}/ready", timeout=5):
                return
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass
        try:
            server.wait(0.2)  # returns early when the server gives up
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"the server did not become ready:\n{log.read_text()[-3000:]}")


@pytest.fixture
def page(browser: Browser, live_server: str) -> Iterator[Page]:
    """The page in Chinese, in a wide light window."""
    with opened(browser, live_server) as page:
        yield page
