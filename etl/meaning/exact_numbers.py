"""Arithmetic as PostgreSQL's `numeric` does it: exact, and quotients to the same digits."""

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

EXACT = Context(prec=1000)
"""Enough digits that sums and products of stored numbers are never rounded."""

_SIGNIFICANT_DIGITS = 16  # that a quotient has at least
_GROUP = 4  # decimal digits that PostgreSQL keeps together
_MOST_DIGITS = 1000  # behind the point


def quotient(dividend: Decimal, divisor: Decimal) -> Decimal:
    """Divide two numbers to as many digits as PostgreSQL gives; `divisor` is not 0."""
    weight, first = _leading_group(dividend)
    other_weight, other_first = _leading_group(divisor)
    result_weight = weight - other_weight
    if first <= other_first:
        result_weight -= 1

    digits = _SIGNIFICANT_DIGITS - result_weight * _GROUP
    digits = max(digits, digits_behind_point(dividend), digits_behind_point(divisor), 0)
    exact = EXACT.divide(dividend, divisor)
    return rounded(exact, min(digits, _MOST_DIGITS))


def _leading_group(number: Decimal) -> tuple[int, int]:
    """Return the place of the first four-digit group that is not 0, and its value."""
    if not number:
        return 0, 0

    place = number.adjusted() // _GROUP
    group = abs(EXACT.scaleb(number, -place * _GROUP))
    return place, int(group)


def product(left: Decimal, right: Decimal) -> Decimal:
    """Multiply two numbers without rounding."""
    return without_sign_of_zero(EXACT.multiply(left, right))


def without_sign_of_zero(number: Decimal) -> Decimal:
    """Return the number; PostgreSQL's 0 has no sign."""
    return number if number else abs(number)


def digits_behind_point(number: Decimal) -> int:
    """Return how many decimal places a number is written with."""
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int):
        return max(0, -exponent)

    return 0


def rounded(number: Decimal, digits: int) -> Decimal:
    """Round to `digits` places, halves away from zero."""
    return without_sign_of_zero(number.quantize(_unit(digits), ROUND_HALF_UP, EXACT))


def cut(number: Decimal, digits: int) -> Decimal:
    """Cut off what is behind `digits` places."""
    return without_sign_of_zero(number.quantize(_unit(digits), ROUND_DOWN, EXACT))


def _unit(digits: int) -> Decimal:
    return Decimal(1).scaleb(-digits)


def ceiling(number: Decimal) -> Decimal:
    """Return the next whole number that is not less."""
    return without_sign_of_zero(number.to_integral_value(ROUND_CEILING))


def floor(number: Decimal) -> Decimal:
    """Return the next whole number that is not more."""
    return without_sign_of_zero(number.to_integral_value(ROUND_FLOOR))
