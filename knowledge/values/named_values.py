"""Which stored values a question names: those alone are worth telling a model, and those alone may
be told.

A value is named when all of its words stand in the question one after the other, whatever their
case, width and punctuation, with or without the ending of a place or a company (浙江 and 浙江省);
else when one letter of it is wrong. What is part of a longer value, or of a name in the schema, is
not named: in 服务区 nobody speaks of 服务. Numbers are never looked for: a model copies them from
the question, and 200 in a phone number is not what "over 200" means.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.values import Catalog, Column, Table
from knowledge.language.cutting import ALONE, pieces
from knowledge.language.inflection import singular
from knowledge.language.terms import called, terms
from knowledge.values.personal_data import Privacy, is_private_value, privacy_of
from knowledge.values.stored_values import NAME_TAILS
from knowledge.words import WORDS

_WORD = re.compile(rf"[{ALONE}]|[^\W_{ALONE}]+")
_IS_ALONE = re.compile(rf"[{ALONE}]").match
_LETTER = re.compile(r"[^\W\d_]")
# Letters; a Latin word this short counts only when it is written as it is stored (IT, not it)
_SHORT = 3
_MAX_WORDS = 12  # of a value that is looked for
_MAX_CHARS = 100  # of a value that is looked for
_MAX_SCHEMA_WORDS = 8  # of a comment that is a name, not a sentence
_LEAST_MISSPELT = 5  # letters of a Latin word, in which one may be wrong
_LEAST_MISSPELT_HAN = 4
_MOST_MISSPELT_WORDS = 3  # Latin words of one value
_MOST_PLACES = 100  # columns that are remembered for one value
_MOST_KNOWN = 300  # columns whose values stay prepared
_MAX_COLUMNS = 4  # shown of those that hold one value
_MAX_FOUND = 20
# What makes another value, not another spelling of one; what may stand around a person's name.
_TELLING, _BEFORE_NAMES, _AFTER_NAMES = (
    frozenset(WORDS.chinese.text(f"values.{one}"))
    for one in ("telling", "before_names", "after_names")
)
_TABLE, _INFORMATION = WORDS.chinese.phrases("tables.ends")


def words_of(text: str) -> list[str]:
    """The words of `text` that are compared: Latin ones singular and in lower case, others by
    character.
    """
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return [singular(word) for word in _WORD.findall(text.casefold())]


@dataclass(frozen=True)
class NamedValue:
    """A column, and the values of it that the question names."""

    table: Table
    column: Column
    privacy: Privacy
    values: tuple[str, ...]


class _Held:
    """The values of a column by their spellings, without those that no model may be shown."""

    def __init__(self, table: Table, column: Column) -> None:
        self.table = table
        self.column = column
        self.privacy = privacy_of(table, column)
        self.whole: defaultdict[str, list[str]] = defaultdict(list)
        self.shortened: defaultdict[str, list[str]] = defaultdict(
            list
        )  # without the ending of a place
        if self.privacy is Privacy.PRIVATE:
            return
        for value in column.values:
            if not is_private_value(value):
                self._add(value)

    def _add(self, value: str) -> None:
        whole = " ".join(words_of(value))
        self.whole[whole].append(value)
        if self.privacy is not Privacy.OPEN:
            return
        for key in _keys(value):
            if key != whole:
                self.shortened[key].append(value)

    def spelled(self, key: str) -> tuple[str, ...]:
        """The values of that spelling."""
        return (*self.whole.get(key, ()), *self.shortened.get(key, ()))


@dataclass(frozen=True)
class _Span:
    """Words of the question, from `start` to before `end`, and what they are a spelling of."""

    start: int
    end: int
    key: str

    def is_within(self, other: "_Span") -> bool:
        return other.start <= self.start and self.end <= other.end


class NamedValues:
    """Finds what questions name among all the values that are known of one catalogue.

    Building it takes a second for a hundred thousand values; looking a question up, a fraction of a
    millisecond.

    Args:
        common: phrases that any question may hold; a value that is spelled like one of them is not
            named by it.
    """

    def __init__(self, catalog: Catalog, common: Iterable[str] = ()) -> None:
        self._common = frozenset(" ".join(words_of(phrase)) for phrase in common)
        self._columns = [
            (table, column) for table in catalog.tables for column in table.columns if column.values
        ]
        self._places: dict[str, tuple[int, ...]] = {}
        self._similar: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for number, (_, column) in enumerate(self._columns):
            for key in {key for value in column.values for key in _keys(value)}:
                self._add(key, number)
        self._known: dict[int, _Held] = {}
        self._schema = frozenset(_schema_phrases(catalog.tables))
        self._begins: dict[
            str, int
        ] = {}  # first word of what is known → words of the longest that begins so
        for key in (*self._places, *self._schema):
            first = key.partition(" ")[0]
            self._begins[first] = max(key.count(" ") + 1, self._begins.get(first, 0))

    def _add(self, key: str, number: int) -> None:
        known = self._places.get(key)
        if known is None:
            self._similar[key[0], len(key)].append(key)
        if known is None or len(known) < _MOST_PLACES:
            self._places[key] = (*(known or ()), number)

    def find(self, question: str) -> list[NamedValue]:
        """The columns that hold what `question` names; of private columns none, of names only those
        named exactly.
        """
        asked = _QuestionWords(question, self._common)
        spans = asked.spans(self._begins, lambda key: key in self._places or key in self._schema)
        schema = [span for span in spans if span.key in self._schema]
        values = [span for span in spans if span.key in self._places]
        exact = []
        for span in values:
            is_in_name = any(span.is_within(name) for name in schema)
            is_in_value = any(span.is_within(other) for other in values if other != span)
            if not (is_in_name or is_in_value or asked.says_nothing(span)):
                exact.append(span)
        known = [*exact, *schema]
        found: list[NamedValue] = []
        for span in exact:
            found.extend(self._named(asked, span, known))
        for key in self._misspelt(asked, known):
            found += self._misspelt_at(key)
        return found[:_MAX_FOUND]

    def tables(self, question: str) -> dict[tuple[str, str], int]:
        """Tables with values that `question` names → how many tables hold the rarest; nothing of it
        is shown.
        """
        asked = _QuestionWords(question, self._common)
        shared: dict[tuple[str, str], int] = {}
        for span in asked.spans(
            self._begins, lambda key: key in self._places and key not in self._common
        ):
            holding = {self._columns[number][0].key for number in self._places[span.key]}
            shared |= {key: min(len(holding), shared.get(key, len(holding))) for key in holding}
        return shared

    def _named(
        self, asked: "_QuestionWords", span: _Span, known: Sequence[_Span]
    ) -> Iterator[NamedValue]:
        for number in self._best(asked, span.key):
            held = self._held(number)
            if held.privacy is Privacy.OPEN or (
                held.privacy is Privacy.NAMES and asked.stands_alone(span, known)
            ):
                shown = tuple(
                    value for value in held.spelled(span.key) if asked.writes(span, value)
                )
                if shown:
                    yield NamedValue(held.table, held.column, held.privacy, shown)

    def _held(self, number: int) -> _Held:
        """Return the column's values; kept, because most questions name the same few columns."""
        if number not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}
            self._known[number] = _Held(*self._columns[number])
        return self._known[number]

    def _best(self, asked: "_QuestionWords", key: str) -> Sequence[int]:
        """The columns with a value, those first that share words with the question."""

        def shared(number: int) -> int:
            table, column = self._columns[number]
            texts = (table.name, table.comment, column.name, column.comment)
            return -len(asked.terms & {term for text in texts for term in terms((text or "")[:60])})

        places = self._places[key]
        if len(places) > _MAX_COLUMNS:
            return sorted(places, key=shared)[:_MAX_COLUMNS]
        return places

    def _misspelt(self, asked: "_QuestionWords", known: Sequence[_Span]) -> Iterator[str]:
        """The keys of values that the question writes with one letter wrong, where only one is that
        near.
        """
        free = asked.without(known)
        for start, end in asked.stretches(free):
            written = " ".join(asked.words[start:end])
            if written in self._common or not _may_be_misspelt(written):
                continue
            lengths = (
                (len(written),) if _IS_ALONE(written) else range(len(written) - 1, len(written) + 2)
            )
            near = []
            for n in lengths:
                for key in self._similar.get((written[0], n), ()):
                    if _is_near(written, key):
                        near.append(key)
            if len(near) == 1:
                yield near[0]

    def _misspelt_at(self, key: str) -> Iterator[NamedValue]:
        for held in map(self._held, self._places[key][:_MAX_COLUMNS]):
            values = tuple(held.whole.get(key, ())) if held.privacy is Privacy.OPEN else ()
            if values:
                yield NamedValue(held.table, held.column, held.privacy, values)


