"""Reads clauses of a follow-up that replace or take away parts of the request before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from common.text import Text
from etl.binding.request_findings import NotBound, choice
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_figures import FIGURE_FUNCTIONS
from etl.clauses.clause_names import NamedColumn, is_date
from etl.clauses.clause_tokens import Token, says
from etl.clauses.request_draft import Json, RequestDraft
from etl.clauses.request_reading import RequestReading
from etl.schemas.requirement import AmbiguityKind

_ADD, _REPLACE = "add", "replace"
_PLACES = {
    _ADD: Text("在原有基础上增加", "beside what there is"),
    _REPLACE: Text("替换原有的", "instead of what there is"),
}
_WINDOWS = {"running": "sum", "previous": "lag", "top": "rank"}
_NOTHING_LEFT = Text(
    "去掉之后就没有任何指标和分组了，请说明要计算什么。",
    "Nothing to group by or to compute would be left: say what is wanted.",
)


@dataclass(frozen=True)
class _Sides:
    """What comes, and what it replaces if that is said."""

    new: Sequence[Token]
    old: Sequence[Token]


class EditClauses:
    """Changes the operations of an earlier request.

    Args:
        reading: of the follow-up, whose draft has these operations.
    """

    def __init__(self, reading: RequestReading) -> None:
        self._reading = reading
        self._names = reading.names
        self._draft = reading.draft

    # --------------------------------------------------------------------------
    # what is added

    def take_figures(self, clause: Clause, *, is_added: bool) -> None:
        """Add groups and figures; where it isn't said that they are added, ask."""
        found = self._reading.figures(clause.tokens)
        keys = [key for key in found.keys if not self._has_key(key)]
        measures = [one for one in found.measures if not self._has_measure(one)]
        aggregate = self._draft.aggregate
        if aggregate is None:
            self._reading.add_figures(found)
            return
        if not found.keys and not found.measures:
            self._reading.left_over(clause.tokens)
            return
        if keys:
            self._place(aggregate, "group_by", keys, "grain", is_added=is_added)
        if measures:
            self._place(aggregate, "measures", measures, "measure", is_added=is_added)

    def _has_key(self, key: Json) -> bool:
        wanted = (key.get("column"), key.get("unit"))
        return any((one.get("column"), one.get("unit")) == wanted for one in self._draft.keys)

    def _has_measure(self, measure: Json) -> bool:
        return any(_is_same_figure(one, measure) for one in self._draft.measures)

    def _place(
        self,
        aggregate: Json,
        place: str,
        found: list[Json],
        kind: AmbiguityKind,
        *,
        is_added: bool,
    ) -> None:
        """Add to the keys or figures that there are, or replace them, as it is said or chosen."""
        known: list[Json] = aggregate[place]
        chosen = _ADD if is_added or not known else self._asked_place(kind, found)
        if chosen is None:
            return
        before = [str(one["as"]) for one in known]
        if chosen == _REPLACE:
            known.clear()
        taken = {one["as"] for one in (*self._draft.keys, *self._draft.measures)}
        for one in found:
            one["as"] = self._free_name(one, taken)
            taken.add(one["as"])
            known.append(one)
        if chosen == _REPLACE:
            self._remove_windows_over(before)
        if place == "group_by":
            self._divide_windows([str(one["as"]) for one in found if one.get("unit") is None])

    def _asked_place(self, kind: AmbiguityKind, found: Sequence[Json]) -> str | None:
        listed = ", ".join(str(one["as"]) for one in found)
        prompt = Text(
            f"“{listed}”是增加，还是替换原有的？",
            f"Does “{listed}” come beside what there is, or instead of it?",
        )
        choices = []
        for value, label in _PLACES.items():
            choices.append(choice(value, self._reading.findings.shown(label)))
        try:
            return self._reading.findings.choose(kind, f"place of {listed}", prompt, choices)
        except NotBound:
            return None

    def _free_name(self, one: Json, taken: set[Any]) -> str:
        """Return a name that no other column of the result has."""
        name = str(one["as"])
        if name not in taken:
            return name
        table, _, column = str(one.get("column", "")).partition(".")
        longer = f"{table}_{column}" if column else name
        number, free = 2, longer
        while free in taken:
            free = f"{longer}_{number}"
            number += 1
        return free

    def _divide_windows(self, names: Sequence[str]) -> None:
        """Let what runs along the periods run within each of the new groups."""
        period = self._draft.period
        for window in self._draft.of("window"):
            is_along = bool(window["order_by"]) and period is not None
            if is_along and window["order_by"][0]["column"] == period["as"]:  # type: ignore[index]
                window["partition_by"] = [*window["partition_by"], *names]

    # --------------------------------------------------------------------------
    # what is replaced

    def take_instead(self, clause: Clause) -> None:
        """Replace a date, a period, a figure, its function or a group."""
        sides = _sides_of(clause.tokens)
        is_read = False
        for place, token in enumerate(sides.new):
            after = sides.new[place + 1] if place + 1 < len(sides.new) else None
            if token.means("bucket") or (token.means("date_part") and not token.names):
                is_read = self._replace_unit(token) or is_read
            elif token.means(*FIGURE_FUNCTIONS) and not (after is not None and after.names):
                is_read = self._replace_function(token, sides.old) or is_read
            elif token.names and not token.is_value:
                is_read = self._replace_column(token, sides.old) or is_read
            elif not token.means("instead", "instead_of", "replacing", "each", "by", "and"):
                self._reading.cover([token])
        if not is_read:
            self._reading.left_over(clause.tokens)

    def _replace_unit(self, token: Token) -> bool:
        period = self._draft.period
        if period is None:
            return False
        before = str(period["as"])
        if before == period["unit"]:
            period["as"] = token.arg
            self._draft.rename_result({before: token.arg})
        period["unit"] = token.arg
        return True

    def _replace_function(self, token: Token, old: Sequence[Token]) -> bool:
        function = FIGURE_FUNCTIONS[token.kind]
        measures = [one for one in self._draft.measures if one["function"] != "count"]
        said = [FIGURE_FUNCTIONS[one.kind] for one in old if one.kind in FIGURE_FUNCTIONS]
        if said:
            measures = [one for one in measures if one["function"] in said]
        measure = self._one_of("measure", measures, token.text)
        if measure is None:
            return bool(measures)
        self._rename(measure, {**measure, "function": function})
        return True

    def _replace_column(self, token: Token, old: Sequence[Token]) -> bool:
        named = self._names.column(token, self._reading.order)
        if named is None:
            return token.text in self._names.asked
        self._names.add(named.table.key)
        if is_date(named.table, named.column):
            return self._replace_date(named, old, token.text)
        if self._names.is_measure(named.table, named.column) and not self._are_keys(old):
            return self._replace_figure(named, old, token.text)
        return self._replace_key(named, old, token.text)

    def _are_keys(self, old: Sequence[Token]) -> bool:
        columns = {key.get("column") for key in self._draft.keys}
        return any(self._reference(token) in columns for token in old if token.names)

    def _reference(self, token: Token) -> str | None:
        named = self._names.column(token, self._reading.order)
        if named is None:
            return None
        return self._names.reference(named.table, named.column.name)

    def _replace_date(self, named: NamedColumn, old: Sequence[Token], said: str) -> bool:
        """Use another date wherever the request uses one: for its periods and its conditions."""
        new = self._names.reference(named.table, named.column.name)
        period = self._draft.period
        if period is not None and period.get("column") is None:
            period["column"] = new
            return True
        wanted = {self._reference(token) for token in old if token.names}
        used = [one for one in self._dates_in_use() if one != new]
        used = [one for one in used if one in wanted] or used
        chosen = self._one_reference("column", used, said)
        if chosen is None:
            return bool(used)
        _replace_text(self._draft, chosen, new)
        return True

    def _dates_in_use(self) -> list[str]:
        found: dict[str, None] = {}
        for action, parameters in self._draft.operations:
            if action not in ("filter", "aggregate", "dedup"):
                continue
            for text in _columns_in(parameters):
                table, _, column = text.partition(".")
                owner = self._names.called(table)
                stored = owner.column(column) if owner is not None else None
                if owner is not None and stored is not None and is_date(owner, stored):
                    found[text] = None
        return list(found)

    def _replace_figure(self, named: NamedColumn, old: Sequence[Token], said: str) -> bool:
        measures = [one for one in self._draft.measures if one["function"] != "count"]
        wanted = {self._reference(token) for token in old if token.names}
        measures = [one for one in measures if one.get("column") in wanted] or measures
        measure = self._one_of("measure", measures, said)
        if measure is None:
            return bool(measures)
        changed = {name: value for name, value in measure.items() if name != "expression"}
        column = self._names.reference(named.table, named.column.name)
        self._rename(measure, {**changed, "column": column})
        return True

    def _replace_key(self, named: NamedColumn, old: Sequence[Token], said: str) -> bool:
        keys = [key for key in self._draft.keys if key.get("unit") is None]
        wanted = {self._reference(token) for token in old if token.names}
        replaced = [one for one in keys if one.get("column") in wanted] or keys
        key = self._one_of("column", replaced, said)
        if key is None:
            return bool(keys)
        before = str(key["as"])
        column = self._names.reference(named.table, named.column.name)
        known = next((one for one in keys if one.get("column") == column), None)
        if known is not None and known is not key:
            self._draft.keys.remove(key)
            self._draft.rename_result({before: known["as"]})
            return True
        key["column"] = column
        others = {one["as"] for one in (*self._draft.keys, *self._draft.measures) if one is not key}
        key["as"] = self._free_name({**key, "as": named.column.name}, others)
        self._draft.rename_result({before: key["as"]})
        return True

    def _rename(self, measure: Json, changed: Json) -> None:
        """Change a figure; a name that said what it was says what it is."""
        before = str(measure["as"])
        measure.clear()
        measure.update(changed)
        column = str(changed.get("column", "")).rpartition(".")[2]
        if column:
            measure["as"] = f"{column}_{changed['function']}"
            self._draft.rename_result({before: measure["as"]})

    def _one_of(self, kind: AmbiguityKind, found: Sequence[Json], said: str) -> Json | None:
        """Return the one that is replaced, which is asked where there are several."""
        by_name = {str(one["as"]): one for one in found}
        chosen = self._one_reference(kind, list(by_name), said)
        return None if chosen is None else by_name[chosen]

    def _one_reference(self, kind: AmbiguityKind, found: Sequence[str], said: str) -> str | None:
        if len(found) <= 1:
            return found[0] if found else None
        prompt = Text(f"“{said}”替换哪一个？", f"What does “{said}” replace?")
        choices = [choice(one) for one in found]
        try:
            return self._reading.findings.choose(kind, f"instead {said}", prompt, choices)
        except NotBound:
            return None

    # --------------------------------------------------------------------------
    # what is taken away

    def take_dropped(self, clause: Clause) -> bool:
        """Take away groups, figures, windows or conditions; tell whether such are meant."""
        if not says(clause.tokens, "exclude"):
            return False
        tokens = [token for token in clause.tokens if not token.means("exclude")]
        windows = [_WINDOWS[kind] for kind in _WINDOWS if says(tokens, kind)]
        if windows:
            return self._drop_windows(windows)
        if says(tokens, "restriction"):
            return self._drop_conditions()
        if any(token.is_value or token.mark.date is not None for token in tokens):
            return False
        if says(tokens, "cmp", "null", "notnull", "like", "between", "not", "verb"):
            return False
        return self._drop_columns(tokens)

    def _drop_windows(self, functions: Sequence[str]) -> bool:
        removed = [one for one in self._draft.of("window") if one["function"] in functions]
        self._remove_windows(removed)
        return bool(removed)

    def _remove_windows_over(self, names: Iterable[str]) -> None:
        """Take away the windows that read columns which are no more."""
        gone = set(names)
        removed: list[Json] = []
        for window in self._draft.of("window"):
            sorted_by = {one["column"] for one in window["order_by"]}
            read = {window.get("column"), *window["partition_by"], *sorted_by}
            if read & gone:
                removed.append(window)
        self._remove_windows(removed)

    def _remove_windows(self, removed: Sequence[Json]) -> None:
        names = {window["as"] for window in removed}
        kept = []
        for action, parameters in self._draft.operations:
            is_removed = any(parameters is window for window in removed)
            if not is_removed and not (action == "filter" and _reads(parameters, names)):
                kept.append((action, parameters))
        self._draft.operations = kept

    def _drop_conditions(self) -> bool:
        kept = [one for one in self._draft.operations if one[0] != "filter"]
        is_changed = len(kept) < len(self._draft.operations)
        self._draft.operations = kept
        return is_changed

    def _drop_columns(self, tokens: Sequence[Token]) -> bool:
        """Take away the keys and figures that words name, if they name nothing else."""
        gone: list[Json] = []
        for place, token in enumerate(tokens):
            before = tokens[place - 1] if place else None
            found = self._column_of_result(token, before)
            if found is not None:
                gone.append(found)
            elif token.names or token.mark.is_unknown:
                return False
        aggregate = self._draft.aggregate
        if not gone or aggregate is None:
            return False
        for part in ("group_by", "measures"):
            aggregate[part] = [one for one in aggregate[part] if one not in gone]
        self._remove_windows_over(str(one["as"]) for one in gone)
        if not aggregate["group_by"] and not aggregate["measures"]:
            self._reading.findings.refuse("unsupported", _NOTHING_LEFT)
        return True

    def _column_of_result(self, token: Token, before: Token | None) -> Json | None:
        """Return the key or figure that a word names."""
        if token.means("count") and before is not None and before.table is not None:
            return None  # the table's word has named it
        if token.means("bucket"):
            return self._draft.period
        if not token.names:
            return None
        if token.table is not None:
            counted = f"{self._names.name_of(self._names.of(token.table))}_count"
            return next((one for one in self._draft.measures if one["as"] == counted), None)
        reference = self._reference(token)
        for one in (*self._draft.keys, *self._draft.measures):
            if one.get("column") == reference:
                return one
        return None


