"""Writes literals, dates and comparisons with them as SQL, and tells its types."""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from common.values import Column
from rules.linking.moments import Moment, Period
from rules.query.query import Operand, Operator
from rules.schema.facts import kind_of
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
_FALSE_TEXT = WORDS.both("columns.said.not_deleted")


def is_float_type(type_: str) -> bool:
    """Whether values of the type are floating-point numbers, which `round` does not round to digits."""
    return type_ in ("real", "double precision")


def literal(value: str) -> str:
    """A string literal; backslashes are plain characters whatever the server's settings."""
    escaped = value.replace("\x00", "").replace("'", "''")
    return "E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in escaped else f"'{escaped}'"


def number(value: Decimal) -> str:
    """A numeric literal without exponent."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def like_pattern(text: str, form: str) -> str:
    """A LIKE pattern literal for the text in the place of `{}` in `form`."""
    return literal(form.format(re.sub(r"([\\%_])", r"\\\1", text)))


def moment_sql(moment: Moment) -> str:
    """A day as an expression of type date."""
    if moment.day is not None:
        return f"DATE '{moment.day.isoformat()}'"
    base = "CURRENT_DATE" if moment.trunc == "day" else f"date_trunc('{moment.trunc}', CURRENT_DATE)"
    if moment.months:
        base += _shift(moment.months, "month")
    if moment.days and (moment.months or moment.trunc != "day"):
        base += _shift(moment.days, "day")
    elif moment.days:
        return f"{base} {'+' if moment.days > 0 else '-'} {abs(moment.days)}"
    return base if base == "CURRENT_DATE" else f"({base})::date" if " " in base.split(")")[-1] else f"{base}::date"


def _shift(count: int, unit: str) -> str:
    amount, unit = (abs(count) // 12, "year") if unit == "month" and count % 12 == 0 else (abs(count), unit)
    return f" {'+' if count > 0 else '-'} INTERVAL '{amount} {unit}{'s' if amount > 1 else ''}'"


def spelled(operand: Operand) -> str:
    """A number or text as a literal."""
    return number(operand) if isinstance(operand, Decimal) else literal(str(operand))


def comparison(
    sql: str,
    operator: Operator,
    operands: tuple[Operand, ...],
    spell: Callable[[Operand], str] = spelled,
    is_nullable: bool = False,
) -> str:
    """`sql operator operands`; text operands are literals, periods become half-open ranges.

    A negative one also holds for NULL where that may be, because what has no city is not in Berlin.
    """
    if is_nullable and operator in _NEGATIVE:
        return _unlike(sql, operator, operands)
    if operator in _UNARY:
        return _UNARY[operator].format(sql)
    if operator in DURING:
        ranges = [_range_sql(sql, operand) for operand in operands if isinstance(operand, Period)]
        text = ranges[0] if len(ranges) == 1 else any_of(f"({one})" for one in ranges)
        return f"NOT ({text})" if operator == "not during" else text
    if operator in _PATTERNS:
        template, form = _PATTERNS[operator]
        return template.format(sql, like_pattern(str(operands[0]), form))
    values = list(map(spell, operands))
    if operator == "between":
        return f"{sql} BETWEEN {values[0]} AND {values[1]}"
    if operator in ("in", "not in"):
        return f"{sql} {operator.upper()} ({', '.join(values)})"
    return f"{sql} {'<>' if operator == '!=' else operator} {values[0]}"


def _unlike(sql: str, operator: Operator, operands: tuple[Operand, ...]) -> str:
    if operator == "!=":
        return f"{sql} IS DISTINCT FROM {spelled(operands[0])}"
    if operator == "not during":
        return f"({comparison(sql, 'during', operands)}) IS NOT TRUE"
    return f"({comparison(sql, operator, operands)} OR {sql} IS NULL)"


def any_of(conditions: Iterable[str]) -> str:
    """The conditions as one of which at least one holds."""
    return f"({' OR '.join(conditions)})"


def as_operand(condition: str) -> str:
    """The condition as a part of a conjunction."""
    return f"({condition})" if re.search(r"\bor\b", condition, re.IGNORECASE) else condition


def as_stored(operand: Operand, kind: str) -> Operand:
    """The operand as the column stores it: as a number in columns of numbers, as a text in columns of texts."""
    if kind == "number" and isinstance(operand, str) and re.fullmatch(r"-?\d+(\.\d+)?", operand):
        return Decimal(operand)
    if kind in ("text", "other") and isinstance(operand, Decimal):
        return number(operand)
    return operand


def not_deleted(column: Column, sql: str) -> str:
    """The condition that keeps rows that are not soft-deleted; `sql` is the column that marks them."""
    kind = kind_of(column)
    if kind == "boolean":
        return f"{sql} IS NOT TRUE" if column.nullable else f"NOT {sql}"
    if kind in ("date", "timestamp"):
        return f"{sql} IS NULL"
    if kind == "number":
        return f"coalesce({sql}, 0) = 0" if column.nullable else f"{sql} = 0"
    kept = next((value for value in _FALSE_TEXT if value in column.values), "0")
    return f"coalesce({sql}, {literal(kept)}) = {literal(kept)}"


def _range_sql(sql: str, period: Period) -> str:
    ends = ((">=", period.start), ("<", period.end))
    return " AND ".join(f"{sql} {sign} {moment_sql(end)}" for sign, end in ends if end is not None) or "TRUE"
