"""How views join tables, which tells how they belong together where nothing is declared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from common.meanings import TableKey
from common.values import Catalog
from databases.catalog.view_sources import ViewSources

_MOST_DEFINITION = 100_000
_Side = tuple[str, str, str]
"""Schema (empty: by the search path), table and column."""
_Pairs = tuple[tuple[_Side, _Side], ...]


@dataclass(frozen=True)
class ViewJoin:
    """Columns of two tables that a view joins by: `left_columns[i]` equals `right_columns[i]`."""

    left: TableKey
    left_columns: tuple[str, ...]
    right: TableKey
    right_columns: tuple[str, ...]


def view_joins(views: Sequence[ViewSources], catalog: Catalog) -> list[ViewJoin]:
    """Return the joins of the views between tables and columns of the catalogue, each once."""
    joins: dict[ViewJoin, None] = {}
    for view in views:
        for pairs in _compared(view.definition):
            join = _join(pairs, catalog)
            if join is not None:
                joins[join] = None

    return list(joins)


def _join(pairs: Sequence[tuple[_Side, _Side]], catalog: Catalog) -> ViewJoin | None:
    """Return the join by these pairs of columns of two tables.

    None where the catalogue lacks one of them, or where both tables are the same.
    """
    lefts, rights = zip(*pairs, strict=True)
    left, right = _seen(lefts, catalog), _seen(rights, catalog)
    if left is None or right is None:
        return None

    is_of_one_table = left[0] == right[0]
    if is_of_one_table:
        return None

    return ViewJoin(*left, *right)


def _seen(sides: Sequence[_Side], catalog: Catalog) -> tuple[TableKey, tuple[str, ...]] | None:
    """Return the table and names of these columns; None where the catalogue lacks one."""
    key = _key_of(sides[0], catalog)
    if key is None:
        return None

    columns = tuple(side[2] for side in sides)
    column_names = {column.name for column in catalog.by_key[key].columns}
    if column_names.issuperset(columns):
        return (key, columns)

    return None


def _key_of(side: _Side, catalog: Catalog) -> TableKey | None:
    schema, name, _ = side
    schemas = (schema,) if schema else catalog.search_path
    for one in schemas:
        if (one, name) in catalog.by_key:
            return (one, name)

    return None


@lru_cache(maxsize=2_000)
def _compared(definition: str) -> tuple[_Pairs, ...]:
    """Return the pairs of columns that joins of the query compare, together for two tables."""
    if len(definition) > _MOST_DEFINITION:
        return ()

    try:
        tree = parse_one(definition, dialect="postgres")
    except (SqlglotError, RecursionError):
        return ()

    pairs: list[_Pairs] = []
    for select in tree.find_all(exp.Select):
        pairs += _of_select(select)

    return tuple(pairs)


def _of_select(select: exp.Select) -> list[_Pairs]:
    """Return the pairs that one SELECT compares, those of the same two tables together."""
    tables = _tables_of(select)
    pairs: dict[tuple[str, str], _Pairs] = {}
    for condition in _conditions(select):
        sides = _sides(condition, tables)
        if sides is not None:
            aliases, pair = sides
            pairs[aliases] = (*pairs.get(aliases, ()), pair)

    return list(pairs.values())


def _tables_of(select: exp.Select) -> Mapping[str, exp.Table]:
    """Return the tables that the query joins, by the names that its columns have for them."""
    tables = {}
    for table in select.find_all(exp.Table):
        if table.parent_select is select:
            tables[table.alias_or_name] = table

    return tables


def _conditions(select: exp.Select) -> Iterator[exp.EQ]:
    """Yield the comparisons that all hold for joined rows."""
    clauses = [join.args.get("on") for join in select.find_all(exp.Join)]
    where = select.args.get("where")
    if where is not None:
        clauses.append(where.this)

    for clause in clauses:
        if clause is not None and clause.parent_select is select:
            yield from _parts(clause)


def _parts(clause: exp.Expr) -> Iterator[exp.EQ]:
    """Yield the comparisons by `=` that a clause joins with AND."""
    condition = clause.unnest()
    parts = condition.flatten() if isinstance(condition, exp.And) else (condition,)
    for part in parts:
        plain = part.unnest()
        if isinstance(plain, exp.EQ):
            yield plain


def _sides(
    condition: exp.EQ, tables: Mapping[str, exp.Table]
) -> tuple[tuple[str, str], tuple[_Side, _Side]] | None:
    """Return the two columns that are compared, by their tables' names; None for anything else."""
    match condition.left.unnest(), condition.right.unnest():
        case exp.Column() as left, exp.Column() as right:
            first, second = sorted((left, right), key=lambda one: str(one.table))
            if first.table in tables and second.table in tables:
                pair = (_side(first, tables), _side(second, tables))
                return (first.table, second.table), pair

    return None


def _side(column: exp.Column, tables: Mapping[str, exp.Table]) -> _Side:
    table = tables[column.table]
    return table.db, table.name, column.name
