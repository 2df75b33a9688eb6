"""Vectors of texts from any OpenAI-compatible `/embeddings` endpoint."""

import asyncio
import json
import math
from array import array
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from common.llm.providers import OPENAI_URL, Endpoint, check_address

MOST_TEXTS = 64  # of one request
_TIMEOUT_S = 20.0  # of one request
_MOST_DIMENSIONS = 16_000  # what pgvector can keep

Vector: TypeAlias = "array[float]"
"""32-bit numbers of length 1."""


class EmbeddingFailed(Exception):
    """There are no vectors this time; the message says why, without what the endpoint said or was told."""


class EmbeddingSettings(Protocol):
    """The settings that are needed, with the names of `app_config`."""

    @property
    def embedding_model(self) -> str: ...  # noqa: D102
    @property
    def embedding_base_url(self) -> str: ...  # noqa: D102
    @property
    def embedding_api_key(self) -> str: ...  # noqa: D102
    @property
    def openai_base_url(self) -> str: ...  # noqa: D102
    @property
    def openai_api_key(self) -> str: ...  # noqa: D102


class Embedder:
    """One model of one endpoint.

    Attributes:
        model: its name. Vectors of different models can't be compared.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._api: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, all of one length.

        Args:
            texts: at most `MOST_TEXTS`.

        Raises:
            EmbeddingFailed: there was no usable answer within 20 seconds.
        """
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                content = await self._asked({"model": self.model, "input": list(texts), "encoding_format": "float"})
        except TimeoutError:
            raise EmbeddingFailed("no answer in time") from None
        return _vectors(content, len(texts))

    async def _asked(self, body: dict[str, Any]) -> bytes:
        import httpx2  # noqa: PLC0415 - with openai takes over half a second, which nobody without a model should wait
        import openai  # noqa: PLC0415

        if self._api is None or self._loop is not asyncio.get_running_loop():
            http = openai.DefaultAioHttpClient(timeout=_TIMEOUT_S, follow_redirects=False)
            self._loop = asyncio.get_running_loop()
            self._api = openai.AsyncOpenAI(
                api_key=self._endpoint.api_key or "none",
                base_url=self._endpoint.url,
                max_retries=0,
                timeout=_TIMEOUT_S,
                http_client=http,
            )
        try:
            answer = await self._api.post("/embeddings", body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as exc:
            raise EmbeddingFailed(f"status {exc.status_code}") from None
        except Exception as exc:  # noqa: BLE001 - not chained: what the endpoint says may repeat the key
            raise EmbeddingFailed(type(exc).__name__) from None
        content: bytes = answer.content
        return content

    async def aclose(self) -> None:
        """Closes every connection; the next use opens new ones."""
        api, self._api = self._api, None
        if api is not None and self._loop is asyncio.get_running_loop():
            await api.close()


def open_embedder(settings: EmbeddingSettings) -> Embedder | None:
    """The model that the settings name, at its own address or that of the other models; None when they name none.

    Raises:
        InvalidEndpoint: the address is none.
    """
    if not settings.embedding_model:
        return None
    url = (settings.embedding_base_url or settings.openai_base_url or OPENAI_URL).rstrip("/")
    url = url.removesuffix("/embeddings").removesuffix("/chat/completions")
    check_address("EMBEDDING_BASE_URL" if settings.embedding_base_url else "OPENAI_BASE_URL", url)
    # A key is only sent to the address that it belongs to.
    key = settings.embedding_api_key or ("" if settings.embedding_base_url else settings.openai_api_key)
    return Embedder(Endpoint("openai", settings.embedding_model, url, key))


def _vectors(content: bytes, count: int) -> list[Vector]:
    try:
        found = json.loads(content)["data"]
        ordered = sorted(found, key=lambda one: one["index"])
        if [one["index"] for one in ordered] != list(range(count)):
            raise EmbeddingFailed("not one vector for each text")
        vectors = [_normed(one["embedding"]) for one in ordered]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise EmbeddingFailed("the answer can't be read") from None
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbeddingFailed("vectors of different lengths")
    return vectors


def _normed(numbers: Sequence[float]) -> Vector:
    if not isinstance(numbers, list) or not 0 < len(numbers) <= _MOST_DIMENSIONS:
        raise EmbeddingFailed("a vector of no usable length")
    length = math.sqrt(sum(number * number for number in numbers))
    if not math.isfinite(length) or length == 0:
        raise EmbeddingFailed("a vector without direction")
    return array("f", (number / length for number in numbers))
