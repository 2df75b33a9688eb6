"""The operations of a request while its clauses are read one after the other."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from etl.schemas.requirement import Action, IntentOperation

Json = dict[str, Any]
Operation = tuple[Action, Json]

_ON_RESULT = ("window",)


class RequestDraft:
    """The operations so far, in the order in which they work.

    Args:
        operations: of an earlier request that is changed; they are copied.
    """

    def __init__(self, operations: Sequence[IntentOperation] = ()) -> None:
        self.operations: list[Operation] = []
        self.target: str | None = None
        for one in sorted(operations, key=lambda operation: operation.order):
            self.operations.append((one.action, deepcopy(one.parameters)))

    @property
    def contents(self) -> tuple[str | None, list[Operation]]:
        """Return all that the draft says: its target and its operations."""
        return self.target, self.operations

    @property
    def next_order(self) -> int:
        """Return the order of an operation that is added now."""
        return len(self.operations) + 1

    def of(self, action: Action) -> Iterator[Json]:
        """Yield the parameters of all operations of an action."""
        for one, parameters in self.operations:
            if one == action:
                yield parameters

    @property
    def aggregate(self) -> Json | None:
        """Return the parameters of the aggregate, if there is one."""
        return next(self.of("aggregate"), None)

    @property
    def measures(self) -> list[Json]:
        """Return the figures of the aggregate."""
        aggregate = self.aggregate
        if aggregate is None:
            return []
        measures: list[Json] = aggregate["measures"]
        return measures

    @property
    def keys(self) -> list[Json]:
        """Return what the aggregate groups by."""
        aggregate = self.aggregate
        if aggregate is None:
            return []
        keys: list[Json] = aggregate["group_by"]
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

    def begin_with(self, joins: Sequence[Json]) -> None:
        """Put joins before all other operations, in this order; those there already are moved."""
        rest: list[Operation] = []
        for action, parameters in self.operations:
            is_moved = action == "join" and any(parameters is join for join in joins)
            if not is_moved:
                rest.append((action, parameters))
        first: list[Operation] = []
        for join in joins:
            first.append(("join", join))
        self.operations = [*first, *rest]

    def make_aggregate(self) -> Json:
        """Return the parameters of the aggregate, which is added where there is none."""
        known = self.aggregate
        if known is not None:
            return known
        made: Json = {"group_by": [], "measures": []}
        self.add("aggregate", made)
        return made

    def show(self, name: str) -> None:
        """Let the target have a column of the result, where its columns are listed."""
        for sink in self.of("sink"):
            if sink.get("columns"):
                sink["columns"].append(name)

    def hide(self, names: Collection[str]) -> None:
        """Let the target do without columns that are no more."""
        for sink in self.of("sink"):
            for part in ("columns", "unique_key"):
                kept = [one for one in sink.get(part) or () if one not in names]
                sink[part] = kept or None

    def rename_result(self, names: Mapping[str, str]) -> None:
        """Let operations on the result use new names of its columns."""
        for action, parameters in self.operations:
            if action in ("window", "filter", "sink"):
                _rename(parameters, names)

    def _place_of_result(self) -> int:
        """Return the place of the first operation that works on the result, or makes it."""
        for place, (action, _) in enumerate(self.operations):
            if action == "aggregate" or action in _ON_RESULT:
                return place
        return len(self.operations)


def _rename(value: Any, names: Mapping[str, str]) -> None:
    """Replace names of columns wherever they stand in parameters."""
    if isinstance(value, list):
        for place, inner in enumerate(value):
            if isinstance(inner, str):
                value[place] = names.get(inner, inner)
            else:
                _rename(inner, names)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ("column", "as") and isinstance(inner, str):
                value[key] = names.get(inner, inner)
            else:
                _rename(inner, names)
