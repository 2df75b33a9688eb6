"""A model whose calls are charged to the question that makes them."""

from collections.abc import Sequence

from agent.budgets.daily_budget import open_budget
from llm import AnyMessage, Completion, OnToken, ToolOffer, WrappedModel


class ChargedModel(WrappedModel):
    """A model whose calls are charged.

    A call that fails or is cancelled tells no usage, so that it is not charged.
    """

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        completion = await super().complete(
            messages, on_token=on_token, max_tokens=max_tokens, offer=offer
        )
        budget = open_budget()
        if budget is not None:
            await budget.charge(self.name, completion.usage)

        return completion
