"""Step 2 of conversation: an answer without a query."""

from langgraph.runtime import Runtime

from agent.ask.context import Context, emitter, inquiry_of
from agent.ask.state import State, Update
from common.errors import DatabaseUnavailable, QueryTimeout
from common.values import Catalog


async def agent_chat(state: State, runtime: Runtime[Context]) -> Update:
    """Writes the answer, and emits it piece by piece."""
    try:
        catalog = await runtime.context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        catalog = Catalog(())
    with emitter(state, runtime) as emit:
        thought = await runtime.context.skills.chat(inquiry_of(state, catalog), emit)
    return {
        "chat_response": thought.value,
        "usage": thought.usage,
        "warnings": list(thought.warnings),
        "execution_path": ["agent_chat"],
    }
