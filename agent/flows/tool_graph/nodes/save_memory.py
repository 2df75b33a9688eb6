"""Statements that have run as candidates to learn from: nobody has said yet that they are right.

`save_memory` notes a statement. Which question it answers is known when the whole question is
answered: alone, it is the user's; of several, each answers what its instruction says. So `finalize`
keeps them, by the tool `save_memory`,
whose rules hold: a candidate is proven, belongs to its author, and is not used before a person has
looked at it.
"""

import logging

from agent.flows.tool_graph.context import GraphRuntime, ToolGraphContext
from agent.flows.tool_graph.scratchpad import ExampleCandidate
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.tools.registry import Use
from knowledge.values.second_look import looks_empty
from llm import ToolCall

_log = logging.getLogger(__name__)

_TOOL = "save_memory"
_MOST = 3  # statements of one question


async def save_memory(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Notes the statement that has just run, unless it found nothing or nothing may be kept."""
    context = runtime.context
    statement, found = context.scratchpad.statement, state["steps"][0].found
    update: ToolGraphUpdate = {"is_kept": False, "execution_path": ["save_memory"]}
    if statement is None or found is None or looks_empty(found.result) or not _may_keep(context):
        return update
    context.scratchpad.candidates.append(
        ExampleCandidate(statement.instruction, found.sql, found.call_id)
    )
    return {**update, "is_kept": True}


def _may_keep(context: ToolGraphContext) -> bool:
    question, noted = context.session.question, context.scratchpad.candidates
    is_allowed = question.is_credible and context.registry.find(_TOOL, question.actor) is not None
    return is_allowed and len(noted) < _MOST


async def keep_candidates(context: ToolGraphContext) -> None:
    """Keeps what was noted; what can't be kept is no failure of the answer."""
    session, noted = context.session, context.scratchpad.candidates
    for candidate in noted:
        question = session.question.question if len(noted) == 1 else candidate.instruction
        call = ToolCall(candidate.call_id, _TOOL, {"question": question, "sql": candidate.sql})
        result = await context.registry.execute(call, Use(session.question, session.occasion))
        if result.error_type is not None:
            _log.info("a candidate was not kept: %s", result.error_type)
