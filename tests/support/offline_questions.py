"""Reading question fixtures and comparing the rows of an answer with those of hand-written SQL."""

import datetime
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFUSE = "REFUSE"


class Case(NamedTuple):
    """A question and the SQL a person wrote for it, or REFUSE where no statement can be right."""

    question: str
    gold: str


def cases_of(path: Path) -> list[Case]:
    """Return cases of a file: a comment line with the question, then its SQL.

    `{last_year}`, `{this_year}` and `{next_year}` stand for years: the demo always has the last two
    years up to yesterday.
    """
    text, year = path.read_text(encoding="utf-8"), datetime.date.today().year
    for name, meant in (
        ("{last_year}", year - 1),
        ("{this_year}", year),
        ("{next_year}", year + 1),
    ):
        text = text.replace(name, str(meant))
    parts = re.split(r"^-- ?", text, flags=re.MULTILINE)[1:]
    return [
        Case(question.strip(), gold.strip())
        for question, _, gold in (part.partition("\n") for part in parts)
    ]


def same_rows(
    gold: Sequence[Sequence[Any]], answer: Sequence[Sequence[Any]], *, in_order: bool = False
) -> bool:
    """Tell whether some columns of the answer give exactly the rows of `gold`, in any order.

    An answer may show more than was asked (the rank beside the name), never other rows or other
    values.

    Args:
        in_order: the rows have to come in the order of `gold` as well.
    """
    if len(gold) != len(answer):
        return False
    if not gold:
        return True
    kept = list if in_order else Counter
    wanted = kept(tuple(map(_plain, row)) for row in gold)
    plain = [tuple(map(_plain, row)) for row in answer]
    return any(
        kept(tuple(row[index] for index in choice) for row in plain) == wanted
        for choice in itertools.permutations(range(len(plain[0])), len(gold[0]))
    )


def _plain(value: Any) -> Any:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return round(float(value), 4)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else value
