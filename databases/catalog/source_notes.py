"""What a hub knows of an attached source beyond its foreign tables, which can't have keys.

It is kept as JSON in the comment of the foreign server: every role can read it, and it goes with
the server.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from common.values import ForeignKey, Table

_log = logging.getLogger(__name__)
BEGINS = '{"citu_source": '
_VERSION = 1


@dataclass(frozen=True)
class NotedKeys:
    """The keys of one table of the hub, as the source declares them."""

    table: tuple[str, str]
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    foreign: tuple[ForeignKey, ...] = ()

    @classmethod
    def of(cls, table: Table) -> "NotedKeys":
        """Return the keys of a table as the catalogue has them."""
        return cls(table.key, table.primary_key, table.unique_keys, table.foreign_keys)

    @property
    def has_any(self) -> bool:
        """Tell whether there is any key."""
        return bool(self.primary or self.unique or self.foreign)


@dataclass(frozen=True)
class NotedReference:
    """A column of one source whose values are keys of another's table."""

    table: tuple[str, str]
    column: str
    target: tuple[str, str]
    target_column: str

    @property
    def key(self) -> ForeignKey:
        """Return the reference as a foreign key of its table."""
        return ForeignKey((self.column,), self.target, (self.target_column,))


@dataclass(frozen=True)
class SourceNote:
    """A source as the comment of its foreign server describes it.

    Attributes:
        kind: `postgresql` or `mysql`.
        schemas: the source's schemas, and the hub's that stand for them.
        reader: the hub's role that asks.
        has_views: whether the source's views are attached, too.
        digests: a digest of each table as it was made, by the hub's schema and name.
        comments: digests of the comments that each table was given, by the hub's schema and name.
        has_references: whether references to and from other sources are looked for.
        references: those from its tables.
    """

    kind: str
    schemas: Mapping[str, str]
    reader: str
    keys: Sequence[NotedKeys] = ()
    has_views: bool = False
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    comments: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    has_references: bool = True
    references: Sequence[NotedReference] = ()

    def text(self) -> str:
        """Return the note as the text of its server's comment."""
        key_entries = [asdict(keys) for keys in self.keys if keys.has_any]
        note = {
            "citu_source": _VERSION,
            "kind": self.kind,
            "schemas": dict(self.schemas),
            "reader": self.reader,
            "has_views": self.has_views,
            "keys": key_entries,
            "digests": [[*key, digest] for key, digest in self.digests.items()],
            "comments": [[*key, dict(digests)] for key, digests in self.comments.items()],
            "has_references": self.has_references,
            "references": [asdict(reference) for reference in self.references],
        }
        return json.dumps(note, ensure_ascii=False)


_NOTE = TypeAdapter(SourceNote)


def note_in(comment: str) -> SourceNote | None:
    """Return what the comment of a server notes; None when it is no such note."""
    if not comment.startswith(BEGINS):
        return None

    try:
        values: dict[str, Any] = json.loads(comment)
        values.pop("citu_source")
        for part in ("digests", "comments"):
            listed = values.pop(part, ())
            values[part] = {(schema, name): one for schema, name, one in listed}

        return _NOTE.validate_python(values)
    except (ValueError, ValidationError):
        _log.warning("the note of an attached source can't be read: attach it again")
        return None


def noted_keys(comments: Iterable[str]) -> Mapping[tuple[str, str], NotedKeys]:
    """Return the keys that the comments of servers note, by schema and name of the table."""
    keys_by_table: dict[tuple[str, str], NotedKeys] = {}
    for note in filter(None, map(note_in, comments)):
        keys_by_table |= {keys.table: keys for keys in note.keys}
        for reference in note.references:
            keys = keys_by_table.get(reference.table, NotedKeys(reference.table))
            keys_by_table[reference.table] = replace(keys, foreign=(*keys.foreign, reference.key))

    return keys_by_table
