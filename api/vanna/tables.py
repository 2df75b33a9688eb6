"""Rows as the table of Vanna's clients: objects by the titles of their columns."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from api.vanna.components import ChatPart, harmless
from common.envelope import to_json
from common.text import Lang, Text

_TITLE = Text("查询结果", "Result")
_ROWS = Text("查询结果行数：{}", "Rows of the result: {}")
_LIMITED = Text("只显示前 {} 行。", "Only the first {} rows are shown.")
_WITH_UNIT = Text("{label}（{unit}）", "{label} ({unit})")
_EXACT = 2**53  # JavaScript has all whole numbers up to this one
_PLAIN = 1e21  # from here on JavaScript writes numbers with an exponent


def table(name: str, result: Mapping[str, Any], lang: Lang) -> ChatPart:
    """Return the rows of a `query_result`."""
    titles, rows = titles_of(result, lang), result.get("rows") or []
    data = {
        "data": [dict(zip(titles, map(_cell, row), strict=False)) for row in rows],
        "columns": titles,
        # The web component writes values of all other types into the page as HTML.
        "column_types": dict.fromkeys(titles, "string"),
        "title": _TITLE.to(lang),
        "description": _LIMITED.to(lang).format(len(rows)) if result.get("is_limited") else None,
        "row_count": len(rows),
        "column_count": len(titles),
        "max_rows_displayed": max(1, len(rows)),
        "searchable": len(rows) > 1,
        "sortable": len(rows) > 1,
        "filterable": False,
        "exportable": True,
        "striped": True,
        "bordered": True,
        "compact": False,
        "paginated": False,
        "page_size": max(1, len(rows)),
    }
    return ChatPart("dataframe", name, data, plain=_ROWS.to(lang).format(len(rows)))


def titles_of(result: Mapping[str, Any], lang: Lang) -> list[str]:
    """Return the columns' titles, with their units; each once, because rows have them as keys."""
    columns = [str(column) for column in result.get("columns") or []]
    labels = _one_per_column(columns, result.get("labels"))
    units = _one_per_column(columns, result.get("units"))
    titles = []
    for column, label, unit in zip(columns, labels, units, strict=True):
        title = str(label or column)
        if unit:
            title = _WITH_UNIT.to(lang).format(label=title, unit=unit)

        titles.append(harmless(title))

    return _each_once(titles)


def _one_per_column(columns: Sequence[str], entries: Any) -> list[Any]:
    """Return the list if it has an entry for each column, else one of None."""
    if isinstance(entries, list) and len(entries) == len(columns):
        return entries

    return [None] * len(columns)


def _each_once(titles: Iterable[str]) -> list[str]:
    unique: dict[str, None] = {}
    for position, title in enumerate(titles, start=1):
        free = title or f"#{position}"
        number = 2
        while free in unique:
            free = f"{title} ({number})"
            number += 1

        unique[free] = None

    return list(unique)


def _cell(value: Any) -> Any:
    """Return a value of which JavaScript keeps all digits."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if not isinstance(value, int | Decimal):
        return to_json(value)
    if _is_exact(value):
        return value

    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _is_exact(number: int | Decimal) -> bool:
    if isinstance(number, int):
        return abs(number) <= _EXACT

    return abs(number) < _PLAIN and Decimal(repr(float(number))) == number
