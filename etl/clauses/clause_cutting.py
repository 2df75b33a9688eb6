"""Cuts the tokens of a request into clauses and says of which kind each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etl.clauses.clause_tokens import Token, says

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
    "lookup",
    "instead",
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
_RELATIONS = ("not", "lacking", "verb", "having")
_COMPUTING = ("aggregate", "running", "previous", "dedup", "top", *_FIGURES)
# Words that begin a clause wherever they stand.
_OPENERS = ("sink", "exclude", "fill")
# Words that begin one when the clause before has its verb already.
_OPENERS_BEHIND_VERB = ("keep", "join", "left", "inner", "aggregate", "running", "dedup", "matched")
_VERBS = (
    *_OPENERS,
    "lacking",
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
    ("instead", "instead"),
    ("instead_of", "instead"),
    ("replacing", "instead"),
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


def clauses_of(tokens: Sequence[Token], *, is_follow_up: bool = False) -> list[Clause]:
    """Return the clauses of a request in order.

    A part without a verb of its own goes on with the clause before it: "sum of amount, number of
    orders". In a follow-up the first part may name groups alone: "also by city".
    """
    clauses: list[Clause] = []
    for part in _parts(tokens):
        previous = clauses[-1] if clauses else None
        kind = _kind(part, previous)
        if kind == "unread" and is_follow_up and says(part, *_GROUPS, "split", "also"):
            kind = "aggregate"
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
        if part and not _is_last(tokens, index) and _begins_clause(tokens, index, part):
            parts.append([])
        parts[-1].append(token)
    trimmed = [tuple(_without_edges(part)) for part in parts]
    return [part for part in trimmed if part]


def _begins_clause(tokens: Sequence[Token], index: int, part: Sequence[Token]) -> bool:
    token = tokens[index]
    if part[0].means("sink"):
        return _ends_target(tokens, index, part)
    if token.means(*_OPENERS):
        return not (token.means("fill") and says(part, "empty"))
    has_verb = says(part, *_VERBS)
    if token.means("keep") and says(part, "aggregate", *_FIGURES):
        return True
    if _begins_source(tokens, index, part) or _begins_lookup(tokens, index, part):
        return True
    if not has_verb and not _is_lookup(part):
        return False
    if token.means(*_OPENERS_BEHIND_VERB) and not _goes_on(part, token):
        return True
    if not token.means(*_GROUPS):
        return False
    return _is_lookup(part) or (_is_verb_done(part) and _computes(tokens, index))


def _goes_on(part: Sequence[Token], token: Token) -> bool:
    """Tell whether the word belongs to the clause: "where" behind "exclude", 去重 in 去重用户数."""
    if not any(one.names for one in part) and part[-1].means("exclude"):
        return True  # 不要累计
    if token.means("keep"):  # "keep only orders where …" has said no condition yet
        is_begun = says(part, "keep", "exclude")
        return is_begun and all(one.table or not one.names for one in part)
    if token.means("dedup", "aggregate", "running"):
        is_distinct = part[-1].means("dedup") and not token.text.isascii()
        return is_distinct or says(part, "aggregate", "running")
    return token.means("join") and says(part, "left", "inner")


def _is_verb_done(part: Sequence[Token]) -> bool:
    return says(part, "join", "left", "inner", "keep", "exclude", "from")


def _is_last(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a word that keeps ends what it is about: "for NOK only"."""
    if not tokens[index].means("keep") or not tokens[index].text.isascii():
        return False
    return index + 1 == len(tokens) or tokens[index + 1].is_break


def _begins_source(tokens: Sequence[Token], index: int, part: Sequence[Token]) -> bool:
    """Tell whether "from A joined with B" follows on figures."""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    is_source = tokens[index].means("from") and after is not None and after.table is not None
    return is_source and says(part, "aggregate", "bucket", *_FIGURES)


def _begins_lookup(tokens: Sequence[Token], index: int, part: Sequence[Token]) -> bool:
    """Tell whether "who never booked …" follows on figures about a table."""
    is_pronoun = tokens[index].means("which", "having") and tokens[index].text.isascii()
    if not is_pronoun or part[-1].table is None or not says(part, *_FIGURES):
        return False
    behind: list[Token] = []
    for token in tokens[index:]:
        if token.is_break or token.means("then", *_GROUPS):
            break
        behind.append(token)
    return says(behind, "not", "lacking", "verb", "having")


def _is_lookup(part: Sequence[Token]) -> bool:
    """Tell whether the part says who has something elsewhere, or never had."""
    begin = next((at for at, one in enumerate(part) if one.means(*_RELATIONS)), None)
    if begin is None or says(part, "cmp", "fill", *_FIGURES):
        return False
    return any(one.table is not None or one.is_value for one in part[begin + 1 :])


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
    if tokens[index].means("or") or tokens[index - 1].means("or"):
        return False  # another name
    named = [token for token in part[1:] if not token.means("skipped", "table", "noise")]
    if not named or not named[0].text.isascii():
        return False
    return tokens[index].is_apart and not tokens[index].means("table")


def _without_edges(part: list[Token]) -> list[Token]:
    """Leave out words that only tie the part to its neighbours."""
    while part and part[0].means("and"):
        part = part[1:]
    is_of_figures = says(part, *_FIGURES)
    while part and (part[-1].means("and") or (is_of_figures and part[-1].means("keep"))):
        part = part[:-1]
    return part


def _kind(part: Sequence[Token], previous: Clause | None) -> ClauseKind:
    before = previous.kind if previous is not None else None
    if before == "dedup" and says(part, "super"):
        return "newest"
    for word, kind in _KINDS:
        if says(part, word):
            return kind
    if _is_dedup(part):
        return "dedup"
    if before in ("filter", "exclude") and _is_condition(part):
        return "unread"  # it goes on with the conditions
    return _kind_without_verb(part, before)


def _kind_without_verb(part: Sequence[Token], before: ClauseKind | None) -> ClauseKind:
    """Return the kind of a part that has no verb of its own, by its figures, groups and tables."""
    if says(part, "aggregate", *_FIGURES):
        return "aggregate"
    if before not in (None, "aggregate") and says(part, "bucket", "by"):
        return "aggregate"
    if before is None and any(token.table for token in part):
        return "source"
    return "lookup" if _is_lookup(part) else "unread"


def _is_condition(part: Sequence[Token]) -> bool:
    """Tell whether something is compared and nothing computed."""
    compares = says(part, "cmp", "null", "notnull", "like", "between")
    return compares and not says(part, "aggregate", "by", "bucket")


def _is_dedup(part: Sequence[Token]) -> bool:
    """Tell whether rows are left out, and not only counted once: 去重用户数."""
    return says(part, "dedup") and not says(part, "count", "aggregate")
