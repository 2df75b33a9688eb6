"""What a query is made of, in short texts that can be compared: tables, joins, filters, figures, columns and so on.

The texts are for people and models to read and for nothing else: aliases are replaced by their tables' names, literals
stay, and what is nested deeply is cut.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from common.errors import StatementRejected
from databases.guard.facts import words
from databases.guard.parsing import parse

_MAX_DEPTH = 12
_MAX_CHARS = 80  # of one text
_MAX_TEXTS = 50  # of one part
_CUT = "…"
_ORDERED = {"sortClause", "limitCount"}
_SUBQUERY = "(SELECT …)"
# Functions that make one figure of many rows. Others of the connected server count as plain functions.
_AGGREGATES = words(
    "sum avg count min max array_agg string_agg bool_and bool_or every stddev stddev_pop stddev_samp variance "
    "percentile_cont percentile_disc mode json_agg jsonb_agg"
)

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Parts:
    """Of a whole statement, subqueries included."""

    tables: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    order: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Difference:
    """In what part of a query another one differs: what only the first has, and what only the second has."""

    part: str
    without: tuple[str, ...]
    with_: tuple[str, ...]


def parts_of(sql: str) -> Parts:
    """What `sql` is made of; nothing of a text that is no query."""
    try:
        statements = parse(sql)
    except StatementRejected:
        return Parts()
    if len(statements) != 1:
        return Parts()
    statement = statements[0]
    return _Reading({statement.kind: statement.node}).parts()


def differences(wrong: str, right: str) -> tuple[Difference, ...]:
    """In what `right` differs from `wrong`, part by part, in the order of `Parts`."""
    one, other = parts_of(wrong), parts_of(right)
    found = []
    for field in fields(Parts):
        before, after = getattr(one, field.name), getattr(other, field.name)
        if before != after:
            found.append(Difference(field.name, tuple(sorted(before - after)), tuple(sorted(after - before))))
    return tuple(found)


class _Reading:
    """Reads one statement's tree."""

    def __init__(self, tree: Node) -> None:
        self._nodes = list(_nodes(tree))
        self._names = {
            table["alias"]["aliasname"]: table["relname"]
            for kind, table in self._nodes
            if kind == "RangeVar" and "alias" in table
        }

    def parts(self) -> Parts:
        selects = [node for kind, node in self._nodes if kind == "SelectStmt"]
        conditions = [each for select in selects for each in self._conditions(select)]
        joined = [node for kind, node in self._nodes if kind == "JoinExpr"]
        conditions += [each for node in joined for each in _conjuncts(node.get("quals"))]
        links = [each for each in conditions if _links(each)]
        using = [_name(name) for node in joined for name in node.get("usingClause", ())]
        calls = [node for kind, node in self._nodes if kind == "FuncCall"]
        return Parts(
            tables=frozenset(_table(node) for kind, node in self._nodes if kind == "RangeVar"),
            joins=_texts((*(self._link(each) for each in links), *using)),
            filters=_texts(self._said(each) for each in conditions if not _links(each)),
            figures=_texts(self._said({"FuncCall": node}) for node in calls if _called(node) in _AGGREGATES),
            groups=_texts(
                self._said(_shown_at(each, select)) for select in selects for each in select.get("groupClause", ())
            ),
            order=_texts(
                self._ordered(select) for select in selects if "sortClause" in select or "limitCount" in select
            ),
            shown=_texts(
                self._said(each["ResTarget"].get("val")) for select in selects for each in select.get("targetList", ())
            ),
        )

    def _conditions(self, select: Node) -> Iterator[Node]:
        yield from _conjuncts(select.get("whereClause"))
        yield from _conjuncts(select.get("havingClause"))

    def _link(self, condition: Node) -> str:
        node = condition["A_Expr"]
        return " = ".join(sorted((self._said(node["lexpr"]), self._said(node["rexpr"]))))

    def _ordered(self, select: Node) -> str:
        keys = [each["SortBy"] for each in select.get("sortClause", ())]
        said = [f"{self._said(_shown_as(key['node'], select))}{_direction(key)}" for key in keys]
        limit = f" LIMIT {self._said(select['limitCount'])}" if "limitCount" in select else ""
        return ", ".join(said) + limit

    def _said(self, node: Node | None, depth: int = 0) -> str:
        if not node or depth > _MAX_DEPTH:
            return _CUT
        kind, value = next(iter(node.items()))
        said = [self._said(each, depth + 1) for each in _operands(kind, value)]
        match kind:
            case "ColumnRef":
                return self._column(value)
            case "A_Const":
                return _constant(value)
            case "FuncCall":
                distinct = "DISTINCT " if value.get("agg_distinct") else ""
                return f"{_called(value)}({distinct}{'*' if value.get('agg_star') else ', '.join(said)})"
            case "A_Expr":
                return f" {_operator(value)} ".join(said)
            case "BoolExpr":
                return _boolean(value["boolop"], said)
            case "NullTest":
                return f"{said[0]} {value['nulltesttype'].replace('_', ' ')}"
            case "TypeCast":
                return said[0]
            case "List":
                return f"({', '.join(said)})"
            case "SubLink":
                return " ".join([*said, _SUBQUERY])
            case _:
                return f"{kind}({', '.join(said)})"

    def _column(self, value: Node) -> str:
        names = [_name(field) for field in value["fields"]]
        return ".".join([self._names.get(names[0], names[0]), *names[1:]] if len(names) > 1 else names)


