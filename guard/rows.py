"""Tells which fields are columns. `x.name` is a column if x has one of that name; else PostgreSQL
calls `name(x)`.

The name before the dot may stand for several parts of a FROM, in this query and around it. A field
counts as a column only when every part of that name in the whole statement surely has it, so that
it does not matter which one is meant.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from guard.facts import POPULATING, Key, ServerFacts, qualifier_of
from guard.scopes import NOWHERE, Scope, with_queries
from guard.walk import column_parts, cte_of, field_names, strings
from sqltree.parsing import Node, nodes


@dataclass(frozen=True)
class Row:
    """A row as far as it is known.

    Its columns are in order, each with its name (None: unnamed) and the row it holds, if any.

    Attributes:
        is_open: whether there may be columns beyond these.
        is_array: whether this describes the elements of an array of rows.
    """

    columns: "tuple[tuple[str | None, Row | None], ...]" = ()
    is_open: bool = False
    is_array: bool = False

    @property
    def names(self) -> "list[str | None]":
        """Return the names of its columns."""
        return [name for name, _ in self.columns]

    def has(self, name: str) -> bool:
        """Tell whether it surely has the column."""
        return name in self.names

    @property
    def is_sure(self) -> bool:
        """Tell whether all its columns are known by name."""
        return not self.is_open and None not in self.names

    def value(self, name: str) -> "Row | None":
        """Return the row that the column holds; None when it holds none or that isn't sure."""
        rows = [row for column, row in self.columns if column == name]
        is_sure = len(rows) == 1
        if is_sure:
            return rows[0]

        return None

    def renamed(self, names: Iterable[str]) -> "Row":
        """Return the row with its first columns called `names`."""
        if self.is_open:
            return _scalars(names, is_open=True)

        called = list(names)
        first, rest = self.columns[: len(called)], self.columns[len(called) :]
        held = [row for _, row in first]
        renamed = zip_longest(called, held)  # names beyond the columns hold no rows
        return Row((*renamed, *rest))


