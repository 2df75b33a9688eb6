"""How names are written in SQL."""

import re
from functools import lru_cache

import postgast

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_UNITS_OF_TIME = frozenset(("day", "hour", "minute", "month", "second", "year"))  # unreserved, but no label without AS
_WORDS_THAT_NAME = (0, 1)  # kinds of keywords that can name tables, columns and aliases as they are: none, unreserved


@lru_cache(maxsize=16384)
def quoted(name: str) -> str:
    """`name` as SQL takes it for the very same name, in quotes only when it needs them."""
    is_plain = _PLAIN.fullmatch(name) and name not in _UNITS_OF_TIME
    if is_plain and postgast.scan(name).tokens[0].keyword_kind in _WORDS_THAT_NAME:
        return name
    return '"' + name.replace('"', '""') + '"'
