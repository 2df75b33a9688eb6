"""The words of one question with everything each of them may mean, and stretches of them that patterns match.

A word has symbols: `tab`, `mcol` (a measure), `dcol` (a date), `tcol` (another column), `flag`, `val`, `num`, `date`,
`lit` (a quotation), `unk`, and the kind of its intent, alone and with its argument (`cmp`, `cmp:=`). What is less
likely meant costs more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from common.meanings import TableKey
from common.values import Column
from knowledge.atoms import key_of
from knowledge.thesaurus import EVENTS_OF_VERBS
from rules.linking.mark import Mark, Noun, is_said_as_year
from rules.linking.moments import Period
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.reading import costs
from rules.schema.facts import Facts, flag_codes, is_year, kind_of
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.words import WORDS

_WHO = WORDS.english.text("questions.who")
_PEOPLE = frozenset(WORDS.both("questions.people"))
_DONE = WORDS.chinese.text("questions.done")
_SEVERAL = (("val", "vals"), ("date", "dates"))  # symbols of one, and of several that are joined
_SAME_SCORE, _SAME_QUALITY = 0.015, 0.02
Symbol = Literal["tab", "mcol", "dcol", "tcol", "flag", "val", "vals", "num", "date", "dates", "lit", "unk"]
ColumnIdentity = tuple[TableKey, str | None]


@dataclass(frozen=True)
class Sense:
    """One thing that a word may mean: what it names, and how unlikely that is; `rivals` are named as well."""

    cost: float = 0.0
    link: Link | None = None
    rivals: tuple[Link, ...] = ()


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
        """As written, in lower case."""
        return self.mark.text.lower()

    @property
    def symbols(self) -> Iterator[str]:
        """What an element of a pattern may call it."""
        yield from self.senses
        yield f"'{self.text}'"
        yield from (several for one, several in _SEVERAL if one in self.senses)

    @property
    def names_figure(self) -> bool:
        """Whether it is the name of a figure rather than of the table that it names as well."""
        figure, table = (self.senses[one].link if one in self.senses else None for one in ("mcol", "tab"))
        return figure is not None and (table is None or figure.quality > table.quality)


class Question:
    """The words of one question, and what the database says of them.

    Args:
        nouns: what each mark names; see `nouns_of`.
        settled: what the user has said when asked back.
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
            year = _YEAR if is_said_as_year(marks, at) else {}
            self.words.append(Word(at, mark, noun, {**dict(self._senses(at, mark, noun)), **year}))

        self.symbols = frozenset(symbol for word in self.words for symbol in word.symbols) | {"<"}
        self.taken: dict[tuple[int, object], Any] = {}  # what elements of patterns take from a word on

    def __len__(self) -> int:
        return len(self.words)

    # ------------------------------------------------------------------------------------------------------- meanings

    def _senses(self, at: int, mark: Mark, noun: Noun | None) -> Iterator[tuple[str, Sense]]:
        senses = dict(self._named(noun)) if noun is not None else {}
        if mark.is_unknown and mark.text.lower() in _PEOPLE and len(self.schema.persons) == 1:
            senses["tab"] = Sense(0.0, Link("table", self.schema.persons[0], None, None, 1.0, mark.text))
        elif mark.is_unknown and (table := self.lexicon.spoken.short_names.get(mark.text)) is not None:
            senses["tab"] = Sense(costs.SHORT, table)
        yield from senses.items()
        best = min((sense.cost for sense in senses.values()), default=None)
        if at == 0 and mark.means("with") and mark.text.lower().startswith(f"{_WHO} "):
            yield "which:person", Sense()  # "who has"
        elif mark.intent is not None:
            named = best is not None and mark.quality >= costs.NAMED and not mark.means("count")
            intent = Sense(costs.INTENT_OF_NAME if named else 0.0)
            yield mark.intent.kind, intent
            yield f"{mark.intent.kind}:{mark.intent.arg}", intent
        is_possible = mark.date is None or not mark.date.is_impossible
        if mark.number is not None and is_possible:
            yield "num", Sense()
        if mark.date is not None and is_possible:
            yield "date", Sense(costs.BARE_YEAR if mark.date.is_bare else 0.0)
        if mark.literal is not None:
            yield "lit", Sense()
        if mark.is_unknown:
            yield "unk", Sense()

    def _named(self, noun: Noun) -> Iterator[tuple[str, Sense]]:
        best = max((score for score, _ in noun.columns), default=0.0)
        if noun.table is not None and (noun.is_table or noun.table.quality >= costs.CLEAR):
            lacking = 0.0 if noun.is_table else costs.SECOND + max(0.0, best - noun.table.quality)
            if lacking <= costs.DEAREST:
                yield "tab", Sense(lacking, noun.table)
        elif (entity := self._entity_named(noun)) is not None:
            yield "tab", Sense(-costs.SLIGHT, entity)
        column = costs.SECOND if noun.is_value else 0.0
        for symbol, accept in (
            ("mcol", self.is_measure), ("dcol", self.is_date), ("flag", self.is_flag), ("tcol", self._is_other),
        ):  # fmt: skip
            picked = self._picked(noun, accept)
            if picked is not None:
                score, link, rivals = picked
                cost = column + costs.WORSE * max(0.0, best - score)
                cost += self._as_measure(noun, link) if symbol == "mcol" else costs.SECOND * noun.is_table
                cost += costs.PART * max(0.0, costs.WHOLE - link.quality)
                if cost <= costs.DEAREST:
                    yield symbol, Sense(cost, link, rivals)
        if noun.value is not None:
            own = (noun.value.table, noun.value.column)
            is_listed = noun.column is not None and (noun.column.table, noun.column.column) == own
            # A comment that lists the values of its column does not give it their names.
            cost = 0.0 if noun.is_value else -costs.SLIGHT if is_listed else costs.VALUE_OF_NAME
            yield "val", Sense(cost, noun.value)

    def _entity_named(self, noun: Noun) -> Link | None:
        """The table whose rows a word means that is part of what they are called: 医院 of 医院名称."""
        link = noun.column
        if link is None or noun.is_value or not costs.CLEAR <= link.quality < costs.WHOLE_NAME:
            return None
        facts = self.facts(link.table)
        names = self.display(link) and facts.is_entity and not (link.column or "").endswith(link.spelling)
        return Link("table", link.table, None, None, link.quality, link.spelling) if names else None

    def _picked(self, noun: Noun, accept: Callable[[Link], bool]) -> tuple[float, Link, tuple[Link, ...]] | None:
        scored = [item for item in noun.columns if accept(item[1])]
        if not scored:
            return None
        score, best = scored[0]
        rivals = [
            link for other, link in scored
            if other >= score - _SAME_SCORE and link.table != best.table
            and abs(link.quality - best.quality) <= _SAME_QUALITY and not self._same_key(best, link)
        ]  # fmt: skip
        chosen = self.settled.among([(link.table, link.column) for link in (best, *rivals)])
        if chosen is not None:
            return score, next(link for link in (best, *rivals) if (link.table, link.column) == chosen), ()
        return score, best, tuple(rivals)

    def _as_measure(self, noun: Noun, link: Link) -> float:
        """What it costs to take a word for a measure that may also be a table: `收入`, but not the amount of 订单."""
        if not noun.is_table or noun.table is None:
            return 0.0
        of_another = self.facts(noun.table.table).is_entity and link.table != noun.table.table
        return costs.SECOND if of_another or link.quality < noun.table.quality - 0.08 else -costs.SLIGHT

    def _same_key(self, first: Link, second: Link) -> bool:
        """Whether it doesn't matter which is meant, because one references the other, or both reference the same."""
        parents, others = (
            {edge.parent for edge in self.facts(one.table).edges if edge.columns == (one.column,)}
            for one in (first, second)
        )
        return second.table in parents or first.table in others or not parents.isdisjoint(others)

    # ---------------------------------------------------------------------------------------------- about the database

    def facts(self, key: TableKey) -> Facts:
        """What a table is for."""
        return self.schema.facts[key]

    def column_of(self, link: Link) -> Column:
        """The column a link means."""
        assert link.column is not None
        return self.schema.column(link.table, link.column)

    def kind(self, link: Link) -> str:
        """The kind of values of the link's column."""
        return "number" if link.derived else kind_of(self.column_of(link))

    def is_measure(self, link: Link) -> bool:
        """Whether totals or averages of the link's column mean something."""
        return link.derived is not None or self.facts(link.table).is_measure(self.column_of(link))

    def is_date(self, link: Link) -> bool:
        """Whether the link's column holds dates or years."""
        return self.kind(link) in ("date", "timestamp") or (link.derived is None and is_year(self.column_of(link)))

    def is_flag(self, link: Link) -> bool:
        """Whether the link's column holds yes and no."""
        return link.derived is None and (self.kind(link) == "boolean" or flag_codes(self.column_of(link)) is not None)

    def _is_other(self, link: Link) -> bool:
        return not self.is_measure(link) and self.kind(link) not in ("date", "timestamp")

    def display(self, link: Link) -> bool:
        """Whether the link's column is a name of its table's rows."""
        return link.column in self.facts(link.table).display

    # ------------------------------------------------------------------------------------------------------ about words

    def has(self, *kinds: str) -> bool:
        """Whether any word has such an intent."""
        return any(word.mark.means(*kinds) for word in self.words)

    def nearest(self, place: int, step: int, *passed: str) -> Word | None:
        """The first word from a place on, forwards (1) or backwards (-1), past those that only have such an intent."""
        while 0 <= place < len(self) and self.words[place].mark.means(*passed) and self.words[place].noun is None:
            place += step
        return self.words[place] if 0 <= place < len(self) else None

    def texts(self, *kinds: str) -> list[str]:
        """The words with such an intent, as written."""
        return [word.mark.text for word in self.words if word.mark.means(*kinds)]

    def spoken_events(self) -> list[TableKey]:
        """The tables of the events that verbs name: "bought" those of orders, "reviewed" those of reviews."""
        return list(dict.fromkeys(key for word in self.words for key in self.events_of(word)))

    def events_of(self, word: Word) -> list[TableKey]:
        """The tables of the events that a verb names; none for any other word."""
        verb = key_of(word.mark.text, stems=True).rstrip(_DONE)
        names = EVENTS_OF_VERBS.get(verb, ()) if word.mark.means("verb") else ()
        links = (link for name in names for link in self.lexicon.find(name))
        found = (link.table for link in links if link.kind == "table" and link.quality >= costs.CLEAR)
        return list(dict.fromkeys(found))

    def named_tables(self) -> list[TableKey]:
        """The tables that words of the question name, in order."""
        return [word.noun.table.table for word in self.words if word.noun and word.noun.is_table and word.noun.table]


