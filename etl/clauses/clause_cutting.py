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
_ENDS_COMPUTING = ("then", "join", "left", "inner", *_OPENERS)
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
        if is_follow_up and kind == "unread" and says(part, *_GROUPS, "split", "also"):
            kind = "aggregate"
        is_more = kind == "unread" and previous is not None
        if previous is None or not is_more or previous.kind in ("sink", "spine"):
            clauses.append(Clause(kind, part))
        else:
            clauses[-1] = Clause(previous.kind, (*previous.tokens, *part))
    return clauses


def _parts(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    parts: list[list[Token]] = [[]]
    for index, token in enumerate(tokens):
        is_between = token.is_break or token.means("then")
        place = _Place(tokens, index, parts[-1])
        if is_between or place.begins_clause:
            parts.append([])
        if not is_between:
            parts[-1].append(token)
    found: list[tuple[Token, ...]] = []
    for part in parts:
        trimmed = tuple(_without_edges(part))
        if trimmed:
            found.append(trimmed)
    return found


@dataclass(frozen=True)
class _Place:
    """A word of the request, and the part of it that goes on until this word."""

    tokens: Sequence[Token]
    index: int
    part: Sequence[Token]

    @property
    def token(self) -> Token:
        """Return the word at this place."""
        return self.tokens[self.index]

    @property
    def behind(self) -> Sequence[Token]:
        """Return the words behind it."""
        return self.tokens[self.index + 1 :]

    @property
    def begins_clause(self) -> bool:
        """Tell whether a clause begins with the word."""
        if not self.part or self._ends_sentence():
            return False
        if self.part[0].means("sink"):
            return self._ends_target()
        if self.token.means(*_OPENERS):
            is_filled = self.token.means("fill") and says(self.part, "empty")
            return not is_filled
        if self._begins_source() or self._begins_lookup():
            return True
        is_of_figures = says(self.part, "aggregate", *_FIGURES)
        if self.token.means("keep") and is_of_figures:
            return True
        return self._begins_behind_verb()

    def _begins_behind_verb(self) -> bool:
        """Tell whether the part has its verb, so that the word is that of another clause."""
        is_lookup = _is_lookup(self.part)
        if not is_lookup and not says(self.part, *_VERBS):
            return False
        if self.token.means(*_OPENERS_BEHIND_VERB):
            return not self._goes_on()
        if not self.token.means(*_GROUPS):
            return False
        is_done = says(self.part, "join", "left", "inner", "keep", "exclude", "from")
        return is_lookup or (is_done and self._is_computed_behind())

    def _goes_on(self) -> bool:
        """Tell whether the word belongs to the clause: "where" behind "exclude", 不要累计."""
        if self.token.means("keep"):
            return self._is_condition_unsaid()
        begins_with_exclusion = self.part[-1].means("exclude")
        names_nothing = not any(one.names for one in self.part)
        if begins_with_exclusion and names_nothing:
            return True
        if self.token.means("dedup", "aggregate", "running"):
            return self._computes_too()
        return self.token.means("join") and says(self.part, "left", "inner")

    def _is_condition_unsaid(self) -> bool:
        """Tell whether "keep only orders where …" has named nothing but tables yet."""
        if not says(self.part, "keep", "exclude"):
            return False
        named = [one for one in self.part if one.names]
        return all(one.table for one in named)

    def _computes_too(self) -> bool:
        """Tell whether one verb computes together with the one before: 去重统计 counts values."""
        is_chinese = not self.token.text.isascii()
        is_distinct = is_chinese and self.part[-1].means("dedup")
        return is_distinct or says(self.part, "aggregate", "running")

    def _ends_sentence(self) -> bool:
        """Tell whether a word that keeps ends what it is about: "for NOK only"."""
        is_only = self.token.means("keep") and self.token.text.isascii()
        is_last = not self.behind or self.behind[0].is_break
        return is_only and is_last

    def _begins_source(self) -> bool:
        """Tell whether "from A joined with B" follows on figures."""
        if not self.token.means("from") or not self.behind:
            return False
        is_table = self.behind[0].table is not None
        return is_table and says(self.part, "aggregate", "bucket", *_FIGURES)

    def _begins_lookup(self) -> bool:
        """Tell whether "who never booked …" follows on figures about a table."""
        is_pronoun = self.token.means("which", "having") and self.token.text.isascii()
        is_of_table = self.part[-1].table is not None
        if not is_pronoun or not is_of_table:
            return False
        if not says(self.part, *_FIGURES):
            return False
        clause = [self.token]
        for token in self.behind:
            if token.is_break or token.means("then", *_GROUPS):
                break
            clause.append(token)
        return says(clause, *_RELATIONS)

    def _is_computed_behind(self) -> bool:
        """Tell whether a figure or a verb that computes follows in the same part."""
        for token in self.behind:
            if token.is_break or token.means(*_ENDS_COMPUTING):
                return False
            if token.means(*_COMPUTING):
                return True
        return False

    def _ends_target(self) -> bool:
        """Tell whether the name behind a sink's word is over.

        One that is written without blanks is a word.
        """
        is_other_name = self.token.means("or") or self.tokens[self.index - 1].means("or")
        if is_other_name:
            return False
        named = [one for one in self.part[1:] if not one.means("skipped", "table", "noise")]
        if not named or not named[0].text.isascii():
            return False
        return self.token.is_apart and not self.token.means("table")


def _is_lookup(part: Sequence[Token]) -> bool:
    """Tell whether the part says who has something elsewhere, or never had."""
    if says(part, "cmp", "fill", *_FIGURES):
        return False
    is_begun = False
    for token in part:
        is_object = token.table is not None or token.is_value
        if is_begun and is_object:
            return True
        is_begun = is_begun or token.means(*_RELATIONS)
    return False


def _without_edges(part: list[Token]) -> list[Token]:
    """Leave out words that only tie the part to its neighbours."""
    while part and part[0].means("and"):
        part = part[1:]
    tying = ("and", "keep") if says(part, *_FIGURES) else ("and",)
    while part and part[-1].means(*tying):
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
    if _is_lookup(part):
        return "lookup"
    return "unread"


def _is_condition(part: Sequence[Token]) -> bool:
    """Tell whether something is compared and nothing computed."""
    compares = says(part, "cmp", "null", "notnull", "like", "between")
    return compares and not says(part, "aggregate", "by", "bucket")


def _is_dedup(part: Sequence[Token]) -> bool:
    """Tell whether rows are left out, and not only counted once: 去重用户数."""
    return says(part, "dedup") and not says(part, "count", "aggregate")
