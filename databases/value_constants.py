"""Tells whether a query holds constants that may be values of rows, as a name or a number in a condition is.

A limit, a factor, or the unit of time that is given to `date_trunc` or `to_char` is none.
"""

import re
from decimal import Decimal

from databases.constants import Constant, constants_of

_OTHER_ROLES = frozenset(("limit", "offset", "interval", "neutral", "factor"))
_NO_NUMBERS = (Decimal(0), Decimal(1))  # say nothing by themselves
_UNITS = re.compile(
    r"(milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|(iso)?(dow|year)|doy|epoch"
    r"|(FM|YYYY|IYYY|YY|MM|Mon|Month|DD|ID|Q|IW|WW|HH24|HH12|HH|MI|SS|[-/:. \"])+",
    re.IGNORECASE,
)


def holds_values(sql: str) -> bool:
    """Whether the query holds such constants, or can't be read."""
    constants = constants_of(sql)
    return constants is None or any(map(_may_be_stored, constants))


def _may_be_stored(constant: Constant) -> bool:
    if constant.role in _OTHER_ROLES:
        return False
    if constant.kind == "text":
        return constant.role != "argument" or not _UNITS.fullmatch(constant.value)
    return Decimal(constant.value) not in _NO_NUMBERS