@dataclass(frozen=True)
class Item:
    """What an element of a pattern matched: words `first` to `last`.

    Attributes:
        links: of `vals`, one for each value, all of one column; else what the word names.
        periods: of `dates`.
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
        """What it names."""
        return self.links[0]

    @property
    def arg(self) -> str:
        """The argument of its intent."""
        return self.word.mark.arg


@dataclass(frozen=True)
class Match:
    """Where a pattern matches: words `start` up to `end`, and what each element took.

    `inner` is a value or flag that stands between two elements and says more of the second: "how many *Jazz* tracks".
    """

    question: Question
    start: int
    end: int
    cost: float
    items: tuple[Item, ...] = ()
    inner: tuple[Item, ...] = ()

    def get(self, *symbols: str) -> Item | None:
        """The first item of one of these symbols."""
        return next((item for item in self.items if item.symbol in symbols), None)

    def __getitem__(self, symbols: str) -> Item:
        found = self.get(*symbols.split("|"))
        if found is None:
            raise KeyError(symbols)
        return found

    def all(self, *symbols: str) -> list[Item]:
        """All items of these symbols."""
        return [item for item in self.items if item.symbol in symbols]

    @property
    def is_negated(self) -> bool:
        """Whether the match has a word for "not"."""
        return self.get("not", "except_end") is not None

    def beside(self, step: int) -> Word | None:
        """The word before (-1) or after (1) the match, past words that say nothing."""
        return self.question.nearest(self.start - 1 if step < 0 else self.end, step, "noise", "of")


def doubts(*items: Item | None) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """The words that may name several columns equally well."""
    return tuple((one.word.mark.text, (one.link, *one.rivals)) for one in items if one is not None and one.rivals)
