"""The nodes of the graph, in the order in which a question goes through them.

`initialize` and `memory_search` gather what is known; `think` asks the model; a node for each
virtual tool and one for all others answer its calls; `save_memory` notes statements to learn from;
`finalize` makes the answer's body.
"""

import asyncio
import logging
from dataclasses import replace
from datetime import date

from agent.flows.tool_graph.context import GraphRuntime, ToolGraphContext
from agent.flows.tool_graph.routing import NODE_OF
from agent.flows.tool_graph.scratchpad import ExampleCandidate
from agent.flows.tool_graph.state import ToolGraphState, ToolGraphUpdate
from agent.token_batches import emitting
from agent.tools.answer import ToolAnswer, completed_body, found_so_far, limit_warning
from agent.tools.dialogue import Dialogue, ModelReply, reply_to
from agent.tools.registry import Use
from agent.tools.session import LimitReached
from agent.tools.tool import ToolResult
from agent.tools.tool_context import prepared_question, with_experience
from agent.tools.transcript import complete_exchange
from common.errors import PromptTooLong
from common.text import Text
from knowledge.values.filter_correction import looks_empty
from llm import ToolCall, ToolOffer

_log = logging.getLogger(__name__)

FLOW = "tool_graph"

_NO_ROOM = Text(
    "对话已超出大模型的上下文长度。", "The conversation no longer fits into the model's context."
)
_READ_THE_SCHEMA = frozenset({"search_schema", "describe_table"})
_SAVE_MEMORY = "save_memory"
_MOST_CANDIDATES = 3  # statements of one question


# ------------------------------------------------------------------------------
# the beginning


async def initialize(
    state: ToolGraphState,  # noqa: ARG001 - the name LangGraph wants
    runtime: GraphRuntime,
) -> ToolGraphUpdate:
    """Gather what is known of the question, or end it when nothing may be used for it.

    Raises:
        DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
    """
    context = runtime.context
    beginning = await prepared_question(context.agent_context)
    update: ToolGraphUpdate = {
        "inquiry": beginning.inquiry,
        "warnings": list(beginning.warnings),
        "execution_path": ["initialize"],
    }
    limit = context.session.limit_before_model()
    return update if limit is None else {**update, "limit": limit}


