"""What users, groups and values of attributes may be called, wherever they come from."""

import re

MOST_NAME_CHARS = 256
_UNPRINTABLE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")


def is_name(text: str) -> bool:
    """Tell whether the text is 1 to 256 printable characters, of which one is no blank."""
    has_length = bool(text.strip()) and len(text) <= MOST_NAME_CHARS
    return has_length and not _UNPRINTABLE.search(text)
