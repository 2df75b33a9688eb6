"""Step 1: looks up the stored values of the question and decides if it is about the data."""

from langgraph.runtime import Runtime

from agent.experience import METHOD, reused_sql
from agent.flows.ask.context import AskContext, inquiry_of
from agent.flows.ask.routing import ROUTING_MODES, SETTLED_BY_EXAMPLES
from agent.flows.ask.state import AskState, AskUpdate
from common.errors import DatabaseUnavailable, QueryTimeout, StoreUnavailable
from common.inquiry import StoredValue
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
    history, warnings = await _history(state, context)
    state = {**state, "history": history}
    catalog = await _catalog(state, context)
    found_values = await _found_values(state, catalog, context)
    inquiry = inquiry_of({**state, "found_values": found_values}, catalog)
    update: AskUpdate = {
        "execution_path": ["classify"],
        "history": history,
        "found_values": found_values,
    }
    if state["routing_mode"] in SETTLED_BY_EXAMPLES:
        update["reused"] = await reused_sql(inquiry, context.experience, context.database)

    if update.get("reused"):
        reason = _PROVEN_BEFORE.to(state["lang"])
        classified = SkillResult(Classification("DATABASE", 1.0, METHOD, reason))
    else:
        classified = await ROUTING_MODES[state["routing_mode"]](inquiry, context)

    update["classification"] = classified.value
    update["usage"] = classified.usage
    update["warnings"] = [*warnings, *classified.warnings]
    return update


async def _catalog(state: AskState, context: AskContext) -> Catalog:
    """Return the catalogue; an empty one for conversation, which needs no database.

    Raises:
        DatabaseUnavailable, QueryTimeout: it can't be read, and without its words the rules can't
            tell what the question is.
    """
    try:
        return await context.database.catalog()
    except (DatabaseUnavailable, QueryTimeout):
        no_tables = Catalog(())
        classified = await context.rules.classify(inquiry_of(state, no_tables))
        is_chat = classified.value.method == "rule_based_chat"
        if is_chat or state["routing_mode"] == "chat_direct":
            return no_tables

        raise


async def _found_values(
    state: AskState, catalog: Catalog, context: AskContext
) -> tuple[StoredValue, ...]:
    """Return the stored values that the question names; of plain chat none are looked up."""
    if state["routing_mode"] == "chat_direct":
        return state.get("found_values", ())

    is_data = state["routing_mode"] == "database_direct"
    return await context.look_up(inquiry_of(state, catalog), is_data)


async def _history(state: AskState, context: AskContext) -> tuple[tuple[Turn, ...], list[str]]:
    """Return the earlier turns, or a warning when the store fails: an answer needs none."""
    try:
        return await context.recall(), []
    except StoreUnavailable:
        return (), [_NO_HISTORY.to(state["lang"])]
