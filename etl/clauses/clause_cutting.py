"""Cuts the tokens of a request into clauses and says of which kind each is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from etl.clauses.clause_tokens import (
    NO_TOKEN,
    Token,
    naming_words,
    place_of,
    says,
    table_words,
    token_at,
    words_without,
)
from etl.clauses.clause_words import CLAUSE

ClauseKind = Literal[
    "beginning",
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

    def with_more(self, tokens: Sequence[Token]) -> "Clause":
        """Return the clause with words that go on with it."""
        return Clause(self.kind, (*self.tokens, *tokens))


_FUNCTIONS = ("sum", "avg", "max", "min", "median")
_FIGURES = (*_FUNCTIONS, "count", "distinct", "rows")
_GROUPS = ("by", "bucket", "each")
_RELATIONS = ("not", "lacking", "verb", "having")
_JOINS = ("join", "left", "inner")
_COMPUTING = ("aggregate", "running", "previous", "dedup", "top", *_FIGURES)
# Words that begin a clause wherever they stand.
_OPENERS = ("sink", "exclude", "fill")
# Words that begin one when the clause before has its verb already.
_OPENERS_BEHIND_VERB = ("keep", *_JOINS, "aggregate", "running", "dedup", "matched")
_VERBS = (
    *_OPENERS,
    *_JOINS,
    *("lacking", "keep", "matched"),
    *("aggregate", "running", "previous", "dedup", "top"),
)
# Words of a clause that is over where a group follows, and a figure of that group behind it.
_BEFORE_GROUPS = (*_JOINS, "keep", "exclude", "from")
_ENDS_COMPUTING = ("then", *_JOINS, *_OPENERS)
_COMPARING = ("cmp", "null", "notnull", "like", "between")
# Clauses that nothing goes on with: what follows on a target or on filled gaps is another thing.
_COMPLETE: tuple[ClauseKind, ...] = ("beginning", "sink", "spine")
# Stands before the first clause.
_BEGINNING = Clause("beginning", ())
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
    previous = _BEGINNING
    for part in _parts(tokens):
        kind = _kind(part, previous.kind)
        if is_follow_up and kind == "unread" and says(part, *_GROUPS, "split", "also"):
            kind = "aggregate"
        if kind == "unread" and previous.kind not in _COMPLETE:
            clauses[-1] = previous.with_more(part)
        else:
            clauses.append(Clause(kind, part))

        previous = clauses[-1]

    return clauses


def _parts(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Return the words of each clause, without those between clauses."""
    parts: list[list[Token]] = [[]]
    for index, token in enumerate(tokens):
        if token.is_break and _is_between_functions(parts[-1], token_at(tokens, index + 1)):
            continue
        if token.is_break or token.means("then"):
            parts.append([])
            continue

        place = _Place(tokens, index, parts[-1])
        if place.begins_clause:
            parts.append([])

        parts[-1].append(token)

    clause_parts: list[tuple[Token, ...]] = []
    for part in parts:
        trimmed = _without_edges(part)
        if trimmed:
            clause_parts.append(_with_relation(trimmed))

    return clause_parts


def _with_relation(part: Sequence[Token]) -> tuple[Token, ...]:
    """Return the words of a part; the 有 of 有订单的会员 says whose rows are meant."""
    first, *others = part
    is_having = first.means("with") and not first.text.isascii()
    if not is_having:
        return tuple(part)

    for before, token in pairwise(others):
        if before.means("of") and token.table is not None:
            return (replace(first, kind=f"{CLAUSE}having"), *others)

    return tuple(part)


