"""What a semantic file says, each thing with its line: read from YAML, and checked by the format's JSON Schema."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from common.meanings import Names
from common.text import Text
from common.yaml_tree import MAX_BYTES, Fields, Items, Scalar, Tree, UnreadableYaml, plain, read_tree
from knowledge.semantic.near import did_you_mean
from knowledge.semantic.problems import Problem, SemanticFileError

SCHEMA_PATH = Path(__file__).with_name("semantic.schema.json")
_MAX_PROBLEMS = 100
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_QUOTES = "; a text with commas needs quotes"  # without them, YAML takes what follows a comma in {…} for a key
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
    """What the file says of a column; `values` are stored values with their names."""

    name: Spot
    names: Names
    description: Text | None
    unit: Text | None
    is_sensitive: bool | None
    values: tuple[tuple[Spot, Names], ...]
    most: Names
    least: Names
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
    """What the file says of a table."""

    name: Spot
    names: Names
    description: Text | None
    label: tuple[Spot, ...]
    date: Spot | None
    filter: Spot | None
    joins: tuple[JoinEntry, ...]
    columns: tuple[ColumnEntry, ...]
    verbs: Names


@dataclass(frozen=True)
class MetricEntry:
    """A metric as the file says it."""

    name: Spot
    names: Names
    description: Text | None
    unit: Text | None
    table: Spot
    expression: Spot
    filter: Spot | None
    date: Spot | None
    grain: tuple[Spot, ...]
    most: Names
    least: Names


@dataclass(frozen=True)
class ReportEntry:
    """A report as the file says it."""

    name: Spot
    names: Names
    description: Text | None
    sql: Spot


@dataclass(frozen=True)
class SemanticFile:
    """All that a file says."""

    tables: tuple[TableEntry, ...] = ()
    metrics: tuple[MetricEntry, ...] = ()
    reports: tuple[ReportEntry, ...] = ()


def read_file(path: Path, name: str | None = None) -> SemanticFile:
    """What the file at `path` says.

    Args:
        name: what messages call it; default: its path as given.

    Raises:
        SemanticFileError: it can't be read or is not valid; names every mistake with its line.
    """
    name = name or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # one byte too many is enough to be refused
    except OSError as error:
        raise SemanticFileError(name, [Problem(1, f"the file can't be read: {error.strerror}")]) from error
    return read_text(data, name)


def read_text(data: bytes, name: str) -> SemanticFile:
    """What a file's contents say; raises what `read_file` raises."""
    try:
        tree = read_tree(data)
    except UnreadableYaml as error:
        raise SemanticFileError(name, [Problem(error.line, error.text)]) from error
    if isinstance(tree, Scalar) and tree.value is None:
        return SemanticFile()
    problems = list(islice(_shape_problems(tree), _MAX_PROBLEMS))
    if problems:
        raise SemanticFileError(name, list(dict.fromkeys(problems)))
    assert isinstance(tree, Fields)
    return SemanticFile(
        tuple(_table(spot, fields) for spot, fields in _entries(tree, "tables")),
        tuple(_metric(spot, fields) for spot, fields in _entries(tree, "metrics")),
        tuple(_report(spot, fields) for spot, fields in _entries(tree, "reports")),
    )


# -------------------------------------------------------------------------------------------------------------- shape


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA_PATH.read_text("utf-8"))
    return Draft202012Validator(_inlined(schema, schema.pop("$defs")))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema with its references replaced by what they stand for: following them takes twice as long."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: _inlined(each, definitions) for key, each in schema.items() if key != _REFERENCE}
    if _REFERENCE not in schema:
        return own
    return {**_inlined(definitions[schema[_REFERENCE].rpartition("/")[2]], definitions), **own}


def _shape_problems(tree: Tree) -> Iterator[Problem]:
    for error in _validator().iter_errors(plain(tree)):
        yield from _worded(error, tree)


def _worded(error: ValidationError, tree: Tree) -> Iterator[Problem]:
    path = list(error.absolute_path)
    node, line = _found(tree, path)
    place = ".".join(map(str, path)) or "the file"
    if error.validator == _UNKNOWN_KEYS and isinstance(node, Fields):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        for key in node.nodes.keys() - known.keys():
            said = f"{place} has no key {key!r}{did_you_mean(key, known)}"
            yield Problem(node.keys[key], said + (_QUOTES if plain(node.nodes[key]) is None else ""))
    elif error.validator == _MISSING_KEYS and isinstance(node, Fields):
        missing = [key for key in _listed(error.validator_value) if key not in node.nodes]
        yield Problem(line, f"{place} needs {' and '.join(map(repr, missing))}")
    else:
        if _KEY_NAMES in error.absolute_schema_path and isinstance(node, Fields):
            line = node.keys.get(str(error.instance), line)
        title = error.schema.get("title") if isinstance(error.schema, Mapping) else None
        yield Problem(line, f"{place} must be {title}" if title else f"{place}: {error.message[:200]}")


def _listed(keys: object) -> list[str]:
    return [str(key) for key in keys] if isinstance(keys, list) else []