_MAX_COLUMNS = 1664  # PostgreSQL's own limit
_MAX_ROW_DEPTH = 4  # rows within rows that are followed
_UNKNOWN = Row(is_open=True)
_NAMES_WITHOUT_ALIAS = {"RangeTableFunc": "xmltable", "JsonTable": "json_table"}


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

    def doubtful(self, tree: Node) -> list[str]:
        """Return the fields in the tree that may be no columns.

        These are all of them when the tree is nested too deeply to tell.
        """
        doubtful_names: list[str] = []
        try:
            self._visit(tree, NOWHERE)
            self._gather()
            for node in self._dotted:
                doubtful_names += self._doubtful_in(node)
        except RecursionError:
            return [name for node in _dotted(tree) for name in _fields(node)]

        return doubtful_names

    def _visit(self, value: Any, scope: Scope) -> None:
        """Note the items of every FROM with their scopes, and everything with a dot."""
        if isinstance(value, list):
            for item in value:
                self._visit(item, scope)

            return

        if "withClause" in value:
            scope = scope.entered(value["withClause"])
            for place, cte in enumerate(with_queries(value["withClause"])):
                self._visit(cte, scope.before(place))

        for item in value.get("fromClause", ()):
            self._items.append((item, scope))

        for key, child in value.items():
            if key == "withClause":
                continue
            if key in ("ColumnRef", "A_Indirection"):
                self._dotted.append({key: child})
            if isinstance(child, (dict, list)):
                self._visit(child, scope)

    def _gather(self) -> None:
        exposed: list[tuple[str, Row]] = []
        for item, scope in self._items:
            exposed += self._exposed(item, scope)

        for name, row in exposed:
            self.tables[name].append(row)

        self._is_gathered = True
        self._is_sure = all(row.is_sure for _, row in exposed)

    # --------------------------------------------------------------------------
    # what FROM offers

    def _exposed(self, item: Node, scope: Scope) -> Iterator[tuple[str, Row]]:
        """Yield the names that an item of a FROM gives, each with its row."""
        ((kind, node),) = item.items()
        if kind == "RangeTableSample":
            yield from self._exposed(node["relation"], scope)
            return

        if kind == "JoinExpr":
            left = self._exposed(node["larg"], scope)
            right = self._exposed(node["rarg"], scope)
            sides = [*left, *right]
            yield from sides
            rows = [row for _, row in sides]
            yield from self._joined(node, rows)
            return

        alias = node.get("alias", {})
        row = self._row_of(kind, node, scope)
        if "colnames" in alias:
            row = row.renamed(strings(alias["colnames"]))

        name = alias.get("aliasname") or _default_name(kind, node)
        yield name, row

    def _joined(self, node: Node, sides: list[Row]) -> Iterator[tuple[str, Row]]:
        """Yield what a join offers beside its sides: its alias, and that of its USING."""
        alias = node.get("alias")
        if alias:
            columns: Sequence[str | None] = strings(alias.get("colnames", ()))
            if not columns:
                columns = list(chain.from_iterable(side.names for side in sides))

            yield alias["aliasname"], _scalars(columns, is_open=True)

        if "join_using_alias" in node:
            merged = strings(node.get("usingClause", ()))
            yield node["join_using_alias"]["aliasname"], _scalars(merged)

    def _row_of(self, kind: str, node: Node, scope: Scope) -> Row:
        if kind == "RangeVar":
            return self._relation(node, scope)
        if kind == "RangeSubselect":
            return self._output(node["subquery"]["SelectStmt"], scope)
        if kind == "RangeFunction":
            return self._function_row(node)

        columns = node.get("columns", ())
        if kind == "RangeTableFunc":
            names = [column["RangeTableFuncCol"]["colname"] for column in columns]
            return _scalars(names)

        if kind == "JsonTable":
            return _scalars(list(_json_columns(columns)))

        return _UNKNOWN

    def _relation(self, node: Node, scope: Scope) -> Row:
        known_cte = cte_of(node, scope)
        if known_cte is not None:
            cte, inner = known_cte
            return self._cte(cte, inner)

        key = self.facts.key(node.get("schemaname"), node["relname"])
        return self._stored(key)

    def _stored(self, key: Key, *, depth: int = 0) -> Row:
        """Return the row of a relation or composite type.

        Rows within its rows are followed down to `_MAX_ROW_DEPTH`.
        """
        columns = self.facts.attributes.get(key)
        is_too_deep = depth > _MAX_ROW_DEPTH
        if is_too_deep or columns is None:
            return _UNKNOWN

        row_columns: list[tuple[str | None, Row | None]] = []
        for column in columns:
            inner = None
            if column.row:
                row = self._stored(column.row, depth=depth + 1)
                inner = Row(row.columns, row.is_open, column.is_array)

            row_columns.append((column.name, inner))

        return Row(tuple(row_columns))

    def _cte(self, cte: Node, scope: Scope) -> Row:
        if id(cte) in self._rows:
            return self._rows[id(cte)]

        self._rows[id(cte)] = _UNKNOWN  # while it is looked at: a recursive CTE reads itself
        query = cte["ctequery"].get("SelectStmt", {})
        row = self._output(query, scope)
        if "aliascolnames" in cte:
            row = row.renamed(strings(cte["aliascolnames"]))

        search = cte.get("search_clause", {})
        cycle = cte.get("cycle_clause", {})
        names = (
            search.get("search_seq_column"),
            cycle.get("cycle_mark_column"),
            cycle.get("cycle_path_column"),
        )
        added = _scalars(filter(None, names))
        columns = (*row.columns, *added.columns)
        self._rows[id(cte)] = Row(columns, row.is_open)
        return self._rows[id(cte)]

    def _function_row(self, node: Node) -> Row:
        """Return the row of the functions in an item of a FROM."""
        definitions = [item["ColumnDef"] for item in node.get("coldeflist", ())]
        if definitions:
            names = [definition["colname"] for definition in definitions]
            return _scalars(names)

        row = self._single_function_row(node)
        if row is None:
            return _UNKNOWN
        if node.get("ordinality"):
            ordinality = ("ordinality", None)
            return Row((*row.columns, ordinality), row.is_open)

        return row

    def _single_function_row(self, node: Node) -> Row | None:
        """Return the row of a FROM's only function; None where there are several, or none."""
        functions = node.get("functions", ())
        if len(functions) != 1:
            return None

        call = functions[0]["List"]["items"][0]
        name = _called_function(call)
        if not name:
            return None
        if name in self.facts.row_results:
            return self._value(call) or _UNKNOWN

        is_scalar = self.facts.is_complete and name not in self.facts.types
        if is_scalar:
            alias = node.get("alias", {})
            column = alias.get("aliasname", name)
            return _scalars([column])

        return _UNKNOWN

    # --------------------------------------------------------------------------
    # what a query gives

    def _output(self, select: Node, scope: Scope) -> Row:
        """Return the row that a query gives, `scope` being that around it."""
        if id(select) not in self._rows:
            self._rows[id(select)] = self._row_of_select(select, scope)

        return self._rows[id(select)]

    def _row_of_select(self, select: Node, scope: Scope) -> Row:
        if "withClause" in select:
            scope = scope.entered(select["withClause"])
        if "larg" in select:
            return self._output(select["larg"], scope)
        if "valuesLists" in select:
            first_row = select["valuesLists"][0]["List"]
            width = len(first_row["items"])
            names = [f"column{number}" for number in range(1, width + 1)]
            return _scalars(names)

        return self._targets(select, scope)

    def _targets(self, select: Node, scope: Scope) -> Row:
        columns: list[tuple[str | None, Row | None]] = []
        is_open = False
        offered: list[tuple[str, Row]] = []
        for item in select.get("fromClause", ()):
            offered += self._exposed(item, scope)

        for item in select.get("targetList", ()):
            given = self._target(item["ResTarget"], offered)
            columns += given.columns
            is_open |= given.is_open
            if len(columns) > _MAX_COLUMNS:
                return _UNKNOWN

        return Row(tuple(columns), is_open)

    def _target(self, target: Node, offered: list[tuple[str, Row]]) -> Row:
        """Return the columns that an item of a SELECT's list gives."""
        value = target.get("val", {})
        columns = self._star_columns(value, offered)
        if columns is not None:
            return columns

        name = target.get("name") or self._default_name(value)
        return _scalars([name])

    def _star_columns(self, value: Node, offered: list[tuple[str, Row]]) -> Row | None:
        """Return the columns that `*`, `t.*` or `(row).*` selects; None for any other value.

        A row that is not known may have any columns.

        Args:
            value: what is selected.
            offered: the names that the query's FROM gives, each with its row.
        """
        # `*` and `t.*`
        names = column_parts(value)
        if names[-1:] == ("*",):
            return _all_columns(names, offered)

        # `(row).*`: the columns are those of the row before the star
        indirection = value.get("A_Indirection", {})
        steps = indirection.get("indirection") or [{}]
        if "A_Star" not in steps[-1]:
            return None

        row = {"A_Indirection": {**indirection, "indirection": steps[:-1]}}
        return self._value(row) or _UNKNOWN

    def _default_name(self, value: Node) -> str | None:
        """Return the name that PostgreSQL gives a column without AS, where that is simple."""
        if not value:
            return None

        ((kind, node),) = value.items()
        if kind == "ColumnRef":
            return strings(node["fields"])[-1]
        if kind == "FuncCall":
            return strings(node["funcname"])[-1]
        if kind == "A_Indirection":
            last = node["indirection"][-1]
            if "String" in last:
                return strings([last])[0]

            return None

        if kind not in ("TypeCast", "CollateClause"):
            return None

        is_plain = "ColumnRef" in node["arg"] or "FuncCall" in node["arg"]
        if is_plain:
            return self._default_name(node["arg"])

        return None

    # --------------------------------------------------------------------------
    # what a value is

    def _value(self, value: Node) -> Row | None:
        """Return the row that an expression gives; None when it gives none or that isn't sure."""
        if not value:
            return None

        ((kind, node),) = value.items()
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
            return self._constructed(node.get("args", ()))
        if kind == "FuncCall":
            return self._row_of_call(node)

        return None

    def _constructed(self, fields: Sequence[Node]) -> Row | None:
        """Return the row of `ROW(…)`."""
        columns: list[tuple[str | None, Row | None]] = []
        for number, field in enumerate(fields, 1):
            has_star = column_parts(field)[-1:] == ("*",)
            if has_star:
                return None

            held = self._value(field)
            columns.append((f"f{number}", held))

        return Row(tuple(columns))

    def _row_of_call(self, node: Node) -> Row | None:
        name = strings(node["funcname"])[-1]
        if name in POPULATING:
            first: Node = next(iter(node.get("args", ())), {})
            return self._value(first)

        columns = self.facts.row_results.get(name)
        if not columns:
            return None

        return _scalars(sorted(columns), is_open=True)

    def _typed(self, node: Node) -> Row | None:
        """Return the row of a value of the type."""
        names = strings(node.get("names", ()))
        last = names[-1]
        if len(names) > 1:
            keys = [self.facts.key(names[-2], last)]
        elif last in self.facts.types:
            return None
        else:
            keys = [(schema, last) for schema in self.facts.search_path]

        for key in keys:
            if key in self.facts.attributes:
                row = self._stored(key)
                return Row(row.columns, row.is_open, "arrayBounds" in node)

        return None

    def _named(self, names: tuple[str, ...]) -> Row | None:
        """Return the row that a reference gives, if everything it may mean gives the same."""
        is_known = self._is_gathered and names[-1] != "*"
        if not is_known:
            return None
        if len(names) > 1:
            table, name = names[-2:]
            rows = [row.value(name) for row in self.tables.get(table, ())]
        else:
            rows = self._meanings_of_name(names[0])

        if not rows:
            return None

        first, *others = rows
        are_equal = all(row == first for row in others)
        if are_equal:
            return first

        return None

    def _meanings_of_name(self, name: str) -> list[Row | None]:
        """Return what a name without a dot may mean: a column, or a table's row."""
        if not self._is_sure:
            return []

        rows = chain.from_iterable(self.tables.values())
        columns = [row.value(name) for row in rows if row.has(name)]
        rows_called_so = self.tables.get(name, ())
        return [*columns, *rows_called_so]

    # --------------------------------------------------------------------------
    # fields

    def _doubtful_reference(self, node: Node) -> Iterator[str]:
        """Yield the last name of a reference if it may be no column."""
        names = strings(node["fields"])
        if len(names) == 1:
            return

        table, name = names[-2:]
        if not self._is_column(table, name):
            yield name

    def _doubtful_in(self, node: Node) -> Iterator[str]:
        """Yield the fields of a reference or an indirection that may be no columns."""
        if "ColumnRef" in node:
            yield from self._doubtful_reference(node["ColumnRef"])
            return

        row = self._value(node["A_Indirection"]["arg"])
        for step in node["A_Indirection"]["indirection"]:
            if "String" in step:
                name = step["String"]["sval"]
                if not _has_field(row, name):
                    yield name

            row = _stepped(row, step)

    def _is_column(self, table: str, name: str) -> bool:
        """Tell whether `table.name` is surely a column."""
        if name == "*":
            return True

        rows = self.tables.get(table, [])
        has_name = [row.has(name) for row in rows]
        return bool(rows) and all(has_name)


