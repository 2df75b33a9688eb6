"""A request as tokens: the marks of the question rules, with the meaning of words in clauses."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from common.meanings import TableKey
from common.values import Catalog
from etl.clauses.clause_words import CLAUSE, clause_intents
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.atoms import atoms_of, normalise
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.words.talk import without_courtesy
from rules.words.vocabulary import Intent

_FIGURE = "figure:"
# "total" is a column's name, and computes nothing, before words of these kinds or at an end.
_COMPUTING = ("sum", "count", "avg", "max", "min", "median")
_BEHIND_FIGURES = ("by", "each", "and", "cmp", "between", "null", "notnull", "sink", "or", "bucket")
_SAYING_NOTHING = ("noise", "skipped", "verb")
_BREAKS = frozenset(",;.。；，")
_LEAST_TABLE = 0.6
_SOURCE_END = re.compile(r"：|:(?=\s)")  # "orders: …"
_PART = r'(?:"[^"`]{1,63}"|[A-Za-z_][A-Za-z0-9_]{0,62})'
_QUALIFIED = re.compile(rf"(?<![\w.`'\"]){_PART}(?:\.{_PART}){{1,2}}(?![\w.`])", re.ASCII)
_MOST_WORDS = 5  # of a stored name
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
        if self.mark.literal is None:
            return self.mark.text

        return self.mark.literal

    @property
    def arg(self) -> str:
        """Return the argument of its kind."""
        return self.mark.arg

    @property
    def is_break(self) -> bool:
        """Tell whether it is a sign that ends a clause."""
        return self.text in _BREAKS

    @property
    def meaning(self) -> str:
        """Return the kind of its word, of a clause's word without the prefix."""
        return self.kind.removeprefix(CLAUSE)

    def means(self, *kinds: str) -> bool:
        """Tell whether its word is of one of these kinds; clauses' kinds have no prefix here."""
        return self.meaning in kinds

    def links(self, kind: str) -> tuple[Link, ...]:
        """Return what it may name, of a kind, best first."""
        links = []
        for link in self.mark.links:
            if link.kind == kind:
                links.append(link)

        return tuple(links)

    def rival_quality(self, kind: str) -> float:
        """Return the quality of the best thing of another kind that it may name, 0 for none."""
        best = 0.0
        for link in self.mark.links:
            if link.kind != kind:
                best = max(best, link.quality)

        return best

    @property
    def table(self) -> TableKey | None:
        """Return the table that it names rather than a column or value, if it names one."""
        tables = self.links("table")
        if not tables or tables[0].quality < _LEAST_TABLE:
            return None

        is_first = self.mark.links[0].kind == "table"
        if is_first or tables[0].quality >= self.rival_quality("table"):
            return tables[0].table

        return None

    def naming(self, table: TableKey) -> "Token":
        """Return the word with what it may name of this table alone."""
        links = tuple(link for link in self.mark.links if link.table == table)
        return replace(self, mark=replace(self.mark, links=links))

    @property
    def is_value(self) -> bool:
        """Tell whether it is a stored value rather than a table or column."""
        links = self.mark.links
        return bool(links) and links[0].kind == "value"

    @property
    def is_value_or_date(self) -> bool:
        """Tell whether it is something that a column is compared with: a stored value, a date."""
        return self.is_value or self.mark.date is not None

    @property
    def names(self) -> bool:
        """Tell whether it names something of the database."""
        return bool(self.mark.links)


NO_TOKEN = Token(Mark(0, 0, ""), "", 0, 0)
"""Stands where there is no word any more: it means and names nothing."""


def token_at(tokens: Sequence[Token], place: int) -> Token:
    """Return the word at a place; `NO_TOKEN` before the first and behind the last one."""
    if 0 <= place < len(tokens):
        return tokens[place]

    return NO_TOKEN


def says(tokens: Iterable[Token], *kinds: str) -> bool:
    """Tell whether any of the words is of one of these kinds."""
    return any(token.means(*kinds) for token in tokens)


def counted_tables(tokens: Sequence[Token]) -> list[Token]:
    """Return the words for tables that stand beside a word that counts."""
    counted: list[Token] = []
    for one, other in (*pairwise(tokens), *pairwise(reversed(tokens))):
        if one.means("count"):
            counted += table_words([other])

    return counted


def place_of(tokens: Iterable[Token], *kinds: str) -> int | None:
    """Return the place of the first word of one of these kinds; None where there is none."""
    for place, token in enumerate(tokens):
        if token.means(*kinds):
            return place

    return None


def words_without(tokens: Iterable[Token], *kinds: str) -> list[Token]:
    """Return the words that are of none of these kinds."""
    words = []
    for token in tokens:
        if not token.means(*kinds):
            words.append(token)

    return words


