"""The tables that the sources of an intent name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from common.errors import InvalidRequest
from common.text import Text
from common.values import Catalog, Table
from etl.binding.intent_checks import invalid
from etl.binding.request_findings import NotBound, RequestFindings, choice
from etl.binding.scope import IntentScope, near, said_table_names
from etl.meaning.bound import BoundSource
from etl.schemas.requirement import IntentSource
from knowledge.index import IndexPart

TableName = tuple[str, str]


def _tables_by_said_name(tables: Iterable[Table]) -> Mapping[str, tuple[TableName, ...]]:
    named: dict[str, list[TableName]] = defaultdict(list)
    for table in tables:
        for name in dict.fromkeys(said_table_names(table)):
            named[name].append(table.key)

    tables_by_name = {}
    for name, keys in named.items():
        tables_by_name[name] = tuple(keys)

    return tables_by_name


SAID_TABLES = IndexPart(
    lambda index: _tables_by_said_name(index.catalog.tables), ignores_row_counts=True
)
"""The tables by what people call them, besides their names."""


def bind_sources(
    sources: Sequence[IntentSource], catalog: Catalog, findings: RequestFindings, scope: IntentScope
) -> None:
    """Put the tables of an intent into the scope.

    Raises:
        InvalidRequest: two sources have one name.
    """
    for place, source in enumerate(sources):
        try:
            table = _table_of(source, catalog, findings)
        except NotBound:
            continue

        name = source.alias or table.name
        field = f"intent.data_sources[{place}]"
        if name in scope.sources:
            raise _twice(name, field)

        scope.sources[name] = BoundSource(name, table)
        scope.visible.append(name)
        for text in _spellings(source, table):
            scope.names.setdefault(text, name)

    for name in scope.sources:
        scope.names[name] = name


def _twice(name: str, field: str) -> InvalidRequest:
    zh = f"名称 {name} 重复；请用 alias 区分。"
    return invalid(f"{field}.alias", zh, f"{name} stands twice; tell them apart by `alias`.")


def _spellings(source: IntentSource, table: Table) -> Iterable[str]:
    """Return the ways in which operations may name a source; an alias hides the others."""
    if source.alias is not None:
        return (source.alias,)

    return (source.table_name, table.name, f"{table.schema}.{table.name}", *said_table_names(table))


def _table_of(source: IntentSource, catalog: Catalog, findings: RequestFindings) -> Table:
    """Return the one table that is called so.

    Raises:
        NotBound
    """
    candidates = tables_named(source.table_name, source.schema_name, catalog)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        spelled = ".".join(filter(None, (source.schema_name, source.table_name)))
        raise findings.refuse(
            "unknown_name",
            Text(f"没有表 {spelled}。", f"There is no table {spelled}."),
            near(source.table_name, catalog.by_name),
        )

    prompt = Text(
        f"“{source.table_name}”指的是哪张表？", f"Which table does “{source.table_name}” mean?"
    )
    by_value = {}
    for table in candidates:
        by_value[f"{table.schema}.{table.name}"] = table

    choices = []
    for value, table in by_value.items():
        choices.append(choice(value, _label(value, table)))

    return by_value[findings.choose("table", source.table_name, prompt, choices)]


def _label(value: str, table: Table) -> str:
    if table.comment:
        return f"{value} ({table.comment})"

    return value


def tables_named(name: str, schema: str | None, catalog: Catalog) -> Sequence[Table]:
    """Return the tables of that name; without one, those that people call so."""
    if schema is not None:
        table = catalog.by_key.get((schema, name))
        if table is None:
            return []

        return [table]

    candidates = catalog.by_name.get(name, ())
    if candidates:
        return _on_path(candidates, catalog)

    owner, dot, own_name = name.partition(".")
    if dot and (owner, own_name) in catalog.by_key:
        return [catalog.by_key[owner, own_name]]

    named = []
    for key in SAID_TABLES.of(catalog).get(name, ()):
        named.append(catalog.by_key[key])

    return named


def _on_path(candidates: Sequence[Table], catalog: Catalog) -> Sequence[Table]:
    """Return all tables of a name; those that no search path finds only where none is on it."""
    on_path = []
    for table in candidates:
        if table.schema in catalog.search_path:
            on_path.append(table)

    return on_path or candidates
