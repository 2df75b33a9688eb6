"""Opens the store: Redis if it is configured, else PostgreSQL. `open_store` is the only way to get
one.
"""

from collections.abc import Callable, Mapping

from redis.asyncio.connection import parse_url

from common.ports import UrlSource
from store import Retention, Store
from store.learned_repository import LearnedRepository
from store.postgres_access import PostgresAccess
from store.postgres_artefacts import PostgresArtefacts
from store.postgres_checkpoints import PostgresCheckpoints
from store.postgres_conversations import PostgresConversations
from store.postgres_documents import PostgresDocuments
from store.postgres_records import PostgresRecords
from store.postgres_request_counts import PostgresRequestCounts
from store.postgres_runs import PostgresRuns
from store.postgres_spending import PostgresSpending
from store.postgres_vectors import PostgresVectors
from store.proposal_repository import ProposalRepository
from store.redis_access import RedisAccess
from store.redis_artefacts import RedisArtefacts
from store.redis_checkpoints import RedisCheckpoints
from store.redis_conversations import RedisConversations
from store.redis_documents import RedisDocuments
from store.redis_records import RedisRecords
from store.redis_runs import RedisRuns
from store.redis_spending import RedisSpending

Opener = Callable[[UrlSource, Retention, float], Store]

_POOL_SIZE = 4  # connections of one worker; few, because writes are batched


class InvalidRedisUrl(ValueError):
    """The URL of Redis can't be understood; the message says what one looks like."""


def _open_postgres(source: UrlSource, retention: Retention, timeout_s: float) -> Store:
    access = PostgresAccess(source, timeout_s=timeout_s, pool_size=_POOL_SIZE)
    records = PostgresRecords(access)
    checkpoints = PostgresCheckpoints(access, source, timeout_s=timeout_s)

    async def ping() -> None:
        await access.rows("SELECT 1")

    async def aclose() -> None:
        access.close()
        await checkpoints.aclose()

    return Store(
        "postgresql",
        PostgresConversations(access),
        PostgresRuns(access, retention),
        LearnedRepository(records, retention),
        checkpoints,
        ping,
        aclose,
        PostgresArtefacts(access, retention),
        PostgresSpending(access),
        ProposalRepository(records),
        PostgresDocuments(access),
        PostgresRequestCounts(access),
        PostgresVectors(access),
    )


def _open_redis(source: UrlSource, retention: Retention, timeout_s: float) -> Store:
    access = RedisAccess(source, timeout_s=timeout_s, pool_size=_POOL_SIZE)

    records = RedisRecords(access)

    async def ping() -> None:
        await access.reply(("PING",))

    return Store(
        "redis",
        RedisConversations(access),
        RedisRuns(access, retention),
        LearnedRepository(records, retention),
        RedisCheckpoints(access, retention),
        ping,
        access.aclose,
        RedisArtefacts(access, retention),
        RedisSpending(access),
        ProposalRepository(records),
        RedisDocuments(access),
        None,
    )


BACKENDS: Mapping[str, Opener] = {"redis": _open_redis, "postgresql": _open_postgres}


def open_store(
    *, app_source: str | UrlSource, redis_url: str = "", timeout_s: float, retention: Retention
) -> Store:
    """Return the store at `redis_url`, else the one in the database of `app_source`.

    Opens no connection before the first use; survives a fork.

    Args:
        app_source: libpq connection string or URI, or a function that gives it, called in a thread
            per connection.
        redis_url: `redis://`, `rediss://` or `unix://`.
        timeout_s: seconds one access may take, connecting included.
        retention: how much is kept, and for how long.

    Raises:
        InvalidRedisUrl: `redis_url` is not one.
    """
    if redis_url:
        try:
            parse_url(redis_url)
        except ValueError as exc:
            raise InvalidRedisUrl(
                "REDIS_URL is not a URL such as redis://localhost:6379/0."
            ) from exc

        return BACKENDS["redis"](lambda: redis_url, retention, timeout_s)

    return BACKENDS["postgresql"](
        app_source if callable(app_source) else lambda: app_source, retention, timeout_s
    )
