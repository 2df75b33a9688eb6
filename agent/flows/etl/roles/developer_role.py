"""The developer role by a model: SQL for nodes of the plan, which counts once it is proven equal.

What is submitted is one harmless query over the node's inputs that the review has nothing against.
Whether it means what the request means, only the tester finds out.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import (
    bound_intent,
    further_step,
    rules_draft,
    sql_of,
    unwritten_draft,
)
from agent.flows.etl.etl_texts import PLAN_NOT_TAKEN, SQL_NOT_TAKEN, TRIED_OFTEN, with_value
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import invalid_submission, submit_tool
from agent.flows.etl.rules_fallback import rules_fallback
from agent.flows.etl.state import MOST_REPAIRS, EtlState, EtlUpdate, Json
from agent.tools.tool import Arguments
from common.errors import QueryTimeout
from common.ports import Database
from common.text import Text
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.plan_review import review
from etl.planning.proposed_plans import rules_models, unwritten, writable
from etl.planning.user_sql import with_user_sql
from etl.rendering.one_query import one_query
from etl.schemas.plan import ArchitecturePlan

_SQL_MISTAKES = "42"  # SQLSTATEs about names, types and syntax
_MOST_SQL_CHARS = 20_000
_MOST_NOTES = 4_000
_MOST_WRONG = 2  # of one node, before it is left to the rules
_MOST_FOUND = 20  # failing tests that the model is told


class SubmitSql(Arguments):
    """The arguments of `submit_sql`."""

    node: str = Field(description="Name of the node.")
    sql: str = Field(
        min_length=1,
        max_length=_MOST_SQL_CHARS,
        description=f"One SELECT, at most {_MOST_SQL_CHARS} characters.",
    )
    notes: str | None = Field(default=None, max_length=_MOST_NOTES)


class ModelSql:
    """The SQL that a model submits, node by node.

    Args:
        base: the draft that it is put into.
        nodes: names of the nodes that it may write.
        database: judges the SQL as who asks.
    """

    def __init__(
        self, base: Draft, bound: BoundIntent, nodes: Sequence[str], database: Database
    ) -> None:
        self._base = base
        self._database = database
        self._bound = bound
        self._wanted = nodes
        self.written: dict[str, str] = {}

    @property
    def is_done(self) -> bool:
        return len(self.written) == len(self._wanted)

    async def take(self, submission: SubmitSql) -> str:
        """Take the SQL of one node.

        Raises:
            StatementRejected: it is not one harmless query over the node's inputs.
            InvalidRequest: there is no such node to be written, its columns are not those of the
                plan, or the review has found an error in it.
        """
        if submission.node not in self._wanted:
            raise invalid_submission(
                f"Only these nodes are to be written: {', '.join(self._wanted)}."
            )

        draft = await asyncio.to_thread(self._checked, submission.node, submission.sql)
        # As what a user changes: nothing that the user could not query is in it.
        await self._database.inspect(await asyncio.to_thread(one_query, draft))
        self.written[submission.node] = submission.sql
        left = [name for name in self._wanted if name not in self.written]
        return f"Accepted. Still to be written: {', '.join(left)}."

    def _checked(self, name: str, sql: str) -> Draft:
        """Return the draft with the SQL, once the review has nothing against it."""
        draft = with_user_sql(self._base, {name: sql})
        model = draft.model(name)
        names = [column.name for column in model.node.columns]
        if list(model.select.named_selects) != names:
            raise invalid_submission(
                f"{name} has to give these columns, in this order: {', '.join(names)}."
            )

        errors = []
        for issue in review(draft, self._bound, "en").issues:
            if issue.severity == "error" and issue.node == name:
                errors.append(f"{issue.message} {issue.suggestion}")

        if errors:
            raise invalid_submission(" ".join(errors))

        return draft


async def developed(state: EtlState, context: EtlContext) -> EtlUpdate:
    """Return the code of all nodes, with the model's SQL where it submitted any.

    The rules' own draft comes in its place when the model has no further attempt, or left a node
    of its plan without SQL.
    """
    plan = ArchitecturePlan.model_validate(state["plan"])
    rules = await rules_draft(state, context)
    before, attempts = _handed_in(state)
    is_repair = "tests" in state
    written: Mapping[str, str] = {}
    if attempts < MOST_REPAIRS and not _is_too_slow(state):
        written = await _written(plan, rules, state, context)
    if is_repair and not written:
        number = Text(str(attempts), str(attempts))
        _warn(context, with_value(SQL_NOT_TAKEN, with_value(TRIED_OFTEN, number)))
        return await rules_fallback(state, context)

    together = {**before, **written}
    if set(unwritten(plan, rules)) - set(together):
        if further_step(state) is None:  # else the tester says what is missing
            _warn(context, PLAN_NOT_TAKEN)

        return await rules_fallback(state, context)

    return {"code": _code(plan, rules, together, attempts + 1), "execution_path": []}


def _handed_in(state: EtlState) -> tuple[dict[str, str], int]:
    """Return the model's SQL of earlier attempts, by node, and how many there were."""
    sql: dict[str, str] = {}
    attempts = 0
    for code in state.get("code", []):
        if code["method"] == "llm":
            sql[code["node"]] = str(code["sql"])
            attempts = max(attempts, int(code["attempts"]))

    return sql, attempts


