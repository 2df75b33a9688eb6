"""An answer's rows beyond those it shows: its SQL is run again as whoever asks for them, and read page by page."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.runs.desk import RunDesk
from common.actor import Actor
from common.audit import Occasion
from common.errors import InvalidSql, NotFound
from common.ports import Database, RowStream
from common.store import Conversations
from common.text import Text
from knowledge.near_names import with_suggestions

_MOST_TURNS = 1_000  # of a conversation that are looked through
_NO_ROWS = Text("这个回答没有查询结果，无法导出。", "This answer has no rows to export.")
_GONE = Text(
    "这个回答已过期，无法导出；请给出它的 conversation_id，或重新提问。",
    "This answer is no longer kept. Give its conversation_id, or ask again.",
)


@dataclass(frozen=True)
class WantedRows:
    """Whose rows are wanted.

    Attributes:
        conversation_id: of the run's conversation, in which an answer is found longer than its run.
    """

    run_id: str
    actor: Actor
    conversation_id: str | None = None


class ExportDesk:
    """Opens the rows of answers.

    Args:
        open_database: gives the asked database for an occasion; its statements are audited.
        max_rows: most rows of one export.
    """

    def __init__(
        self,
        runs: RunDesk,
        conversations: Conversations,
        open_database: Callable[[Occasion], Database],
        *,
        max_rows: int,
    ) -> None:
        self._runs = runs
        self._conversations = conversations
        self._open_database = open_database
        self.max_rows = max_rows

    async def open(self, wanted: WantedRows) -> RowStream:
        """The answer's rows as they are now; the caller closes the stream.

        Raises:
            NotFound: the user has no such answer, it has expired, or it has no SQL.
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for a question's own SQL.
            StoreUnavailable: the answer can't be read.
        """
        sql = await self._sql(wanted)
        database = self._open_database(Occasion("export", wanted.run_id, wanted.actor, wanted.conversation_id))
        try:
            await database.explain(sql)  # for the limits on plans
            return await database.stream(sql, self.max_rows)
        except InvalidSql as error:
            raise with_suggestions(error, sql, await database.catalog()) from error

    async def _sql(self, wanted: WantedRows) -> str:
        if wanted.conversation_id is not None:
            owner = wanted.actor.owner
            turns = await self._conversations.recent(owner, wanted.conversation_id, _MOST_TURNS)
            found = next((turn for turn in turns if turn.run_id == wanted.run_id), None)
            if found is not None:
                return _given(found.sql)
        try:
            view = await self._runs.look(wanted.actor.owner, wanted.run_id)
        except NotFound as error:
            raise NotFound(_GONE) from error
        return _given(view.last.data.get("sql") if view.last is not None else None)


def _given(sql: str | None) -> str:
    if sql is None:
        raise NotFound(_NO_ROWS)
    return sql