def _is_same_figure(one: Json, other: Json) -> bool:
    names = ("function", "column", "expression")
    return all(one.get(name) == other.get(name) for name in names)


def _reads(parameters: Json, names: set[str]) -> bool:
    """Tell whether conditions compare one of these columns."""
    return bool(names & set(_columns_in(parameters)))


def _columns_in(value: Any) -> list[str]:
    """Return the columns that parameters name."""
    found: list[str] = []
    if isinstance(value, list):
        for inner in value:
            found += _columns_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            is_column = key == "column" and isinstance(inner, str)
            found += [inner] if is_column else _columns_in(inner)
    return found


def _replace_text(draft: RequestDraft, old: str, new: str) -> None:
    """Write another column wherever one is named, but in joins."""
    for action, parameters in draft.operations:
        if action != "join":
            _replace_in(parameters, old, new)


def _replace_in(value: Any, old: str, new: str) -> None:
    places: list[Any] = []
    if isinstance(value, list):
        places = list(range(len(value)))
    elif isinstance(value, dict):
        places = list(value)
    for place in places:
        if value[place] == old:
            value[place] = new
        else:
            _replace_in(value[place], old, new)


def _sides_of(tokens: Sequence[Token]) -> _Sides:
    """Return what comes and what goes: "use X instead of Y", 把 Y 换成 X, "replace Y with X"."""
    for place, token in enumerate(tokens):
        before, behind = tokens[:place], tokens[place + 1 :]
        if token.means("instead_of"):
            return _Sides(before, behind)
        if token.means("replacing"):
            return _replaced(behind)
        if token.means("instead") and any(one.names or one.kind for one in behind):
            return _Sides(behind, before)
    return _Sides(tokens, ())


def _replaced(behind: Sequence[Token]) -> _Sides:
    for place, token in enumerate(behind):
        if token.means("with", "to", "by", "instead"):
            return _Sides(behind[place + 1 :], behind[:place])
    return _Sides(behind, ())