async def memory_search(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Write the beginning of the dialogue.

    A schema that it shows whole is known from here on; of a larger one it shows the part that the
    question is about, and the model has to look the tables up that it wants to query.
    """
    agent_context, scratchpad = runtime.context.agent_context, runtime.context.scratchpad
    inquiry = await with_experience(state["inquiry"], agent_context)
    prompt = await agent_context.first_prompts.write(inquiry, FLOW)
    scratchpad.inquiry = inquiry
    if prompt.has_whole_schema:
        scratchpad.was_shown_tables()

    return {
        "inquiry": inquiry,
        "dialogue": Dialogue.begin(prompt),
        "execution_path": ["memory_search"],
    }


# ------------------------------------------------------------------------------
# the model


async def think(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Ask the model once, unless calls of its latest reply still wait for their results.

    Raises:
        LlmUnavailable: the model can't be reached, or gives nothing usable.
    """
    context = runtime.context
    if state.get("pending"):
        return _before_calls({"pending": state["pending"], "execution_path": ["think"]}, context)

    done, offer = ToolGraphUpdate(execution_path=["think"]), _offer(context)
    try:
        replied = await reply_to(
            _so_far(state), context.session, offer, context.agent_context.write
        )
    except LimitReached as reached:
        return {**done, "limit": reached.text}
    except PromptTooLong:
        if not context.session.found:
            raise

        return {**done, "limit": _NO_ROOM}

    return _update_of_reply(
        {**done, "dialogue": replied.dialogue, "reply": replied.reply}, replied, offer, context
    )


def _so_far(state: ToolGraphState) -> Dialogue:
    """Return the dialogue with the latest reply and the results of its calls."""
    if "reply" not in state:
        return state["dialogue"]

    return state["dialogue"].with_exchange(complete_exchange(state["reply"], state["results"]))


def _offer(context: ToolGraphContext) -> ToolOffer | None:
    """Return the tools that may be called now; the last possible reply may call none.

    No later reply could tell what came of such a call.
    """
    tools = tuple(tool.definition for tool in context.offered())
    if not tools:
        return None

    return ToolOffer(tools, choice="none" if context.session.is_last_model_call else "auto")


def _update_of_reply(
    update: ToolGraphUpdate, replied: ModelReply, offer: ToolOffer | None, context: ToolGraphContext
) -> ToolGraphUpdate:
    calls = replied.reply.tool_calls
    if not calls:
        return {**update, "is_answered": True}

    update |= {
        "pending": calls,
        "results": {},
        "offered": offer.names if offer is not None else frozenset(),
    }
    limit = context.session.limit_before_model()  # no reply could tell what comes of these calls
    if limit is None:
        return _before_calls(update, context)

    return {**update, "limit": limit}


def _before_calls(update: ToolGraphUpdate, context: ToolGraphContext) -> ToolGraphUpdate:
    """Return the update before calls are made, with the limit that forbids them if there is one."""
    limit = context.session.limit_before_tool()
    return update if limit is None else {**update, "limit": limit}


# ------------------------------------------------------------------------------
# calls


async def get_schema(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Describe the tables that the call names."""
    result = await _answered(state["pending"][0], state, runtime)
    return _written(state, "get_schema", (result,))


async def generate_sql(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Put a statement up, proven by guard and EXPLAIN; the one before is given up."""
    call, scratchpad = state["pending"][0], runtime.context.scratchpad
    scratchpad.begins(call)
    result = await _answered(call, state, runtime)
    scratchpad.ended(call)
    _forget_estimates(call, runtime)
    update = _written(state, "generate_sql", (result,))
    if scratchpad.statement is not None:
        update |= {"sql": scratchpad.statement.sql, "plan": scratchpad.statement.plan}

    return update


def _forget_estimates(call: ToolCall, runtime: GraphRuntime) -> None:
    """Forget the planner's estimates: no figure of the answer may be traced to them."""
    results = runtime.context.session.results
    if call.id in results:
        results[call.id] = replace(results[call.id], text="")


async def execute_sql(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Run the statement that is proven."""
    statement = runtime.context.scratchpad.statement
    result = await _answered(
        state["pending"][0], state, runtime, statement.sql if statement is not None else ""
    )
    return _written(state, "execute_sql", (result,))


async def execute_tools(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Run the calls before the next one of a virtual tool in order, as far as the limits allow."""
    context = runtime.context
    results: list[ToolResult] = []
    limit = None
    for call in state["pending"]:
        limit = context.session.limit_before_tool()
        if limit is not None or call.name in NODE_OF:
            break

        result = await _answered(call, state, runtime)
        results.append(result)
        if call.name in _READ_THE_SCHEMA and result.error_type is None:
            context.scratchpad.was_shown_tables()

    update = _written(state, "execute_tools", tuple(results))
    return update if limit is None else {**update, "limit": limit}


async def _answered(
    call: ToolCall, state: ToolGraphState, runtime: GraphRuntime, depends_on: str = ""
) -> ToolResult:
    """Run the call and return its result.

    A tool is only run if the model was offered it, and it may still be called: an earlier call of
    the same reply may have changed that.

    Args:
        depends_on: see `ToolSession.call`.
    """
    context = runtime.context
    offered = state["offered"] & {tool.name for tool in context.offered()}
    return await context.session.call(
        call, context.registry, context.agent_context.write, offered, depends_on
    )


def _written(state: ToolGraphState, node: str, results: tuple[ToolResult, ...]) -> ToolGraphUpdate:
    """Return the update of a node that has answered the first of the pending calls."""
    done, pending = state["pending"][: len(results)], state["pending"][len(results) :]
    texts_by_call = {call.id: result.text for call, result in zip(done, results, strict=True)}
    return {
        "results": {**state["results"], **texts_by_call},
        "pending": pending,
        "steps": results,
        "execution_path": [node],
    }


# ------------------------------------------------------------------------------
# what is learnt

# Statements that have run are candidates to learn from: nobody has said yet that they are right.
# `save_memory` notes a statement. Which question it answers is known when the whole question is
# answered: alone, it is the user's; of several, each answers what its instruction says. So
# `finalize` keeps them, by the tool `save_memory`, whose rules hold: a candidate is proven, belongs
# to its author, and is not used before a person has looked at it.


async def save_memory(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Note the statement that has just run, unless it found nothing or nothing may be kept."""
    context = runtime.context
    statement, found = context.scratchpad.statement, state["steps"][0].found
    update: ToolGraphUpdate = {"is_kept": False, "execution_path": ["save_memory"]}
    if statement is None or found is None or looks_empty(found.result) or not _may_keep(context):
        return update

    context.scratchpad.candidates.append(
        ExampleCandidate(statement.instruction, found.sql, found.call_id)
    )
    return {**update, "is_kept": True}


def _may_keep(context: ToolGraphContext) -> bool:
    question, noted = context.session.question, context.scratchpad.candidates
    is_allowed = (
        question.is_credible and context.registry.find(_SAVE_MEMORY, question.actor) is not None
    )
    return is_allowed and len(noted) < _MOST_CANDIDATES


async def _keep_candidates(context: ToolGraphContext) -> None:
    """Keep what was noted; what can't be kept is no failure of the answer."""
    session, noted = context.session, context.scratchpad.candidates
    for candidate in noted:
        question = session.question.question if len(noted) == 1 else candidate.instruction
        call = ToolCall(
            candidate.call_id, _SAVE_MEMORY, {"question": question, "sql": candidate.sql}
        )
        result = await context.registry.execute(call, Use(session.question, session.occasion))
        if result.error_type is not None:
            _log.info("a candidate was not kept: %s", result.error_type)


# ------------------------------------------------------------------------------
# the end


async def finalize(state: ToolGraphState, runtime: GraphRuntime) -> ToolGraphUpdate:
    """Write `answer` into the state; at a limit, rules put the results so far into words."""
    context, inquiry = runtime.context, state["inquiry"]
    session = context.session
    text = state["dialogue"].told if "dialogue" in state else ""
    warnings = state["warnings"]
    if "limit" in state:
        session.leave_out(state.get("pending", ()), context.registry)
        warnings = [limit_warning(state["limit"], inquiry.lang), *warnings]
        with emitting(session.question.stream_tokens, context.agent_context.write) as emit:
            text = await found_so_far(inquiry, session, context.agent_context.rules, text, emit)
    else:
        await _keep_candidates(context)

    ended = ToolAnswer(text, inquiry, [*state["execution_path"], "finalize"], warnings)
    return {
        "answer": await asyncio.to_thread(completed_body, ended, session, today=date.today()),
        "execution_path": ["finalize"],
    }
