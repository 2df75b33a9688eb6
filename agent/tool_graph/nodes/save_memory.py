"""Statements that have run as candidates to learn from: nobody has said yet that they are right.

`save_memory` notes a statement. Which question it answers is known when the whole question is answered: alone, it is
the user's; of several, each answers what its instruction says. So `finalize` keeps them, by the tool `save_memory`,
whose rules hold: a candidate is proven, belongs to its author, and is not used before a person has looked at it.
"""

import logging

from agent.tool_graph.context import GraphContext, GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tool_graph.workbench import Candidate
from agent.tools.registry import Use
from common.llm import ToolCall
from knowledge.second_look import looks_empty

_log = logging.getLogger(__name__)

_TOOL = "save_memory"
_MOST = 3  # statements of one question


async def save_memory(state: State, runtime: GraphRuntime) -> Update:
    """Notes the statement that has just run, unless it found nothing or nothing may be kept."""
    context = runtime.context
    statement, found = context.workbench.statement, state["steps"][0].found
    update: Update = {"is_kept": False, "execution_path": ["save_memory"]}
    if statement is None or found is None or looks_empty(found.result) or not _may_keep(context):
        return update
    context.workbench.candidates.append(Candidate(statement.instruction, found.sql, found.call_id))
    return {**update, "is_kept": True}


def _may_keep(context: GraphContext) -> bool:
    question, noted = context.session.question, context.workbench.candidates
    is_allowed = question.is_credible and context.registry.find(_TOOL, question.actor) is not None
    return is_allowed and len(noted) < _MOST


async def keep_candidates(context: GraphContext) -> None:
    """Keeps what was noted; what can't be kept is no failure of the answer."""
    session, noted = context.session, context.workbench.candidates
    for candidate in noted:
        question = session.question.question if len(noted) == 1 else candidate.instruction
        call = ToolCall(candidate.call_id, _TOOL, {"question": question, "sql": candidate.sql})
        result = await context.registry.execute(call, Use(session.question, session.occasion))
        if result.error_type is not None:
            _log.info("a candidate was not kept: %s", result.error_type)
