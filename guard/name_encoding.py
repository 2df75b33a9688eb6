"""Finds names in a query that a server with an encoding other than UTF-8 may read as others.

The parser reads as a server with UTF-8 does. Others differ in two ways. With a single-byte encoding
the server also folds accented letters of unquoted names to lower case: `Ärger` is the table
"ärger", although the tree says "Ärger". And it cuts names at 63 bytes of its own encoding, the
parser at 63 bytes of UTF-8: what the tree holds may be shorter than what the server reads, or
longer. So the tree may take a name for a CTE that is a table to the server. The tree does not tell
quoted names from others either, so both readings count.
"""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import product

from common.errors import ForbiddenObject
from guard.facts import ServerFacts
from guard.refusal_texts import OTHER_READING, refusal_of_object
from guard.walk import Findings

# A name of fewer bytes is cut nowhere: cutting leaves at least 60 of 63, because no character has
# more than four.
_CUT_BYTES = 60
_MOST_CHAR_BYTES = 4
_ACCENTED = re.compile(r"[^\x00-\x7f]")
_SYSTEM_SCHEMAS = frozenset(("pg_catalog", "information_schema"))


def folded(name: str) -> str:
    """Return `name` as a server with a single-byte encoding reads it unquoted.

    Accented letters become small, one by one.
    """
    if name.isascii():
        return name

    return _ACCENTED.sub(_first_lower, name)


def _first_lower(match: re.Match[str]) -> str:
    """Return the letter as a small one; where that is several characters, the first."""
    letter: str = match[0]
    return letter.lower()[0]


class ServerNames:
    """Names that a server has.

    Args:
        system: those of them that are PostgreSQL's own or an extension's.
    """

    def __init__(self, names: Collection[str], system: frozenset[str] = frozenset()) -> None:
        self._all = system.union(names)
        self._system = system

    @cached_property
    def _long(self) -> list[str]:
        return list(filter(_may_be_cut, self._all))

    def meant_by(self, written: str) -> frozenset[str]:
        """Return the server's names that it may read where the tree says `written`.

        Empty when every server reads exactly `written`.
        """
        spellings = {written, folded(written)}
        spellings_used = self._all & spellings
        if _may_be_cut(written):
            pairs = product(self._long, spellings)
            return spellings_used.union(name for name, spelling in pairs if _is_cut(name, spelling))

        is_read_alike = len(spellings) == 1
        if is_read_alike:
            return frozenset()

        return spellings_used

    def is_misread(self, name: str) -> bool:
        """Tell whether the server may read another name than the tree's, or one of the system."""
        others = self.meant_by(name) - {name}
        if not others:
            return False

        is_known = name in self._all
        return is_known or not self._system.isdisjoint(others)


class NameEncodingRule:
    """Judges the names in FROM by what the server has."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts

    def refusals(self, findings: Findings) -> Iterator[ForbiddenObject]:
        """Yield every refusal; a server with UTF-8 reads as the parser does, so none there."""
        if self._facts.reads_as_parsed:
            return

        for name in filter(self._is_misread_cte, sorted(findings.cte_names)):
            yield refusal_of_object(name, OTHER_READING)

        relations = {(relation.schema, relation.name) for relation in findings.relations}
        for schema, name in sorted(relations, key=str):
            yield from _refusals_if_misread(self._schemas, schema)
            yield from _refusals_if_misread(self._relations, name)

    def _is_misread_cte(self, name: str) -> bool:
        """Tell whether the name of a CTE may be one of a table's, as the server reads it.

        It may be even if it is the table's very name: the server may read another one where the CTE
        gets its name.
        """
        if self._facts.is_complete:
            possible_names = self._relations.meant_by(name)
            return bool(possible_names)

        is_folded = folded(name) != name
        return is_folded or _may_be_cut(name)

    @cached_property
    def _relations(self) -> ServerNames:
        names = {name for _, name in self._facts.relations}
        extension_names = {name for _, name in self._facts.extension_relations}
        system = self._facts.system_relations | extension_names
        return ServerNames(names, system)

    @cached_property
    def _schemas(self) -> ServerNames:
        names = {schema for schema, _ in self._facts.relations}
        return ServerNames(names, _SYSTEM_SCHEMAS)


def _refusals_if_misread(names: ServerNames, name: str | None) -> Iterator[ForbiddenObject]:
    """Yield a refusal if the server may read `name` as another name; nothing for None."""
    if name is None:
        return
    if names.is_misread(name):
        yield refusal_of_object(name, OTHER_READING)


def _may_be_cut(name: str) -> bool:
    """Tell whether the name is so long that the parser or some server may cut it, or has cut it."""
    ascii_chars = sum(map(str.isascii, name))
    other_chars = len(name) - ascii_chars
    most_bytes = ascii_chars + other_chars * _MOST_CHAR_BYTES
    return most_bytes >= _CUT_BYTES


def _is_cut(one: str, other: str) -> bool:
    """Tell whether both may be what cutting has left of the same name."""
    if one.startswith(other):
        return True

    return other.startswith(one)