def _is_between_functions(part: Sequence[Token], after: Token) -> bool:
    """Tell whether a sign stands in "minimum, maximum and median amount"."""
    if not part or not after.means(*_FUNCTIONS):
        return False

    return all(token.means("aggregate", *_FUNCTIONS) for token in part)


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
        if self.token.means("fill"):
            return not says(self.part, "empty")
        if self.token.means(*_OPENERS):
            return True
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
        if is_lookup:
            return True
        if not says(self.part, *_BEFORE_GROUPS):
            return False

        return self._is_computed_behind()

    def _goes_on(self) -> bool:
        """Tell whether the word belongs to the clause: "where" behind "exclude", 不要累计."""
        if self.token.means("keep"):
            return self._is_condition_unsaid()

        ends_with_exclusion = self.part[-1].means("exclude")
        if ends_with_exclusion and not naming_words(self.part):
            return True
        if self.token.means("dedup", "aggregate", "running"):
            return self._computes_too()
        if self.token.means("join"):
            return says(self.part, "left", "inner")

        return False

    def _is_condition_unsaid(self) -> bool:
        """Tell whether "keep only orders where …" has named nothing but tables yet."""
        if not says(self.part, "keep", "exclude"):
            return False

        return naming_words(self.part) == table_words(self.part)

    def _computes_too(self) -> bool:
        """Tell whether one verb computes together with the one before: 去重统计 counts values."""
        if says(self.part, "aggregate", "running"):
            return True

        is_chinese = not self.token.text.isascii()
        return is_chinese and self.part[-1].means("dedup")

    def _ends_sentence(self) -> bool:
        """Tell whether the word is an "only" behind what it is about: "for NOK only"."""
        if not self.token.means("keep") or not self.token.text.isascii():
            return False

        after = token_at(self.tokens, self.index + 1)
        return after is NO_TOKEN or after.is_break

    def _begins_source(self) -> bool:
        """Tell whether "from A joined with B" follows on figures."""
        after = token_at(self.tokens, self.index + 1)
        if not self.token.means("from") or after.table is None:
            return False

        return says(self.part, "aggregate", "bucket", *_FIGURES)

    def _begins_lookup(self) -> bool:
        """Tell whether "who never booked …" follows on figures about a table."""
        if not self.token.means("which", "having"):
            return False
        if not self.token.text.isascii() or self.part[-1].table is None:
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
        """Tell whether the target's name is over, so that the word begins something else.

        A name in Chinese goes on to the end of its part; one in Latin letters ends at a blank.
        """
        before = self.tokens[self.index - 1]
        if says([before, self.token], "or"):
            return False  # another name for the same target

        name = words_without(self.part[1:], "skipped", "table", "noise")
        if not name or not name[0].text.isascii():
            return False

        return self.token.is_apart and not self.token.means("table")


def _is_lookup(part: Sequence[Token]) -> bool:
    """Tell whether the part says who has something elsewhere, or never had."""
    if says(part, "cmp", "fill", *_FIGURES):
        return False

    relation = place_of(part, *_RELATIONS)
    if relation is None:
        return False

    behind = part[relation + 1 :]
    return any(token.table is not None or token.is_value for token in behind)


def _without_edges(part: Sequence[Token]) -> Sequence[Token]:
    """Leave out words that only tie the part to its neighbours."""
    while part and part[0].means("and"):
        part = part[1:]

    tying = ["and"]
    if says(part, *_FIGURES):
        tying.append("keep")

    while part and part[-1].means(*tying):
        part = part[:-1]

    return part


def _kind(part: Sequence[Token], before: ClauseKind) -> ClauseKind:
    """Return the kind of a part; "unread" for one that goes on with the clause before."""
    if before == "dedup" and says(part, "super"):
        return "newest"

    if _is_top(part):
        return "top"

    for word, kind in _KINDS:
        if says(part, word):
            return kind

    if _is_dedup(part):
        return "dedup"
    if before in ("filter", "exclude") and _is_condition(part):
        return "unread"

    return _kind_without_verb(part, before)


def _kind_without_verb(part: Sequence[Token], before: ClauseKind) -> ClauseKind:
    """Return the kind of a part that has no verb of its own, by its figures, groups and tables."""
    if says(part, "aggregate", *_FIGURES):
        return "aggregate"
    is_first = before == "beginning"
    if is_first and says(part, "each") and not table_words(part):
        return "aggregate"
    if before not in ("beginning", "aggregate") and says(part, "bucket", "by"):
        return "aggregate"
    if is_first and table_words(part):
        return "source"
    if _is_lookup(part):
        return "lookup"

    return "unread"


def _is_top(part: Sequence[Token]) -> bool:
    """Tell whether the part asks for a number of the first: 金额最高的3个订单."""
    if says(part, "sink", "keep", "exclude"):
        return False

    for word, number in pairwise(part):
        if word.means("super") and number.mark.number is not None:
            return not word.text.isascii()

    return False


def _is_condition(part: Sequence[Token]) -> bool:
    """Tell whether something is compared and nothing computed."""
    if says(part, "aggregate", "by", "bucket"):
        return False

    return says(part, *_COMPARING)


def _is_dedup(part: Sequence[Token]) -> bool:
    """Tell whether rows are left out, and not only counted once: 去重用户数."""
    if says(part, "count", "aggregate"):
        return False

    return says(part, "dedup")