class _QuestionWords:
    """A question cut into the words that values are compared with."""

    def __init__(self, question: str, common: frozenset[str]) -> None:
        self._common = common
        self.words = words_of(question)
        written = _WORD.findall(unicodedata.normalize("NFKC", question))
        self._written = (
            written if len(written) == len(self.words) else self.words
        )  # some letters fold to two words
        self.terms = frozenset(terms(question))

    def spans(self, begins: Mapping[str, int], is_known: Callable[[str], bool]) -> list[_Span]:
        """The stretches of words that are known, as long as they can be."""
        found = []
        for start, word in enumerate(self.words):
            for end in range(min(len(self.words), start + begins.get(word, 0)), start, -1):
                key = " ".join(self.words[start:end])
                if is_known(key):
                    found.append(_Span(start, end, key))
        return found

    def says_nothing(self, span: _Span) -> bool:
        """Whether any question may hold these words (`it`); an abbreviation in capitals (`IT`) is
        none of them.
        """
        is_abbreviation = (
            span.end - span.start == 1 < len(span.key) <= _SHORT
            and self._written[span.start].isupper()
        )
        return span.key in self._common and not (
            is_abbreviation and not all(map(str.isupper, self._written))
        )

    def writes(self, span: _Span, value: str) -> bool:
        """Whether the words are written as the value is, where they are too short for any other
        spelling.
        """
        if span.end - span.start > 1 or len(span.key) > _SHORT or _IS_ALONE(span.key):
            return True
        return self._written[span.start] == value.strip()

    def stands_alone(self, span: _Span, known: Sequence[_Span]) -> bool:
        """Whether the words beside a person's name are surely not part of the name."""
        is_free = self.without(known)
        before = span.start - 1
        after = span.end
        return (before < 0 or not is_free[before] or self._ends_name(before, _BEFORE_NAMES)) and (
            after == len(self.words) or not is_free[after] or self._ends_name(after, _AFTER_NAMES)
        )

    def _ends_name(self, beside: int, characters: frozenset[str]) -> bool:
        if _IS_ALONE(self.words[beside]):
            return self.words[beside] in characters
        return not self._written[beside][0].isupper() or self.words[beside] in self._common

    def without(self, known: Sequence[_Span]) -> list[bool]:
        """For each word, whether no known phrase covers it."""
        covered: set[int] = set()
        for span in known:
            covered.update(range(span.start, span.end))
        return [number not in covered for number in range(len(self.words))]

    def stretches(self, free: Sequence[bool]) -> Iterator[tuple[int, int]]:
        """Start and end of free words that could be one misspelt value; of many the first ones."""
        for start in range(len(free)):
            shortest = 1
            longest = _MOST_MISSPELT_WORDS
            if _IS_ALONE(self.words[start]):
                shortest = _LEAST_MISSPELT_HAN
                longest = _MAX_WORDS
            for end in range(start + 1, min(len(free), start + longest) + 1):
                if not free[end - 1]:
                    break
                if end - start >= shortest:
                    yield start, end


