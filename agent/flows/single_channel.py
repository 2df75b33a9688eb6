"""Graphs whose state is one channel, as LangGraph looks at every channel repeatedly in a step."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, cast, get_type_hints

from langgraph.types import Command


def single_channel_schema(kind: Any) -> Any:
    """Return the TypedDict `kind` as a schema with one channel.

    It is for `StateGraph` and for `input_schema` of every node.

    Keys of `kind` with a reducer in their annotation accumulate; a later write to any other key
    replaces the earlier.
    """
    reducers: Mapping[str, Callable[[Any, Any], Any]] = {
        key: hint.__metadata__[0]
        for key, hint in get_type_hints(kind, include_extras=True).items()
        if hasattr(hint, "__metadata__")
    }

    def merged(state: Any, update: Any) -> Any:
        before, after = cast(dict[str, Any], state), cast(dict[str, Any], update)
        both = {
            key: reduce(before[key], after[key])
            for key, reduce in reducers.items()
            if key in before and key in after
        }
        return before | after | both

    return Annotated[kind, merged]


def choosing_successor(
    node: Callable[..., Awaitable[Any]], decide: Callable[[Any], str]
) -> Callable[..., Awaitable[list[Any]]]:
    """Return `node` with the choice of its successor.

    Conditional edges would read the whole state again for it.

    Args:
        decide: gives the successor's name, from the node's update.
    """

    async def with_successor(state: Any, runtime: Any) -> list[Any]:
        update = await node(state, runtime)
        return [update, Command(goto=decide(update))]

    return with_successor
