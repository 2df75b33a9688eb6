"""What is learnt as records: their keys, texts, shelves and positions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from common.learning import SHARED, Document, Example, Feedback, Lesson, Trust
from common.store.learned import Item, Kind, State
from common.store.record_json import key, plain_from_text, to_text
from common.store.shelves import Found, Record

_KINDS: Mapping[str, Any] = {"example": Example, "lesson": Lesson, "document": Document}
_FIELDS = {kind: frozenset(field.name for field in fields(kind)) for kind in (Example, Lesson, Document, Feedback)}
# Positions are microseconds since 1970, which are less than 2**52 until the year 2112. What has one of the trusts in
# `_UPPER` stands before all others of its shelf.
_UPPER_HALF = 2**52
_UPPER: tuple[Trust, ...] = ("personal", "certified")


@dataclass(frozen=True)
class Noted:
    """Feedback as it is kept, with what was learnt from it."""

    feedback: Feedback
    example_id: str | None = None
    lesson_id: str | None = None


def item_id(item: Item) -> str:
    """The id of an example, a lesson or a document."""
    if isinstance(item, Example):
        return item.example_id
    return item.lesson_id if isinstance(item, Lesson) else item.document_id


def item_key(known: str) -> bytes:
    """The key of the record of the item with this id."""
    return key("learned", known)


def note_key(user_id: str, run_id: str) -> bytes:
    """The key of the record of what a user said of a run."""
    return key("feedback", user_id, run_id)


def notes_shelf(user_id: str) -> bytes:
    """What one user said of runs."""
    return key("feedback", user_id)


def shared_shelf(datasource: str, kind: str) -> bytes:
    """What everybody sees."""
    return key("shared", datasource, kind)


def own_shelf(datasource: str, kind: str, user_id: str) -> bytes:
    """What one user has that is not shared."""
    return key("own", datasource, kind, user_id)


def all_shelf(datasource: str, kind: str) -> bytes:
    """Everybody's."""
    return key("all", datasource, kind)


def list_shelf(datasource: str, kind: str, trust: Trust, state: State) -> bytes:
    """Everybody's in one state."""
    return key("list", datasource, kind, trust, state)


def kind_of(item: Item) -> str:
    """The name of the item's kind."""
    return next(name for name, kind in _KINDS.items() if isinstance(item, kind))


def trust_of(item: Example | Lesson) -> Trust:
    """The trust of an example; a lesson's is `reviewed` when it is shared, else `personal`."""
    if isinstance(item, Example):
        return item.trust
    return "reviewed" if item.is_shared else "personal"


def state_of(item: Example | Lesson) -> State:
    """Whether it may be used."""
    if item.is_rejected:
        return "rejected"
    return "stale" if isinstance(item, Example) and item.is_stale else "active"


def listed_at(item: Example | Lesson) -> int:
    """Its place in lists: microseconds since 1970."""
    return round(datetime.fromisoformat(item.created_at).timestamp() * 1_000_000)


def record_of(item: Item, position: int = 0) -> Record:
    """The item as a record on all its shelves; `position` is that of a document."""
    kind = kind_of(item)
    places: dict[bytes, int]
    if isinstance(item, Document):
        places = {shared_shelf(item.datasource, kind): position}
    else:
        trust, at = trust_of(item), listed_at(item)
        owned = shared_shelf(item.datasource, kind)
        if trust not in SHARED:
            owned = own_shelf(item.datasource, kind, item.author)
        places = {
            owned: at + _UPPER_HALF if isinstance(item, Example) and trust in _UPPER else at,
            all_shelf(item.datasource, kind): at,
            list_shelf(item.datasource, kind, trust, state_of(item)): at,
        }
    kept = {name: value for name, value in vars(item).items() if name != "uses"}
    return Record(item_key(item_id(item)), to_text({"item": kind, **kept}), places)


def item_of(found: Found) -> Item:
    """The item that a record keeps."""
    values = plain_from_text(found.text)
    kind = _KINDS[values["item"]]
    known = _known(kind, values)
    if kind is Example:
        known |= {"tables": tuple((schema, name) for schema, name in known["tables"]), "uses": found.uses}
    item: Item = kind(**known)
    return item


def note_record(noted: Noted) -> Record:
    """Feedback as a record."""
    said = noted.feedback
    at = round(datetime.fromisoformat(said.given_at).timestamp() * 1_000_000)
    text = to_text({"feedback": vars(said), "example_id": noted.example_id, "lesson_id": noted.lesson_id})
    return Record(note_key(said.user_id, said.run_id), text, {notes_shelf(said.user_id): at})


def note_of(found: Found) -> Noted:
    """The feedback that a record keeps."""
    values = plain_from_text(found.text)
    return Noted(Feedback(**_known(Feedback, values["feedback"])), values["example_id"], values["lesson_id"])


def lists(datasource: str, kind: Kind, trusts: Collection[Trust], states: Collection[State]) -> tuple[bytes, ...]:
    """The shelves of everybody's in one of these states."""
    return tuple(list_shelf(datasource, kind, trust, state) for trust in trusts for state in states)


def _known(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` without what is no field, as a newer version may have added it."""
    return {name: value for name, value in values.items() if name in _FIELDS[kind]}
