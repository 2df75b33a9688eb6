"""Ties the rules to what the server has: columns and tables that exist, with every name in the
operator's SQL resolved.

What does not fit is a problem of the one grant: it is told, and its table can't be read by whom the
grant counts for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from common.values import Catalog
from guard.facts import Key, ServerFacts
from guard.row_rules.name_binding import BoundItem, BoundNames, Unbound, name_in
from guard.row_rules.rule_file import Grant, RuleFile, TableRule
from sqltree.parsing import Node, nodes

_ROW = "ruled_row"  # what the ruled table is called in its own subquery


class KnownServer(Protocol):
    """Knows the catalogue and facts of a datasource, as `databases.catalog.Knowledge` does."""

    @property
    def catalog(self) -> Catalog:
        """All tables that the role may read."""

    @property
    def facts(self) -> ServerFacts:
        """Return the server as the guard judges by it."""


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
        types: the types of its columns as PostgreSQL spells them.
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
    file: RuleFile, server: KnownServer, refusals: Refusals = MappingProxyType({})
) -> tuple[dict[Key, BoundTable], tuple[str, ...]]:
    """Return the file's tables as the server has them, and its problems as `file:line: text`."""
    bound = {rule.key: _bind_rule(rule, server, refusals) for rule in file.tables}
    problems: list[str] = []
    for rule in file.tables:
        for line, problem in _problems(rule, bound[rule.key]):
            problems.append(f"{file.name}:{line}: {problem}")

    return bound, tuple(problems)


def _problems(rule: TableRule, table: BoundTable) -> Iterator[tuple[int, str]]:
    """Yield what does not fit the server, each with its line in the file."""
    name = ".".join(rule.key)
    if not table.columns:
        yield rule.line, f"there is no table {name} that the role may see"
        return

    for grant, bound_grant in zip(rule.grants, table.grants, strict=True):
        if bound_grant.problem is not None:
            closed = f"until that is mended, nothing of {name} is shown by this rule"
            yield grant.line, f"{bound_grant.problem}; {closed}"


def _bind_rule(rule: TableRule, server: KnownServer, refusals: Refusals) -> BoundTable:
    columns = tuple(column.name for column in server.facts.attributes.get(rule.key, ()))
    readable = readable_columns(rule.key, columns, server.facts)
    row = _row_name(rule, columns)
    item = BoundItem(row, frozenset(columns), key=rule.key, called=rule.key[1])
    names = BoundNames(item, server.facts, readable)
    grants = []
    for place, grant in enumerate(rule.grants):
        bound = _bound_grant(grant, names, server)
        refusal = refusals.get((rule.key, place))
        if refusal is not None and bound.problem is None:
            bound = BoundGrant(problem=refusal)

        grants.append(bound)

    return BoundTable(
        key=rule.key,
        rule=rule.key,
        row=row,
        columns=columns,
        readable=readable,
        types=_types(rule.key, server),
        grants=tuple(grants),
    )


def _row_name(rule: TableRule, columns: tuple[str, ...]) -> str:
    """Return a name for the ruled table that occurs neither in its rule nor among its columns."""
    taken = set(columns)
    for grant in rule.grants:
        trees = [sql.tree for sql in grant.expressions]
        taken |= {name_in(kind, node) for kind, node in nodes(trees)}

    row = _ROW
    while row in taken:
        row += "_"

    return row


def readable_columns(key: Key, columns: tuple[str, ...], facts: ServerFacts) -> frozenset[str]:
    """Return the table's columns that the role may read.

    Of a partition, which the catalogue leaves out, these are all of `columns`.
    """
    if key in facts.columns:
        return frozenset(facts.columns[key])

    is_partition = key in facts.parents
    if is_partition:
        return frozenset(columns)

    return frozenset()


def _types(key: Key, server: KnownServer) -> Mapping[str, str]:
    parents = sorted(server.facts.parents.get(key, ()))
    types = {}
    for relation in (*parents, key):
        table = server.catalog.by_key.get(relation)
        if table is None:
            continue

        for column in table.columns:
            types[column.name] = column.type

    return types


def _bound_grant(grant: Grant, names: BoundNames, server: KnownServer) -> BoundGrant:
    try:
        rows = None
        if grant.rows:
            rows = names.bound(grant.rows)

        masks = {column: names.bound(mask) for column, mask in grant.masks}
        for column in masks:
            names.table.surely_has(column)

        names.refuse_computed(frozenset(masks), server.facts)
    except Unbound as error:
        return BoundGrant(problem=str(error))

    return BoundGrant(rows, masks)
