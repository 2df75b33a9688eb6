"""What feedback and reviews change of what is learnt: the rules, without a store."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from common.learning import SHARED, Example, Feedback, Lesson, Trust
from store.learned import Item, Learning, ReviewOutcome, ReviewVerdict
from store.learned_json import NotedFeedback, item_id, trust_of

_ORDER: tuple[Trust, ...] = ("candidate", "personal", "reviewed", "certified")
_REJECTED: Trust = "candidate"  # the trust of what is rejected
_TRUSTS: Mapping[ReviewVerdict, Trust] = {
    "approve": "reviewed",
    "certify": "certified",
    "reject": _REJECTED,
}
_MADE_BY_FEEDBACK = ("feedback", "correction")
_CALLED_WRONG = ("unsatisfied", "need_modification")

Changes = dict[str, Item | None]
"""Items as they are to be, by their ids; None: it goes."""


def feedback_change(
    learning: Learning,
    before: NotedFeedback | None,
    own: Collection[Example | Lesson],
    items_by_id: Mapping[str, Item],
) -> tuple[NotedFeedback, Changes]:
    """Return what to note of the feedback, and what changes with it.

    Args:
        before: what was noted of the same user's feedback for the same run.
        own: all that is the user's own.
        items_by_id: whatever has the ids of the new example and the new lesson, by id.
    """
    if not learning.teaches:
        noted = NotedFeedback(learning.feedback)
        if before is not None:
            noted = replace(before, feedback=learning.feedback)

        return noted, {}

    if _brings_rejected(learning, items_by_id):
        learning = replace(learning, example=None)

    example = _kept_example(learning.example, items_by_id)
    lesson = _kept_lesson(learning.lesson, items_by_id)
    changes: Changes = dict.fromkeys(_withdrawn(learning, before, own))
    for item in (example, lesson):
        if item is not None:
            changes[item_id(item)] = item

    return _noted_feedback(learning.feedback, example, lesson), _without_known(changes, items_by_id)


def _noted_feedback(
    feedback: Feedback, example: Example | None, lesson: Lesson | None
) -> NotedFeedback:
    example_id = None
    if example is not None and example.source in _MADE_BY_FEEDBACK:
        example_id = example.example_id

    lesson_id = lesson.lesson_id if lesson else None
    return NotedFeedback(feedback, example_id, lesson_id)


def _without_known(changes: Changes, known_items: Mapping[str, Item]) -> Changes:
    """Return the changes without items that are there already as they are to be."""
    left: Changes = {}
    for changed, item in changes.items():
        if item is None or item != known_items.get(changed):
            left[changed] = item

    return left


def _brings_rejected(learning: Learning, known_items: Mapping[str, Item]) -> bool:
    if learning.example is None:
        return False

    there = known_items.get(learning.example.example_id)
    return isinstance(there, Example) and there.is_rejected


def _withdrawn(
    learning: Learning, before: NotedFeedback | None, own: Iterable[Example | Lesson]
) -> Iterator[str]:
    """Yield the ids of the user's own items that go with new feedback."""
    made_before = {before.example_id, before.lesson_id} if before else set()
    for item in own:
        if item.is_rejected:
            continue

        is_replaced = item_id(item) in made_before
        if is_replaced or _is_settled(item, learning):
            yield item_id(item)


def _is_settled(item: Example | Lesson, learning: Learning) -> bool:
    """Tell whether the feedback says something else about the item's question or statement."""
    if item.asked != learning.asked:
        return False

    is_same_sql = item.sql == learning.sql
    rating = learning.feedback.rating
    if isinstance(item, Lesson):
        has_newer = rating == "satisfied" or learning.lesson is not None
        return is_same_sql and has_newer

    if learning.example is not None:
        return True

    return is_same_sql and rating in _CALLED_WRONG


def _kept_example(example: Example | None, known_items: Mapping[str, Item]) -> Example | None:
    """Return the example to keep; None when the same is shared already."""
    if example is None:
        return None

    there = known_items.get(example.example_id)
    if not isinstance(there, Example):
        return example
    if there.is_shared:
        return None

    return replace(
        example,
        trust=_higher(there.trust, example.trust),
        source=there.source,
        created_at=there.created_at,
        uses=there.uses,
        question=there.question,  # a reviewer may have read it as it is
        lang=there.lang,
    )


def _kept_lesson(lesson: Lesson | None, known_items: Mapping[str, Item]) -> Lesson | None:
    """Return the lesson to keep; None when the same was shared or rejected."""
    if lesson is None:
        return None

    there = known_items.get(lesson.lesson_id)
    if not isinstance(there, Lesson):
        return lesson
    if there.is_shared or there.is_rejected:
        return None

    return replace(lesson, created_at=there.created_at)


def _higher(one: Trust, other: Trust) -> Trust:
    return max(one, other, key=_ORDER.index)


def loaded_item(item: Item, there: Item | None) -> Item | None:
    """Return the item as a load leaves it; None when it is there with no less trust.

    What a reviewer has rejected comes back only with shared trust.
    """
    if there is None:
        return item
    if isinstance(item, Lesson):
        return None
    if isinstance(item, Example) and isinstance(there, Example):
        return _with_higher_trust(item, there)

    return item if item != there else None


def _with_higher_trust(item: Example, there: Example) -> Example | None:
    is_higher = _ORDER.index(item.trust) > _ORDER.index(there.trust)
    may_change = item.is_shared if there.is_rejected else is_higher
    if not may_change:
        return None

    return replace(item, created_at=there.created_at, uses=there.uses)


def reviewed_item(
    item: Example | Lesson, reviewer: str, verdict: ReviewVerdict, seen: Trust | None
) -> tuple[ReviewOutcome, Example | Lesson | None]:
    """Return the outcome of the verdict, and the item as it then is; None: it does not change."""
    if item.author == reviewer:
        return "own", None
    if verdict == "certify" and isinstance(item, Lesson):
        return "unknown", None
    if _is_so(item, verdict):
        return ("done" if item.reviewer == reviewer else "changed"), None
    if _was_decided_otherwise(item, verdict, seen):
        return "changed", None

    is_rejected = verdict == "reject"
    reviewed = replace(item, is_rejected=is_rejected, reviewer=reviewer)
    if isinstance(reviewed, Lesson):
        return "done", replace(reviewed, is_shared=not is_rejected)

    return "done", replace(reviewed, trust=_TRUSTS[verdict])


def _was_decided_otherwise(
    item: Example | Lesson, verdict: ReviewVerdict, seen: Trust | None
) -> bool:
    trust = trust_of(item)
    if seen is not None and trust != seen:
        return True

    return verdict == "approve" and trust in SHARED


def _is_so(item: Example | Lesson, verdict: ReviewVerdict) -> bool:
    if verdict == "reject":
        return item.is_rejected
    if item.is_rejected:
        return False

    return trust_of(item) == _TRUSTS[verdict]


def is_same_state(one: Example | Lesson, other: Example | Lesson) -> bool:
    """Tell whether nobody has decided on an item between two looks at it.

    A proof that came or went is no decision.
    """
    return _decision(one) == _decision(other)


def _decision(item: Example | Lesson) -> tuple[Trust, bool, str | None]:
    return trust_of(item), item.is_rejected, item.reviewer
