"""Reduces a catalogue to what statements may read: prompts, rules, examples and suggestions are
made of the result.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from common.meanings import ColumnMeaning, Metric, TableMeaning
from common.text import Text
from common.values import Catalog, Column, Table
from guard.access import AccessCheck
from guard.closure import RunningColumns
from guard.columns import Read

_HIDDEN = "…"  # stands for a closed name in a comment
_WORD = re.compile(r"[A-Za-z0-9_]+")


def visible(catalog: Catalog, check: AccessCheck, running: RunningColumns | None = None) -> Catalog:
    """Return the tables and columns that `check` lets statements read.

    Comments and keys that name others are left out.

    Args:
        running: closes what runs harmful code when it is read.
    """
    if running is not None:
        catalog = _harmless(catalog, running)
    if not check.rules:
        return catalog

    tables = []
    for table in catalog.tables:
        if check.refusal(Read(table.key)) is not None:
            continue

        reduced = _visible_columns(table, check)
        if reduced.columns:
            tables.append(reduced)

    names = _ClosedNames.of(_hidden_names(catalog, tables, check))
    return replace(
        catalog,
        tables=tuple(_without_names(table, names) for table in tables),
        metrics=tuple(_meaning_without_names(metric, names) for metric in catalog.metrics),
    ).coherent()


def _hidden_names(catalog: Catalog, shown: list[Table], check: AccessCheck) -> set[str]:
    """Return the names of relations that may not be read."""
    hidden = {table.name for table in catalog.tables}
    denied = filter(check.rules.denies, check.facts.relations)
    hidden.update(name for _, name in denied)
    shown_names = {table.name for table in shown}
    return hidden - shown_names


def _harmless(catalog: Catalog, running: RunningColumns) -> Catalog:
    """Return the catalogue without what runs harmful code; the same object if there is nothing
    such.
    """
    tables = []
    is_whole = True
    for table in catalog.tables:
        shown = _harmless_part(table, running)
        is_whole &= shown is table
        if shown is not None:
            tables.append(shown)

    if is_whole:
        return catalog

    return replace(catalog, tables=tuple(tables)).coherent()


def _harmless_part(table: Table, running: RunningColumns) -> Table | None:
    """Return the table with the columns that run nothing harmful; None without any."""
    read = Read(table.key)
    if running.refusal(read) is not None:
        return None

    columns = []
    for column in table.columns:
        if running.may_read_column(read, column.name):
            columns.append(column)

    if len(columns) == len(table.columns):
        return table
    if not columns:
        return None

    return replace(table, columns=tuple(columns))


def _visible_columns(table: Table, check: AccessCheck) -> Table:
    read = Read(table.key)
    if not check.has_secrets(read):
        return table

    shown = []
    closed = set()
    for column in table.columns:
        if check.may_read_column(read, column.name):
            shown.append(column)
        else:
            closed.add(column.name)

    return _without_names(replace(table, columns=tuple(shown)), _ClosedNames.of(closed))


@dataclass(frozen=True)
class _ClosedNames:
    """Names of closed columns, to hide in texts: Latin ones as whole words, others anywhere."""

    words: frozenset[str]
    others: frozenset[str]
    lengths: frozenset[int]

    @classmethod
    def of(cls, names: Collection[str]) -> "_ClosedNames":
        words = set()
        others = set()
        for name in names:
            if len(name) <= 1:
                continue
            if _WORD.fullmatch(name):
                words.add(name.lower())
            else:
                others.add(name)

        return cls(frozenset(words), frozenset(others), frozenset(map(len, others)))

    def _hide_if_closed(self, match: re.Match[str]) -> str:
        is_hidden = match[0].lower() in self.words
        if is_hidden:
            return _HIDDEN

        return match[0]

    def hide_in(self, text: str) -> str:
        text = _WORD.sub(self._hide_if_closed, text)
        pieces = set()
        for length in self.lengths:
            for start in range(len(text)):
                pieces.add(text[start : start + length])

        for name in sorted(pieces & self.others, key=len, reverse=True):
            text = text.replace(name, _HIDDEN)

        return text


_Meaning = TypeVar("_Meaning", TableMeaning, ColumnMeaning, Metric)


def _without_names(table: Table, names: _ClosedNames) -> Table:
    hides_none = not names.words and not names.others
    if hides_none:
        return table

    return replace(
        table,
        columns=tuple(_column_without_names(column, names) for column in table.columns),
        comment=table.comment and names.hide_in(table.comment),
        meaning=table.meaning and _meaning_without_names(table.meaning, names),
    )


def _column_without_names(column: Column, names: _ClosedNames) -> Column:
    says_nothing = not column.comment and not column.meaning
    if says_nothing:
        return column

    return replace(
        column,
        comment=column.comment and names.hide_in(column.comment),
        meaning=column.meaning and _meaning_without_names(column.meaning, names),
    )


def _meaning_without_names(meaning: _Meaning, names: _ClosedNames) -> _Meaning:
    """Return the meaning without the names in its description; what things are called stays,
    being the operator's words.
    """
    if meaning.description is None:
        return meaning

    return replace(meaning, description=Text(*map(names.hide_in, meaning.description)))
