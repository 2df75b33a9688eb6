"""Values of Python as PostgreSQL reads them."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def literal(value: Any) -> str:
    """Return the value as a literal, which takes the type of what it meets."""
    if value is None:
        return "NULL"
    doubled = as_text(value).replace("'", "''")
    return f"'{doubled}'"


def as_text(value: Any) -> str:
    """Return a value as PostgreSQL reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(Decimal(value))
    return str(value)
