"""Reads clauses of a follow-up that replace or take away parts of the request before."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from common.text import Text
from etl.binding.request_findings import NotBound, choice, choices_of
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_figures import FIGURE_FUNCTIONS
from etl.clauses.clause_names import NamedColumn, is_date
from etl.clauses.clause_reading import ClauseReader
from etl.clauses.clause_tokens import Token, naming_words, place_of, says, words_without
from etl.clauses.request_draft import Json, containers_in, free_name, replace_texts
from etl.schemas.requirement import AmbiguityKind

_ADD, _REPLACE = "add", "replace"
_PLACES = {
    _ADD: Text("在原有基础上增加", "beside what there is"),
    _REPLACE: Text("替换原有的", "instead of what there is"),
}
# The parts by which groups and figures differ from others; their names do not count.
_TELLING = ("column", "unit", "function", "expression")
_TYING = ("instead", "instead_of", "replacing", "each", "by", "and")
_LOOKING_UP = ("semi", "anti")
# The functions of windows by the kinds of the words that say them.
_WINDOWS = {"running": "sum", "previous": "lag", "top": "rank"}
_NOTHING_LEFT = Text(
    "去掉之后就没有任何指标和分组了，请说明要计算什么。",
    "Nothing to group by or to compute would be left: say what is wanted.",
)


@dataclass(frozen=True)
class _Sides:
    """The words of a replacement: of the new, and of the old if that is said."""

    new: Sequence[Token]
    old: Sequence[Token]


class EditClauses(ClauseReader):
    """Changes the operations of an earlier request, which the draft of the follow-up has."""

    # --------------------------------------------------------------------------
    # what is added

    def take_figures(self, clause: Clause, *, is_added: bool) -> None:
        """Add groups and figures, or replace those before: the user is asked unless it is said."""
        figures = self._reading.figures(clause.tokens)
        if self._draft.aggregate is None:
            self._reading.add_figures(figures)
            return

        if not figures.keys and not figures.measures:
            self._reading.refuse_clause(clause.tokens)
            return

        keys = _unknown_among(figures.keys, self._draft.keys)
        measures = _unknown_among(figures.measures, self._draft.measures)
        if keys:
            self._place_keys(keys, is_added=is_added)
        if measures:
            self._place(self._draft.measures, measures, "measure", is_added=is_added)

    def _place_keys(self, keys: list[Json], *, is_added: bool) -> None:
        """Add groups; windows that go along the periods then go along those of each group."""
        self._place(self._draft.keys, keys, "grain", is_added=is_added)
        period = self._draft.period
        if period is None:
            return

        names: list[str] = []
        for key in keys:
            if key.get("unit") is None:
                names.append(str(key["as"]))

        for window in self._draft.of("window"):
            if _sorting_columns(window)[:1] == [period["as"]]:
                window["partition_by"] = [*window["partition_by"], *names]

    def _place(
        self, earlier: list[Json], entries: list[Json], kind: AmbiguityKind, *, is_added: bool
    ) -> None:
        """Add to the keys or figures that there are, or replace them, as it is said or chosen."""
        chosen: str | None = _ADD
        if earlier and not is_added:
            chosen = self._asked_place(kind, entries)
        if chosen is None:
            return
        if chosen == _REPLACE:
            self._take_away(earlier)
            earlier.clear()

        for entry in entries:
            entry["as"] = self._free_name(entry)
            earlier.append(entry)
            self._draft.show(entry["as"])

    def _take_away(self, gone: Sequence[Json]) -> None:
        """Let the target and windows do without keys or figures that are no more."""
        names = [str(entry["as"]) for entry in gone]
        self._draft.hide(names)
        self._remove_windows_over(names)

    def _asked_place(self, kind: AmbiguityKind, entries: Sequence[Json]) -> str | None:
        listed = ", ".join(str(entry["as"]) for entry in entries)
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

    def _free_name(self, entry: Json) -> str:
        """Return a name that no other column of the result has."""
        taken = self._result_names()
        name = str(entry["as"])
        table, _, column = str(entry.get("column", "")).partition(".")
        if column and name in taken:
            name = f"{table}_{column}"

        return free_name(name, taken)

    # --------------------------------------------------------------------------
    # what is replaced

    def take_instead(self, clause: Clause) -> None:
        """Replace a date, a period, a figure, its function or a group."""
        sides = _sides_of(clause.tokens)
        is_changed = False
        for place, token in enumerate(sides.new):
            is_followed = bool(naming_words(sides.new[place + 1 : place + 2]))
            if _is_period(token):
                is_changed |= self._replace_unit(token)
            elif token.means(*FIGURE_FUNCTIONS) and not is_followed:
                is_changed |= self._replace_function(token, sides.old)
            elif token.names and not token.is_value:
                is_changed |= self._replace_column(token, sides.old)
            elif not token.means(*_TYING):
                self._reading.refuse_unread([token])

        if not is_changed:
            self._reading.refuse_clause(clause.tokens)

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
        replaced = {token.kind for token in old}.intersection(FIGURE_FUNCTIONS)
        measures = self._computed()
        if replaced:
            measures = _with_any(measures, "function", replaced)

        measure = self._one_of("measure", measures, token.text)
        if measure is None:
            return bool(measures)

        self._rename(measure, {**measure, "function": token.kind})
        return True

    def _computed(self) -> list[Json]:
        """Return the figures that are more than a number of rows."""
        computed: list[Json] = []
        for measure in self._draft.measures:
            if measure["function"] != "count":
                computed.append(measure)

        return computed

    def _replace_column(self, token: Token, old: Sequence[Token]) -> bool:
        named = self._names.column(token, self._reading.order)
        if named is None:
            return token.text in self._names.asked

        self._names.add_source(named.table.key)
        if is_date(named.table, named.column):
            return self._replace_date(named, old, token.text)

        is_measure = self._names.is_measure(named.table, named.column)
        if is_measure and not self._are_keys(old):
            return self._replace_figure(named, old, token.text)

        return self._replace_key(named, old, token.text)

    def _are_keys(self, old: Sequence[Token]) -> bool:
        """Tell whether words name groups."""
        references = self._references(old)
        return bool(_with_any(self._draft.keys, "column", references))

    def _reference(self, token: Token) -> str | None:
        named = self._names.column(token, self._reading.order)
        if named is None:
            return None

        return self._names.reference(named.table, named.column.name)

    def _replace_date(self, named: NamedColumn, old: Sequence[Token], phrase: str) -> bool:
        """Use another date wherever the request uses one: for its periods and its conditions."""
        new = self._names.reference(named.table, named.column.name)
        period = self._draft.period
        if period is not None and period.get("column") is None:
            period["column"] = new
            return True

        used = self._dates_in_use()
        if new in used:
            used.remove(new)

        references = self._references(old)
        replaced = [column for column in used if column in references]
        chosen = self._one_reference("column", replaced or used, phrase)
        if chosen is not None:
            self._write_over(chosen, new)

        return bool(used)

    def _write_over(self, old: str, new: str) -> None:
        """Write another column wherever one is named, but in joins."""
        for action, parameters in self._draft.operations:
            if action != "join":
                replace_texts(parameters, {old: new})

    def _dates_in_use(self) -> list[str]:
        """Return the dates that are grouped by, compared or sorted by, each once."""
        dates: dict[str, None] = {}
        for action, parameters in self._draft.operations:
            if action not in ("filter", "aggregate", "dedup"):
                continue

            for column in _columns_in(parameters):
                if self._is_date(column):
                    dates[column] = None

        return list(dates)

    def _is_date(self, reference: str) -> bool:
        name, _, called = reference.partition(".")
        table = self._names.table_named(name)
        if table is None:
            return False

        column = table.column(called)
        return column is not None and is_date(table, column)

    def _replace_figure(self, named: NamedColumn, old: Sequence[Token], phrase: str) -> bool:
        measures = self._computed()
        measure = self._one_of("measure", self._among(measures, old), phrase)
        if measure is not None:
            changed = dict(measure)
            changed.pop("expression", None)
            changed["column"] = self._names.reference(named.table, named.column.name)
            self._rename(measure, changed)

        return bool(measures)

    def _replace_key(self, named: NamedColumn, old: Sequence[Token], phrase: str) -> bool:
        keys = self._draft.plain_keys
        key = self._one_of("column", self._among(keys, old), phrase)
        if key is None:
            return bool(keys)

        before = str(key["as"])
        column = self._names.reference(named.table, named.column.name)
        self._draft.keys.remove(key)
        earlier = _first_with(self._draft.keys, "column", column)
        if earlier is not None:  # the result is grouped by it already
            self._draft.rename_result({before: earlier["as"]})
            return True

        changed = {**key, "column": column, "as": named.column.name}
        changed["as"] = self._free_name(changed)
        self._draft.keys.append(changed)
        self._draft.rename_result({before: changed["as"]})
        return True

    def _among(self, entries: Sequence[Json], old: Sequence[Token]) -> list[Json]:
        """Return the keys or figures that the words name; all of them where no word names one."""
        references = self._references(old)
        return _with_any(entries, "column", references) or list(entries)

    def _references(self, tokens: Sequence[Token]) -> list[str | None]:
        """Return the columns that words name, as the intent writes them."""
        return [self._reference(token) for token in naming_words(tokens)]

    def _result_names(self) -> set[str]:
        """Return the names that the columns of the result have."""
        return {column["as"] for column in self._draft.columns}

    def _rename(self, measure: Json, changed: Json) -> None:
        """Change a figure and call it after what it computes now."""
        before = str(measure["as"])
        measure.clear()
        measure.update(changed)
        column = str(changed.get("column", "")).rpartition(".")[2]
        if column:
            measure["as"] = f"{column}_{changed['function']}"
            self._draft.rename_result({before: measure["as"]})

    def _one_of(self, kind: AmbiguityKind, entries: Sequence[Json], phrase: str) -> Json | None:
        """Return the one that is replaced; None where there is none or the user is asked."""
        by_name = {str(entry["as"]): entry for entry in entries}
        chosen = self._one_reference(kind, list(by_name), phrase)
        return by_name.get(chosen or "")

    def _one_reference(
        self, kind: AmbiguityKind, references: Sequence[str], phrase: str
    ) -> str | None:
        if not references:
            return None
        if len(references) == 1:
            return references[0]

        prompt = Text(f"“{phrase}”替换哪一个？", f"What does “{phrase}” replace?")
        choices = choices_of(references)
        try:
            return self._reading.findings.choose(kind, f"instead {phrase}", prompt, choices)
        except NotBound:
            return None

    # --------------------------------------------------------------------------
    # what is taken away

    def take_dropped(self, clause: Clause) -> bool:
        """Take away groups, figures, windows or conditions; tell whether such are meant."""
        if not says(clause.tokens, "exclude"):
            return False

        tokens = words_without(clause.tokens, "exclude")
        functions: list[str] = []
        for kind, function in _WINDOWS.items():
            if says(tokens, kind):
                functions.append(function)

        if functions:
            return self._drop_windows(functions)
        if says(tokens, "restriction"):
            return self._drop_conditions()
        if _compares(tokens):
            return False

        return self._drop_columns(tokens)

    def _drop_windows(self, functions: Sequence[str]) -> bool:
        removed = _with_any(self._draft.of("window"), "function", functions)
        self._remove_windows(removed)
        return bool(removed)

    def _remove_windows_over(self, names: Iterable[str]) -> None:
        """Take away the windows that read columns which are no more."""
        gone = set(names)
        removed: list[Json] = []
        for window in self._draft.of("window"):
            read = {
                window.get("column"),
                *window["partition_by"],
                *_sorting_columns(window),
            }
            if read & gone:
                removed.append(window)

        self._remove_windows(removed)

    def _remove_windows(self, removed: Sequence[Json]) -> None:
        """Take away windows, and the conditions on what they compute."""
        names = {window["as"] for window in removed}
        gone = _with_any(self._draft.of("window"), "as", names)
        for parameters in self._draft.of("filter"):
            if _reads(parameters, names):
                gone.append(parameters)

        self._draft.remove(gone)

    def _drop_conditions(self) -> bool:
        """Take away the conditions on rows, and the lookups; limits of ranks stay."""
        ranks = {window["as"] for window in self._draft.of("window")}
        gone = _with_any(self._draft.of("join"), "how", _LOOKING_UP)
        for parameters in self._draft.of("filter"):
            if not _reads(parameters, ranks):
                gone.append(parameters)

        self._draft.remove(gone)
        return bool(gone)

    def _drop_columns(self, tokens: Sequence[Token]) -> bool:
        """Take away the keys and figures that words name, if they name nothing else."""
        gone: list[Json] = []
        for token in tokens:
            column = self._column_of_result(token)
            if column is not None:
                gone.append(column)
            elif token.names or token.mark.is_unknown:
                return False

        self._remove(gone)
        return bool(gone)

    def _remove(self, gone: Sequence[Json]) -> None:
        for entries in (self._draft.keys, self._draft.measures):
            kept = [entry for entry in entries if entry not in gone]
            entries[:] = kept

        self._take_away(gone)
        if gone and not self._result_names():
            self._reading.findings.refuse("unsupported", _NOTHING_LEFT)

    def _column_of_result(self, token: Token) -> Json | None:
        """Return the key or figure that a word names, by its own name or by its column."""
        columns = self._draft.columns
        called = _first_with(columns, "as", token.text)
        if called is not None:
            return called
        if token.means("bucket"):
            return self._draft.period
        if not token.names:
            return None

        reference = self._reference(token)
        if token.table is not None:
            counted = self._names.name_of(self._names.table_by_key(token.table))
            return _first_with(columns, "as", f"{counted}_count")

        return _first_with(columns, "column", reference)


def _first_with(entries: Iterable[Json], part: str, value: str | None) -> Json | None:
    """Return the first key or figure with this part; None where there is none."""
    for entry in entries:
        if entry.get(part) == value:
            return entry

    return None


def _with_any(entries: Iterable[Json], part: str, values: Collection[str | None]) -> list[Json]:
    """Return the operations, keys or figures of which this part is one of the values."""
    kept: list[Json] = []
    for entry in entries:
        if entry.get(part) in values:
            kept.append(entry)

    return kept


def _unknown_among(entries: Iterable[Json], earlier: Collection[Json]) -> list[Json]:
    """Return the groups or figures that are not known yet, whatever they are called."""
    known_parts = list(map(_telling_parts, earlier))
    unknown: list[Json] = []
    for entry in entries:
        if _telling_parts(entry) not in known_parts:
            unknown.append(entry)

    return unknown


def _telling_parts(entry: Json) -> Json:
    """Return the parts by which a group or figure differs from others."""
    return {part: entry[part] for part in _TELLING if part in entry}


def _sorting_columns(window: Json) -> list[str]:
    return [sorting["column"] for sorting in window["order_by"]]


def _is_period(token: Token) -> bool:
    if token.means("date_part"):
        return not token.names

    return token.means("bucket")


def _compares(tokens: Sequence[Token]) -> bool:
    """Tell whether words say which rows go, rather than which column."""
    if says(tokens, "cmp", "null", "notnull", "like", "between", "not", "verb"):
        return True

    return any(token.is_value_or_date for token in tokens)


def _reads(parameters: Json, names: set[str]) -> bool:
    """Tell whether conditions compare one of these columns."""
    return not names.isdisjoint(_columns_in(parameters))


def _columns_in(parameters: Json) -> list[str]:
    """Return the columns that parameters name."""
    columns: list[str] = []
    for container in containers_in(parameters):
        column = container.get("column") if isinstance(container, dict) else None
        if isinstance(column, str):
            columns.append(column)

    return columns


def _sides_of(tokens: Sequence[Token]) -> _Sides:
    """Return the words of the new X and the old Y: "use X instead of Y", 把 Y 换成 X."""
    for place, token in enumerate(tokens):
        before, behind = tokens[:place], tokens[place + 1 :]
        if token.means("instead_of"):
            return _Sides(before, behind)
        if token.means("replacing"):
            return _sides_of_replacement(behind)

        is_said_behind = any(token.names or token.kind for token in behind)
        if token.means("instead") and is_said_behind:
            return _Sides(behind, before)

    return _Sides(tokens, ())


def _sides_of_replacement(behind: Sequence[Token]) -> _Sides:
    place = place_of(behind, "with", "to", "by", "instead")
    if place is None:
        return _Sides(behind, ())

    return _Sides(behind[place + 1 :], behind[:place])
