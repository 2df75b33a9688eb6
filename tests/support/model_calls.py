"""One call of a real model adapter against a scripted server, for the tests of the adapter."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from app_config import Settings
from llm import AnyMessage, Completion, Endpoint, Message, OpenAiChat, open_model
from tests.support.openai_server import OpenAiServer

T = TypeVar("T")
KEY = "sk-very-secret"
HELLO: list[Message] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "你好"},
]


def use(url: str, action: Callable[[OpenAiChat], Awaitable[T]], **options: Any) -> T:
    """Return what `action` makes of a model at `url`, with quick retries."""
    limits: dict[str, Any] = {
        "timeout_s": 20.0,
        "max_retries": 2,
        "max_tokens": 77,
        "back_off_s": 0.001,
        **options,
    }

    async def main() -> T:
        model = OpenAiChat(Endpoint("openai", "test-model", url, KEY), **limits)
        try:
            return await action(model)
        finally:
            await model.aclose()

    return asyncio.run(main())


def complete(server: OpenAiServer, **options: Any) -> Completion:
    """Return the reply to one plain call."""
    return use(server.url, lambda model: model.complete(HELLO), **options)


def stream(server: OpenAiServer, **options: Any) -> tuple[Completion, list[str]]:
    """Return the reply to one streamed call, and its pieces."""
    pieces: list[str] = []
    return use(
        server.url, lambda model: model.complete(HELLO, on_token=pieces.append), **options
    ), pieces


def complete_with(
    settings: Settings, messages: Sequence[AnyMessage] = HELLO, **options: Any
) -> Completion:
    """Return the reply of the model that `settings` describe."""

    async def main() -> Completion:
        model = open_model(settings)
        assert model is not None
        try:
            return await model.complete(messages, **options)
        finally:
            await model.aclose()

    return asyncio.run(main())
