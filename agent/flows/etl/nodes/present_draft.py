"""Puts what was found into the answer."""

import json
from typing import cast

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.draft_answer import body_of
from agent.flows.etl.finished_drafts import finished_draft
from agent.flows.etl.state import EtlState, EtlUpdate, Json


async def finalize(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the body of the answer.

    A draft that failed before its user could judge it is learnt from here.
    """
    update: EtlUpdate = {"execution_path": ["finalize"]}
    if state["status"] == "failed" and "learned" not in state:
        update["learned"] = await _lesson(state, runtime.context)

    preview = await _preview(runtime.context) if state.get("artefact") else None
    update["answer"] = body_of(cast(EtlState, {**state, **update}), preview)
    return update


async def _preview(context: EtlContext) -> Json | None:
    """Return the preview that is kept with the run's artefact, if there is one."""
    artefact = await context.artefacts.find(context.question.owner, context.question.run_id)
    if artefact is None or not artefact.preview:
        return None

    preview: Json = json.loads(artefact.preview)
    return preview


async def _lesson(state: EtlState, context: EtlContext) -> Json:
    finished = await finished_draft(state, context)
    return (await context.learning.learn(finished, context.database)).learned
