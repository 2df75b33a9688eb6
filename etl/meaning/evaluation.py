"""Values of expressions for a row, as PostgreSQL computes them; None is NULL."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlglot import exp

from etl.meaning.calendar_periods import local_time, period_of
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

Lookup = Callable[[exp.Column], Any]
"""Gives the value that a column has in the row."""


class NotComputable(Exception):
    """PostgreSQL would end the query with an error: a text that is no number, for example."""


def evaluate_expression(expression: exp.Expression, lookup: Lookup, time_zone: str) -> Any:
    """Compute an allowed expression (`etl.meaning.row_expressions`) for one row.

    Raises:
        NotComputable
    """
    return _Evaluation(lookup, time_zone).value(expression)


def has_null(values: Iterable[Any]) -> bool:
    """Tell whether one of the values is NULL."""
    return any(value is None for value in values)


def known_values(values: Iterable[Any]) -> list[Any]:
    """Return the values that are not NULL."""
    return [value for value in values if value is not None]


def same_value(left: Any, right: Any, time_zone: str) -> bool:
    """Tell whether two values that are not None are equal."""
    first, second = comparable(left, right, time_zone)
    return bool(first == second)


def comparable(left: Any, right: Any, time_zone: str) -> tuple[Any, Any]:
    """Return two values so that Python compares them as PostgreSQL does."""
    if _is_any(UUID, left, right):
        return str(left), str(right)
    if not isinstance(left, date) or not isinstance(right, date):
        return left, right
    if not _is_any(datetime, left, right):
        return left, right

    first, second = _moment(left), _moment(right)
    if (first.tzinfo is None) == (second.tzinfo is None):
        return first, second

    return local_time(first, time_zone), local_time(second, time_zone)


def _is_any(type_: type, left: Any, right: Any) -> bool:
    return isinstance(left, type_) or isinstance(right, type_)


def _are_integers(left: Any, right: Any) -> bool:
    return isinstance(left, int) and isinstance(right, int)


def _moment(day: date) -> datetime:
    """Return a moment as it is, a day as its first moment."""
    if isinstance(day, datetime):
        return day

    return datetime(day.year, day.month, day.day)


def divide(left: Any, right: Any) -> Any:
    """Divide two numbers: by 0 it is None, integers are divided as decimals."""
    if not right:
        return None
    if _is_any(float, left, right):
        return float(left) / float(right)

    return quotient(Decimal(left), Decimal(right))


def multiply(left: Any, right: Any) -> Any:
    """Multiply two numbers exactly, unless one is a float."""
    if _is_any(float, left, right):
        return float(left) * float(right)
    if _are_integers(left, right):
        return left * right

    return product(Decimal(left), Decimal(right))


def add(left: Any, right: Any) -> Any:
    """Add two numbers exactly, unless one is a float; or days to a date."""
    if isinstance(left, date):
        return left + timedelta(days=right)
    if _is_any(float, left, right):
        return float(left) + float(right)
    if _are_integers(left, right):
        return left + right

    return EXACT.add(Decimal(left), Decimal(right))


def _subtract(left: Any, right: Any) -> Any:
    """Subtract two numbers, days from a date, or two dates, which gives their days between."""
    if isinstance(left, date) and isinstance(right, date):
        return (left - right).days

    return add(left, _negated(right))


def _negated(value: Any) -> Any:
    if isinstance(value, Decimal):
        return without_sign_of_zero(-value)

    return -value


def _remainder(left: Any, right: Any) -> Any:
    """Return what a division leaves, with the sign of the dividend; of one by 0 None."""
    if not right:
        return None
    if not _are_integers(left, right):
        return without_sign_of_zero(EXACT.remainder(Decimal(left), Decimal(right)))

    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


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
# Children of a node that are no values: the type of a cast, the unit of a period
_NO_OPERANDS = (exp.DataType, exp.Var)


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

    # operators that decide about NULL themselves

    def _decided(self, node: exp.Expr, *, by: bool) -> bool | None:
        """Return `by` where one of both sides is it, else None where one is NULL."""
        sides = (self.value(node.this), self.value(node.expression))
        if by in sides:
            return by
        if has_null(sides):
            return None

        return not by

    def _is(self, node: exp.Expr) -> bool:
        holds = self.value(node.this) is literal_value(node.expression)
        return _unless_negated(node, holds)

    def _is_same(self, node: exp.Expr) -> bool:
        """Compare values of which NULL equals NULL alone."""
        left, right = self.value(node.this), self.value(node.expression)
        if left is None or right is None:
            return left is right

        return same_value(left, right, self._time_zone)

    def _are_equal(self, left: Any, right: Any) -> bool:
        """Compare values of which NULL equals nothing."""
        if left is None or right is None:
            return False

        return same_value(left, right, self._time_zone)

    def _in(self, node: exp.Expr) -> bool | None:
        value = self.value(node.this)
        if value is None:
            return None

        listed = list(map(self.value, node.expressions))
        if any(self._are_equal(value, item) for item in listed):
            return True
        if has_null(listed):
            return None

        return False

    def _case(self, node: exp.Expr) -> Any:
        for branch in node.args["ifs"]:
            if self._takes(node, branch):
                return self.value(branch.args["true"])

        default = node.args.get("default")
        if default is None:
            return None

        return self.value(default)

    def _takes(self, case: exp.Expr, branch: exp.Expr) -> bool:
        if case.this is None:
            return self.value(branch.this) is True

        return self._are_equal(self.value(case.this), self.value(branch.this))

    def _coalesce(self, node: exp.Expr) -> Any:
        for argument in (node.this, *node.expressions):
            value = self.value(argument)
            if value is not None:
                return value

        return None

    def _nullif(self, node: exp.Expr) -> Any:
        left, right = self.value(node.this), self.value(node.expression)
        if self._are_equal(left, right):
            return None

        return left

    def _known(self, *nodes: exp.Expr) -> list[Any]:
        """Return the values that are not NULL."""
        return known_values(map(self.value, nodes))

    _LAZY: Mapping[type[exp.Expr], Callable[["_Evaluation", exp.Expr], Any]] = {
        exp.And: lambda evaluation, node: evaluation._decided(node, by=False),
        exp.Or: lambda evaluation, node: evaluation._decided(node, by=True),
        exp.Is: _is,
        exp.NullSafeEQ: _is_same,
        exp.NullSafeNEQ: lambda evaluation, node: not evaluation._is_same(node),
        exp.In: _in,
        exp.Case: _case,
        exp.Coalesce: _coalesce,
        exp.Nullif: _nullif,
        exp.Greatest: lambda evaluation, node: max(
            evaluation._known(node.this, *node.expressions), default=None
        ),
        exp.Least: lambda evaluation, node: min(
            evaluation._known(node.this, *node.expressions), default=None
        ),
        exp.Concat: lambda evaluation, node: "".join(
            map(as_text, evaluation._known(*node.expressions))
        ),
    }

    # operators that are NULL where one of their operands is

    def _strict(self, node: exp.Expr) -> Any:
        operands: dict[str, Any] = {}
        for name, child in node.args.items():
            if isinstance(child, exp.Expr) and not isinstance(child, _NO_OPERANDS):
                operands[name] = self.value(child)

        if has_null(operands.values()):
            return None

        return self._evaluate_node(node, operands)

    def _evaluate_node(self, node: exp.Expr, operands: Mapping[str, Any]) -> Any:
        kind = type(node)
        if kind in _ARITHMETIC:
            return _ARITHMETIC[kind](operands["this"], operands["expression"])
        if kind in _ORDER:
            return self._compares(operands["this"], kind, operands["expression"])
        if kind in self._IN_ZONE:
            return self._IN_ZONE[kind](self, node, operands)
        if kind in _FUNCTIONS:
            return _FUNCTIONS[kind](operands["this"], operands, node)

        raise NotComputable(kind.__name__)

    def _compares(self, left: Any, operator: type[exp.Expr], right: Any) -> bool:
        return _ORDER[operator](*comparable(left, right, self._time_zone))

    def _between(self, _node: exp.Expr, operands: Mapping[str, Any]) -> bool:
        value = operands["this"]
        if not self._compares(value, exp.GTE, operands["low"]):
            return False

        return self._compares(value, exp.LTE, operands["high"])

    def _cast(self, node: exp.Expr, operands: Mapping[str, Any]) -> Any:
        value = operands["this"]
        to: exp.DataType = node.args["to"]
        try:
            return _CASTS[to.this](value, to, self._time_zone)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise NotComputable(f"{as_text(value)} AS {to.sql('postgres')}") from error

    def _extract(self, node: exp.Expr, operands: Mapping[str, Any]) -> Decimal:
        moment = _moment(self._local(operands["expression"]))
        return _part(moment, node.this.name.upper())

    def _period(self, node: exp.Expr, operands: Mapping[str, Any]) -> datetime:
        day = self._local(operands["this"])
        unit = node.args["unit"].name.lower()
        return _moment(period_of(day, unit, self._time_zone))

    def _at_time_zone(self, _node: exp.Expr, operands: Mapping[str, Any]) -> datetime:
        moment: datetime = operands["this"]
        return moment.astimezone(ZoneInfo(operands["zone"])).replace(tzinfo=None)

    def _local(self, day: date) -> date:
        """Return a moment as the time of the zone, a day as it is."""
        if isinstance(day, datetime):
            return local_time(day, self._time_zone)

        return day

    _IN_ZONE: Mapping[
        type[exp.Expr], Callable[["_Evaluation", exp.Expr, Mapping[str, Any]], Any]
    ] = {
        exp.Between: _between,
        exp.Cast: _cast,
        exp.Extract: _extract,
        exp.TimestampTrunc: _period,
        exp.AtTimeZone: _at_time_zone,
    }


def _unless_negated(node: exp.Expr, holds: bool) -> bool:
    """Return the outcome of a test that may be written with NOT inside: IS NOT, NOT LIKE."""
    is_negated = bool(node.args.get("negate"))
    return holds != is_negated


# ------------------------------------------------------------------------------
# functions of values none of which is NULL


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
    flags = re.DOTALL
    if isinstance(node, exp.ILike):
        flags |= re.IGNORECASE

    match = re.fullmatch(_pattern(operands["expression"]), value, flags)
    return _unless_negated(node, match is not None)


def _pattern(like: str) -> str:
    """Return a regular expression for a LIKE pattern, in which a backslash escapes."""
    parts = []
    characters = iter(like)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append(_WILDCARDS.get(character, re.escape(character)))

    return "".join(parts)


_WILDCARDS = {"%": ".*", "_": "."}
_FUNCTIONS: Mapping[type[exp.Expr], Callable[[Any, Mapping[str, Any], exp.Expr], Any]] = {
    exp.Lower: lambda value, _operands, _node: value.lower(),
    exp.Upper: lambda value, _operands, _node: value.upper(),
    exp.Length: lambda value, _operands, _node: len(value),
    exp.Neg: lambda value, _operands, _node: _negated(value),
    exp.Not: lambda value, _operands, _node: not value,
    exp.Abs: lambda value, _operands, _node: abs(value),
    exp.Round: _rounded,
    exp.Trunc: _truncated,
    exp.Ceil: lambda value, _operands, _node: ceiling(Decimal(value)),
    exp.Floor: lambda value, _operands, _node: floor(Decimal(value)),
    exp.Trim: _trimmed,
    exp.Left: lambda value, operands, _node: value[: operands["expression"]],
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
    if node.is_int:
        return int(node.name)

    return Decimal(node.name)


# ------------------------------------------------------------------------------
# casts


def as_text(value: Any) -> str:
    """Return a value as PostgreSQL casts it to text."""
    return _TEXTS.get(type(value), str)(value)


def _moment_text(moment: datetime) -> str:
    text = moment.isoformat(" ")
    if moment.microsecond == 0:
        return text

    return text.rstrip("0")


def _float_text(number: float) -> str:
    is_written_without_exponent = abs(number) < 1e15
    if number.is_integer() and is_written_without_exponent:
        return str(int(number))

    return str(number)


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    Decimal: lambda value: f"{value:f}",
    datetime: _moment_text,
    float: _float_text,
}


def _to_decimal(value: Any, to: exp.DataType, _: str) -> Decimal:
    shortest = repr(value) if isinstance(value, float) else value
    number = Decimal(shortest)
    if not to.expressions:
        return number

    has_scale = len(to.expressions) > 1
    scale = int(to.expressions[1].name) if has_scale else 0
    return rounded(number, scale)


def _to_integer(value: Any, _to: exp.DataType, _: str) -> int:
    """Round to a whole number: halves of floats to the even one, of decimals away from zero."""
    if isinstance(value, float):
        return int(Decimal(value).to_integral_value(ROUND_HALF_EVEN))
    if isinstance(value, Decimal):
        return int(rounded(value, 0))

    return int(value)


_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "on", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "off", "0"), False),
}


def _to_boolean(value: Any, _to: exp.DataType, _: str) -> bool:
    if not isinstance(value, str):
        return bool(value)

    word = value.strip().lower()
    if word not in _BOOLEANS:
        raise ValueError(value)

    return _BOOLEANS[word]


def _to_moment(value: Any, _to: exp.DataType, time_zone: str) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, date):
        raise TypeError(value)

    return local_time(_moment(value), time_zone)


_CASTS: Mapping[Any, Callable[[Any, exp.DataType, str], Any]] = {
    exp.DataType.Type.TEXT: lambda value, _to, _zone: as_text(value),
    exp.DataType.Type.DECIMAL: _to_decimal,
    exp.DataType.Type.SMALLINT: _to_integer,
    exp.DataType.Type.INT: _to_integer,
    exp.DataType.Type.BIGINT: _to_integer,
    exp.DataType.Type.DOUBLE: lambda value, _to, _zone: float(value),
    exp.DataType.Type.BOOLEAN: _to_boolean,
    exp.DataType.Type.DATE: lambda value, to, zone: _to_moment(value, to, zone).date(),
    exp.DataType.Type.TIMESTAMP: _to_moment,
}


def _part(moment: datetime, name: str) -> Decimal:
    """Return the part of a moment that EXTRACT gives."""
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
