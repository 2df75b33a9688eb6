"""What feedback and reviews change of what is learnt: the rules, without a store."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from common.learning import SHARED, Example, Lesson, Trust, same_question
from common.store.learned import Item, Learning, ReviewOutcome, Verdict
from common.store.learned_json import Noted, item_id, trust_of

_ORDER: tuple[Trust, ...] = ("candidate", "personal", "reviewed", "certified")
_REJECTED: Trust = "candidate"  # the trust of what is rejected
_MADE_BY_FEEDBACK = ("feedback", "correction")
_CALLED_WRONG = ("unsatisfied", "need_modification")

Changes = dict[str, Item | None]
"""Items as they are to be, by their ids; None: it goes."""


def learnt(
    learning: Learning, before: Noted | None, own: Collection[Example | Lesson], known: Mapping[str, Item]
) -> tuple[Noted, Changes]:
    """What to note of the feedback, and what changes with it.

    Args:
        before: what was noted of the same user's feedback for the same run.
        own: all that is the user's own.
        known: whatever has the ids of the new example and the new lesson, by id.
    """
    if not learning.teaches:
        return (replace(before, feedback=learning.feedback) if before else Noted(learning.feedback)), {}
    there = known.get(learning.example.example_id) if learning.example else None
    if isinstance(there, Example) and there.is_rejected:
        learning = replace(learning, example=None)
    withdrawn = {before.example_id, before.lesson_id} if before else set()
    changes: Changes = {
        item_id(item): None
        for item in own
        if not item.is_rejected and (item_id(item) in withdrawn or _is_settled(item, learning))
    }
    example = _kept_example(learning.example, known)
    lesson = _kept_lesson(learning.lesson, known)
    changes |= {item_id(item): item for item in (example, lesson) if item is not None}
    made = example is not None and example.source in _MADE_BY_FEEDBACK
    noted = Noted(
        learning.feedback, example.example_id if example and made else None, lesson.lesson_id if lesson else None
    )
    return noted, {changed: item for changed, item in changes.items() if item is None or item != known.get(changed)}


def _is_settled(item: Example | Lesson, learning: Learning) -> bool:
    """Whether the feedback says something else of what this item is about."""
    if same_question(item.question) != same_question(learning.question):
        return False
    if isinstance(item, Lesson):
        is_newer = learning.feedback.rating == "satisfied" or learning.lesson is not None
        return is_newer and item.sql == learning.sql
    is_called_wrong = learning.feedback.rating in _CALLED_WRONG and item.sql == learning.sql
    return learning.example is not None or is_called_wrong


def _kept_example(example: Example | None, known: Mapping[str, Item]) -> Example | None:
    """The example to keep; None when the same is shared already."""
    there = known.get(example.example_id) if example else None
    if example is None or not isinstance(there, Example):
        return example
    if there.is_shared:
        return None
    trust = _higher(there.trust, example.trust)
    kept = replace(example, trust=trust, source=there.source, created_at=there.created_at, uses=there.uses)
    return replace(kept, question=there.question, lang=there.lang)  # a reviewer may have read it as it is


def _kept_lesson(lesson: Lesson | None, known: Mapping[str, Item]) -> Lesson | None:
    there = known.get(lesson.lesson_id) if lesson else None
    if lesson is None or not isinstance(there, Lesson):
        return lesson
    return None if there.is_shared or there.is_rejected else replace(lesson, created_at=there.created_at)


def _higher(one: Trust, other: Trust) -> Trust:
    return max(one, other, key=_ORDER.index)


def added(item: Item, there: Item | None) -> Item | None:
    """The item as a load leaves it; None when the same is there already, with no less trust.

    What a reviewer has rejected comes back only with shared trust.
    """
    if isinstance(item, Example) and isinstance(there, Example):
        if there.is_rejected and not item.is_shared:
            return None
        is_raised = there.is_rejected or _ORDER.index(item.trust) > _ORDER.index(there.trust)
        return replace(item, created_at=there.created_at, uses=there.uses) if is_raised else None
    if isinstance(item, Lesson) and there is not None:
        return None
    return item if item != there else None


def decided(
    item: Example | Lesson, reviewer: str, verdict: Verdict, seen: Trust | None
) -> tuple[ReviewOutcome, Example | Lesson | None]:
    """What the verdict makes of the item; None when it is so already."""
    if item.author == reviewer:
        return "own", None
    if verdict == "certify" and isinstance(item, Lesson):
        return "unknown", None
    if _is_so(item, verdict):
        return ("done" if item.reviewer == reviewer else "changed"), None
    if seen is not None and trust_of(item) != seen:
        return "changed", None
    if verdict == "approve" and trust_of(item) in SHARED:
        return "changed", None
    is_rejected = verdict == "reject"
    if isinstance(item, Lesson):
        return "done", replace(item, is_shared=not is_rejected, is_rejected=is_rejected, reviewer=reviewer)
    trusts: Mapping[Verdict, Trust] = {"approve": "reviewed", "certify": "certified", "reject": _REJECTED}
    return "done", replace(item, trust=trusts[verdict], is_rejected=is_rejected, reviewer=reviewer)


def _is_so(item: Example | Lesson, verdict: Verdict) -> bool:
    if verdict == "reject":
        return item.is_rejected
    return trust_of(item) == ("reviewed" if verdict == "approve" else "certified") and not item.is_rejected


def is_same_state(one: Example | Lesson, other: Example | Lesson) -> bool:
    """Whether nobody has decided on an item between two looks at it; a proof that came or went is no decision."""
    return (trust_of(one), one.is_rejected, one.reviewer) == (trust_of(other), other.is_rejected, other.reviewer)
