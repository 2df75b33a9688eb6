"""What a query may do with values of types that PostgreSQL treats in the user's own way.

An operator or a cast of the user's that may have side effects runs when a value of its type meets a built-in's symbol,
a function or another type. The tree doesn't give types, so names stand for them: a column of the type, whatever is
made of it and called by an alias, and so on until nothing is added. Where a value may be of the type, it is.

Values of `regclass` and its like are looked after the same way: a number that meets one is read as a system object's.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from common.database.guard.facts import Key, ServerFacts, words
from common.database.guard.grammar import SYNTAX_NODES
from common.database.guard.parsing import Node, parse
from common.database.guard.casts import TypeRule
from common.database.guard.walk import Findings, strings
from common.errors import ForbiddenObject
from common.text import Text

_KINDS = ("operator", "catalog", "check", "from", "implicit", "sorting")  # as they are told
_COMPARISONS = words("= <> != < > <= >= ~~ !~~ ~~* !~~* ~ !~ ~* !~* @> <@ && ^@ -|- << >> &< &> ? ?| ?&")
_YES_OR_NO = words("BoolExpr NullTest BooleanTest JsonIsPredicate GroupingFunc A_Const SQLValueFunction")
_MIXING = {"CoalesceExpr": "args", "MinMaxExpr": "args", "A_ArrayExpr": "elements"}
_NAMED_BY_KIND = {"CaseExpr": "case", "CoalesceExpr": "coalesce", "A_ArrayExpr": "array", "RowExpr": "row"}
_BETWEEN = frozenset((">=", "<="))
_POPULATING = words("json_populate_record json_populate_recordset jsonb_populate_record jsonb_populate_recordset")
# Where a value must be a truth value or a number, and is turned into one.
_TURNING = words("whereClause havingClause quals agg_filter limitCount limitOffset startOffset endOffset lidx uidx")
_TURNING_NODES = {"BoolExpr": "args", "BooleanTest": "arg", "CaseWhen": "expr", "XmlExpr": "args"}
_SHOWING_FUNCTIONS = words("count format concat concat_ws to_json to_jsonb")
_NAMELESS = re.compile(r"f\d+")  # fields of ROW(…)
_SORTING = ("groupClause", "partitionClause", "orderClause", "sortClause", "distinctClause", "agg_order")
_SORTING_TARGETS = frozenset(("sortClause", "distinctClause", "groupClause"))
_POPULATING_OPERATOR = "#="  # of the extension hstore
_SYSTEM_COLUMN = "tableoid"


@dataclass
class _Group:
    """The types and columns that one effect concerns."""

    types: set[str] = field(default_factory=set)
    own: set[Key] = field(default_factory=set)
    rows: set[Key] = field(default_factory=set)
    columns: defaultdict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))


class ValueRule:
    """Judges statements that read such values; any other costs a look at the relations' names."""

    def __init__(self, facts: ServerFacts, types: TypeRule) -> None:
        self._facts = facts
        columns = (column.name for row in facts.attributes.values() for column in row)
        self._has_false_column = _SYSTEM_COLUMN in columns
        self._groups: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)
        for effect in facts.type_effects:
            if effect.kind == "to" or (effect.kind == "check" and not types.is_risky_check(effect)):
                continue
            is_whole = effect.kind in ("check", "catalog")
            group = self._groups[effect.kind, "" if is_whole else effect.detail]
            if effect.column is not None:
                group.columns[effect.type].add(effect.column)
                continue
            group.types.add(effect.type[1])
            group.rows.add(effect.type)
            if effect.is_own:
                group.own.add(effect.type)

    def refusals(self, found: Findings, text: str) -> Iterator[ForbiddenObject]:
        """Every refusal; `text` is the statement's."""
        groups = self._concerned(found)
        if not groups and not found.has_table_names:
            return
        try:
            tree = {"SelectStmt": parse(text)[0].node}
            if found.has_table_names and (self._has_false_column or _renames_system_column(tree)):
                yield _value("tableoid::regclass")
            for (kind, detail), group in groups.items():
                yield from _Look(self._facts, group, tree).refusals(kind, detail)
        except RecursionError:
            yield _value("SELECT")

    def _concerned(self, found: Findings) -> dict[tuple[str, str], _Group]:
        if not self._groups:
            return {}
        read = {self._facts.key(relation.schema, relation.name) for relation in found.relations}
        named = {name[-1] for name in found.types}
        return {
            key: group
            for key, group in sorted(self._groups.items(), key=lambda item: _KINDS.index(item[0][0]))
            if not (named.isdisjoint(group.types) and read.isdisjoint(group.rows) and read.isdisjoint(group.columns))
        }


