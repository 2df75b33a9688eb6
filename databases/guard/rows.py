"""Tells which fields are columns. `x.name` is a column if x has one of that name; else PostgreSQL calls `name(x)`.

The name before the dot may stand for several parts of a FROM, in this query and around it. A field counts as a column
only when every part of that name in the whole statement surely has it, so that it does not matter which one is meant.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from databases.guard.facts import POPULATING, Key, ServerFacts
from databases.guard.parsing import Node
from databases.guard.scopes import NOWHERE, Scope, with_queries
from databases.guard.walk import strings


@dataclass(frozen=True)
class Row:
    """What is known of a row: its columns in order, each with its name (None: unnamed) and the row it holds, if any.

    Attributes:
        is_open: whether there may be columns beyond these.
        is_array: whether this describes the elements of an array of rows.
    """

    columns: "tuple[tuple[str | None, Row | None], ...]" = ()
    is_open: bool = False
    is_array: bool = False

    def has(self, name: str) -> bool:
        """Whether it surely has the column."""
        return any(column == name for column, _ in self.columns)

    @property
    def is_sure(self) -> bool:
        """Whether all its columns are known by name."""
        return not self.is_open and all(name is not None for name, _ in self.columns)

    def value(self, name: str) -> "Row | None":
        """The row that the column holds; None when it holds none, or when that isn't sure."""
        found = [row for column, row in self.columns if column == name]
        return found[0] if len(found) == 1 else None

    def renamed(self, names: Iterable[str]) -> "Row":
        """The row with its first columns called `names`."""
        names = list(names)
        rows = [row for _, row in self.columns[: len(names)]] if not self.is_open else []
        rows += [None] * (len(names) - len(rows))
        rest = self.columns[len(names) :] if not self.is_open else ()
        return Row((*zip(names, rows, strict=True), *rest), self.is_open)


_MAX_COLUMNS = 1664  # PostgreSQL's own limit
_MAX_ROW_DEPTH = 4  # rows within rows that are followed
_UNKNOWN = Row(is_open=True)


