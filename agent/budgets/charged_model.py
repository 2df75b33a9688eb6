"""A model whose calls are charged to the question that makes them."""

import asyncio
import json
from collections.abc import Sequence

from agent.budgets.daily_budget import open_budget
from common.errors import LlmUnavailable
from common.values import Usage
from llm import AnyMessage, Completion, OnToken, ToolOffer, WrappedModel
from llm.call_failures import may_have_cost
from llm.tokens import estimated_tokens


class ChargedModel(WrappedModel):
    """A model whose calls are charged, those that are cancelled or break off included.

    Of these, and where the endpoint tells no tokens, the tokens are estimated. So that it is known
    how much of a reply was written before the call was cancelled, charged replies are streamed,
    those that are wanted as a whole too.
    """

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        budget = open_budget()
        if budget is None:
            return await super().complete(
                messages, on_token=on_token, max_tokens=max_tokens, offer=offer
            )

        written: list[str] = []
        try:
            completion = await super().complete(
                messages, on_token=_noted(on_token, written), max_tokens=max_tokens, offer=offer
            )
        except asyncio.CancelledError:
            # The provider counts what it wrote, whoever has left.
            budget.begin_charge(self.name, _estimated(messages, offer, "".join(written)))
            raise
        except LlmUnavailable as failure:
            if written or may_have_cost(failure):
                await budget.charge(self.name, _estimated(messages, offer, "".join(written)))

            raise

        await budget.charge(self.name, _usage_of(completion, messages, offer))
        return completion


def _noted(on_token: OnToken | None, written: list[str]) -> OnToken:
    def note(piece: str) -> None:
        written.append(piece)
        if on_token is not None:
            on_token(piece)

    return note


def _usage_of(
    completion: Completion, messages: Sequence[AnyMessage], offer: ToolOffer | None
) -> Usage:
    """Return the tokens that the endpoint tells, estimated where it tells none."""
    usage = completion.usage
    if usage.prompt_tokens or usage.completion_tokens:
        return usage

    calls = [f"{call.name}{call.spelled_arguments}" for call in completion.tool_calls]
    return _estimated(messages, offer, "".join([completion.reasoning, completion.text, *calls]))


def _estimated(messages: Sequence[AnyMessage], offer: ToolOffer | None, reply: str) -> Usage:
    tools = [vars(tool) for tool in offer.tools] if offer else []
    prompt = json.dumps([*messages, *tools], ensure_ascii=False, default=dict)
    return Usage(1, estimated_tokens(prompt), estimated_tokens(reply))
