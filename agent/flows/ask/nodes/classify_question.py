"""Step 1: looks up the stored values of the question and decides if it is about the data."""

from langgraph.runtime import Runtime

from agent.experience import METHOD, reused
from agent.flows.ask.context import AskContext, inquiry_of
from agent.flows.ask.routing import ROUTING_MODES, SETTLED_BY_EXAMPLES
from agent.flows.ask.state import AskState, AskUpdate
from common.errors import DatabaseUnavailable, QueryTimeout, StoreUnavailable
from common.text import Text
from common.values import Catalog, Classification, SkillResult, Turn

_NO_HISTORY = Text(
    "会话存储暂时不可用，本次回答没有参考之前的对话。",
    "The conversation store is unavailable; this answer does not know the earlier turns.",
)
_PROVEN_BEFORE = Text("问题与一个已验证的示例相同", "The question is that of a verified example")


async def classify_question(state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
    """Decide by the routing mode; see `agent.flows.ask.routing`.

    Raises:
        DatabaseUnavailable, QueryTimeout: the question is not plainly conversation and the
            catalogue can't be read.
    """
    context = runtime.context
    classify = ROUTING_MODES[state["routing_mode"]]
    history, warnings = await _history(state, context)
    state = {**state, "history": history}
    try:
        catalog = await context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        # Conversation must work without a database. Without its words the rules can't judge
        # anything else.
        classified = await context.rules.classify(inquiry_of(state, Catalog(())))
        if state["routing_mode"] != "chat_direct" and classified.value.method != "rule_based_chat":
            raise

        catalog = Catalog(())

    if state["routing_mode"] != "chat_direct":
        is_data = state["routing_mode"] == "database_direct"
        state = {
            **state,
            "found_values": await context.look_up(inquiry_of(state, catalog), is_data),
        }

    inquiry, update = inquiry_of(state, catalog), AskUpdate(execution_path=["classify"])
    if state["routing_mode"] in SETTLED_BY_EXAMPLES:
        update["reused"] = await reused(inquiry, context.experience, context.database)
    if update.get("reused"):
        classified = SkillResult(
            Classification("DATABASE", 1.0, METHOD, _PROVEN_BEFORE.to(state["lang"]))
        )
    else:
        classified = await classify(inquiry, context)

    return {
        **update,
        "history": history,
        "found_values": state.get("found_values", ()),
        "classification": classified.value,
        "usage": classified.usage,
        "warnings": [*warnings, *classified.warnings],
    }


async def _history(state: AskState, context: AskContext) -> tuple[tuple[Turn, ...], list[str]]:
    """Return the earlier turns, or a warning when the store fails: an answer needs none."""
    try:
        return await context.recall(), []
    except StoreUnavailable:
        return (), [_NO_HISTORY.to(state["lang"])]
