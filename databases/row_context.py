"""What each transaction tells the policies of row-level security: on whose behalf it runs (`ROW_CONTEXT`).

The settings belong to the transaction and go with it. They are set before every statement, also when nobody is known to
ask, so that a connection never has those of another statement. The guard lets no statement read or change settings.
"""

from dataclasses import dataclass
from functools import cached_property

from common.actor import Actor
from common.text import is_whole

USER, GROUPS = "citu.user_id", "citu.groups"
BEGIN = "BEGIN READ ONLY; "
"""Begins every transaction."""


@dataclass(frozen=True)
class RowContext:
    """The settings of one actor.

    Attributes:
        user_id: the value of `citu.user_id`; empty when nobody is known to ask.
        groups: become `citu.groups`, an array as PostgreSQL writes it: `{"sales","north"}`, `{}` for none.
    """

    user_id: str = ""
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, actor: Actor) -> "RowContext":
        """The settings for statements of `actor`.

        A user id that only the request itself claims does not count, nor does one that can't be sent as it is.
        """
        user = actor.user_id if actor.is_vouched_for and actor.user_id and is_whole(actor.user_id) else ""
        return cls(user, tuple(sorted(filter(is_whole, set(actor.groups)))))

    @cached_property
    def begin(self) -> str:
        """`BEGIN`, and what sets the settings for this transaction alone."""
        values = ((USER, self.user_id), (GROUPS, _array(self.groups)))
        settings = ", ".join(f"pg_catalog.set_config('{name}', {_text(value)}, true)" for name, value in values)
        return f"{BEGIN}SELECT {settings}; "


NOBODYS = RowContext()
"""The settings of statements that nobody asks for, such as those that read the catalogue."""


def _array(words: tuple[str, ...]) -> str:
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "{" + ",".join(f'"{word}"' for word in quoted) + "}"


def _text(value: str) -> str:
    """An expression for the text. Its bytes are sent as hexadecimal digits, among which there is nothing to escape."""
    digits = value.encode("utf-8").hex()
    return f"pg_catalog.convert_from(pg_catalog.decode('{digits}', 'hex'), 'UTF8')"
