"""Writes names of tables, literals and dates as SQL, and tells its types."""

import re
from decimal import Decimal

from common.meanings import TableKey
from common.postgres.identifiers import quoted
from common.values import Catalog
from rules.linking.moments import Moment


def table_name(catalog: Catalog, key: TableKey) -> str:
    """The table's name, with its schema unless the search path leads to this very table."""
    schema, name = key
    found = next((one for one in catalog.search_path if (one, name) in catalog.by_key), None)
    return quoted(name) if found == schema else f"{quoted(schema)}.{quoted(name)}"


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
