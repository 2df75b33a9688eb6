"""Ids for names that clients of other protocols and models have chosen."""

import hashlib

from api.fields import ID


def id_for(name: str) -> str:
    """Return the name if it is a valid id, else an id that is always the same for that name."""
    if ID.fullmatch(name):
        return name

    return f"vanna_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:40]}"
