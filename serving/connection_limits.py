"""Counts what the clients of each address have open, so that none of them takes all connections."""

import ipaddress
from collections import Counter
from collections.abc import Iterable

_FORWARDED = "X-FORWARDED-FOR"  # as gunicorn's parser writes names
# Providers give every customer at least so many addresses (RFC 6177).
_IPV6_PREFIX = 64


class ConnectionLimits:
    """Counts the connections and requests of each address; used by one thread.

    Args:
        most: for one address; more are refused.
        trusted_proxies: reverse proxies in front that append to `X-Forwarded-For`. If there are
            any, all connections are theirs, so requests are counted by the client that they name.
    """

    def __init__(self, most: int, trusted_proxies: int) -> None:
        self._most = most
        self._trusted_proxies = trusted_proxies
        self._open: Counter[str] = Counter()

    def peer(self, address: object) -> str:
        """Return the network that a connection counts for, by its socket's address.

        It is empty for a proxy and a Unix socket, which count for nobody.
        """
        if self._trusted_proxies or not isinstance(address, tuple):
            return ""

        return network_of(str(address[0]))

    def client(self, headers: Iterable[tuple[str, str]]) -> str:
        """Return the network that a request counts for besides its connection; empty: none."""
        if not self._trusted_proxies:
            return ""

        values = (value for name, value in headers if name == _FORWARDED)
        named = [part.strip() for part in ",".join(values).split(",")]
        if len(named) < self._trusted_proxies:
            return ""

        return network_of(named[-self._trusted_proxies])

    def enter(self, who: str) -> bool:
        """Count one more; false: it would be one too many, and is not counted."""
        if not who:
            return True
        if self._open[who] >= self._most:
            return False

        self._open[who] += 1
        return True

    def leave(self, who: str) -> None:
        if not who:
            return

        self._open[who] -= 1
        if self._open[who] <= 0:
            del self._open[who]


def network_of(address: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address, which one client owns."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address

    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)

    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
