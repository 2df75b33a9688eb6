"""Read the operator's file of row rules: strict YAML, with the line of every mistake."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from common.actor import Actor
from common.yaml_tree import (
    Scalar,
    Tree,
    UnreadableYaml,
    YamlFields,
    YamlItems,
    read_file_bytes,
    read_tree,
)
from guard import AccessRuleError, parse_rule
from guard.facts import Key
from guard.row_rules.predicates import NotASql, OperatorSql, condition, value

EVERYONE = "everyone"
"""Stands for actors of any group and of none."""
_ALL_ROWS = "all"
_SHOWN = 20  # mistakes that one message lists

T = TypeVar("T")


class RowRulesError(ValueError):
    """Says that the file can't be used; the message has a line for each mistake, `file:line: what
    is wrong and what to do`.
    """


@dataclass(frozen=True)
class Grant:
    """Opens rows and values of a table to actors of some groups.

    Attributes:
        line: where it begins in the file.
        groups: any of them is enough; None: everyone.
        rows: the condition that rows must meet; None: all rows.
        masks: what is shown instead of a column's values, by column.
    """

    line: int
    groups: frozenset[str] | None
    rows: OperatorSql | None
    masks: tuple[tuple[str, OperatorSql], ...] = ()

    @property
    def expressions(self) -> tuple[OperatorSql, ...]:
        """Return the operator's SQL in it."""
        masks = tuple(mask for _, mask in self.masks)
        if self.rows is None:
            return masks

        return (self.rows, *masks)

    def is_for(self, actor: Actor) -> bool:
        """Tell whether it counts for the actor.

        It does not where it names an attribute that the actor lacks, or one of several values where
        one is meant: whatever its condition made of NULL, it would be a guess.
        """
        is_of_group = self.groups is None or not self.groups.isdisjoint(actor.groups)
        return is_of_group and all(_is_said_of(actor, sql) for sql in self.expressions)


def _is_said_of(actor: Actor, sql: OperatorSql) -> bool:
    for name in sql.attributes:
        count = len(actor.values_of(name))
        if count == 0:
            return False
        if count > 1 and name in sql.single:
            return False

    return True


@dataclass(frozen=True)
class TableRule:
    """All grants for one table; who has none sees no rows."""

    key: Key
    line: int
    grants: tuple[Grant, ...]

    def places_for(self, actor: Actor) -> tuple[int, ...]:
        """Return the places of the grants that count for the actor."""
        places = []
        for place, grant in enumerate(self.grants):
            if grant.is_for(actor):
                places.append(place)

        return tuple(places)


@dataclass(frozen=True)
class RuleFile:
    """Holds the contents of a file of row rules.

    Attributes:
        name: the file's, for messages.
        views: views over ruled tables that may be read as they are.
        functions: user-defined functions that actors under rules may call, as `schema.name`.
    """

    name: str
    tables: tuple[TableRule, ...] = ()
    views: frozenset[Key] = frozenset()
    functions: frozenset[str] = frozenset()


def read_file(path: Path) -> RuleFile:
    """Return what the file at `path` says.

    Raises:
        RowRulesError: it can't be read or is not valid.
    """
    try:
        data = read_file_bytes(path)
    except UnreadableYaml as error:
        raise RowRulesError(f"{path}:{error.line}: {error.text}") from error

    return read_text(data, str(path))


def read_text(data: bytes, name: str) -> RuleFile:
    """Return what a file's contents say; raises what `read_file` raises."""
    try:
        tree = read_tree(data)
    except UnreadableYaml as error:
        raise RowRulesError(f"{name}:{error.line}: {error.text}") from error

    reading = _Reading()
    file = reading.file(tree, name)
    if reading.mistakes:
        raise RowRulesError("\n".join(_mistake_lines(name, reading.mistakes)))

    return file


def _mistake_lines(name: str, mistakes: list[tuple[int, str]]) -> Iterator[str]:
    for line, text in sorted(mistakes)[:_SHOWN]:
        yield f"{name}:{line}: {text}"

    if len(mistakes) > _SHOWN:
        yield f"… and {len(mistakes) - _SHOWN} more"


class _Reading:
    """Reads the tree; what it can't use it notes in `mistakes`, and goes on."""

    def __init__(self) -> None:
        self.mistakes: list[tuple[int, str]] = []

    def file(self, tree: Tree, name: str) -> RuleFile:
        fields = self._fields(tree, "the file", required=("tables",), optional=("open",))
        opened = self._fields(fields.get("open"), "open", optional=("views", "functions"))
        rules = self._tables(fields.get("tables"))
        for rule, again in combinations(rules, 2):
            if rule.key == again.key:
                self._wrong(again.line, f"{'.'.join(again.key)} stands in line {rule.line} already")

        views = self._keys(opened.get("views"), "open.views")
        functions = self._keys(opened.get("functions"), "open.functions")
        return RuleFile(
            name,
            tables=tuple(rules),
            views=frozenset(views),
            functions=frozenset(".".join(key) for key in functions),
        )

    def _tables(self, node: Tree | None) -> list[TableRule]:
        if node is None:
            return []
        if not isinstance(node, YamlFields):
            self._wrong(
                node.line, "tables must be a mapping: public.orders: followed by a list of grants"
            )
            return []

        tables = []
        for text, each in node.nodes.items():
            tables.append(self._table(text, node.keys[text], each))

        return tables

    def _keys(self, node: Tree | None, name: str) -> list[Key]:
        keys = []
        for each in self._texts(node, name):
            keys.append(self._key(each.text, each.line))

        return keys

    def _table(self, text: str, line: int, node: Tree) -> TableRule:
        if not isinstance(node, YamlItems):
            self._wrong(
                line,
                f"{text} must be a list of grants: - groups: …, rows: …; an empty list [] shows "
                "no rows",
            )
            node = YamlItems(line)

        return TableRule(self._key(text, line), line, tuple(map(self._grant, node.nodes)))

    def _grant(self, node: Tree) -> Grant:
        fields = self._fields(node, "a grant", required=("groups", "rows"), optional=("masks",))
        rows = self._sql(fields.get("rows"), "rows", condition)
        masks = fields.get("masks")
        if masks is not None and not isinstance(masks, YamlFields):
            self._wrong(
                masks.line, "masks must be a mapping of columns: phone: left(phone, 3) || '****'"
            )

        columns: Mapping[str, Tree] = {}
        if isinstance(masks, YamlFields):
            columns = masks.nodes

        masked = []
        for column, written in columns.items():
            mask = self._sql(written, f"the mask of {column}", value)
            if mask is not None:
                masked.append((column, mask))

        return Grant(node.line, self._groups(fields.get("groups")), rows, tuple(masked))

    def _groups(self, node: Tree | None) -> frozenset[str] | None:
        """Return the groups that a rule is for; None: everybody."""
        if isinstance(node, Scalar) and node.text == EVERYONE:
            return None
        if node is not None and not isinstance(node, YamlItems):
            self._wrong(
                node.line,
                f"groups must be a list of groups, groups: [sales], or the word {EVERYONE}",
            )
            return frozenset()

        texts = [each.text for each in self._texts(node, "groups")]
        if node is not None and not texts:
            self._wrong(node.line, f"groups is empty: name the groups, or write {EVERYONE}")
        if EVERYONE in texts:
            return None

        return frozenset(texts)

    def _sql(
        self, node: Tree | None, name: str, read: Callable[[str], OperatorSql]
    ) -> OperatorSql | None:
        """Return the expression; None for all rows, and for what is noted as a mistake."""
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self._wrong(node.line, f"{name} must be a text with an SQL expression")
            return None

        is_all = read is condition and node.text == _ALL_ROWS
        if is_all:
            return None

        try:
            text = node.text
            is_null = node.value is None and read is value
            if is_null:
                text = "NULL"

            return read(text)
        except NotASql as error:
            self._wrong(node.line, f"{name}: {error}")
            return None

    def _key(self, text: str, line: int) -> Key:
        try:
            parts = parse_rule(text)
        except AccessRuleError:
            parts = ()

        is_misspelled = len(parts) != 2 or any("*" in part for part in parts)
        if is_misspelled:
            self._wrong(
                line, f"{text!r} is no name with its schema: write public.orders, for example"
            )
            return ("", text)

        return (parts[0], parts[1])

    def _texts(self, node: Tree | None, name: str) -> list[Scalar]:
        if node is None:
            return []

        is_list = False
        nodes: Sequence[Tree] = [node]
        if isinstance(node, YamlItems):
            is_list = True
            nodes = node.nodes

        texts = []
        for each in nodes:
            if not isinstance(each, Scalar):
                continue
            if not isinstance(each.value, str | float):
                continue
            if each.text:
                texts.append(each)

        is_mixed = not is_list or len(texts) < len(nodes)
        if is_mixed:
            self._wrong(node.line, f"{name} must be a list of texts")

        return texts

    def _fields(
        self,
        node: Tree | None,
        name: str,
        *,
        required: tuple[str, ...] = (),
        optional: tuple[str, ...] = (),
    ) -> dict[str, Tree]:
        if node is None:
            return {}

        keys = (*required, *optional)
        if not isinstance(node, YamlFields):
            self._wrong(node.line, f"{name} must be a mapping with the keys {', '.join(keys)}")
            return {}

        for key in node.nodes.keys() - set(keys):
            self._wrong(node.keys[key], f"{name} has no key {key!r}: there are {', '.join(keys)}")

        for key in required:
            if key not in node.nodes:
                self._wrong(node.line, f"{name} has no {key}")

        return node.nodes

    def _wrong(self, line: int, text: str) -> None:
        self.mistakes.append((line, text))
