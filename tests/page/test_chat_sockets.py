"""A browser opens the chat socket as pages do: from the service's own page, naming a key among the
subprotocols.
"""

from playwright.sync_api import Page

# Asks for the greeting; gives the subprotocol and the kind of the last frame.
ASK = """subprotocols => new Promise((done, fail) => {
    const socket = new WebSocket(`ws://${location.host}/api/vanna/v2/chat_websocket`, subprotocols);
    socket.onopen = () => socket.send(JSON.stringify({message: ""}));
    socket.onerror = () => fail(new Error("refused"));
    socket.onmessage = ({data}) => {
        const frame = JSON.parse(data);
        if (frame.type === "completion") done([socket.protocol, frame.rich.type]);
    };
})"""


def test_the_services_own_page_may_open_a_socket(page: Page) -> None:
    assert page.evaluate(ASK, []) == ["", "completion"]
    assert page.evaluate(ASK, ["citu.chat", "citu.bearer.citu_key_not_asked_for"]) == [
        "citu.chat",
        "completion",
    ]
