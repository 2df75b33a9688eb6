"""A model with the middlewares of a service before it, and its calls measured."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import cast

from agent.extensions.points import AskModel, LlmMiddleware, ModelRequest, ObservabilityProvider
from llm import AnyMessage, ChatModel, Completion, OnToken, ToolOffer, WrappedModel


class ExtendedModel(WrappedModel):
    """A model behind middlewares; a request passes the first middleware first."""

    def __init__(
        self,
        inner: ChatModel,
        middlewares: Sequence[LlmMiddleware],
        observer: ObservabilityProvider,
    ) -> None:
        super().__init__(inner)
        self._observer = observer
        self._middlewares = tuple(middlewares)
        ask: AskModel = self._observed_call
        for middleware in reversed(self._middlewares):
            ask = partial(middleware, ask=ask)

        self._ask = ask

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        return await self._ask(ModelRequest(messages, on_token, max_tokens, offer))

    async def _observed_call(self, request: ModelRequest) -> Completion:
        attributes = {"model": self.name}
        with self._observer.span("model_call", attributes):
            completion = await self._inner.complete(
                request.messages,
                on_token=request.on_token,
                max_tokens=request.max_tokens,
                offer=request.offer,
            )
            usage = completion.usage
            self._observer.metric("prompt_tokens", usage.prompt_tokens, attributes)
            self._observer.metric("completion_tokens", usage.completion_tokens, attributes)

        return completion

    async def aclose(self) -> None:
        """Close the connections of the model and of middlewares that have a method `aclose`."""
        await super().aclose()
        for middleware in self._middlewares:
            close = getattr(middleware, "aclose", None)
            if close is not None:
                await cast(Callable[[], Awaitable[None]], close)()
