"""Has the operator's renderers add cards to answers, within bounds."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from agent.extensions.points import Card, ResultKind, ResultRenderer, Tone
from agent.question import Question
from common.loopback import is_safe_address

_log = logging.getLogger(__name__)

_TONES = frozenset(get_args(Tone))
_MOST_CARDS = 6
_MOST_FACTS = 20
_MOST_TITLE = 200  # characters
_MOST_TEXT = 2000


def with_cards(
    content: Callable[[], dict[str, Any]],
    renderers: Sequence[ResultRenderer],
    question: Question,
) -> Callable[[], dict[str, Any]]:
    """Return what makes an answer's `data`, with `cards` where a renderer gives some."""

    def made() -> dict[str, Any]:
        data = content()
        cards = _cards(data, renderers, question)
        if cards:
            data = {**data, "cards": cards}

        return data

    return made


def kind_of(answer: Mapping[str, Any]) -> ResultKind:
    """Return what an answer is."""
    if answer.get("response_type") == "ETL":
        return "draft"

    result, chart = answer.get("query_result"), answer.get("chart")
    if not result:
        return "text"
    if not chart:
        return "table"

    return "number" if chart.get("type") == "number" else "chart"


def _cards(
    data: Mapping[str, Any], renderers: Sequence[ResultRenderer], question: Question
) -> list[dict[str, Any]]:
    kind = kind_of(data)
    cards: list[dict[str, Any]] = []
    for renderer in renderers:
        if kind not in renderer.kinds:
            continue

        try:
            cards += [_card_json(card) for card in renderer.render(data, question)]
        except Exception:  # noqa: BLE001 - the answer is there without it
            _log.exception("a renderer failed", extra={"run_id": question.run_id})

    return cards[:_MOST_CARDS]


def _card_json(card: Card) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "title": card.title[:_MOST_TITLE],
        "text": card.text[:_MOST_TEXT],
        "tone": card.tone if card.tone in _TONES else "neutral",
        "facts": [
            {"label": str(label)[:_MOST_TITLE], "value": str(value)[:_MOST_TITLE]}
            for label, value in list(card.facts)[:_MOST_FACTS]
        ],
    }
    if card.share is not None:
        shown["share"] = min(max(float(card.share), 0.0), 1.0)
    if card.link and is_safe_address(card.link):
        shown["link"] = card.link

    return shown
