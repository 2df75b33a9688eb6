"""Puts what was found into the answer."""

import json

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_answer import body_of
from agent.flows.etl.state import EtlState, EtlUpdate


async def finalize(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the body of the answer."""
    preview = None
    if state.get("artefact"):
        question = runtime.context.question
        kept = await runtime.context.artefacts.find(question.owner, question.run_id)
        if kept is not None and kept.preview:
            preview = json.loads(kept.preview)
    return {"answer": body_of(state, preview), "execution_path": ["finalize"]}
