"""Language models: one Protocol (`ChatModel`), one adapter for every OpenAI-compatible endpoint, Azure included."""

from common.llm.chat_model import ChatModel, Completion, Message, OnToken
from common.llm.openai_chat import OpenAiChat
from common.llm.providers import PROVIDERS, Endpoint, InvalidEndpoint, ModelSettings, endpoint_of

__all__ = [
    "PROVIDERS",
    "ChatModel",
    "Completion",
    "Endpoint",
    "InvalidEndpoint",
    "Message",
    "ModelSettings",
    "OnToken",
    "OpenAiChat",
    "endpoint_of",
    "open_model",
]


def open_model(settings: ModelSettings) -> ChatModel | None:
    """The model that `settings` (an `app_config.Settings` fits) describe, not connected yet; None: none is configured.

    Raises:
        InvalidEndpoint: a key is set and another setting it needs is not.
    """
    endpoint = endpoint_of(settings)
    if endpoint is None:
        return None
    return OpenAiChat(
        endpoint,
        timeout_s=settings.llm_timeout_s,
        max_retries=settings.llm_max_retries,
        max_tokens=settings.llm_max_tokens,
        max_in_flight=settings.llm_max_in_flight,
    )
