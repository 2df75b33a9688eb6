"""Checks the opening handshake of a WebSocket (RFC 6455, section 4) and answers it."""

from collections.abc import Sequence

from flask import Request
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from common.errors import InvalidRequest, UpgradeRequired
from common.text import Text

SUBPROTOCOL = "citu.chat"
"""What the service speaks. Browsers that name subprotocols, as those that send a key do, want one
of them accepted.
"""

_KIND = frozenset(
    {"Connection", "Upgrade", "Sec-WebSocket-Version"}
)  # headers that say what a request asks for
_NO_UPGRADE = Text(
    "该地址只接受 WebSocket 握手（RFC 6455，第 13 版）：请使用 WebSocket 客户端。",
    "This address takes the handshake of a WebSocket only (RFC 6455, version 13): use a "
    "WebSocket client.",
)
_WITH_BODY = Text("WebSocket 握手不能带请求体。", "The handshake of a WebSocket has no body.")


def shake_hands(request: Request) -> dict[str, str]:
    """Return the headers of the answer 101 to a handshake.

    Raises:
        UpgradeRequired: the request asks for no WebSocket, or for another version of it.
        InvalidRequest: the handshake is not valid; says why.
    """
    if request.content_length or request.headers.get("Transfer-Encoding"):
        raise InvalidRequest(_WITH_BODY)

    server = ServerProtocol(select_subprotocol=_select_protocol)
    protocol = request.environ.get("SERVER_PROTOCOL", "")
    answer = server.accept(
        Handshake("/", Headers(request.headers.items()), request.method, protocol)
    )
    if answer.status_code == 101:
        del answer.headers["Date"]  # servers add their own
        return dict(answer.headers.raw_items())

    if _is_of_another_kind(server.handshake_exc):
        raise UpgradeRequired(_NO_UPGRADE)

    why = str(server.handshake_exc)
    raise InvalidRequest(
        Text(f"WebSocket 握手无效：{why}。", f"The handshake of the WebSocket is not valid: {why}.")
    )


def _select_protocol(_server: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    if SUBPROTOCOL in offered:
        return Subprotocol(SUBPROTOCOL)

    return None


def _is_of_another_kind(refusal: Exception | None) -> bool:
    return isinstance(refusal, InvalidHeader) and refusal.name in _KIND
