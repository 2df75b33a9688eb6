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
_GROUPED = re.compile(r"(?<=\d),(?=\d{3})")  # the comma of `1,000`
_BELOW_WORD = WORDS.found("results.step_below").pattern
_ABOVE_WORD = WORDS.found("results.step_above").pattern
_STEP_WORD = WORDS.any_of("results.step_names")
_BELOW = re.compile(rf"[<≤]|{_BELOW_WORD}", re.IGNORECASE)
_ABOVE = re.compile(rf">(?!=)|{_ABOVE_WORD}", re.IGNORECASE)
_STEP_NAME = re.compile(rf"(?:{_STEP_WORD})", re.IGNORECASE)
# What may stand before the first number of a step: `<50`, `$50 – $100`, `over 100`, `第3`.
_STEP = re.compile(
    rf"(?:{_BELOW_WORD}|{_ABOVE_WORD}|{_STEP_WORD}|[^\w-]){{0,8}}(-?\d+(?:\.\d+)?)", re.IGNORECASE
)
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


def _scales() -> list[dict[str, int]]:
    """Return the ranks of names in each scale that people know."""
    scales = []
    for scale in WORDS.both("results.scales"):
        names = map(str.strip, scale.split(","))
        scales.append({name: rank for rank, name in enumerate(names)})

    return scales


_SCALES = (_RANKS, *_scales())
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
    present = [value for value in values if value is not None]
    key = natural_key(column, present)
    if sort_key is column and (key is None or not _is_sorted_as_text(column, present)):
        return None

    ordered = present
    if key is not None:
        ordered = sorted(present, key=key)
    elif sort_key is None and by_size:
        ordered = _largest_first(rows)

    ordered += [None] * (len(values) - len(present))
    return ordered if ordered != values else None


def _is_sorted_as_text(column: ResultColumn, values: Iterable[Any]) -> bool:
    """Tell whether sorting by the column gives the order of letters: April before January."""
    return column.role != "time" and all(isinstance(value, str) for value in values)


def _largest_first(rows: Iterable[tuple[Any, float]]) -> list[Any]:
    """Return the values with the highest figure first; of losses alone, the heaviest."""
    sizes: defaultdict[Any, float] = defaultdict(float)
    for value, figure in rows:
        if value is not None:
            sizes[value] += figure

    has_gains = any(size > 0 for size in sizes.values())
    return sorted(sizes, key=lambda value: sizes[value], reverse=has_gains)


def natural_key(column: ResultColumn, values: Iterable[Any]) -> _Key | None:
    """Return what sorts values that have an order of their own: times, numbers, weekdays, steps."""
    values = list(values)
    if all(isinstance(value, int | float | Decimal) for value in values):
        return None if all(isinstance(value, bool) for value in values) else _itself
    if column.role == "time":
        return str

    names = {value: str(value).strip().lower() for value in values}
    for ranks in _SCALES:
        if ranks.keys() >= set(names.values()):
            return lambda value: ranks[names[value]]

    if all(isinstance(value, str) and _is_step(value) for value in values):
        return _step_key

    return None


def _itself(value: Any) -> Any:
    return value


def _is_step(text: str) -> bool:
    """Tell whether a value is a step of a scale: `18-25`, "over 60", "Q3"."""
    plain = _GROUPED.sub("", text)
    if _STEP.match(plain) is None:
        return False

    is_named = _STEP_NAME.match(text) is not None
    most = 1 if is_named else _MOST_NUMBERS
    return len(_NUMBER.findall(plain)) <= most


def _step_key(text: str) -> tuple[float, int]:
    """Return where a step begins, and whether it lies before or behind that number."""
    plain = _GROUPED.sub("", text)
    match = _STEP.match(plain)
    assert match is not None
    number = float(match.group(1))
    if len(_NUMBER.findall(plain)) > 1:
        return number, 0
    if _BELOW.search(plain):
        return number, -1

    return number, 1 if _ABOVE.search(plain) else 0
