"""The operations of a request while its clauses are read one after the other."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from typing import Any

from etl.schemas.requirement import Action, IntentOperation

Json = dict[str, Any]
Operation = tuple[Action, Json]

# Operations on rows come before the first of these.
_ON_GROUPS = ("aggregate", "window")
# Where operations on the result name its columns, beside lists of names.
_NAMING_KEYS = ("column", "as")


class RequestDraft:
    """The operations so far, in the order in which they work.

    Args:
        operations: the operations of an earlier request that is changed; they are copied.
    """

    def __init__(self, operations: Sequence[IntentOperation] = ()) -> None:
        self.operations: list[Operation] = []
        self.target: str | None = None
        for one in sorted(operations, key=lambda operation: operation.order):
            self.operations.append((one.action, deepcopy(one.parameters)))

    @property
    def contents(self) -> tuple[str | None, list[Operation]]:
        """Return the target and the operations."""
        return self.target, self.operations

    @property
    def next_order(self) -> int:
        """Return the order of an operation that is added now."""
        return len(self.operations) + 1

    def of(self, action: Action) -> Iterator[Json]:
        """Yield the parameters of all operations of an action."""
        for own_action, parameters in self.operations:
            if own_action == action:
                yield parameters

    @property
    def aggregate(self) -> Json | None:
        """Return the parameters of the aggregate, if there is one."""
        return next(self.of("aggregate"), None)

    @property
    def measures(self) -> list[Json]:
        """Return the figures of the aggregate."""
        return self._listed_in_aggregate("measures")

    @property
    def keys(self) -> list[Json]:
        """Return what the aggregate groups by."""
        return self._listed_in_aggregate("group_by")

    def _listed_in_aggregate(self, part: str) -> list[Json]:
        aggregate = self.aggregate
        if aggregate is None:
            return []

        listed: list[Json] = aggregate[part]
        return listed

    @property
    def columns(self) -> list[Json]:
        """Return the columns of the aggregate's result: its keys and figures."""
        return [*self.keys, *self.measures]

    @property
    def plain_keys(self) -> list[Json]:
        """Return the keys that are columns as they are stored, and no periods."""
        keys: list[Json] = []
        for key in self.keys:
            if key.get("unit") is None:
                keys.append(key)

        return keys

    @property
    def period(self) -> Json | None:
        """Return the key that is a period, if there is one."""
        for key in self.keys:
            if key.get("unit") is not None:
                return key

        return None

    def add(self, action: Action, parameters: Json) -> None:
        """Add an operation that works on what those before it give."""
        self.operations.append((action, parameters))

    def add_join(self, parameters: Json) -> None:
        """Add a join; joins come before the aggregate and before windows."""
        self.operations.insert(self._place_of_result(), ("join", parameters))

    def add_row_filter(self, conditions: Sequence[Json], table: str | None = None) -> None:
        """Add conditions on rows, before they are grouped or ranked."""
        parameters: Json = {"conditions": list(conditions)}
        if table is not None:
            parameters["table"] = table

        self.operations.insert(self._place_of_result(), ("filter", parameters))

    def row_conditions(self, table: str) -> list[Json]:
        """Return the conditions on columns of this table alone."""
        found: list[Json] = []
        for action, parameters in self.operations:
            if action != "filter" or "table" in parameters:
                continue

            for one in parameters["conditions"]:
                if set(tables_in([one])) == {table}:
                    found.append(one)

        return found

    def names_in_result(self, table: str) -> bool:
        """Tell whether anything but a join or a filter of rows names a column of the table."""
        made = [given for action, given in self.operations if action not in ("join", "filter")]
        return f"{table}." in json.dumps(made, ensure_ascii=False)

    def remove_conditions(self, gone: Sequence[Json]) -> None:
        """Take away these very conditions."""
        identities = set(map(id, gone))
        for action, parameters in list(self.operations):
            if action != "filter":
                continue

            kept = [one for one in parameters["conditions"] if id(one) not in identities]
            parameters["conditions"] = kept
            if not kept:
                self.remove([parameters])

    def take_row_conditions(self, table: str) -> list[Json]:
        """Take away the conditions on columns of this table alone, and return them."""
        taken = self.row_conditions(table)
        self.remove_conditions(taken)
        return taken

    def begin_with(self, joins: Sequence[Json]) -> None:
        """Put joins before all other operations, in this order; those there already are moved."""
        self.remove(joins)
        begun: list[Operation] = []
        for join in joins:
            begun.append(("join", join))

        self.operations = [*begun, *self.operations]

    def remove(self, gone: Sequence[Json]) -> None:
        """Take away the operations that have these very parameters."""
        identities = set(map(id, gone))
        kept: list[Operation] = []
        for action, parameters in self.operations:
            if id(parameters) not in identities:
                kept.append((action, parameters))

        self.operations = kept

    def make_aggregate(self) -> Json:
        """Return the parameters of the aggregate, which is added where there is none."""
        aggregate = self.aggregate
        if aggregate is not None:
            return aggregate

        parameters: Json = {"group_by": [], "measures": []}
        self.add("aggregate", parameters)
        return parameters

    def show(self, name: str) -> None:
        """Add a column of the result to those of the target, where these are listed."""
        for sink in self.of("sink"):
            if sink.get("columns"):
                sink["columns"].append(name)

    def hide(self, names: Collection[str]) -> None:
        """Take columns of the result away from those that the target lists."""
        for sink in self.of("sink"):
            for part in ("columns", "unique_key"):
                listed = sink.get(part) or ()
                kept = [name for name in listed if name not in names]
                sink[part] = kept or None

    def rename_result(self, names: Mapping[str, str]) -> None:
        """Let operations on the result use new names of its columns."""
        for action, parameters in self.operations:
            if action in ("window", "filter", "sink"):
                replace_texts(parameters, names, _NAMING_KEYS)

    def _place_of_result(self) -> int:
        """Return the place of the first operation that works on the result, or makes it."""
        for place, (action, _) in enumerate(self.operations):
            if action in _ON_GROUPS:
                return place

        return len(self.operations)


