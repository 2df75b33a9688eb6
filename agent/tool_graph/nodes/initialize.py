"""First step: who asks within which limits is known; reads the earlier turns of the conversation and the catalogue."""

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update
from common.errors import DatabaseUnavailable, QueryTimeout, StoreUnavailable
from common.inquiry import Inquiry
from common.text import Text
from common.values import Catalog, Turn

_NO_HISTORY = Text(
    "会话存储暂时不可用，本次回答没有参考之前的对话。",
    "The conversation store is unavailable; this answer does not know the earlier turns.",
)


async def initialize(state: State, runtime: GraphRuntime) -> Update:
    """Puts the question on the workbench, or ends it when nothing may be used for it."""
    context = runtime.context
    update: Update = {"execution_path": ["initialize"]}
    history: tuple[Turn, ...] = ()
    try:
        history = await context.given.recall()
    except StoreUnavailable:
        update["warnings"] = [_NO_HISTORY.to(state["lang"])]
    context.workbench.inquiry = Inquiry(
        question=state["question"],
        lang=state["lang"],
        catalog=await _catalog(runtime),
        table=state["table"],
        context_type=state["context_type"],
        history=history,
    )
    if (limit := context.session.limit_before_model()) is not None:
        update["limit"] = limit
    return update


async def _catalog(runtime: GraphRuntime) -> Catalog:
    """What may be read. Conversation works without a database; tools that need it say what is wrong."""
    try:
        return await runtime.context.given.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        return Catalog(())
