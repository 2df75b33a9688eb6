"""What each transaction tells the policies of row-level security: on whose behalf it runs
(`ROW_CONTEXT`).

The settings belong to the transaction and go with it. They are set before every statement, also
when nobody is known to ask, so that a connection never has those of another statement. The guard
lets no statement read or change settings.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from common.actor import Actor, Attributes, attributes_of
from common.errors import InvalidSql, ValidationFailed
from common.text import Text, is_whole
from sqltree.writing import array_text

USER, GROUPS, ATTRIBUTES = "citu.user_id", "citu.groups", "citu.attributes"
BEGIN = "BEGIN READ ONLY; "
"""Begins every transaction."""
_UNTRANSLATABLE = "22P05"
_BYTE = re.compile(r"0x([0-9a-f]{2})")


@dataclass(frozen=True)
class RowContext:
    """The settings of one actor.

    Attributes:
        user_id: the value of `citu.user_id`; empty when nobody is known to ask.
        groups: become `citu.groups`, an array as PostgreSQL writes it: `{"sales","north"}`, `{}`
            for none.
        attributes: become `citu.attributes`, a JSON object of arrays: `{"region": ["north"]}`, `{}`
            for none.
    """

    user_id: str = ""
    groups: tuple[str, ...] = ()
    attributes: Attributes = ()

    @classmethod
    def of(cls, actor: Actor) -> "RowContext":
        """Return the settings for statements of `actor`.

        A user id that only the request itself claims does not count, nor does one that can't be
        sent as it is.
        """
        user = ""
        if actor.is_vouched_for and actor.user_id and is_whole(actor.user_id):
            user = actor.user_id

        attributes = attributes_of(
            {name: filter(is_whole, values) for name, values in actor.attributes}
        )
        groups = sorted(filter(is_whole, set(actor.groups)))
        return cls(user, tuple(groups), attributes)

    @cached_property
    def begin(self) -> str:
        """Return `BEGIN`, and what sets the settings for this transaction alone."""
        values = (
            (USER, self.user_id),
            (GROUPS, array_text(self.groups)),
            (ATTRIBUTES, json.dumps(dict(self.attributes), ensure_ascii=False)),
        )
        settings = ", ".join(
            f"pg_catalog.set_config('{name}', {_text(value)}, true)" for name, value in values
        )
        return f"{BEGIN}SELECT {settings}; "

    def holds(self, character: str) -> bool:
        """Tell whether the character is in one of the values."""
        values = [self.user_id, *self.groups]
        for _, of_name in self.attributes:
            values += of_name

        return any(character in value for value in values)


NOBODYS = RowContext()
"""The settings of statements that nobody asks for, such as those that read the catalogue."""


def _text(value: str) -> str:
    """Return an expression for the text.

    Its bytes are sent as hexadecimal digits, among which there is nothing to escape.
    """
    digits = value.encode("utf-8").hex()
    return f"pg_catalog.convert_from(pg_catalog.decode('{digits}', 'hex'), 'UTF8')"


@contextmanager
def blaming_settings(context: RowContext | None, sql: str) -> Iterator[None]:
    """Blame the settings, not the statement `sql`, for a character that the database can't encode.

    Raises:
        ValidationFailed: in place of PostgreSQL's error, whose message tells the bytes of the
            character.
    """
    try:
        yield
    except InvalidSql as error:
        if context is None or error.sqlstate != _UNTRANSLATABLE:
            raise

        digits = "".join(_BYTE.findall(error.detail))
        character = bytes.fromhex(digits).decode("utf-8", "replace")
        if context.holds(character) and character not in sql:
            raise _misfit(context.user_id) from error

        raise


def _misfit(user_id: str) -> ValidationFailed:
    return ValidationFailed(
        Text(
            f"数据库的编码无法表示 ROW_CONTEXT 要告知它的用户ID“{user_id}”、其组名或属性；"
            "请改用ASCII的用户ID，或把数据库转为UTF-8编码。",
            f"The database's encoding can't hold the user id \"{user_id}\", its groups or "
            "attributes, which ROW_CONTEXT tells it: use an ASCII user id, or convert the database "
            "to UTF-8.",
        )
    )
