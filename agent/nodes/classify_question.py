"""Step 1: is this a question about the data, or conversation?"""

from langgraph.runtime import Runtime

from agent.context import Context, inquiry_of
from agent.routing import ROUTING_MODES
from agent.state import State, Update
from common.errors import DatabaseUnavailable, QueryTimeout
from common.values import Catalog


async def classify_question(state: State, runtime: Runtime[Context]) -> Update:
    """Decides by the routing mode; see `agent.routing`.

    Raises:
        DatabaseUnavailable, QueryTimeout: the question is not plainly conversation and the catalogue can't be read.
    """
    context = runtime.context
    classify = ROUTING_MODES[state["routing_mode"]]
    try:
        catalog = await context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        # Conversation must work without a database; anything else would be answered wrongly without its words.
        thought = await context.rules.classify(inquiry_of(state, Catalog(())))
        if state["routing_mode"] != "chat_direct" and thought.value.method != "rule_based_chat":
            raise
        catalog = Catalog(())
    thought = await classify(inquiry_of(state, catalog), context)
    return {
        "classification": thought.value,
        "usage": thought.usage,
        "warnings": list(thought.warnings),
        "execution_path": ["classify"],
    }
