"""Parses any SQL text into PostgreSQL's own parse tree, in bounded time and without harm to the
process.

The parser is libpg_query (PostgreSQL's grammar, compiled) as postgast ships it. We take its JSON
tree and not its protobuf tree: JSON decodes twice as fast into plain dicts, and protobuf refuses
trees of more than 100 levels, which is only some fifty chained operators. Three dangers of the C
code are checked before it sees the text. It stops at the first NUL, so a query could hide behind
one. It reads a run of operator characters again for every token in it, so 60,000 of them take
seconds. And it recurses once per nested expression, so a long chain overflows the stack and kills
the process.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import postgast
from postgast import PgQueryError, scan
from postgast.native import lib

from common.errors import InvalidSql, ValidationFailed
from common.text import Text
from common.word_files import words

MAX_CHARS = 100_000
MAX_TABLES = 1_000  # tables of a statement
MAX_NESTING = (
    600  # levels of the JSON tree, not counting chains of operators: about 120 nested subqueries
)
QUICK_CHARS = 500  # any text of this length is judged within 50 ms

# A run of n characters takes n² times 5 ns in libpg_query, and as much in the server: 50 ms for all
# runs of a text.
_MAX_RUN_SQUARES = 10_000_000
_OPERATOR_RUN = re.compile(r"[-+*/<>=~!@#%^&|`?]{32,}")
# A decoded tree takes ten times the memory of its JSON. Ordinary texts of 100,000 characters make 1
# to 2.5 MB of JSON.
_MAX_TREE_BYTES = 3_000_000
# Decoding holds the interpreter's lock; after this many nodes it lets other threads run.
_NODES_AT_A_TIME = 5_000
_BIG_TREE_CHARS = 200_000
_MAX_MESSAGE_CHARS = 300

# A nested level takes at least two characters, and 5,000 levels fit into the smallest usual stack
# (2 MB).
_SURELY_SHALLOW_CHARS = 8_000
_MAX_LEXICAL_DEPTH = 4_000
# Tokens that nest nothing: names, constants, dots; AND and OR, because PostgreSQL makes their
# chains flat.
_FLAT_TOKENS = words(
    "IDENT UIDENT FCONST SCONST USCONST BCONST XCONST ICONST PARAM ASCII_46 "
    "AND OR TRUE_P FALSE_P NULL_P"
)
COMMENTS = frozenset(("SQL_COMMENT", "C_COMMENT"))
_OPENING = frozenset(("ASCII_40", "ASCII_91"))
_CLOSING = frozenset(("ASCII_41", "ASCII_93"))
_SEPARATORS = frozenset(("ASCII_44", "ASCII_59"))
_BRANCHES = frozenset(("WHEN", "THEN", "ELSE"))
_CASE_WORDS = _BRANCHES | {"CASE", "END_P"}
_BEFORE_NAMES = frozenset(("AS", "ASCII_46"))  # after these, CASE, WHEN or END is a name
_CASE_DEPTH = 4  # levels: a CASE and its WHEN are nodes and lists
_SET_OPERATIONS = frozenset(("UNION", "INTERSECT", "EXCEPT"))

TOO_LONG = Text(
    f"SQL过长（上限{MAX_CHARS}个字符）。", f"The SQL is too long (at most {MAX_CHARS} characters)."
)
TOO_DEEP = Text("SQL嵌套过深，请简化后重试。", "The SQL is nested too deeply; simplify it.")
TOO_MANY_PARTS = Text(
    "SQL的组成部分过多，请简化后重试。", "The SQL has too many parts; simplify it."
)
_RUN_TOO_LONG = Text(
    "SQL中连续的运算符字符过多。", "The SQL holds too long a run of operator characters."
)
NOT_TEXT = Text(
    "SQL包含无效字符（NUL或残缺的Unicode）。",
    "The SQL holds an invalid character (NUL or broken Unicode).",
)

Node = dict[str, Any]


def nodes(value: Any) -> Iterator[tuple[str, Node]]:
    """Yield all nodes below `value` with their kinds or the names of their fields."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            for key, child in each.items():
                if isinstance(child, dict):
                    yield key, child

            pending.extend(each.values())


