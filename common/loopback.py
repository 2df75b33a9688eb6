"""Tells loopback addresses, which only this machine can reach."""

import ipaddress


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach `address`; false for whatever is no IP address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped.is_loopback
    return found.is_loopback