def _found(tree: Tree, path: Sequence[str | int]) -> tuple[Tree, int]:
    """The node at `path`, and the line of the key that leads to it."""
    line = tree.line
    for step in path:
        if isinstance(tree, Fields):
            line = tree.keys[str(step)]
            tree = tree.nodes[str(step)]
        elif isinstance(tree, Items):
            tree = tree.nodes[int(step)]
            line = tree.line
    return tree, line


# ------------------------------------------------------------------------------------------------------------ entries


def _entries(tree: Tree | None, key: str) -> Iterator[tuple[Spot, Fields]]:
    """The mappings in the mapping at `key`, with their own keys; an entry that says nothing is an empty mapping."""
    found = tree.nodes.get(key) if isinstance(tree, Fields) else None
    if isinstance(found, Fields):
        for name, node in found.nodes.items():
            line = found.keys[name]
            yield Spot(line, name), node if isinstance(node, Fields) else Fields(line)


def _table(name: Spot, fields: Fields) -> TableEntry:
    joins = fields.nodes.get("joins")
    return TableEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        label=_spots(fields.nodes.get("label")),
        date=_spot(fields.nodes.get("date")),
        filter=_spot(fields.nodes.get("filter")),
        joins=tuple(_join(node) for node in joins.nodes if isinstance(node, Fields))
        if isinstance(joins, Items)
        else (),
        columns=tuple(_column(spot, column) for spot, column in _entries(fields, "columns")),
        verbs=_names(fields.nodes.get("verbs")),
    )


def _column(name: Spot, fields: Fields) -> ColumnEntry:
    sensitive, values = fields.nodes.get("sensitive"), fields.nodes.get("values")
    kind = fields.nodes.get("kind")
    named = values if isinstance(values, Fields) else Fields(fields.line)
    return ColumnEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        unit=_text(fields.nodes.get("unit")),
        is_sensitive=sensitive.value if isinstance(sensitive, Scalar) else None,
        values=tuple((Spot(named.keys[value], value), _names(node)) for value, node in named.nodes.items()),
        most=_names(fields.nodes.get("most")),
        least=_names(fields.nodes.get("least")),
        is_kind=isinstance(kind, Scalar) and kind.value is True,
    )


def _join(fields: Fields) -> JoinEntry:
    return JoinEntry(
        line=fields.line,
        columns=_spots(fields.nodes["columns"]),
        to=_needed(fields.nodes["to"]),
        target=_spots(fields.nodes.get("target")),
    )


def _metric(name: Spot, fields: Fields) -> MetricEntry:
    names = _names(fields.nodes.get("names"))
    return MetricEntry(
        name=name,
        names=names if names.all else _sorted_by_language([name.text.replace("_", " ")]),
        description=_text(fields.nodes.get("description")),
        unit=_text(fields.nodes.get("unit")),
        table=_needed(fields.nodes["table"]),
        expression=_needed(fields.nodes["expression"]),
        filter=_spot(fields.nodes.get("filter")),
        date=_spot(fields.nodes.get("date")),
        grain=_spots(fields.nodes.get("grain")),
        most=_names(fields.nodes.get("most")),
        least=_names(fields.nodes.get("least")),
    )


def _report(name: Spot, fields: Fields) -> ReportEntry:
    return ReportEntry(
        name=name,
        names=_names(fields.nodes.get("names")),
        description=_text(fields.nodes.get("description")),
        sql=_needed(fields.nodes["sql"]),
    )


# -------------------------------------------------------------------------------------------------------------- texts


def _needed(node: Tree) -> Spot:
    spot = _spot(node)
    assert spot is not None  # the schema says so
    return spot


def _spot(node: Tree | None) -> Spot | None:
    return Spot(node.line, node.text) if isinstance(node, Scalar) and node.value is not None else None


def _spots(node: Tree | None) -> tuple[Spot, ...]:
    nodes = node.nodes if isinstance(node, Items) else [node]
    return tuple(spot for each in nodes if (spot := _spot(each)))


def _names(node: Tree | None) -> Names:
    if isinstance(node, Fields):
        return Names(zh=_words(node.nodes.get("zh")), en=_words(node.nodes.get("en")))
    return _sorted_by_language(_words(node))


def _words(node: Tree | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for spot in _spots(node) if (word := _tidy(spot.text))))


def _sorted_by_language(words: Sequence[str]) -> Names:
    return Names(
        zh=tuple(word for word in words if _HAN.search(word)), en=tuple(word for word in words if not _HAN.search(word))
    )


def _text(node: Tree | None) -> Text | None:
    """The text in both languages: one that is given in one language stands for the other, too."""
    if isinstance(node, Fields):
        said = {key: _tidy(spot.text) for key in ("zh", "en") if (spot := _spot(node.nodes.get(key)))}
        zh, en = said.get("zh", ""), said.get("en", "")
        return Text(zh or en, en or zh) if zh or en else None
    spot = _spot(node)
    tidy = _tidy(spot.text) if spot else ""
    return Text(tidy, tidy) if tidy else None


def _tidy(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(" " if unicodedata.category(one) == "Cc" else one for one in text).split())
