"""Tells loopback addresses, which only this machine can reach, and URLs that are safe to fetch."""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach `address`; false for whatever is no IP address."""
    without_zone = address.partition("%")[0]
    try:
        parsed = ipaddress.ip_address(without_zone)
    except ValueError:
        return False

    if parsed.version == 4:
        return parsed.is_loopback

    mapped = parsed.ipv4_mapped
    if mapped is not None:
        return mapped.is_loopback

    return parsed.is_loopback


def is_safe_address(url: str) -> bool:
    """Tell whether nobody on the way can change what is fetched from there."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False

    host = parts.hostname or ""
    is_own = host == "localhost" or is_loopback(host)
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_own))
