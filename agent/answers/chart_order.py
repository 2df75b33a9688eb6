"""The order in which a chart shows the values of an axis.

That of time or of numbers; names that come in no order stand with the largest figure first.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from knowledge.results.result_columns import ResultColumn
from knowledge.words import WORDS

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STEP = re.compile(r"([<>≤≥]?)=?(\d+(?:\.\d+)?)")  # `<50`, `50-100`, `>=100`
_SIGNS = {"<": -1, "≤": -1, ">": 1}
_MOST_NUMBERS = 2  # of a step; a text with more is a date, or a name
_LEAST_LETTERS = 3  # of a name of English that is cut: `Mon`


def _ranked_names() -> dict[str, int]:
    """Return the names of weekdays and months in the order of time."""
    ranks: dict[str, int] = {}
    for kind in ("weekdays", "months"):
        for rank, name in enumerate(WORDS.english.phrases(f"results.{kind}")):
            ranks |= {name: rank, name[:_LEAST_LETTERS]: rank}

    for rank, name in enumerate(WORDS.chinese.phrases("results.months")):
        ranks |= {name: rank, f"{rank + 1}月": rank}
    for word in WORDS.chinese.phrases("results.weekday_words"):
        for rank, name in enumerate(WORDS.chinese.phrases("results.weekdays")):
            ranks[f"{word}{name}"] = rank

    return ranks


_RANKS = _ranked_names()
_Key = Callable[[Any], Any]


def axis_order(
    column: ResultColumn,
    rows: Sequence[tuple[Any, float]],
    sort_key: ResultColumn | None,
    *,
    by_size: bool,
) -> list[Any] | None:
    """Return the values of an axis in the order to show them; None: as they come in the rows.

    Args:
        rows: the value and the figure of each row, top down.
        sort_key: the group by which the statement sorts the rows first; None where it leaves
            their order open.
        by_size: names whose order is open come with the largest first; else as in the rows.
    """
    values = list(dict.fromkeys(value for value, _ in rows))
    known = [value for value in values if value is not None]
    key = natural_key(column, known)
    if sort_key is column and (key is None or not _is_sorted_as_text(column, known)):
        return None

    ordered = known
    if key is not None:
        ordered = sorted(known, key=key)
    elif sort_key is None and by_size:
        ordered = _largest_first(rows)

    ordered += [None] * (len(values) - len(known))
    return ordered if ordered != values else None


def _is_sorted_as_text(column: ResultColumn, values: Iterable[Any]) -> bool:
    """Tell whether sorting by the column gives the order of letters: April before January."""
    return column.role != "time" and all(isinstance(value, str) for value in values)


def _largest_first(rows: Iterable[tuple[Any, float]]) -> list[Any]:
    sizes: defaultdict[Any, float] = defaultdict(float)
    for value, figure in rows:
        if value is not None:
            sizes[value] += figure

    return sorted(sizes, key=lambda value: -sizes[value])


def natural_key(column: ResultColumn, values: Iterable[Any]) -> _Key | None:
    """Return what sorts values that have an order of their own: times, numbers, weekdays, steps."""
    found = list(values)
    if all(isinstance(value, int | float | Decimal) for value in found):
        return None if all(isinstance(value, bool) for value in found) else _itself
    if column.role == "time":
        return str
    if all(str(value).strip().lower() in _RANKS for value in found):
        return lambda value: _RANKS[str(value).strip().lower()]
    if all(isinstance(value, str) and _is_step(value) for value in found):
        return _step_key

    return None


def _itself(value: Any) -> Any:
    return value


def _is_step(text: str) -> bool:
    return (
        _STEP.match(text.replace(" ", "")) is not None
        and len(_NUMBER.findall(text)) <= _MOST_NUMBERS
    )


def _step_key(text: str) -> tuple[float, int]:
    match = _STEP.match(text.replace(" ", ""))
    assert match is not None
    sign, number = match.groups()
    return float(number), _SIGNS.get(sign, 0)
