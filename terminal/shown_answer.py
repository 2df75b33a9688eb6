"""Shows answers on a terminal: words, a table, a chart of bars, the SQL."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text as Styled

from agent.answers.chart_figures import in_order

_MOST_ROWS = 50
_MOST_BARS = 20
_BAR_WIDTH = 40  # characters of the longest bar
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")


def show_answer(console: Console, answer: Mapping[str, Any], *, with_sql: bool) -> None:
    """Show an answer, by `data` of the event `completed`."""
    console.print(_plain(answer["response"]))
    _show_rows(console, answer)
    _show_cards(console, answer)
    if with_sql:
        _show_sql(console, answer)

    for warning in answer.get("warnings") or ():
        console.print(_plain(warning), style="yellow")

    _show_offers(console, answer)


def _show_cards(console: Console, answer: Mapping[str, Any]) -> None:
    for card in answer.get("cards") or ():
        _show_card(console, card)


def _show_sql(console: Console, answer: Mapping[str, Any]) -> None:
    sql = answer.get("sql")
    if sql:
        console.print(Syntax(sql, "sql", word_wrap=True, background_color="default"))


def _show_offers(console: Console, answer: Mapping[str, Any]) -> None:
    """Show what may be asked next."""
    for name in ("choices", "rewrites", "follow_ups"):
        for offer in answer.get(name) or ():
            line = f"  › {offer}".translate(_CONTROLS)
            console.print(Styled(line, style="dim"))


def _show_card(console: Console, card: Mapping[str, Any]) -> None:
    console.print(_plain(card["title"]), style="bold")
    if card["text"]:
        console.print(_plain(card["text"]))
    for fact in card["facts"]:
        console.print(_plain(f"  {fact['label']}: {fact['value']}"))


def _show_rows(console: Console, answer: Mapping[str, Any]) -> None:
    result = answer.get("query_result")
    if not result or not result["rows"]:
        return

    console.print(_table(result))
    chart = answer.get("chart")
    bars = _bars(chart, result) if chart else None
    if bars is not None:
        console.print(bars)


def _plain(text: str) -> Styled:
    """Return a text whose control characters a terminal does not obey; line breaks stay."""
    lines = [line.translate(_CONTROLS) for line in str(text).splitlines()]
    return Styled("\n".join(lines))


def _table(result: Mapping[str, Any]) -> RenderableType:
    labels = result.get("labels") or result["columns"]
    units = result.get("units") or [None] * len(labels)
    table = Table(header_style="bold", show_edge=False)
    formats = result.get("formats") or [None] * len(labels)
    for label, unit, number_format in zip(labels, units, formats, strict=True):
        heading = f"{label} ({unit})" if unit else str(label)
        justify: JustifyMethod = "left" if number_format is None else "right"
        table.add_column(escape(heading.translate(_CONTROLS)), justify=justify)

    rows: Sequence[Sequence[Any]] = result["rows"]
    for row in rows[:_MOST_ROWS]:
        table.add_row(*map(_cell, row))

    if len(rows) <= _MOST_ROWS:
        return table

    return Group(table, Styled(f"… {len(rows) - _MOST_ROWS} more", style="dim"))


def _cell(value: Any) -> Styled:
    if value is None:
        return Styled("")

    return Styled(str(value).translate(_CONTROLS))


def _bars(chart: Mapping[str, Any], result: Mapping[str, Any]) -> RenderableType | None:
    """Return a chart's figures as bars; None where it has no groups, or a second one."""
    if chart.get("x") is None or chart.get("series") is not None:
        return None

    columns = list(result["columns"])
    if chart["x"] not in columns or chart["y"] not in columns:
        return None

    x, y = columns.index(chart["x"]), columns.index(chart["y"])
    rows = in_order(chart, columns, result["rows"])[:_MOST_BARS]
    figures = [_number(row[y]) for row in rows]
    longest = max(map(abs, figures), default=Decimal(0))
    if not longest:
        return None

    labels = _labels_of(result, x)
    table = Table.grid(padding=(0, 1))
    for row, figure in zip(rows, figures, strict=True):
        label = labels.get(str(row[x]), row[x])
        width = int(abs(figure) / longest * _BAR_WIDTH)
        style = "red" if figure < 0 else "green"
        bar = Styled("█" * max(width, 1), style=style)
        table.add_row(_cell(label), bar, _cell(figure))

    return table


def _labels_of(result: Mapping[str, Any], column: int) -> Mapping[str, str]:
    """Return what a column's stored values are called, by their texts."""
    by_column = result.get("value_labels")
    if not by_column:
        return {}

    return by_column[column] or {}


def _number(value: Any) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)
