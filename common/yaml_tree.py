"""Reads YAML into a tree that knows its lines, for any input, in bounded time and memory.

The tree is made of the parser's events, so that nothing recurses and nothing is constructed: tags
are refused, and aliases count with all that they stand for. Texts stay as they are written, because
`no`, `1` and `2024-01-01` may be names and stored values as well as anything else.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 4 * 1024 * 1024
_MAX_DEPTH = 16
_MAX_NODES = 500_000
_TOO_DEEP = f"nested more than {_MAX_DEPTH} levels deep"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast

_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_MAX_DIGITS = 40  # longer ones are texts, whose length the format limits


@dataclass
class Scalar:
    """A text as it is written; `value` is its JSON value: a text, number, boolean or None."""

    line: int
    text: str
    value: Any
    size: int = 1
    depth: int = 1


@dataclass
class YamlItems:
    """A list of nodes."""

    line: int
    nodes: "list[Tree]" = field(default_factory=list)
    size: int = 1
    depth: int = 1


@dataclass
class YamlFields:
    """A mapping, by its keys as they are written; `keys` are the same keys with their lines."""

    line: int
    nodes: "dict[str, Tree]" = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    size: int = 1
    depth: int = 1


Tree = Scalar | YamlItems | YamlFields


class UnreadableYaml(Exception):
    """The text is too large, not UTF-8, not YAML, or YAML that `read_tree` does not take.

    Attributes:
        line: where, counted from 1.
        text: what is wrong: a sentence in English without its full stop.
    """

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line
        self.text = text


def read_file_bytes(path: Path) -> bytes:
    """Return what `read_tree` takes of a file: of one that is too large, just enough to refuse it.

    Raises:
        UnreadableYaml: the file can't be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableYaml(1, f"the file can't be read: {error.strerror}") from error


def read_tree(data: bytes) -> Tree:
    """Return the tree of a file's contents; an empty mapping when there is nothing in it.

    Raises:
        UnreadableYaml: it is too large, not UTF-8, not YAML, or YAML with tags, several documents
            or keys that are no texts or that stand there twice.
    """
    if len(data) > MAX_BYTES:
        raise UnreadableYaml(1, f"the file is larger than {MAX_BYTES // 1024 // 1024} MB")

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UnreadableYaml(line, "the file is not UTF-8 text") from error

    try:
        return _Builder().built(yaml.parse(text, _LOADER))
    except yaml.YAMLError as error:
        raise _unreadable(error, text) from None


