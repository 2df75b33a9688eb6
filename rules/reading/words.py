"""The words of one question with all their senses, and the stretches of words that patterns match.

Each sense of a word has a symbol: `tab` (a table), `mcol` (a measure), `dcol` (a date), `tcol`
(another column), `flag` (a column of yes and no), `val` (a stored value), `num`, `date`, `lit` (a
quotation), `unk` (an unknown word), and the kind of its intent, alone and with its argument (`cmp`,
`cmp:=`). The less likely a sense is, the more it costs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from common.cpu_clock import check
from common.meanings import TableKey
from common.values import Column
from knowledge.language.atoms import key_of
from knowledge.language.cutting import has_han
from knowledge.language.thesaurus import EVENTS_OF_VERBS
from rules.linking.mark import Mark, Noun, is_said_as_year
from rules.linking.moments import Period
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.reading import costs
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.schema.table_facts import Facts, flag_codes, is_year, kind_of, says_other_than_end
from rules.words import WORDS
from rules.words.speech import part_of_speech
from rules.words.vocabulary import Intent

_NOUN_LIKE = ("noun", "proper noun", "adjective", "number", "unknown")
_WHO = WORDS.english.text("questions.who")
_PEOPLE = frozenset(WORDS.both("questions.people"))
_DONE = WORDS.chinese.text("questions.done")
_SEVERAL = {"val": "vals", "date": "dates"}  # symbols of one, and of several that are joined
# Columns of scores and qualities this near to each other are named equally well.
_SAME_SCORE, _SAME_QUALITY = 0.015, 0.02
_LESS_CLEAR = 0.08  # by which a column's quality is lower than that of the table of the same name
Symbol = Literal[
    "tab", "mcol", "dcol", "tcol", "flag", "val", "vals", "num", "date", "dates", "lit", "unk"
]
ColumnIdentity = tuple[TableKey, str | None]


@dataclass(frozen=True)
class Sense:
    """One thing that a word may mean.

    Attributes:
        cost: the higher, the less likely it is meant.
        link: what it names in the database, if anything.
        rivals: what it may name as well.
    """

    cost: float = 0.0
    link: Link | None = None
    rivals: tuple[Link, ...] = ()


# The senses of a number that is said as a year: "in 2025".
_YEAR: Mapping[str, Sense] = {"date": Sense(), "num": Sense(costs.YEAR_AS_NUMBER)}


@dataclass(frozen=True)
class Word:
    """A mark with its place among the marks of the question, and its senses by symbol."""

    at: int
    mark: Mark
    noun: Noun | None
    senses: Mapping[str, Sense]

    @property
    def text(self) -> str:
        """Return the word as written, in lower case."""
        return self.mark.text.lower()

    @property
    def symbols(self) -> Iterator[str]:
        """Yield the symbols by which an element of a pattern may match it."""
        yield from self.senses
        yield f"'{self.text}'"
        for single, plural in _SEVERAL.items():
            if single in self.senses:
                yield plural

    def link_as(self, symbol: str) -> Link | None:
        """Return what the word names in a sense, if it has that sense and names something in it."""
        sense = self.senses.get(symbol)
        return sense.link if sense is not None else None

    @property
    def names_figure(self) -> bool:
        """Tell whether it is the name of a figure rather than of the table that it names as
        well.
        """
        figure = self.link_as("mcol")
        if figure is None:
            return False

        table = self.link_as("tab")
        return table is None or figure.quality > table.quality

    @property
    def is_weak_verb(self) -> bool:
        """Tell whether an English verb or particle is only like a part of some column's name.

        Examples are "registered" and "up".
        """
        if self.mark.intent is not None or not self.text.isascii():
            return False
        if not 0 < self.mark.quality < costs.WHOLE:
            return False

        return part_of_speech(self.text, "en") not in _NOUN_LIKE


class QuestionWords:
    """The words of one question, with what the database says about them.

    Args:
        nouns: the things that each mark names; see `nouns_of`.
        settled: the user's answers to questions back.
    """

    def __init__(
        self,
        marks: Sequence[Mark],
        nouns: Sequence[Noun | None],
        lexicon: Lexicon,
        *,
        is_chinese: bool,
        settled: Settled = NOTHING_SETTLED,
    ) -> None:
        self.lexicon, self.schema, self.graph = lexicon, lexicon.schema, lexicon.graph
        self.is_chinese, self.settled = is_chinese, settled
        self.words: list[Word] = []
        for at, (mark, noun) in enumerate(zip(marks, nouns, strict=True)):
            check()
            senses = self._senses(at, mark, noun)
            if is_said_as_year(marks, at):
                senses |= _YEAR

            self.words.append(Word(at, mark, noun, senses))

        self.symbols = frozenset(symbol for word in self.words for symbol in word.symbols) | {"<"}
        # The ways in which elements of patterns take words from a place on; see `matching`.
        self.taken: dict[tuple[int, object], Any] = {}

    def __len__(self) -> int:
        return len(self.words)

    # --------------------------------------------------------------------------
    # meanings

    def _senses(self, at: int, mark: Mark, noun: Noun | None) -> dict[str, Sense]:
        is_named = noun is not None and not _is_unit_alone(mark)
        senses = self._named_senses(noun) if noun is not None and is_named else {}
        if mark.is_unknown:
            senses |= self._table_of_unknown(mark)

        is_named = bool(senses)
        if at == 0 and mark.means("with") and mark.text.lower().startswith(f"{_WHO} "):
            # "who has"
            senses["which:person"] = Sense()
        elif mark.intent is not None:
            senses |= _intent_senses(mark, mark.intent, is_named=is_named)

        return senses | _plain_senses(mark)

    def _table_of_unknown(self, mark: Mark) -> dict[str, Sense]:
        """Return the table that an unknown word means: the only people, or a table's short name."""
        persons = self.schema.persons
        if mark.text.lower() in _PEOPLE and len(persons) == 1:
            return {"tab": Sense(0.0, Link("table", persons[0], None, None, 1.0, mark.text))}

        table = self.lexicon.spoken.short_names.get(mark.text)
        if table is not None:
            return {"tab": Sense(costs.SHORT, table)}

        return {}

    def _named_senses(self, noun: Noun) -> dict[str, Sense]:
        """Return the tables, columns and values that a word names, by symbol."""
        senses = {}
        table = self._table_sense(noun)
        if table is not None:
            senses["tab"] = table

        kinds: tuple[tuple[str, Callable[[Link], bool]], ...] = (
            ("mcol", self.is_measure),
            ("dcol", self.is_date),
            ("flag", self.is_flag),
            ("tcol", self._is_other),
        )
        for symbol, accept in kinds:
            column = self._column_sense(noun, symbol, accept)
            if column is not None:
                senses[symbol] = column

        value = self._settled_column([link for _, link in noun.values]) or noun.value
        if value is not None:
            senses["val"] = Sense(_value_cost(noun, value), value)

        return senses

    def _table_sense(self, noun: Noun) -> Sense | None:
        table = noun.table
        if table is not None and self._is_reference_to(noun, table):
            return Sense(-costs.SLIGHT, table)
        if table is None or not (noun.is_table or table.quality >= costs.CLEAR):
            entity = self._entity_named(noun)
            if entity is not None:
                return Sense(-costs.SLIGHT, entity)

            return None

        if noun.is_table:
            return Sense(0.0, table)

        cost = costs.SECOND + max(0.0, _best_score(noun) - table.quality)
        return Sense(cost, table) if cost <= costs.DEAREST else None

    def _is_reference_to(self, noun: Noun, table: Link) -> bool:
        """Tell whether the column that a word names refers to the table that it names as well."""
        link = noun.column
        if link is None or noun.is_table or noun.is_value or table.quality < costs.CLEAR:
            return False

        return link.table != table.table and table.table in self._referenced_by(link)

    def _column_sense(
        self, noun: Noun, symbol: str, accept: Callable[[Link], bool]
    ) -> Sense | None:
        """Return the best column that `accept` takes, with others that are named equally well."""
        scored = [(score, link) for score, link in noun.columns if accept(link)]
        scored = [pair for pair in scored if not self._is_opposite(pair[1])]
        if not scored:
            return None

        score, link = scored[0]
        rivals = self._rivals(scored)
        chosen = self._settled_column([link for _, link in noun.columns])
        if chosen is not None:
            if not accept(chosen):
                return None

            link = chosen
            rivals = ()
            score = _best_score(noun)

        cost = costs.WORSE * max(0.0, _best_score(noun) - score)
        if noun.is_value:
            cost += costs.SECOND
        if symbol == "mcol" and self._is_limit_of(noun, link):
            return None
        if symbol == "mcol":
            cost += self._cost_as_measure(noun, link)
        elif noun.is_table:
            cost += costs.SECOND

        cost += costs.PART * max(0.0, costs.WHOLE - link.quality)
        if cost <= costs.DEAREST:
            return Sense(cost, link, rivals)

        return None

    def _is_limit_of(self, noun: Noun, link: Link) -> bool:
        """Tell whether a measure of another table only has the table's name in its own.

        `max_pupils` are no pupils.
        """
        if not noun.is_table or noun.table is None or link.table == noun.table.table:
            return False

        return link.quality < costs.CLEAR_FIGURE and noun.table.quality >= costs.WHOLE_NAME

    def _is_opposite(self, link: Link) -> bool:
        """Tell whether a word for a state shares a character with the column that tells its end."""
        if link.derived is not None or link.quality >= costs.WHOLE_NAME:
            return False

        return says_other_than_end(self.column_of(link), link.spelling)

    def _entity_named(self, noun: Noun) -> Link | None:
        """Return the table whose rows have a name with the word in it: 医院 of 医院名称."""
        link = noun.column
        if link is None or noun.is_value:
            return None

        is_part_of_name = costs.CLEAR <= link.quality < costs.WHOLE_NAME
        if not is_part_of_name or not self.display(link):
            return None

        says_name = (link.column or "").endswith(link.spelling)
        is_entity = self.facts(link.table).is_entity
        if says_name or not is_entity or _is_adjective(link.spelling):
            return None

        return Link("table", link.table, None, None, link.quality, link.spelling)

    def _rivals(self, scored: Sequence[tuple[float, Link]]) -> tuple[Link, ...]:
        """Return columns of other tables that are named as well as the first one."""
        least, best = scored[0]
        return tuple(
            link
            for score, link in scored
            if score >= least - _SAME_SCORE and self._is_rival(best, link)
        )

    def _is_rival(self, best: Link, other: Link) -> bool:
        if other.table == best.table or abs(other.quality - best.quality) > _SAME_QUALITY:
            return False

        return not self._same_key(best, other)

    def _settled_column(self, links: Sequence[Link]) -> Link | None:
        """Return the column that the user chose when asked back."""
        columns = {(link.table, link.column): link for link in reversed(links)}
        chosen = self.settled.among((link.table, link.column) for link in links)
        return columns[chosen] if chosen is not None else None

    def _cost_as_measure(self, noun: Noun, link: Link) -> float:
        """Return the cost of taking a word for a measure that may also be a table.

        `收入` is rather a measure, but 订单 is no amount of orders.
        """
        if not noun.is_table or noun.table is None:
            return 0.0

        is_of_another = self.facts(noun.table.table).is_entity and link.table != noun.table.table
        if is_of_another or link.quality < noun.table.quality - _LESS_CLEAR:
            return costs.SECOND

        return -costs.SLIGHT

    def _same_key(self, first: Link, second: Link) -> bool:
        """Tell whether one column references the other's table, or both reference the same table.

        It doesn't matter then which of them is meant.
        """
        of_first = self._referenced_by(first)
        of_second = self._referenced_by(second)
        if second.table in of_first:
            return True
        if first.table in of_second:
            return True

        return not of_first.isdisjoint(of_second)

    def _referenced_by(self, link: Link) -> set[TableKey]:
        edges = self.facts(link.table).edges
        return {edge.parent for edge in edges if edge.columns == (link.column,)}

    # --------------------------------------------------------------------------
    # about the database

    def facts(self, key: TableKey) -> Facts:
        """Return what is known about a table."""
        return self.schema.facts[key]

    def column_of(self, link: Link) -> Column:
        """Return the column that a link names."""
        assert link.column is not None
        return self.schema.column(link.table, link.column)

    def kind(self, link: Link) -> str:
        """Return the kind of values of the link's column."""
        if link.derived:
            return "number"

        return kind_of(self.column_of(link))

    def is_measure(self, link: Link) -> bool:
        """Tell whether totals or averages of the link's column mean something."""
        return link.derived is not None or self.facts(link.table).is_measure(self.column_of(link))

    def is_date(self, link: Link) -> bool:
        """Tell whether the link's column holds dates or years."""
        if self.kind(link) in ("date", "timestamp"):
            return True

        return link.derived is None and is_year(self.column_of(link))

    def is_flag(self, link: Link) -> bool:
        """Tell whether the link's column holds yes and no."""
        if link.derived is not None:
            return False

        return self.kind(link) == "boolean" or flag_codes(self.column_of(link)) is not None

    def _is_other(self, link: Link) -> bool:
        return not self.is_measure(link) and self.kind(link) not in ("date", "timestamp")

    def display(self, link: Link) -> bool:
        """Tell whether the link's column is a name of its table's rows."""
        return link.column in self.facts(link.table).display

    # --------------------------------------------------------------------------
    # about words

    def has(self, *kinds: str) -> bool:
        """Tell whether any word has an intent of one of these kinds."""
        return any(word.mark.means(*kinds) for word in self.words)

    def word_at(self, place: int) -> Word | None:
        """Return the word at a place; None before the first word and after the last."""
        return self.words[place] if 0 <= place < len(self) else None

    def means(self, place: int, *kinds: str) -> bool:
        """Tell whether there is a word at a place with an intent of one of these kinds."""
        word = self.word_at(place)
        return word is not None and word.mark.means(*kinds)

    def says(self, text: str) -> bool:
        """Tell whether the question has this word."""
        return any(word.text == text for word in self.words)

    @property
    def says_records(self) -> bool:
        """Tell whether the question asks for single records ("rows", 条)."""
        return any(word.mark.arg == "rows" for word in self.words)

    def nearest(self, place: int, step: int, *passed: str) -> Word | None:
        """Return the first word from a place on that is not passed over.

        Args:
            step: 1 to go forwards, -1 to go backwards.
            passed: words that name nothing and have such an intent are passed over.
        """
        word = self.word_at(place)
        while word is not None and word.noun is None and word.mark.means(*passed):
            place += step
            word = self.word_at(place)

        return word

    def texts(self, *kinds: str) -> list[str]:
        """Return the words with such an intent, as written."""
        return [word.mark.text for word in self.words if word.mark.means(*kinds)]

    def spoken_events(self) -> list[TableKey]:
        """Return the tables of the events that verbs name: for "bought" the table of orders."""
        return list(dict.fromkeys(key for word in self.words for key in self.events_of(word)))

    def events_of(self, word: Word) -> list[TableKey]:
        """Return the tables of the events that a verb names; none for any other word."""
        if not word.mark.means("verb"):
            return []

        verb = key_of(word.mark.text, stems=True).rstrip(_DONE)
        events: dict[TableKey, None] = {}
        for name in EVENTS_OF_VERBS.get(verb, ()):
            for link in self.lexicon.find(name):
                if link.kind == "table" and link.quality >= costs.CLEAR:
                    events[link.table] = None

        return list(events)

    def named_tables(self) -> list[TableKey]:
        """Return the tables that words of the question name, in order."""
        tables = []
        for word in self.words:
            noun = word.noun
            if noun is None or noun.table is None:
                continue
            if noun.is_table:
                tables.append(noun.table.table)

        return tables


