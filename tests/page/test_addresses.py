"""Every conversation has an address, which a reload, a link and the browser's buttons lead to."""

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import RANKING, ask, expect_state, opened, port_of

UNKNOWN = "找不到这个对话"


def _expect_path(page: Page, path: str) -> None:
    """Waits for the path: the browser tells of a change after the click that leads to it."""
    page.wait_for_url(lambda url: urlsplit(url).path == path)


def _conversation_path(page: Page, base: str = "") -> str:
    """Waits until the address is a conversation's."""
    page.wait_for_url(f"**{base}/c/citu_*")
    return urlsplit(page.url).path


def test_a_link_opens_the_conversation_and_goes_on_in_it(page: Page, live_server: str) -> None:
    expect_state(ask(page, RANKING), "done")
    page.wait_for_url("**/c/citu_*")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".question")).to_have_text(RANKING)
    with other.expect_request("**/ask_agent_stream") as request:
        expect_state(ask(other, "一共有多少个服务区"), "done")
    body = request.value.post_data_json
    assert body is not None
    _expect_path(page, f"/c/{body['conversation_id']}")
    other.goto(live_server)
    expect(other.locator("#welcome")).to_be_visible()


def test_back_and_forth_lead_through_conversations(page: Page) -> None:
    expect_state(ask(page, RANKING), "done")
    first = _conversation_path(page)
    page.get_by_role("button", name="新对话").click()
    _expect_path(page, "/")
    expect_state(ask(page, "一共有多少个服务区"), "done")
    _conversation_path(page)
    page.go_back()
    expect(page.locator(".question")).to_have_text(RANKING)
    _expect_path(page, first)
    page.go_forward()
    expect(page.locator(".question")).to_have_text("一共有多少个服务区")


def test_an_unknown_conversation_is_said_kindly(page: Page, live_server: str) -> None:
    page.goto(f"{live_server}/c/citu_none")
    expect(page.locator("#notice")).to_contain_text(UNKNOWN)
    expect(page.locator("#welcome")).to_be_visible()
    _expect_path(page, "/")
    expect_state(ask(page, RANKING), "done")
    expect(page.locator("#notice")).to_be_hidden()


@contextmanager
def _below(prefix: str, port: int) -> Iterator[str]:
    """A proxy that serves the service on `port` below the path `prefix`; yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if not self.path.startswith(prefix + "/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            behind = http.client.HTTPConnection("127.0.0.1", port)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() != "accept-encoding"
            }
            with closing(behind):  # also where the browser has left meanwhile
                behind.request(self.command, self.path.removeprefix(prefix), body, headers)
                reply = behind.getresponse()
                content = reply.read()
                self.send_response(reply.status)
                for name in ("Content-Type", "Content-Security-Policy"):
                    self.send_header(name, reply.headers.get(name, ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = _pass_on  # noqa: N815 (named by http.server)

        def log_message(self, *_arguments: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    finally:
        server.shutdown()
        server.server_close()


def test_all_of_it_works_below_a_path(browser: Browser, live_server: str) -> None:
    with _below("/data/citu", port_of(live_server)) as base, opened(browser, base) as page:
        turn = ask(page, RANKING)
        expect_state(turn, "done")
        expect(turn.locator("canvas")).to_be_visible()
        assert _conversation_path(page, "/data/citu").startswith("/data/citu/c/citu_")
        page.reload()
        expect(page.locator(".question")).to_have_text(RANKING)
        page.get_by_role("button", name="新对话").click()
        _expect_path(page, "/data/citu/")
