"""Decides which database a question is about, where there are several."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.asked_databases import AskedDatabases
from agent.question import Question
from common.errors import NotFound, StoreUnavailable
from common.text import Text

_NONE = Text("没有您可以查询的数据库。", "There is no database that you may ask.")

LatestDatabase = Callable[[Question], Awaitable[str | None]]
"""Gives the database of the conversation's latest turn; raises `StoreUnavailable`."""


class DatabaseChooser:
    """Chooses the database of a question: the request's, else the conversation's, else the default.

    A database that the actor may not ask is never looked at.
    """

    def __init__(self, asked: AskedDatabases, latest: LatestDatabase) -> None:
        self._asked = asked
        self._latest = latest

    async def chosen(self, question: Question) -> Question:
        """Return the question with its database; unchanged where there is but one database.

        Raises:
            NotFound: the actor may ask none.
        """
        if self._asked.is_one or question.database_choice is not None:
            return question
        names = [one.name for one in self._asked.open_to(question.actor)]
        if not names:
            raise NotFound(_NONE)
        if question.database in names:
            return replace(question, database_choice="request")
        if len(names) == 1:
            return replace(question, database=names[0], database_choice="only")
        earlier = await self._of_conversation(question)
        if earlier in names:
            return replace(question, database=earlier, database_choice="conversation")
        default = self._asked.default
        name = default if default in names else names[0]
        return replace(question, database=name, database_choice="default")

    async def _of_conversation(self, question: Question) -> str | None:
        if not question.continues:
            return None
        try:
            return await self._latest(question)
        except StoreUnavailable:
            return None