def _nodes(tree: Node) -> Iterator[tuple[str, Node]]:
    """All nodes with their kinds; no recursion, because trees may be deep."""
    pending: list[Any] = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(reversed(each))
        elif isinstance(each, Mapping):
            for kind, value in each.items():
                if kind[0].isupper() and isinstance(value, Mapping):
                    yield kind, value
            pending.extend(reversed(list(each.values())))


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    pending = [condition] if condition else []
    while pending:
        each = pending.pop()
        inner = each.get("BoolExpr")
        if inner and inner["boolop"] == "AND_EXPR":
            pending.extend(reversed(inner["args"]))
        else:
            yield each


def _shown_at(key: Node, select: Node) -> Node:
    """What a key stands for: `GROUP BY 1` is by the first column that is shown."""
    number = key.get("A_Const", {}).get("ival", {}).get("ival", 0)
    shown = select.get("targetList", [])
    found: Node = shown[number - 1]["ResTarget"].get("val") if 0 < number <= len(shown) else key
    return found


def _shown_as(key: Node, select: Node) -> Node:
    """What a key of ORDER BY stands for: it may also be the name of a column that is shown."""
    names = [_name(field) for field in key.get("ColumnRef", {}).get("fields", ())]
    for each in select.get("targetList", ()) if len(names) == 1 else ():
        if each["ResTarget"].get("name") == names[0]:
            found: Node = each["ResTarget"]["val"]
            return found
    return _shown_at(key, select)


def _links(condition: Node) -> bool:
    """Whether the condition equates columns of two tables."""
    node = condition.get("A_Expr", {})
    sides = [node.get(side, {}).get("ColumnRef") for side in ("lexpr", "rexpr")]
    if node.get("kind") != "AEXPR_OP" or _operator(node) != "=" or not all(sides):
        return False
    first, second = ([_name(field) for field in side["fields"]] for side in sides)
    return len(first) > 1 and len(second) > 1 and first[0] != second[0]


def _operands(kind: str, value: Any) -> list[Node]:
    """The parts of an expression that its text shows."""
    match kind:
        case "A_Expr":
            return [value[side] for side in ("lexpr", "rexpr") if side in value]
        case "List":
            return list(value["items"])
        case "SubLink":
            return [value["testexpr"]] if "testexpr" in value else []
        case "TypeCast" | "NullTest":
            return [value["arg"]]
        case "ColumnRef" | "A_Const" | "SelectStmt":
            return []
        case _:
            args = value.get("args", ()) if isinstance(value, Mapping) else ()
            return [each for each in args if isinstance(each, Mapping)]


def _boolean(operator: str, said: list[str]) -> str:
    if operator == "NOT_EXPR":
        return f"NOT {said[0]}"
    word = operator.removesuffix("_EXPR")
    return f"({f' {word} '.join(said)})"


def _constant(value: Node) -> str:
    if value.get("isnull"):
        return "NULL"
    kind, held = next(((kind, held) for kind, held in value.items() if isinstance(held, Mapping)), ("", {}))
    inner = held.get(kind, held.get("boolval", ""))
    if kind == "sval":
        return f"'{inner}'"
    return str(inner if inner != "" else 0)  # the tree leaves out what is zero


def _operator(value: Node) -> str:
    kind, name = value.get("kind", ""), _name(value["name"][-1])
    if kind == "AEXPR_IN":
        return "IN" if name == "=" else "NOT IN"
    return name


def _direction(key: Node) -> str:
    return " DESC" if key.get("sortby_dir") == "SORTBY_DESC" else ""


def _called(call: Node) -> str:
    return _name(call["funcname"][-1])


def _table(node: Node) -> str:
    return ".".join(node[part] for part in ("schemaname", "relname") if part in node)


def _name(field: Node) -> str:
    return str(field["String"].get("sval", "")) if "String" in field else "*"


def _texts(said: Iterable[str]) -> frozenset[str]:
    texts = (text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + _CUT for text in said)
    return frozenset(sorted(set(texts))[:_MAX_TEXTS])
