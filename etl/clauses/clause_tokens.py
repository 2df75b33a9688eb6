"""A request as tokens: the marks of the question rules, with the meaning of words in clauses."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from common.meanings import TableKey
from etl.clauses.clause_words import CLAUSE, clause_intents
from knowledge.language.atoms import atoms_of, normalise
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.words.talk import without_courtesy

_BREAKS = frozenset(",;.。；，")
_LEAST_TABLE = 0.6
_WORD = re.compile(r"(?<![`'\"])\b[A-Za-z]\w*+(?![`'\"])", re.ASCII)


@dataclass(frozen=True)
class Token:
    """A word, name, number or date of the request.

    Attributes:
        kind: what its word does, "" for names and unknown words; `clause_words` and
            `rules.words.vocabulary` list the kinds.
        start, end: characters of the read text.
        is_apart: whether a blank stands before it.
    """

    mark: Mark
    kind: str
    start: int
    end: int
    is_apart: bool = False

    @property
    def text(self) -> str:
        """Return the word as written, a quotation without its signs."""
        return self.mark.text if self.mark.literal is None else self.mark.literal

    @property
    def arg(self) -> str:
        """Return the argument of its kind."""
        return self.mark.arg

    @property
    def is_break(self) -> bool:
        """Tell whether it is a sign that ends a clause."""
        return self.text in _BREAKS

    def means(self, *kinds: str) -> bool:
        """Tell whether its word is of one of these kinds; clauses' kinds have no prefix here."""
        return self.kind.removeprefix(CLAUSE) in kinds

    def links(self, kind: str) -> tuple[Link, ...]:
        """Return what it may name, of a kind, best first."""
        return tuple(link for link in self.mark.links if link.kind == kind)

    @property
    def table(self) -> TableKey | None:
        """Return the table that it names rather than a column or value, if it names one."""
        tables = self.links("table")
        if not tables or tables[0].quality < _LEAST_TABLE:
            return None
        best = self.mark.links[0]
        others = [link.quality for link in self.mark.links if link.kind != "table"]
        if best.kind != "table" and tables[0].quality < max(others):
            return None
        return tables[0].table

    @property
    def names(self) -> bool:
        """Tell whether it names something of the database."""
        return bool(self.mark.links)


def says(tokens: Iterable[Token], *kinds: str) -> bool:
    """Tell whether any of the words is of one of these kinds."""
    return any(token.means(*kinds) for token in tokens)


def _marked(word: str, identifiers: Collection[str]) -> str:
    """Return the word so that it is read as one: a stored name, or one that could be one."""
    is_one = word.lower() in identifiers or "_" in word.strip("_")
    return f"`{word}`" if is_one else word


def tokens_of(
    question: str, lexicon: Lexicon, identifiers: Collection[str] = ()
) -> tuple[str, tuple[Token, ...]]:
    """Return the text that is read of a request, and its tokens in order.

    Args:
        identifiers: stored names of several words, in lower case; written like that, one of them is
            that name: `daily_revenue` is no "daily" figure.
    """
    question = _WORD.sub(lambda match: _marked(match[0], identifiers), question)
    text = normalise(without_courtesy(question) or question)
    atoms = atoms_of(text)
    found: list[Token] = []
    for mark in marks_of(question, lexicon, clause_intents()):
        kind = mark.intent.kind if mark.intent else ""
        start, end = atoms[mark.start].start, atoms[mark.end - 1].end
        gap = text[found[-1].end : start] if found else ""
        found.append(Token(mark, kind, start, end, is_apart=" " in gap))
    return text, tuple(found)
