"""Writes literals, dates and comparisons as SQL."""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from common.values import Column
from rules.linking.moments import Moment, Period
from rules.query.query import Operand, Operator
from rules.schema.table_facts import kind_of
from rules.words import WORDS

DURING: tuple[Operator, ...] = ("during", "not during")
_NEGATIVE: tuple[Operator, ...] = ("!=", "not in", "not during", "not contains")
_UNARY = {"null": "{} IS NULL", "not null": "{} IS NOT NULL", "true": "{}", "false": "NOT {}"}
_PATTERNS = {
    "contains": ("{} ILIKE {}", "%{}%"),
    "not contains": ("{} NOT ILIKE {}", "%{}%"),
    "prefix": ("{} ILIKE {}", "{}%"),
    "suffix": ("{} ILIKE {}", "%{}"),
}
_MONTHS_OF_YEAR = 12
_FALSE_TEXT = WORDS.both("columns.said.not_deleted")


def is_float_type(type_: str) -> bool:
    """Tell whether values of the SQL type are floating-point numbers.

    PostgreSQL's `round` takes no number of digits for these.
    """
    return type_ in ("real", "double precision")


def literal(value: str) -> str:
    """Return a string literal, in which backslashes are plain characters on any server."""
    escaped = value.replace("\x00", "").replace("'", "''")
    if "\\" not in escaped:
        return f"'{escaped}'"

    doubled = escaped.replace("\\", "\\\\")
    return f"E'{doubled}'"


def number(value: Decimal) -> str:
    """Return a numeric literal without an exponent."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def like_pattern(text: str, form: str) -> str:
    """Return the literal of a LIKE pattern; `{}` in `form` stands for the escaped text."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return literal(form.format(escaped))


def moment_sql(moment: Moment) -> str:
    """Return a day as an expression of type date."""
    if moment.day is not None:
        return f"DATE '{moment.day.isoformat()}'"
    if moment.trunc == "day":
        return _from_today(moment)

    first = f"date_trunc('{moment.trunc}', CURRENT_DATE)"
    shifts = _shift(moment.months, "month") + _shift(moment.days, "day")
    return f"({first}{shifts})::date" if shifts else f"{first}::date"


def _from_today(moment: Moment) -> str:
    """Return the SQL of a day that is so many months and days away from today."""
    if moment.months:
        shifts = _shift(moment.months, "month") + _shift(moment.days, "day")
        return f"(CURRENT_DATE{shifts})::date"

    if moment.days:
        return f"CURRENT_DATE {_sign(moment.days)} {abs(moment.days)}"

    return "CURRENT_DATE"


def _shift(count: int, unit: str) -> str:
    """Return the interval of `count` units with its sign; nothing for none."""
    if not count:
        return ""

    amount = abs(count)
    if unit == "month" and amount % _MONTHS_OF_YEAR == 0:
        amount, unit = amount // _MONTHS_OF_YEAR, "year"

    plural = "s" if amount > 1 else ""
    return f" {_sign(count)} INTERVAL '{amount} {unit}{plural}'"


def _sign(count: int) -> str:
    return "+" if count > 0 else "-"


def spelled(operand: Operand) -> str:
    """Return a number or text as a literal."""
    if isinstance(operand, Decimal):
        return number(operand)

    return literal(str(operand))


def comparison(
    sql: str,
    operator: Operator,
    operands: tuple[Operand, ...],
    spell: Callable[[Operand], str] = spelled,
    is_nullable: bool = False,
) -> str:
    """Write `sql operator operands`; periods become half-open ranges.

    Args:
        spell: writes an operand as SQL; by default as a literal.
        is_nullable: whether `sql` may be NULL. A negative comparison also holds for NULL then,
            because what has no city is not in Berlin.
    """
    if is_nullable and operator in _NEGATIVE:
        return _negative_or_null(sql, operator, operands)
    if operator in _UNARY:
        return _UNARY[operator].format(sql)
    if operator in DURING:
        return _within(sql, operator, operands)
    if operator in _PATTERNS:
        template, form = _PATTERNS[operator]
        return template.format(sql, like_pattern(str(operands[0]), form))

    values = [spell(operand) for operand in operands]
    if operator == "between":
        return f"{sql} BETWEEN {values[0]} AND {values[1]}"
    if operator in ("in", "not in"):
        return f"{sql} {operator.upper()} ({', '.join(values)})"

    sign = "<>" if operator == "!=" else operator
    return f"{sql} {sign} {values[0]}"


def _within(sql: str, operator: Operator, operands: tuple[Operand, ...]) -> str:
    """Write that a date lies in one of the periods, or (`not during`) in none of them."""
    ranges = []
    for operand in operands:
        if isinstance(operand, Period):
            ranges.append(_range_sql(sql, operand))

    text = ranges[0] if len(ranges) == 1 else any_of(f"({one})" for one in ranges)
    return f"NOT ({text})" if operator == "not during" else text


def _negative_or_null(sql: str, operator: Operator, operands: tuple[Operand, ...]) -> str:
    """Write a negative comparison that also holds for NULL."""
    if operator == "!=":
        return f"{sql} IS DISTINCT FROM {spelled(operands[0])}"
    if operator == "not during":
        return f"({comparison(sql, 'during', operands)}) IS NOT TRUE"

    return f"({comparison(sql, operator, operands)} OR {sql} IS NULL)"


def any_of(conditions: Iterable[str]) -> str:
    """Join the conditions so that at least one has to hold."""
    return f"({' OR '.join(conditions)})"


def as_operand(condition: str) -> str:
    """Return the condition in brackets where `AND` beside it would bind more tightly."""
    if re.search(r"\bor\b", condition, re.IGNORECASE):
        return f"({condition})"

    return condition


def as_stored(operand: Operand, kind: str) -> Operand:
    """Convert the operand to the kind of values of its column: text to numbers, numbers to text."""
    if kind == "number" and isinstance(operand, str) and re.fullmatch(r"-?\d+(\.\d+)?", operand):
        return Decimal(operand)
    if kind in ("text", "other") and isinstance(operand, Decimal):
        return number(operand)

    return operand


def not_deleted(column: Column, sql: str) -> str:
    """Write the condition that leaves out soft-deleted rows.

    Args:
        sql: the column that marks them.
    """
    kind = kind_of(column)
    if kind == "boolean":
        if column.nullable:
            return f"{sql} IS NOT TRUE"

        return f"NOT {sql}"

    if kind in ("date", "timestamp"):
        return f"{sql} IS NULL"
    if kind == "number":
        if column.nullable:
            return f"coalesce({sql}, 0) = 0"

        return f"{sql} = 0"

    kept = next((value for value in _FALSE_TEXT if value in column.values), "0")
    return f"coalesce({sql}, {literal(kept)}) = {literal(kept)}"


def _range_sql(sql: str, period: Period) -> str:
    bounds = []
    if period.start is not None:
        bounds.append(f"{sql} >= {moment_sql(period.start)}")
    if period.end is not None:
        bounds.append(f"{sql} < {moment_sql(period.end)}")

    return " AND ".join(bounds) or "TRUE"
