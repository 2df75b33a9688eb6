"""Learns from the user's rating."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.finished_drafts import finished_draft
from agent.flows.etl.state import EtlState, EtlUpdate


async def learning_handler(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Learn from the finished draft; return what was learnt, or why nothing was."""
    context = runtime.context
    finished = await finished_draft(state, context)
    learnt = await context.learning.learn(finished, context.database)
    return {
        "learned": learnt.learned,
        "warnings": [notice.to(state["lang"]) for notice in learnt.notices],
        "execution_path": ["learning_handler"],
    }
