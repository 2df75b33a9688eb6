"""Judge by the operator's rules which schemas, tables and columns are open or closed, by name.

A rule is `schema`, `schema.table` or `schema.table.column`. Each part is a name as it is stored,
where `*` stands for any characters.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from guard.facts import Key, Name

_PART = re.compile(r'\s{0,20}(?:"((?:[^"]|"")++)"|([^".\s]++(?:\s++[^".\s]++)*+))\s*+(\.|$)')
_ANY = "*"


class AccessRuleError(ValueError):
    """A rule that is not written as one."""


def parse_rule(text: str) -> Name:
    """Return the one to three parts of a rule; a part in double quotes may hold dots.

    Raises:
        AccessRuleError: it is not a rule.
    """
    parts: list[str] = []
    match = _PART.match(text)
    while match is not None:
        part = match[2]
        if match[1] is not None:
            part = match[1].replace('""', '"')

        parts.append(part)
        is_followed = bool(match[3])
        if not is_followed:
            break

        match = _PART.match(text, match.end())

    is_rule = match is not None and len(parts) <= 3  # noqa: PLR2004 - schema, table and column
    if is_rule:
        return tuple(parts)

    form = "schema, schema.table or schema.table.column"
    raise AccessRuleError(
        f"ALLOWED_OBJECTS, DENIED_OBJECTS or GROUP_DENIED_OBJECTS holds {text!r}: give {form}."
    )


def check_function_rule(text: str) -> None:
    """Check the name of a function that may be called: `schema.name`, `schema.*` or `name`.

    Raises:
        AccessRuleError: a `*` stands elsewhere, where it would allow nothing.
    """
    name = text.removesuffix(".*")
    if not name or _ANY in name:
        raise AccessRuleError(
            f"ALLOWED_FUNCTIONS holds {text!r}: give schema.name, schema.* or name."
        )


@lru_cache(maxsize=1024)
def _pattern(mask: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, mask.split(_ANY))), re.DOTALL)


def _is_match(mask: str, part: str) -> bool:
    if _ANY not in mask:
        return mask == part

    return _pattern(mask).fullmatch(part) is not None


def _is_covered(name: Name, rules: Iterable[Name]) -> bool:
    return any(_covers(rule, name) for rule in rules)


def _covers(rule: Name, name: Name) -> bool:
    """Tell whether each part of `rule` matches the part of `name` in its place; `name` may be
    longer.
    """
    if len(rule) > len(name):
        return False

    return all(map(_is_match, rule, name))


def _tables_of_columns(rules: Iterable[Name]) -> list[Name]:
    """Return the tables of those rules that are about columns."""
    return [rule[:2] for rule in rules if len(rule) == 3]  # noqa: PLR2004 - schema, table, column


@dataclass(frozen=True)
class AccessRules:
    """Opens all objects, or what `allowed` lists; never what `denied` lists.

    Attributes:
        are_files: whether all tables are those of people's files: one that is closed may be gone.
    """

    allowed: Collection[Name] = ()
    denied: Collection[Name] = ()
    are_files: bool = False

    def __bool__(self) -> bool:
        rules = (*self.allowed, *self.denied)
        return bool(rules)

    def denies(self, name: Name) -> bool:
        """Tell whether a denial covers the relation or column."""
        return _is_covered(name, self.denied)

    def may_read(self, key: Key) -> bool:
        """Tell whether at least some columns of the relation may be read."""
        if self.denies(key):
            return False

        opened = [rule[:2] for rule in self.allowed]
        return not opened or _is_covered(key, opened)

    def may_read_column(self, key: Key, column: str) -> bool:
        """Tell whether that column of a readable relation may be read."""
        name = (*key, column)
        if self.denies(name):
            return False

        return not self.allowed or _is_covered(name, self.allowed)

    def has_secrets(self, key: Key) -> bool:
        """Tell whether the readable relation may have columns that may not be read."""
        denied = _tables_of_columns(self.denied)
        if _is_covered(key, denied):
            return True

        is_limited = bool(self.allowed)
        return is_limited and not _is_covered(key, self.allowed)

    def names(self, name: Name) -> bool:
        """Tell whether the operator opens exactly this relation or column, by its full name."""
        has_pattern = _ANY in "".join(name)
        return name in self.allowed and not has_pattern

    def names_columns(self, key: Key) -> bool:
        """Tell whether the operator opens columns of exactly this relation."""
        return key in _tables_of_columns(self.allowed)

    def without_allowed(self) -> "AccessRules":
        """Return the denials alone."""
        return AccessRules(denied=self.denied)


EVERYTHING = AccessRules()
