"""Finds where a statement reads columns that are closed, whatever closes them.

A column is read by its name, `*`, `t.*`, the row as a whole (`t`, `row_to_json(t)`, `t::text`),
NATURAL and USING joins and renamed columns (`t AS x (a, b)`). When the text alone does not say
which table an unqualified name belongs to, the closed one is assumed.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from common.errors import ForbiddenObject, InvalidSql
from guard.facts import Key, Name, ServerFacts, qualifier_of
from guard.name_encoding import ServerNames, folded
from guard.scopes import Scope
from guard.walk import Findings, Relation, is_star, relation_of, strings
from sqltree.parsing import Node

_UNDEFINED_TABLE = "42P01"


class Read(NamedTuple):
    """A relation as a statement reads it: with all that inherit from it, or alone (`ONLY`)."""

    key: Key
    is_alone: bool = False


@dataclass
class Block:
    """Sources of one SELECT: relations with the names they go by, merged and renamed
    columns.

    Attributes:
        select: the node.
        tables: names, each with what goes by it.
        unknown: relations that are not known, each with its byte offset.
        join_aliases: names of joins.
        merged: the columns of USING.
        hides_names: whether columns are merged or renamed without being named.
        renamed: relations whose columns are renamed.
        has_star: whether it selects `*`.
        has_others: whether it reads anything but relations.
        is_outermost: whether its rows are the statement's.
    """

    select: Node
    tables: list[tuple[str, Read]] = field(default_factory=list)
    unknown: list[tuple[Relation, int]] = field(default_factory=list)
    join_aliases: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    hides_names: bool = False
    renamed: list[Read] = field(default_factory=list)
    has_star: bool = False
    has_others: bool = False
    is_outermost: bool = False


class ColumnCheck(ABC):
    """Judges a statement's references to columns by `has_secrets` and `may_read_column`."""

    def __init__(self, facts: ServerFacts) -> None:
        self.facts = facts

    @abstractmethod
    def has_secrets(self, read: Read) -> bool:
        """Tell whether there are columns of the readable relation that may not be read."""

    @abstractmethod
    def may_read_column(self, read: Read, column: str) -> bool:
        """Tell whether that column of a readable relation may be read."""

    @abstractmethod
    def closed_column(self, read: Read, column: str) -> ForbiddenObject:
        """Return the refusal of a column."""

    @abstractmethod
    def closed_row(self, read: Read) -> ForbiddenObject:
        """Return the refusal of all columns at once."""

    def shows_star(self, block: Block, read: Read) -> bool:  # noqa: ARG002 - for others to narrow
        """Tell whether `*` of the block gives away columns that may not be read."""
        return block.has_star

    def row_refusal(
        self,
        read: Read,
        *,
        is_expanded: bool,  # noqa: ARG002
    ) -> ForbiddenObject | None:
        """Return the refusal of `t.*`: of all columns (`is_expanded`) or of the row as a value."""
        return self.closed_row(read)

    def blocks(self, findings: Findings) -> list[Block]:
        """Return what each SELECT of the statement reads from, the outermost first."""
        blocks = [self._block(select, scope) for select, scope in findings.selects]
        if blocks:
            outermost = blocks[0]
            outermost.is_outermost = outermost.select.get("op") == "SETOP_NONE"

        return blocks

    def column_refusals(self, findings: Findings, blocks: list[Block]) -> Iterator[ForbiddenObject]:
        """Yield every refusal of the columns that `found` refers to."""
        exposed: defaultdict[str, set[Read]] = defaultdict(set)
        for block in blocks:
            for name, read in block.tables:
                if not self.has_secrets(read):
                    continue

                aliases = (name, *block.join_aliases)
                for alias in map(folded, aliases):
                    exposed[alias].add(read)

                yield from self._block_refusals(block, read)

        if not exposed:
            return

        for column in findings.columns:
            if column[-1] == "*":
                yield from self._star_refusals(column, exposed, findings)
            else:
                yield from self._reference_refusals(column, exposed)

    def _block_refusals(self, block: Block, read: Read) -> Iterator[ForbiddenObject]:
        is_renamed = block.hides_names or read in block.renamed
        may_show = is_renamed or self.shows_star(block, read)
        if may_show:
            yield self.closed_row(read)

        yield from self._closed_among(read, block.merged)

    def _closed_among(self, read: Read, columns: Iterable[str]) -> Iterator[ForbiddenObject]:
        """Yield the refusals of those of the columns that may not be read."""
        for column in columns:
            if not self._may_mean(read, column):
                yield self.closed_column(read, column)

    def _star_refusals(
        self, column: Name, exposed: dict[str, set[Read]], findings: Findings
    ) -> Iterator[ForbiddenObject]:
        """Yield the refusals of `t.*`; `*` alone is judged by block."""
        qualifier = folded(qualifier_of(column) or "")
        readers = exposed.get(qualifier, ())
        is_expanded = findings.columns.count(column) == findings.stars.count(column)
        refusals = [self.row_refusal(read, is_expanded=is_expanded) for read in readers]
        yield from filter(None, refusals)

    def _reference_refusals(
        self, column: Name, exposed: dict[str, set[Read]]
    ) -> Iterator[ForbiddenObject]:
        """Refuse what `column` may read: `name`, `t.name`, `schema.t.name`, or a row `t`."""
        last = column[-1]
        qualifier = qualifier_of(column)
        called_so = sorted(exposed.get(folded(last), ()))
        if qualifier is None:
            owners = set().union(*exposed.values())
            rows = [read for read in called_so if last not in self.columns_of(read.key)]
        else:
            owners = exposed.get(folded(qualifier), set())
            rows = [read for read in called_so if read.key[0] == folded(qualifier)]

        for read in sorted(owners):
            yield from self._closed_among(read, [last])

        for read in rows:
            yield self.closed_row(read)

    def _may_mean(self, read: Read, column: str) -> bool:
        """Tell whether `column` may be read, in whatever way the server may read the name."""
        names = {column, folded(column)}
        if not self.facts.reads_as_parsed:
            names |= ServerNames(self.columns_of(read.key)).meant_by(column)

        readable = [self.may_read_column(read, name) for name in names]
        return all(readable)

    def columns_of(self, key: Key) -> Collection[str]:
        """Return the relation's columns; for a partition, which the catalogue leaves out, those
        of its table.
        """
        columns = self.facts.columns.get(key)
        if columns is not None:
            return columns

        return self._columns_above.get(key, frozenset())

    @cached_property
    def _columns_above(self) -> dict[Key, frozenset[str]]:
        columns = self.facts.columns
        unlisted = self.facts.parents.keys() - columns.keys()
        columns_by_table = {}
        for key in unlisted:
            parents = self.facts.parents[key]
            of_parents = [columns.get(parent, ()) for parent in parents]
            columns_by_table[key] = frozenset(chain.from_iterable(of_parents))

        return columns_by_table

    # --------------------------------------------------------------------------
    # blocks

    def _block(self, select: Node, scope: Scope) -> Block:
        block = Block(select)
        pending = list(select.get("fromClause", ()))
        while pending:
            ((kind, node),) = pending.pop().items()
            if kind == "RangeVar":
                self._add_table(block, node, scope)
            elif kind == "RangeTableSample":
                pending.append(node["relation"])
            elif kind == "JoinExpr":
                pending += [node["larg"], node["rarg"]]
                _add_join(block, node)
            else:
                block.has_others = True

        targets = [item.get("ResTarget", {}) for item in select.get("targetList", ())]
        values = [target.get("val", {}) for target in targets]
        block.has_star = any(map(is_star, values))
        return block

    def _add_table(self, block: Block, node: Node, scope: Scope) -> None:
        relation = relation_of(node, scope)
        if relation is None:
            block.has_others = True
            return

        alias = node.get("alias", {})
        read = Read(self.facts.key(relation.schema, relation.name), is_alone=not node.get("inh"))
        block.tables.append((alias.get("aliasname", relation.name), read))
        if "colnames" in alias:
            block.renamed.append(read)
        if not self.is_known(relation, read.key):
            block.unknown.append((relation, node.get("location", 0)))

    def is_known(self, relation: Relation, key: Key) -> bool:
        """Tell whether the relation existed when the catalogue was read.

        What a later view reads is not known.
        """
        if key in self.facts.relations:
            return True

        has_catalog = self.facts.is_complete or self.facts.relations
        if not has_catalog:
            return True

        schemas: Sequence[str] = self.facts.search_path
        if relation.schema is not None:
            schemas = (relation.schema,)

        keys = {(schema, relation.name) for schema in schemas}
        return not keys.isdisjoint(self.facts.extension_relations)


def _add_join(block: Block, node: Node) -> None:
    alias = node.get("alias", {})
    # NATURAL merges columns it doesn't name, and `(a JOIN b …) AS j (x, y)` calls them something
    # else.
    is_natural = bool(node.get("isNatural"))
    renames = "colnames" in alias
    block.hides_names |= is_natural or renames
    block.merged += strings(node.get("usingClause", ()))
    if alias:
        block.join_aliases.append(alias["aliasname"])


def missing(relation: Relation, location: int) -> InvalidSql:
    """Return PostgreSQL's own refusal of a relation that does not exist.

    It is made here, because a view that is created meanwhile could get through if PostgreSQL were
    asked.

    Args:
        location: byte offset in the text.
    """
    name = ".".join(relation.parts)
    en, zh = f'relation "{name}" does not exist', f"表或视图 {name} 不存在"
    return InvalidSql(en, detail_zh=zh, sqlstate=_UNDEFINED_TABLE, position=location + 1)
