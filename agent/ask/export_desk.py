"""An answer's rows beyond those it shows: its SQL is run again as whoever asks for them, and read page by page."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.ask.past_answers import Answers
from common.actor import Actor
from common.audit import Occasion
from common.errors import InvalidSql, NotFound
from common.ports import Database, RowStream
from common.text import Text
from knowledge.near_names import with_suggestions

_NO_ROWS = Text("这个回答没有查询结果，无法导出。", "This answer has no rows to export.")


@dataclass(frozen=True)
class WantedRows:
    """Whose rows are wanted.

    Attributes:
        conversation_id: of the run's conversation; see `Answers.find`.
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
        answers: Answers,
        open_database: Callable[[Occasion], Database],
        *,
        max_rows: int,
    ) -> None:
        self._answers = answers
        self._open_database = open_database
        self.max_rows = max_rows

    async def open(self, wanted: WantedRows) -> RowStream:
        """The answer's rows as they are now; the caller closes the stream.

        Raises:
            NotFound: the user has no such answer, it is no longer kept, or it has no SQL.
            Conflict: the question is still being answered.
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for a question's own SQL.
            StoreUnavailable: the answer can't be read.
        """
        answered = await self._answers.find(wanted.actor.owner, wanted.run_id, wanted.conversation_id)
        if answered.sql is None:
            raise NotFound(_NO_ROWS)
        sql = answered.sql
        database = self._open_database(Occasion("export", wanted.run_id, wanted.actor, wanted.conversation_id))
        try:
            await database.explain(sql)  # for the limits on plans
            return await database.stream(sql, self.max_rows)
        except InvalidSql as error:
            raise with_suggestions(error, sql, await database.catalog()) from error
