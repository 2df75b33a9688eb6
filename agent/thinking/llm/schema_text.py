"""Writes the part of a prompt that describes the connected database, within a budget of tokens.

A catalogue that fits is shown whole, in the same text for every question, so that the endpoint can
cache it. Of a larger one the best matching tables are shown, with those by which they are joined (a
model can't join along a table it has not seen) and with the columns that matter, until the budget
is used; the others are only named. Comments are always shown, because in many databases only they
say what a column means; so is what the semantic file says (`meaning_text`). The stored values that
a question names are a separate text.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType

from agent.thinking.llm.meaning_text import (
    column_remark,
    metric_line,
    table_lines,
    table_remark,
    values_called,
)
from agent.thinking.llm.schema_part import DescribedTables, ShownTable, with_fitting_columns
from common.inquiry import StoredValue
from common.meanings import Metric, TableKey
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.index import IndexPart
from knowledge.language.question_terms import Form, forms
from knowledge.language.safe_text import identifier, one_line
from knowledge.tables.informative_columns import informative_columns
from knowledge.tables.relevance import NO_HINTS, Hints, TableIndex
from knowledge.tables.schema_search import RANKING
from knowledge.values.named_values import NamedValues
from knowledge.values.personal_data import Privacy, is_private_value, privacy_of
from knowledge.values.value_matching import may_be_told
from llm.tokens import PER_TOKEN, weight
from rules.words.vocabulary import common_phrases

# Tokens of the schema in a prompt that asks for SQL, unless the settings say otherwise.
SCHEMA_BUDGET = 24_000
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

NAMED_VALUES = IndexPart(
    lambda index: NamedValues(index.catalog, common_phrases()), ignores_row_counts=True
)


class SchemaText:
    """Describes one catalogue in prompts.

    Args:
        samples: whether stored values may be in them.
    """

    def __init__(self, catalog: Catalog, *, samples: bool = True) -> None:
        self.catalog = catalog
        self._samples = samples
        self._described: dict[tuple[str, str], DescribedTables] = {}
        self._whole: str | None = None
        self._whole_weight = 0
        self._too_little = 0  # the largest budget known to be too small for everything

    def prepare(self, budget: int = SCHEMA_BUDGET) -> None:
        """Make what all questions share, which takes a while for a large catalogue."""
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
        """Return the lower-case names of all tables, unqualified."""
        return frozenset(table.name.lower() for table in self.catalog.tables)

    def overview(self, question: str, budget: int = OVERVIEW_BUDGET) -> str:
        """Return one line per table within `budget` tokens; the relevant ones if not all fit."""
        tables = self.catalog.tables
        lines = list(within(budget, map(self._overview_line, tables)))
        if len(lines) == len(tables):
            return "\n".join(lines)

        candidates = self._by_relevance(question, NO_HINTS, budget)
        for_lines = budget - _for_names(budget) // PER_TOKEN - 1
        shown = list(within(for_lines, map(self._overview_line, candidates)))
        return self._with_names(shown, candidates[len(shown) :], budget)

    def _overview_line(self, table: Table) -> str:
        return f"{self.name(table)}{_comment(table.comment)}{table_remark(table)}"

    def details(self, question: str, hints: Hints = NO_HINTS, budget: int = SCHEMA_BUDGET) -> str:
        """Return the tables with their columns within `budget` tokens.

        The same text for every question when all tables fit. Otherwise as many tables as fit, by
        the `hints`, with the columns that matter, and how many columns of each and how many tables
        are left out.
        """
        whole = self._all_of_it(budget)
        if whole is not None:
            return whole

        candidates = self._by_relevance(question, hints, budget)
        room = budget * PER_TOKEN - _for_names(budget)
        shown, left_out = self._packed(candidates, question, hints, room)
        return self._with_names(shown, left_out, budget)

    def some(self, tables: Iterable[Table], words: str, budget: int) -> tuple[str, list[Table]]:
        """Return these tables within `budget` tokens, and those that don't fit.

        Of each table it shows the columns that matter for `words`.
        """
        shown, left_out = self._packed(list(tables), words, NO_HINTS, budget * PER_TOKEN)
        return "\n".join(shown), left_out

    def _packed(
        self, candidates: Sequence[Table], question: str, hints: Hints, room: int
    ) -> tuple[list[str], list[Table]]:
        """Return the texts of the candidates that fit into `room`, and the tables that don't."""
        question_forms = forms(question)
        columns_holding = self._held(question, hints)
        tried = with_fitting_columns(
            (self._shown(table, question_forms, columns_holding) for table in candidates), room
        )
        texts: list[str] = []
        left_out: list[Table] = []
        for table, shown in zip_longest(candidates, tried):
            if shown is None:
                left_out.append(table)
            else:
                texts.append(shown.text)

        return texts, left_out

    def name(self, table: Table) -> str:
        """Return the table's name as SQL writes it."""
        name = identifier(table.name)
        if table.schema in self.catalog.search_path:
            return name

        return f"{identifier(table.schema)}.{name}"

    def described(self, table: Table) -> DescribedTables:
        """Return the lines of one table, whole."""
        return self._text_of(table)

    def fits(self, budget: int) -> bool:
        """Tell whether all tables are shown within `budget` tokens."""
        return self._all_of_it(budget) is not None

    def named_values(self, question: str, looked_up: Sequence[StoredValue] = ()) -> str:
        """Return the stored values that `question` names, a line for each column that holds some.

        Args:
            looked_up: what was found in columns of which not all values are known.
        """
        if not self._samples:
            return ""

        by_column: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for column, value in (*self._unlisted(question), *self._tellable(looked_up)):
            values = by_column[column]
            if _is_showable(value, _MAX_NAMED_CHARS):
                values[value] = None

        lines = []
        for column, values in by_column.items():
            if values:
                lines.append(f"{column} {_equals(list(values))}")

        return "\n".join(lines)

    def _unlisted(self, question: str) -> Iterator[tuple[str, str]]:
        """Yield known values that the question names, with their columns in SQL.

        Values that the columns' own lines list are left out.
        """
        for named in self._values.find(question):
            is_short = bool(named.column.allowed) or _is_short(named.column)
            if is_short and named.privacy is Privacy.OPEN:
                continue

            column = self._column_name(named.table, named.column)
            for value in named.values:
                yield column, value

    def _tellable(self, looked_up: Sequence[StoredValue]) -> Iterator[tuple[str, str]]:
        """Yield the values that the prompt may tell, with their columns in SQL."""
        for stored_value in looked_up:
            table = self.catalog.by_key.get(stored_value.table)
            column = table.column(stored_value.column) if table is not None else None
            if table is None or column is None:
                continue
            if may_be_told(stored_value, table, column):
                yield self._column_name(table, column), stored_value.value

    def _column_name(self, table: Table, column: Column) -> str:
        return f"{self.name(table)}.{identifier(column.name)}"

    def find(self, name: str) -> Table | None:
        """Return the table of that name, qualified or not, in any case."""
        folded_name = name.replace('"', "").lower()
        for table in self.catalog.tables:
            if folded_name in (table.name.lower(), f"{table.schema}.{table.name}".lower()):
                return table

        return None

    def _all_of_it(self, budget: int) -> str | None:
        """Return the whole catalogue; None when it takes more than `budget` tokens."""
        if self._whole is None and budget > self._too_little:
            tables = self.catalog.tables
            texts = list(within(budget, (self._text_of(table).text for table in tables)))
            if len(texts) < len(tables):
                self._too_little = budget
            else:
                self._whole = "\n".join(texts)
                self._whole_weight = weight(self._whole)

        if self._whole_weight <= budget * PER_TOKEN:
            return self._whole

        return None

    def _held(self, question: str, hints: Hints) -> Mapping[TableKey, Collection[str]]:
        """Return columns with a value that the question names, by their tables."""
        columns: defaultdict[TableKey, set[str]] = defaultdict(set)
        for named in self._values.find(question):
            columns[named.table.key].add(named.column.name)

        for key, column in hints.held:
            columns[key].add(column)

        return columns

    def _with_names(self, shown: Sequence[str], left_out: Sequence[Table], budget: int) -> str:
        """Return the texts, and a line that names and counts the tables left out."""
        lines = list(shown)
        count = len(self.catalog.tables) - len(shown)
        if count:
            used = sum(weight(text) + PER_TOKEN for text in shown)
            room = min(_for_names(budget), budget * PER_TOKEN - used)
            lines.append(_not_shown(map(self.name, left_out), count, room))

        return "\n".join(filter(None, lines))

    def _by_relevance(self, question: str, hints: Hints, budget: int) -> list[Table]:
        """Return the tables to try for a budget, the most relevant first."""
        most = max(_CANDIDATES, budget // _LEAST_TABLE)
        all_hints = hints.also_holding(self._values.tables(question))
        ranked = self._ranking.ranked(question, most, all_hints)
        keys = dict.fromkeys(table.key for table in (*ranked, *self.catalog.tables[:most]))
        # The ranking's own tables may have earlier estimates of the rows.
        return [self.catalog.by_key[key] for key in keys]

    def _shown(
        self,
        table: Table,
        asked: Mapping[str, Form],
        columns_holding: Mapping[TableKey, Collection[str]],
    ) -> ShownTable:
        """Return the table; its columns are chosen by their relevance to the question."""
        columns = informative_columns(
            table, self._ranking.joining(table.key), asked, columns_holding.get(table.key, ())
        )
        return ShownTable(self._text_of(table), columns)

    def _text_of(self, table: Table) -> DescribedTables:
        described = self._described.get(table.key)
        if described is None:
            name = f"{table.kind.upper()} {self.name(table)}"
            first_line = f"{name}{_rows(table)}{_spread(table)}{_comment(table.comment)}"
            described = DescribedTables(
                head="\n".join((first_line, *table_lines(table, self._shown_name))),
                columns=tuple(self._column_line(table, column) for column in table.columns),
                keys=(*self._keys(table), *map(metric_line, self._metrics.get(table.key, ()))),
            )
            self._described[table.key] = described

        return described

    @cached_property
    def _metrics(self) -> Mapping[tuple[str, str], Sequence[Metric]]:
        metrics: dict[tuple[str, str], list[Metric]] = {}
        for metric in self.catalog.metrics:
            metrics.setdefault(metric.table, []).append(metric)

        return metrics

    def _shown_name(self, key: tuple[str, str]) -> str | None:
        table = self.catalog.by_key.get(key)
        return self.name(table) if table else None

    def _column_line(self, table: Table, column: Column) -> str:
        facts = [identifier(column.name), column.type, *self._constraints(table, column)]
        remarks = f"{_comment(column.comment)}{column_remark(column)}"
        return f"  {' '.join(facts)}{remarks}{self._content(table, column)}"

    def _constraints(self, table: Table, column: Column) -> Iterator[str]:
        alone = (column.name,)
        if alone == table.primary_key:
            yield "PRIMARY KEY"
        else:
            if alone in table.unique_keys:
                yield "UNIQUE"
            if not column.nullable:
                yield "NOT NULL"

        for key in table.foreign_keys:
            reference = self._reference(key) if key.columns == alone else None
            if reference:
                yield f"REFERENCES {reference}"
                return

    def _keys(self, table: Table) -> Iterator[str]:
        """Yield a line for each key of more than one column, if all of them are shown."""
        names = {column.name for column in table.columns}

        def is_shown(columns: Sequence[str]) -> bool:
            return len(columns) > 1 and names.issuperset(columns)

        if is_shown(table.primary_key):
            yield f"  PRIMARY KEY {_column_list(table.primary_key)}"

        for columns in filter(is_shown, table.unique_keys):
            yield f"  UNIQUE {_column_list(columns)}"

        for key in table.foreign_keys:
            reference = self._reference(key) if is_shown(key.columns) else None
            if reference:
                yield f"  FOREIGN KEY {_column_list(key.columns)} REFERENCES {reference}"

    def _reference(self, key: ForeignKey) -> str | None:
        """Return what the key refers to; None when the catalogue does not show it."""
        target = self.catalog.by_key.get(key.target)
        if target is None:
            return None

        names = {column.name for column in target.columns}
        if not names.issuperset(key.target_columns):
            return None

        return f"{self.name(target)}{_column_list(key.target_columns)}"

    def _content(self, table: Table, column: Column) -> str:
        """Return what is known of the column's values, as the end of its line.

        These are the allowed ones, else its first and last day, or stored ones. Values that the
        semantic file names are shown with these names, and whether or not any are known.
        """
        if column.meaning is not None and column.meaning.is_sensitive:
            return ""

        called = values_called(column.meaning)
        if column.allowed:
            values = list(filter(_is_showable, column.allowed))[:_MAX_ALLOWED]
            plain = _are_numbers(column, column.allowed)
            is_cut = len(values) < len(column.allowed)
            return _value_list("one of", _literals(values, called, plain=plain), is_cut)

        stored = self._stored(table, column)
        if column.period and stored is not None:
            return f" [from {column.period[0]} to {column.period[1]}]"

        named = list(filter(_is_showable, called))[:_MAX_ALLOWED]
        values = list(dict.fromkeys((*named, *(stored or ()))))
        plain = _are_numbers(column, values)
        is_cut = stored is None or len(stored) < len(column.values)
        return _value_list("values", _literals(values, called, plain=plain), is_cut)

    def _stored(self, table: Table, column: Column) -> Sequence[str] | None:
        """Return the few stored values that may be shown; None when none may."""
        has_few = column.period or _is_short(column)
        if not self._samples or not has_few:
            return None
        if privacy_of(table, column) is not Privacy.OPEN:
            return None

        showable = filter(_is_showable, column.values)
        return [value for value in showable if not is_private_value(value)]


def _are_numbers(column: Column, values: Iterable[str]) -> bool:
    if not _NUMBER_TYPE.match(column.type):
        return False

    return all(map(_NUMBER.fullmatch, values))


def _value_list(kind: str, literals: str, is_cut: bool) -> str:
    if not literals:
        return ""

    more = ", …" if is_cut else ""
    return f" [{kind}: {literals}{more}]"


def within(budget: int, texts: Iterable[str]) -> Iterator[str]:
    """Yield the first of `texts`, as many as fit into `budget` tokens."""
    room = budget * PER_TOKEN
    for text in texts:
        room -= weight(text) + 1
        if room < 0:
            return

        yield text


def _for_names(budget: int) -> int:
    """Return the room for naming tables left out, in quarters of a token.

    It is enough for their number at least.
    """
    return max(int(budget * PER_TOKEN * _NAMES_SHARE), weight(_COUNTED.format(10**6)))


def _not_shown(names: Iterable[str], count: int, room: int) -> str:
    """Return a line that names tables and says how many they are; "" without room.

    It takes at most `room` quarters of a token.
    """
    left = room - weight(_NAMED + _MORE.format(count))
    named: list[str] = []
    for name in names:
        left -= weight(name) + 2
        if left < 0:
            break

        named.append(name)

    if not named:
        counted = _COUNTED.format(count)
        return counted if weight(counted) <= room else ""

    line = _NAMED + ", ".join(named)
    if count > len(named):
        line += _MORE.format(count - len(named))

    return line


def _comment(comment: str | None) -> str:
    if comment:
        return f"  -- {one_line(comment, _MAX_COMMENT)}"

    return ""


def _rows(table: Table) -> str:
    """Return the estimated number of rows, to two digits.

    So the text stays the same while a table grows a little.
    """
    if table.row_estimate <= 0:
        return ""

    unit = 10 ** max(0, len(str(table.row_estimate)) - 2)
    return f"  (about {round(table.row_estimate / unit) * unit} rows)"


def _spread(table: Table) -> str:
    """Return by which columns its rows are spread over servers."""
    if not table.distributed_by:
        return ""

    return f"  (distributed by {_column_list(table.distributed_by)}; join on it where you can)"


def _is_short(column: Column) -> bool:
    """Tell whether all of its values are known and few, so that they are always shown."""
    return column.is_complete and len(column.values) <= MAX_VALUES


def _is_showable(value: str, most: int = _MAX_VALUE_CHARS) -> bool:
    """Tell whether the prompt can show the value as it is stored; a cut one matches nothing."""
    return one_line(value, most) == value


def _equals(values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"= {_literals(values)}"

    return f"IN ({_literals(values)})"


def _literals(
    values: Iterable[str], called: Mapping[str, str] = MappingProxyType({}), *, plain: bool = False
) -> str:
    """Return the values as SQL takes them, each with what it is called."""
    literals = []
    for value in values:
        literal = value if plain else "'" + value.replace("'", "''") + "'"
        literals.append(literal + called.get(value, ""))

    return ", ".join(literals)


def _column_list(columns: Iterable[str]) -> str:
    return f"({', '.join(map(identifier, columns))})"
