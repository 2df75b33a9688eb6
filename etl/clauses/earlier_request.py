"""The request of an earlier turn, which a follow-up changes."""

from collections.abc import Iterator, Sequence

from common.values import Catalog, Table
from etl.binding.source_tables import tables_named
from etl.clauses.clause_names import Names
from etl.clauses.request_draft import Json, RequestDraft
from etl.schemas.requirement import IntentSource, UserIntent

_LOOKING_UP = ("semi", "anti")


def begin_from(earlier: UserIntent, catalog: Catalog, names: Names) -> RequestDraft:
    """Return the draft of an earlier intent; its tables become those of the request.

    Names of columns are given their tables where just one of the tables has such a column.
    """
    draft = RequestDraft(earlier.operations)
    draft.target = earlier.data_target.table_name
    unjoined = set()
    for join in draft.of("join"):
        if join["how"] in _LOOKING_UP:
            unjoined.add(join["right"])
    unjoined.update(_rate_tables(draft))
    tables: dict[str, Table] = {}
    sources = _base_first(earlier.data_sources, draft)
    read = set(_tables_read(draft))
    if not read:
        read = set()
        for source in sources:
            read.add(source.alias or source.table_name)
    for source in sources:
        found = tables_named(source.table_name, source.schema_name, catalog)
        called = source.alias or source.table_name
        is_base = source is sources[0]
        if len(found) != 1 or not (is_base or called in read) or called in unjoined:
            continue
        names.call(found[0], called)
        names.add(found[0].key)
        tables[called] = found[0]
    made = set()
    for parameters in draft.of("transform"):
        made.add(parameters["as"])
    for action, parameters in draft.operations:
        if action in ("filter", "aggregate"):
            _qualify(parameters, tables, made | set(_result_names(draft)))
    return draft


def _tables_read(draft: RequestDraft) -> Iterator[str]:
    """Yield the names of tables that are joined, or whose columns are read."""
    for action, parameters in draft.operations:
        if action == "join" and parameters["how"] not in _LOOKING_UP:
            yield from (parameters["left"], parameters["right"])
        elif action != "join" and "table" not in parameters:
            yield from (text.partition(".")[0] for text in _texts_in(parameters) if "." in text)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts_in(inner)


def _rate_tables(draft: RequestDraft) -> Iterator[str]:
    for parameters in draft.of("transform"):
        if parameters.get("rate"):
            yield parameters["rate"]["table"]


def _base_first(sources: Sequence[IntentSource], draft: RequestDraft) -> list[IntentSource]:
    first = next(draft.of("join"), None)
    base = first["left"] if first is not None else None
    return sorted(sources, key=lambda source: (source.alias or source.table_name) != base)


def _result_names(draft: RequestDraft) -> Iterator[str]:
    for one in (*draft.keys, *draft.measures, *draft.of("window")):
        if one.get("as"):
            yield one["as"]


def _qualify(value: object, tables: dict[str, Table], known: set[str]) -> None:
    """Write `table.column` for columns that are called by their name alone."""
    if isinstance(value, list):
        for inner in value:
            _qualify(inner, tables, known)
    elif isinstance(value, dict):
        for inner in value.values():
            _qualify(inner, tables, known)
        _qualify_column(value, tables, known)


def _qualify_column(parameters: Json, tables: dict[str, Table], known: set[str]) -> None:
    name = parameters.get("column")
    if not isinstance(name, str) or name in known:
        return
    owners = []
    for called, table in tables.items():
        if table.column(name) is not None:
            owners.append(called)
    if len(owners) == 1:
        parameters["column"] = f"{owners[0]}.{name}"
