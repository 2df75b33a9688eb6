"""Names that others have made up, as ids."""

import hashlib

from api.fields import ID


def plain_name(name: str) -> str:
    """Return the name itself where it has the form of an id, else one that is always made of it."""
    if ID.fullmatch(name):
        return name

    return f"vanna_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:40]}"
