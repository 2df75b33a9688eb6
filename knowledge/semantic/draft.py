"""Writes a first semantic file from a catalogue, for a person to finish.

What names, comments and keys say for certain stands in it as it is; what they only suggest is commented out. The file
fits the catalogue as it stands, whatever its names look like.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence

import yaml
from yaml.resolver import Resolver

from common.meanings import PreferredJoin
from common.postgres.identifiers import quoted
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.safe_text import one_line
from knowledge.semantic import guesses
from knowledge.semantic.binding import in_quotes, tables_called

MAX_CHARS = 1_000_000  # of a draft; a larger one is not looked through by anybody
_ALL_COLUMNS = 200  # tables; of more, only columns are listed of which there is something to say
_MOST_METRICS = 20  # suggested
_MAX_COMMENT = 200
_PLAIN = re.compile(r"[A-Za-z_\u3400-\u9fff][\w\u3400-\u9fff]*", re.ASCII)
_YAML = Resolver()
_TEXT_TAG = "tag:yaml.org,2002:str"
_INDENT = "  "


def draft(catalog: Catalog, schema_url: str) -> str:
    """The file's text.

    Args:
        schema_url: where editors find the JSON Schema.
    """
    writer = _Writer(catalog)
    lines = [f"# yaml-language-server: $schema={schema_url}", *_HEAD, "version: 1", "", "tables:"]
    room = MAX_CHARS
    for number, table in enumerate(catalog.tables):
        block = list(writer.table(table))
        room -= sum(map(len, block)) + len(block)
        if room < 0:
            left = len(catalog.tables) - number
            lines.append(f"{_INDENT}# {left} more tables are left out: draft them apart, with --tables.")
            break
        lines += block
    return "\n".join([*lines, *writer.metrics(), ""])


_HEAD = (
    "# A first semantic file, drafted from the catalogue: what the database means to people. Look through it, give",
    "# names to what has none, delete what needs no words. docs/semantic.md describes the format; check it with",
    "# python -m knowledge.semantic check",
)


class _Writer:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._is_brief = len(catalog.tables) > _ALL_COLUMNS
        self._implied = guesses.implied_joins(catalog)

    def _name(self, key: tuple[str, str]) -> str | None:
        """What the table is called in the file; None when no name leads to it alone."""
        schema, name = key
        for spelled in (name, f"{schema}.{name}", in_quotes(key)):
            found = tables_called(spelled, self._catalog)
            if len(found) == 1 and found[0].key == key:
                return spelled
        return None

    def table(self, table: Table) -> Iterator[str]:
        """The lines of one table."""
        name = self._name(table.key)
        yield ""
        for said in _about(table):
            yield f"{_INDENT}# {said}"
        if name is None:
            yield f"{_INDENT}# {_comment('.'.join(table.key))}: no name leads to it alone, so it can't be described."
            return
        yield f"{_INDENT}{_scalar(name)}:"
        fields = [*self._facts(table), *self._joins(table), *self._columns(table)]
        if all(line.lstrip().startswith("#") for line in fields):
            fields.insert(0, "names: []")
        yield from (f"{_INDENT * 2}{line}" for line in fields)

    def _facts(self, table: Table) -> Iterator[str]:
        yield from _said(guesses.table_name_of(table.comment), table.comment)
        label, dates = guesses.label_of(table), guesses.dates_of(table)
        if label:
            yield f"label: {_scalar(label)}"
        is_event = bool(table.foreign_keys or table.key in self._implied or set(dates) & set(table.primary_key))
        if len(dates) == 1 and is_event:
            yield f"date: {_scalar(dates[0])}"
        elif dates:
            yield f"# date: {' or '.join(map(_scalar, dates))}"
        if condition := guesses.deletion_filter(table):
            yield f"# filter: {_scalar(condition)}"

    def _joins(self, table: Table) -> Iterator[str]:
        joins = [join for join in self._implied.get(table.key, ()) if self._name(join.target)]
        if joins:
            yield "# joins:  # no foreign key declares these"
            yield from (f"#   - {self._join(join)}" for join in joins)

    def _join(self, join: PreferredJoin) -> str:
        columns, targets = _list(join.columns), _list(join.target_columns)
        return f"{{columns: {columns}, to: {_scalar(self._name(join.target) or '')}, target: {targets}}}"

    def _columns(self, table: Table) -> Iterator[str]:
        columns = [(column, list(_column(table, column))) for column in table.columns]
        shown = [(column, lines) for column, lines in columns if lines or not self._is_brief]
        if shown:
            yield "columns:"
        for column, lines in shown:
            remark = f"  # {_facts(table, column)}"
            is_empty = all(line.lstrip().startswith("#") for line in lines)
            yield f"{_INDENT}{_scalar(column.name)}:{' {}' if is_empty else ''}{remark}"
            yield from (f"{_INDENT * 2}{line}" for line in lines)

    def metrics(self) -> Iterator[str]:
        """The lines of suggested metrics, all commented out."""
        suggested = [
            (name, table, column)
            for table in self._catalog.tables
            if guesses.dates_of(table) and (name := self._name(table.key))
            for column in guesses.measures_of(table)
        ]
        yield ""
        yield "# Figures that the business has names for."
        yield "metrics: {}"
        for name, table, column in suggested[:_MOST_METRICS]:
            expression = f"sum({quoted(column.name)})"
            unit = guesses.unit_of(column)
            said = [f"table: {_scalar(name)}", f"expression: {_scalar(expression)}"]
            said += [f"unit: {_scalar(unit)}"] if unit else []
            metric = _scalar(f"total {column.name} of {table.name}")
            yield f"#{_INDENT}{metric}: {{{', '.join(said)}}}"


def _about(table: Table) -> Iterator[str]:
    """Remarks on a table: its kind and size, its keys."""
    rows = f", about {table.row_estimate:,} rows" if table.row_estimate > 0 else ""
    yield f"{table.kind}{rows}"
    if table.primary_key:
        yield _comment(f"primary key: {', '.join(table.primary_key)}")
    for key in table.foreign_keys:
        if len(key.columns) > 1:
            yield _comment(
                f"({', '.join(key.columns)}) refers to {'.'.join(key.target)} ({', '.join(key.target_columns)})"
            )


def _said(name: str | None, comment: str | None) -> Iterator[str]:
    if name:
        yield f"names: [{_scalar(name)}]"
    if description := guesses.description_of(comment):
        yield f"description: {_scalar(description)}"


def _column(table: Table, column: Column) -> Iterator[str]:
    yield from _said(guesses.name_of(column.comment), column.comment)
    if unit := guesses.unit_of(column):
        yield f"unit: {_scalar(unit)}"
    if guesses.is_sensitive(table, column):
        yield "sensitive: true"
    elif guesses.holds_names(table, column):
        yield "# sensitive: true  # seems to hold names of persons"
    values = guesses.values_of(table, column)
    if values:
        yield "values:"
        yield from (f"{_INDENT}{_scalar(value)}: [{_scalar(name) if name else ''}]" for value, name in values)


def _facts(table: Table, column: Column) -> str:
    facts = [column.type]
    if table.primary_key == (column.name,):
        facts.append("primary key")
    facts += [_reference(key) for key in table.foreign_keys if key.columns == (column.name,)]
    return _comment(", ".join(facts))


def _reference(key: ForeignKey) -> str:
    return f"refers to {'.'.join(key.target)}"


# ------------------------------------------------------------------------------------------------------------- scalars


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, names))}]"


def _scalar(text: str) -> str:
    """`text` as YAML: plain where nobody could read it otherwise, else in double quotes."""
    is_text = _YAML.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT_TAG  # type: ignore[no-untyped-call]
    if is_text and _PLAIN.fullmatch(text):
        return text
    return "".join(one if _is_printable(one) else _escaped(one) for one in json.dumps(text, ensure_ascii=False))


def _is_printable(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CZ" or character == " "


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _comment(text: str) -> str:
    """`text` for a comment: one line of characters that YAML allows."""
    return "".join(one if _is_printable(one) else " " for one in one_line(text, _MAX_COMMENT))
