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
    """A rule that is not one to three names."""


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
        is_plain = not match[3] and len(parts) <= 3
        if is_plain:
            return tuple(parts)
        match = _PART.match(text, match.end()) if match[3] else None
    form = "schema, schema.table or schema.table.column"
    raise AccessRuleError(
        f"ALLOWED_OBJECTS, DENIED_OBJECTS or GROUP_DENIED_OBJECTS holds {text!r}: give {form}."
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


@dataclass(frozen=True)
class AccessRules:
    """Opens all objects, or what `allowed` lists; never what `denied` lists."""

    allowed: Collection[Name] = ()
    denied: Collection[Name] = ()

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
        if not self.allowed:
            return True
        return any(_covers(rule[:2], key) for rule in self.allowed)

    def may_read_column(self, key: Key, column: str) -> bool:
        """Tell whether that column of a readable relation may be read."""
        name = (*key, column)
        if self.denies(name):
            return False
        if not self.allowed:
            return True
        return _is_covered(name, self.allowed)

    def has_secrets(self, key: Key) -> bool:
        """Tell whether the readable relation may have columns that may not be read."""
        for rule in self.denied:
            is_of_column = len(rule) == 3
            if is_of_column and _covers(rule[:2], key):
                return True
        if not self.allowed:
            return False
        return not _is_covered(key, self.allowed)

    def names(self, name: Name) -> bool:
        """Tell whether the operator opens exactly this relation or column, by its full name."""
        if name not in self.allowed:
            return False
        return not any(_ANY in part for part in name)

    def names_columns(self, key: Key) -> bool:
        """Tell whether the operator opens columns of exactly this relation."""
        column_rules = [rule for rule in self.allowed if len(rule) == 3]
        tables = [rule[:2] for rule in column_rules]
        return key in tables

    def without_allowed(self) -> "AccessRules":
        """Return the denials alone."""
        return AccessRules(denied=self.denied)


EVERYTHING = AccessRules()