@dataclass(frozen=True)
class MatchedItem:
    """The words `first` to `last`, which an element of a pattern matched.

    Attributes:
        symbol: the element's symbol.
        word: the first of them.
        links: for `vals`, one for each value, all of one column; else the thing that the word
            names.
        periods: the periods of `dates`.
        joint: kind of the word that joins several of them: `and`, `or`, `compare`.
        rivals: what the word may name as well.
    """

    symbol: str
    first: int
    last: int
    word: Word
    links: tuple[Link, ...] = ()
    periods: tuple[Period, ...] = ()
    joint: str = ""
    rivals: tuple[Link, ...] = ()

    @property
    def link(self) -> Link:
        """Return the thing that it names, or the first of its values."""
        return self.links[0]

    @property
    def arg(self) -> str:
        """Return the argument of the word's intent."""
        return self.word.mark.arg


@dataclass(frozen=True)
class Match:
    """A place where a pattern matches: words `start` up to `end`, and the item of each element.

    `inner` is a value or flag that stands between two elements and restricts the second: "how many
    *Jazz* tracks".
    """

    question: QuestionWords
    start: int
    end: int
    cost: float
    items: tuple[MatchedItem, ...] = ()
    inner: tuple[MatchedItem, ...] = ()

    def get(self, *symbols: str) -> MatchedItem | None:
        """Return the first item of one of these symbols."""
        return next((item for item in self.items if item.symbol in symbols), None)

    def __getitem__(self, symbols: str) -> MatchedItem:
        item = self.get(*symbols.split("|"))
        if item is None:
            raise KeyError(symbols)

        return item

    def all(self, *symbols: str) -> list[MatchedItem]:
        """Return the items of the match with one of these symbols."""
        return [item for item in self.items if item.symbol in symbols]

    @property
    def is_negated(self) -> bool:
        """Tell whether the match has a word for "not"."""
        return self.get("not", "except_end") is not None

    def beside(self, step: int) -> Word | None:
        """Return the word before (-1) or after (1) the match, past words without a meaning."""
        start = self.end if step > 0 else self.start - 1
        return self.question.nearest(start, step, "noise", "of")

    def is_after(self, *kinds: str) -> bool:
        """Tell whether the word before the match has an intent of one of these kinds."""
        before = self.beside(-1)
        return before is not None and before.mark.means(*kinds)

    def is_before(self, *kinds: str) -> bool:
        """Tell whether the word after the match has an intent of one of these kinds."""
        after = self.beside(1)
        return after is not None and after.mark.means(*kinds)


