"""Tells which of its names a server with another encoding than UTF-8 may read where a query has
one.

The parser reads as a server with UTF-8 does. Others differ in two ways. With a single-byte encoding
the server also folds accented letters of unquoted names to lower case: `Ärger` is the table
"ärger", although the tree says "Ärger". And it cuts names at 63 bytes of its own encoding, the
parser at 63 bytes of UTF-8: what the tree holds may be shorter than what the server reads, or
longer. So the tree may take a name for a CTE that is a table to the server. The tree does not tell
quoted names from others either, so both readings count.
"""

from collections.abc import Collection, Iterator
from functools import cached_property

from common.errors import ForbiddenObject
from guard.facts import ServerFacts
from guard.refusal_texts import OTHER_READING, refused
from guard.walk import Findings

# A name of fewer bytes is cut nowhere: cutting leaves at least 60 of 63, because no character has
# more than four.
_CUT_BYTES = 60
_MOST_CHAR_BYTES = 4
_SYSTEM_SCHEMAS = frozenset(("pg_catalog", "information_schema"))


def folded(name: str) -> str:
    """Return `name` as a server with a single-byte encoding reads it unquoted.

    Accented letters become small, one by one.
    """
    if name.isascii():
        return name
    chars = []
    for char in name:
        if not char.isascii():
            char = char.lower()[0]
        chars.append(char)
    return "".join(chars)


class ReadNames:
    """Names that a server has."""

    def __init__(self, names: Collection[str]) -> None:
        self.all = frozenset(names)

    @cached_property
    def _long(self) -> list[str]:
        found = []
        for name in self.all:
            if _may_be_cut(name):
                found.append(name)
        return found

    def meant_by(self, written: str) -> frozenset[str]:
        """Return those that some server may read where a tree has `written`.

        There are none when every server reads just that.
        """
        spellings = {written, folded(written)}
        is_cut = _may_be_cut(written)
        is_read_alike = len(spellings) == 1 and not is_cut
        if is_read_alike:
            return frozenset()
        found = set(self.all & spellings)
        if is_cut:
            for name in self._long:
                is_cut_apart = any(_is_cut(name, spelling) for spelling in spellings)
                if is_cut_apart:
                    found.add(name)
        return frozenset(found)


class ReadingRule:
    """Judges the names in FROM by what the server has."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts

    def refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Yield every refusal; a server with UTF-8 reads as the parser does, so none there."""
        if self._facts.reads_as_parsed:
            return
        for name in sorted(found.cte_names):
            if self._is_misread_cte(name):
                yield refused(name, OTHER_READING)
        relations = {(relation.schema, relation.name) for relation in found.relations}
        for schema, name in sorted(relations, key=str):
            if schema is not None and self._is_misread(schema, self._schemas, _SYSTEM_SCHEMAS):
                yield refused(schema, OTHER_READING)
            if self._is_misread(name, self._relations, self._system_names):
                yield refused(name, OTHER_READING)

    def _is_misread_cte(self, name: str) -> bool:
        """Tell whether the name of a CTE may be one of a table's, as the server reads it.

        It may be even if it is the table's very name: the server may read another one where the CTE
        gets its name.
        """
        if not self._facts.is_complete:
            if folded(name) != name:
                return True
            return _may_be_cut(name)
        return bool(self._relations.meant_by(name))

    def _is_misread(self, name: str, names: ReadNames, system: frozenset[str]) -> bool:
        """Tell whether the server may read another name than the tree's, or one of the system."""
        others = names.meant_by(name) - {name}
        if not others:
            return False
        if name in names.all:
            return True
        return not system.isdisjoint(others)

    @cached_property
    def _relations(self) -> ReadNames:
        names = {name for _, name in self._facts.relations}
        return ReadNames(names | self._system_names)

    @cached_property
    def _schemas(self) -> ReadNames:
        names = {schema for schema, _ in self._facts.relations}
        return ReadNames(names | _SYSTEM_SCHEMAS)

    @cached_property
    def _system_names(self) -> frozenset[str]:
        names = {name for _, name in self._facts.extension_relations}
        return self._facts.system_relations | names


def _may_be_cut(name: str) -> bool:
    """Tell whether the parser or some server may have cut a longer name to this one, or cuts it."""
    ascii_bytes = sum(map(str.isascii, name))
    other_bytes = (len(name) - ascii_bytes) * _MOST_CHAR_BYTES
    return ascii_bytes + other_bytes >= _CUT_BYTES


def _is_cut(one: str, other: str) -> bool:
    """Tell whether both may be what is left of the same name."""
    if one.startswith(other):
        return True
    return other.startswith(one)