@dataclass(frozen=True)
class ParsedStatement:
    """One statement of a text: its kind as the tree names it (`SelectStmt`), its node, and its
    place in bytes.
    """

    kind: str
    node: Node
    data: bytes
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the text up to the end of this statement, which must be the text's only one.

        Semicolons before it (`;SELECT 1`) become blanks, so that positions stay the same.
        """
        before = self.data[: self.start].replace(b";", b" ")
        statement = self.data[self.start : self.end]
        return (before + statement).decode("utf-8")


def parse(sql: str, most_chars: int = MAX_CHARS) -> list[ParsedStatement]:
    """Return the statements in `sql`, in order; empty when it holds only blanks and comments.

    Args:
        most_chars: how long the text may be; more than usual may be taken from those who make it
            themselves.

    Raises:
        InvalidSql: PostgreSQL's grammar refuses it.
        ValidationFailed: it is too long, nested too deeply, has too many parts or is not Unicode
            text.
    """
    data = _encoded(sql, most_chars)
    if len(sql) ** 2 > _MAX_RUN_SQUARES:
        _refuse_long_runs(sql)
    if len(sql) > _SURELY_SHALLOW_CHARS:
        _refuse_deep(sql)

    tree = _decoded(_json_tree(data))
    statements = []
    for raw in tree.get("stmts", ()):
        statement = _statement(raw, data)
        statements.append(statement)

    return statements


def fingerprint(sql: str) -> str:
    """Return what statements have in common that differ in their constants alone.

    Args:
        sql: has been parsed before, in this or an earlier process.

    Raises:
        InvalidSql, ValidationFailed: as `parse`.
    """
    parse(sql)  # refuses what would harm the process
    return str(postgast.fingerprint(sql).hex)


def without_literals(sql: str) -> str:
    """Return the statement with `$1`, `$2` … for its constants; `?` if it can't be parsed."""
    try:
        parse(sql)
        return str(postgast.normalize(sql))
    except (InvalidSql, ValidationFailed, PgQueryError):
        return "?"


def _encoded(sql: str, most_chars: int) -> bytes:
    if len(sql) > most_chars:
        raise ValidationFailed(TOO_LONG)

    try:
        data = sql.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValidationFailed(NOT_TEXT) from exc

    if b"\0" in data:
        raise ValidationFailed(NOT_TEXT)

    return data


def _refuse_long_runs(sql: str) -> None:
    runs = _OPERATOR_RUN.findall(sql)
    squares = sum(len(run) ** 2 for run in runs)
    if squares > _MAX_RUN_SQUARES:
        raise ValidationFailed(_RUN_TOO_LONG)


def _refuse_deep(sql: str) -> None:
    """Refuse texts whose tree may be too deep, by PostgreSQL's lexer, which does not recurse."""
    try:
        tokens = scan(sql).tokens
    except PgQueryError as exc:
        raise InvalidSql(_first_line(exc.message), sqlstate="42601") from exc

    if not tokens:
        return
    if _depth_bound(token_names(tokens)) > _MAX_LEXICAL_DEPTH:
        raise ValidationFailed(TOO_DEEP)


def token_names(tokens: Any) -> list[str]:
    """Return libpg_query's name of each token; empty for characters that no SQL has, as `{`."""
    if not tokens:
        return []

    field = tokens[0].DESCRIPTOR.fields_by_name["token"]
    kinds = field.enum_type.values_by_number
    names = []
    for token in tokens:
        kind = kinds.get(token.token)
        name = kind.name if kind is not None else ""
        names.append(name)

    return names


@dataclass
class _Level:
    """The tokens so far of one pair of brackets, or of CASE and END.

    Its tree can be no deeper than the number of operators outside inner pairs plus the depth of the
    deepest inner pair. The count starts again with each segment, at a comma and at a branch of a
    CASE; the chain of set operations goes on.

    Attributes:
        chain: the number of set operations.
        operators, inner: operators of the segment, and the depth of its deepest inner pair.
        deepest: the depth of the deepest segment before.
    """

    is_case: bool = False
    chain: int = 0
    operators: int = 0
    inner: int = 0
    deepest: int = 0

    def end_segment(self) -> None:
        self.deepest = max(self.deepest, self.operators + self.inner)
        self.operators = self.inner = 0

    def depth(self) -> int:
        self.end_segment()
        return self.chain + self.deepest + 1


