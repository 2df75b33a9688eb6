"""Tells loopback addresses, which only this machine can reach."""

import ipaddress


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach `address`; false for whatever is no IP address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
