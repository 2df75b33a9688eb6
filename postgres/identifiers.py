"""How names are written in SQL."""

import re
from collections.abc import Iterable
from functools import lru_cache

import postgast

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# Unreserved, but no label without AS.
_UNITS_OF_TIME = frozenset(("day", "hour", "minute", "month", "second", "year"))
# Kinds of keywords that can name tables, columns and aliases as they are: none, unreserved.
_WORDS_THAT_NAME = (0, 1)


@lru_cache(maxsize=16384)
def quoted(name: str) -> str:
    """Return `name` as SQL takes it for the very same name, in quotes only when it needs them."""
    if _is_plain(name):
        return name

    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def quoted_list(names: Iterable[str]) -> str:
    """Return the names as SQL lists them."""
    return ", ".join(map(quoted, names))


def _is_plain(name: str) -> bool:
    """Tell whether PostgreSQL takes the name without quotation marks, as it is."""
    if not _PLAIN.fullmatch(name) or name in _UNITS_OF_TIME:
        return False

    return postgast.scan(name).tokens[0].keyword_kind in _WORDS_THAT_NAME
