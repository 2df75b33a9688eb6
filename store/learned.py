"""The port of what is learnt: examples, lessons and documents, who sees them, and how people review
them.

Everything belongs to one datasource. What is shared is seen by everybody, what is a user's own by
that user alone. Only `review` moves anything from one to the other, only `add` with shared trust
(the operator's loading tool) writes shared things at once, and nothing that one user says changes
what is shared, or another user's own.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from common.learning import (
    Document,
    Example,
    Feedback,
    Lesson,
    Topic,
    Trust,
    same_question,
)

Item = Example | Lesson | Document
LearntKind = Literal["example", "lesson"]
LearntState = Literal["active", "stale", "rejected"]
"""Stale: of examples only, see `Example.is_stale`."""
ReviewVerdict = Literal["approve", "reject", "certify"]
Kept = Literal["kept", "full"]
"""`full`: the feedback is kept, but the datasource holds as much as it may, so that nothing was
learnt from it.
"""
Added = Literal["added", "known", "full"]
"""`known`: the same is there already, with no less trust. `full`: there is no room."""
ReviewOutcome = Literal["done", "unknown", "own", "changed", "full"]
"""`own`: nobody reviews what they brought themselves. `changed`: it is no longer as the reviewer
saw it. `full`: as much is shared as may be.
"""


@dataclass(frozen=True)
class LearnedItems:
    """The items that are shared, or one user's own, as of one moment.

    Rejected items are left out, stale ones are not.

    Attributes:
        revision: another one with every change; the use of an example is none.
        examples: certified ones before reviewed ones, personal ones before candidates, and then the
            newest first.
        lessons: the newest first.
        documents: the last load first, each in its order; a user's own items have none.
    """

    revision: str
    examples: tuple[Example, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Visible:
    """Everything that one user may be shown about one datasource.

    Attributes:
        shared: the same object for all users of a process as long as nothing changes.
        own: what is this user's alone: candidates and personal examples, and lessons that are not
            shared.
    """

    shared: LearnedItems
    own: LearnedItems

    @property
    def examples(self) -> tuple[Example, ...]:
        """Return the user's own, then the shared ones."""
        return self.own.examples + self.shared.examples

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """Return the user's own, then the shared ones."""
        return self.own.lessons + self.shared.lessons


@dataclass(frozen=True)
class Learning:
    """Feedback of a user on an answer, with what is learnt from it.

    Attributes:
        question, sql: what the answer was about; `sql` is None when it had none.
        example: with trust `candidate` or `personal`, by the user who says it.
        lesson: not shared, by the same user.
        teaches: whether the feedback changes what is learnt; else it is only kept, and there is
            neither example nor lesson.
        topic: what was answered.
        meaning: digest of what was asked, of a draft; None of a question, whose words are it.
    """

    datasource: str
    feedback: Feedback
    question: str
    sql: str | None = None
    example: Example | None = None
    lesson: Lesson | None = None
    teaches: bool = True
    topic: Topic = "question"
    meaning: str | None = None

    @property
    def asked(self) -> str:
        """Return what was asked, as `Example.asked` gives it."""
        if self.meaning is not None:
            return self.meaning

        return same_question(self.question)


@dataclass(frozen=True)
class Reviewed:
    """The outcome of a verdict, and the example or lesson as it is now; None: it is unknown."""

    outcome: ReviewOutcome
    item: Example | Lesson | None = None


@dataclass(frozen=True)
class LearnedFilter:
    """The kinds of entries that a list shows.

    Attributes:
        seen_by: the user who looks: their own and what is shared; None: a reviewer, who sees
            everybody's.
        trusts: the trust of examples; a lesson counts as `reviewed` when it is shared, else as
            `personal`.
    """

    seen_by: str | None
    trusts: Collection[Trust] = ("candidate", "personal", "reviewed", "certified")
    states: Collection[LearntState] = ("active", "stale", "rejected")