def _code(
    plan: ArchitecturePlan, rules: Draft, written: Mapping[str, str], attempts: int
) -> list[Json]:
    own = rules_models(rules)
    code: list[Json] = []
    for node in plan.nodes:
        entry: Json = {"node": node.name, "method": "rules", "attempts": 1}
        if node.name in written:
            entry |= {"sql": written[node.name], "method": "llm", "attempts": attempts}
        else:
            entry["sql"] = sql_of(own[node.name])

        code.append(entry)

    return code


async def _written(
    plan: ArchitecturePlan, rules: Draft, state: EtlState, context: EtlContext
) -> Mapping[str, str]:
    """Return what the model submits now, by node."""
    base = unwritten_draft(state, rules)
    # Before a further node all is the rules', so that at least its input is proven.
    nodes = [base.target.name] if base.target.is_further else writable(plan, rules)
    if context.roles is None or not nodes:
        return {}

    bound = await bound_intent(state, context)
    writing = ModelSql(base, bound, nodes, context.database)
    opening = await context.roles.prompts.of_tables(
        "etl_sql",
        state,
        await context.database.catalog(),
        [source.table for source in bound.sources],
        intent=_told_intent(state),
        plan=plan.model_dump(mode="json"),
        findings=_findings(state),
        nodes=nodes,
    )
    tool = submit_tool(
        "submit_sql",
        Text("提交SQL", "Hand in SQL"),
        "Hands in the SELECT of one node.",
        SubmitSql,
        writing.take,
    )
    task = RoleTask(
        "developer_agent",
        opening,
        tool,
        lambda: writing.is_done,
        most_submissions=len(nodes),
        most_wrong=_MOST_WRONG,
    )
    await context.roles.model.attempt(task, state)
    return writing.written


def _told_intent(state: EtlState) -> Json:
    """Return the intent, with the step that none of its operations says."""
    intent: Json = state["analysis"]["intent"]
    step = further_step(state)
    if step is None:
        return intent

    return {**intent, "further": step.model_dump(mode="json")}


def _findings(state: EtlState) -> dict[str, Any]:
    """Return what the model is told of its last attempt: which tests failed, never any rows."""
    if "tests" not in state:
        return {}

    failing = [test for test in state["tests"]["tests"] if test["status"] == "fail"]
    told = [
        {name: one[name] for name in ("id", "kind", "node", "failures")}
        for one in failing[:_MOST_FOUND]
    ]
    earlier = {
        code["node"]: code["sql"] for code in state.get("code", []) if code["method"] == "llm"
    }
    return {"failing_tests": told, "error": _told(state.get("failure")), "your_sql": earlier}


def _told(failure: Json | None) -> str:
    """Return what a model may be told of a failed build: of mistakes in SQL, never of values."""
    if failure is None:
        return ""

    sqlstate = str(failure["sqlstate"])
    is_about_sql = sqlstate.startswith(_SQL_MISTAKES)
    if is_about_sql:
        return str(failure["message"])

    return f"PostgreSQL's error {sqlstate}"


def _is_too_slow(state: EtlState) -> bool:
    """Tell whether the last build took longer than it may."""
    failure = state.get("failure")
    return failure is not None and failure["error_type"] == QueryTimeout.error_type


def _warn(context: EtlContext, text: Text) -> None:
    if context.roles is not None:
        context.roles.model.warn(text)
