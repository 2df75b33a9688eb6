"""Which columns each SELECT of a model's tree can read."""

from collections.abc import Iterator, Mapping

from sqlglot import exp

Types = Mapping[str, str]
"""Types of columns by name; "" where the type is not known."""


class QueryScope:
    """A SELECT with what it reads, and the SELECT around it."""

    def __init__(self, select: exp.Select, tables: Mapping[str, Types]) -> None:
        self.select = select
        self._tables = tables

    def owns(self, node: exp.Expr) -> bool:
        """Tell whether a part of the tree stands in this SELECT itself, not in one within."""
        return node.find_ancestor(exp.Select) is self.select

    def columns(self) -> Iterator[exp.Column]:
        """Yield the columns that stand in it."""
        for column in self.select.find_all(exp.Column):
            is_star = isinstance(column.this, exp.Star)
            if not is_star and self.owns(column):
                yield column

    def type_of(self, column: exp.Column) -> str | None:
        """Return a column's type, "" where it is not known; None where there is no such column."""
        if column.table:
            return self._tables.get(column.table, {}).get(column.name)

        for types in self._tables.values():
            if column.name in types:
                return types[column.name]

        return None


def scopes_of(query: exp.Query, types_of: Mapping[str, Types]) -> Iterator[QueryScope]:
    """Yield every SELECT of a query.

    Args:
        types_of: the columns of models, and of tables as `schema.table`.
    """
    tables = dict(types_of)
    for cte in query.ctes:
        yield from scopes_of(cte.this, tables)
        tables[cte.alias] = _outputs(cte.this)

    if isinstance(query, exp.SetOperation):
        yield from scopes_of(query.left, tables)
        yield from scopes_of(query.right, tables)
    elif isinstance(query, exp.Select):
        yield from _select_scopes(query, tables, {})


def _select_scopes(
    select: exp.Select, types_of: Mapping[str, Types], around: Mapping[str, Types]
) -> Iterator[QueryScope]:
    visible = dict(around)
    for place in read_places(select):
        if isinstance(place, exp.Table):
            name = f"{place.db}.{place.name}" if place.db else place.name
            visible[place.alias_or_name] = types_of.get(name, {})
        elif isinstance(place, exp.Subquery):
            yield from scopes_of(place.this, types_of)
            visible[place.alias] = _outputs(place.this)

    yield QueryScope(select, visible)
    for inner in select.find_all(exp.Select):
        is_directly_within = inner is not select and inner.parent_select is select
        if is_directly_within and _is_expression(inner):
            yield from _select_scopes(inner, types_of, visible)


def _is_expression(select: exp.Select) -> bool:
    """Tell whether a SELECT stands in an expression: not in a FROM, a JOIN or a WITH."""
    around = select.parent
    if isinstance(around, exp.Subquery):
        return not isinstance(around.parent, exp.From | exp.Join)

    return isinstance(around, exp.Exists | exp.In)


def read_places(select: exp.Select) -> list[exp.Expr]:
    """Return the tables and subqueries that a SELECT reads."""
    places: list[exp.Expr] = []
    source = select.args.get("from_")
    if source is not None:
        places.append(source.this)

    for join in select.args.get("joins") or ():
        places.append(join.this)

    return places


def _outputs(query: exp.Query) -> Types:
    return dict.fromkeys(query.named_selects, "")
