"""The request of an earlier turn, which a follow-up changes."""

from collections.abc import Iterator, Sequence

from common.values import Catalog, Table
from etl.binding.source_tables import tables_named
from etl.clauses.clause_names import NameResolver
from etl.clauses.request_draft import Json, RequestDraft, containers_in, free_name, values_in
from etl.schemas.requirement import IntentSource, UserIntent

_LOOKING_UP = ("semi", "anti")


def draft_of_earlier(earlier: UserIntent, catalog: Catalog, names: NameResolver) -> RequestDraft:
    """Return the draft of an earlier intent, for a follow-up to change.

    Columns that stand without a table are given theirs, where only one table has such a column.

    Args:
        names: gets the earlier intent's tables, under the names that it calls them by.
    """
    draft = RequestDraft(earlier.operations)
    draft.target = earlier.data_target.table_name
    _fill_in_defaults(draft)
    tables = _add_tables(earlier, draft, catalog, names)
    computed = {transform["as"] for transform in draft.of("transform")}
    for aggregate in draft.of("aggregate"):
        _qualify(aggregate, tables, computed)

    # In filters, names of the result's columns stand for these and get no table.
    computed.update(_result_names(draft))
    for parameters in draft.of("filter"):
        _qualify(parameters, tables, computed)

    return draft


def _add_tables(
    earlier: UserIntent, draft: RequestDraft, catalog: Catalog, names: NameResolver
) -> dict[str, Table]:
    """Make the tables that the intent reads those of the request; return them by their names."""
    tables: dict[str, Table] = {}
    for source in _read_sources(earlier, draft):
        tables_of_name = tables_named(source.table_name, source.schema_name, catalog)
        if len(tables_of_name) != 1:
            continue

        called = _source_name(source)
        names.set_alias(tables_of_name[0], called)
        names.add_source(tables_of_name[0].key)
        tables[called] = tables_of_name[0]

    return tables


def _fill_in_defaults(draft: RequestDraft) -> None:
    """Write what an intent may leave out, with the meaning that binding gives it."""
    for join in draft.of("join"):
        join["how"] = join.get("how") or "left"

    for window in draft.of("window"):
        window.setdefault("partition_by", [])
        window.setdefault("order_by", [])

    taken: set[str] = set()
    for one in draft.columns:
        if one.get("as"):
            taken.add(one["as"])

    for key in draft.keys:
        unit, column = key.get("unit"), _own_name(key.get("column"))
        _name(key, unit or column, f"{column}_{unit}", taken)

    for measure in draft.measures:
        function, column = measure["function"], _own_name(measure.get("column"))
        plain = f"{function}_{column}" if column else function
        _name(measure, plain, plain, taken)


def _own_name(reference: str | None) -> str:
    """Return the name of a column without its table's; empty where there is no column."""
    return (reference or "").rpartition(".")[2]


def _name(one: Json, wanted: str, longer: str, taken: set[str]) -> None:
    """Give a key or figure without a name one that no other has, the longer one if need be."""
    if one.get("as"):
        return
    if wanted in taken:
        wanted = longer

    one["as"] = free_name(wanted, taken)
    taken.add(one["as"])


def _source_name(source: IntentSource) -> str:
    return source.alias or source.table_name


def _read_sources(earlier: UserIntent, draft: RequestDraft) -> Iterator[IntentSource]:
    """Yield the base and the sources whose columns may be read, the base first."""
    read = set(_tables_read(draft))
    unjoined = set(_unjoined_tables(draft))
    for place, source in enumerate(_base_first(earlier.data_sources, draft)):
        called = _source_name(source)
        if called in unjoined:
            continue

        is_base = place == 0
        if is_base or called in read or not read:
            yield source


def _unjoined_tables(draft: RequestDraft) -> Iterator[str]:
    """Yield the names of tables that are only looked up, or that hold rates."""
    for join in draft.of("join"):
        if join.get("how") in _LOOKING_UP:
            yield join["right"]

    for transform in draft.of("transform"):
        if transform.get("rate"):
            yield transform["rate"]["table"]


def _tables_read(draft: RequestDraft) -> Iterator[str]:
    """Yield the names of tables that are joined, or whose columns are read."""
    for action, parameters in draft.operations:
        if action != "join":
            yield from _tables_named_in(parameters)
        elif parameters.get("how") not in _LOOKING_UP:
            yield parameters["left"]
            yield parameters["right"]


def _tables_named_in(parameters: Json) -> Iterator[str]:
    """Yield what stands before the dot of texts; nothing of an operation on one table alone."""
    if "table" in parameters:
        return

    for container in containers_in(parameters):
        for value in values_in(container):
            if isinstance(value, str):
                yield value.partition(".")[0]


def _base_first(sources: Sequence[IntentSource], draft: RequestDraft) -> list[IntentSource]:
    """Return the sources, the left one of the first join before the others."""
    first = next(draft.of("join"), None)
    if first is None:
        return list(sources)

    return sorted(sources, key=lambda source: _source_name(source) != first["left"])


def _result_names(draft: RequestDraft) -> Iterator[str]:
    for column in (*draft.columns, *draft.of("window")):
        if column.get("as"):
            yield column["as"]


def _qualify(parameters: Json, tables: dict[str, Table], computed: set[str]) -> None:
    """Write `table.column` for stored columns that are called by their name alone."""
    for container in containers_in(parameters):
        if not isinstance(container, dict):
            continue

        name = container.get("column")
        if not isinstance(name, str) or name in computed:
            continue

        owners = []
        for called, table in tables.items():
            if table.column(name) is not None:
                owners.append(called)

        if len(owners) == 1:
            container["column"] = f"{owners[0]}.{name}"
