"""Cuts the tokens of a request into clauses and says of which kind each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etl.clauses.clause_tokens import Token

ClauseKind = Literal[
    "source",
    "join",
    "matched",
    "filter",
    "exclude",
    "aggregate",
    "dedup",
    "newest",
    "running",
    "previous",
    "top",
    "spine",
    "sink",
    "impossible",
    "unread",
]


@dataclass(frozen=True)
class Clause:
    """A part of the request that says one thing."""

    kind: ClauseKind
    tokens: tuple[Token, ...]


_FIGURES = ("sum", "avg", "max", "min", "median", "count", "distinct", "rows")
_GROUPS = ("by", "bucket", "each")
_COMPUTING = ("aggregate", "running", "previous", "dedup", "top", *_FIGURES)
# Words that begin a clause wherever they stand.
_OPENERS = ("sink", "exclude", "fill")
# Words that begin one when the clause before has its verb already.
_OPENERS_BEHIND_VERB = ("keep", "join", "left", "inner", "aggregate", "running", "dedup", "matched")
_VERBS = (
    *_OPENERS,
    "keep",
    "join",
    "left",
    "inner",
    "matched",
    "aggregate",
    "running",
    "previous",
    "dedup",
    "top",
)
# The first of these that a clause has says what it is.
_KINDS: tuple[tuple[str, ClauseKind], ...] = (
    ("sink", "sink"),
    ("impossible", "impossible"),
    ("matched", "matched"),
    ("left", "join"),
    ("inner", "join"),
    ("join", "join"),
    ("fill", "spine"),
    ("top", "top"),
    ("running", "running"),
    ("previous", "previous"),
    ("exclude", "exclude"),
    ("keep", "filter"),
    ("having", "filter"),
)


def clauses_of(tokens: Sequence[Token]) -> list[Clause]:
    """Return the clauses of a request in order.

    A part without a verb of its own goes on with the clause before it: "sum of amount, number of
    orders".
    """
    clauses: list[Clause] = []
    for part in _parts(tokens):
        previous = clauses[-1] if clauses else None
        kind = _kind(part, previous)
        if kind == "unread" and previous is not None and previous.kind not in ("sink", "spine"):
            clauses[-1] = Clause(previous.kind, (*previous.tokens, *part))
        else:
            clauses.append(Clause(kind, part))
    return clauses


def _parts(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    parts: list[list[Token]] = [[]]
    for index, token in enumerate(tokens):
        part = parts[-1]
        if token.is_break or token.means("then"):
            parts.append([])
            continue
        if part and _begins_clause(tokens, index, part):
            parts.append([])
        parts[-1].append(token)
    trimmed = [tuple(_without_edges(part)) for part in parts]
    return [part for part in trimmed if part]


def _begins_clause(tokens: Sequence[Token], index: int, part: Sequence[Token]) -> bool:
    token = tokens[index]
    if part[0].means("sink"):
        return _ends_target(tokens, index, part)
    if token.means(*_OPENERS):
        return not (token.means("fill") and any(one.means("empty") for one in part))
    has_verb = any(one.means(*_VERBS) for one in part)
    if token.means("keep") and any(one.means("aggregate", *_FIGURES) for one in part):
        return True
    if not has_verb:
        return False
    if token.means(*_OPENERS_BEHIND_VERB) and not _goes_on(part, token):
        return True
    return token.means(*_GROUPS) and _is_verb_done(part) and _computes(tokens, index)


def _goes_on(part: Sequence[Token], token: Token) -> bool:
    """Tell whether the word belongs to the clause: "where" behind "exclude", 去重 in 去重用户数."""
    if token.means("keep"):
        return part[-1].names and any(one.means("exclude") for one in part[:2])
    if token.means("dedup", "aggregate", "running"):
        return any(one.means("aggregate", "running") for one in part)
    return token.means("join") and any(one.means("left", "inner") for one in part)


def _is_verb_done(part: Sequence[Token]) -> bool:
    return any(one.means("join", "left", "inner", "keep", "exclude") for one in part)


def _computes(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a figure or a verb that computes follows in the same part."""
    for token in tokens[index + 1 :]:
        if token.is_break or token.means("then", *_OPENERS):
            return False
        if token.means("join", "left", "inner"):
            return False
        if token.means(*_COMPUTING):
            return True
    return False


def _ends_target(tokens: Sequence[Token], index: int, part: Sequence[Token]) -> bool:
    """Tell whether the name behind a sink's word is over: one written without blanks is a word."""
    named = [token for token in part[1:] if not token.means("skipped", "table", "noise")]
    if not named or not named[0].text.isascii():
        return False
    return tokens[index].is_apart and not tokens[index].means("table")


def _without_edges(part: list[Token]) -> list[Token]:
    """Leave out words that only tie the part to its neighbours."""
    while part and part[0].means("and"):
        part = part[1:]
    while part and part[-1].means("and"):
        part = part[:-1]
    return part


def _kind(part: Sequence[Token], previous: Clause | None) -> ClauseKind:
    is_dedup_before = previous is not None and previous.kind == "dedup"
    if is_dedup_before and any(token.means("super") for token in part):
        return "newest"
    for word, kind in _KINDS:
        if any(token.means(word) for token in part):
            return kind
    if _is_dedup(part):
        return "dedup"
    if _is_condition(part) and previous is not None and previous.kind in ("filter", "exclude"):
        return "unread"
    if any(token.means("aggregate", *_FIGURES) for token in part):
        return "aggregate"
    has_groups = any(token.means("bucket", "by") for token in part)
    if has_groups and previous is not None and previous.kind != "aggregate":
        return "aggregate"
    if previous is None and any(token.table for token in part):
        return "source"
    return "unread"


def _is_condition(part: Sequence[Token]) -> bool:
    """Tell whether something is compared and nothing computed."""
    compares = any(token.means("cmp", "null", "notnull", "like", "between") for token in part)
    return compares and not any(token.means("aggregate", "by", "bucket") for token in part)


def _is_dedup(part: Sequence[Token]) -> bool:
    """Tell whether rows are left out, and not only counted once: 去重用户数."""
    places = [index for index, token in enumerate(part) if token.means("dedup")]
    if not places:
        return False
    counts = any(token.means("count", "aggregate") for token in part)
    return not counts
