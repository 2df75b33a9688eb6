"""A minimal application with the same libraries, to compare Citu's own cost with.

It has the same Flask under the same gunicorn, a compiled five-node graph, two openai calls, one parse, EXPLAIN and
SELECT on a pooled connection. Its stream says only which node has ended. It has no guard beyond the parse, no
cancellation, no caps, no error handling and no logs.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, TypedDict

import postgast
import psycopg2.pool
from flask import Flask, Response, request
from langgraph.graph import END, START, StateGraph
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


def bare_app(database_url: str, openai_url: str, model: str) -> Flask:
    """The application; connections are made at the first request."""
    app = Flask(__name__)

    @cache
    def pool() -> psycopg2.pool.ThreadedConnectionPool:
        return psycopg2.pool.ThreadedConnectionPool(1, 8, database_url)

    @cache
    def client() -> OpenAI:
        return OpenAI(api_key="bench", base_url=openai_url, timeout=30)

    def ask(prompt: str) -> str:
        reply = client().chat.completions.create(model=model, messages=[{"role": "user", "content": prompt}])
        return reply.choices[0].message.content or ""

    def query(statement: str) -> tuple[list[str], list[list[Any]]]:
        connection = pool().getconn()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return [column.name for column in cursor.description or ()], [list(row) for row in cursor.fetchall()]
        finally:
            connection.rollback()
            pool().putconn(connection)

    def classify(_state: State) -> State:
        return {"kind": "DATABASE"}

    def generate(state: State) -> State:
        sql = ask(f"NO_SQL: Write one PostgreSQL query that answers: {state['question']}")
        postgast.parse(sql)
        query(f"EXPLAIN {sql}")
        return {"sql": sql}

    def execute(state: State) -> State:
        columns, rows = query(state["sql"])
        return {"columns": columns, "rows": rows, "summary": ask(f"Summarise for {state['question']}: {rows[:50]}")}

    def chat(state: State) -> State:
        return {"summary": ask(state["question"])}

    def respond(state: State) -> State:
        keys = ("sql", "columns", "rows", "summary")
        return {"body": {key: state.get(key) for key in keys}}

    graph = StateGraph(State)
    nodes: dict[str, Any] = {
        "classify": classify,
        "generate": generate,
        "execute": execute,
        "chat": chat,
        "respond": respond,
    }
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", lambda state: state["kind"], {"DATABASE": "generate", "CHAT": "chat"})
    graph.add_edge("generate", "execute")
    graph.add_edge("execute", "respond")
    graph.add_edge("chat", "respond")
    graph.add_edge("respond", END)
    compiled = graph.compile()

    @app.post("/api/v0/ask_agent")
    def ask_agent() -> Response:
        state = compiled.invoke({"question": request.get_json()["question"]})
        return Response(
            json.dumps({"data": state["body"]}, ensure_ascii=False, default=str), mimetype="application/json"
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