def _unreadable(error: yaml.YAMLError, text: str) -> UnreadableYaml:
    """Return the parser's own message, with the line it names."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        position = getattr(error, "position", None)
        line = 1
        if isinstance(position, int):
            line = text.count("\n", 0, position) + 1

        return UnreadableYaml(line, "not YAML: a character is not allowed")

    problem = str(getattr(error, "problem", None))
    context = getattr(error, "context", None)
    if context:
        problem += f" ({context})"

    # The parser finds what is missing at the end below the last line.
    last = len(text.rstrip().splitlines()) or 1
    return UnreadableYaml(min(mark.line + 1, last), f"not YAML: {problem}")


class _Builder:
    """Puts the tree together, event by event."""

    def __init__(self) -> None:
        self._open: list[YamlItems | YamlFields] = []
        self._keys: list[Scalar | None] = []  # of each open mapping, the key whose value comes next
        self._anchors: dict[str, Tree | None] = {}  # None while what it stands for is still open
        self._names: list[str | None] = []  # anchors of what is open
        self._documents = 0
        self._root: Tree | None = None

    def built(self, events: Iterator[Any]) -> Tree:
        for event in events:
            self._take_event(event, event.start_mark.line + 1)

        if self._root is not None:
            return self._root

        return YamlFields(1)

    def _take_event(self, event: Any, line: int) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise UnreadableYaml(line, "a second document begins here: the file holds one")
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._node_of(str(event.anchor), line), line)
        elif isinstance(event, yaml.ScalarEvent):
            node = _scalar(event, line)
            self._remember(event, node, line)
            self._add(node, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def _begin(self, event: Any, line: int) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise UnreadableYaml(line, _TOO_DEEP)
        if self._awaits_key():
            raise UnreadableYaml(line, "a key must be a text")

        self._remember(event, None, line)
        if isinstance(event, yaml.MappingStartEvent):
            self._open.append(YamlFields(line))
        else:
            self._open.append(YamlItems(line))

        self._keys.append(None)
        self._names.append(event.anchor)

    def _end(self) -> None:
        node = self._open.pop()
        name = self._names.pop()
        self._keys.pop()
        if name is not None:
            self._anchors[name] = node

        self._add(node, node.line)

    def _remember(self, event: Any, node: Tree | None, line: int) -> None:
        has_tag = event.tag not in (None, "!")
        if has_tag:
            raise UnreadableYaml(line, "tags (!…) are not allowed")
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _node_of(self, anchor: str, line: int) -> Tree:
        node = self._anchors.get(anchor)
        if node is None:
            problem = f"the alias *{anchor} stands for nothing that is complete here"
            raise UnreadableYaml(line, problem)

        return node

    def _awaits_key(self) -> bool:
        """Tell whether a mapping is open whose next node is a key."""
        if not self._open or isinstance(self._open[-1], YamlItems):
            return False

        return self._keys[-1] is None

    def _add(self, node: Tree, line: int) -> None:
        if not self._open:
            self._root = node
            return

        parent = self._open[-1]
        if isinstance(parent, YamlFields) and self._awaits_key():
            self._add_key(parent, node, line)
            return

        parent.size += node.size
        parent.depth = max(parent.depth, node.depth + 1)
        if parent.size > _MAX_NODES:
            raise UnreadableYaml(line, "the file says too much, or its aliases stand for too much")
        if parent.depth > _MAX_DEPTH:
            raise UnreadableYaml(line, _TOO_DEEP)
        if isinstance(parent, YamlItems):
            parent.nodes.append(node)
            return

        key = self._keys[-1]
        assert key is not None
        parent.nodes[key.text] = node
        parent.keys[key.text] = key.line
        self._keys[-1] = None

    def _add_key(self, parent: YamlFields, node: Tree, line: int) -> None:
        if not isinstance(node, Scalar):
            raise UnreadableYaml(line, "a key must be a text")
        if node.text in parent.nodes:
            raise UnreadableYaml(line, f"the key {node.text!r} stands here twice")

        self._keys[-1] = Scalar(line, node.text, node.value)


def _scalar(event: Any, line: int) -> Scalar:
    is_plain = bool(event.implicit[0]) and event.style in (None, "")
    value = event.value
    if is_plain:
        value = _json_value(event.value)

    return Scalar(line, event.value, value)


def _json_value(text: str) -> Any:
    """Return a plain text's value by YAML 1.2's core schema, which editors go by."""
    lower = text.lower()
    spellings = (lower, text.upper(), text.capitalize())
    if text in spellings and lower in _WORDS:
        return _WORDS[lower]
    if len(text) > _MAX_DIGITS:
        return text
    if _NUMBER.fullmatch(text):
        return float(text)

    return text


def plain(tree: Tree) -> Any:
    """Return the tree as JSON values."""
    if isinstance(tree, Scalar):
        return tree.value
    if isinstance(tree, YamlItems):
        return list(map(plain, tree.nodes))

    values = {}
    for key, node in tree.nodes.items():
        values[key] = plain(node)

    return values


def line_of(node: Tree, place: Sequence[str | int], line: int) -> int:
    """Return the line of the deepest key of `place` that the tree has; `line` if it has none."""
    for part in place:
        if not isinstance(node, YamlFields) or part not in node.nodes:
            break

        line = node.keys[str(part)]
        node = node.nodes[str(part)]

    return line
