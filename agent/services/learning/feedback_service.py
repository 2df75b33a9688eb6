"""Takes what users say of answers, and learns from it what can be proven."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from agent.answers.learnt_items import learnt_item_json
from agent.answers.shown_result import shown_result
from agent.extensions.points import UNOBSERVED, ObservabilityProvider
from agent.runs.past_answers import PastAnswer, PastAnswers
from agent.services.learning.learning_source import LearningSource
from common.actor import Actor
from common.audit import Occasion
from common.errors import CituError, DatabaseUnavailable, QueryTimeout, StatementRejected
from common.inquiry import Inquiry
from common.learning import (
    MAX_QUESTION_CHARS,
    MAX_SENTENCE_CHARS,
    MAX_SQL_CHARS,
    Example,
    ExampleSource,
    Feedback,
    Lesson,
    Rating,
    example_id,
    lesson_id,
)
from common.ports import Database
from common.text import Lang, Text
from common.values import PlanEstimate, QueryResult
from knowledge.learning.failure_analysis import Case, analysed
from knowledge.learning.intake import now
from knowledge.learning.proofs import Proof, proven
from store import Learned, Learning
from store.learned_json import item_id

_TOO_LONG = Text(
    "处理时间超过上限，请缩小查询范围后重试。",
    "The statement took longer than allowed; narrow it and try again.",
)
_NOT_LEARNING = Text(
    "已记录评价；本服务已关闭学习（LEARNING=false）。",
    "The feedback is kept; this service does not learn (LEARNING).",
)
_UNKNOWN_USER = Text(
    "已记录评价，但没有学习：没有 API 密钥时，任何人都可能以这个用户的名义说话。",
    "The feedback is kept and nothing was learnt: without an API key, anybody could speak in "
    "this user's name.",
)
_FULL = Text(
    "已记录评价，但没有学习：保存的例子已达上限。",
    "The feedback is kept and nothing was learnt: as much is kept as may be.",
)
_DEPENDS = Text(
    "已记录评价，但没有保存为例子：这个问题离开前面的对话就不完整。",
    "The feedback is kept, but makes no example: the question is not complete without the "
    "conversation before it.",
)
_SEVERAL = Text(
    "已记录评价，但没有保存为例子：这个回答来自多个查询，没有一个查询能单独回答这个问题。",
    "The feedback is kept, but makes no example: the answer rests on several queries, none of "
    "which answers it alone.",
)
_OF_DRAFT = Text(
    "已记录评价；草稿请在它自己的运行中评价（kind 为 feedback 的提问），那里的评价会被学习。",
    "The feedback is kept. Drafts are learnt from where they are rated in their own run, by the "
    "question of the kind `feedback`.",
)
_TOO_LARGE = Text(
    "已记录评价，但没有保存为例子：问题或 SQL 过长。",
    "The feedback is kept, but makes no example: the question or the SQL is too long.",
)


@dataclass(frozen=True)
class GivenFeedback:
    """The feedback of a user.

    Attributes:
        lang: language of messages.
        is_credible: whether nobody else could say it in the user's name; else nothing is learnt
            from it.
        notices: warnings about the request itself.
    """

    run_id: str
    rating: Rating
    actor: Actor
    lang: Lang
    comment: str | None = None
    modified_sql: str | None = None
    conversation_id: str | None = None
    is_credible: bool = True
    notices: tuple[Text, ...] = ()


@dataclass(frozen=True)
class _RatedAnswer:
    """Feedback with the answer that it is about.

    Attributes:
        source: the answer's database.
        database: the same for this occasion; its statements are audited.
    """

    given: GivenFeedback
    answered: PastAnswer
    source: LearningSource
    database: Database

    async def proven(self, sql: str) -> Proof:
        """Return the proof of a statement; raises what `knowledge.learning.proofs.proven` does."""
        return await proven(sql, self.database, self.source.definitions)


@dataclass(frozen=True)
class _Learnt:
    """The lessons of feedback, and what is shown with it."""

    example: Example | None = None
    lesson: Lesson | None = None
    plan: PlanEstimate | None = None
    result: QueryResult | None = None
    notices: tuple[Text, ...] = ()


class FeedbackService:
    """Takes feedback on answers.

    Args:
        source_of: gives the database of an answer by its name; None: the default one.
        is_complete: whether a question can be understood without its conversation.
        learns: whether anything is learnt; else feedback is only kept.
        request_timeout_s: seconds for one request.
        tell: is given the run, the rating and the user of each feedback that was kept.
    """

    def __init__(
        self,
        answers: PastAnswers,
        learned: Learned,
        source_of: Callable[[str | None], LearningSource],
        is_complete: Callable[[Inquiry], Awaitable[bool]],
        *,
        learns: bool,
        request_timeout_s: float,
        observer: ObservabilityProvider = UNOBSERVED,
        tell: Callable[[str, str, str], None] | None = None,
    ) -> None:
        self._answers = answers
        self._observer = observer
        self._tell = tell
        self._learned = learned
        self._source_of = source_of
        self._is_complete = is_complete
        self._learns = learns
        self._request_timeout_s = request_timeout_s

    async def take(self, feedback: GivenFeedback) -> dict[str, Any]:
        """Keep the feedback with what is learnt from it, together or not at all; the answer's body.

        Raises:
            NotFound, Conflict: there is no such answer of this user, or not yet.
            StatementRejected, QueryTimeout, DatabaseUnavailable: the corrected SQL is refused;
                nothing is kept.
            StoreUnavailable: it can't be kept, or perhaps was; repeating it is harmless.
        """
        try:
            async with asyncio.timeout(self._request_timeout_s):
                return await self._record(feedback)
        except TimeoutError as exc:
            raise QueryTimeout(_TOO_LONG) from exc

    async def _record(self, feedback: GivenFeedback) -> dict[str, Any]:
        user_id = feedback.actor.owner
        answered = await self._answers.find(user_id, feedback.run_id, feedback.conversation_id)
        source = self._source_of(answered.database)
        database = source.open_database(_occasion(feedback, answered))
        learnt = await self._learnt(_RatedAnswer(feedback, answered, source, database))
        stored_feedback = Feedback(
            feedback.run_id,
            user_id,
            feedback.rating,
            now(),
            feedback.comment,
            feedback.modified_sql,
        )
        learning = Learning(
            source.name,
            stored_feedback,
            answered.question,
            answered.sql,
            learnt.example,
            learnt.lesson,
            teaches=self._learns and feedback.is_credible and not answered.is_draft,
        )
        if await self._learned.keep(learning) == "full":
            learnt = replace(learnt, example=None, lesson=None, notices=(*learnt.notices, _FULL))

        self._observer.metric("feedback", 1, {"verdict": feedback.rating})
        if self._tell is not None:
            self._tell(feedback.run_id, feedback.rating, user_id)

        return await self._body(feedback, learnt, source)

    async def _learnt(self, rated: _RatedAnswer) -> _Learnt:
        feedback, answered = rated.given, rated.answered
        if answered.is_draft:
            return _Learnt(notices=(_OF_DRAFT,))
        if feedback.rating == "need_modification" and feedback.modified_sql:
            learnt = await self._corrected(feedback.modified_sql, rated)
        elif feedback.rating == "satisfied" and answered.sql:
            learnt = await self._learn_confirmed(answered.sql, rated)
        elif feedback.rating == "unsatisfied":
            learnt = _Learnt(lesson=await self._lesson(rated))
        else:
            return _Learnt()

        if not self._learns:
            return replace(learnt, example=None, lesson=None, notices=(_NOT_LEARNING,))
        if not feedback.is_credible:
            return replace(learnt, example=None, lesson=None, notices=(_UNKNOWN_USER,))

        return learnt

    async def _corrected(self, sql: str, rated: _RatedAnswer) -> _Learnt:
        """Return the corrected statement, once it has run, and why the first one was wrong."""
        proof = await rated.proven(sql)
        result = await rated.database.run(sql)
        learnt = await self._example(sql, proof, "correction", rated)
        lesson = await self._lesson(rated)
        return replace(learnt, lesson=lesson, plan=proof.plan, result=result)

    async def _learn_confirmed(self, sql: str, rated: _RatedAnswer) -> _Learnt:
        if not rated.answered.is_one_query:
            return _Learnt(notices=(_SEVERAL,))

        try:
            proof = await rated.proven(sql)
        except StatementRejected as error:  # the tables, or the user's rights, have changed since
            return _Learnt(notices=(_refused_now(error),))

        return await self._example(sql, proof, "feedback", rated)

    async def _example(
        self, sql: str, proof: Proof, origin: ExampleSource, rated: _RatedAnswer
    ) -> _Learnt:
        answered, source = rated.answered, rated.source
        if len(answered.question) > MAX_QUESTION_CHARS or len(sql) > MAX_SQL_CHARS:
            return _Learnt(notices=(_TOO_LARGE,))

        catalog = await source.database_of(rated.given.actor).catalog()
        if not await self._is_complete(
            Inquiry(answered.question, answered.lang, catalog, history=answered.before)
        ):
            return _Learnt(notices=(_DEPENDS,))

        author = rated.given.actor.owner
        example = Example(
            example_id=example_id(source.name, author, answered.question, sql),
            datasource=source.name,
            question=answered.question,
            sql=sql,
            lang=answered.lang,
            trust="personal",
            author=author,
            source=origin,
            tables=proof.tables,
            tables_hash=proof.tables_hash,
            created_at=now(),
            proven_at=now(),
        )
        return _Learnt(example)

    async def _lesson(self, rated: _RatedAnswer) -> Lesson | None:
        feedback, answered, source = rated.given, rated.answered, rated.source
        case = Case(
            lang=answered.lang,
            sql=answered.sql,
            corrected=feedback.modified_sql,
            comment=feedback.comment,
            error_type=answered.error_type,
            error=answered.error,
            row_count=answered.row_count,
        )
        analysis = analysed(await _examined(case, rated))
        if analysis is None or len(answered.question) > MAX_QUESTION_CHARS:
            return None

        author = feedback.actor.owner
        cause, hint = _short(analysis.root_cause), _short(analysis.avoidance_hint)
        return Lesson(
            lesson_id=lesson_id(source.name, author, answered.question, answered.sql, cause, hint),
            datasource=source.name,
            question=answered.question,
            sql=answered.sql[:MAX_SQL_CHARS] if answered.sql else None,
            lang=answered.lang,
            author=author,
            failure_type=analysis.failure_type,
            root_cause=cause,
            avoidance_hint=hint,
            created_at=now(),
        )

    async def _body(
        self, feedback: GivenFeedback, learnt: _Learnt, source: LearningSource
    ) -> dict[str, Any]:
        notices = (*feedback.notices, *learnt.notices)
        return {
            "run_id": feedback.run_id,
            "rating": feedback.rating,
            "example": await self._shown(learnt.example, source),
            "lesson": await self._shown(learnt.lesson, source),
            "query_result": None,
            **await self._rows(feedback, learnt.result, source),
            "plan": learnt.plan.shown() if learnt.plan else None,
            "warnings": [notice.to(feedback.lang) for notice in notices],
            "timestamp": now(),
        }

    async def _rows(
        self, feedback: GivenFeedback, result: QueryResult | None, source: LearningSource
    ) -> dict[str, Any]:
        if result is None or feedback.modified_sql is None:
            return {}

        catalog = await source.database_of(feedback.actor).catalog()
        return shown_result(feedback.modified_sql, result, catalog, feedback.lang)

    async def _shown(
        self, learnt: Example | Lesson | None, source: LearningSource
    ) -> dict[str, Any] | None:
        """Return the entry as the store has it, which may be shared or rejected already."""
        item = await self._learned.find(source.name, item_id(learnt)) if learnt else None
        return learnt_item_json(item) if item else None


async def _examined(case: Case, rated: _RatedAnswer) -> Case:
    """Return the case with what guard and EXPLAIN say of its statement now."""
    if case.sql is None:
        return case

    try:
        proof = await rated.proven(case.sql)
    except (StatementRejected, QueryTimeout) as error:
        return replace(case, refusal=error)
    except DatabaseUnavailable:
        return case

    return replace(case, plan=proof.plan)


def _occasion(feedback: GivenFeedback, answered: PastAnswer) -> Occasion:
    return Occasion(
        "feedback",
        feedback.run_id,
        feedback.actor,
        answered.conversation_id,
        answered.question,
        database=answered.database,
    )


def _refused_now(error: CituError) -> Text:
    zh = f"已记录评价，但没有保存为例子：这条 SQL 现在无法通过检查（{error.text.zh}）"
    return Text(
        zh, f"The feedback is kept, but makes no example: the SQL is refused now. {error.text.en}"
    )


def _short(sentence: str) -> str:
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence

    return sentence[: MAX_SENTENCE_CHARS - 1] + "…"
