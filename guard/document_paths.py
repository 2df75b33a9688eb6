"""Judges which XPaths and JSON paths may be evaluated, by how their time grows with the document.

XPaths: libxml obeys neither timeouts nor `pg_terminate_backend`, and `DROP DATABASE` waits for it.
A path within a predicate is evaluated for every node, and so is a second `//` for every node that
the first one found: five of them take years. The paths that are allowed visit each node of the
document a bounded number of times: plain steps, at most one `//`, and predicates about the node
itself, its attributes or its direct children.

JSON paths: PostgreSQL compares every value on the left of a comparison with every value on its
right, and evaluates a filter for every value before it; no timeout is looked at between them. So a
path counts as linear only if it visits each value of the document a bounded number of times: plain
steps, one `**`, and filters that compare what is below a value with constants.
"""

import re
from dataclasses import dataclass, field

_MAX_PATH_CHARS = 500

# ------------------------------------------------------------------------------
# XPaths

XPATH_FUNCTIONS = frozenset(("xpath", "xpath_exists", "xmlexists"))
"""Functions whose first argument is a path; XMLTABLE has a syntax of its own."""
MAX_XML_CHARS = (
    50_000  # libxml compares all found nodes to remove duplicates: half a second for this length
)

_XPATH_NAME = r"(?:[^\W\d][\w.\-]*:)?(?:[^\W\d][\w.\-]*|\*)"
_XPATH_LITERAL = r"""(?:'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?)"""
_OPERAND = rf"(?:@?{_XPATH_NAME}|text\(\)|position\(\)|last\(\)|\.)"
_CONDITION = (
    rf"(?:{_OPERAND}(?:\s*(?:=|!=|<=?|>=?)\s*{_XPATH_LITERAL})?|\d+"
    rf"|(?:contains|starts-with)\(\s*{_OPERAND}\s*,\s*{_XPATH_LITERAL}\s*\))"
)
_PREDICATE = rf"\[\s*{_CONDITION}(?:\s+(?:and|or)\s+{_CONDITION})*\s*\]"
_STEP = rf"(?:(?:@?{_XPATH_NAME}|text\(\)|node\(\))(?:{_PREDICATE})*)"
# `..` is allowed only at the beginning: a path that goes down and up again multiplies the nodes.
_PATH = rf"(?:\.|(?:\.\./)*\.\.|(?:(?:\.\./)*|\.?//?)(?:{_STEP}(?://?{_STEP})*)?)"
_SUMMARY = "count|sum|string|number|boolean|not|name|local-name|string-length|normalize-space"
_XPATH = re.compile(
    rf"\A\s*+(?:(?:{_SUMMARY})\(\s*+{_PATH}\s*+\)|{_PATH}(?:\s*+\|\s*+{_PATH})?)\s*+"
)
_XPATH_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


def is_plain_xpath(path: str) -> bool:
    """Tell whether evaluating the path takes time in proportion to the document."""
    if len(path) > _MAX_PATH_CHARS:
        return False
    if not _XPATH.fullmatch(path):
        return False

    unquoted = _XPATH_QUOTED.sub("''", path)
    paths = unquoted.split("|")
    deep_steps = [one.count("//") for one in paths]
    return max(deep_steps) <= 1


# ------------------------------------------------------------------------------
# JSON paths

JSON_PATH_FUNCTIONS = frozenset(
    f"jsonb_path_{kind}{zone}"
    for kind in ("exists", "match", "query", "query_array", "query_first")
    for zone in ("", "_tz")
)
"""Functions whose second argument is a path."""
JSON_PATH_OPERATORS = frozenset(("@?", "@@"))

_JSON_MARK = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|\$\w++|[^\W\d]\w*+|\d[\d.eE]*|\*\*|==|!=|<>|<=|>=|&&|\|\||\S', re.DOTALL
)
_JSON_COMPARISONS = frozenset(("==", "!=", "<>", "<", "<=", ">", ">="))
_JSON_WORDS = frozenset(("true", "false", "null"))


@dataclass
class _JsonPath:
    """Counts the parts of a JSON path, as far as its marks are read.

    Attributes:
        brackets: those that are open, as `?` for a filter's, `(` and `[`.
        deep, lists, pairs: how many `**` or `.keyvalue()`, subscripts with several places, and
            comparisons of two computed sides there are.
        roots: how deep in filters the document itself is named.
        is_endless: whether something may be evaluated more often than can be told.
    """

    brackets: list[str] = field(default_factory=list)
    deep: int = 0
    lists: int = 0
    pairs: int = 0
    roots: int = 0
    is_endless: bool = False

    def read(self, before: str, mark: str) -> None:
        """Look at one mark after another."""
        if mark in ("(", "["):
            is_filter = before == "?"
            if is_filter:
                mark = "?"

            self.brackets.append(mark)
        elif mark in (")", "]"):
            if self.brackets:
                self.brackets.pop()
        elif mark == ",":
            self.lists += 1
        elif mark in ("**", "keyvalue"):
            self.deep += 1
            self.is_endless |= "?" in self.brackets
        elif mark in ("$", "@"):
            self.is_endless |= "[" in self.brackets
            if mark == "$":
                self.roots = max(self.roots, self.brackets.count("?"))

    @property
    def degree(self) -> int | None:
        """Return the power of the document's length that evaluating takes; None: no one knows."""
        is_nested = max(self.lists, self.deep, self.roots) > 1
        if self.is_endless:
            return None
        if is_nested:
            return None

        is_squared = self.pairs > 0 or self.roots > 0
        if not is_squared:
            return 1
        if self.deep:
            return None

        return 2


def json_path_degree(path: str) -> int | None:
    """Return the power of the document's length that evaluating the path takes; None: unknown."""
    if len(path) > _MAX_PATH_CHARS:
        return None

    marks = ["", *_JSON_MARK.findall(path), "", ""]
    parsed = _JsonPath()
    for place in range(1, len(marks) - 2):
        parsed.read(marks[place - 1], marks[place])
        is_comparison = marks[place] in _JSON_COMPARISONS
        if not is_comparison:
            continue
        if not _has_constant_side(marks, place):
            parsed.pairs += 1

    return parsed.degree


def _has_constant_side(marks: list[str], place: int) -> bool:
    """Tell whether one side of the comparison at `place` is a single value: a constant ends or
    begins it.
    """
    after = place + 1
    is_signed = marks[after] in ("-", "+")
    if is_signed:
        after += 1
    if _is_constant(marks[after]):
        return True
    if not _is_constant(marks[place - 1]):
        return False

    return marks[max(place - 2, 0)] != "."


def _is_constant(mark: str) -> bool:
    """Tell whether a token of a JSON path is a literal or a variable: `$` alone is the document."""
    if mark in _JSON_WORDS:
        return True

    first = mark[:1]
    if first == "$":
        return mark != "$"
    if first == '"':
        return True

    return first.isdigit()
