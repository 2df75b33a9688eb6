"""Fetches what an issuer publishes, and exchanges codes there: bounded in time and size, over TLS,
never following a redirect.
"""

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from common.loopback import is_safe_address

_TIMEOUT_S = 5.0  # for a whole document
_MOST_BYTES = 262_144


class IssuerFailure(Exception):
    """The issuer does not give what it is asked for; the message says why, for the log."""


class IssuerRefusal(IssuerFailure):
    """The issuer answers, and refuses what it was asked for."""


def metadata_of(issuer: str) -> dict[str, Any]:
    """Return the issuer's metadata, as OpenID Connect or OAuth publish them.

    Raises:
        IssuerFailure: there are none, or they are another issuer's.
    """
    parts = urlsplit(issuer)
    openid = issuer.rstrip("/") + "/.well-known/openid-configuration"
    own = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server"
    try:
        metadata = document_at(openid)
    except IssuerFailure:
        metadata = document_at(own + parts.path.rstrip("/"))

    if metadata.get("issuer") != issuer:
        raise IssuerFailure(f"its metadata name another issuer: {metadata.get('issuer')!r:.200}")

    return metadata


def address_in(metadata: Mapping[str, Any], name: str) -> str:
    """Return the address that the metadata have under this name.

    Raises:
        IssuerFailure: there is none, or it is not safe.
    """
    url = metadata.get(name)
    if not isinstance(url, str) or not is_safe_address(url):
        raise IssuerFailure(f"its metadata name no https:// address as {name}")

    return url


def document_at(url: str) -> dict[str, Any]:
    """Return the JSON object at the address.

    Raises:
        IssuerFailure: there is none, or it is too long, or takes too long.
    """
    return _object("GET", url)


def posted_form(
    url: str, form: Mapping[str, str], credentials: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object by which the address answers a form.

    Args:
        credentials: the credentials of the client, for HTTP's Basic scheme; None: they are in the
            form, or there are none.

    Raises:
        IssuerRefusal: it refuses the form.
        IssuerFailure: the same as for `document_at`.
    """
    return _object("POST", url, data=dict(form), auth=credentials)


def _object(method: str, url: str, **options: Any) -> dict[str, Any]:
    import httpx2  # noqa: PLC0415 - only services with an issuer need it

    try:
        document = json.loads(_fetch(httpx2, method, url, options))
    # Whatever a client library or a parser raises: its name tells what happened.
    except IssuerFailure:
        raise
    except Exception as error:
        raise IssuerFailure(f"{url}: {type(error).__name__}") from error

    if not isinstance(document, dict):
        raise IssuerFailure(f"{url}: it is no JSON object")

    return document


def _fetch(http: Any, method: str, url: str, options: Mapping[str, Any]) -> bytes:
    ends_at = time.monotonic() + _TIMEOUT_S
    content = bytearray()
    with (
        http.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client,
        client.stream(method, url, headers={"Accept": "application/json"}, **options) as response,
    ):
        if 400 <= response.status_code < 500:
            raise IssuerRefusal(f"{url}: status {response.status_code}")
        if response.status_code != 200:
            raise IssuerFailure(f"{url}: status {response.status_code}")

        for part in response.iter_bytes(8192):
            content += part
            if len(content) > _MOST_BYTES:
                raise IssuerFailure(f"{url}: more than {_MOST_BYTES} bytes")
            if time.monotonic() > ends_at:
                raise IssuerFailure(f"{url}: it takes more than {_TIMEOUT_S:g} s")

    return bytes(content)
