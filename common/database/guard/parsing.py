"""From SQL text to PostgreSQL's own parse tree, for any text whatever, in bounded time and without harm to the process.

The parser is libpg_query (PostgreSQL's grammar, compiled) as postgast ships it. Its JSON tree is used rather than its
protobuf one: it decodes twice as fast into plain dicts, and protobuf refuses trees 100 messages deep, which is only
some fifty chained operators. Two things must be settled before the C code sees the text: it ends at the first NUL, so
that a query could hide behind one, and it recurses once per nested expression, so that a long enough chain overflows
the stack and kills the process.
"""

import json
from dataclasses import dataclass
from typing import Any

from postgast import PgQueryError, scan
from postgast.native import lib

from common.database.guard.facts import words
from common.errors import InvalidSql, ValidationFailed
from common.text import Text

MAX_CHARS = 100_000
MAX_JOINS = 250
MAX_NESTING = 600  # levels of the JSON tree: about 300 chained operators or 120 nested subqueries

# A nesting level costs at least two characters, and 5,000 levels fit the smallest usual stack (2 MB).
_SURELY_SHALLOW_CHARS = 8_000
_MAX_LEXICAL_DEPTH = 4_000
# Tokens that can't nest anything: names, constants, dots, and AND and OR, whose chains PostgreSQL makes flat.
_FLAT_TOKENS = words(
    "IDENT UIDENT FCONST SCONST USCONST BCONST XCONST ICONST PARAM ASCII_46 AND OR TRUE_P FALSE_P NULL_P"
)
_OPENING = frozenset(("ASCII_40", "ASCII_91"))
_CLOSING = frozenset(("ASCII_41", "ASCII_93"))
_SEPARATORS = frozenset(("ASCII_44", "ASCII_59"))
_SET_OPERATIONS = frozenset(("UNION", "INTERSECT", "EXCEPT"))

TOO_LONG = Text(f"SQL过长（上限{MAX_CHARS}个字符）。", f"The SQL is too long (at most {MAX_CHARS} characters).")
TOO_DEEP = Text("SQL嵌套过深，请简化后重试。", "The SQL is nested too deeply; simplify it.")
NOT_TEXT = Text(
    "SQL包含无效字符（NUL或残缺的Unicode）。", "The SQL holds an invalid character (NUL or broken Unicode)."
)

Node = dict[str, Any]


@dataclass(frozen=True)
class Statement:
    """One statement of a text: its kind as the tree names it (`SelectStmt`), its node, and its bytes' end."""

    kind: str
    node: Node
    text: str


def parse(sql: str) -> list[Statement]:
    """The statements in `sql`, in order; empty when it holds only blanks and comments.

    Raises:
        InvalidSql: PostgreSQL's grammar refuses it.
        ValidationFailed: it is too long, nested too deeply or not Unicode text.
    """
    data = _encoded(sql)
    if len(sql) > _SURELY_SHALLOW_CHARS:
        _refuse_deep(sql)
    try:
        tree = json.loads(_json_tree(data))
    except RecursionError as exc:
        raise ValidationFailed(TOO_DEEP) from exc
    return [_statement(raw, data) for raw in tree.get("stmts", ())]


def _encoded(sql: str) -> bytes:
    if len(sql) > MAX_CHARS:
        raise ValidationFailed(TOO_LONG)
    try:
        data = sql.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValidationFailed(NOT_TEXT) from exc
    if b"\0" in data:
        raise ValidationFailed(NOT_TEXT)
    return data


def _refuse_deep(sql: str) -> None:
    """Bounds the depth of the coming tree by PostgreSQL's lexer alone, which does not recurse."""
    try:
        tokens = scan(sql).tokens
    except PgQueryError as exc:
        raise InvalidSql(_first_line(exc.message), sqlstate="42601") from exc
    if tokens and _depth_bound(_token_names(tokens)) > _MAX_LEXICAL_DEPTH:
        raise ValidationFailed(TOO_DEEP)


def _token_names(tokens: Any) -> list[str]:
    names = tokens[0].DESCRIPTOR.fields_by_name["token"].enum_type.values_by_number
    return [names[token.token].name for token in tokens]


@dataclass
class _Level:
    """What one pair of brackets holds so far: a tree can be no deeper than the operators outside any inner bracket
    plus the deepest inner bracket. A comma starts afresh, except for the chain of set operations."""

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


def _depth_bound(names: list[str]) -> int:
    levels = [_Level()]
    for name in names:
        if name in _FLAT_TOKENS:
            continue
        if name in _OPENING:
            levels.append(_Level())
        elif name in _CLOSING and len(levels) > 1:
            depth = levels.pop().depth()
            levels[-1].inner = max(levels[-1].inner, depth)
        elif name in _SEPARATORS:
            levels[-1].end_segment()
        elif name in _SET_OPERATIONS:
            levels[-1].chain += 1
        else:
            levels[-1].operators += 1
    return sum(level.depth() for level in levels)


def _json_tree(data: bytes) -> str:
    result = lib.pg_query_parse(data)
    try:
        if result.error:
            error = result.error.contents
            message = (error.message or b"syntax error").decode("utf-8", "replace")
            raise InvalidSql(_first_line(message), sqlstate="42601", position=error.cursorpos or None)
        # Escapes such as E'\xff' can put bytes into constants that are not UTF-8; the server will refuse them.
        text: str = result.parse_tree.decode("utf-8", "replace")
        return text
    finally:
        lib.pg_query_free_parse_result(result)


def _statement(raw: Node, data: bytes) -> Statement:
    ((kind, node),) = raw["stmt"].items()
    length = raw.get("stmt_len", 0)
    end = raw.get("stmt_location", 0) + length if length else len(data)
    return Statement(kind, node, data[:end].decode("utf-8"))


def _first_line(message: str) -> str:
    return message.splitlines()[0] if message else "syntax error"
