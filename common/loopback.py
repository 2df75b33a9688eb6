"""Tells loopback addresses, which only this machine can reach."""

import ipaddress


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach `address`; false for whatever is no IP address."""
    without_zone = address.partition("%")[0]
    try:
        found = ipaddress.ip_address(without_zone)
    except ValueError:
        return False

    if found.version == 4:
        return found.is_loopback

    mapped = found.ipv4_mapped
    if mapped is not None:
        return mapped.is_loopback

    return found.is_loopback
