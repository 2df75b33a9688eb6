"""Writes and reads what is learnt as records: their keys, texts, record sets and positions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from common.learning import (
    SHARED,
    Document,
    EtlExample,
    EtlLesson,
    Example,
    Feedback,
    Lesson,
    Topic,
    Trust,
)
from store.learned import Item, LearntKind, LearntState
from store.record_json import key, plain_from_text, to_text
from store.records import Record, StoredRecord

_KINDS: Mapping[str, Any] = {
    "example": Example,
    "lesson": Lesson,
    "document": Document,
    "etl_example": EtlExample,
    "etl_lesson": EtlLesson,
}
_KIND_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {
    kind: frozenset(field.name for field in fields(kind)) for kind in (*_KINDS.values(), Feedback)
}
SHARED_KINDS: Mapping[Topic, tuple[str, ...]] = {
    "question": ("example", "lesson", "document"),
    "etl": ("etl_example", "etl_lesson"),
}
"""Names of the kinds of a topic of which there are shared items."""
OWN_KINDS: Mapping[Topic, tuple[str, str]] = {
    "question": ("example", "lesson"),
    "etl": ("etl_example", "etl_lesson"),
}
"""Names of a topic's examples and lessons."""
LISTED_KINDS: Mapping[LearntKind, tuple[str, ...]] = {
    "example": ("example", "etl_example"),
    "lesson": ("lesson", "etl_lesson"),
}
"""Names of the kinds, of all topics, that stand in one list."""
# Positions are microseconds since 1970, which are less than 2**52 until the year 2112. What has one
# of the trusts in `_UPPER` stands before all others of its record set.
_UPPER_HALF = 2**52
_UPPER: tuple[Trust, ...] = ("personal", "certified")


@dataclass(frozen=True)
class NotedFeedback:
    """Feedback as it is kept, with what was learnt from it."""

    feedback: Feedback
    example_id: str | None = None
    lesson_id: str | None = None


def item_id(item: Item) -> str:
    if isinstance(item, Example):
        return item.example_id
    if isinstance(item, Lesson):
        return item.lesson_id

    return item.document_id


def item_key(item_id: str) -> bytes:
    """Return the key of the record of the item with this id."""
    return key("learned", item_id)


def note_key(user_id: str, run_id: str) -> bytes:
    """Return the key of the record of what a user said of a run."""
    return key("feedback", user_id, run_id)


def notes_set(user_id: str) -> bytes:
    """Return the key of the record set of what one user said of runs."""
    return key("feedback", user_id)


def shared_set(datasource: str, kind: str) -> bytes:
    """Return the key of the record set that everybody sees."""
    return key("shared", datasource, kind)


def own_set(datasource: str, kind: str, user_id: str) -> bytes:
    """Return the key of the record set of what a user has that is not shared."""
    return key("own", datasource, kind, user_id)


def all_set(datasource: str, kind: str) -> bytes:
    """Return the key of the record set of all users' items."""
    return key("all", datasource, kind)


def list_set(datasource: str, kind: str, trust: Trust, state: LearntState) -> bytes:
    """Return the key of the record set of all users' items in one state."""
    return key("list", datasource, kind, trust, state)


def kind_of(item: Item) -> str:
    return _KIND_NAMES[type(item)]


def trust_of(item: Example | Lesson) -> Trust:
    """Return an example's trust; a lesson's is `reviewed` when it is shared, else `personal`."""
    if isinstance(item, Example):
        return item.trust

    return "reviewed" if item.is_shared else "personal"


def state_of(item: Example | Lesson) -> LearntState:
    if item.is_rejected:
        return "rejected"
    if isinstance(item, Example) and item.is_stale:
        return "stale"

    return "active"


def listed_at(item: Example | Lesson) -> int:
    """Return the item's position in lists: microseconds since 1970."""
    return round(datetime.fromisoformat(item.created_at).timestamp() * 1_000_000)


def record_of(item: Item, position: int = 0) -> Record:
    """Write the item as a record in all its record sets; `position` is that of a document."""
    kind = kind_of(item)
    values = {"item": kind, **vars(item)}
    values.pop("uses", None)  # the store counts them beside the text
    if isinstance(item, Document):
        positions = {shared_set(item.datasource, kind): position}
    else:
        positions = _positions(item, kind)

    return Record(item_key(item_id(item)), to_text(values), positions)


def _positions(item: Example | Lesson, kind: str) -> dict[bytes, int]:
    """Return the item's positions in its record sets."""
    trust, listed = trust_of(item), listed_at(item)
    seen_in = shared_set(item.datasource, kind)
    if trust not in SHARED:
        seen_in = own_set(item.datasource, kind, item.author)

    is_upper = isinstance(item, Example) and trust in _UPPER
    return {
        seen_in: listed + _UPPER_HALF if is_upper else listed,
        all_set(item.datasource, kind): listed,
        list_set(item.datasource, kind, trust, state_of(item)): listed,
    }


def item_of(record: StoredRecord) -> Item:
    """Read the item that a record keeps."""
    values = plain_from_text(record.text)
    kind = _KINDS[values["item"]]
    item_fields = _known_fields(kind, values)
    if issubclass(kind, Example):
        item_fields["tables"] = tuple((schema, name) for schema, name in item_fields["tables"])
        item_fields["uses"] = record.uses

    if kind is EtlExample:
        item_fields["code"] = tuple((node, sql) for node, sql in item_fields["code"])

    item: Item = kind(**item_fields)
    return item


def note_record(noted: NotedFeedback) -> Record:
    """Write feedback as a record."""
    feedback = noted.feedback
    at = round(datetime.fromisoformat(feedback.given_at).timestamp() * 1_000_000)
    text = to_text(
        {"feedback": vars(feedback), "example_id": noted.example_id, "lesson_id": noted.lesson_id}
    )
    return Record(
        note_key(feedback.user_id, feedback.run_id), text, {notes_set(feedback.user_id): at}
    )


def note_of(record: StoredRecord) -> NotedFeedback:
    """Read the feedback that a record keeps."""
    values = plain_from_text(record.text)
    feedback = Feedback(**_known_fields(Feedback, values["feedback"]))
    return NotedFeedback(feedback, values["example_id"], values["lesson_id"])


def lists(
    datasource: str, kind: LearntKind, trusts: Collection[Trust], states: Collection[LearntState]
) -> tuple[bytes, ...]:
    """Return the keys of the record sets of all users' items in these states."""
    return tuple(
        list_set(datasource, name, trust, state)
        for name in LISTED_KINDS[kind]
        for trust in trusts
        for state in states
    )


def _known_fields(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` without fields that a newer version may have added."""
    return {name: value for name, value in values.items() if name in _FIELDS[kind]}
