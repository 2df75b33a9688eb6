"""A minimal application with the same libraries, to compare Citu's own cost with.

It has the same Flask under the same gunicorn, a compiled five-node graph, two openai calls, one
parse, EXPLAIN and SELECT on a pooled connection. Its stream says only which node has ended. It has
no guard beyond the parse, no cancellation, no caps, no error handling and no logs.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypedDict

import postgast
import psycopg2.pool
from flask import Flask, Response, request
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from openai import OpenAI


class State(TypedDict, total=False):
    """The state of the graph."""

    question: str
    kind: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]
    summary: str
    body: dict[str, Any]


class _Bare:
    """The nodes of the graph, and what they use."""

    def __init__(self, database_url: str, openai_url: str, model: str) -> None:
        self._database_url = database_url
        self._openai_url = openai_url
        self._model = model

    @cached_property
    def _pool(self) -> psycopg2.pool.ThreadedConnectionPool:
        return psycopg2.pool.ThreadedConnectionPool(1, 8, self._database_url)

    @cached_property
    def _client(self) -> OpenAI:
        return OpenAI(api_key="bench", base_url=self._openai_url, timeout=30)

    def _ask(self, prompt: str) -> str:
        messages: Any = [{"role": "user", "content": prompt}]
        reply = self._client.chat.completions.create(model=self._model, messages=messages)
        return reply.choices[0].message.content or ""

    def _query(self, statement: str) -> tuple[list[str], list[list[Any]]]:
        connection = self._pool.getconn()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return [column.name for column in cursor.description or ()], [
                    list(row) for row in cursor.fetchall()
                ]
        finally:
            connection.rollback()
            self._pool.putconn(connection)

    def classify(self, _state: State) -> State:
        """Take every question for a data question."""
        return {"kind": "DATABASE"}

    def generate(self, state: State) -> State:
        """Write SQL, parses it and plans it."""
        sql = self._ask(f"NO_SQL: Write one PostgreSQL query that answers: {state['question']}")
        postgast.parse(sql)
        self._query(f"EXPLAIN {sql}")
        return {"sql": sql}

    def execute(self, state: State) -> State:
        """Return rows, and a summary of them."""
        columns, rows = self._query(state["sql"])
        summary = self._ask(f"Summarise for {state['question']}: {rows[:50]}")
        return {"columns": columns, "rows": rows, "summary": summary}

    def chat(self, state: State) -> State:
        """Pass on the model's words."""
        return {"summary": self._ask(state["question"])}

    def respond(self, state: State) -> State:
        """Return the body of the answer."""
        keys = ("sql", "columns", "rows", "summary")
        return {"body": {key: state.get(key) for key in keys}}

    def graph(self) -> CompiledStateGraph[State, None, State, State]:
        """Return the five nodes, compiled."""
        graph = StateGraph(State)
        nodes: tuple[Any, ...] = (
            self.classify,
            self.generate,
            self.execute,
            self.chat,
            self.respond,
        )
        for node in nodes:
            graph.add_node(node.__name__, node)
        graph.add_edge(START, "classify")
        graph.add_conditional_edges(
            "classify", lambda state: state["kind"], {"DATABASE": "generate", "CHAT": "chat"}
        )
        graph.add_edge("generate", "execute")
        graph.add_edge("execute", "respond")
        graph.add_edge("chat", "respond")
        graph.add_edge("respond", END)
        return graph.compile()


def bare_app(database_url: str, openai_url: str, model: str) -> Flask:
    """Return the application; connections are made at the first request."""
    app = Flask(__name__)
    compiled = _Bare(database_url, openai_url, model).graph()

    @app.post("/api/v0/ask_agent")
    def ask_agent() -> Response:
        state = compiled.invoke({"question": request.get_json()["question"]})
        return Response(
            json.dumps({"data": state["body"]}, ensure_ascii=False, default=str),
            mimetype="application/json",
        )

    @app.post("/api/v0/ask_agent_stream")
    def ask_agent_stream() -> Response:
        question = request.get_json()["question"]

        def frames() -> Iterator[str]:
            state: State = {}
            for step in compiled.stream({"question": question}, stream_mode="updates"):
                ((node, update),) = step.items()
                state |= update
                yield f"data: {json.dumps({'data': {'type': 'progress', 'node': node}})}\n\n"
            body = {"type": "completed", **state["body"]}
            yield f"data: {json.dumps({'data': body}, ensure_ascii=False, default=str)}\n\n"

        return Response(frames(), mimetype="text/event-stream")

    @app.get("/health")
    def health() -> str:
        return "ok"

    return app
