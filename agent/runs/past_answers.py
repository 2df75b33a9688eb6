"""Finds a user's past answers: in their runs, and later in their conversations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.runs.run_service import RunService, RunView
from agent.tools.answer import ROUTING
from common.errors import Conflict, NotFound
from common.text import Lang, Text, language_of
from common.values import Turn
from store import Conversations

_MOST_TURNS = 1_000  # of a conversation that are looked through
_MOST_CONVERSATIONS = 20  # the latest, that are looked through when nobody says which one it is
_MOST_BEFORE = 10  # turns before the answer
_DRAFT = "ETL"  # what answers and turns call drafts of transformations
_GONE = Text(
    "没有这个回答，或它已不再保存；请给出它的 conversation_id。",
    "There is no such answer, or it is no longer kept. Give its conversation_id.",
)
_NO_CALL = Text(
    "这次运行中没有这样的调用，或它没有查询结果。",
    "This run has no such call, or the call has found no rows.",
)
_NOT_YET = Text(
    "这个问题还没有回答完：请等它结束后再评价。",
    "The question is still being answered: wait for its end.",
)


@dataclass(frozen=True)
class PastAnswer:
    """A question and its outcome.

    Attributes:
        sql: what was run, or what was refused; None when none was written.
        chart: what the rows were shown as; None where a table showed them, and when the run is no
            longer kept.
        is_one_query: whether `sql` alone answers the question; of several queries, it is but the
            last.
        is_draft: whether it is a draft of a transformation, which no statement answers.
        error_type, error: of a question that ended in an error.
        before: the turns before it, oldest first.
        database: the name of the database that it is about; None: the default one.
    """

    run_id: str
    conversation_id: str
    question: str
    lang: Lang
    sql: str | None = None
    row_count: int | None = None
    chart: Mapping[str, Any] | None = field(default=None, hash=False)
    is_one_query: bool = True
    is_draft: bool = False
    error_type: str | None = None
    error: str | None = None
    before: tuple[Turn, ...] = ()
    database: str | None = None


class PastAnswers:
    """Finds answers of users; the answers of one user do not exist for another."""

    def __init__(self, runs: RunService, conversations: Conversations) -> None:
        self._runs = runs
        self._conversations = conversations

    async def find(self, user_id: str, run_id: str, conversation_id: str | None) -> PastAnswer:
        """Return the answer that this run gave.

        Args:
            conversation_id: where it was given. Without it, an answer whose run is no longer kept
                is looked for in the user's latest conversations.

        Raises:
            NotFound: the user has no such answer, or it is no longer kept.
            Conflict: the question is still being answered.
            StoreUnavailable: it can't be read.
        """
        try:
            view = await self._runs.look(user_id, run_id)
        except NotFound:
            return await self._kept_answer(user_id, run_id, conversation_id)

        if view.record.state in ("running", "waiting"):
            raise Conflict(_NOT_YET, run_id=run_id)

        head = view.record.head
        turns = await self._conversations.recent(user_id, head.conversation_id, _MOST_TURNS)
        return _answer_of_run(view, _before(turns, run_id))

    async def result_of_call(self, user_id: str, run_id: str, call_id: str) -> Mapping[str, Any]:
        """Return what a tool's call of this run found: `sql`, its rows, and `chart` if shown.

        Raises:
            NotFound: the run is no longer kept, or no such call found rows.
            StoreUnavailable: it can't be read.
        """
        result = await self._runs.result_of_call(user_id, run_id, call_id)
        if result is None:
            raise NotFound(_NO_CALL)

        return result.data

    async def _kept_answer(
        self, user_id: str, run_id: str, conversation_id: str | None
    ) -> PastAnswer:
        searched = [conversation_id] if conversation_id else await self._latest(user_id)
        for conversation in searched:
            turns = await self._conversations.recent(user_id, conversation, _MOST_TURNS)
            for turn in turns:
                if turn.run_id == run_id:
                    return _answer_in(turn, conversation, _before(turns, run_id))

        raise NotFound(_GONE)

    async def _latest(self, user_id: str) -> list[str]:
        page = await self._conversations.page(user_id, _MOST_CONVERSATIONS)
        return [conversation.conversation_id for conversation in page.conversations]


def _answer_in(turn: Turn, conversation_id: str, before: tuple[Turn, ...]) -> PastAnswer:
    return PastAnswer(
        run_id=turn.run_id,
        conversation_id=conversation_id,
        question=turn.question,
        lang=language_of(turn.question),
        sql=turn.sql,
        row_count=turn.row_count,
        # A turn does not tell how many queries a flow with tools ran.
        is_one_query=turn.routing_mode != ROUTING,
        is_draft=turn.question_type == _DRAFT,
        before=before,
        database=turn.database,
    )


def _before(turns: Sequence[Turn], run_id: str) -> tuple[Turn, ...]:
    """Return the turns before that of the run; before a run without a turn, the latest ones."""
    run_ids = [turn.run_id for turn in turns]
    at = run_ids.index(run_id) if run_id in run_ids else len(turns)
    return tuple(turns[max(0, at - _MOST_BEFORE) : at])


def _answer_of_run(view: RunView, before: tuple[Turn, ...]) -> PastAnswer:
    head = view.record.head
    data: dict[str, Any] = view.last.data if view.last is not None else {}
    result = data.get("query_result") or {}
    is_error = view.last is not None and view.last.type == "error"
    return PastAnswer(
        run_id=head.run_id,
        conversation_id=head.conversation_id,
        question=head.question,
        lang=head.lang,
        sql=data.get("sql") or (data.get("state_summary") or {}).get("sql"),
        row_count=result.get("row_count"),
        chart=data.get("chart"),
        is_one_query=len(data.get("sources", ())) <= 1,
        is_draft=data.get("response_type") == _DRAFT,
        error_type=data.get("error_type") if is_error else None,
        error=data.get("error") if is_error else None,
        before=before,
        database=(data.get("database") or {}).get("name"),
    )
