"""What a question was understood as, in JSON: kept with its turn, for the question that goes on from it.

A dataclass becomes an object of the fields that are not at their default; numbers and dates become text in an object
that says what they are, since operands may be text as well. What is read back is checked against the catalogue of
today: something that names a table or column which is gone is not read at all.
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
_NAMES_COLUMN = ("column", "times")  # fields that name a column of the `table` beside them


def to_json(understood: Query | Pending) -> dict[str, Any]:
    """The query, or the question that was asked back, as plain JSON values."""
    return {"version": _VERSION, _name(type(understood)): _written(understood)}


def from_json(kind: type[T], data: Mapping[str, Any], catalog: Catalog) -> T | None:
    """What `to_json` has written of that kind; None for anything else, and when the catalogue lacks what it names."""
    if data.get("version") != _VERSION or _name(kind) not in data:
        return None
    try:
        found = _read(kind, data[_name(kind)], catalog)
    except (AttributeError, TypeError, ValueError, LookupError, InvalidOperation):
        return None
    assert isinstance(found, kind)
    return found


def _name(kind: type[Query | Pending]) -> str:
    return kind.__name__.lower()


def _written(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"number": str(value)}
    if isinstance(value, datetime.date):
        return {"day": value.isoformat()}
    if isinstance(value, tuple | frozenset):
        return [_written(one) for one in (value if isinstance(value, tuple) else sorted(value))]
    if not is_dataclass(value):
        return value
    changed = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name: _written(one) for field, one in changed if one != field.default}


def _read(kind: Any, data: Any, catalog: Catalog) -> Any:
    """A value of the type `kind`.

    Raises:
        TypeError, ValueError, LookupError: it is none, or names what the catalogue lacks.
    """
    if kind == Operand:
        return _operand(data, catalog)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (one for one in arguments if one is not type(None))
        return None if data is None else _read(inner, data, catalog)
    if origin is Literal:
        return arguments[arguments.index(data)]
    if kind == tuple[str, str]:
        return catalog.by_key[(data[0], data[1])].key
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_read(one, value, catalog) for one, value in zip(arguments, data, strict=True))
    if origin in (tuple, frozenset):
        return origin(_read(arguments[0], one, catalog) for one in data)
    return _object(kind, data, catalog) if is_dataclass(kind) else _plain(kind, data)


def _object(kind: Any, data: Mapping[str, Any], catalog: Catalog) -> Any:
    hints = _hints(kind)
    found = kind(**{name: _read(hints[name], value, catalog) for name, value in data.items()})
    if getattr(found, "function", None) == "metric":
        if not any((one.table, one.name) == (found.table, found.column) for one in catalog.metrics):
            raise LookupError(kind)
        return found
    named = [getattr(found, name, None) for name in _NAMES_COLUMN if hasattr(found, "table")]
    if any(name is not None and catalog.by_key[found.table].column(name) is None for name in named):
        raise LookupError(kind)
    return found


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
    if kind is datetime.date:
        return datetime.date.fromisoformat(data["day"])
    if kind is Decimal:
        return Decimal(data["number"])
    if kind is float and isinstance(data, int | float | Decimal):
        return float(data)
    if type(data) is not kind:
        raise TypeError(kind)
    return data
