"""The lineage of views: source tables as `pg_depend` has them, columns as queries use them."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from common.values import Catalog, Table
from databases.catalog.view_sources import ViewSources
from etl.schemas.knowledge_context import TableLineage
from guard.facts import Key

# Confidence of an edge: the server records the tables that a view reads; which columns become which
# is worked out of the query.
_RECORDED = 1.0
_WORKED_OUT = 0.9
_MOST_DEFINITION = 100_000

_Columns = tuple[tuple[Key, tuple[str, ...]], ...]
_Pairs = Mapping[tuple[Key, str], tuple[str, ...]]


def qualified(table: Table) -> str:
    """Return a table's name with its schema."""
    return f"{table.schema}.{table.name}"


def view_lineage(views: Sequence[ViewSources], catalog: Catalog) -> list[TableLineage]:
    """Return an edge from each source to each view that reads it.

    Column pairs are added to an edge where the view's query can be followed: `source_columns[i]`
    becomes `target_columns[i]`. Without them, `source_columns` are those that the view names at
    all. Only what the catalogue has is named.
    """
    edges = []
    for view in views:
        columns = tuple((key, column_names(catalog, key)) for key, _ in view.sources)
        pairs = column_pairs(view.definition, columns, catalog.search_path)
        shown = column_names(catalog, view.view)
        for key, named in view.sources:
            edges.append(_edge(view, key, named, pairs, shown))

    return edges


def column_names(catalog: Catalog, key: Key) -> tuple[str, ...]:
    """Return the names of a table's columns in their order."""
    return tuple(column.name for column in catalog.by_key[key].columns)


def _edge(
    view: ViewSources, key: Key, named: Sequence[str], pairs: _Pairs, shown: Collection[str]
) -> TableLineage:
    """Return the edge from a source; `shown` are the columns of the view that the caller sees."""
    sources: list[str] = []
    targets: list[str] = []
    for column in named:
        for target in pairs.get((key, column), ()):
            if target in shown:
                sources.append(column)
                targets.append(target)

    is_followed = bool(targets)
    return TableLineage(
        source=".".join(key),
        target=".".join(view.view),
        source_columns=sources if is_followed else list(named),
        target_columns=targets,
        kind=view.kind,
        origin="sqlglot" if is_followed else "pg_depend",
        confidence=_WORKED_OUT if is_followed else _RECORDED,
    )


@lru_cache(maxsize=2_000)
def column_pairs(definition: str, columns_of: _Columns, search_path: tuple[str, ...]) -> _Pairs:
    """Return which columns of the view each source column becomes, as far as it can be told."""
    if len(definition) > _MOST_DEFINITION:
        return {}

    schema: dict[str, dict[str, dict[str, str]]] = {}
    for (of_schema, name), columns in columns_of:
        schema.setdefault(of_schema, {})[name] = dict.fromkeys(columns, "text")

    try:
        tree = _with_schemas(definition, columns_of, search_path)
        nodes = lineage(None, tree, schema=schema, dialect="postgres", trim_selects=False)
    except (SqlglotError, RecursionError, ValueError, KeyError):
        return {}

    if isinstance(nodes, Node):
        return {}

    pairs: dict[tuple[Key, str], dict[str, None]] = {}
    for target, node in nodes.items():
        for source_column in _source_columns(node):
            pairs.setdefault(source_column, {})[target] = None

    return {place: tuple(targets) for place, targets in pairs.items()}


def _with_schemas(definition: str, columns_of: _Columns, search_path: tuple[str, ...]) -> exp.Expr:
    """Return the query with the schema of every table that has none."""
    tree: exp.Expr = parse_one(definition, dialect="postgres")
    keys = {key for key, _ in columns_of}
    for table in tree.find_all(exp.Table):
        if table.db:
            continue

        for schema in search_path:
            if (schema, table.name) in keys:
                table.set("db", exp.to_identifier(schema, quoted=True))
                break

    return tree


def _source_columns(output: Node) -> list[tuple[Key, str]]:
    """Return the tables' columns that an output column is computed from."""
    columns = []
    for node in output.walk():
        is_leaf = not node.downstream  # sqlglot calls sources downstream
        source = node.source
        if is_leaf and isinstance(source, exp.Table) and source.db:
            column = node.name.rpartition(".")[2].strip('"')
            columns.append(((source.db, source.name), column))

    return columns