@dataclass(frozen=True)
class LearnedPage:
    """One page of a list, the newest first; `next_cursor` gives the next page, None when it is the
    last.
    """

    items: tuple[Example | Lesson, ...]
    next_cursor: str | None


class Learned(Protocol):
    """The port for what is learnt.

    All methods raise `StoreUnavailable`, and may be cancelled: then all of a change is kept or
    none. Repeating a call changes nothing more.
    """

    async def visible(self, datasource: str, user_id: str, topic: Topic = "question") -> Visible:
        """Return all that this user may be shown of that topic, without what is rejected.

        Documents are there for questions alone.

        Meant to be called for every question: one small read tells whether anything has changed,
        and as long as nothing has, the same `LearnedItems` come back. So what is worked out
        of them may be kept by their identity or their revision. Parts of many users are forgotten
        and read again.
        """

    async def keep(self, learning: Learning) -> Kept:
        """Keep feedback and what is learnt from it, together or not at all.

        The latest feedback of a user for a run replaces the one before, with what had been learnt
        from that as long as nobody has shared it. Feedback also settles what the user said of the
        same question earlier: an own example for it gives way to the new one, an own example with
        SQL that is now called wrong goes, and so does an own lesson about SQL that is now called
        right. Beyond the user's room the oldest go, candidates first. What is rejected or shared
        stays as it is, also when the same example is brought again.
        """

    async def feedback(self, user_id: str, run_id: str) -> Feedback | None:
        """Return what the user said last of this run; None when nothing is kept."""

    async def add(self, datasource: str, items: Sequence[Item]) -> Mapping[str, Added]:
        """Add examples, lessons and documents as they are, each under its id; what became of each,
        by its id.

        An example that is there with less trust gets that of the new one. Nothing gives way to what
        is added: what has no room is `full`. Shared trust is for the operator's loading tool alone:
        no endpoint may pass it on.
        """

    async def replace_documents(
        self, datasource: str, source: str, documents: Sequence[Document]
    ) -> Mapping[str, Added]:
        """Add documents of `source` and remove its others."""

    async def find(self, datasource: str, item_id: str) -> Example | Lesson | None:
        """Return the example or lesson, whoever's it is; None when there is none."""

    async def review(
        self,
        datasource: str,
        item_id: str,
        reviewer: str,
        verdict: ReviewVerdict,
        *,
        seen: Trust | None = None,
    ) -> Reviewed:
        """Decide on an example or a lesson; a lesson can't be certified (`unknown`).

        `approve` raises it to `reviewed`, `certify` to `certified`, `reject` takes it from
        everybody: its author still sees it in lists. Of two verdicts at once one counts, and the
        other is `changed`.

        Args:
            reviewer: another person than the author; the caller has checked that they may review.
            seen: the trust that the reviewer saw; another one now is `changed`. None: any will do.
        """

    async def mark_stale(self, datasource: str, reasons: Mapping[str, str]) -> None:
        """Mark examples whose tables have changed, each with the reason; those that are gone by now
        are left out.
        """

    async def mark_proven(self, datasource: str, hashes: Mapping[str, str], proven_at: str) -> None:
        """Mark examples as proven, each for tables of this hash; they are stale no longer.

        Judge by what everybody may read: for an actor who may read less, tables look different and
        queries fail.
        """

    async def count_use(self, datasource: str, example_ids: Iterable[str]) -> None:
        """Count an answer for each of the examples; a crash may lose the latest counts. Trust
        stays what it is.
        """

    async def page(
        self,
        datasource: str,
        kind: LearntKind,
        wanted: LearnedFilter,
        limit: int,
        cursor: str | None = None,
    ) -> LearnedPage:
        """Return one page of examples or lessons of all topics, the newest first.

        Raises `InvalidCursor` for a cursor that no page gave.
        """

    async def delete(self, datasource: str, item_id: str, by: str | None) -> bool:
        """Forget an example or a lesson; false when it is unknown, or `by` may not.

        Args:
            by: its author, who may delete it as long as it is not shared; None: a reviewer, who
                always may.
        """
