"""Names of tables and columns in SQL, made of what people wrote."""

import re
import unicodedata
from collections.abc import Iterable

_LONGEST = 60  # bytes of a name; PostgreSQL cuts names after 63
_UNFIT = re.compile(r"[^\w]+")
_ROWS_OWN = frozenset(("ctid", "oid", "xmin", "xmax", "cmin", "cmax", "tableoid"))


def sql_name(written: str, default: str) -> str:
    """Return a name without spaces and signs; Chinese characters stay."""
    text = unicodedata.normalize("NFKC", written).strip().lower()
    name = _UNFIT.sub("_", text).strip("_")
    name = _cut_to_bytes(name).strip("_")
    if not name:
        return default
    # What begins with pg_ would be looked for among the server's own tables first.
    if name[0].isdigit() or name in _ROWS_OWN or name.startswith("pg_"):
        name = _cut_to_bytes(f"{default.rstrip('_0123456789')}_{name}")

    return name


def distinct_names(written: Iterable[str], default: str) -> list[str]:
    """Return a name for each, no two alike; those without a name are called by their number."""
    taken: set[str] = set()
    names = []
    for number, one in enumerate(written, 1):
        name = sql_name(one, f"{default}_{number}")
        names.append(untaken(name, taken))
        taken.add(names[-1])

    return names


def untaken(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number where it is taken."""
    names = set(taken)
    if name not in names:
        return name

    number = 2
    while f"{_cut_to_bytes(name, 54)}_{number}" in names:
        number += 1

    return f"{_cut_to_bytes(name, 54)}_{number}"


def is_sql_name(name: str) -> bool:
    """Tell whether callers may give a table or a column this name."""
    return bool(name) and sql_name(name, "") == name


def _cut_to_bytes(name: str, longest: int = _LONGEST) -> str:
    return name.encode()[:longest].decode(errors="ignore")
