"""Vectors of texts from any OpenAI-compatible `/embeddings` endpoint."""

import asyncio
import json
import math
from array import array
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from common.fair_slots import FairSlots
from llm.providers import OPENAI_URL, Endpoint, check_address

MOST_TEXTS = 64  # of one request
_TIMEOUT_S = 20.0  # of one request
_MOST_DIMENSIONS = 16_000  # what pgvector can keep

Vector: TypeAlias = "array[float]"
"""32-bit numbers of length 1."""


class EmbeddingFailed(Exception):
    """No vectors were made this time; the message says why and quotes nothing of the endpoint."""


class EmbeddingSettings(Protocol):
    """The settings that are needed, with the names of `app_config`."""

    @property
    def embedding_model(self) -> str: ...
    @property
    def embedding_base_url(self) -> str: ...
    @property
    def embedding_api_key(self) -> str: ...
    @property
    def openai_base_url(self) -> str: ...
    @property
    def openai_api_key(self) -> str: ...
    @property
    def llm_max_in_flight(self) -> int: ...
    @property
    def caller_share(self) -> float: ...


class Embedder:
    """One model of one endpoint.

    Args:
        slots: for requests sent and not answered; further ones wait for their caller's turn.

    Attributes:
        model: its name. Vectors of different models can't be compared.
    """

    def __init__(self, endpoint: Endpoint, slots: FairSlots) -> None:
        self._slots = slots
        self.model = endpoint.model
        self._endpoint = endpoint
        self._api: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text, all of one length.

        Args:
            texts: at most `MOST_TEXTS`.

        Raises:
            EmbeddingFailed: there was no usable answer within 20 seconds.
        """
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                content = await self._send_in_turn(body)
        except TimeoutError:
            raise EmbeddingFailed("no answer in time") from None

        return _vectors(content, len(texts))

    async def _send_in_turn(self, body: dict[str, Any]) -> bytes:
        slot = await self._slots.acquire()
        try:
            return await self._send(body)
        finally:
            slot.release()

    async def _send(self, body: dict[str, Any]) -> bytes:
        # Together these imports take over half a second, which nobody without a model should wait.
        import httpx2  # noqa: PLC0415
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
        except Exception as exc:  # noqa: BLE001
            # Not chained: the endpoint's own message may repeat the key.
            raise EmbeddingFailed(type(exc).__name__) from None

        content: bytes = answer.content
        return content

    async def aclose(self) -> None:
        """Close every connection; the next use opens new ones."""
        api, self._api = self._api, None
        if api is None:
            return

        is_of_this_loop = self._loop is asyncio.get_running_loop()
        if is_of_this_loop:
            await api.close()


def open_embedder(settings: EmbeddingSettings) -> Embedder | None:
    """Return the model that the settings name; None when they name none.

    It is asked at its own address or, without one, at that of the chat model.

    Raises:
        InvalidEndpoint: the address is none.
    """
    if not settings.embedding_model:
        return None

    setting = "EMBEDDING_BASE_URL"
    address = settings.embedding_base_url
    key = settings.embedding_api_key
    if not address:
        setting = "OPENAI_BASE_URL"
        address = settings.openai_base_url or OPENAI_URL
        # A key is only sent to the address that it belongs to.
        key = key or settings.openai_api_key

    url = address.rstrip("/").removesuffix("/embeddings").removesuffix("/chat/completions")
    check_address(setting, url)
    slots = FairSlots(settings.llm_max_in_flight, settings.caller_share)
    return Embedder(Endpoint("openai", settings.embedding_model, url, key), slots)


def _vectors(content: bytes, count: int) -> list[Vector]:
    try:
        entries = sorted(json.loads(content)["data"], key=itemgetter("index"))
        indexes = [entry["index"] for entry in entries]
        if indexes != list(range(count)):
            raise EmbeddingFailed("not one vector for each text")

        vectors = [_unit_vector(entry["embedding"]) for entry in entries]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise EmbeddingFailed("the answer can't be read") from None

    sizes = set(map(len, vectors))
    if len(sizes) > 1:
        raise EmbeddingFailed("vectors of different lengths")

    return vectors


def _unit_vector(numbers: Sequence[float]) -> Vector:
    if not isinstance(numbers, list):
        raise EmbeddingFailed("a vector that is no list")

    has_usable_size = 0 < len(numbers) <= _MOST_DIMENSIONS
    if not has_usable_size:
        raise EmbeddingFailed("a vector of no usable length")

    squares = [number * number for number in numbers]
    length = math.sqrt(sum(squares))
    has_direction = math.isfinite(length) and length > 0
    if not has_direction:
        raise EmbeddingFailed("a vector without direction")

    normed = array("f")
    for number in numbers:
        normed.append(number / length)

    return normed
