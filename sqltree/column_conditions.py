"""Reads by which plain conditions on stored columns the WHERE of a query restricts its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.values import Catalog, Column, Table
from sqltree.date_bounds import NamedSource, conjuncts, named_sources, references_in
from sqltree.parsing import Node
from sqltree.references import cte_names
from sqltree.tree_values import column_name, last_name, parse_query, without_casts

_MAX_CHARS = 8_000  # of a statement that is read; such a text takes milliseconds
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_NULLS = {"IS_NULL": "is null", "IS_NOT_NULL": "is not null"}
_TIMES = ("date", "timestamp")
_PATTERNS = frozenset(("AEXPR_LIKE", "AEXPR_ILIKE"))
# What libpg_query leaves out of a constant of that kind.
_NAUGHTS = {"sval": "", "fval": "0", "boolval": False, "ival": "0"}
_TRUTHS = {True: "true", False: "false"}
_NEGATED = {"=": "<>", "is null": "is not null"}


@dataclass(frozen=True)
class ColumnCondition:
    """A condition on one stored column.

    Attributes:
        operator: as in SQL; `=` and `<>` with several values mean one, or none, of them; `like` is
            a pattern, `is null` and `is not null` have no value.
        values: constants as PostgreSQL writes them.
    """

    table: Table
    column: Column
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restriction:
    """The conditions of a query's WHERE.

    Attributes:
        plain: the conditions on columns that are no times.
        of_times: how many conditions are about times.
        others: how many there are beside, as far as can be seen: such as those of subqueries.
    """

    plain: tuple[ColumnCondition, ...] = ()
    of_times: int = 0
    others: int = 0


def restriction_of(sql: str, catalog: Catalog) -> Restriction:
    """Return what the query says in its WHERE; a text that can't be read has other conditions."""
    select = parse_query(sql, _MAX_CHARS)
    if select is None or "larg" in select:
        return Restriction(others=1)

    sources = tuple(named_sources(select.get("fromClause", ()), catalog, cte_names(select)))
    reading = _Conditions(sources)
    unread = [source for source in sources if source.table is None]
    others = len(unread) + ("havingClause" in select)
    of_times = 0
    plain = []
    for node in conjuncts(select["whereClause"]) if "whereClause" in select else ():
        condition = reading.read(node)
        if reading.is_of_time(node):
            of_times += 1
        elif condition is None:
            others += 1
        else:
            plain.append(condition)

    return Restriction(tuple(plain), of_times, others)


class _Conditions:
    """Reads single conditions over the tables of one FROM."""

    def __init__(self, sources: Sequence[NamedSource]) -> None:
        self._sources = sources

    def read(self, node: Node) -> ColumnCondition | None:
        """Return what the node says; None where that is more than a plain condition."""
        ((kind, inner),) = node.items()
        match kind:
            case "ColumnRef":
                return self._on(node, "=", ("true",))
            case "NullTest":
                return self._on(inner.get("arg", {}), _NULLS[inner.get("nulltesttype", "IS_NULL")])
            case "BoolExpr":
                return self._read_not(inner)
            case "A_Expr":
                return self._read_comparison(inner)

        return None

    def is_of_time(self, node: Node) -> bool:
        """Tell whether the node reads a column of dates or times."""
        columns = [self._column(column_name(reference)) for reference in references_in(node)]
        types = [column.type for _, column in filter(None, columns)]
        return any(one.startswith(_TIMES) for one in types)

    def _read_not(self, node: Node) -> ColumnCondition | None:
        if node.get("boolop") != "NOT_EXPR":
            return None

        (argument,) = node["args"]
        condition = self.read(argument)
        if condition is None or condition.operator not in _NEGATED:
            return None

        return ColumnCondition(
            condition.table, condition.column, _NEGATED[condition.operator], condition.values
        )

    def _read_comparison(self, node: Node) -> ColumnCondition | None:
        operator = last_name(node.get("name", ()))
        left, right = node.get("lexpr", {}), node.get("rexpr", {})
        kind = node.get("kind")
        if kind == "AEXPR_IN":
            items = right.get("List", {}).get("items", ())
            return self._on(left, operator, tuple(_constants(items)), len(items))

        if kind in _PATTERNS and not operator.startswith("!"):
            return self._on(left, "like", tuple(_constants([right])), 1)
        if kind != "AEXPR_OP" or operator not in _TURNED:
            return None
        if column_name(without_casts(right)):
            left, right, operator = right, left, _TURNED[operator]

        return self._on(left, operator, tuple(_constants([right])), 1)

    def _on(
        self, node: Node, operator: str, values: tuple[str, ...] = (), count: int | None = None
    ) -> ColumnCondition | None:
        """Return the condition if `node` is a column of one table and all values were read."""
        if count is not None and len(values) != count:
            return None

        table_and_column = self._column(column_name(without_casts(node)))
        if table_and_column is None:
            return None

        return ColumnCondition(*table_and_column, operator, values)

    def _column(self, parts: Sequence[str]) -> tuple[Table, Column] | None:
        """Return the column that a reference leads to, if that is certain."""
        if not parts:
            return None

        candidates = []
        for table in self._tables(parts[:-1]):
            column = table.column(parts[-1])
            if column is not None:
                candidates.append((table, column))

        return candidates[0] if len(candidates) == 1 else None

    def _tables(self, qualifier: Sequence[str]) -> Iterator[Table]:
        for source in self._sources:
            if source.table is None or (qualifier and source.name != qualifier[-1]):
                continue

            yield source.table


def _constants(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the constants, NULL left out."""
    for node in nodes:
        constant = without_casts(node).get("A_Const", {})
        for kind in _NAUGHTS.keys() & constant.keys():
            value = constant[kind].get(kind, _NAUGHTS[kind])
            yield _TRUTHS[value] if isinstance(value, bool) else str(value)