def _scalars(names: Iterable[str | None], *, is_open: bool = False) -> Row:
    """Return a row of columns that hold no rows, or of which that isn't known."""
    columns = [(name, None) for name in names]
    return Row(tuple(columns), is_open)


def _has_field(row: Row | None, name: str) -> bool:
    """Tell whether a value of that row surely has the field."""
    if row is None:
        return False

    is_row = not row.is_array
    return is_row and row.has(name)


def _all_columns(names: tuple[str, ...], offered: list[tuple[str, Row]]) -> Row:
    """Return what `*` or `t.*` stands for."""
    qualifier = qualifier_of(names)
    rows = [row for name, row in offered if qualifier in (None, name)]
    # Joins merge columns, so the order of columns is not known.
    is_joined = len(rows) != 1
    is_open = is_joined or rows[0].is_open
    columns = chain.from_iterable(row.columns for row in rows)
    return Row(tuple(columns), is_open)


def _dotted(tree: Node) -> Iterator[Node]:
    """Yield everything with a dot in a tree of any depth."""
    for kind, node in nodes(tree):
        if kind in ("ColumnRef", "A_Indirection"):
            yield {kind: node}


def _fields(node: Node) -> tuple[str, ...]:
    if "ColumnRef" in node:
        names = strings(node["ColumnRef"]["fields"])
        return names[1:]

    return field_names(node["A_Indirection"]["indirection"])


def _stepped(row: Row | None, step: Node) -> Row | None:
    """Return what a field or a subscript of the row is."""
    is_star = "A_Star" in step
    if is_star or row is None:
        return None

    is_subscript = "A_Indices" in step
    if row.is_array != is_subscript:
        return None
    if is_subscript:
        is_slice = step["A_Indices"].get("is_slice", False)
        return Row(row.columns, row.is_open, is_slice)

    field = step["String"]["sval"]
    return row.value(field)


def _default_name(kind: str, node: Node) -> str:
    if kind == "RangeVar":
        name: str = node["relname"]
        return name

    if kind == "RangeFunction":
        first = node["functions"][0]["List"]
        return _called_function(first["items"][0])

    return _NAMES_WITHOUT_ALIAS.get(kind, "")


def _called_function(value: Node) -> str:
    """Return the name of the function that the expression calls; empty for other expressions."""
    call = value.get("FuncCall", {})
    names = ("", *strings(call.get("funcname", ())))
    return names[-1]


def _json_columns(columns: Iterable[Node]) -> Iterator[str]:
    for item in columns:
        column = item["JsonTableColumn"]
        if column.get("columns"):
            yield from _json_columns(column["columns"])
        elif "name" in column:
            yield column["name"]
