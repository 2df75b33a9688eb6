"""Opens the store for the API keys of all hosts, beside a running service or before it starts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from api.access.key_file import KeyFile, KeysUnreadable
from api.access.shared_keys import SharedKeys
from common.errors import StoreUnavailable
from store import Retention
from store.open_store import open_store

_log = logging.getLogger(__name__)
T = TypeVar("T")


class SharedKeySettings(Protocol):
    """The settings that shared keys need, with the names and units of `app_config`."""

    @property
    def shared_api_keys(self) -> bool: ...
    @property
    def api_keys_path(self) -> Path: ...
    @property
    def redis_url(self) -> str: ...
    @property
    def app_database_url(self) -> str: ...
    @property
    def store_timeout_s(self) -> float: ...


def use_shared_keys(settings: SharedKeySettings, use: Callable[[SharedKeys], Awaitable[T]]) -> T:
    """Return what `use` returns of the keys in the store.

    Raises:
        StoreUnavailable, KeysUnreadable: as the methods of `SharedKeys`.
    """

    async def main() -> T:
        store = open_store(
            app_source=settings.app_database_url,
            redis_url=settings.redis_url,
            timeout_s=settings.store_timeout_s,
            retention=Retention(),
        )
        try:
            return await use(SharedKeys(KeyFile(settings.api_keys_path), store.documents))
        finally:
            await store.aclose()

    return asyncio.run(main())


def fetch_shared_keys(settings: SharedKeySettings) -> None:
    """Bring this host's copy up to date, if keys are shared; without the store it stays."""
    if not settings.shared_api_keys:
        return

    try:
        use_shared_keys(settings, lambda keys: keys.fetch())
    except (StoreUnavailable, KeysUnreadable) as error:
        _log.warning("API keys of the store were not fetched: %s", error)
