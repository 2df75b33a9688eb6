"""Write a first semantic file from a catalogue, for a person to finish.

What names, comments and keys say for certain stands in it as it is; what they only suggest is
commented out. The file fits the catalogue as it stands, whatever its names look like.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

import yaml
from yaml.resolver import Resolver

from common.meanings import PreferredJoin
from common.text import Text
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.language.safe_text import one_line
from knowledge.semantic import guesses
from knowledge.semantic.semantic_binding import in_quotes, tables_called
from postgres.identifiers import quoted

MAX_CHARS = 1_000_000  # of a draft; a larger one is not looked through by anybody
_ALL_COLUMNS = 200  # tables; of more, only columns are listed of which there is something to say
_MOST_METRICS = 20  # suggested
_MAX_COMMENT = 200
_PLAIN = re.compile(r"[A-Za-z_\u3400-\u9fff][\w\u3400-\u9fff]*", re.ASCII)
_YAML = Resolver()
_TEXT_TAG = "tag:yaml.org,2002:str"
_INDENT = "  "


def draft(catalog: Catalog, schema_url: str) -> str:
    """Return the text of the file.

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
            hint = f"{left} more tables are left out: draft them apart, with --tables."
            lines.append(f"{_INDENT}# {hint}")
            break

        lines += block

    return "\n".join([*lines, *writer.metrics(), ""])


_HEAD = (
    "# A first semantic file, drafted from the catalogue: what the database means to people. "
    "Look through it, give",
    "# names to what has none, delete what needs no words. docs/semantic.md describes the format; "
    "check it with",
    "# python -m knowledge.semantic check",
)


class _Writer:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._is_brief = len(catalog.tables) > _ALL_COLUMNS
        self._implied = guesses.implied_joins(catalog)

    def _name(self, key: tuple[str, str]) -> str | None:
        """Return the table's name for the file; None when no name leads to it alone."""
        schema, name = key
        for spelled in (name, f"{schema}.{name}", in_quotes(key)):
            tables = tables_called(spelled, self._catalog)
            if len(tables) == 1 and tables[0].key == key:
                return spelled

        return None

    def table(self, table: Table) -> Iterator[str]:
        """Yield the lines of one table."""
        name = self._name(table.key)
        yield ""
        for remark in _about(table):
            yield f"{_INDENT}# {remark}"

        if name is None:
            why = "no name leads to it alone, so it can't be described."
            yield f"{_INDENT}# {_comment('.'.join(table.key))}: {why}"
            return

        yield f"{_INDENT}{_scalar(name)}:"
        fields = [*self._facts(table), *self._joins(table), *self._columns(table)]
        if all(map(_is_comment, fields)):
            fields.insert(0, "names: []")

        yield from _indented(fields)

    def _facts(self, table: Table) -> Iterator[str]:
        yield from _names_and_description(guesses.table_name_of(table.comment), table)
        label = guesses.label_of(table)
        dates = guesses.dates_of(table)
        if len(label) == 1:
            yield f"label: {_scalar(label[0])}"
        elif label:
            yield f"label: {_list(label)}"
        if len(dates) == 1 and self._is_event(table, dates[0]):
            yield f"date: {_scalar(dates[0])}"
        elif dates:
            yield f"# date: {' or '.join(map(_scalar, dates))}"

        condition = guesses.deletion_filter(table)
        if condition is not None:
            yield f"# filter: {_scalar(condition)}"

    def _is_event(self, table: Table, date: str) -> bool:
        """Tell whether a row seems to be something that happened at that date."""
        if table.foreign_keys or table.key in self._implied:
            return True

        return date in table.primary_key

    def _joins(self, table: Table) -> Iterator[str]:
        joins = []
        for join in self._implied.get(table.key, ()):
            name = self._name(join.target)
            if name is not None:
                joins.append(_join(join, name))

        if joins:
            yield "# joins:  # no foreign key declares these"

        for line in joins:
            yield f"#   - {line}"

    def _columns(self, table: Table) -> Iterator[str]:
        shown = []
        for column in table.columns:
            lines = list(_column(table, column))
            if lines or not self._is_brief:
                shown.append((column, lines))

        if shown:
            yield "columns:"

        for column, lines in shown:
            value = ""
            if all(map(_is_comment, lines)):
                value = " {}"

            yield f"{_INDENT}{_scalar(column.name)}:{value}  # {_facts(table, column)}"
            yield from _indented(lines)

    def metrics(self) -> Iterator[str]:
        """Yield the lines of suggested metrics, all commented out."""
        yield ""
        yield "# Figures that the business has names for."
        yield "metrics: {}"
        for line in islice(self._suggested_metrics(), _MOST_METRICS):
            yield f"#{_INDENT}{line}"

    def _suggested_metrics(self) -> Iterator[str]:
        for table in self._catalog.tables:
            name = self._name(table.key)
            if name is None:
                continue

            amount = guesses.amount_of(table)
            if amount is not None:
                yield _amount_metric(name, table, amount)
            if not guesses.dates_of(table):
                continue

            for column in guesses.measures_of(table):
                yield _metric(name, table, column)


