"""Conversations in PostgreSQL. `PostgresRuns.write` adds their turns."""

from common.values import Turn
from postgres.connection import Row
from store import Conversation, ConversationPage, TurnPage
from store.postgres_access import PostgresAccess
from store.postgres_values import read_bytes
from store.record_json import (
    FAILED,
    from_text,
    key,
    parse_place_cursor,
    parse_turn_cursor,
    place_cursor,
    timestamp,
    to_text,
    turn_from_text,
)

_RECENT = f"""
SELECT data FROM citu.turn JOIN citu.conversation USING (conversation_key)
WHERE conversation_key = %s AND expires_at > now()
    AND number > forgotten AND NOT starts_with(data, '{FAILED}')
ORDER BY number DESC LIMIT %s
"""
_CONVERSATION = """
conversation_id, title, (extract(epoch FROM created_at) * 1000000)::bigint,
(extract(epoch FROM updated_at) * 1000000)::bigint, last_turn - forgotten
"""
_PAGE = f"""
SELECT {_CONVERSATION}, conversation_key FROM citu.conversation
WHERE user_key = %s AND expires_at > now()
AND (updated_at, conversation_key) < (timestamptz 'epoch' + %s * interval '1 microsecond', %s)
ORDER BY updated_at DESC, conversation_key DESC LIMIT %s
"""
_TURNS = f"""
SELECT {_CONVERSATION}, page.number, page.data FROM citu.conversation AS c LEFT JOIN LATERAL (
    SELECT number, data FROM citu.turn
    WHERE turn.conversation_key = c.conversation_key AND number > forgotten AND number < %s
    ORDER BY number DESC LIMIT %s
) AS page ON true
WHERE c.conversation_key = %s AND expires_at > now()
ORDER BY page.number DESC
"""
_RENAME = """
UPDATE citu.conversation SET title = %s
WHERE conversation_key = %s AND expires_at > now() RETURNING 1
"""
# Artefacts go with their conversation, also when it has no turn yet.
_CLEAR = """
WITH files AS (
    DELETE FROM citu.artefact WHERE conversation_key = %s
), cleared AS (
    UPDATE citu.conversation SET forgotten = last_turn
    WHERE conversation_key = %s AND expires_at > now()
    RETURNING conversation_key, forgotten
), gone AS (
    DELETE FROM citu.turn USING cleared
    WHERE turn.conversation_key = cleared.conversation_key AND number <= forgotten
)
SELECT FROM cleared
"""
_DELETE = """
WITH files AS (
    DELETE FROM citu.artefact WHERE conversation_key = %s
), gone AS (DELETE FROM citu.conversation WHERE conversation_key = %s RETURNING expires_at)
SELECT FROM gone WHERE expires_at > now()
"""
_DELETE_ALL = """
WITH files AS (
    DELETE FROM citu.artefact WHERE user_key = %s
), gone AS (DELETE FROM citu.conversation WHERE user_key = %s RETURNING expires_at)
SELECT count(*) FROM gone WHERE expires_at > now()
"""
_LATEST = (9_999_999_999_999_999, b"")  # beyond every (microseconds, key)
_LAST_NUMBER = 10**15  # beyond every turn


class PostgresConversations:
    """Implements `store.Conversations` in PostgreSQL."""

    def __init__(self, access: PostgresAccess) -> None:
        self._access = access

    async def recent(self, user_id: str, conversation_id: str, limit: int) -> tuple[Turn, ...]:
        rows = await self._access.rows(_RECENT, (key(user_id, conversation_id), limit))
        return tuple(turn_from_text(data) for (data,) in reversed(rows))

    async def page(self, user_id: str, limit: int, cursor: str | None = None) -> ConversationPage:
        updated_us, after = _LATEST if cursor is None else parse_place_cursor(cursor)
        rows = await self._access.rows(_PAGE, (key(user_id), updated_us, after, limit + 1))
        conversations = tuple(map(_conversation, rows[:limit]))
        if len(rows) <= limit:
            return ConversationPage(conversations, None)

        *_, last_updated_us, _, last_key = rows[limit - 1]
        return ConversationPage(
            conversations, place_cursor(int(last_updated_us), read_bytes(last_key))
        )

    async def turns(
        self, user_id: str, conversation_id: str, limit: int, cursor: str | None = None
    ) -> TurnPage | None:
        before = _LAST_NUMBER if cursor is None else parse_turn_cursor(cursor)
        rows = await self._access.rows(_TURNS, (before, limit + 1, key(user_id, conversation_id)))
        if not rows:
            return None

        conversation = _conversation(rows[0])
        turn_rows = [
            row[-2:] for row in rows if row[-1] is not None
        ]  # a NULL row stands for no turns
        shown = turn_rows[:limit]
        turns = tuple(turn_from_text(data) for _, data in reversed(shown))
        if len(turn_rows) <= limit:
            return TurnPage(conversation, turns, None)

        earliest_shown, _ = shown[-1]
        return TurnPage(conversation, turns, earliest_shown)

    async def rename(self, user_id: str, conversation_id: str, title: str) -> bool:
        renamed = (to_text(title), key(user_id, conversation_id))
        return bool(await self._access.rows(_RENAME, renamed))

    async def clear(self, user_id: str, conversation_id: str) -> bool:
        return bool(await self._access.rows(_CLEAR, (key(user_id, conversation_id),) * 2))

    async def delete(self, user_id: str, conversation_id: str) -> bool:
        return bool(await self._access.rows(_DELETE, (key(user_id, conversation_id),) * 2))

    async def delete_all(self, user_id: str) -> int:
        ((count,),) = await self._access.rows(_DELETE_ALL, (key(user_id),) * 2)
        return int(count)


def _conversation(row: Row) -> Conversation:
    conversation_id, title, created_us, updated_us, turn_count = row[:5]
    return Conversation(
        conversation_id=from_text(conversation_id),
        title=from_text(title),
        created_at=timestamp(int(created_us)),
        updated_at=timestamp(int(updated_us)),
        turn_count=int(turn_count),
    )
