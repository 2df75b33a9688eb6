"""The part of a prompt that describes the connected database: the tables a question may need, compactly, in a budget.

A catalogue that fits is shown whole. Of a larger one the best matching tables are shown, then what their foreign keys
lead to (a model can't join along a table it has not seen), as long as there is room. Comments are always shown: in many
databases they alone say what a column means.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import postgast

from agent.skills.prompt_data import one_line
from agent.skills.relevance import TableIndex, terms
from common.values import Catalog, Column, Table

SCHEMA_BUDGET = 24_000  # characters of the schema in a prompt that asks for SQL, about 8,000 tokens
OVERVIEW_BUDGET = 4_000  # characters of the list of tables in the other prompts
_MAX_COMMENT = 160
_MAX_COLUMNS = 120  # of one table; the rest are counted
_MAX_VALUES = 12  # stored values shown of one column
_MAX_VALUE_CHARS = 40
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_Render = Callable[[Table], str]


class SchemaText:
    """Describes one catalogue in prompts."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._index = TableIndex(catalog)

    @property
    def table_names(self) -> frozenset[str]:
        """Lower-case names of all tables, unqualified."""
        return frozenset(table.name.lower() for table in self.catalog.tables)

    def overview(self, question: str, budget: int = OVERVIEW_BUDGET) -> str:
        """One line per table, the relevant ones first when there is no room for all."""
        return self._fitted(question, (), budget, lambda table: f"{self._name(table)}{_comment(table.comment)}")

    def details(self, question: str, first: Iterable[Table] = (), budget: int = SCHEMA_BUDGET) -> str:
        """The tables with their columns; `first` are shown whatever their words."""
        return self._fitted(question, first, budget, lambda table: self._table(table, question))

    def find(self, name: str) -> Table | None:
        """The table of that name, qualified or not, in any case."""
        wanted = name.replace('"', "").lower()
        tables = self.catalog.tables
        return next((t for t in tables if wanted in (t.name.lower(), f"{t.schema}.{t.name}".lower())), None)

    def _fitted(self, question: str, first: Iterable[Table], budget: int, render: _Render) -> str:
        whole = [render(table) for table in self.catalog.tables]
        if sum(len(text) + 1 for text in whole) <= budget:
            return "\n".join(whole)
        shown: list[str] = []
        room = budget
        for table in self._by_relevance(question, first):
            text = render(table)
            if len(text) + 1 <= room or not shown:
                shown.append(text[:budget])
                room -= len(text) + 1
        left_out = len(whole) - len(shown)
        return "\n".join([*shown, f"-- {left_out} more tables are not shown"])

    def _by_relevance(self, question: str, first: Iterable[Table]) -> list[Table]:
        ranked = self._index.ranked(question)
        leading = [*first, *ranked[:8]]
        neighbours = [near for table in leading for near in self._neighbours(table)]
        rest = [*ranked[8:], *self.catalog.tables]
        return list({table.key: table for table in [*leading, *neighbours, *rest]}.values())

    def _neighbours(self, table: Table) -> Iterator[Table]:
        """The tables that `table` references."""
        for key in table.foreign_keys:
            if key.target in self.catalog.by_key:
                yield self.catalog.by_key[key.target]

    def _name(self, table: Table) -> str:
        name = quoted(table.name)
        return name if table.schema in self.catalog.search_path else f"{quoted(table.schema)}.{name}"

    def _table(self, table: Table, question: str) -> str:
        head = f"{table.kind.upper()} {self._name(table)}{_comment(table.comment)}"
        columns = _chosen_columns(table, question)
        lines = [self._column(table, column, question) for column in columns]
        if len(columns) < len(table.columns):
            lines.append(f"  -- {len(table.columns) - len(columns)} more columns are not shown")
        return "\n".join([head, *lines])

    def _column(self, table: Table, column: Column, question: str) -> str:
        facts = [quoted(column.name), column.type]
        if (column.name,) == table.primary_key:
            facts.append("PRIMARY KEY")
        elif not column.nullable:
            facts.append("NOT NULL")
        facts += [f"REFERENCES {self._reference(table, column)}"] if self._reference(table, column) else []
        values = _values(column, question)
        return f"  {' '.join(facts)}{_comment(column.comment)}{f' [values: {values}]' if values else ''}"

    def _reference(self, table: Table, column: Column) -> str | None:
        for key in table.foreign_keys:
            target = self.catalog.by_key.get(key.target)
            if column.name in key.columns and target is not None:
                position = key.columns.index(column.name)
                return f"{self._name(target)}({quoted(key.target_columns[position])})"
        return None


def _comment(comment: str | None) -> str:
    return f"  -- {one_line(comment, _MAX_COMMENT)}" if comment else ""


def _chosen_columns(table: Table, question: str) -> tuple[Column, ...]:
    """All columns, or of a very wide table its keys and the columns that share words with the question, in order."""
    if len(table.columns) <= _MAX_COLUMNS:
        return table.columns
    asked = set(terms(question))
    keys = {*table.primary_key, *(name for key in table.foreign_keys for name in key.columns)}

    def weight(column: Column) -> tuple[bool, int]:
        return column.name in keys, len(asked & set(terms(f"{column.name} {column.comment or ''}")))

    chosen = {column.name for column in sorted(table.columns, key=weight, reverse=True)[:_MAX_COLUMNS]}
    return tuple(column for column in table.columns if column.name in chosen)


def _values(column: Column, question: str) -> str:
    """Stored values worth showing: those the question names, and all of a short complete list."""
    is_short = column.is_complete and len(column.values) <= _MAX_VALUES
    shown = [value for value in column.values if is_short or _occurs(value, question)][:_MAX_VALUES]
    literals = [f"'{one_line(value, _MAX_VALUE_CHARS).replace(chr(39), chr(39) * 2)}'" for value in shown]
    return ", ".join(literals) + (", …" if literals and len(shown) < len(column.values) else "")


def _occurs(value: str, question: str) -> bool:
    """Whether the question names the value, in part at least (`杭州` for `杭州分公司`)."""
    if value and value.lower() in question.lower():
        return True
    return bool(set(terms(value)) & set(terms(question)))


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """`name` as it must be written in SQL, quoted only when it has to be."""
    # Words of the kinds 0 (none) and 1 (unreserved) can name tables and columns as they are.
    is_plain = bool(_PLAIN_NAME.fullmatch(name)) and postgast.scan(name).tokens[0].keyword_kind in (0, 1)
    return name if is_plain else '"' + one_line(name, 128).replace('"', '""') + '"'
