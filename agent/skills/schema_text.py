"""The part of a prompt that describes the connected database: the tables a question may need, compactly, in a budget.

A catalogue that fits is shown whole. Of a larger one the best matching tables are shown, then what their foreign keys
lead to (a model can't join along a table it has not seen), as long as there is room. Comments are always shown: in many
databases they alone say what a column means.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import postgast

from agent.skills.prompt_data import one_line
from agent.skills.relevance import TableIndex, terms
from common.values import Catalog, Column, Table

SCHEMA_BUDGET = 24_000  # characters of the schema in a prompt that asks for SQL, about 8,000 tokens
OVERVIEW_BUDGET = 4_000  # characters of the list of tables in the other prompts
_MAX_COMMENT = 160
_MAX_COLUMNS = 120  # of one table; the rest are counted
_MAX_VALUES = 12  # stored values shown of one column
_MAX_PARTIAL = 5  # stored values that the question names only in part
_MAX_VALUE_CHARS = 40
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_FEW_COLUMNS = 200  # of a catalogue that fits
_LEADING = 8  # best matching tables whose foreign keys are followed
_MAX_CANDIDATES = 200  # tables of a large catalogue that are tried for the room there is
_Render = Callable[[Table], str]


class StoredValues:
    """The values of a column that can stand in a prompt, prepared once for the questions to come."""

    def __init__(self, column: Column) -> None:
        self.values = tuple(value for value in column.values if _is_showable(value))
        self.lowered = tuple(value.lower() for value in self.values)
        self.text = "\n".join(self.lowered)  # one search here rules a word out for all values
        self.is_short = column.is_complete and len(column.values) <= _MAX_VALUES
        self.total = len(column.values)


class Asked:
    """The words of a question, to be looked up in names and values."""

    def __init__(self, question: str) -> None:
        self.terms = frozenset(terms(question))
        self._text = question.lower()
        self._telling = [term for term in self.terms if len(term) > 1]
        self._any_telling = re.compile("|".join(map(re.escape, self._telling)) or "(?!)")

    def named_among(self, stored: StoredValues) -> Sequence[str]:
        """The values that the question names; if it names none as it is, those with most of its words (`杭州` in
        `杭州分公司`)."""
        whole = [value for value, low in zip(stored.values, stored.lowered, strict=True) if low and low in self._text]
        if whole:
            return whole[:_MAX_VALUES]
        if not self._any_telling.search(stored.text):
            return ()
        # A word of most values (`服务区` among service areas) tells none of them apart.
        telling = [term for term in self._telling if 0 < stored.text.count(term) <= max(1, len(stored.values) / 2)]
        if not telling:
            return ()
        shared = [sum(term in low for term in telling) for low in stored.lowered]
        most = max(shared)
        return [value for value, count in zip(stored.values, shared, strict=True) if count == most > 0][:_MAX_PARTIAL]


@dataclass(frozen=True)
class _Line:
    """A column: its line for questions that name none of its values, and what it is made of."""

    unasked: str
    facts: str
    stored: StoredValues

    @property
    def may_be_named(self) -> bool:
        """Whether questions may change it: there are values, and more than are always shown."""
        return bool(self.stored.values) and not self.stored.is_short

    def asked(self, asked: Asked) -> str:
        """The line for this question."""
        named = asked.named_among(self.stored) if self.may_be_named else ()
        return _with_values(self.facts, self.stored, named) if named else self.unasked


@dataclass(frozen=True)
class _Lines:
    """A table: its head, and its columns by their position."""

    head: str
    columns: tuple[_Line, ...]

    @cached_property
    def unasked(self) -> tuple[str, ...]:
        """All lines for questions that name no value of it."""
        return (self.head, *(line.unasked for line in self.columns))

    @cached_property
    def nameable(self) -> tuple[tuple[int, _Line], ...]:
        """The few columns that a question may change."""
        return tuple((number, line) for number, line in enumerate(self.columns, 1) if line.may_be_named)


class SchemaText:
    """Describes one catalogue in prompts."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._lines: dict[tuple[str, str], _Lines] = {}

    @cached_property
    def _index(self) -> TableIndex:
        """Only a catalogue that does not fit needs one."""
        return TableIndex(self.catalog)

    def prepare(self) -> None:
        """Does now, in the thread that describes it, what the first question would wait for."""
        if sum(len(table.columns) for table in self.catalog.tables) > _FEW_COLUMNS:
            _ = self._index

    @property
    def table_names(self) -> frozenset[str]:
        """Lower-case names of all tables, unqualified."""
        return frozenset(table.name.lower() for table in self.catalog.tables)

    def overview(self, question: str, budget: int = OVERVIEW_BUDGET) -> str:
        """One line per table, the relevant ones first when there is no room for all."""
        return self._fitted(question, (), budget, lambda table: f"{self._name(table)}{_comment(table.comment)}")

    def details(self, question: str, first: Iterable[Table] = (), budget: int = SCHEMA_BUDGET) -> str:
        """The tables with their columns; `first` are shown whatever their words."""
        asked = Asked(question)
        return self._fitted(question, first, budget, lambda table: self._table(table, asked))

    def find(self, name: str) -> Table | None:
        """The table of that name, qualified or not, in any case."""
        wanted = name.replace('"', "").lower()
        tables = self.catalog.tables
        return next((t for t in tables if wanted in (t.name.lower(), f"{t.schema}.{t.name}".lower())), None)

    def _fitted(self, question: str, first: Iterable[Table], budget: int, render: _Render) -> str:
        whole = _within(budget, map(render, self.catalog.tables))
        if len(whole) == len(self.catalog.tables):
            return "\n".join(whole)
        candidates = self._by_relevance(question, first)[:_MAX_CANDIDATES]
        shown: list[str] = []
        room = budget
        for text in map(render, candidates):
            if len(text) + 1 <= room or not shown:
                shown.append(text[:budget])
                room -= len(text) + 1
        left_out = len(self.catalog.tables) - len(shown)
        return "\n".join([*shown, f"-- {left_out} more tables are not shown"])

    def _by_relevance(self, question: str, first: Iterable[Table]) -> list[Table]:
        ranked = self._index.ranked(question)
        leading = [*first, *ranked[:_LEADING]]
        rest = [*ranked[_LEADING:], *self.catalog.tables]
        return list({table.key: table for table in [*leading, *self._joined(leading), *rest]}.values())

    def _joined(self, leading: list[Table]) -> list[Table]:
        """What `leading` tables reference, directly or over other tables, and the tables that link two of them."""
        reached = list(leading)
        for table in reached:
            targets = [self.catalog.by_key.get(key.target) for key in table.foreign_keys]
            reached += [target for target in targets if target is not None and target not in reached]
        keys = {table.key for table in leading}
        links = [t for t in self.catalog.tables if len(keys & {key.target for key in t.foreign_keys}) > 1]
        return [*links, *reached]

    def _name(self, table: Table) -> str:
        name = quoted(table.name)
        return name if table.schema in self.catalog.search_path else f"{quoted(table.schema)}.{name}"

    def _table(self, table: Table, asked: Asked) -> str:
        described = self._lines.get(table.key)
        if described is None:
            described = self._lines[table.key] = self._described(table)
        lines = list(described.unasked)
        for number, line in described.nameable:
            lines[number] = line.asked(asked)
        if len(table.columns) > _MAX_COLUMNS:
            lines = [lines[0], *(lines[number] for number in _chosen_columns(table, asked))]
            lines.append(f"  -- {len(table.columns) - _MAX_COLUMNS} more columns are not shown")
        return "\n".join(lines)

    def _described(self, table: Table) -> _Lines:
        head = f"{table.kind.upper()} {self._name(table)}{_comment(table.comment)}"
        return _Lines(head, tuple(self._line(table, column) for column in table.columns))

    def _line(self, table: Table, column: Column) -> _Line:
        stored, facts = StoredValues(column), self._column_facts(table, column)
        return _Line(_with_values(facts, stored, stored.values if stored.is_short else ()), facts, stored)

    def _column_facts(self, table: Table, column: Column) -> str:
        """What is said of the column whatever the question."""
        facts = [quoted(column.name), column.type]
        if (column.name,) == table.primary_key:
            facts.append("PRIMARY KEY")
        elif not column.nullable:
            facts.append("NOT NULL")
        reference = self._reference(table, column)
        facts += [f"REFERENCES {reference}"] if reference else []
        return f"  {' '.join(facts)}{_comment(column.comment)}"

    def _reference(self, table: Table, column: Column) -> str | None:
        for key in table.foreign_keys:
            target = self.catalog.by_key.get(key.target)
            if column.name in key.columns and target is not None:
                position = key.columns.index(column.name)
                return f"{self._name(target)}({quoted(key.target_columns[position])})"
        return None


