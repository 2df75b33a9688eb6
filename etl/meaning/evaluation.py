"""What an expression gives for a row, as PostgreSQL computes it."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlglot import exp

from etl.meaning.exact_numbers import (
    EXACT,
    ceiling,
    cut,
    floor,
    product,
    quotient,
    rounded,
    without_sign_of_zero,
)
from etl.meaning.periods import local_time, period_of

Lookup = Callable[[exp.Column], Any]
"""Gives the value that a column has in the row."""


class NotComputable(Exception):
    """PostgreSQL would end the query with an error: a text that is no number, for example."""


def evaluate_expression(expression: exp.Expression, lookup: Lookup, time_zone: str) -> Any:
    """Compute an allowed expression (`etl.meaning.expressions`) for one row.

    Raises:
        NotComputable
    """
    return _Evaluation(lookup, time_zone).value(expression)


def same_value(left: Any, right: Any, time_zone: str) -> bool:
    """Tell whether two values that are not None are equal."""
    one, other = comparable(left, right, time_zone)
    return bool(one == other)


def comparable(left: Any, right: Any, time_zone: str) -> tuple[Any, Any]:
    """Return two values so that Python compares them as PostgreSQL does."""
    if isinstance(left, date) and isinstance(right, date):
        return _comparable_days(left, right, time_zone)
    if isinstance(left, UUID) or isinstance(right, UUID):
        return str(left), str(right)
    return left, right


def _comparable_days(left: date, right: date, time_zone: str) -> tuple[date, date]:
    if not isinstance(left, datetime) and not isinstance(right, datetime):
        return left, right
    one, other = _moment(left), _moment(right)
    if (one.tzinfo is None) == (other.tzinfo is None):
        return one, other
    return local_time(one, time_zone), local_time(other, time_zone)


def _moment(day: date) -> datetime:
    if isinstance(day, datetime):
        return day
    return datetime(day.year, day.month, day.day)


def divide(left: Any, right: Any) -> Any:
    """Divide two numbers: by 0 it is None, integers are divided as decimals."""
    if not right:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    return quotient(Decimal(left), Decimal(right))


def multiply(left: Any, right: Any) -> Any:
    """Multiply two numbers exactly, unless one is a float."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left) * float(right)
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return product(Decimal(left), Decimal(right))


def add(left: Any, right: Any) -> Any:
    """Add two numbers exactly, unless one is a float; or days to a date."""
    if isinstance(left, date):
        return left + timedelta(days=right)
    if isinstance(left, float) or isinstance(right, float):
        return float(left) + float(right)
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return EXACT.add(Decimal(left), Decimal(right))


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days
    return add(left, _negated(right))


def _negated(value: Any) -> Any:
    return without_sign_of_zero(-value) if isinstance(value, Decimal) else -value


def _remainder(left: Any, right: Any) -> Any:
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return rest if left >= 0 else -rest
    return without_sign_of_zero(EXACT.remainder(Decimal(left), Decimal(right)))


_ARITHMETIC: Mapping[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: add,
    exp.Sub: _subtract,
    exp.Mul: multiply,
    exp.Div: divide,
    exp.Mod: _remainder,
}
_ORDER: Mapping[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda left, right: bool(left == right),
    exp.NEQ: lambda left, right: bool(left != right),
    exp.GT: lambda left, right: bool(left > right),
    exp.GTE: lambda left, right: bool(left >= right),
    exp.LT: lambda left, right: bool(left < right),
    exp.LTE: lambda left, right: bool(left <= right),
}
_ONE_TEXT: Mapping[type[exp.Expr], Callable[[str], Any]] = {
    exp.Lower: str.lower,
    exp.Upper: str.upper,
    exp.Length: len,
}


