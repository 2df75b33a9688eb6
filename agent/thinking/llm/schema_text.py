"""Writes the part of a prompt that describes the connected database, within a budget of tokens.

A catalogue that fits is shown whole, in the same text for every question, so that the endpoint can cache it. Of a
larger one the best matching tables are shown, with those by which they are joined (a model can't join along a table it
has not seen) and with the columns that matter, until the budget is used; the others are only named. Comments are always
shown, because in many databases only they say what a column means; so is what the semantic file says (`meaning_text`).
The stored values that a question names are a separate text.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, zip_longest
from types import MappingProxyType

from agent.thinking.llm.meaning_text import column_remark, metric_line, table_lines, table_remark, values_called
from agent.thinking.llm.schema_part import Described, Shown, packed
from common.inquiry import StoredValue
from common.llm.tokens import PER_TOKEN, weight
from common.meanings import Metric, TableKey
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.index import Part
from knowledge.named_values import NamedValues
from knowledge.personal_data import Privacy, is_private_value, privacy_of
from knowledge.question_terms import Form, forms
from knowledge.relevance import NO_HINTS, Hints, TableIndex
from knowledge.safe_text import identifier, one_line
from knowledge.schema_search import RANKING
from knowledge.telling_columns import telling
from knowledge.value_matching import may_be_told
from rules.words.vocabulary import common_phrases

SCHEMA_BUDGET = 24_000  # tokens of the schema in a prompt that asks for SQL, unless the settings say otherwise
OVERVIEW_BUDGET = 2_000  # tokens of the list of tables in the other prompts
_NAMES_SHARE = 0.1  # of the budget, for the names of tables that are not shown
_NAMED, _MORE = "-- Tables that are not shown here: ", " and {} more"
_COUNTED = "-- {} more tables are not shown"
_MAX_COMMENT = 160
MAX_VALUES = 12
"""Stored values shown of one column; of a column with more, none are."""
_MAX_ALLOWED = 40  # values shown of an enum or a CHECK
_MAX_VALUE_CHARS = 40
_MAX_NAMED_CHARS = 200  # of a value that the question names
_NUMBER_TYPE = re.compile(r"smallint|integer|bigint|numeric|real|double precision")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_CANDIDATES = 400  # least number of tables of a large catalogue that are tried
_LEAST_TABLE = 30  # tokens; a budget holds no more tables than these allow

NAMED_VALUES = Part(lambda index: NamedValues(index.catalog, common_phrases()), ignores_row_counts=True)


class SchemaText:
    """Describes one catalogue in prompts.

    Args:
        samples: whether stored values may be in them.
    """

    def __init__(self, catalog: Catalog, *, samples: bool = True) -> None:
        self.catalog = catalog
        self._samples = samples
        self._described: dict[tuple[str, str], Described] = {}
        self._whole: str | None = None
        self._whole_weight = 0
        self._too_little = 0  # the largest budget known to be too small for everything

    def prepare(self, budget: int = SCHEMA_BUDGET) -> None:
        """Makes what all questions share, which takes a while for a large catalogue."""
        self._all_of_it(budget)
        _ = self._ranking, self._values

    @cached_property
    def _ranking(self) -> TableIndex:
        return RANKING.of(self.catalog)

    @cached_property
    def _values(self) -> NamedValues:
        return NAMED_VALUES.of(self.catalog)

    @property
    def table_names(self) -> frozenset[str]:
        """Lower-case names of all tables, unqualified."""
        return frozenset(table.name.lower() for table in self.catalog.tables)

    def overview(self, question: str, budget: int = OVERVIEW_BUDGET) -> str:
        """One line per table within `budget` tokens, the relevant ones first when there is no room for all."""

        def line(table: Table) -> str:
            return f"{self._name(table)}{_comment(table.comment)}{table_remark(table)}"

        lines = list(within(budget, map(line, self.catalog.tables)))
        if len(lines) == len(self.catalog.tables):
            return "\n".join(lines)
        candidates = self._by_relevance(question, NO_HINTS, budget)
        shown = list(within(budget - _for_names(budget) // PER_TOKEN - 1, map(line, candidates)))
        return self._with_names(shown, candidates[len(shown) :], budget)

    def details(self, question: str, hints: Hints = NO_HINTS, budget: int = SCHEMA_BUDGET) -> str:
        """The tables with their columns within `budget` tokens; `hints` are for when not all fit.

        The same text for every question when all tables fit. Otherwise as many tables as fit, with the columns that
        matter, and how many columns of each and how many tables are left out.
        """
        whole = self._all_of_it(budget)
        if whole is not None:
            return whole
        asked, held = forms(question), self._held(question, hints)
        candidates = self._by_relevance(question, hints, budget)
        room = budget * PER_TOKEN - _for_names(budget)
        tried = packed((self._shown(table, asked, held) for table in candidates), room)
        left_out = [table for table, shown in zip_longest(candidates, tried) if shown is None]
        return self._with_names([shown.text for shown in tried if shown], left_out, budget)

    def some(self, tables: Iterable[Table], words: str, budget: int) -> tuple[str, list[Table]]:
        """These tables within `budget` tokens, with the columns that matter for `words`; and those that don't fit."""
        asked, held = forms(words), self._held(words, NO_HINTS)
        candidates = list(tables)
        tried = packed((self._shown(table, asked, held) for table in candidates), budget * PER_TOKEN)
        left_out = [table for table, shown in zip_longest(candidates, tried) if shown is None]
        return "\n".join(shown.text for shown in tried if shown), left_out

    def name(self, table: Table) -> str:
        """What the table is called in SQL."""
        return self._name(table)

    def described(self, table: Table) -> Described:
        """The lines of one table, whole."""
        return self._text_of(table)

    def fits(self, budget: int) -> bool:
        """Whether all tables are shown within `budget` tokens."""
        return self._all_of_it(budget) is not None

    def named_values(self, question: str, looked_up: Sequence[StoredValue] = ()) -> str:
        """The stored values that `question` names, a line for each column that holds some; no others.

        Args:
            looked_up: what was found in columns of which not all values are known.
        """
        if not self._samples:
            return ""
        values: dict[str, list[str]] = {}
        for named in self._values.find(question):
            is_listed = bool(named.column.allowed) or _is_short(named.column)
            if not (is_listed and named.privacy is Privacy.OPEN):
                values.setdefault(self._place(named.table, named.column), []).extend(named.values)
        for one in looked_up:
            table = self.catalog.by_key.get(one.table)
            column = table.column(one.column) if table is not None else None
            if table is not None and column is not None and may_be_told(one, table, column):
                values.setdefault(self._place(table, column), []).append(one.value)
        shown = {place: list(dict.fromkeys(filter(_may_be_named, named))) for place, named in values.items()}
        return "\n".join(f"{place} {_equals(named)}" for place, named in shown.items() if named)

    def _place(self, table: Table, column: Column) -> str:
        return f"{self._name(table)}.{identifier(column.name)}"

    def find(self, name: str) -> Table | None:
        """The table of that name, qualified or not, in any case."""
        wanted = name.replace('"', "").lower()
        tables = self.catalog.tables
        return next((t for t in tables if wanted in (t.name.lower(), f"{t.schema}.{t.name}".lower())), None)

    def _all_of_it(self, budget: int) -> str | None:
        """The whole catalogue; None when it takes more than `budget` tokens."""
        if self._whole is None and budget > self._too_little:
            texts = list(within(budget, (self._text_of(table).text for table in self.catalog.tables)))
            if len(texts) < len(self.catalog.tables):
                self._too_little = budget
            else:
                self._whole = "\n".join(texts)
                self._whole_weight = weight(self._whole)
        return self._whole if self._whole_weight <= budget * PER_TOKEN else None

    def _held(self, question: str, hints: Hints) -> Mapping[TableKey, Collection[str]]:
        """Columns with a value that the question names, by their tables."""
        held: defaultdict[TableKey, set[str]] = defaultdict(set)
        for named in self._values.find(question):
            held[named.table.key].add(named.column.name)
        for key, column in hints.held:
            held[key].add(column)
        return held

    def _with_names(self, shown: Sequence[str], left_out: Sequence[Table], budget: int) -> str:
        """The texts, and a line that names the tables left out, the most relevant first, and says how many they are."""
        count = len(self.catalog.tables) - len(shown)
        used = sum(weight(text) + PER_TOKEN for text in shown)
        room = min(_for_names(budget), budget * PER_TOKEN - used)
        more = _not_shown(map(self._name, left_out), count, room) if count else ""
        return "\n".join([*shown, *([more] if more else [])])

    def _by_relevance(self, question: str, hints: Hints, budget: int) -> list[Table]:
        """The tables to try for a budget, the most relevant first."""
        most = max(_CANDIDATES, budget // _LEAST_TABLE)
        ranked = self._ranking.ranked(question, most, hints.also_holding(self._values.tables(question)))
        keys = dict.fromkeys(table.key for table in (*ranked, *islice(self.catalog.tables, most)))
        return [self.catalog.by_key[key] for key in keys]  # the ranking's own may have earlier estimates of the rows

    def _name(self, table: Table) -> str:
        name = identifier(table.name)
        return name if table.schema in self.catalog.search_path else f"{identifier(table.schema)}.{name}"

    def _shown(self, table: Table, asked: Mapping[str, Form], held: Mapping[TableKey, Collection[str]]) -> Shown:
        """The table with its columns by what they have to do with the question."""
        columns = telling(table, self._ranking.joining(table.key), asked, held.get(table.key, ()))
        return Shown(self._text_of(table), columns)

    def _text_of(self, table: Table) -> Described:
        described = self._described.get(table.key)
        if described is None:
            head = f"{table.kind.upper()} {self._name(table)}{_rows(table)}{_comment(table.comment)}"
            head = "\n".join((head, *table_lines(table, self._shown_name)))
            columns = tuple(self._line(table, column) for column in table.columns)
            below = (*self._keys(table), *map(metric_line, self._metrics.get(table.key, ())))
            described = self._described[table.key] = Described(head, columns, below)
        return described

    @cached_property
    def _metrics(self) -> Mapping[tuple[str, str], Sequence[Metric]]:
        metrics: dict[tuple[str, str], list[Metric]] = {}
        for metric in self.catalog.metrics:
            metrics.setdefault(metric.table, []).append(metric)
        return metrics

    def _shown_name(self, key: tuple[str, str]) -> str | None:
        table = self.catalog.by_key.get(key)
        return self._name(table) if table else None

    def _line(self, table: Table, column: Column) -> str:
        facts = [identifier(column.name), column.type, *self._constraints(table, column)]
        remarks = f"{_comment(column.comment)}{column_remark(column)}"
        return f"  {' '.join(facts)}{remarks}{self._content(table, column)}"

    def _constraints(self, table: Table, column: Column) -> Iterator[str]:
        alone = (column.name,)
        if alone == table.primary_key:
            yield "PRIMARY KEY"
        else:
            yield from ["UNIQUE"] * (alone in table.unique_keys)
            yield from ["NOT NULL"] * (not column.nullable)
        for key in table.foreign_keys:
            reference = self._reference(key) if key.columns == alone else None
            if reference:
                yield f"REFERENCES {reference}"
                return

    def _keys(self, table: Table) -> Iterator[str]:
        """The keys of more than one column."""
        names = {column.name for column in table.columns}
        kinds = [("PRIMARY KEY", table.primary_key), *(("UNIQUE", key) for key in table.unique_keys)]
        for kind, columns in kinds:
            if len(columns) > 1 and names.issuperset(columns):
                yield f"  {kind} {_listed(columns)}"
        for key in table.foreign_keys:
            reference = self._reference(key) if len(key.columns) > 1 and names.issuperset(key.columns) else None
            if reference:
                yield f"  FOREIGN KEY {_listed(key.columns)} REFERENCES {reference}"

    def _reference(self, key: ForeignKey) -> str | None:
        """What the key refers to; None when the catalogue does not show it."""
        target = self.catalog.by_key.get(key.target)
        if target is None or not {column.name for column in target.columns}.issuperset(key.target_columns):
            return None
        return f"{self._name(target)}{_listed(key.target_columns)}"

    def _content(self, table: Table, column: Column) -> str:
        """What is known of the column's values: the allowed ones, else its first and last day, or stored ones.

        Values that the semantic file names are shown with these names, and whether or not any are known.
        """
        if column.meaning is not None and column.meaning.is_sensitive:
            return ""
        called = values_called(column.meaning)
        if column.allowed:
            plain = _NUMBER_TYPE.match(column.type) and all(map(_NUMBER.fullmatch, column.allowed))
            shown = [value for value in column.allowed if _is_showable(value)][:_MAX_ALLOWED]
            listed = _literals(shown, called, plain=bool(plain))
            return f" [one of: {listed}{_more(len(shown) < len(column.allowed))}]" if shown else ""
        named = [value for value in called if _is_showable(value)]
        stored = self._stored(table, column)
        if column.period and stored is not None:
            return f" [from {column.period[0]} to {column.period[1]}]"
        shown = list(dict.fromkeys((*named[:_MAX_ALLOWED], *(stored or ()))))
        plain = bool(_NUMBER_TYPE.match(column.type)) and all(map(_NUMBER.fullmatch, shown))
        is_cut = stored is None or len(stored) < len(column.values)
        return f" [values: {_literals(shown, called, plain=plain)}{_more(is_cut)}]" if shown else ""

    def _stored(self, table: Table, column: Column) -> Sequence[str] | None:
        """The few stored values that may be shown; None when none may."""
        if not self._samples or not (column.period or _is_short(column)):
            return None
        if privacy_of(table, column) is not Privacy.OPEN:
            return None
        return [value for value in column.values if _is_showable(value) and not is_private_value(value)]


def within(budget: int, texts: Iterable[str]) -> Iterator[str]:
    """The first of `texts`, as many as fit into `budget` tokens."""
    room = budget * PER_TOKEN
    for text in texts:
        room -= weight(text) + 1
        if room < 0:
            return
        yield text


def _for_names(budget: int) -> int:
    """Quarters of a token for naming tables that are not shown; enough for their number at least."""
    return max(int(budget * PER_TOKEN * _NAMES_SHARE), weight(_COUNTED.format(10**6)))


def _not_shown(names: Iterable[str], count: int, room: int) -> str:
    """A line of at most `room` quarters of a token that names tables and says how many they are; without room none."""
    counted, left = _COUNTED.format(count), room - weight(_NAMED + _MORE.format(count))
    named: list[str] = []
    for name in names:
        left -= weight(name) + 2
        if left < 0:
            break
        named.append(name)
    if named:
        return _NAMED + ", ".join(named) + (_MORE.format(count - len(named)) if count > len(named) else "")
    return counted if weight(counted) <= room else ""


def _comment(comment: str | None) -> str:
    return f"  -- {one_line(comment, _MAX_COMMENT)}" if comment else ""


def _rows(table: Table) -> str:
    """The estimated number of rows, to two digits, so that the text stays the same while a table grows a little."""
    if table.row_estimate <= 0:
        return ""
    unit = 10 ** max(0, len(str(table.row_estimate)) - 2)
    return f"  (about {round(table.row_estimate / unit) * unit} rows)"


def _is_short(column: Column) -> bool:
    """Whether all of its values are known and few, so that they are always shown."""
    return column.is_complete and len(column.values) <= MAX_VALUES


def _is_showable(value: str, most: int = _MAX_VALUE_CHARS) -> bool:
    """Whether the prompt can show it exactly as it is stored; a shortened value would match nothing."""
    return one_line(value, most) == value


def _equals(values: Sequence[str]) -> str:
    return f"= {_literals(values)}" if len(values) == 1 else f"IN ({_literals(values)})"


def _may_be_named(value: str) -> bool:
    return _is_showable(value, _MAX_NAMED_CHARS)


def _literals(values: Iterable[str], called: Mapping[str, str] = MappingProxyType({}), *, plain: bool = False) -> str:
    """The values as SQL takes them, each with what it is called."""
    written = ((value, value if plain else "'" + value.replace("'", "''") + "'") for value in values)
    return ", ".join(f"{literal}{called.get(value, '')}" for value, literal in written)


def _more(is_more: bool) -> str:
    return ", …" if is_more else ""


def _listed(columns: Iterable[str]) -> str:
    return f"({', '.join(map(identifier, columns))})"
