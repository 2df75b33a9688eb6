"""The kinds of values that PostgreSQL's types hold, as far as transformations compute with them."""

import re
from typing import Literal

ValueKind = Literal[
    "integer", "numeric", "float", "text", "boolean", "date", "timestamp", "timestamptz", "other"
]

_KINDS: dict[str, ValueKind] = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "numeric": "numeric",
    "real": "float",
    "double precision": "float",
    "text": "text",
    "character varying": "text",
    "varchar": "text",
    "character": "text",
    "citext": "text",
    "name": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp without time zone": "timestamp",
    "timestamptz": "timestamptz",
    "timestamp with time zone": "timestamptz",
}
NUMBERS: frozenset[ValueKind] = frozenset(("integer", "numeric", "float"))
MOMENTS: frozenset[ValueKind] = frozenset(("timestamp", "timestamptz"))
DAYS: frozenset[ValueKind] = MOMENTS | {"date"}
_MODIFIER = re.compile(r"\(\s*\d+(?:\s*,\s*-?\d+)?\s*\)")


def kind_of_type(type_: str) -> ValueKind:
    """Return the kind of a type in PostgreSQL's own spelling, `numeric(12,2)` for example."""
    return _KINDS.get(_MODIFIER.sub("", type_).strip(), "other")


def bare_type(type_: str) -> str:
    """Return the type without its length or precision."""
    return _MODIFIER.sub("", type_).strip()
