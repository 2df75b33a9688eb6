"""Which schemas, tables and columns may be read, beyond what the role's privileges say.

Rules are names: `schema`, `schema.table` or `schema.table.column`, each part a name as stored or a pattern with `*`. A
denied column must not leak by any of the ways SQL has to name it: its name, `*`, `t.*`, the row as a whole (`t`,
`row_to_json(t)`, `t::text`), NATURAL and USING joins, renamed columns (`t AS x (a, b)`), partitions and views. Where
the text alone does not say which table an unqualified name belongs to, it is taken for the denied one.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from common.database.guard.facts import Key, ServerFacts
from common.database.guard.parsing import Node, parse
from common.database.guard.walk import Findings, Name, Relation, Scope, relation_of, strings, walk
from common.errors import ForbiddenObject
from common.text import Text
from common.values import Catalog, Table

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".\s][^".]*?))\s*(\.|$)')


class AccessRuleError(ValueError):
    """A rule that is not one to three names."""


def parse_rule(text: str) -> Name:
    """The one to three parts of a rule; a part in double quotes may hold dots.

    Raises:
        AccessRuleError: it is not a rule.
    """
    parts: list[str] = []
    match = _PART.match(text)
    while match is not None:
        parts.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        if not match[3] and len(parts) <= 3:
            return tuple(parts)
        match = _PART.match(text, match.end()) if match[3] else None
    form = "schema, schema.table or schema.table.column"
    raise AccessRuleError(f"ALLOWED_OBJECTS or DENIED_OBJECTS holds {text!r}: give {form}.")


def _matches(rule: Name, name: Name) -> bool:
    """Whether `rule`, as far as it goes, covers `name`."""
    return len(rule) <= len(name) and all(fnmatchcase(part, mask) for mask, part in zip(rule, name, strict=False))


@dataclass(frozen=True)
class AccessRules:
    """What may be read: everything, or what `allowed` lists; never what `denied` lists."""

    allowed: Collection[Name] = ()
    denied: Collection[Name] = ()

    def __bool__(self) -> bool:
        return bool(self.allowed or self.denied)

    def denies(self, name: Name) -> bool:
        """Whether a denial covers the relation or column."""
        return any(_matches(rule, name) for rule in self.denied)

    def may_read(self, key: Key) -> bool:
        """Whether at least some columns of the relation may be read."""
        if self.denies(key):
            return False
        return not self.allowed or any(_matches(rule[:2], key) for rule in self.allowed)

    def may_read_column(self, key: Key, column: str) -> bool:
        """Whether that column of a readable relation may be read."""
        name = (*key, column)
        if self.denies(name):
            return False
        return not self.allowed or any(_matches(rule, name) for rule in self.allowed)

    def has_secrets(self, key: Key) -> bool:
        """Whether there may be columns of the readable relation that may not be read."""
        if any(len(rule) == 3 and _matches(rule[:2], key) for rule in self.denied):
            return True
        return bool(self.allowed) and not any(_matches(rule, key) for rule in self.allowed)

    def names(self, key: Key) -> bool:
        """Whether the operator allows exactly this relation, by its full name."""
        return key in self.allowed

    def visible(self, catalog: Catalog) -> Catalog:
        """The part of the catalogue that may be read."""
        if not self:
            return catalog
        tables = (self._visible_table(table) for table in catalog.tables if self.may_read(table.key))
        return replace(catalog, tables=tuple(table for table in tables if table.columns))

    def _visible_table(self, table: Table) -> Table:
        columns = tuple(column for column in table.columns if self.may_read_column(table.key, column.name))
        return replace(table, columns=columns)


EVERYTHING = AccessRules()


@dataclass
class _Block:
    """What one SELECT reads from directly: exposed name → relation, and how its columns are merged or renamed."""

    tables: list[tuple[str, Key]] = field(default_factory=list)
    join_aliases: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    hides_names: bool = False
    renamed: list[Key] = field(default_factory=list)
    has_star: bool = False


class AccessCheck:
    """Judges statements' findings by the rules and the server's relations."""

    def __init__(self, rules: AccessRules, facts: ServerFacts) -> None:
        self.rules = rules
        self.facts = facts
        self._views: dict[Key, bool] = {}

    def refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Every refusal."""
        if not self.rules:
            return
        keys = {self._key(relation) for relation in found.relations}
        yield from (_denied_table(key) for key in sorted(keys) if not self._may_read(key))
        if any(self._has_secrets(key) for key in keys):
            yield from self._column_refusals(found)

    def _column_refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        exposed: dict[str, set[Key]] = {}
        for select, scope in found.selects:
            block = self._block(select, scope)
            secrets = [(name, key) for name, key in block.tables if self._has_secrets(key)]
            for name, key in secrets:
                exposed.setdefault(name, set()).add(key)
                for alias in block.join_aliases:
                    exposed.setdefault(alias, set()).add(key)
                yield from self._block_refusals(block, key)
        for column in found.columns:
            yield from self._reference_refusals(column, exposed)

    def _block_refusals(self, block: _Block, key: Key) -> Iterator[ForbiddenObject]:
        if block.has_star or block.hides_names or key in block.renamed:
            yield _whole_row(key)
        yield from (_denied_column(key, name) for name in block.merged if not self._may_read_column(key, name))

    def _reference_refusals(self, column: Name, exposed: dict[str, set[Key]]) -> Iterator[ForbiddenObject]:
        """What `column` (`name`, `t.name`, `t.*`, `schema.t.name`, or a row `t`) could read of the exposed tables."""
        last = column[-1]
        qualifier = column[-2] if len(column) > 1 else None
        if last == "*":
            yield from map(_whole_row, exposed.get(qualifier or "", ()))
            return
        owners = exposed.get(qualifier, ()) if qualifier is not None else {k for keys in exposed.values() for k in keys}
        yield from (_denied_column(key, last) for key in sorted(owners) if not self._may_read_column(key, last))
        for key in sorted(exposed.get(last, ())):
            is_row = qualifier is None and last not in self.facts.columns.get(key, ())
            if is_row or qualifier == key[0]:
                yield _whole_row(key)

    def _block(self, select: Node, scope: Scope) -> _Block:
        block = _Block()
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
        block.has_star = any(
            _is_star(target.get("ResTarget", {}).get("val", {})) for target in select.get("targetList", ())
        )
        return block

    def _add_table(self, block: _Block, node: Node, scope: Scope) -> None:
        relation = relation_of(node, scope)
        if relation is None:
            return
        alias = node.get("alias", {})
        key = self._key(relation)
        block.tables.append((alias.get("aliasname", relation.name), key))
        if "colnames" in alias:
            block.renamed.append(key)

    def _key(self, relation: Relation) -> Key:
        return self.facts.key(relation.schema, relation.name)

    def _may_read(self, key: Key) -> bool:
        if not self.rules.may_read(key) or any(map(self.rules.denies, self._parents(key))):
            return False
        return self.rules.names(key) or self._is_harmless_view(key)

    def _is_harmless_view(self, key: Key) -> bool:
        """Whether what the view is defined as could be asked directly, as far as denials go; true for tables.

        A view that the operator allows by its full name is a window made on purpose, and not looked into.
        """
        definition = self.facts.view_definitions.get(key)
        if definition is None or not self.rules.denied:
            return True
        if key not in self._views:
            self._views[key] = True  # while it is looked into, in case views refer to each other
            (statement,) = parse(definition)
            inner = AccessCheck(AccessRules(denied=self.rules.denied), self.facts)
            inner._views = self._views
            self._views[key] = next(inner.refusals(walk(statement.kind, statement.node)), None) is None
        return self._views[key]

    def _parents(self, key: Key) -> Iterable[Key]:
        """What the relation is a partition of: what is denied there is denied here."""
        return self.facts.parents.get(key, ())

    def _has_secrets(self, key: Key) -> bool:
        if not any(map(self.rules.has_secrets, (key, *self._parents(key)))):
            return False
        columns = self.facts.columns.get(key)
        return columns is None or not all(self._may_read_column(key, column) for column in columns)

    def _may_read_column(self, key: Key, column: str) -> bool:
        if not self.rules.may_read_column(key, column):
            return False
        return not any(self.rules.denies((*parent, column)) for parent in self._parents(key))


