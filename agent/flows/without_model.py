"""A flow that needs a model, where there is none: another flow answers in its place and says so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.flows.flow import Flow, FlowAnswer, FlowFailure
from agent.question import Question
from common.text import Text
from common.values import Turn

_NEEDS_MODEL = Text(
    "智能体 {name} 需要大模型：请设置 OPENAI_API_KEY（及 OPENAI_BASE_URL、OPENAI_MODEL）。"
    "本回答由离线规则生成。",
    "The agent {name} needs a language model: "
    "set OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL). "
    "Offline rules produced this answer.",
)


class WithoutModel:
    """Implements `Flow`: answers as `inner` does, under the name of the flow that needs a model."""

    def __init__(self, name: str, inner: Flow) -> None:
        self.name = name
        self.labels = inner.labels
        self.last_node = inner.last_node
        self.most_steps = inner.most_steps
        self.deadline_s = inner.deadline_s
        self.durability = inner.durability
        self.graph = inner.graph
        self.start = inner.start
        self.context = inner.context
        self.summary = inner.summary
        self._inner = inner

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        """Return the inner flow's answer with a warning that says what this one needs."""
        ending = self._inner.ending(state)
        if isinstance(ending, FlowFailure):
            return ending

        notice = Text(
            _NEEDS_MODEL.zh.format(name=self.name), _NEEDS_MODEL.en.format(name=self.name)
        )
        warnings = [notice.to(state["lang"]), *ending.body.get("warnings", ())]
        return replace(ending, body={**ending.body, "warnings": warnings})

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn | None:
        return self._inner.turn(question, state, answer)