class _DepthBound:
    """An upper bound for the depth of the tree of any text that the grammar accepts."""

    def __init__(self) -> None:
        self._levels = [_Level()]
        self._follows_as_or_dot = False

    def read(self, name: str) -> None:
        """Count the text's next token, given by its name."""
        if name in COMMENTS:
            return

        is_column_name = self._follows_as_or_dot and name in _CASE_WORDS
        self._follows_as_or_dot = name in _BEFORE_NAMES
        if is_column_name:
            return
        if name not in _FLAT_TOKENS:
            self._count(name)

    def _count(self, name: str) -> None:
        level = self._levels[-1]
        if name in _OPENING:
            self._levels.append(_Level())
        elif name in _CLOSING:
            self._close_brackets()
        elif name == "CASE":
            level.operators += _CASE_DEPTH
            self._levels.append(_Level(is_case=True))
        elif name in _SEPARATORS:
            level.end_segment()
        elif name in _SET_OPERATIONS:
            level.chain += 1
        elif level.is_case:
            self._count_in_case(level, name)
        else:
            level.operators += 1

    def _count_in_case(self, level: _Level, name: str) -> None:
        """Count a token between CASE and END, outside inner pairs."""
        if name == "END_P":
            self._end_level()
        elif name in _BRANCHES:
            level.end_segment()
        else:
            level.operators += 1

    def _close_brackets(self) -> None:
        """End a pair of brackets, and with it every CASE that has no END: it was a name."""
        while self._levels[-1].is_case:
            self._end_level()

        if len(self._levels) > 1:
            self._end_level()

    def _end_level(self) -> None:
        """End the innermost level; the level around it keeps its depth."""
        depth = self._levels.pop().depth()
        self._levels[-1].inner = max(self._levels[-1].inner, depth)

    def total(self) -> int:
        depths = [level.depth() for level in self._levels]
        return sum(depths)


def _depth_bound(names: list[str]) -> int:
    bound = _DepthBound()
    for name in names:
        bound.read(name)

    return bound.total()


def _json_tree(data: bytes) -> str:
    result = lib.pg_query_parse(data)
    try:
        if result.error:
            error = result.error.contents
            message = (error.message or b"syntax error").decode("utf-8", "replace")
            raise InvalidSql(
                _first_line(message), sqlstate="42601", position=error.cursorpos or None
            )

        # Escapes such as E'\xff' can put bytes into constants that are not UTF-8; the server will
        # refuse them.
        if len(result.parse_tree) > _MAX_TREE_BYTES:
            raise ValidationFailed(TOO_MANY_PARTS)

        text: str = result.parse_tree.decode("utf-8", "replace")
        return text
    finally:
        lib.pg_query_free_parse_result(result)


def _decoded(text: str) -> Node:
    """Decode the tree. Python's decoder is fast, but fails at a chain of 400 operators."""
    hook = None
    if len(text) > _BIG_TREE_CHARS:
        hook = _Breaks().node

    try:
        tree: Node = json.loads(text, object_hook=hook)
    except RecursionError:
        tree = _decoded_flat(text)

    return tree


class _Breaks:
    """Lets other threads run after every `_NODES_AT_A_TIME` nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def node(self, node: Node) -> Node:
        self.nodes += 1
        if self.nodes % _NODES_AT_A_TIME == 0:
            time.sleep(0)

        return node


_JSON_TOKEN = re.compile(r'[\[{\]}]|"([^"\\]*(?:\\.[^"\\]*)*)"(:?)|[^\s\[\]{},:"]+')


_BEGUN: Mapping[str, Callable[[], Any]] = {"[": list, "{": dict}


def _decoded_flat(text: str) -> Node:
    """Decode a tree of any depth: a stack of what was begun stands in for recursion."""
    outermost: list[Any] = []
    stack: list[Any] = [outermost]
    names: list[str | None] = [None]
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if token[2]:
            names[-1] = token[1]
            continue

        if mark in ("]", "}"):
            stack.pop()
            names.pop()
            continue

        if mark not in _BEGUN:
            _put(stack[-1], names[-1], json.loads(mark))
            continue

        begun = _BEGUN[mark]()
        _put(stack[-1], names[-1], begun)
        stack.append(begun)
        names.append(None)

    tree: Node = outermost[0]
    return tree


def _put(container: Any, name: str | None, value: Any) -> None:
    if isinstance(container, dict):
        container[name] = value
    else:
        container.append(value)


def _statement(raw: Node, data: bytes) -> ParsedStatement:
    ((kind, node),) = raw["stmt"].items()
    start = raw.get("stmt_location", 0)
    end = len(data)
    if "stmt_len" in raw:  # left out where the statement reaches to the end
        end = start + raw["stmt_len"]

    return ParsedStatement(kind, node, data, start, end)


def _first_line(message: str) -> str:
    """Return the first line of PostgreSQL's message, cut: it may quote the rest of the text."""
    if not message:
        return "syntax error"

    first, *_ = message.splitlines()
    return first[:_MAX_MESSAGE_CHARS]
