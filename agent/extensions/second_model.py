"""Asks another model when the first one fails."""

import logging
from dataclasses import dataclass, replace
from typing import Any

from agent.extensions.points import AskModel, ModelRequest, Provided
from common.errors import LlmUnavailable, PromptTooLong
from llm import ChatModel, Completion, OnToken
from llm.providers import check_address

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Endpoint:
    """The second model, as `llm.ModelSettings` wants settings."""

    openai_api_key: str
    openai_base_url: str
    openai_model: str
    llm_timeout_s: float
    llm_max_retries: int
    llm_max_tokens: int
    llm_thinking: str
    llm_max_in_flight: int
    caller_share: float
    azure_openai_api_key: str = ""
    azure_openai_endpoint: str = ""
    azure_openai_api_version: str = ""
    azure_openai_deployment: str = ""


class _Spoken:
    """Passes pieces of text on, and remembers that there were some."""

    def __init__(self, on_token: OnToken | None) -> None:
        self._on_token = on_token
        self.is_heard = False

    def __call__(self, piece: str) -> None:
        self.is_heard = True
        if self._on_token:
            self._on_token(piece)


class SecondModel:
    """The `LlmMiddleware` that asks the second model.

    The text that the first model wrote before it failed is shown already, so the second model
    begins a paragraph.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def __call__(self, request: ModelRequest, ask: AskModel) -> Completion:
        """Return the first model's reply, else the second's.

        Raises:
            PromptTooLong: whoever wrote the prompt has to shorten it.
        """
        spoken = _Spoken(request.on_token)
        try:
            return await ask(replace(request, on_token=spoken if request.on_token else None))
        except PromptTooLong:
            raise
        except LlmUnavailable as failure:
            _log.warning("the model failed, asking %s: %s", self._model.name, failure.text.en)

        if spoken.is_heard:
            spoken("\n\n")

        return await self._model.complete(
            request.messages,
            on_token=request.on_token,
            max_tokens=request.max_tokens,
            offer=request.offer,
        )

    async def aclose(self) -> None:
        """Close the second model's connections."""
        await self._model.aclose()


def second_model(provided: Provided) -> SecondModel | None:
    """Return the extension, if `SECOND_MODEL` names a model."""
    settings: Any = provided.settings
    if not settings.second_model:
        return None
    if settings.second_model_base_url:
        check_address("SECOND_MODEL_BASE_URL", settings.second_model_base_url)

    model = provided.open_model(
        _Endpoint(
            openai_api_key=settings.second_model_api_key or settings.openai_api_key,
            openai_base_url=settings.second_model_base_url or settings.openai_base_url,
            openai_model=settings.second_model,
            llm_timeout_s=settings.llm_timeout_s,
            llm_max_retries=settings.llm_max_retries,
            llm_max_tokens=settings.llm_max_tokens,
            llm_thinking=settings.llm_thinking,
            llm_max_in_flight=settings.llm_max_in_flight,
            caller_share=settings.caller_share,
        )
    )
    if model is None:
        raise ValueError("SECOND_MODEL needs SECOND_MODEL_API_KEY, or OPENAI_API_KEY")

    return SecondModel(model)
