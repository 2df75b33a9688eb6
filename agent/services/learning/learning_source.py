"""One database, as far as learning about it needs it."""

from collections.abc import Callable
from dataclasses import dataclass

from common.actor import Actor
from common.audit import Occasion
from common.ports import Database, Definitions


@dataclass(frozen=True)
class LearningSource:
    """A database that is learnt about.

    Attributes:
        name: under which what is learnt is kept.
        database_of: gives the database as an actor may see it, not audited.
        open_database: gives it for an occasion; its statements are audited.
        definitions: gives what is known of it whoever asks.
        is_divided: whether each actor has a part of it; what was learnt about another's part is
            not even a reviewer's to see.
    """

    name: str
    database_of: Callable[[Actor], Database]
    open_database: Callable[[Occasion], Database]
    definitions: Callable[[], Definitions]
    is_divided: bool = False
