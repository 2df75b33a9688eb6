"""Asks which column of `gauge` is wanted and how many rows, reads them, and says them; what is no
survey is talk.
"""

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from agent.bootstrap import FlowDependencies
from agent.flows.ask.context import AskContext
from agent.flows.flow import (
    Durability,
    FlowAnswer,
    FlowFailure,
    StepDescription,
    StepLabel,
    UserQuestion,
    ask_user,
)
from agent.progress import Write
from agent.question import Question
from agent.token_batches import emitting
from common.inquiry import Inquiry
from common.text import Lang, Text
from common.values import Catalog, Turn

SURVEY = "survey"  # the question that begins one
COUNT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": 3}


class State(TypedDict, total=False):
    question: str
    lang: Lang
    wants_tokens: bool
    column: str
    count: int
    rows: list[list[Any]]
    said: str


Node = Runtime[AskContext]


async def choose(state: State, runtime: Node) -> State:
    """Return which column; needs the database to know what there is."""
    tables = (await runtime.context.database.catalog()).tables
    columns = [column.name for table in tables if table.name == "gauge" for column in table.columns]
    return {"column": ask_user(UserQuestion("choice", "Which column?", choices=columns))}


async def limit(state: State, runtime: Node) -> State:
    """Return how many rows."""
    return {
        "count": ask_user(
            UserQuestion("number", f"How many of {state['column']}?", schema=COUNT_SCHEMA)
        )
    }


async def read(state: State, runtime: Node) -> State:
    """Read them."""
    sql = f"SELECT {state['column']} FROM gauge ORDER BY 1 LIMIT {state['count']}"
    result = await runtime.context.database.run(sql)
    return {"rows": [list(row) for row in result.rows]}


async def say(state: State, runtime: Node) -> State:
    """Return the rows, or talk, piece by piece."""
    if "rows" in state:
        return {"said": ", ".join(str(row[0]) for row in state["rows"])}
    inquiry = Inquiry(state["question"], state["lang"], Catalog(()))
    with emitting(state["wants_tokens"], runtime.context.write) as emit:
        outcome = await runtime.context.skills.chat(inquiry, emit)
    return {"said": outcome.value}


def _face(name: str, icon: str) -> StepLabel:
    text = Text(name, name)
    described = StepDescription(text, text)
    return StepLabel(text, icon, f"{name}ing", f"{name}d", described, lambda _: described)


class SurveyFlow:
    """Implements `agent.flows.flow.Flow`."""

    name = "survey"
    labels: Mapping[str, StepLabel] = {
        "choose": _face("choose", "?"),
        "limit": _face("limit", "#"),
    } | {
        "read": _face("read", "="),
        "say": _face("say", "!"),
    }
    last_node = "say"
    most_steps = 10
    deadline_s = 30.0
    durability: Durability | None = None

    def __init__(self, dependencies: FlowDependencies) -> None:
        self._new_context = dependencies.new_context
        graph = StateGraph(State, context_schema=AskContext)
        for node in (choose, limit, read, say):
            graph.add_node(node)
        graph.add_conditional_edges(
            START, lambda state: "choose" if state["question"] == SURVEY else "say"
        )
        graph.add_edge("choose", "limit")
        graph.add_edge("limit", "read")
        graph.add_edge("read", "say")
        graph.add_edge("say", END)
        self.graph: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(
            checkpointer=dependencies.store.checkpoints
        )

    def start(self, question: Question) -> State:
        return {
            "question": question.question,
            "lang": question.answer_lang,
            "wants_tokens": question.stream_tokens,
        }

    def context(self, question: Question, write: Write) -> AskContext:
        return self._new_context(question, write)

    def summary(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {key: state[key] for key in ("column", "count") if key in state}

    def ending(self, state: Mapping[str, Any]) -> FlowAnswer | FlowFailure:
        return FlowAnswer({"response_type": "CHAT", "response": state["said"], "warnings": []})

    def turn(self, question: Question, state: Mapping[str, Any], answer: FlowAnswer) -> Turn:
        return Turn(
            question.run_id,
            question.question,
            "CHAT",
            "survey",
            cast(str, state["said"]),
            question.asked_at,
        )