class _Evaluation:
    def __init__(self, lookup: Lookup, time_zone: str) -> None:
        self._lookup = lookup
        self._time_zone = time_zone

    def value(self, node: exp.Expr) -> Any:
        if isinstance(node, exp.Column):
            return self._lookup(node)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return literal_value(node)
        if isinstance(node, exp.Paren):
            return self.value(node.this)
        lazy = self._LAZY.get(type(node))
        if lazy is not None:
            return lazy(self, node)
        return self._strict(node)

    # what decides about NULL itself

    def _and(self, node: exp.Expr) -> bool | None:
        left, right = self.value(node.this), self.value(node.expression)
        if left is False or right is False:
            return False
        if left is None or right is None:
            return None
        return True

    def _or(self, node: exp.Expr) -> bool | None:
        left, right = self.value(node.this), self.value(node.expression)
        if left is True or right is True:
            return True
        if left is None or right is None:
            return None
        return False

    def _is(self, node: exp.Expr) -> bool:
        value = self.value(node.this)
        holds = bool(value is literal_value(node.expression))
        return not holds if node.args.get("negate") else holds

    def _is_same(self, node: exp.Expr) -> bool:
        left, right = self.value(node.this), self.value(node.expression)
        if left is None or right is None:
            return left is right
        return same_value(left, right, self._time_zone)

    def _is_other(self, node: exp.Expr) -> bool:
        return not self._is_same(node)

    def _in(self, node: exp.Expr) -> bool | None:
        value = self.value(node.this)
        if value is None:
            return None
        listed = [self.value(one) for one in node.expressions]
        if any(one is not None and same_value(value, one, self._time_zone) for one in listed):
            return True
        return None if None in listed else False

    def _case(self, node: exp.Expr) -> Any:
        for branch in node.args["ifs"]:
            if self._takes(node, branch):
                return self.value(branch.args["true"])
        default = node.args.get("default")
        return None if default is None else self.value(default)

    def _takes(self, case: exp.Expr, branch: exp.Expr) -> bool:
        if case.this is None:
            return self.value(branch.this) is True
        left, right = self.value(case.this), self.value(branch.this)
        if left is None or right is None:
            return False
        return same_value(left, right, self._time_zone)

    def _coalesce(self, node: exp.Expr) -> Any:
        for one in (node.this, *node.expressions):
            value = self.value(one)
            if value is not None:
                return value
        return None

    def _nullif(self, node: exp.Expr) -> Any:
        left, right = self.value(node.this), self.value(node.expression)
        if left is None or right is None:
            return left
        return None if same_value(left, right, self._time_zone) else left

    def _known(self, nodes: Iterable[exp.Expr]) -> list[Any]:
        values = [self.value(one) for one in nodes]
        return [value for value in values if value is not None]

    def _greatest(self, node: exp.Expr) -> Any:
        return max(self._known((node.this, *node.expressions)), default=None)

    def _least(self, node: exp.Expr) -> Any:
        return min(self._known((node.this, *node.expressions)), default=None)

    def _concat(self, node: exp.Expr) -> str:
        return "".join(as_text(value) for value in self._known(node.expressions))

    _LAZY: Mapping[type[exp.Expr], Callable[["_Evaluation", exp.Expr], Any]] = {
        exp.And: _and,
        exp.Or: _or,
        exp.Is: _is,
        exp.NullSafeEQ: _is_same,
        exp.NullSafeNEQ: _is_other,
        exp.In: _in,
        exp.Case: _case,
        exp.Coalesce: _coalesce,
        exp.Nullif: _nullif,
        exp.Greatest: _greatest,
        exp.Least: _least,
        exp.Concat: _concat,
    }

    # what is NULL when one of its operands is

    def _strict(self, node: exp.Expr) -> Any:
        operands: dict[str, Any] = {}
        for name, child in node.args.items():
            is_value = isinstance(child, exp.Expr)
            if is_value and not isinstance(child, exp.DataType | exp.Var):
                operands[name] = self.value(child)
        if None in operands.values():
            return None
        return self._computed(node, operands)

    def _computed(self, node: exp.Expr, operands: Mapping[str, Any]) -> Any:
        kind = type(node)
        if kind in _ARITHMETIC:
            return _ARITHMETIC[kind](operands["this"], operands["expression"])
        if kind in _ORDER:
            left, right = operands["this"], operands["expression"]
            return _ORDER[kind](*comparable(left, right, self._time_zone))
        if kind in _ONE_TEXT:
            return _ONE_TEXT[kind](operands["this"])
        if isinstance(node, exp.Between):
            return self._between(operands)
        if isinstance(node, exp.Cast):
            return _cast(operands["this"], node.to, self._time_zone)
        if isinstance(node, exp.Extract):
            moment = self._local(operands["expression"])
            return _part(moment, node.this.name.upper())
        if isinstance(node, exp.TimestampTrunc):
            unit = node.args["unit"].name.lower()
            return _moment(period_of(self._local(operands["this"]), unit, self._time_zone))
        if isinstance(node, exp.AtTimeZone):
            return operands["this"].astimezone(ZoneInfo(operands["zone"])).replace(tzinfo=None)
        return _simple(node, operands)

    def _local(self, day: date) -> date:
        return local_time(day, self._time_zone) if isinstance(day, datetime) else day

    def _between(self, operands: Mapping[str, Any]) -> bool:
        value, low, high = operands["this"], operands["low"], operands["high"]
        is_from = _ORDER[exp.GTE](*comparable(value, low, self._time_zone))
        return is_from and _ORDER[exp.LTE](*comparable(value, high, self._time_zone))


