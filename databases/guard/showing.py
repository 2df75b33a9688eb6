"""Reduces a catalogue to what statements may read: prompts, rules, examples and suggestions are made of the result."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from common.meanings import ColumnMeaning, Metric, TableMeaning
from common.text import Text
from common.values import Catalog, Column, Table
from databases.guard.access import AccessCheck, Read

_HIDDEN = "…"  # stands for a closed name in a comment
_WORD = re.compile(r"[A-Za-z0-9_]+")


def visible(catalog: Catalog, check: AccessCheck) -> Catalog:
    """The tables and columns that `check` lets statements read, without comments and keys that name the others."""
    if not check.rules:
        return catalog
    tables = [_visible_columns(table, check) for table in catalog.tables if check.refusal(Read(table.key)) is None]
    tables = [table for table in tables if table.columns]
    closed = {name for schema, name in check.facts.relations if check.rules.denies((schema, name))}
    hidden = ({table.name for table in catalog.tables} | closed) - {table.name for table in tables}
    names = _Names.of(hidden)
    return replace(
        catalog,
        tables=tuple(_without_names(table, names) for table in tables),
        metrics=tuple(_with_meaning(metric, names) for metric in catalog.metrics),
    ).coherent()


def _visible_columns(table: Table, check: AccessCheck) -> Table:
    read = Read(table.key)
    if not check.has_secrets(read):
        return table
    columns = tuple(column for column in table.columns if check.may_read_column(read, column.name))
    closed = {column.name for column in table.columns} - {column.name for column in columns}
    return _without_names(replace(table, columns=columns), _Names.of(closed))


@dataclass(frozen=True)
class _Names:
    """Names to find in texts: those of Latin letters as whole words, others anywhere."""

    words: frozenset[str]
    others: frozenset[str]
    lengths: frozenset[int]

    @classmethod
    def of(cls, names: Collection[str]) -> "_Names":
        telling = [name for name in names if len(name) > 1]
        words = frozenset(name.lower() for name in telling if _WORD.fullmatch(name))
        others = frozenset(name for name in telling if not _WORD.fullmatch(name))
        return cls(words, others, frozenset(map(len, others)))

    def taken_out_of(self, text: str) -> str:
        text = _WORD.sub(lambda match: _HIDDEN if match[0].lower() in self.words else match[0], text)
        pieces = {text[at : at + length] for length in self.lengths for at in range(len(text))}
        for name in sorted(pieces & self.others, key=len, reverse=True):
            text = text.replace(name, _HIDDEN)
        return text


_Meaning = TypeVar("_Meaning", TableMeaning, ColumnMeaning, Metric)


def _without_names(table: Table, names: _Names) -> Table:
    if not names.words and not names.others:
        return table
    return replace(
        table,
        columns=tuple(_with_comment(column, names) for column in table.columns),
        comment=table.comment and names.taken_out_of(table.comment),
        meaning=table.meaning and _with_meaning(table.meaning, names),
    )


def _with_comment(column: Column, names: _Names) -> Column:
    if not column.comment and not column.meaning:
        return column
    return replace(
        column,
        comment=column.comment and names.taken_out_of(column.comment),
        meaning=column.meaning and _with_meaning(column.meaning, names),
    )


def _with_meaning(meaning: _Meaning, names: _Names) -> _Meaning:
    """The meaning without the names in its description; what things are called stays, being the operator's words."""
    if meaning.description is None:
        return meaning
    return replace(meaning, description=Text(*map(names.taken_out_of, meaning.description)))
