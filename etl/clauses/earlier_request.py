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
    _complete(draft)
    tables: dict[str, Table] = {}
    for source in _read_sources(earlier, draft):
        found = tables_named(source.table_name, source.schema_name, catalog)
        if len(found) != 1:
            continue
        called = _called(source)
        names.call(found[0], called)
        names.add(found[0].key)
        tables[called] = found[0]
    made = set(_made_names(draft))
    for action, parameters in draft.operations:
        if action == "aggregate":
            _qualify(parameters, tables, made)
        elif action == "filter":
            _qualify(parameters, tables, {*made, *_result_names(draft)})
    return draft


def _complete(draft: RequestDraft) -> None:
    """Write what an intent may leave out, as binding takes it."""
    for join in draft.of("join"):
        join["how"] = join.get("how") or "left"
    for window in draft.of("window"):
        window.setdefault("partition_by", [])
        window.setdefault("order_by", [])
    taken: set[str] = {one["as"] for one in (*draft.keys, *draft.measures) if one.get("as")}
    for key in draft.keys:
        column = _own_name(key.get("column"))
        _name(key, key.get("unit") or column, f"{column}_{key.get('unit')}", taken)
    for measure in draft.measures:
        column = _own_name(measure.get("column"))
        plain = f"{measure['function']}_{column}" if column else measure["function"]
        _name(measure, plain, plain, taken)


def _own_name(reference: str | None) -> str:
    return (reference or "").rpartition(".")[2]


def _name(one: Json, wanted: str, longer: str, taken: set[str]) -> None:
    """Give a key or figure without a name one that no other has."""
    if one.get("as"):
        return
    number, free = 2, wanted if wanted not in taken else longer
    begin = free
    while free in taken:
        free = f"{begin}_{number}"
        number += 1
    one["as"] = free
    taken.add(free)


def _called(source: IntentSource) -> str:
    return source.alias or source.table_name


def _read_sources(earlier: UserIntent, draft: RequestDraft) -> Iterator[IntentSource]:
    """Yield the base and the sources whose columns may be read, the base first."""
    read = set(_tables_read(draft))
    unjoined = {*_looked_up(draft), *_rate_tables(draft)}
    for place, source in enumerate(_base_first(earlier.data_sources, draft)):
        called = _called(source)
        if called in unjoined:
            continue
        if place == 0 or called in read or not read:
            yield source


def _looked_up(draft: RequestDraft) -> Iterator[str]:
    for join in draft.of("join"):
        if join.get("how") in _LOOKING_UP:
            yield join["right"]


def _made_names(draft: RequestDraft) -> Iterator[str]:
    for parameters in draft.of("transform"):
        yield parameters["as"]


def _tables_read(draft: RequestDraft) -> Iterator[str]:
    """Yield the names of tables that are joined, or whose columns are read."""
    for action, parameters in draft.operations:
        is_lookup = parameters.get("how") in _LOOKING_UP
        if action == "join" and not is_lookup:
            yield parameters["left"]
            yield parameters["right"]
        if action == "join" or "table" in parameters:
            continue
        for text in _texts_in(parameters):
            yield text.partition(".")[0]


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
