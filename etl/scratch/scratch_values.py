"""Values of Python as PostgreSQL reads them."""

import math
from datetime import date
from decimal import Decimal
from typing import Any


def literal(value: Any) -> str:
    """Return the value as a literal, which takes the type of what it meets."""
    if value is None:
        return "NULL"

    doubled = as_text(value).replace("'", "''")
    return f"'{doubled}'"


def text_or_null(value: Any) -> str | None:
    """Return a value as PostgreSQL reads it, and None for NULL."""
    if value is None:
        return None

    return as_text(value)


def as_text(value: Any) -> str:
    """Return a value as PostgreSQL reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return str(Decimal(value))

    return str(value)
