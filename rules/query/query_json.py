"""Queries and pending questions as JSON, which is kept with their turn for a follow-up question.

A dataclass becomes an object of the fields that differ from their default. Numbers and dates become
text in an object that names their type, because operands may be text as well. Reading checks every
name against the current catalogue: a query that names a table or column which no longer exists is
not read at all.
"""

import datetime
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from common.values import Catalog
from rules.linking.moments import Period
from rules.query.pending import Pending
from rules.query.query import ColumnRef, Operand, Query

T = TypeVar("T", Query, Pending)

_VERSION = 1
_NAMES_COLUMN = ("column", "times", "less")  # fields with the name of a column of `table`


def to_json(understood: Query | Pending) -> dict[str, Any]:
    """Return the query, or the pending question, as plain JSON values."""
    return {"version": _VERSION, _name(type(understood)): _json_of(understood)}


def from_json(kind: type[T], data: Mapping[str, Any], catalog: Catalog) -> T | None:
    """Return the query or pending question that `to_json` wrote.

    None for JSON of any other shape, kind or version, and where the catalogue lacks a name in it.
    """
    if data.get("version") != _VERSION or _name(kind) not in data:
        return None

    try:
        value = _read(kind, data[_name(kind)], catalog)
    except (AttributeError, TypeError, ValueError, LookupError, InvalidOperation):
        return None

    assert isinstance(value, kind)
    return value


def _name(kind: type[Query | Pending]) -> str:
    return kind.__name__.lower()


def _json_of(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"number": str(value)}
    if isinstance(value, datetime.date):
        return {"day": value.isoformat()}
    if isinstance(value, frozenset):
        return [_json_of(one) for one in sorted(value)]
    if isinstance(value, tuple):
        return [_json_of(one) for one in value]
    if is_dataclass(value):
        return _fields_json(value)

    return value


def _fields_json(value: Any) -> dict[str, Any]:
    written_fields = {}
    for field in fields(value):
        one = getattr(value, field.name)
        if one != field.default:
            written_fields[field.name] = _json_of(one)

    return written_fields


def _read(kind: Any, data: Any, catalog: Catalog) -> Any:
    """Read a value of the type `kind`.

    Raises:
        TypeError, ValueError, LookupError: it is none, or names what the catalogue lacks.
    """
    if kind == Operand:
        return _operand(data, catalog)

    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(arguments, data, catalog)
    if origin is Literal:
        return arguments[arguments.index(data)]
    if kind == tuple[str, str]:
        return catalog.by_key[(data[0], data[1])].key
    if origin in (tuple, frozenset):
        return _sequence(origin, arguments, data, catalog)
    if is_dataclass(kind):
        return _object(kind, data, catalog)

    return _plain(kind, data)


def _optional(kinds: tuple[Any, ...], data: Any, catalog: Catalog) -> Any:
    if data is None:
        return None

    (inner,) = (kind for kind in kinds if kind is not types.NoneType)
    return _read(inner, data, catalog)


def _sequence(origin: Any, kinds: tuple[Any, ...], data: Any, catalog: Catalog) -> Any:
    is_of_fixed_length = origin is tuple and kinds[-1] is not Ellipsis
    if not is_of_fixed_length:
        return origin(_read(kinds[0], one, catalog) for one in data)

    pairs = zip(kinds, data, strict=True)
    return tuple(_read(kind, value, catalog) for kind, value in pairs)


def _object(kind: Any, data: Mapping[str, Any], catalog: Catalog) -> Any:
    hints = _hints(kind)
    found = kind(**{name: _read(hints[name], value, catalog) for name, value in data.items()})
    if getattr(found, "function", None) == "metric":
        _check_metric(found, catalog)
    elif hasattr(found, "table"):
        _check_columns(found, catalog)

    return found


def _check_metric(measure: Any, catalog: Catalog) -> None:
    named = (measure.table, measure.column)
    if named not in [(metric.table, metric.name) for metric in catalog.metrics]:
        raise LookupError(named)


def _check_columns(found: Any, catalog: Catalog) -> None:
    names = [getattr(found, field, None) for field in _NAMES_COLUMN]
    for name in names:
        if name is not None and catalog.by_key[found.table].column(name) is None:
            raise LookupError(name)


def _operand(data: Any, catalog: Catalog) -> Operand:
    if isinstance(data, str):
        return data
    if "number" in data:
        return Decimal(data["number"])

    operand: Operand = _object(ColumnRef if "column" in data else Period, data, catalog)
    return operand


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _plain(kind: Any, data: Any) -> Any:
    """Read a value that is no list and no dataclass; a `TypeError` if it is not of this type."""
    if kind is datetime.date:
        return datetime.date.fromisoformat(data["day"])
    if kind is Decimal:
        return Decimal(data["number"])
    if kind is float and isinstance(data, int | float | Decimal):
        return float(data)
    if type(data) is not kind:
        raise TypeError(kind)

    return data