def doubts(*items: MatchedItem | None) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """Return the words that name several columns equally well, each with these columns."""
    doubted = []
    for item in items:
        if item is not None and item.rivals:
            doubted.append((item.word.mark.text, (item.link, *item.rivals)))

    return tuple(doubted)


def _is_adjective(word: str) -> bool:
    return word.isascii() and part_of_speech(word, "en") == "adjective"


def _is_unit_alone(mark: Mark) -> bool:
    """Tell whether a character counts things, and is but a part of some column's name: 人."""
    is_part = mark.quality < costs.WHOLE
    return is_part and len(mark.text) == 1 and has_han(mark.text) and mark.means("unit")


def _intent_senses(mark: Mark, intent: Intent, *, is_named: bool) -> dict[str, Sense]:
    """Return the senses of a word that asks for something, and may name something as well."""
    is_name = is_named and mark.quality >= costs.NAMED and not mark.means("count")
    sense = Sense(costs.INTENT_OF_NAME if is_name else 0.0)
    return {intent.kind: sense, f"{intent.kind}:{intent.arg}": sense}


def _plain_senses(mark: Mark) -> dict[str, Sense]:
    """Return the senses of numbers, dates, quotations and unknown words."""
    senses = {}
    is_possible = mark.date is None or not mark.date.is_impossible
    if mark.number is not None and is_possible:
        senses["num"] = Sense()
    if mark.date is not None and is_possible:
        senses["date"] = Sense(costs.BARE_YEAR if mark.date.is_bare else 0.0)
    if mark.literal is not None:
        senses["lit"] = Sense()
    if mark.is_unknown:
        senses["unk"] = Sense()

    return senses


def _best_score(noun: Noun) -> float:
    return max((score for score, _ in noun.columns), default=0.0)


def _value_cost(noun: Noun, value: Link) -> float:
    """Return the cost of taking a word for a stored value."""
    if noun.is_value:
        return 0.0

    column = noun.column
    is_listed = column is not None and (column.table, column.column) == (value.table, value.column)
    # A comment that lists the values of its column does not give it their names.
    return -costs.SLIGHT if is_listed else costs.VALUE_OF_NAME
