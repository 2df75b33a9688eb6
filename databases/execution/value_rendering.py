"""Turns PostgreSQL's text output into JSON-ready values.

Every value is made from PostgreSQL's own text and not by a driver: dates before Christ, after 9999
or `infinity` exist in PostgreSQL but not in Python, and a number must not lose digits.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

from postgres.arrays import parse_array

Render = Callable[[str], Any]


@dataclass(frozen=True)
class PgType:
    """A type of result columns.

    Attributes:
        element: the OID of an array's elements' type; else 0.
        delimiter: between an array's elements.
    """

    name: str
    element: int = 0
    delimiter: str = ","

    @property
    def is_structured(self) -> bool:
        """Tell whether one value of it is made of many."""
        return bool(self.element) or self.name in ("json", "jsonb")


# Python refuses to read numbers of more than 4,300 digits from JSON: clients in Python could not
# read the answer.
_MAX_NUMBER_CHARS = 4000


def _number(kind: Callable[[str], Any]) -> Render:
    """Return a function that makes numbers of texts.

    NaN, infinities and very long numbers stay text, because JSON or its readers don't take them.
    """

    def render(text: str) -> Any:
        is_no_number = text.lstrip("-") in ("NaN", "Infinity")
        if is_no_number or len(text) > _MAX_NUMBER_CHARS:
            return text

        return kind(text)

    return render


_MAX_JSON_DEPTH = 100


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=_json_integer)
    except (ValueError, RecursionError):
        return text

    return value if _is_shallow(value, text) else text


def _is_shallow(value: Any, text: str) -> bool:
    """Tell whether recursive JSON writers can write it: it is at most `_MAX_JSON_DEPTH` deep."""
    if text.count("[") + text.count("{") <= _MAX_JSON_DEPTH:
        return True

    level = _containers([value])
    for _ in range(_MAX_JSON_DEPTH):
        level = _containers(chain.from_iterable(map(_members, level)))

    return not level


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _members(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    if isinstance(container, dict):
        return container.values()

    return container


def _json_integer(text: str) -> int:
    if len(text) > _MAX_NUMBER_CHARS:
        raise ValueError("as it is too long to be read again, the JSON around it stays text")

    return int(text)


def _boolean(text: str) -> bool:
    return text == "t"


def _timestamp(text: str) -> str:
    return text.replace(" ", "T", 1) if text[0].isdigit() else text


_SHORT_OFFSET = re.compile(r"([+-]\d\d)(?=( BC)?$)")


def _timestamp_tz(text: str) -> str:
    return _SHORT_OFFSET.sub(r"\1:00", _timestamp(text))


def _time_tz(text: str) -> str:
    return _SHORT_OFFSET.sub(r"\1:00", text)


_INTERVAL = re.compile(
    r"\A(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?"
    r"(?:([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?"
)


def _interval(text: str) -> str:
    """Write ISO 8601 for the style `postgres`: `P1Y-2DT3H4M5S` for `1 year -2 days +03:04:05`."""
    match = _INTERVAL.fullmatch(text)
    if match is None:  # infinity
        return text

    years, months, days, sign, hours, minutes, seconds = match.groups(default="0")
    minus = "-" if sign == "-" else ""
    date = _parts("", ((years, "Y"), (months, "M"), (days, "D")))
    time = _parts(minus, ((hours, "H"), (minutes, "M"), (seconds, "S")))
    if time:
        return f"P{date}T{time}"

    return f"P{date}" if date else "PT0S"


def _parts(minus: str, parts: Sequence[tuple[str, str]]) -> str:
    """Write numbers with their units; zeros are left out."""
    written: list[str] = []
    for number, unit in parts:
        plain = _plain(number)
        if plain != "0":
            written.append(f"{minus}{plain}{unit}")

    return "".join(written)


def _plain(number: str) -> str:
    """Return the number without a plus sign, leading zeros or an empty fraction."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    if fraction:
        digits = f"{digits}.{fraction}"

    is_negative = number.startswith("-") and digits != "0"
    return f"-{digits}" if is_negative else digits


# The common types of PostgreSQL's core: OID → name. Their OIDs never change.
_CORE = {
    16: "bool", 17: "bytea", 18: "char", 19: "name", 20: "int8", 21: "int2", 23: "int4",
    25: "text", 26: "oid", 114: "json", 142: "xml", 700: "float4", 701: "float8", 790: "money",
    1042: "bpchar", 1043: "varchar", 1082: "date", 1083: "time", 1114: "timestamp",
    1184: "timestamptz", 1186: "interval", 1266: "timetz", 1700: "numeric", 2950: "uuid",
    3802: "jsonb",
}  # fmt: skip
_CORE_ARRAYS = {
    1000: 16, 1001: 17, 1005: 21, 1007: 23, 1009: 25, 1014: 1042, 1015: 1043, 1016: 20,
    1021: 700, 1022: 701, 1115: 1114, 1182: 1082, 1185: 1184, 1231: 1700, 2951: 2950,
    3807: 3802, 199: 114,
}  # fmt: skip
CORE_TYPES: Mapping[int, PgType] = {
    **{oid: PgType(name) for oid, name in _CORE.items()},
    **{oid: PgType(f"_{_CORE[element]}", element) for oid, element in _CORE_ARRAYS.items()},
}

_RENDERERS: Mapping[str, Render] = {
    "bool": _boolean,
    "int2": int,
    "int4": int,
    "int8": int,
    "oid": int,
    "numeric": _number(Decimal),
    "float4": _number(float),
    "float8": _number(float),
    "json": _json,
    "jsonb": _json,
    "timestamp": _timestamp,
    "timestamptz": _timestamp_tz,
    "timetz": _time_tz,
    "interval": _interval,
}


def renderer(oid: int, types: Mapping[int, PgType]) -> Render:
    """Return the function from text to value for columns of type `oid`; `types` must hold it and
    its element types.
    """
    pg_type = types[oid]
    if pg_type.element:
        element = renderer(pg_type.element, types)
        return lambda text: parse_array(text, element, pg_type.delimiter)

    return _RENDERERS.get(pg_type.name, as_is)


def as_is(text: str) -> str:
    """Return the renderer of types whose values stay text."""
    return text