def condition(column: str, operator: str, value: Any) -> Json:
    """Return a condition as an intent writes it."""
    return {"column": column, "operator": operator, "value": value}


def alternatives_in(condition: Json) -> list[Json]:
    """Return the conditions of which one has to hold: the condition itself where it is plain."""
    alternatives: list[Json] = condition.get("any", [condition])
    return alternatives


def tables_in(conditions: Sequence[Json]) -> Iterator[str]:
    """Yield the names of the tables whose columns conditions compare."""
    for one in conditions:
        for alternative in alternatives_in(one):
            yield alternative["column"].partition(".")[0]


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return the wanted name, with a number behind it where something else is called so."""
    free = wanted
    numbers = count(2)
    while free in taken:
        free = f"{wanted}_{next(numbers)}"

    return free


def containers_in(value: object) -> Iterator[Any]:
    """Yield the objects and lists within a JSON value, each before those within it."""
    if not isinstance(value, dict | list):
        return

    yield value
    for inner in values_in(value):
        yield from containers_in(inner)


def values_in(container: Json | list[Any]) -> Collection[Any]:
    """Return the values of an object or list."""
    if isinstance(container, dict):
        return container.values()

    return container


def replace_texts(parameters: Json, texts: Mapping[str, str], keys: Collection[str] = ()) -> None:
    """Write other texts for those that stand in the lists and objects of parameters.

    Args:
        keys: the keys of objects under which texts are replaced; empty: under any.
    """
    for container in containers_in(parameters):
        for place in _places(container, keys):
            text = container[place]
            if isinstance(text, str):
                container[place] = texts.get(text, text)


def _places(container: Any, keys: Collection[str]) -> list[Any]:
    """Return all places of a list, of an object those among the keys; no keys: all of them."""
    if isinstance(container, list):
        return list(range(len(container)))
    if not keys:
        return list(container)

    return [key for key in container if key in keys]