def naming_words(tokens: Iterable[Token]) -> list[Token]:
    """Return the words that name something of the database."""
    words = []
    for token in tokens:
        if token.names:
            words.append(token)

    return words


def table_words(tokens: Iterable[Token]) -> list[Token]:
    """Return the words that name tables."""
    words = []
    for token in tokens:
        if token.table is not None:
            words.append(token)

    return words


def _identifiers(index: CatalogIndex) -> frozenset[str]:
    """Return the stored names that ordinary words could hide.

    Names of several words are in lower case; those that have capitals or blanks as they are.
    """
    names: set[str] = set()
    for table in index.catalog.tables:
        names.add(table.name)
        for column in table.columns:
            names.add(column.name)

    identifiers: set[str] = set()
    for name in names:
        if "_" in name:
            identifiers.add(name.lower())
        elif name in clause_intents():
            identifiers.add(f"{_FIGURE}{name}")
        elif name.isascii() and _is_written(name):
            identifiers.add(name)

    return frozenset(identifiers)


def _is_written(name: str) -> bool:
    """Tell whether capitals or blanks tell a stored name from an ordinary word."""
    return " " in name or name != name.lower()


IDENTIFIERS = IndexPart(_identifiers, ignores_row_counts=True)
"""Stored names that are read as such: `daily_revenue` is no "daily" figure, `Order` no order."""


def _with_marked_names(question: str, identifiers: Collection[str]) -> str:
    """Return the question with signs around words that are stored names, or could be one."""
    words = list(_WORD.finditer(question))
    parts: list[str] = []
    end = place = 0
    while place < len(words):
        count = _words_of_name(question, words[place : place + _MOST_WORDS], identifiers)
        if count == 0:
            place += 1
            continue

        first, last = words[place], words[place + count - 1]
        before = question[end : first.start()]
        name = question[first.start() : last.end()]
        parts += [before, f"`{name}`"]
        end = last.end()
        place += count

    return "".join([*parts, question[end:]])


def _words_of_name(
    question: str, words: Sequence[re.Match[str]], identifiers: Collection[str]
) -> int:
    """Return how many of the words are one stored name, or could be one; 0 for none."""
    for count in range(len(words), 0, -1):
        written = question[words[0].start() : words[count - 1].end()]
        if written in identifiers or written.lower() in identifiers:
            return count

    has_underscore = "_" in words[0][0].strip("_")
    if has_underscore or _is_figure(question, words, identifiers):
        return 1

    return 0


def _is_figure(question: str, words: Sequence[re.Match[str]], identifiers: Collection[str]) -> bool:
    """Tell whether a word is a stored column here: "average total by city", "sum of paid by day".

    It computes by itself, or stands behind a word that does.
    """
    word = words[0][0].lower()
    if f"{_FIGURE}{word}" not in identifiers:
        return False
    if not _computes(word) and not _is_computed(question[: words[0].start()]):
        return False
    if len(words) == 1:
        return True

    between = question[words[0].end() : words[1].start()]
    if not between.isspace():
        return True

    after = clause_intents().get(words[1][0].lower())
    if after is None:
        return False

    return after.kind.removeprefix(CLAUSE) in _BEHIND_FIGURES


def _computes(word: str) -> bool:
    intent = clause_intents().get(word)
    if intent is None:
        return False

    return intent.kind in _COMPUTING


def _is_computed(before: str) -> bool:
    """Tell whether a text ends with a word that computes what comes next: "… the sum of "."""
    words = before.lower().split()
    endings = (" ".join(words[-count:]) for count in (1, 2))
    return any(map(_computes, endings))


def _with_qualified_names(question: str, links: Mapping[str, Link]) -> str:
    """Return the question with signs around names with a schema or a table before them."""

    def marked(match: re.Match[str]) -> str:
        name = match[0].replace('"', "")
        if name.casefold() in links:
            return f"`{name}`"

        return match[0]

    return _QUALIFIED.sub(marked, question)


def _qualified_links(question: str, catalog: Catalog) -> dict[str, Link]:
    """Return what names like `schema.table` and `table.column` name, by the names in lower case."""
    links: dict[str, Link] = {}
    for match in _QUALIFIED.finditer(question):
        name = match[0].replace('"', "")
        parts = tuple(name.casefold().split("."))
        named = _links_of(parts, catalog)
        if len(named) == 1:
            links[name.casefold()] = named[0]

    return links


def _links_of(parts: Sequence[str], catalog: Catalog) -> list[Link]:
    """Return the tables and columns of these names: schema, table and column, or two of them."""
    named: list[Link] = []
    for table in catalog.tables:
        own = (table.schema.casefold(), table.name.casefold())
        if parts == own:
            return [Link("table", table.key, None, None, 1.0, table.name)]
        if parts[:-1] in (own, own[1:]):
            for column in table.columns:
                if column.name.casefold() == parts[-1]:
                    named.append(Link("column", table.key, column.name, None, 1.0, column.name))

    return named


