"""Judges by PostgreSQL's own parser whether a piece of a model's reply is SQL.

Grammar alone is not enough: `Select one from the list` and `Table stores` are sentences and valid
statements.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import postgast
from google.protobuf.message import DecodeError

# Longer text is not parsed: the parser recurses, and no honest statement is longer.
MAX_PARSED_CHARS = 20_000
_PARSE_BUDGET = 200_000  # characters parsed for one reply, about 0.1 s
STATEMENT_WORDS = (
    "SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER|CREATE|TRUNCATE|GRANT|REVOKE"
    "|COPY|EXPLAIN|CALL|DO|SET|BEGIN|COMMIT"
)
_COMMENT = r"--[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/"
_FIRST_WORD = re.compile(rf"\A(?:\s|\(|{_COMMENT})*+({STATEMENT_WORDS})\b", re.IGNORECASE)
_ONLY_COMMENTS = re.compile(rf"\A(?:[\s;]|{_COMMENT})*+\Z")
# Nodes that a sentence in words never parses to: operators, calls, casts, joins, `*`, subqueries.
_EVIDENCE = (
    "A_Expr",
    "FuncCall",
    "A_Star",
    "TypeCast",
    "JoinExpr",
    "SubLink",
    "WithClause",
    "CaseExpr",
    "WindowDef",
)

# Text that must not be changed: literals, quoted names, comments.
_OPAQUE = re.compile(  # an unclosed one reaches to the end, which keeps the search linear
    r"\b[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)|'(?:[^']|'')*+(?:'|\Z)|\"(?:[^\"]|\"\")*+(?:\"|\Z)"
    r"|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=tag)|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)
# Refused, because PostgreSQL takes a fence for an operator (`1 ``` this`) and a Chinese sentence
# for a name.
_FOREIGN = re.compile("[`。！？]")
# They look like spaces; PostgreSQL takes them for letters
_BLANK = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff"
_TYPESET = re.compile(f"[{_BLANK}{_INVISIBLE}；]")
_TYPED = str.maketrans({**dict.fromkeys(_INVISIBLE), "；": ";"})
_ODD_BLANK = re.compile(f"[{_BLANK}]")
EDGES = f" \t\r\n\f\v{_INVISIBLE}\u00a0\u3000"


def in_code(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the parts of `text` that are no literal, quoted name or comment."""
    parts: list[str] = []
    position = 0
    for opaque in _OPAQUE.finditer(text):
        parts += [change(text[position : opaque.start()]), opaque[0]]
        position = opaque.end()

    return "".join([*parts, change(text[position:])])


def tidy(text: str) -> str:
    """Remove invisible characters outside of literals, and make blanks and semicolons plain."""
    text = text.strip(EDGES)
    if len(text) > MAX_PARSED_CHARS or not _TYPESET.search(text):
        return text

    return in_code(text, _plain).strip(EDGES)


def _plain(code: str) -> str:
    return _ODD_BLANK.sub(" ", code.translate(_TYPED))


def dedented(text: str, width: int) -> str:
    """Remove `width` blanks from each line; if a line has fewer, return `text` as it is."""
    if not width:
        return text

    lines = text.split("\n")
    for line in lines:
        if line.strip() and line[:width].strip(" \t"):
            return text

    return "\n".join(line[width:] for line in lines)


def first_word(text: str) -> str:
    """Return the keyword that `text` begins with, if a statement can begin with it; else ""."""
    found = _FIRST_WORD.match(text)
    return found[1] if found else ""


def is_blank(text: str) -> bool:
    """Tell whether there is nothing but comments and semicolons."""
    return bool(_ONLY_COMMENTS.match(text))


def _has_foreign_signs(text: str) -> bool:
    if not _FOREIGN.search(text):
        return False

    return bool(_FOREIGN.search(_OPAQUE.sub(" ", text)))


class Statements(NamedTuple):
    """A parsed text; `trees` is None when they are nested too deeply to decode."""

    text: str
    trees: list[Any] | None

    @property
    def is_query(self) -> bool:
        """Tell whether it is one SELECT, VALUES or TABLE."""
        if self.trees is None:  # nested too deeply to decode; the guard will say so
            return True

        return [tree.stmt.WhichOneof("node") for tree in self.trees] == ["select_stmt"]

    @property
    def is_ended(self) -> bool:
        """Tell whether a semicolon says that the statement is complete."""
        return any(tree.stmt_len > 0 for tree in self.trees or ())

    def is_beyond_doubt(self, known_tables: frozenset[str]) -> bool:
        """Tell whether it can't be a sentence.

        Its first word is in capitals, or it has `_EVIDENCE` or reads a known table. A query
        without FROM that names columns can't run and is taken for a sentence (`Select one`).
        """
        word = first_word(self.text)
        if self.trees is None:
            return word.isupper()
        if not self.reads:
            return self._is_sure_without_tables(word)
        if word.isupper():
            return True
        if word.lower() == "table":  # `Table stores`
            return False
        if not known_tables.isdisjoint(self.tables):
            return True

        return self.is_query and self._has(*_EVIDENCE)

    def _is_sure_without_tables(self, word: str) -> bool:
        has_result = self._has("ResTarget", "List")
        if self._has("ColumnRef") or not has_result:
            return word.isupper() and not self.is_query

        return word.isupper() or self.is_query

    @property
    def reads(self) -> bool:
        """Tell whether it has a FROM clause."""
        return any(node.from_clause for node in self._nodes("SelectStmt"))

    @property
    def tables(self) -> set[str]:
        """Return the names of the tables it reads, in lower case."""
        return {node.relname.lower() for node in self._nodes("RangeVar")}

    def _has(self, *kinds: str) -> bool:
        nodes = chain.from_iterable(map(self._nodes, kinds))
        return next(nodes, None) is not None

    def _nodes(self, kind: str) -> Iterator[Any]:
        for tree in self.trees or ():
            yield from postgast.find_nodes(tree, getattr(postgast.pg_query_pb2, kind))

    def shortened(self) -> str:
        """Return the text without the semicolon and what follows, if it is one statement."""
        if self.trees is None:
            return self.text.strip(EDGES + ";")

        text = self.text
        if len(self.trees) == 1 and self.trees[0].stmt_len:
            tree = self.trees[0]
            text = text.encode()[: tree.stmt_location + tree.stmt_len].decode()

        return text.strip(EDGES)


class Parser:
    """Parses the pieces of one reply within a budget: hundreds of them may look like SQL."""

    def __init__(self) -> None:
        self._budget = _PARSE_BUDGET

    def parse(self, text: str) -> Statements | None:
        """Return the parse; None when it is not SQL, only comments, or over the budget."""
        if len(text) > min(MAX_PARSED_CHARS, self._budget):
            return None
        if not text.strip() or "\0" in text or _has_foreign_signs(text):
            return None

        self._budget -= len(text)
        try:
            trees = list(postgast.parse(text).stmts)
        except (postgast.PgQueryError, UnicodeEncodeError):
            return None
        except DecodeError:  # valid, but nested too deeply for the bindings: the guard will say so
            return Statements(text, None)

        return Statements(text, trees) if trees else None