def _simple(node: exp.Expr, operands: Mapping[str, Any]) -> Any:
    """Compute what needs nothing but its operands, none of which is None."""
    value = operands["this"]
    for kind, compute in _SIMPLE.items():
        if isinstance(node, kind):
            return compute(value, operands, node)
    raise NotComputable(type(node).__name__)


def _rounded(value: Any, operands: Mapping[str, Any], _: exp.Expr) -> Any:
    if isinstance(value, float):
        return float(Decimal(value).to_integral_value(ROUND_HALF_EVEN))
    return rounded(Decimal(value), operands.get("decimals", 0))


def _truncated(value: Any, operands: Mapping[str, Any], _: exp.Expr) -> Any:
    if isinstance(value, float):
        return float(int(value))
    return cut(Decimal(value), operands.get("decimals", 0))


def _trimmed(value: str, operands: Mapping[str, Any], node: exp.Expr) -> str:
    characters = operands.get("expression", " ")
    position = node.args.get("position")
    if position == "LEADING":
        return value.lstrip(characters)
    if position == "TRAILING":
        return value.rstrip(characters)
    return value.strip(characters)


def _left(value: str, operands: Mapping[str, Any], _: exp.Expr) -> str:
    return value[: operands["expression"]]


def _right(value: str, operands: Mapping[str, Any], _: exp.Expr) -> str:
    count = operands["expression"]
    if count == 0:
        return ""
    return value[-count:]


def _substring(value: str, operands: Mapping[str, Any], _: exp.Expr) -> str:
    start = operands.get("start", 1)
    end = len(value) + 1
    if "length" in operands:
        end = start + operands["length"]
    return value[max(start, 1) - 1 : max(end, 1) - 1]


def _like(value: str, operands: Mapping[str, Any], node: exp.Expr) -> bool:
    flags = re.DOTALL | re.IGNORECASE if isinstance(node, exp.ILike) else re.DOTALL
    holds = re.fullmatch(_pattern(operands["expression"]), value, flags) is not None
    return not holds if node.args.get("negate") else holds


def _pattern(like: str) -> str:
    """Return a regular expression for a LIKE pattern, in which a backslash escapes."""
    parts = []
    characters = iter(like)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append(_WILDCARDS.get(character) or re.escape(character))
    return "".join(parts)