def tokens_of(
    question: str,
    lexicon: Lexicon,
    catalog: Catalog,
    *,
    is_follow_up: bool = False,
) -> tuple[str, tuple[Token, ...]]:
    """Return the text that is read of a request, and its tokens in order.

    Args:
        catalog: as the caller sees it; `lexicon` is its own.
        is_follow_up: whether words may change an earlier request.
    """
    question = _SOURCE_END.sub("， ", question)
    qualified = _qualified_links(question, catalog)
    question = _with_qualified_names(question, qualified)
    question = _with_marked_names(question, IDENTIFIERS.of(catalog))
    intents = clause_intents(is_follow_up=is_follow_up)
    text, tokens = _tokens(question, lexicon, catalog, qualified, intents)
    apart = _with_row_apart(question, tokens, catalog)
    if apart is None:
        return text, tokens

    return _tokens(apart, lexicon, catalog, qualified, intents)


def _tokens(
    question: str,
    lexicon: Lexicon,
    catalog: Catalog,
    qualified: Mapping[str, Link],
    intents: Mapping[str, Intent],
) -> tuple[str, tuple[Token, ...]]:
    text = normalise(without_courtesy(question) or question)
    atoms = atoms_of(text)
    tokens: list[Token] = []
    for mark in marks_of(question, lexicon, intents):
        kind = mark.intent.kind if mark.intent else ""
        start = atoms[mark.start].start
        end = atoms[mark.end - 1].end
        gap = text[tokens[-1].end : start] if tokens else ""
        link = qualified.get((mark.literal or mark.text).casefold())
        if link is not None:
            mark = replace(mark, links=(link,), is_unknown=False, is_skippable=False)

        token = Token(mark, kind, start, end, is_apart=" " in gap)
        if not token.names:
            token = _as_stored_value(token, tokens, catalog)
        if token.means("verb") and _is_operand(token, tokens):
            token = replace(token, kind="")

        tokens.append(token)

    return text, tuple(tokens)


def _with_row_apart(question: str, tokens: Sequence[Token], catalog: Catalog) -> str | None:
    """Return the question with a sign around "shipments" of "shipments tagged cold".

    Both words together may name the table `shipment_tag` that links shipments and tags; a value
    behind them says which shipments are meant. None where nothing is said so.
    """
    for token, after in pairwise(tokens):
        if token.table is None or not after.is_value:
            continue

        references = catalog.by_key[token.table].foreign_keys
        linked = {key.target for key in references}
        tables_of_value = {link.table for link in after.links("value")}
        is_link_to_value = len(references) > 1 and not linked.isdisjoint(tables_of_value)
        first, blank, rest = token.text.partition(" ")
        is_in_quotes = token.mark.literal is not None
        is_as_said = not is_in_quotes and token.text in question
        if blank and is_as_said and is_link_to_value:
            apart = f"`{first}` {rest}"
            return question.replace(token.text, apart, 1)

    return None


def _is_operand(token: Token, before: Sequence[Token]) -> bool:
    """Tell whether the word is the value of the column before it: "status is paid"."""
    return is_value_of(token, _compared(before))


def _compared(before: Sequence[Token]) -> Token:
    """Return the word that the one behind these is compared with: "status" of "status is not"."""
    for name in reversed(before):
        if not name.means("noise", "not", "cmp"):
            return name

    return NO_TOKEN


def _as_stored_value(token: Token, before: Sequence[Token], catalog: Catalog) -> Token:
    """Return a word of courtesy as the value that the column before it stores: "status done"."""
    if not token.means(*_SAYING_NOTHING):
        return token

    links = []
    for link in _compared(before).links("column"):
        column = catalog.by_key[link.table].column(link.column or "")
        for value in _spelled(token.text, column.values if column is not None else ()):
            links.append(Link("value", link.table, link.column, value, 1.0, value))

    if not links:
        return token

    mark = replace(token.mark, intent=None, links=tuple(links))
    return replace(token, mark=mark, kind="")


def _spelled(word: str, values: Sequence[str]) -> list[str]:
    """Return the values that are this word: as it is written, else in another case."""
    if word in values:
        return [word]

    return [value for value in values if value.casefold() == word.casefold()]


def is_value_of(token: Token, name: Token) -> bool:
    """Tell whether the word is a stored value of the column that another one names."""
    if not token.is_value:
        return False

    stored = token.mark.links[0]
    columns = {(link.table, link.column) for link in name.links("column")}
    return (stored.table, stored.column) in columns
