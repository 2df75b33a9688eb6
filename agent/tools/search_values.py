"""`search_values`: the stored values behind words, so that queries compare with what is stored."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from pydantic import Field

from agent.thinking.llm.rows_text import row_line
from agent.thinking.llm.schema_text import NAMED_VALUES
from agent.tools.schema_tools import SchemaReader
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.errors import Forbidden, NotFound
from common.inquiry import StoredValue
from common.ports import Database
from common.text import Text
from common.values import Catalog, Column, Table
from knowledge.language.atoms import atoms_of, normalise
from knowledge.language.safe_text import identifier, one_line
from knowledge.language.spelling import alike, closest, same
from knowledge.tables.schema_service import table_named
from knowledge.values.personal_data import Privacy, open_values, privacy_of
from knowledge.values.stored_values import labelled_values, meant_values
from knowledge.values.value_matching import Place, may_be_told
from knowledge.values.value_patterns import Stretch
from knowledge.values.value_search import (
    MOST_COLUMNS,
    FoundValues,
    ValueRequest,
    ValueSearch,
    searched_columns,
)

_MOST_WORDS = 200  # characters; no stored value that a question names is longer
_MOST_TABLES = 20  # by what the words have to do with
_MOST_FOUND = 30
_MOST_NEAR = 3  # of one column
_MOST_VALUE_CHARS = 200
_LEAST_LIKENESS = 0.6  # of a column that may have been meant
_PERSONAL = Text(
    "列 {} 的值属于个人信息，不能查找。", "The values of {} are personal and can't be searched."
)
_NO_COLUMN = Text("没有名为 {} 的列。", "There is no column named {}.")
_MEANT = Text("您是不是要找：{}？", " Did you mean: {}?")


class SearchValues(Arguments):
    """The arguments of `search_values`."""

    words: str = Field(
        min_length=1,
        max_length=_MOST_WORDS,
        description="One name, code or word as the question has it, "
        "such as a product, a city or a status.",
    )
    table: str | None = Field(default=None, description="Search this table only.")
    column: str | None = Field(default=None, description="Search columns of this name only.")


ValueMatch = Literal["exact", "called so", "near"]
_UNFINISHED = "Not all columns could be searched in time: others may hold such a value."
_BEST_FIRST: tuple[ValueMatch, ...] = get_args(ValueMatch)


@dataclass(frozen=True)
class _Hit:
    """A stored value, and how it is found; `exact` ignores case, width and the like."""

    table: Table
    column: str
    value: str
    how: ValueMatch


@dataclass(frozen=True)
class _Scope:
    """The columns to search with their tables, the likeliest first.

    Attributes:
        is_named: the caller named them.
    """

    columns: Sequence[tuple[Table, Column]]
    is_named: bool


def search_values_tool(search: ValueSearch, reader: SchemaReader) -> Tool[SearchValues]:
    """Return the tool; there is none where models may see no stored values."""

    async def run(context: ToolContext, arguments: SearchValues) -> ToolResult:
        catalog = await context.database.catalog()
        scope = await _scope(arguments, catalog, reader)
        in_catalog = await asyncio.to_thread(lambda: list(_known(arguments.words, scope)))
        places = [
            column.place
            for column in islice(searched_columns(_places(scope), catalog), MOST_COLUMNS)
        ]
        stored = await _stored_values(arguments.words, places, search, catalog, context.database)
        hits = sorted(
            dict.fromkeys((*in_catalog, *_hits_among(stored.values, catalog))),
            key=lambda hit: _BEST_FIRST.index(hit.how),
        )
        schema = await reader.described(catalog)
        lines = [_hit_line(hit, schema.name(hit.table)) for hit in hits[:_MOST_FOUND]]
        headline = _headline(hits, scope, is_searched=search.is_on)
        if not stored.is_complete:
            headline = _UNFINISHED if not hits else f"{_UNFINISHED}\n{headline}"

        text = "\n".join([headline, *lines])
        return ToolResult(text, Text(f"找到 {len(hits)} 个值", f"{len(hits)} values found"))

    return Tool(
        "search_values",
        Text("查找取值", "Search stored values"),
        "Finds how names, codes and words of a question are stored, and in which column: "
        "the same text written differently, or nearly the same. "
        "Use it before comparing a column with a text. Personal data is never found.",
        SearchValues,
        run,
        frozenset({EVERYONE}),
    )


# ------------------------------------------------------------------------------
# where


async def _scope(arguments: SearchValues, catalog: Catalog, reader: SchemaReader) -> _Scope:
    """Return the columns to search.

    Raises:
        NotFound, InvalidRequest: there is no such table or column, or several tables.
        Forbidden: all columns of that name are personal.
    """
    if arguments.table is not None:
        tables: Sequence[Table] = (table_named(arguments.table, catalog),)
    elif arguments.column is not None:
        tables = catalog.tables
    else:
        tables = await _likely(arguments.words, catalog, reader)

    if arguments.column is None:
        columns = [(table, column) for table in tables for column in table.columns]
        return _Scope(columns, arguments.table is not None)

    return _Scope(await asyncio.to_thread(_columns_named, arguments.column, tables), is_named=True)


async def _likely(words: str, catalog: Catalog, reader: SchemaReader) -> Sequence[Table]:
    """Return the tables to search, those with such a value first, then those about the words."""
    likely_tables = await reader.found(words, _MOST_TABLES, catalog)
    values = await NAMED_VALUES.ready(catalog)
    named_values = await asyncio.to_thread(values.find, words)
    keys = [named.table.key for named in named_values]
    keys += [table.key for table in (*likely_tables, *catalog.tables[:_MOST_TABLES])]
    return [catalog.by_key[key] for key in dict.fromkeys(keys)]


def _columns_named(name: str, tables: Iterable[Table]) -> list[tuple[Table, Column]]:
    folded_name = name.replace('"', "").rpartition(".")[2].casefold()
    everywhere = [(table, column) for table in tables for column in table.columns]
    with_name = [named for named in everywhere if named[1].name.casefold() == folded_name]
    if not with_name:
        names = list(dict.fromkeys(column.name for _, column in everywhere))
        near = closest(folded_name, names, _MOST_NEAR, _LEAST_LIKENESS)
        raise NotFound(_no_column(one_line(name, _MOST_VALUE_CHARS), near), suggestions=near)

    if all(privacy_of(table, column) is Privacy.PRIVATE for table, column in with_name):
        column_name = identifier(with_name[0][1].name)
        raise Forbidden(Text(_PERSONAL.zh.format(column_name), _PERSONAL.en.format(column_name)))

    return with_name


def _no_column(name: str, near: Sequence[str]) -> Text:
    zh, en = _NO_COLUMN.zh.format(name), _NO_COLUMN.en.format(name)
    if near:
        listed = ", ".join(near)
        zh += _MEANT.zh.format(listed)
        en += _MEANT.en.format(listed)

    return Text(zh, en)


def _places(scope: _Scope) -> Iterator[Place]:
    return ((table.key, column.name) for table, column in scope.columns)


# ------------------------------------------------------------------------------
# what


def _known(words: str, scope: _Scope) -> Iterator[_Hit]:
    """Yield the values that the catalogue holds; none of personal columns."""
    for table, column in scope.columns:
        if privacy_of(table, column) is not Privacy.OPEN:
            continue

        for value, how in _values_for(words, table, column):
            yield _Hit(table, column.name, value, how)


def _values_for(words: str, table: Table, column: Column) -> Sequence[tuple[str, ValueMatch]]:
    """Return values of an open column that the words stand for, else those that resemble them."""
    values = open_values(table, column) or column.allowed
    matching_values: list[tuple[str, ValueMatch]] = [
        (value, "exact") for value in values if same(words, value)
    ]
    for value, name, _ in (*meant_values(column), *labelled_values(column)):
        if same(words, name):
            matching_values.append((value, "called so"))

    if matching_values:
        return matching_values

    return [(value, "near") for value in alike(words, values)[:_MOST_NEAR]]


async def _stored_values(
    words: str, places: Sequence[Place], search: ValueSearch, catalog: Catalog, database: Database
) -> FoundValues:
    """Look for the words in columns of which the catalogue does not hold all values."""
    stretch = _stretch(words)
    if not places or not stretch.atoms:
        return FoundValues()

    return await search.find(ValueRequest((stretch,), lambda: places), catalog, database)


def _hits_among(stored_values: Iterable[StoredValue], catalog: Catalog) -> list[_Hit]:
    """Return the values that models may be told."""
    hits = []
    for one in stored_values:
        table = catalog.by_key[one.table]
        column = table.column(one.column)
        if column is not None and may_be_told(one, table, column):
            hits.append(_Hit(table, one.column, one.value, "exact" if one.is_exact else "near"))

    return hits


def _stretch(words: str) -> Stretch:
    """Return the words as something that nothing explains.

    Where no part of them may be a name, all of them are one.
    """
    text = normalise(words)
    atoms = atoms_of(text)
    loose = Stretch(text, atoms, (True,) * len(atoms))
    if loose.spans:
        return loose

    return Stretch(text, atoms, loose.unexplained, is_quoted=True)


# ------------------------------------------------------------------------------
# words


def _headline(hits: Sequence[_Hit], scope: _Scope, *, is_searched: bool) -> str:
    if hits:
        return "Stored values; use them in SQL exactly as written:"
    if not is_searched:
        return "No known value matches; columns with many values were not searched."
    if scope.is_named:
        return "No stored value matches there."

    return (
        "No stored value matches in the likeliest columns. "
        "Give a table or a column to search elsewhere."
    )


def _hit_line(hit: _Hit, table: str) -> str:
    return f"{table}.{identifier(hit.column)} {row_line([hit.value])[1:-1]} ({hit.how})"
