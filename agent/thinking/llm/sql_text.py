"""Judges by PostgreSQL's own parser whether a piece of a model's reply is SQL, and removes typeset characters from it.

Grammar alone is not enough: `Select one from the list` and `Table stores` are sentences and valid statements.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import postgast
from google.protobuf.message import DecodeError

MAX_PARSED_CHARS = 20_000  # longer text is not parsed: the parser recurses, and no honest statement is longer
_PARSE_BUDGET = 200_000  # characters parsed for one reply, about 0.1 s
STATEMENT_WORDS = (
    "SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER|CREATE|TRUNCATE|GRANT|REVOKE|COPY|EXPLAIN|CALL|DO|"
    "SET|BEGIN|COMMIT"
)
_COMMENT = r"--[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/"
_FIRST_WORD = re.compile(rf"(?:\s|\(|{_COMMENT})*+({STATEMENT_WORDS})\b", re.IGNORECASE)
_ONLY_COMMENTS = re.compile(rf"(?:[\s;]|{_COMMENT})*+\Z")
# Nodes that a sentence in words never parses to: operators, calls, casts, joins, `*`, subqueries.
_EVIDENCE = ("A_Expr", "FuncCall", "A_Star", "TypeCast", "JoinExpr", "SubLink", "WithClause", "CaseExpr", "WindowDef")

# Text that must not be changed: literals, quoted names, comments.
_OPAQUE = re.compile(  # an unclosed one reaches to the end, which keeps the search linear
    r"\b[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)|'(?:[^']|'')*+(?:'|\Z)|\"(?:[^\"]|\"\")*+(?:\"|\Z)"
    r"|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=tag)|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)
# Refused, because PostgreSQL takes a fence for an operator (`1 ``` this`) and a Chinese sentence for a name.
_FOREIGN = re.compile("[`。！？]")
_BLANK = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # they look like spaces; PostgreSQL takes them for letters
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff"
_TYPESET = re.compile(f"[{_BLANK}{_INVISIBLE}；]")
_TYPED = str.maketrans({**dict.fromkeys(_INVISIBLE), "；": ";"})
_ODD_BLANK = re.compile(f"[{_BLANK}]")
EDGES = f" \t\r\n\f\v{_INVISIBLE}\u00a0\u3000"


def in_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` applied to what is neither literal nor quoted name nor comment."""
    parts, position = [], 0
    for opaque in _OPAQUE.finditer(text):
        parts += [change(text[position : opaque.start()]), opaque[0]]
        position = opaque.end()
    return "".join([*parts, change(text[position:])])


def tidy(text: str) -> str:
    """`text` with invisible characters removed and blanks and semicolons made plain, outside of literals."""
    text = text.strip(EDGES)
    if len(text) > MAX_PARSED_CHARS or not _TYPESET.search(text):
        return text
    return in_code(text, lambda code: _ODD_BLANK.sub(" ", code.translate(_TYPED))).strip(EDGES)


def dedented(text: str, width: int) -> str:
    """`text` without the first `width` blanks of its lines, if all lines that are not empty have as many."""
    lines = text.split("\n")
    if width and all(not line.strip() or not line[:width].strip(" \t") for line in lines):
        return "\n".join(line[width:] for line in lines)
    return text


def first_word(text: str) -> str:
    """The keyword that `text` begins with, if a statement can begin with it; else empty."""
    found = _FIRST_WORD.match(text)
    return found[1] if found else ""


def is_blank(text: str) -> bool:
    """Whether there is nothing but comments and semicolons."""
    return bool(_ONLY_COMMENTS.match(text))


class Statements(NamedTuple):
    """The parse of a text that is SQL; `trees` is None when they are nested too deeply to decode."""

    text: str
    trees: list[Any] | None

    @property
    def is_query(self) -> bool:
        """One SELECT (or VALUES, or TABLE)."""
        kinds = ["select_stmt"] if self.trees is None else [tree.stmt.WhichOneof("node") for tree in self.trees]
        return kinds == ["select_stmt"]

    @property
    def is_ended(self) -> bool:
        """Whether a semicolon says that the statement is complete."""
        return any(tree.stmt_len > 0 for tree in self.trees or ())

    def is_beyond_doubt(self, known_tables: frozenset[str]) -> bool:
        """Whether it can't be a sentence: its first word is in capitals, or it has `_EVIDENCE` or reads a known table.

        A query without FROM that names columns can't run and is taken for a sentence (`Select one`).
        """
        word = first_word(self.text)
        if self.trees is None:
            return word.isupper()
        reads = self.reads
        if not reads and (self._has("ColumnRef") or not self._has("ResTarget", "List")):
            return not self.is_query and word.isupper()
        if word.isupper() or not reads:
            return word.isupper() or self.is_query
        if word.lower() == "table":  # `Table stores`
            return False
        return not known_tables.isdisjoint(self.tables) or (self.is_query and self._has(*_EVIDENCE))

    @property
    def reads(self) -> bool:
        """Whether it has a FROM clause."""
        return any(node.from_clause for node in self._nodes("SelectStmt"))

    @property
    def tables(self) -> set[str]:
        """Names of the tables it reads, in lower case."""
        return {node.relname.lower() for node in self._nodes("RangeVar")}

    def _has(self, *kinds: str) -> bool:
        return any(True for kind in kinds for _ in self._nodes(kind))

    def _nodes(self, kind: str) -> Iterator[Any]:
        for tree in self.trees or ():
            yield from postgast.find_nodes(tree, getattr(postgast.pg_query_pb2, kind))

    def shortened(self) -> str:
        """The text up to the end of its statement, if it has only one: without the semicolon and what follows."""
        text = self.text
        if self.trees is None:
            return text.strip(EDGES + ";")
        if self.trees and len(self.trees) == 1 and self.trees[0].stmt_len:
            tree = self.trees[0]
            text = text.encode()[: tree.stmt_location + tree.stmt_len].decode()
        return text.strip(EDGES)


class Parser:
    """Parses the pieces of one reply within a budget, because hundreds of places in a reply may look like SQL."""

    def __init__(self) -> None:
        self._room = _PARSE_BUDGET

    def parse(self, text: str) -> Statements | None:
        """None when it is not SQL, only comments, or over the budget."""
        if not text.strip() or "\0" in text or len(text) > min(MAX_PARSED_CHARS, self._room):
            return None
        if _FOREIGN.search(text) and _FOREIGN.search(_OPAQUE.sub(" ", text)):
            return None
        self._room -= len(text)
        try:
            trees = list(postgast.parse(text).stmts)
        except (postgast.PgQueryError, UnicodeEncodeError):
            return None
        except DecodeError:  # valid, but nested too deeply for the bindings: the guard will say so
            return Statements(text, None)
        return Statements(text, trees) if trees else None
