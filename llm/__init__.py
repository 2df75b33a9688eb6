"""Language models: a Protocol (`ChatModel`) and an adapter for OpenAI-compatible endpoints.

| module | what it does |
|---|---|
| `chat_model` | the Protocol, messages, replies |
| `tool_calls` | tools as they are offered, calls as they come back |
| `openai_chat` | the adapter: time limit, further tries |
| `call_request` | what is sent, and what an endpoint refuses of it |
| `completion_stream`, `call_assembly`, `loose_fields` | read what comes back |
| `call_failures` | kinds of failures, and what the user is told |
| `transport` | connections |
| `providers`, `contexts` | which endpoint the settings describe; how long a model's context is |
| `known_endpoints` | endpoints by name, and how each is told whether to think |
| `model_log`, `replay` | keeps prompts and replies; sends one again |
| `check_model` | says what works at the endpoint, and what to change |
"""

from llm.chat_model import (
    AnyMessage,
    CallingMessage,
    ChatModel,
    Completion,
    Message,
    OnToken,
    ToolMessage,
    WrappedModel,
    tool_message,
)
from llm.openai_chat import OpenAiChat
from llm.providers import PROVIDERS, Endpoint, InvalidEndpoint, ModelSettings, endpoint_of
from llm.tool_calls import InvalidArguments, ToolCall, ToolDefinition, ToolOffer

__all__ = [
    "PROVIDERS",
    "AnyMessage",
    "CallingMessage",
    "ChatModel",
    "Completion",
    "Endpoint",
    "InvalidArguments",
    "InvalidEndpoint",
    "Message",
    "ModelSettings",
    "OnToken",
    "OpenAiChat",
    "ToolDefinition",
    "ToolCall",
    "ToolMessage",
    "ToolOffer",
    "WrappedModel",
    "endpoint_of",
    "open_model",
    "tool_message",
]


def open_model(settings: ModelSettings) -> ChatModel | None:
    """Return the model that `settings` describe, not connected yet; None when there is none.

    An `app_config.Settings` has all that `settings` need.

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
        share=settings.caller_share,
    )
