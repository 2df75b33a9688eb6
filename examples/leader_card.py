"""A renderer: beside every chart, a card with the first row and its share of all.

RESULT_RENDERERS=examples.leader_card:leader_card
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from agent.extensions.points import Card, Provided, ResultKind
from agent.question import Question
from common.text import Text

_LEADS = Text("{} 居首", "{} leads")
_SHARE = Text("占所示各行合计的 {:.0%}", "{:.0%} of all rows that are shown")


class LeaderCard:
    """Implements `ResultRenderer`."""

    kinds: frozenset[ResultKind] = frozenset({"chart"})

    def render(self, answer: Mapping[str, Any], question: Question) -> Sequence[Card]:
        """Return the card; none where the chart's figures can't be added up."""
        chart, result = answer["chart"], answer["query_result"]
        names = _values(result, chart["x"])
        try:
            figures = [Decimal(str(value)) for value in _values(result, chart["y"])]
        except InvalidOperation:
            return ()

        total = sum(figures)
        if len(figures) < 2 or total <= 0 or min(figures) < 0:
            return ()

        best = figures.index(max(figures))
        share = float(figures[best] / total)
        lang = question.answer_lang
        title = _LEADS.to(lang).format(names[best])
        return [Card(title, _SHARE.to(lang).format(share), "good", share=share)]


def _values(result: Mapping[str, Any], column: str) -> list[Any]:
    place = result["columns"].index(column)
    return [row[place] for row in result["rows"]]


def leader_card(_provided: Provided) -> LeaderCard:
    """Return the renderer; `RESULT_RENDERERS` names this function."""
    return LeaderCard()