def _add_join(block: _Block, node: Node) -> None:
    alias = node.get("alias", {})
    # NATURAL merges columns it doesn't name, and `(a JOIN b …) AS j (x, y)` calls them something else.
    block.hides_names = block.hides_names or bool(node.get("isNatural")) or "colnames" in alias
    block.merged += strings(node.get("usingClause", ()))
    if alias:
        block.join_aliases.append(alias["aliasname"])


def _is_star(value: Node) -> bool:
    return strings(value.get("ColumnRef", {}).get("fields", ())) == ("*",)


def _denied_table(key: Key) -> ForbiddenObject:
    name = ".".join(key)
    zh = f"管理员未开放表 {name}。"
    return ForbiddenObject(name, Text(zh, f"The operator does not allow reading {name}."))


def _denied_column(key: Key, column: str) -> ForbiddenObject:
    name = ".".join((*key, column))
    zh = f"管理员未开放列 {name}。"
    return ForbiddenObject(name, Text(zh, f"The operator does not allow reading the column {name}."))


def _whole_row(key: Key) -> ForbiddenObject:
    name = ".".join(key)
    zh = f"表 {name} 有未开放的列，请逐一列出需要的列，不要使用 * 、整行、NATURAL JOIN 或列改名。"
    en = f"Some columns of {name} may not be read: name those you need instead of *, whole rows, NATURAL or renaming."
    return ForbiddenObject(name, Text(zh, en))