def _keys(value: str) -> Iterator[str]:
    """The spellings under which a value is looked for; none of a number, or of a single Han
    character.
    """
    words = words_of(value) if len(value) <= _MAX_CHARS else []
    if not 0 < len(words) <= _MAX_WORDS or not any(map(_LETTER.search, words)):
        return
    if len(words) > 1 or not _IS_ALONE(words[0]):
        yield " ".join(words)
    tail = ""
    if value.endswith(NAME_TAILS):
        tail = next(filter(value.endswith, NAME_TAILS), "")
    if tail and len(words) - len(tail) >= 2:
        yield " ".join(words[: len(words) - len(tail)])


def _schema_phrases(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        for name, comment in (
            (thing.name, thing.comment) for things in ((table,), table.columns) for thing in things
        ):
            said = called(comment)
            for text in (name, said, said.removesuffix(_TABLE).removesuffix(_INFORMATION)):
                words = []
                for part in pieces(text):
                    words.extend(words_of(part))
                if 0 < len(words) <= _MAX_SCHEMA_WORDS:
                    yield " ".join(words)


def _may_be_misspelt(written: str) -> bool:
    letters = written.replace(" ", "")
    least = _LEAST_MISSPELT
    if _IS_ALONE(written):
        least = _LEAST_MISSPELT_HAN
    return len(letters) >= least and letters.isalpha()


def _is_near(one: str, other: str) -> bool:
    """Whether one character is wrong, missing, too many, or swapped with the next one; never a
    digit.
    """
    if len(one) > len(other):
        one, other = other, one
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) != len(other):
        return one[at:] == other[at + 1 :] and other[at].isalpha()
    if one[at + 1 :] == other[at + 1 :]:
        if at >= len(one):
            return False
        if {one[at], other[at]} & _TELLING:
            return False
        if not one[at].isalpha():
            return False
        return other[at].isalpha()
    swapped = one[at + 1 : at + 2] + one[at : at + 1] + one[at + 2 :]
    return swapped == other[at:] and one[at : at + 2].isalpha()