def _within(budget: int, texts: Iterable[str]) -> list[str]:
    """The first of `texts`, as many as fit."""
    fitting: list[str] = []
    for text in texts:
        budget -= len(text) + 1
        if budget < 0:
            break
        fitting.append(text)
    return fitting


def _comment(comment: str | None) -> str:
    return f"  -- {one_line(comment, _MAX_COMMENT)}" if comment else ""


def _chosen_columns(table: Table, asked: Asked) -> list[int]:
    """Positions, from 1, of a very wide table's keys and the columns that share words with the question, in order."""
    keys = {*table.primary_key, *(name for key in table.foreign_keys for name in key.columns)}

    def weight(numbered: tuple[int, Column]) -> tuple[bool, int]:
        column = numbered[1]
        return column.name in keys, len(asked.terms & set(terms(f"{column.name} {column.comment or ''}")))

    ranked = sorted(enumerate(table.columns, 1), key=weight, reverse=True)
    return sorted(number for number, _ in ranked[:_MAX_COLUMNS])


def _with_values(facts: str, stored: StoredValues, shown: Sequence[str]) -> str:
    """`facts` of a column, and the stored values worth showing: all of a short list, else those a question names."""
    literals = ", ".join("'" + value.replace("'", "''") + "'" for value in shown)
    more = ", …" if literals and len(shown) < stored.total else ""
    return f"{facts} [values: {literals}{more}]" if literals else facts


def _is_showable(value: str) -> bool:
    """Whether it can stand in the prompt exactly as it is stored; a shortened one would match nothing."""
    return one_line(value, _MAX_VALUE_CHARS) == value


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """`name` as it must be written in SQL, quoted only when it has to be."""
    # Words of the kinds 0 (none) and 1 (unreserved) can name tables and columns as they are.
    is_plain = bool(_PLAIN_NAME.fullmatch(name)) and postgast.scan(name).tokens[0].keyword_kind in (0, 1)
    return name if is_plain else '"' + one_line(name, 128).replace('"', '""') + '"'
