"""Keeps what the user said of the draft."""

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.state import EtlState, EtlUpdate


async def learning_handler(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:  # noqa: ARG001
    """Return what was learnt."""
    return {"learned": {"example": None, "lesson": None}, "execution_path": ["learning_handler"]}
