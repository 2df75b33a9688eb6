"""Ties the rules to what the server has: columns and tables that exist, with every name in the operator's SQL resolved.

What does not fit is a problem of the one grant: it is told, and its table can't be read by whom the grant counts for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from common.values import Catalog
from databases.guard.facts import Key, ServerFacts
from databases.guard.parsing import Node
from databases.row_rules.format import Grant, RuleFile, TableRule
from databases.row_rules.naming import Item, Names, Unbound
from databases.row_rules.predicates import Sql, nodes

_ROW = "ruled_row"  # what the ruled table is called in its own subquery


class Known(Protocol):
    """What is known of the asked database; `databases.catalog.Knowledge` is one."""

    @property
    def catalog(self) -> Catalog:
        """All tables that the role may read."""

    @property
    def facts(self) -> ServerFacts:
        """What the guard judges by."""


@dataclass(frozen=True, eq=False)
class BoundGrant:
    """A grant whose names are resolved.

    Attributes:
        rows: the condition; None: all rows.
        masks: by column.
        problem: why nothing may be shown by it, or None.
    """

    rows: Node | None = None
    masks: Mapping[str, Node] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, eq=False)
class BoundTable:
    """A ruled table as the server has it.

    Attributes:
        key: the table's own.
        rule: the key of the table whose rule this is: a parent's, or the same.
        row: what its predicates call it.
        columns: in order; empty when the server has no such table.
        readable: those that the role may read.
        types: of its columns as PostgreSQL spells them.
        grants: as in the file.
    """

    key: Key
    rule: Key
    row: str
    columns: tuple[str, ...]
    readable: frozenset[str]
    types: Mapping[str, str]
    grants: tuple[BoundGrant, ...]


Refusals = Mapping[tuple[Key, int], str]
"""Why PostgreSQL can't plan what a grant shows, by table and the grant's place."""


def bind(
    file: RuleFile, known: Known, refusals: Refusals = MappingProxyType({})
) -> tuple[dict[Key, BoundTable], tuple[str, ...]]:
    """The tables of the file as the server has them, and what does not fit it, `file:line: text` each."""
    bound = {rule.key: _bound(rule, known, refusals) for rule in file.tables}
    problems = []
    for rule in file.tables:
        if not bound[rule.key].columns:
            problems.append(f"{file.name}:{rule.line}: there is no table {'.'.join(rule.key)} that the role may see")
        for grant, found in zip(rule.grants, bound[rule.key].grants, strict=True):
            if found.problem is not None and bound[rule.key].columns:
                said = f"{found.problem}; until that is mended, nothing of {'.'.join(rule.key)} is shown by this rule"
                problems.append(f"{file.name}:{grant.line}: {said}")
    return bound, tuple(problems)


def _bound(rule: TableRule, known: Known, refusals: Refusals) -> BoundTable:
    columns = tuple(column.name for column in known.facts.attributes.get(rule.key, ()))
    readable = readable_columns(rule.key, columns, known.facts)
    row = _ROW
    while row in columns or any(row in _words(sql) for grant in rule.grants for sql in _expressions(grant)):
        row += "_"
    names = Names(Item(row, frozenset(columns), key=rule.key, called=rule.key[1]), known.facts, readable)
    grants = [_bound_grant(grant, names, known) for grant in rule.grants]
    for place, grant in enumerate(grants):
        if (rule.key, place) in refusals and grant.problem is None:
            grants[place] = BoundGrant(problem=refusals[rule.key, place])
    return BoundTable(rule.key, rule.key, row, columns, readable, _types(rule.key, known), tuple(grants))


def readable_columns(key: Key, columns: tuple[str, ...], facts: ServerFacts) -> frozenset[str]:
    """Those of the table's columns that the role may read; of a partition, which the catalogue leaves out, all."""
    return frozenset(facts.columns.get(key, columns if key in facts.parents else ()))


def _types(key: Key, known: Known) -> Mapping[str, str]:
    tables = [known.catalog.by_key.get(one) for one in (*sorted(known.facts.parents.get(key, ())), key)]
    return {column.name: column.type for table in tables if table for column in table.columns}


def _expressions(grant: Grant) -> list[Sql]:
    return [*([grant.rows] if grant.rows else []), *(mask for _, mask in grant.masks)]


def _words(sql: Sql) -> set[str]:
    return {str(node.get("sval", "")) for kind, node in nodes(sql.tree) if kind == "String"} | {
        str(node["aliasname"]) for kind, node in nodes(sql.tree) if kind == "alias"
    }


def _bound_grant(grant: Grant, names: Names, known: Known) -> BoundGrant:
    try:
        rows = names.bound(grant.rows) if grant.rows else None
        masks = {column: names.bound(mask) for column, mask in grant.masks}
        for column in masks:
            names.table.surely_has(column)
        names.refuse_computed(frozenset(masks), known.facts)
    except Unbound as error:
        return BoundGrant(problem=str(error))
    return BoundGrant(rows, masks)
