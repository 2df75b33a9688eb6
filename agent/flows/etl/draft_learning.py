"""Learns from what becomes of a draft: a reference from one that is right, a lesson from others."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.answers.learnt_items import learnt_item_json
from agent.flows.etl.etl_texts import (
    LEARNT_FULL,
    NO_REFERENCE,
    NOT_KEPT,
    NOT_LEARNING,
    TOO_LARGE,
    UNKNOWN_USER,
)
from agent.flows.etl.state import Json
from agent.question import Question
from common.errors import (
    DatabaseUnavailable,
    QueryTimeout,
    StatementRejected,
    StoreUnavailable,
)
from common.learning import (
    MAX_DRAFT_CHARS,
    MAX_QUESTION_CHARS,
    MAX_SENTENCE_CHARS,
    EtlExample,
    EtlLesson,
    Example,
    Feedback,
    Lesson,
    Trust,
    example_id,
    lesson_id,
)
from common.ports import Database, Definitions
from common.text import Text
from etl.schemas.rating import DraftFeedback
from knowledge.learning.failure_analysis import FailureAnalysis
from knowledge.learning.intake import now
from knowledge.learning.proofs import Proof, proven
from store import Learned, Learning
from store.learned_json import item_id

NOTHING: Json = {"example": None, "lesson": None}


@dataclass(frozen=True)
class FinishedDraft:
    """A draft, and what its checks and its user say of it.

    Attributes:
        meaning: digest of what was asked.
        sql: all of it as one query.
        code: (node, SQL) of each model.
        answers: what decided what was open, by the ids of the ambiguities.
        is_proven: whether it was built and all of its tests passed.
        is_corrected: whether its user has changed SQL of it.
        feedback: None of a draft that failed before anybody could judge it.
        failure: why it, or what was there before its user changed it, was wrong.
    """

    question: Question
    meaning: str
    intent: Json
    sql: str
    code: tuple[tuple[str, str], ...]
    target: str
    answers: Json
    is_proven: bool
    is_corrected: bool
    feedback: DraftFeedback | None
    failure: FailureAnalysis | None

    @property
    def is_right(self) -> bool:
        """Tell whether its user stands for it: by saying so, or by having corrected it."""
        if self.feedback is None:
            return False
        if self.feedback.rating == "satisfied":
            return True

        return self.feedback.rating == "skip" and self.is_corrected and self.is_proven


@dataclass(frozen=True)
class LearntOfDraft:
    """The lesson that is shown with a draft, and the reasons where nothing was learnt."""

    learned: Json = field(default_factory=lambda: dict(NOTHING))
    notices: tuple[Text, ...] = ()


class DraftLearning:
    """Keeps what is learnt of drafts over one datasource.

    Args:
        definitions: gives what is known of it whoever asks.
        learns: whether anything is learnt; else ratings are only kept.
    """

    def __init__(
        self,
        learned: Learned,
        datasource: str,
        definitions: Callable[[], Definitions],
        *,
        learns: bool,
    ) -> None:
        self._learned = learned
        self._datasource = datasource
        self._definitions = definitions
        self._learns = learns

    async def learn(self, finished: FinishedDraft, database: Database) -> LearntOfDraft:
        """Keep the rating with what is learnt from it, together or not at all.

        Doing it again, as after a crash, changes nothing more. What can't be kept is said and costs
        nobody the draft.

        Args:
            database: the datasource with the rights of the draft's user.
        """
        try:
            return await self._learn(finished, database)
        except (StoreUnavailable, DatabaseUnavailable, QueryTimeout) as error:
            return LearntOfDraft(notices=(_because(NOT_KEPT, error.text),))

    async def _learn(self, finished: FinishedDraft, database: Database) -> LearntOfDraft:
        refusal = self._why_not(finished.question)
        feedback = finished.feedback
        if feedback is None:
            return await self._learn_of_failure(finished, is_allowed=refusal is None)

        example: EtlExample | None = None
        lesson: EtlLesson | None = None
        notices: list[Text] = []
        if refusal is None:
            lesson = self._lesson(finished)
            if finished.is_right:
                example, reason = await self._example(finished, database)
                notices += [_because(NO_REFERENCE, reason)] if reason else []
        elif feedback.rating != "skip":
            notices.append(refusal)

        learning = self._learning(finished, feedback, example, lesson, teaches=refusal is None)
        if await self._learned.keep(learning) == "full":
            return LearntOfDraft(notices=(*notices, LEARNT_FULL))

        return LearntOfDraft(await self._shown(example, lesson), tuple(notices))

    def _why_not(self, question: Question) -> Text | None:
        if not self._learns:
            return NOT_LEARNING

        # Who rates it may be another request than the one that asked.
        is_credible = question.is_credible and question.actor.is_vouched_for
        return None if is_credible else UNKNOWN_USER

    async def _learn_of_failure(
        self, finished: FinishedDraft, *, is_allowed: bool
    ) -> LearntOfDraft:
        lesson = self._lesson(finished) if is_allowed else None
        if lesson is None:
            return LearntOfDraft()

        await self._learned.add(self._datasource, [lesson])
        return LearntOfDraft(await self._shown(None, lesson))

    def _learning(
        self,
        finished: FinishedDraft,
        feedback: DraftFeedback,
        example: EtlExample | None,
        lesson: EtlLesson | None,
        *,
        teaches: bool,
    ) -> Learning:
        question = finished.question
        stored_feedback = Feedback(
            question.run_id, question.owner, feedback.rating, now(), feedback.comment
        )
        return Learning(
            self._datasource,
            stored_feedback,
            question.question,
            finished.sql,
            example,
            lesson,
            teaches=teaches,
            topic="etl",
            meaning=finished.meaning,
        )

    async def _example(
        self, finished: FinishedDraft, database: Database
    ) -> tuple[EtlExample | None, Text | None]:
        """Return the reference, or why there is none."""
        question = finished.question
        chars = len(finished.sql) + sum(len(sql) for _, sql in finished.code)
        if len(question.question) > MAX_QUESTION_CHARS or chars > MAX_DRAFT_CHARS:
            return None, TOO_LARGE

        try:
            proof = await proven(finished.sql, database, self._definitions, at_any_cost=True)
        except StatementRejected as error:
            return None, error.text

        return self._proven_example(finished, proof), None

    def _proven_example(self, finished: FinishedDraft, proof: Proof) -> EtlExample:
        question = finished.question
        trust: Trust = "personal" if finished.is_proven else "candidate"
        return EtlExample(
            example_id=example_id(self._datasource, question.owner, finished.meaning, finished.sql),
            datasource=self._datasource,
            question=question.question,
            sql=finished.sql,
            lang=question.answer_lang,
            trust=trust,
            author=question.owner,
            source="correction" if finished.is_corrected else "feedback",
            tables=proof.tables,
            tables_hash=proof.tables_hash,
            created_at=now(),
            proven_at=now(),
            meaning=finished.meaning,
            intent=finished.intent,
            code=finished.code,
            target=finished.target,
            answers=finished.answers,
        )

    def _lesson(self, finished: FinishedDraft) -> EtlLesson | None:
        question, failure = finished.question, finished.failure
        if failure is None or len(question.question) > MAX_QUESTION_CHARS:
            return None

        sql = finished.sql if len(finished.sql) <= MAX_DRAFT_CHARS else None
        cause = failure.root_cause[:MAX_SENTENCE_CHARS]
        hint = failure.avoidance_hint[:MAX_SENTENCE_CHARS]
        return EtlLesson(
            lesson_id=lesson_id(
                self._datasource, question.owner, finished.meaning, sql, cause, hint
            ),
            datasource=self._datasource,
            question=question.question,
            sql=sql,
            lang=question.answer_lang,
            author=question.owner,
            failure_type=failure.failure_type,
            root_cause=cause,
            avoidance_hint=hint,
            created_at=now(),
            meaning=finished.meaning,
        )

    async def _shown(self, *learnt: Example | Lesson | None) -> Json:
        """Return what the store has of it: of what was shared or rejected already, that."""
        example, lesson = [
            await self._learned.find(self._datasource, item_id(one)) if one else None
            for one in learnt
        ]
        return {
            "example": learnt_item_json(example) if example else None,
            "lesson": learnt_item_json(lesson) if lesson else None,
        }


def _because(text: Text, reason: Text) -> Text:
    return Text(text.zh.format(reason=reason.zh), text.en.format(reason=reason.en))
