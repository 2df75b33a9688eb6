"""Puts what was found into the answer."""

import json
from typing import cast

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.draft_answer import body_of
from agent.flows.etl.finished_drafts import finished_draft
from agent.flows.etl.state import EtlState, EtlUpdate, Json


async def finalize(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the body of the answer; a draft that failed unjudged leaves a lesson."""
    update: EtlUpdate = {"execution_path": ["finalize"]}
    if state["status"] == "failed" and "learned" not in state:
        update["learned"] = await _lesson(state, runtime.context)

    preview = None
    if state.get("artefact"):
        question = runtime.context.question
        kept = await runtime.context.artefacts.find(question.owner, question.run_id)
        if kept is not None and kept.preview:
            preview = json.loads(kept.preview)

    update["answer"] = body_of(cast(EtlState, {**state, **update}), preview)
    return update


async def _lesson(state: EtlState, context: EtlContext) -> Json:
    finished = await finished_draft(state, context)
    return (await context.learning.learn(finished, context.database)).learned
