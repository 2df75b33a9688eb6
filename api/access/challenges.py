"""What a refusal says of where access tokens are had (`WWW-Authenticate`), and the metadata that it
points to (RFC 9728).
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from flask import Request

from common.errors import InsufficientScope, Unauthorized

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# Clients take these addresses, not the whole service, for the resource that they ask for tokens of.
_RESOURCES = ("/mcp",)
_URL_CHARACTERS = ":/[]%@-._~"


@dataclass(frozen=True)
class Challenges:
    """Tell clients of one issuer.

    Attributes:
        issuer: empty: there is none, and only API keys are known.
        public_url: the address of the service as clients know it; empty: as the request names it.
    """

    issuer: str = ""
    scopes: tuple[str, ...] = ()
    public_url: str = ""

    def of(
        self, error: Unauthorized | InsufficientScope, request: Request, *, is_presented: bool
    ) -> str:
        """Return the header of the refusal `error`.

        Args:
            is_presented: the request carries a key or a token, which is refused.
        """
        if not self.issuer:
            return error.challenge

        resource = request.path if request.path in _RESOURCES else ""
        fields = {"resource_metadata": f"{self._base(request)}{WELL_KNOWN}{resource}"}
        if self.scopes:
            fields["scope"] = " ".join(self.scopes)
        if isinstance(error, InsufficientScope):
            fields["error"] = "insufficient_scope"
        elif is_presented:
            fields["error"] = "invalid_token"

        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items())

    def metadata(self, request: Request, resource: str) -> dict[str, Any] | None:
        """Return the metadata of a resource: empty for the whole service; None: there is none."""
        if not self.issuer or (resource and resource not in _RESOURCES):
            return None

        metadata: dict[str, Any] = {
            "resource": f"{self._base(request)}{resource}",
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Citu",
        }
        if self.scopes:
            metadata["scopes_supported"] = list(self.scopes)

        return metadata

    def _base(self, request: Request) -> str:
        url = self.public_url or request.host_url
        return quote(url.rstrip("/"), safe=_URL_CHARACTERS)
