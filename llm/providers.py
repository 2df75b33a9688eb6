"""The kinds of endpoints that Citu can use, and the settings that describe them.

A new kind is a function that reads its settings and a line in `PROVIDERS`; one whose addresses or
keys are written in another way than OpenAI's also needs a builder in `transport.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from llm.known_endpoints import thinking_parameters

OPENAI_URL = "https://api.openai.com/v1"


class ModelSettings(Protocol):
    """The settings that a model needs, with the names and units of `app_config`."""

    @property
    def openai_api_key(self) -> str: ...
    @property
    def openai_base_url(self) -> str: ...
    @property
    def openai_model(self) -> str: ...
    @property
    def azure_openai_api_key(self) -> str: ...
    @property
    def azure_openai_endpoint(self) -> str: ...
    @property
    def azure_openai_api_version(self) -> str: ...
    @property
    def azure_openai_deployment(self) -> str: ...
    @property
    def llm_timeout_s(self) -> float: ...
    @property
    def llm_max_retries(self) -> int: ...
    @property
    def llm_max_tokens(self) -> int: ...
    @property
    def llm_thinking(self) -> str: ...
    @property
    def llm_max_in_flight(self) -> int: ...
    @property
    def caller_share(self) -> float: ...


class InvalidEndpoint(ValueError):
    """A setting that belongs to a key is missing or no address; the message names it."""


@dataclass(frozen=True)
class Endpoint:
    """One model at one address.

    Attributes:
        model: the model's name, or the Azure deployment.
        url: base URL of the OpenAI protocol, or the Azure resource.
        thinking: parameters of every request that tell it whether to think.
    """

    provider: Literal["openai", "azure"]
    model: str
    url: str
    api_key: str = field(repr=False)
    api_version: str = ""
    thinking: Mapping[str, Any] = field(default_factory=dict, hash=False)


def _openai(settings: ModelSettings) -> Endpoint | None:
    if not settings.openai_api_key:
        return None

    address = settings.openai_base_url or OPENAI_URL
    url = address.rstrip("/").removesuffix("/chat/completions")
    check_address("OPENAI_BASE_URL", url)
    thinking = thinking_parameters(settings.llm_thinking, url)
    return Endpoint(
        "openai", settings.openai_model, url, settings.openai_api_key, thinking=thinking
    )


def _azure(settings: ModelSettings) -> Endpoint | None:
    if not settings.azure_openai_api_key:
        return None

    required = {
        "AZURE_OPENAI_ENDPOINT": settings.azure_openai_endpoint,
        "AZURE_OPENAI_DEPLOYMENT": settings.azure_openai_deployment,
    }
    for name, value in required.items():
        if not value:
            raise InvalidEndpoint(f"{name} is missing: AZURE_OPENAI_API_KEY is set and needs it.")

    check_address("AZURE_OPENAI_ENDPOINT", settings.azure_openai_endpoint)
    return Endpoint(
        "azure",
        settings.azure_openai_deployment,
        settings.azure_openai_endpoint.rstrip("/"),
        settings.azure_openai_api_key,
        settings.azure_openai_api_version,
        thinking_parameters(settings.llm_thinking, settings.azure_openai_endpoint),
    )


def check_address(setting: str, url: str) -> None:
    """Raise InvalidEndpoint, naming the setting, unless `url` is an HTTP address."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_address = False  # for example, the port is no number

    if not is_address:
        raise InvalidEndpoint(f"{setting} is not a URL such as http://localhost:11434/v1.")


PROVIDERS: Mapping[str, Callable[[ModelSettings], Endpoint | None]] = {
    "openai": _openai,
    "azure": _azure,
}


def endpoint_of(settings: ModelSettings) -> Endpoint | None:
    """Return the first endpoint of the table whose key is set; None: no model is configured.

    Raises:
        InvalidEndpoint: a key is set without what belongs to it.
    """
    for read in PROVIDERS.values():
        endpoint = read(settings)
        if endpoint is not None:
            return endpoint

    return None
