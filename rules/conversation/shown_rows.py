"""Figures over the rows or groups that an answer has shown: "the sum of these", "their total amount"."""

from collections.abc import Sequence, Set

from common.text import Text
from rules.composing.asked import Asked
from rules.query.query import Figure, Function, Query
from rules.query.refusals import Refusal, nothing_to_change

_ONLY_FIRST = Text("可以汇总的完整结果，只列出了前几条", "complete result to add up, only its first rows")
_ONLY_SOME = Text("可以汇总的完整结果，只列出了一部分分组", "complete result to add up, only some of its groups")
_NO_TOTALS = Text("可以相加的合计或数量", "totals or counts to add up")


class ShownInPart(Refusal):
    """A figure of what was shown, of which no statement tells. No other reading of the question is tried."""

    def __init__(self, what: Text) -> None:
        refusal = nothing_to_change(what)
        super().__init__(refusal.reason, refusal.text)


def asks_their_sum(query: Query, asked: Asked, figures: Sequence[Figure]) -> bool:
    """Whether the figure that is asked of the groups before is the sum of what these have."""
    if not query.dimensions or len(figures) != 1:
        return False
    figure = figures[0]
    if figure.function is None and asked.question.words[figure.position].mark.means("sum"):
        return True
    return figure.function == "sum" and asked.measure(figure) in query.measures


def refuse_rows_in_part(query: Query) -> None:
    """Refuses a figure over listed rows of which only the first were shown.

    Raises:
        Refusal: the statement would take in the others as well.
    """
    if query.limit is not None:
        raise ShownInPart(_ONLY_FIRST)


def refuse_part(query: Query, cues: Set[str], function: Function) -> None:
    """Refuses a function over rows or groups of which only some were shown, or of figures that it can't add up.

    Raises:
        Refusal: a statement without the limit, or without the groups' comparison, would take in the others as well.
    """
    adds_up = function == "sum" and bool(query.dimensions)
    if "these" in cues or adds_up or not query.measures:
        refuse_rows_in_part(query)
    if adds_up and query.having:
        raise ShownInPart(_ONLY_SOME)
    if "these" in cues and adds_up and any(one.function not in ("sum", "count") for one in query.measures):
        raise ShownInPart(_NO_TOTALS)
