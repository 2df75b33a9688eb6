"""What the page weighs on the wire, and that only text is made lighter."""

import pytest
from flask.testing import FlaskClient
from playwright.sync_api import Browser
from werkzeug.datastructures import Headers

from app_config import Settings
from tests.page.browsing import RANKING, ask, expect_state, opened
from unified_api import create_app

LIGHT, WITH_A_CHART = 140_000, 215_000  # bytes


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    return create_app(Settings()).test_client()


def _get(client: FlaskClient, path: str, **headers: str) -> tuple[int, bytes, Headers]:
    with client.get(
        path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    ) as response:
        return response.status_code, response.data, response.headers


@pytest.mark.parametrize("encoding", ["br", "gzip"])
def test_text_is_sent_compressed_and_not_again_while_it_is_the_same(
    client: FlaskClient, encoding: str
) -> None:
    for path in ("/", "/static/page.css", "/static/main.js", "/openapi.json"):
        _, whole, plain = _get(client, path)
        _, small, headers = _get(client, path, Accept_Encoding=encoding)
        assert headers["Content-Encoding"] == encoding
        assert len(small) < 0.6 * len(whole), path
        assert "Content-Encoding" not in plain
        assert "Accept-Encoding" in plain["Vary"]
        assert _get(client, path, Accept_Encoding=encoding, If_None_Match=headers["ETag"])[0] == 304


def test_a_part_of_a_file_and_what_the_api_says_stay_as_they_are(client: FlaskClient) -> None:
    status, part, headers = _get(client, "/static/main.js", Accept_Encoding="br", Range="bytes=0-9")
    assert (status, len(part)) == (206, 10)
    assert "Content-Encoding" not in headers
    assert "Content-Encoding" not in _get(client, "/api/v0/nothing", Accept_Encoding="br, gzip")[2]


def test_the_page_is_light_and_a_chart_is_paid_for_when_it_is_drawn(
    browser: Browser, live_server: str
) -> None:
    with opened(browser, live_server) as page:
        session = page.context.new_cdp_session(page)
        received: list[float] = []
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        session.on(
            "Network.loadingFinished", lambda event: received.append(event["encodedDataLength"])
        )
        page.reload(wait_until="networkidle")
        assert 0 < sum(received) < LIGHT
        turn = ask(page, RANKING)
        expect_state(turn, "done")
        turn.locator("canvas").wait_for()
        page.wait_for_load_state("networkidle")
        assert sum(received) < WITH_A_CHART