class FieldCheck:
    """Finds the doubtful fields of one statement's tree."""

    def __init__(self, facts: ServerFacts) -> None:
        self.facts = facts
        self.tables: defaultdict[str, list[Row]] = defaultdict(list)
        self._is_gathered = False
        self._is_sure = False
        self._items: list[tuple[Node, Scope]] = []
        self._rows: dict[int, Row] = {}
        self._dotted: list[Node] = []

    def doubtful(self, tree: Node) -> Iterator[str]:
        """The fields in the tree that may be no columns; all of them when it is nested too deeply to tell."""
        try:
            self._visit(tree, NOWHERE)
            self._gather()
            found = [name for node in self._dotted for name in self._doubtful_in(node)]
        except RecursionError:
            found = [name for node in _dotted(tree) for name in _fields(node)]
        yield from found

    def _visit(self, value: Any, scope: Scope) -> None:
        if isinstance(value, list):
            for item in value:
                self._visit(item, scope)
            return
        if "withClause" in value:
            scope = scope.entered(value["withClause"])
            for place, cte in enumerate(with_queries(value["withClause"])):
                self._visit(cte, scope.before(place))
        self._items += [(item, scope) for item in value.get("fromClause", ())]
        for key, child in value.items():
            if key in ("ColumnRef", "A_Indirection"):
                self._dotted.append({key: child})
            if isinstance(child, (dict, list)) and key != "withClause":
                self._visit(child, scope)

    def _gather(self) -> None:
        found = [pair for item, scope in self._items for pair in self._exposed(item, scope)]
        for name, row in found:
            self.tables[name].append(row)
        self._is_gathered = True
        self._is_sure = all(row.is_sure for _, row in found)

    # ------------------------------------------------------------------------------------------------ what FROM offers

    def _exposed(self, item: Node, scope: Scope) -> Iterator[tuple[str, Row]]:
        """The names that an item of a FROM gives, each with its row."""
        ((kind, node),) = item.items()
        if kind == "RangeTableSample":
            yield from self._exposed(node["relation"], scope)
            return
        if kind == "JoinExpr":
            sides = [*self._exposed(node["larg"], scope), *self._exposed(node["rarg"], scope)]
            yield from sides
            yield from self._joined(node, [row for _, row in sides])
            return
        alias = node.get("alias", {})
        row = self._row_of(kind, node, scope)
        if "colnames" in alias:
            row = row.renamed(strings(alias["colnames"]))
        yield alias.get("aliasname") or _default_name(kind, node), row

    def _joined(self, node: Node, sides: list[Row]) -> Iterator[tuple[str, Row]]:
        alias = node.get("alias")
        if alias:
            columns = tuple((name, None) for row in sides for name, _ in row.columns)
            named = strings(alias.get("colnames", ()))
            yield alias["aliasname"], Row(tuple((name, None) for name in named) if named else columns, is_open=True)
        if "join_using_alias" in node:
            merged = tuple((name, None) for name in strings(node.get("usingClause", ())))
            yield node["join_using_alias"]["aliasname"], Row(merged)

    def _row_of(self, kind: str, node: Node, scope: Scope) -> Row:
        if kind == "RangeVar":
            return self._relation(node, scope)
        if kind == "RangeSubselect":
            return self._output(node["subquery"]["SelectStmt"], scope)
        if kind == "RangeFunction":
            return self._function_row(node)
        if kind == "RangeTableFunc":
            columns = [column["RangeTableFuncCol"]["colname"] for column in node.get("columns", ())]
            return Row(tuple((name, None) for name in columns))
        if kind == "JsonTable":
            return Row(tuple((name, None) for name in _json_columns(node.get("columns", ()))))
        return _UNKNOWN

    def _relation(self, node: Node, scope: Scope) -> Row:
        name = node["relname"]
        found = scope.find(name) if "schemaname" not in node else None
        if found is not None:
            return self._cte(*found)
        return self._stored(self.facts.key(node.get("schemaname"), name))

    def _stored(self, key: Key, *, depth: int = 0) -> Row:
        """The row of a relation or composite type, with the rows within its rows down to `_MAX_ROW_DEPTH`."""
        columns = self.facts.attributes.get(key)
        if columns is None or depth > _MAX_ROW_DEPTH:
            return _UNKNOWN
        inner = [
            Row(row.columns, row.is_open, column.is_array)
            if column.row and (row := self._stored(column.row, depth=depth + 1))
            else None
            for column in columns
        ]
        return Row(tuple(zip((column.name for column in columns), inner, strict=True)))

    def _cte(self, cte: Node, scope: Scope) -> Row:
        if id(cte) in self._rows:
            return self._rows[id(cte)]
        self._rows[id(cte)] = _UNKNOWN  # while it is looked at: a recursive CTE reads itself
        row = self._output(cte["ctequery"].get("SelectStmt", {}), scope)
        if "aliascolnames" in cte:
            row = row.renamed(strings(cte["aliascolnames"]))
        search, cycle = cte.get("search_clause", {}), cte.get("cycle_clause", {})
        added = (search.get("search_seq_column"), cycle.get("cycle_mark_column"), cycle.get("cycle_path_column"))
        row = Row((*row.columns, *((name, None) for name in added if name)), row.is_open)
        self._rows[id(cte)] = row
        return row

    def _function_row(self, node: Node) -> Row:
        calls = [item["List"]["items"] for item in node.get("functions", ())]
        defined = [item["ColumnDef"]["colname"] for item in node.get("coldeflist", ())]
        if defined:
            return Row(tuple((name, None) for name in defined))
        function = calls[0][0].get("FuncCall") if len(calls) == 1 else None
        name = strings(function["funcname"])[-1] if function else None
        if not function or not name:
            return _UNKNOWN
        row = self._value({"FuncCall": function}) if name in self.facts.row_results else None
        is_scalar = self.facts.is_complete and name not in self.facts.row_results and name not in self.facts.types
        if is_scalar:
            row = Row(((node.get("alias", {}).get("aliasname", name), None),))
        if row is None:
            row = _UNKNOWN
        return Row((*row.columns, ("ordinality", None)), row.is_open) if node.get("ordinality") else row

    # -------------------------------------------------------------------------------------------- what a query gives

    def _output(self, select: Node, scope: Scope) -> Row:
        """The row that a query gives, `scope` being that around it."""
        if id(select) not in self._rows:
            self._rows[id(select)] = self._given(select, scope)
        return self._rows[id(select)]

    def _given(self, select: Node, scope: Scope) -> Row:
        if "withClause" in select:
            scope = scope.entered(select["withClause"])
        if "larg" in select:
            return self._output(select["larg"], scope)
        if "valuesLists" in select:
            width = len(select["valuesLists"][0]["List"]["items"])
            return Row(tuple((f"column{n}", None) for n in range(1, width + 1)))
        return self._targets(select, scope)

    def _targets(self, select: Node, scope: Scope) -> Row:
        columns: list[tuple[str | None, Row | None]] = []
        is_open = False
        offered = [pair for item in select.get("fromClause", ()) for pair in self._exposed(item, scope)]
        for target in (item["ResTarget"] for item in select.get("targetList", ())):
            value = target.get("val", {})
            stars = self._starred(value, offered)
            if stars is not None:
                columns += stars.columns
                is_open = is_open or stars.is_open
            else:
                columns.append((target.get("name") or self._figured(value), None))
            if len(columns) > _MAX_COLUMNS:
                return _UNKNOWN
        return Row(tuple(columns), is_open)

    def _starred(self, value: Node, offered: list[tuple[str, Row]]) -> Row | None:
        """The columns that `*`, `t.*` or `(row).*` stands for; None for any other value.

        Args:
            value: what is selected.
            offered: the names that the query's FROM gives, each with its row.
        """
        names = _reference(value)
        if names[-1:] == ("*",):
            rows = [row for name, row in offered if len(names) == 1 or name == names[-2]]
            # Joins merge columns, so the order of columns is not known.
            is_open = len(rows) != 1 or rows[0].is_open
            return Row(tuple(column for row in rows for column in row.columns), is_open)
        fields = value.get("A_Indirection", {}).get("indirection", ())
        if fields and "A_Star" in fields[-1]:
            inner = {"A_Indirection": {**value["A_Indirection"], "indirection": fields[:-1]}}
            return self._value(inner) or _UNKNOWN
        return None

    def _figured(self, value: Node) -> str | None:
        """The name that PostgreSQL gives a column without AS, in the cases where that is simple."""
        ((kind, node),) = value.items() if value else (("", {}),)
        if kind in ("ColumnRef", "FuncCall"):
            return strings(node["fields" if kind == "ColumnRef" else "funcname"])[-1]
        if kind == "A_Indirection" and "String" in node["indirection"][-1]:
            return strings(node["indirection"])[-1]
        if kind in ("TypeCast", "CollateClause") and {"ColumnRef", "FuncCall"} & node["arg"].keys():
            return self._figured(node["arg"])
        return None

    # ------------------------------------------------------------------------------------------------ what a value is

    def _value(self, value: Node) -> Row | None:
        """The row that an expression gives, or None when it gives no row or that isn't sure."""
        ((kind, node),) = value.items() if value else (("", {}),)
        if kind == "ColumnRef":
            return self._named(strings(node["fields"]))
        if kind == "A_Indirection":
            row = self._value(node["arg"])
            for step in node["indirection"]:
                row = _stepped(row, step)
            return row
        if kind == "TypeCast":
            return self._typed(node.get("typeName", {}))
        if kind == "RowExpr":
            values = [self._value(item) for item in node.get("args", ())]
            has_star = any(names[-1:] == ("*",) for names in map(_reference, node.get("args", ())))
            return None if has_star else Row(tuple((f"f{n}", row) for n, row in enumerate(values, 1)))
        if kind == "FuncCall":
            return self._called(node)
        return None

    def _called(self, node: Node) -> Row | None:
        name = strings(node["funcname"])[-1]
        if name in POPULATING:
            return self._value(node["args"][0]) if node.get("args") else None
        columns = self.facts.row_results.get(name)
        return Row(tuple((column, None) for column in sorted(columns)), is_open=True) if columns else None

    def _typed(self, node: Node) -> Row | None:
        names = strings(node.get("names", ()))
        if len(names) == 1 and names[0] in self.facts.types:
            return None
        key = self.facts.key(names[-2] if len(names) > 1 else None, names[-1])
        places = [(schema, names[-1]) for schema in self.facts.search_path] if len(names) == 1 else [key]
        found = next((place for place in places if place in self.facts.attributes), None)
        row = self._stored(found) if found else None
        return Row(row.columns, row.is_open, "arrayBounds" in node) if row else None

    def _named(self, names: tuple[str, ...]) -> Row | None:
        """The row that a reference gives, if everything it may mean gives the same."""
        if names[-1] == "*" or not self._is_gathered:
            return None
        if len(names) > 1:
            rows = self.tables.get(names[-2], [])
            found = [row.value(names[-1]) if row.has(names[-1]) else None for row in rows]
        else:
            if not self._is_sure:
                return None
            tables = (row for rows in self.tables.values() for row in rows)
            found = [row.value(names[0]) for row in tables if row.has(names[0])]
            found += self.tables.get(names[0], [])
        return found[0] if found and all(row == found[0] for row in found) else None

    # ------------------------------------------------------------------------------------------------------- fields

    def _doubtful_in(self, node: Node) -> Iterator[str]:
        if "ColumnRef" in node:
            names = strings(node["ColumnRef"]["fields"])
            rows = self.tables.get(names[-2], []) if len(names) > 1 else []
            if len(names) > 1 and names[-1] != "*" and not (rows and all(row.has(names[-1]) for row in rows)):
                yield names[-1]
            return
        steps = node["A_Indirection"]["indirection"]
        row = self._value(node["A_Indirection"]["arg"])
        for step in steps:
            if "String" in step and (row is None or row.is_array or not row.has(step["String"]["sval"])):
                yield step["String"]["sval"]
            row = _stepped(row, step)