def _about(table: Table) -> Iterator[str]:
    """Yield remarks on a table: its kind and size, its keys."""
    rows = ""
    if table.row_estimate > 0:
        rows = f", about {table.row_estimate:,} rows"

    yield f"{table.kind}{rows}"
    if table.primary_key:
        yield _comment(f"primary key: {', '.join(table.primary_key)}")

    for key in table.foreign_keys:
        if len(key.columns) > 1:
            columns = ", ".join(key.columns)
            targets = ", ".join(key.target_columns)
            yield _comment(f"({columns}) {_reference(key)} ({targets})")


def _names_and_description(name: str | None, thing: Table | Column) -> Iterator[str]:
    """Yield its names in both languages; what only the dictionary says is commented out."""
    both_names = guesses.names_of(thing, name)
    if both_names is not None:
        yield f"names: {_bilingual(both_names)}"
    elif name:
        yield f"names: [{_scalar(name)}]"
    else:
        translated = guesses.in_both_languages(thing.name)
        if translated is not None:
            yield f"# names: {_bilingual(translated)}"

    description = guesses.description_of(thing.comment)
    if description is not None:
        yield f"description: {_scalar(description)}"


def _join(join: PreferredJoin, target: str) -> str:
    columns = _list(join.columns)
    targets = _list(join.target_columns)
    return f"{{columns: {columns}, to: {_scalar(target)}, target: {targets}}}"


def _metric(table_name: str, table: Table, column: Column) -> str:
    """Return the total of a column, as a metric of the file."""
    name = _scalar(f"total {column.name} of {table.name}")
    expression = _scalar(f"sum({quoted(column.name)})")
    fields = [f"table: {_scalar(table_name)}", f"expression: {expression}"]
    unit = guesses.unit_of(column)
    if unit:
        fields.append(f"unit: {_scalar(unit)}")

    return f"{name}: {{{', '.join(fields)}}}"


def _amount_metric(table_name: str, table: Table, amount: guesses.Amount) -> str:
    """Return what the lines of a table are worth, as a metric of the file."""
    called = _scalar(f"{amount.names.en} of {table.name}")
    names, expression = _bilingual(amount.names), _scalar(amount.expression)
    return f"{called}: {{names: {names}, table: {_scalar(table_name)}, expression: {expression}}}"


def _column(table: Table, column: Column) -> Iterator[str]:
    yield from _names_and_description(guesses.name_of(column.comment), column)
    unit = guesses.unit_of(column)
    if unit:
        yield f"unit: {_scalar(unit)}"
    if guesses.is_sensitive(table, column):
        yield "sensitive: true"
    elif guesses.holds_names(table, column):
        yield "# sensitive: true  # seems to hold names of persons"

    values = guesses.values_of(table, column)
    if values:
        yield "values:"

    for value, name in values:
        yield f"{_INDENT}{_scalar(value)}: {_names_of_value(value, name)}"


def _names_of_value(value: str, name: str | None) -> str:
    """Return the names of a stored value, in both languages if it is an everyday word."""
    both_names = guesses.in_both_languages(name or value)
    if both_names is not None:
        return _bilingual(both_names)

    return f"[{_scalar(name) if name else ''}]"


def _bilingual(names: Text) -> str:
    return f"{{zh: {_scalar(names.zh)}, en: {_scalar(names.en)}}}"


def _facts(table: Table, column: Column) -> str:
    facts = [column.type]
    if table.primary_key == (column.name,):
        facts.append("primary key")

    facts += [_reference(key) for key in table.foreign_keys if key.columns == (column.name,)]
    return _comment(", ".join(facts))


def _reference(key: ForeignKey) -> str:
    return f"refers to {'.'.join(key.target)}"


# ------------------------------------------------------------------------------
# lines and scalars


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"{_INDENT * 2}{line}" for line in lines)


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, names))}]"


def _scalar(text: str) -> str:
    """Return `text` as YAML: plain where nobody could read it otherwise, else in double quotes."""
    tag = _YAML.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    is_text = tag == _TEXT_TAG
    if is_text and _PLAIN.fullmatch(text):
        return text

    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _is_printable(character: str) -> bool:
    if character == " ":
        return True

    return unicodedata.category(character)[0] not in "CZ"


def _escaped(character: str) -> str:
    if _is_printable(character):
        return character

    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"

    return f"\\U{code:08x}"


def _comment(text: str) -> str:
    """Write `text` for a comment: one line of characters that YAML allows."""
    line = one_line(text, _MAX_COMMENT)
    return "".join(one if _is_printable(one) else " " for one in line)
