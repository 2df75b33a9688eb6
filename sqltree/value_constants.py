"""Tells whether a query holds what may be a value of rows: a name or a number in a condition, in a
label, in a comment.

A limit, a factor that converts units, or the unit of time that is given to `date_trunc` or
`to_char` is none. Comments may quote anything. So may the labels that a query gives to columns,
tables and CTEs, in any script: a plain lower-case word with few digits counts as a label of the
writer's own (`total_amount`), and so does one that is made of what the catalogue says and of words
for figures (`销售额合计`), because who may see the catalogue learns nothing from it.
"""

import re
from decimal import Decimal
from pathlib import Path

from postgast import scan

from common.word_files import Words
from sqltree.constants import Constant, constants_of
from sqltree.parsing import COMMENTS, token_names

_OTHER_ROLES = frozenset(("limit", "offset", "interval", "neutral"))
_NO_NUMBERS = (Decimal(0), Decimal(1))  # say nothing by themselves
_UNIT_FUNCTIONS = frozenset(("date_trunc", "date_part", "extract", "to_char"))
_UNITS = re.compile(
    r"(milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?"
    r"|(iso)?(dow|year)|doy|epoch"
    r"|(?:FM|IYYY|YY|MM|Mon(?:th)?|DD|ID|Q|IW|WW|HH(?:24|12)?|MI|SS|[-/:. \"])+",
    re.IGNORECASE,
)
# Of time and of memory; powers of ten come on top.
_CONVERSIONS = frozenset(
    map(Decimal, (2, 3, 4, 7, 12, 24, 30, 52, 60, 360, 365, 1024, 1440, 3600, 86_400, 1_048_576))
)
_LABEL = re.compile(r"\A(?!.*\d{5})[a-z_][a-z0-9_]*")
_WORDS = Words(Path(__file__).with_name("label_words.toml"))
_FIGURES = re.compile(
    rf"{'|'.join(_WORDS.phrases('figures.han'))}"
    rf"|\b(?:{'|'.join(_WORDS.phrases('figures.latin'))})\b"
    r"|[_\s()（）%/]|(?<!\d)\d{1,4}(?!\d)"
)
_NAMES = frozenset(("IDENT", "UIDENT"))


def holds_values(sql: str, catalog_text: str = "") -> bool:
    """Tell whether the query holds such constants, labels or comments, or can't be read.

    Args:
        catalog_text: what the catalogue says, names and comments, in lower case.
    """
    constants = constants_of(sql)
    if constants is None:
        return True
    if any(map(_may_be_stored, constants)):
        return True

    return _is_annotated(sql, catalog_text)


def _may_be_stored(constant: Constant) -> bool:
    if constant.kind == "text":
        is_interval = constant.role == "interval"
        return not is_interval and not _is_unit(constant)

    if constant.role in _OTHER_ROLES:
        return False

    number = Decimal(constant.value)
    if number in _NO_NUMBERS:
        return False

    is_factor = constant.role == "factor"
    return not is_factor or not _converts(number)


def _is_unit(text: Constant) -> bool:
    """Tell whether a text names the unit of a function of time: `date_trunc('month', …)`."""
    is_argument = text.operator in _UNIT_FUNCTIONS
    is_named_so = _UNITS.fullmatch(text.value) is not None
    return is_argument and is_named_so


def _converts(number: Decimal) -> bool:
    """Tell whether the factor converts units, as in `amount / 1000`.

    `id / 900001 = 1` asks for one row.
    """
    factor = abs(number)
    digits = factor.normalize().as_tuple().digits
    is_power_of_ten = digits == (1,)
    return is_power_of_ten or factor in _CONVERSIONS


def _is_annotated(sql: str, catalog_text: str) -> bool:
    """Tell whether it has a comment, or a name that is neither plain nor the catalogue's."""
    data = sql.encode("utf-8")
    tokens = scan(sql).tokens
    kinds = token_names(tokens)
    if not COMMENTS.isdisjoint(kinds):
        return True

    for token, kind in zip(tokens, kinds, strict=True):
        if kind not in _NAMES:
            continue

        name = data[token.start : token.end].decode("utf-8", "replace")
        if not _is_plain(name, catalog_text):
            return True

    return False


def _is_plain(name: str, catalog_text: str) -> bool:
    plain = name.lower()
    if name.startswith('"'):
        plain = name[1:-1].replace('""', '"')
    if _LABEL.fullmatch(plain):
        return True

    parts = _FIGURES.split(plain.lower())
    return all(part in catalog_text for part in parts)