class _Look:
    """One statement's tree, looked at for one group."""

    def __init__(self, facts: ServerFacts, group: _Group, tree: Node) -> None:
        self._facts = facts
        self._group = group
        self._nodes = list(_nodes(tree))
        self._names: set[str] = set()
        self._columns = {name for names in group.columns.values() for name in names}
        self._known: dict[int, bool] = {}

    def refusals(self, kind: str, detail: str) -> Iterator[ForbiddenObject]:
        with_rows = kind in ("check", "sorting", "catalog") or detail == "json"
        self._spread(with_rows=with_rows)
        if kind == "operator":
            yield from self._operators(detail)
        elif kind == "from":
            yield from self._casts(detail)
        elif kind == "sorting":
            yield from self._sorted()
        elif kind == "implicit":
            yield from self._turned()
            if detail == "i":
                yield from self._mixed(self._takes_any_type, is_text_like=True)
        elif kind in ("check", "catalog"):
            yield from self._populated()
            if kind == "catalog":
                self._spread(with_rows=False)
                yield from self._mixed(_is_showing, is_text_like=False)

    # -------------------------------------------------------------------------------------------- which names carry it

    def _spread(self, *, with_rows: bool) -> None:
        self._names = set()
        for key, node in self._nodes:
            if key == "RangeVar":
                self._names |= self._of_relation(node, with_rows=with_rows)
        size = -1
        while size != len(self._names):
            size = len(self._names)
            self._known = {}
            for key, node in self._nodes:
                self._names |= self._of_alias(key, node, with_rows=with_rows)
        self._known = {}

    def _of_relation(self, node: Node, *, with_rows: bool) -> set[str]:
        key = self._facts.key(node.get("schemaname"), node["relname"])
        alias = node.get("alias", {})
        names = set(self._group.columns.get(key, ()))
        if names:
            names.update(strings(alias.get("colnames", ())))
        if key in (self._group.rows if with_rows else self._group.own):
            names.add(alias.get("aliasname", node["relname"]))
        return names

    def _of_alias(self, key: str, node: Node, *, with_rows: bool) -> set[str]:
        """The names that the node gives to what carries it."""
        if key == "ResTarget":
            value = node.get("val", {})
            return {node["name"]} if "name" in node and self.carries(value) else self._figured(value)
        if key == "RangeFunction" and self._mentions(node.get("functions")):
            alias = node.get("alias", {})
            return {alias.get("aliasname", ""), *strings(alias.get("colnames", ()))} - {""}
        if key in ("RangeSubselect", "JoinExpr") and "alias" in node and self._mentions(node):
            rows = {node["alias"]["aliasname"]} if with_rows else set()
            return rows | set(strings(node["alias"].get("colnames", ())))
        if key == "CommonTableExpr" and self._mentions(node.get("ctequery")):
            return set(strings(node.get("aliascolnames", ()))) | ({node["ctename"]} if with_rows else set())
        if key == "SelectStmt" and "larg" in node:
            return self._of_set_operation(node)
        if key == "SelectStmt" and self._mentions(node.get("valuesLists")):
            width = len(node["valuesLists"][0]["List"]["items"])
            return {f"column{n}" for n in range(1, width + 1)}
        return set()

    def _of_set_operation(self, node: Node) -> set[str]:
        """The names of columns that have another name in a later part: the first part's are given to all."""
        parts = _targets_or_rows(node["larg"]) + _targets_or_rows(node["rarg"])
        if not any(map(self.carries, parts)):
            return set()
        first = node["larg"]
        while "larg" in first:
            first = first["larg"]
        targets = [item["ResTarget"] for item in first.get("targetList", ())]
        values = [target.get("val", {}) for target in targets]
        references = {strings(value["ColumnRef"]["fields"])[-1] for value in values if "ColumnRef" in value}
        return ({target["name"] for target in targets if "name" in target} | references) - {"*"}

    def _figured(self, value: Node) -> set[str]:
        """What PostgreSQL may call the value without AS, if it carries it."""
        if not value or not self.carries(value):
            return set()
        ((kind, node),) = value.items()
        if kind == "FuncCall":
            return {strings(node["funcname"])[-1]}
        if kind == "A_Indirection":
            return set(strings(step for step in node["indirection"] if "String" in step)) | self._figured(node["arg"])
        if kind == "TypeCast":
            return {_type(node)} | self._figured(node["arg"])
        return {_NAMED_BY_KIND.get(kind, str(node.get("op", "")).removeprefix("IS_").lower())} - {""}

    def _mentions(self, value: Any) -> bool:
        """Whether the name of something that carries it is anywhere within."""
        for key, node in _nodes(value):
            if key == "ColumnRef" and (strings(node["fields"])[-1] in self._names | {"*"} and self._names):
                return True
            if key in ("TypeName", "typeName") and strings(node.get("names", ()))[-1:] and _named(node) in self._group.types:
                return True
        return False

    def carries(self, value: Any) -> bool:
        """Whether the expression's value may be of such a type."""
        if isinstance(value, list):
            return any(map(self.carries, value))
        if not isinstance(value, dict) or not value:
            return False
        if id(value) not in self._known:
            self._known[id(value)] = any(self._carries(key, node) for key, node in value.items())
        return self._known[id(value)]

    def _carries(self, key: str, node: Any) -> bool:
        if key == "ColumnRef":
            last = strings(node["fields"])[-1]
            return last in self._names or (last == "*" and bool(self._names))
        if key == "TypeCast":
            return _type(node) in self._group.types
        if key in _YES_OR_NO or (key == "A_Expr" and _is_comparison(node)):
            return False
        if key == "A_Expr" and node["kind"] == "AEXPR_NULLIF":
            return self.carries(node["lexpr"])
        if key == "SubLink":
            is_value = node["subLinkType"] in ("EXPR_SUBLINK", "ARRAY_SUBLINK")
            return is_value and any(map(self.carries, _targets(node["subselect"]["SelectStmt"])))
        if key == "FuncCall":
            name = strings(node["funcname"])[-1]
            may_return_it = name in self._facts.row_results or name in self._facts.routines
            return may_return_it and self.carries(node.get("args", []))
        if key == "A_Indirection":
            return self._carries_step(node)
        if isinstance(node, list):
            return any(map(self.carries, node))
        return isinstance(node, dict) and any(self._carries(inner, child) for inner, child in node.items())

    def _carries_step(self, node: Node) -> bool:
        """Whether a field or an element of something may."""
        last = node["indirection"][-1]
        if "String" not in last:
            return self.carries(node["arg"]) or not self._names.isdisjoint(_field_names(node))
        name = last["String"]["sval"]
        return name in self._names | self._columns or (_NAMELESS.fullmatch(name) is not None and self.carries(node["arg"]))

    # ------------------------------------------------------------------------------------------------ what is refused

    def _operators(self, symbol: str) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            if key == "A_Expr" and symbol in _symbols(node) and self.carries([node.get("lexpr"), node.get("rexpr")]):
                yield _operator(symbol)
            if key == "SortBy" and strings(node.get("useOp", ()))[-1:] == (symbol,) and self.carries(node["node"]):
                yield _operator(symbol)
            if key == "SubLink" and (strings(node.get("operName", ()))[-1:] or ("=",)) == (symbol,):
                if self.carries([node.get("testexpr"), *_targets(node["subselect"]["SelectStmt"])]) and "testexpr" in node:
                    yield _operator(symbol)
            if symbol == "=" and self._compares(key, node):
                yield _operator(symbol)

    def _compares(self, key: str, node: Node) -> bool:
        if key == "CaseExpr" and "arg" in node:
            return self.carries([node["arg"], *(when["CaseWhen"]["expr"] for when in node["args"])])
        if key != "JoinExpr":
            return False
        return bool(self._names) if node.get("isNatural") else not self._names.isdisjoint(strings(node.get("usingClause", ())))

    def _casts(self, target: str) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            if key == "TypeCast" and self.carries(node["arg"]):
                if _type(node).removeprefix("_") == target or "RowExpr" in node["arg"]:
                    yield _value(_type(node))
            # These look for a cast to JSON of whatever they are given.
            is_json = key in SYNTAX_NODES or (key == "FuncCall" and "json" in strings(node["funcname"])[-1])
            if target == "json" and is_json and self._mentions(node):
                yield _value("json")

    def _sorted(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            values: list[Any] = [node.get(clause) for clause in _SORTING]
            if key in ("SortBy", "MinMaxExpr") or (key == "A_Expr" and _is_comparison(node)):
                values.append(list(node.values()))
            # By DISTINCT, by a number or an alias, and in a set operation, any of the columns may be what is compared.
            if key == "SelectStmt" and ("larg" in node or _SORTING_TARGETS.intersection(node)):
                values.append(_targets_or_rows(node))
            if key == "FuncCall" and (node.get("agg_distinct") or self._takes_any_type(node)):
                values.append(node.get("args"))
            if key == "JoinExpr" and self._compares(key, node):
                yield _value(self._example())
            if any(map(self.carries, values)):
                yield _value(self._example())

    def _turned(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            values = [node[clause] for clause in _TURNING.intersection(node)]
            values.append(node.get(_TURNING_NODES.get(key, "")))
            if any(map(self.carries, values)):
                yield _value(self._example())

    def _mixed(self, may_take: Callable[[Node], bool], *, is_text_like: bool) -> Iterator[ForbiddenObject]:
        """Refuses what would turn such values, or others into such values.

        Args:
            may_take: whether a call takes such values as they are.
            is_text_like: whether a constant beside such a value may be read as one.
        """

        def is_mixed(values: list[Node]) -> bool:
            if not any(map(self.carries, values)):
                return False
            return not all(self.carries(value) or _is_constant(value, is_text_like=is_text_like) for value in values)

        for key, node in self._nodes:
            if key == "FuncCall":
                arguments = [*node.get("args", ()), *(_sort_node(item) for item in node.get("agg_order", ()))]
                wrong = any(map(self.carries, arguments)) and not may_take(node)
            elif key == "A_Expr":
                values = _operands(node)
                wrong = is_mixed(values) or (not _is_comparison(node) and node["kind"] != "AEXPR_NULLIF" and any(map(self.carries, values)))
            else:
                wrong = any(map(is_mixed, _meeting(key, node)))
            if wrong:
                yield _value(self._example())

    def _populated(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            name = strings(node.get("funcname" if key == "FuncCall" else "name", ())) if key in ("FuncCall", "A_Expr") else ()
            if name[-1:] == (_POPULATING_OPERATOR,) and self.carries(node.get("lexpr")):
                yield _operator(_POPULATING_OPERATOR)
            if name and name[-1] in _POPULATING and self.carries(node.get("args", [])[:1]):
                yield _value(name[-1])

    def _takes_any_type(self, call: Node) -> bool:
        name = strings(call["funcname"])[-1]
        return name in self._facts.any_type_builtins and name not in self._facts.routines

    def _example(self) -> str:
        """A name to mention."""
        return min(self._names & self._columns or self._names, default="SELECT")


def _nodes(value: Any) -> Iterator[tuple[str, Node]]:
    """Every node within, with the key that it stands under; a query within a set operation as a `SelectStmt`."""
    pending = [("", value)]
    while pending:
        key, current = pending.pop()
        if isinstance(current, list):
            pending += [("", item) for item in current]
        elif isinstance(current, dict):
            if key:
                yield ("SelectStmt" if key in ("larg", "rarg") and "limitOption" in current else key), current
            pending += [(inner, child) for inner, child in current.items() if isinstance(child, (dict, list))]


def _named(type_name: Node) -> str:
    return strings(type_name["names"])[-1]


def _type(cast: Node) -> str:
    return _named(cast["typeName"])


def _field_names(node: Node) -> tuple[str, ...]:
    return strings(step for step in node["indirection"] if "String" in step)


def _symbols(node: Node) -> frozenset[str]:
    name = strings(node["name"])
    if name[:-1] == ("pg_catalog",):
        return frozenset()
    return _BETWEEN if "BETWEEN" in name[-1] else frozenset(name[-1:])


def _is_comparison(node: Node) -> bool:
    if node["kind"] == "AEXPR_NULLIF":
        return False
    return node["kind"] != "AEXPR_OP" or strings(node["name"])[-1] in _COMPARISONS


def _operands(node: Node) -> list[Node]:
    values = []
    for side in (node.get("lexpr"), node.get("rexpr")):
        values += side if isinstance(side, list) else side.get("List", {}).get("items", [side]) if side else []
    return values


def _is_constant(value: Node, *, is_text_like: bool) -> bool:
    constant = value.get("A_Const", {})
    return "isnull" in constant or (is_text_like and "sval" in constant)


def _sort_node(item: Node) -> Node:
    node: Node = item["SortBy"]["node"]
    return node


def _targets(select: Node) -> list[Node]:
    while "larg" in select:
        select = select["larg"]
    return [item["ResTarget"].get("val", {}) for item in select.get("targetList", ())]


def _meeting(key: str, node: Node) -> Iterator[list[Node]]:
    """Expressions of the node that PostgreSQL gives one type."""
    if key in _MIXING:
        yield node.get(_MIXING[key], [])
    elif key == "CaseExpr":
        whens = [item["CaseWhen"] for item in node["args"]]
        yield [*(when["result"] for when in whens), *([node["defresult"]] if "defresult" in node else [])]
        yield [node["arg"], *(when["expr"] for when in whens)] if "arg" in node else []
    elif key == "SelectStmt" and "larg" in node:
        yield from _columns([_targets_or_rows(node["larg"]), _targets_or_rows(node["rarg"])])
    elif key == "SelectStmt" and "valuesLists" in node:
        yield from _columns([[row["List"]["items"]] for row in node["valuesLists"]])
    elif key == "SubLink" and "testexpr" in node:
        yield [node["testexpr"], *_targets(node["subselect"]["SelectStmt"])]


def _targets_or_rows(select: Node) -> list[list[Node]]:
    """The rows of expressions of the queries that a set operation is made of."""
    if "larg" in select:
        return _targets_or_rows(select["larg"]) + _targets_or_rows(select["rarg"])
    if "valuesLists" in select:
        return [row["List"]["items"] for row in select["valuesLists"]]
    return [_targets(select)]


def _columns(parts: list[list[list[Node]]]) -> Iterator[list[Node]]:
    """The columns of rows of expressions; all together where a star makes their order unknown."""
    rows = [row for part in parts for row in part]
    has_star = any(strings(value.get("ColumnRef", {}).get("fields", ()))[-1:] == ("*",) for row in rows for value in row)
    if has_star or len({len(row) for row in rows}) > 1:
        yield [value for row in rows for value in row]
    else:
        yield from (list(column) for column in zip(*rows, strict=True))


def _is_showing(call: Node) -> bool:
    return strings(call["funcname"])[-1] in _SHOWING_FUNCTIONS


def _renames_system_column(tree: Node) -> bool:
    """Whether the query calls something else `tableoid`, which could be any number."""
    for key, node in _nodes(tree):
        names = [node.get("aliasname"), node.get("colname"), node.get("name") if key != "A_Expr" else None]
        names += [*strings(node.get("colnames", ())), *strings(node.get("aliascolnames", ()))]
        if _SYSTEM_COLUMN in names:
            return True
    return False


def _operator(symbol: str) -> ForbiddenObject:
    zh = f"不允许在此使用运算符 {symbol}：它可能调用有副作用的自定义函数。"
    en = f"The operator {symbol} may not be used here: it may call a user-defined function with side effects."
    return ForbiddenObject(symbol, Text(zh, en))


def _value(name: str) -> ForbiddenObject:
    zh = f"{name} 在此处的用法会引发类型转换，而该转换可能有副作用或读取系统目录；请只显示、排序、分组或写成 {name}::text。"
    en = (
        f"{name} is used where its type would be converted, which may have side effects or read the system catalogue;"
        f" only show, sort or group by it, or write {name}::text."
    )
    return ForbiddenObject(name, Text(zh, en))