def _reference(value: Node) -> tuple[str, ...]:
    return strings(value["ColumnRef"]["fields"]) if "ColumnRef" in value else ()


def _dotted(tree: Node) -> Iterator[Node]:
    pending: list[Any] = [tree]
    while pending:
        value = pending.pop()
        pending += [
            child for child in (value.values() if isinstance(value, dict) else value) if isinstance(child, (dict, list))
        ]
        if isinstance(value, dict):
            yield from ({key: value[key]} for key in ("ColumnRef", "A_Indirection") if key in value)


def _fields(node: Node) -> tuple[str, ...]:
    if "ColumnRef" in node:
        return strings(node["ColumnRef"]["fields"])[1:]
    return strings(item for item in node["A_Indirection"]["indirection"] if "String" in item)


def _stepped(row: Row | None, step: Node) -> Row | None:
    """What a field or a subscript of the row is."""
    if row is None or "A_Star" in step:
        return None
    if "A_Indices" in step:
        is_slice = step["A_Indices"].get("is_slice", False)
        return Row(row.columns, row.is_open, is_slice) if row.is_array else None
    return row.value(step["String"]["sval"]) if not row.is_array else None


def _default_name(kind: str, node: Node) -> str:
    if kind == "RangeVar":
        return str(node["relname"])
    if kind == "RangeFunction":
        call = node["functions"][0]["List"]["items"][0].get("FuncCall")
        return strings(call["funcname"])[-1] if call else ""
    return {"RangeTableFunc": "xmltable", "JsonTable": "json_table"}.get(kind, "")


def _json_columns(columns: Iterable[Node]) -> Iterator[str]:
    for column in (item["JsonTableColumn"] for item in columns):
        if column.get("columns"):
            yield from _json_columns(column["columns"])
        elif "name" in column:
            yield column["name"]
