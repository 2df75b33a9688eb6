"""Judges which XPaths may be evaluated.

libxml obeys neither timeouts nor `pg_terminate_backend`, and `DROP DATABASE` waits for it. A path within a predicate is
evaluated for every node, and so is a second `//` for every node that the first one found: five of them take years. The
paths that are allowed visit each node of the document a bounded number of times: plain steps, at most one `//`, and
predicates about the node itself, its attributes or its direct children.
"""

import re

FUNCTIONS = frozenset(("xpath", "xpath_exists", "xmlexists"))
"""Functions whose first argument is a path; XMLTABLE has a syntax of its own."""
MAX_PATH_CHARS = 500
MAX_DOCUMENT_CHARS = 50_000  # libxml compares all found nodes to remove duplicates: half a second for this length

_NAME = r"(?:[^\W\d][\w.\-]*:)?(?:[^\W\d][\w.\-]*|\*)"
_LITERAL = r"""(?:'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?)"""
_OPERAND = rf"(?:@?{_NAME}|text\(\)|position\(\)|last\(\)|\.)"
_CONDITION = (
    rf"(?:{_OPERAND}(?:\s*(?:=|!=|<=?|>=?)\s*{_LITERAL})?|\d+"
    rf"|(?:contains|starts-with)\(\s*{_OPERAND}\s*,\s*{_LITERAL}\s*\))"
)
_PREDICATE = rf"\[\s*{_CONDITION}(?:\s+(?:and|or)\s+{_CONDITION})*\s*\]"
_STEP = rf"(?:(?:@?{_NAME}|text\(\)|node\(\))(?:{_PREDICATE})*)"
# `..` is allowed only at the beginning: a path that goes down and up again multiplies the nodes.
_PATH = rf"(?:\.|(?:\.\./)*\.\.|(?:(?:\.\./)*|\.?//?)(?:{_STEP}(?://?{_STEP})*)?)"
_SUMMARY = "count|sum|string|number|boolean|not|name|local-name|string-length|normalize-space"
_WHOLE = re.compile(rf"\s*(?:(?:{_SUMMARY})\(\s*{_PATH}\s*\)|{_PATH}(?:\s*\|\s*{_PATH})?)\s*")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


def is_plain(path: str) -> bool:
    """Whether evaluating the path takes time in proportion to the document."""
    if len(path) > MAX_PATH_CHARS or not _WHOLE.fullmatch(path):
        return False
    return all(part.count("//") <= 1 for part in _QUOTED.sub("''", path).split("|"))
