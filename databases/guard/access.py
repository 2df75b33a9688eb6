"""Applies the operator's rules: what statements may read, beyond what the role's privileges allow.

A closed column must not leak in any way that SQL has to name it: its name, `*`, `t.*`, the row as a whole (`t`,
`row_to_json(t)`, `t::text`), NATURAL and USING joins, renamed columns (`t AS x (a, b)`), parent and child tables,
generated columns and views. When the text alone does not say which table an unqualified name belongs to, the closed
one is assumed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from common.errors import ForbiddenObject, InvalidSql, StatementRejected
from databases.guard import refusal_texts as texts
from databases.guard.facts import Key, ServerFacts
from databases.guard.functions import probed_types, reads_unseen
from databases.guard.names import Name
from databases.guard.parsing import Node, parse
from databases.guard.readings import Names, ReadingRule, folded
from databases.guard.refusal_texts import refused
from databases.guard.rules import AccessRules
from databases.guard.scopes import Scope
from databases.guard.walk import Findings, Relation, relation_of, strings, walk

_UNDEFINED_TABLE = "42P01"


class Read(NamedTuple):
    """A relation as a statement reads it: with all tables that inherit from it, or alone (`ONLY`)."""

    key: Key
    is_alone: bool = False


@dataclass
class _Block:
    """What one SELECT reads from directly: relations with the names they go by, merged and renamed columns."""

    tables: list[tuple[str, Read]] = field(default_factory=list)
    unknown: list[tuple[Relation, int]] = field(default_factory=list)
    join_aliases: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    hides_names: bool = False
    renamed: list[Read] = field(default_factory=list)
    has_star: bool = False


class AccessCheck:
    """Judges relations, columns and statements' findings by the rules and the server's relations.

    Args:
        is_vouched: tells whether the operator allows the function of that schema and name.
    """

    def __init__(
        self, rules: AccessRules, facts: ServerFacts, is_vouched: Callable[[Key], bool] = lambda _: False
    ) -> None:
        self.rules = rules
        self.facts = facts
        self._is_vouched = is_vouched
        self._verdicts: dict[Read, ForbiddenObject | None] = {}
        self._secrets: dict[Read, bool] = {}
        self._families: dict[Read, frozenset[Key]] = {}
        self._views: dict[Key, bool] = {}

    # ------------------------------------------------------------------------------------- relations and their columns

    def refusal(self, read: Read) -> ForbiddenObject | None:
        """Why nothing of the relation may be read, or None."""
        if (
            read.key not in self.facts.relations
        ):  # names that don't exist are not remembered: a user could make up any number
            return self._judge(read)
        if read not in self._verdicts:
            self._verdicts[read] = self._judge(read)
        return self._verdicts[read]

    def _judge(self, read: Read) -> ForbiddenObject | None:
        key = read.key
        if not self.rules.may_read(key) or any(map(self.rules.denies, self.facts.parents.get(key, ()))):
            return refused(_dotted(key), texts.DENIED_TABLE)
        if self._is_closed_view(key):
            return refused(_dotted(key), texts.CLOSED_VIEW)
        if any(map(self.rules.denies, self._family(read))):
            return refused(_dotted(key), texts.CLOSED_PARTS)
        return None

    def may_read_column(self, read: Read, column: str) -> bool:
        """Whether that column of a readable relation may be read."""
        family = self._family(read)
        if not self._is_open(read.key, column, family):
            return False
        computed = {
            source
            for relative in family
            if not self.rules.names((*relative, column))  # the operator opened this column by name, as with views
            for source in self.facts.column_sources.get((*relative, column), ())
        }
        return all(self._is_open(read.key, source, family) for source in computed)

    def _is_open(self, key: Key, column: str, family: Collection[Key]) -> bool:
        """Whether the rules open the column, and deny it in no relation of the family."""
        return self.rules.may_read_column(key, column) and not any(
            self.rules.denies((*relative, column)) for relative in family if relative != key
        )

    def has_secrets(self, read: Read) -> bool:
        """Whether there are columns of the readable relation that may not be read."""
        if read.key not in self.facts.relations:
            return self._find_secrets(read)
        if read not in self._secrets:
            self._secrets[read] = self._find_secrets(read)
        return self._secrets[read]

    def _find_secrets(self, read: Read) -> bool:
        if not any(map(self.rules.has_secrets, self._family(read))):
            return False
        columns = self._columns(read.key)
        return not columns or not all(self.may_read_column(read, column) for column in columns)

    def _columns(self, key: Key) -> Collection[str]:
        """The relation's columns; for a partition, which the catalogue leaves out, those of its table."""
        known = self.facts.columns.get(key)
        return known if known is not None else self._columns_above.get(key, frozenset())

    @cached_property
    def _columns_above(self) -> dict[Key, frozenset[str]]:
        columns = self.facts.columns
        return {
            key: frozenset().union(*(columns.get(parent, ()) for parent in parents))
            for key, parents in self.facts.parents.items()
            if key not in columns
        }

    def _family(self, read: Read) -> frozenset[Key]:
        """The relation and its parents; when its children are read, too, these and their parents as well."""
        family = self._families.get(read)
        if family is None:
            members = {read.key} if read.is_alone else {read.key, *self._children.get(read.key, ())}
            family = frozenset(members).union(*(self.facts.parents.get(key, ()) for key in members))
            if read.key in self.facts.relations:
                self._families[read] = family
        return family

    @cached_property
    def _children(self) -> dict[Key, set[Key]]:
        children: defaultdict[Key, set[Key]] = defaultdict(set)
        for child, parents in self.facts.parents.items():
            for parent in parents:
                children[parent].add(child)
        return children

    def _is_closed_view(self, key: Key) -> bool:
        """Whether the view's own query would be refused; false for tables.

        A view that the operator allows by its full name is open whatever it reads: it was opened on purpose.
        """
        definition = self.facts.view_definitions.get(key)
        if definition is None or self.rules.names(key):
            return False
        if key not in self._views:
            self._views[key] = True  # until it is known: a view may lead back to itself
            self._views[key] = not self._may_follow(key, definition)
        return self._views[key]

    def _may_follow(self, key: Key, definition: str) -> bool:
        """Whether the definition, and the functions behind it, read nothing that is closed."""
        if not all(map(self._is_vouched, self.facts.read_functions.get(key, ()))):
            return False
        check = self._by_denials if self.rules.names_columns(key) else self
        try:
            (statement,) = parse(definition)
            found = walk(statement.kind, statement.node)
            if any(reads_unseen(call, self.facts) for call in found.calls):
                return False
            refusals = chain(self._readings.refusals(found), check.refusals(found))
            return next(refusals, None) is None
        except (StatementRejected, ValueError, RecursionError):  # a view that can't be followed stays closed
            return False

    @cached_property
    def _readings(self) -> ReadingRule:
        return ReadingRule(self.facts)

    @cached_property
    def _by_denials(self) -> "AccessCheck":
        """Judges views of which columns are opened by name: what these read need not be allowed, only not denied."""
        return AccessCheck(self.rules.without_allowed(), self.facts, self._is_vouched)

    # ------------------------------------------------------------------------------------------------------ statements

    def refusals(self, found: Findings) -> Iterator[StatementRejected]:
        """Every refusal; those of relations that do not exist come last."""
        if not self.rules:
            return
        blocks = [self._block(select, scope) for select, scope in found.selects]
        reads = {read for block in blocks for _, read in block.tables}
        yield from filter(None, map(self.refusal, sorted(reads)))
        yield from self._type_refusals(found)
        reading = [name for name in found.operators if name and name[-1] in self.facts.reading_operators]
        reading += [name for name, _ in found.casts if name[-1] in self.facts.reading_cast_types]
        yield from (refused(_dotted(name), texts.READS_CLOSED) for name in reading)
        if any(map(self.has_secrets, reads)):
            yield from self._column_refusals(found, blocks)
        yield from (missing(relation, place) for block in blocks for relation, place in block.unknown)

    def _column_refusals(self, found: Findings, blocks: list[_Block]) -> Iterator[ForbiddenObject]:
        exposed: defaultdict[str, set[Read]] = defaultdict(set)
        for block in blocks:
            for name, read in block.tables:
                if self.has_secrets(read):
                    for alias in (name, *block.join_aliases):
                        exposed[folded(alias)].add(read)
                    yield from self._block_refusals(block, read)
        for column in found.columns:
            yield from self._reference_refusals(column, exposed)

    def _block_refusals(self, block: _Block, read: Read) -> Iterator[ForbiddenObject]:
        if block.has_star or block.hides_names or read in block.renamed:
            yield refused(_dotted(read.key), texts.WHOLE_ROW)
        yield from (_closed(read, name) for name in block.merged if not self._may_mean(read, name))

    def _reference_refusals(self, column: Name, exposed: dict[str, set[Read]]) -> Iterator[ForbiddenObject]:
        """Refusals of what `column` may read: `name`, `t.name`, `t.*`, `schema.t.name`, or a row `t`."""
        last = column[-1]
        qualifier = folded(column[-2]) if len(column) > 1 else None
        if last == "*":
            yield from (refused(_dotted(read.key), texts.WHOLE_ROW) for read in exposed.get(qualifier or "", ()))
            return
        owners = exposed.get(qualifier, ()) if qualifier is not None else set().union(*exposed.values())
        yield from (_closed(read, last) for read in sorted(owners) if not self._may_mean(read, last))
        for read in sorted(exposed.get(folded(last), ())):
            is_row = qualifier is None and last not in self._columns(read.key)
            if is_row or qualifier == read.key[0]:
                yield refused(_dotted(read.key), texts.WHOLE_ROW)

    def _may_mean(self, read: Read, column: str) -> bool:
        """Whether `column` may be read, and all that a server with another encoding may read in its place."""
        others = frozenset() if self.facts.reads_as_parsed else Names(self._columns(read.key)).meant_by(column)
        return all(self.may_read_column(read, name) for name in {column, folded(column), *others})

    def _type_refusals(self, found: Findings) -> Iterator[ForbiddenObject]:
        """Refusals of row types: they show the columns of their tables, as in `json_populate_record(NULL::t, '{}')`."""
        for name in found.types:
            yield from self._row_type_refusals(name[-2] if len(name) > 1 else None, name[-1])
        for word in (word for call in found.calls for word in probed_types(call)):
            yield from self._row_type_refusals(None, word)

    def _row_type_refusals(self, schema: str | None, name: str) -> Iterator[ForbiddenObject]:
        for candidate in {name, name.lstrip("_")}:  # `_t` is another way to write `t[]`
            key = self.facts.key(schema, candidate)
            is_other = schema is None and candidate in self.facts.types
            if (
                not is_other
                and key in self.facts.relations
                and (self.refusal(Read(key)) or self.has_secrets(Read(key)))
            ):
                yield refused(_dotted(key), texts.ROW_TYPE)

    # ---------------------------------------------------------------------------------------------------------- blocks

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
        read = Read(self.facts.key(relation.schema, relation.name), is_alone=not node.get("inh"))
        block.tables.append((alias.get("aliasname", relation.name), read))
        if "colnames" in alias:
            block.renamed.append(read)
        if not self.is_known(relation, read.key):
            block.unknown.append((relation, node.get("location", 0)))

    def is_known(self, relation: Relation, key: Key) -> bool:
        """Whether the relation existed when the catalogue was read. What a later view reads is not known."""
        if not self.facts.is_complete and not self.facts.relations:
            return True
        places = (relation.schema,) if relation.schema is not None else self.facts.search_path
        return key in self.facts.relations or any(
            (place, relation.name) in self.facts.extension_relations for place in places
        )

    def idle_denials(self) -> Iterator[Name]:
        """Denials that cover nothing in the server: they are misspelt, or written in another case than the name."""
        if not self.facts.is_complete:
            return
        relations = (*self.facts.relations, *self.facts.extension_relations)
        for rule in self.rules.denied:
            column = AccessRules(denied=[rule[2:] or ("*",)])
            has_relation = any(map(AccessRules(denied=[rule[:2]]).denies, relations))
            if not has_relation or not any(column.denies((name,)) for name in self.facts.column_names):
                yield rule


def _add_join(block: _Block, node: Node) -> None:
    alias = node.get("alias", {})
    # NATURAL merges columns it doesn't name, and `(a JOIN b …) AS j (x, y)` calls them something else.
    block.hides_names = block.hides_names or bool(node.get("isNatural")) or "colnames" in alias
    block.merged += strings(node.get("usingClause", ()))
    if alias:
        block.join_aliases.append(alias["aliasname"])


def _is_star(value: Node) -> bool:
    return strings(value.get("ColumnRef", {}).get("fields", ())) == ("*",)


def _dotted(name: Name) -> str:
    return ".".join(name)


def _closed(read: Read, column: str) -> ForbiddenObject:
    return refused(_dotted((*read.key, column)), texts.DENIED_COLUMN)


def missing(relation: Relation, location: int) -> InvalidSql:
    """PostgreSQL's message, made here: if PostgreSQL were asked, a view created meanwhile could get through."""
    name = _dotted(relation.parts)
    said, zh = f'relation "{name}" does not exist', f"表或视图 {name} 不存在"
    return InvalidSql(said, detail_zh=zh, sqlstate=_UNDEFINED_TABLE, position=location + 1)
