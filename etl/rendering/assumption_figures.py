"""The rows and the amount that an assumption decides about, in words."""

from collections.abc import Mapping

from common.text import Lang, Text
from etl.schemas.requirement import Assumption

_ROWS = Text("涉及{of} {rows} 行", "decides about {rows} rows{of}")
_ONE_ROW = Text("涉及{of} 1 行", "decides about 1 row{of}")
_AMOUNT = Text("，合计 {amount}", ", {amount} in all")
_OF: Mapping[str | None, Text] = {
    "sample": Text("样本中的", " of the sample"),
    "whole": Text("全部数据中的", " of all"),
    None: Text("", ""),
}


def figures_of(assumption: Assumption, lang: Lang) -> str:
    """Return the figures of an assumption; nothing where they were not counted."""
    if assumption.rows is None:
        return ""

    rows = _ONE_ROW if assumption.rows == 1 else _ROWS
    text = rows.to(lang).format(rows=assumption.rows, of=_OF[assumption.of].to(lang))
    if assumption.amount is None:
        return text

    return text + _AMOUNT.to(lang).format(amount=assumption.amount)