_WILDCARDS = {"%": ".*", "_": "."}
_SIMPLE: Mapping[type[exp.Expr], Callable[[Any, Mapping[str, Any], exp.Expr], Any]] = {
    exp.Neg: lambda value, _operands, _node: _negated(value),
    exp.Not: lambda value, _operands, _node: not value,
    exp.Abs: lambda value, _operands, _node: abs(value),
    exp.Round: _rounded,
    exp.Trunc: _truncated,
    exp.Ceil: lambda value, _operands, _node: ceiling(Decimal(value)),
    exp.Floor: lambda value, _operands, _node: floor(Decimal(value)),
    exp.Trim: _trimmed,
    exp.Left: _left,
    exp.Right: _right,
    exp.Substring: _substring,
    exp.Replace: lambda value, operands, _node: value.replace(
        operands["expression"], operands["replacement"]
    ),
    exp.Like: _like,
    exp.ILike: _like,
    exp.DPipe: lambda value, operands, _node: as_text(value) + as_text(operands["expression"]),
}


def literal_value(node: exp.Expr) -> Any:
    """Return the value of a literal, TRUE, FALSE or NULL."""
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return node.this
    if node.is_string:
        return node.name
    return int(node.name) if node.is_int else Decimal(node.name)


def as_text(value: Any) -> str:
    """Return a value as PostgreSQL casts it to text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return _moment_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _moment_text(moment: datetime) -> str:
    text = moment.isoformat(" ")
    return text.rstrip("0") if "." in text else text


def _cast(value: Any, to: exp.DataType, time_zone: str) -> Any:
    try:
        return _CASTS[to.this](value, to, time_zone)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise NotComputable(f"{as_text(value)} AS {to.sql('postgres')}") from error


def _to_decimal(value: Any, to: exp.DataType, _: str) -> Decimal:
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    parameters = [int(parameter.name) for parameter in to.expressions]
    if not parameters:
        return number
    return rounded(number, parameters[1] if len(parameters) > 1 else 0)


def _to_integer(value: Any, _to: exp.DataType, _: str) -> int:
    if isinstance(value, float):
        return int(Decimal(value).to_integral_value(ROUND_HALF_EVEN))
    if isinstance(value, Decimal):
        return int(rounded(value, 0))
    return int(value)


_TRUE = ("t", "true", "y", "yes", "on", "1")
_FALSE = ("f", "false", "n", "no", "off", "0")


def _to_boolean(value: Any, _to: exp.DataType, _: str) -> bool:
    if not isinstance(value, str):
        return bool(value)
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(value)


def _to_date(value: Any, _to: exp.DataType, time_zone: str) -> date:
    moment = _to_moment(value, _to, time_zone)
    return moment.date()


def _to_moment(value: Any, _to: exp.DataType, time_zone: str) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, date):
        raise TypeError(value)
    return local_time(_moment(value), time_zone)


def _to_float(value: Any, _to: exp.DataType, _: str) -> float:
    return float(value)


def _to_text(value: Any, _to: exp.DataType, _: str) -> str:
    return as_text(value)


_CASTS: Mapping[Any, Callable[[Any, exp.DataType, str], Any]] = {
    exp.DataType.Type.TEXT: _to_text,
    exp.DataType.Type.DECIMAL: _to_decimal,
    exp.DataType.Type.SMALLINT: _to_integer,
    exp.DataType.Type.INT: _to_integer,
    exp.DataType.Type.BIGINT: _to_integer,
    exp.DataType.Type.DOUBLE: _to_float,
    exp.DataType.Type.BOOLEAN: _to_boolean,
    exp.DataType.Type.DATE: _to_date,
    exp.DataType.Type.TIMESTAMP: _to_moment,
}


def _part(day: date, name: str) -> Decimal:
    """Return what EXTRACT gives of a day."""
    moment = _moment(day)
    if name == "SECOND":
        return Decimal(moment.second) + Decimal(moment.microsecond) / 1_000_000
    parts = {
        "YEAR": moment.year,
        "QUARTER": (moment.month + 2) // 3,
        "MONTH": moment.month,
        "WEEK": moment.isocalendar().week,
        "DAY": moment.day,
        "HOUR": moment.hour,
        "MINUTE": moment.minute,
    }
    return Decimal(parts[name])
