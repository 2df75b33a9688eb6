"""Read a semantic file from YAML into entries with their lines, checked by its JSON Schema."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.meanings import BilingualNames
from common.text import Text
from common.yaml_tree import (
    Scalar,
    Tree,
    UnreadableYaml,
    YamlFields,
    YamlItems,
    plain,
    read_file_bytes,
    read_tree,
)
from knowledge.semantic.closest_name import suggestion_after
from knowledge.semantic.problems import Problem, SemanticFileError

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

SCHEMA_PATH = Path(__file__).with_name("semantic.schema.json")
_MAX_PROBLEMS = 100
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
# Without them, YAML takes what follows a comma in {…} for a key
_QUOTES = "; a text with commas needs quotes"
# Keywords of JSON Schema whose errors are put into words of their own.
_UNKNOWN_KEYS = "additionalProperties"
_MISSING_KEYS = "required"
_KEY_NAMES = "propertyNames"
_REFERENCE = "$ref"


@dataclass(frozen=True)
class Spot:
    """A text of the file and its line."""

    line: int
    text: str


@dataclass(frozen=True)
class ColumnEntry:
    """The entry of a column; `values` are stored values with their names."""

    name: Spot
    names: BilingualNames
    description: Text | None
    unit: Text | None
    is_sensitive: bool | None
    values: tuple[tuple[Spot, BilingualNames], ...]
    most: BilingualNames
    least: BilingualNames
    is_kind: bool


@dataclass(frozen=True)
class JoinEntry:
    """A preferred join; `target` is empty for the primary key of the table it leads to."""

    line: int
    columns: tuple[Spot, ...]
    to: Spot
    target: tuple[Spot, ...]


@dataclass(frozen=True)
class TableEntry:
    """The entry of a table."""

    name: Spot
    names: BilingualNames
    description: Text | None
    label: tuple[Spot, ...]
    date: Spot | None
    filter: Spot | None
    joins: tuple[JoinEntry, ...]
    columns: tuple[ColumnEntry, ...]
    verbs: BilingualNames


@dataclass(frozen=True)
class MetricEntry:
    """The entry of a metric."""

    name: Spot
    names: BilingualNames
    description: Text | None
    unit: Text | None
    table: Spot
    expression: Spot
    filter: Spot | None
    date: Spot | None
    grain: tuple[Spot, ...]
    most: BilingualNames
    least: BilingualNames


@dataclass(frozen=True)
class ReportEntry:
    """The entry of a report."""

    name: Spot
    names: BilingualNames
    description: Text | None
    sql: Spot


@dataclass(frozen=True)
class SemanticFile:
    """All entries of a file."""

    tables: tuple[TableEntry, ...] = ()
    metrics: tuple[MetricEntry, ...] = ()
    reports: tuple[ReportEntry, ...] = ()


def read_file(path: Path, name: str | None = None) -> SemanticFile:
    """Read the file at `path`.

    Args:
        name: what the file is called in messages; default: its path as given.

    Raises:
        SemanticFileError: it can't be read or is not valid; names every mistake with its line.
    """
    name = name or str(path)
    try:
        data = read_file_bytes(path)
    except UnreadableYaml as error:
        raise SemanticFileError(name, [Problem(error.line, error.text)]) from error

    return read_text(data, name)


def read_text(data: bytes, name: str) -> SemanticFile:
    """Read the contents of a file; raises what `read_file` raises."""
    try:
        tree = read_tree(data)
    except UnreadableYaml as error:
        raise SemanticFileError(name, [Problem(error.line, error.text)]) from error

    if isinstance(tree, Scalar) and tree.value is None:
        return SemanticFile()

    problems = list(islice(_shape_problems(tree), _MAX_PROBLEMS))
    if problems:
        raise SemanticFileError(name, list(dict.fromkeys(problems)))

    assert isinstance(tree, YamlFields)
    return SemanticFile(
        tuple(_table(spot, fields) for spot, fields in _entries(tree, "tables")),
        tuple(_metric(spot, fields) for spot, fields in _entries(tree, "metrics")),
        tuple(_report(spot, fields) for spot, fields in _entries(tree, "reports")),
    )


# ------------------------------------------------------------------------------
# shape


@cache
def _validator() -> "Draft202012Validator":
    from jsonschema import Draft202012Validator  # takes 1/8 s, which most processes never need

    schema = json.loads(SCHEMA_PATH.read_text("utf-8"))
    return Draft202012Validator(_inlined(schema, schema.pop("$defs")))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return the schema with the definitions in place of references, which take twice as long."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema

    own = {key: _inlined(each, definitions) for key, each in schema.items() if key != _REFERENCE}
    if _REFERENCE not in schema:
        return own

    definition = definitions[schema[_REFERENCE].rpartition("/")[2]]
    return {**_inlined(definition, definitions), **own}


def _shape_problems(tree: Tree) -> Iterator[Problem]:
    for error in _validator().iter_errors(plain(tree)):
        yield from _worded(error, tree)


def _worded(error: "ValidationError", tree: Tree) -> Iterator[Problem]:
    """Yield the mistakes of a validation error, in words of our own."""
    path = list(error.absolute_path)
    node, line = _found(tree, path)
    place = ".".join(map(str, path)) or "the file"
    schema: Mapping[str, Any] = {}
    if isinstance(error.schema, Mapping):
        schema = error.schema
    if isinstance(node, YamlFields):
        if error.validator == _UNKNOWN_KEYS:
            yield from _unknown_keys(node, schema.get("properties", {}), place)
            return

        if error.validator == _MISSING_KEYS:
            yield Problem(line, f"{place} needs {_missing_keys(node, error.validator_value)}")
            return

        if _KEY_NAMES in error.absolute_schema_path:
            line = node.keys.get(str(error.instance), line)

    title = schema.get("title")
    problem = f"{place} must be {title}" if title else f"{place}: {error.message[:200]}"
    yield Problem(line, problem)


def _unknown_keys(node: YamlFields, known: Mapping[str, Any], place: str) -> Iterator[Problem]:
    for key in node.nodes.keys() - known.keys():
        problem = f"{place} has no key {key!r}{suggestion_after(key, known)}"
        if plain(node.nodes[key]) is None:
            problem += _QUOTES

        yield Problem(node.keys[key], problem)


def _missing_keys(node: YamlFields, required: object) -> str:
    keys = map(str, required) if isinstance(required, list) else ()
    missing = [key for key in keys if key not in node.nodes]
    return " and ".join(map(repr, missing))


def _found(tree: Tree, path: Sequence[str | int]) -> tuple[Tree, int]:
    """Return the node at `path`, and the line of the key that leads to it."""
    line = tree.line
    for step in path:
        if isinstance(tree, YamlFields):
            line = tree.keys[str(step)]
            tree = tree.nodes[str(step)]
        elif isinstance(tree, YamlItems):
            tree = tree.nodes[int(step)]
            line = tree.line

    return tree, line


# ------------------------------------------------------------------------------
# entries


def _entries(tree: Tree | None, key: str) -> Iterator[tuple[Spot, YamlFields]]:
    """Yield the mappings in the mapping at `key`, with their own keys.

    An entry without a value is an empty mapping.
    """
    entries = None
    if isinstance(tree, YamlFields):
        entries = tree.nodes.get(key)
    if not isinstance(entries, YamlFields):
        return

    for name, node in entries.nodes.items():
        line = entries.keys[name]
        yield Spot(line, name), node if isinstance(node, YamlFields) else YamlFields(line)


def _table(name: Spot, fields: YamlFields) -> TableEntry:
    joins = fields.nodes.get("joins")
    join_nodes: Sequence[Tree] = ()
    if isinstance(joins, YamlItems):
        join_nodes = joins.nodes

    return TableEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        label=_spots(fields.nodes.get("label")),
        date=_spot(fields.nodes.get("date")),
        filter=_spot(fields.nodes.get("filter")),
        joins=tuple(_join(node) for node in join_nodes if isinstance(node, YamlFields)),
        columns=tuple(_column(spot, column) for spot, column in _entries(fields, "columns")),
        verbs=_names(fields.nodes.get("verbs")),
    )


def _column(name: Spot, fields: YamlFields) -> ColumnEntry:
    sensitive = fields.nodes.get("sensitive")
    kind = fields.nodes.get("kind")
    return ColumnEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        unit=_text(fields.nodes.get("unit")),
        is_sensitive=sensitive.value if isinstance(sensitive, Scalar) else None,
        values=tuple(_values(fields.nodes.get("values"))),
        most=_names(fields.nodes.get("most")),
        least=_names(fields.nodes.get("least")),
        is_kind=isinstance(kind, Scalar) and kind.value is True,
    )


def _values(node: Tree | None) -> Iterator[tuple[Spot, BilingualNames]]:
    """Yield stored values with their names."""
    if isinstance(node, YamlFields):
        for value, names in node.nodes.items():
            yield Spot(node.keys[value], value), _names(names)


def _join(fields: YamlFields) -> JoinEntry:
    return JoinEntry(
        line=fields.line,
        columns=_spots(fields.nodes["columns"]),
        to=_spot_of(fields.nodes["to"]),
        target=_spots(fields.nodes.get("target")),
    )


def _metric(name: Spot, fields: YamlFields) -> MetricEntry:
    names = _names(fields.nodes.get("names"))
    if not names.all:
        names = _sorted_by_language([name.text.replace("_", " ")])

    return MetricEntry(
        name=name,
        names=names,
        description=_text(fields.nodes.get("description")),
        unit=_text(fields.nodes.get("unit")),
        table=_spot_of(fields.nodes["table"]),
        expression=_spot_of(fields.nodes["expression"]),
        filter=_spot(fields.nodes.get("filter")),
        date=_spot(fields.nodes.get("date")),
        grain=_spots(fields.nodes.get("grain")),
        most=_names(fields.nodes.get("most")),
        least=_names(fields.nodes.get("least")),
    )


def _report(name: Spot, fields: YamlFields) -> ReportEntry:
    return ReportEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        sql=_spot_of(fields.nodes["sql"]),
    )


# ------------------------------------------------------------------------------
# texts


def _spot_of(node: Tree) -> Spot:
    spot = _spot(node)
    assert spot is not None  # the schema says so
    return spot


def _spot(node: Tree | None) -> Spot | None:
    if not isinstance(node, Scalar) or node.value is None:
        return None

    return Spot(node.line, node.text)


def _spots(node: Tree | None) -> tuple[Spot, ...]:
    """Return the texts of a list; a single text is a list of one."""
    nodes: Sequence[Tree | None] = [node]
    if isinstance(node, YamlItems):
        nodes = node.nodes

    return tuple(spot for spot in map(_spot, nodes) if spot is not None)


def _names(node: Tree | None) -> BilingualNames:
    if isinstance(node, YamlFields):
        return BilingualNames(zh=_words(node.nodes.get("zh")), en=_words(node.nodes.get("en")))

    return _sorted_by_language(_words(node))


def _words(node: Tree | None) -> tuple[str, ...]:
    words = dict.fromkeys(_tidy(spot.text) for spot in _spots(node))
    return tuple(filter(None, words))


def _sorted_by_language(words: Sequence[str]) -> BilingualNames:
    chinese = tuple(filter(_HAN.search, words))
    return BilingualNames(zh=chinese, en=tuple(word for word in words if word not in chinese))


def _text(node: Tree | None) -> Text | None:
    """Return the text in both languages: one that is given in one language stands for the other,
    too.
    """
    if isinstance(node, YamlFields):
        zh = _line(node.nodes.get("zh"))
        en = _line(node.nodes.get("en"))
    else:
        zh = en = _line(node)

    if not zh and not en:
        return None

    return Text(zh or en, en or zh)


def _line(node: Tree | None) -> str:
    """Return a text on one line; empty without one."""
    spot = _spot(node)
    if spot is not None:
        return _tidy(spot.text)

    return ""


def _tidy(text: str) -> str:
    """Return the text on one line, without control characters."""
    words = "".join(map(_printable, text)).split()
    return " ".join(words)


def _printable(character: str) -> str:
    if unicodedata.category(character) == "Cc":
        return " "

    return character
