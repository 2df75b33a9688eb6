"""Find stored values that a question names: those alone are worth telling a model, and may be told.

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
from knowledge.language.terms import name_in_comment, terms
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
_READ_OF_TEXT = 60  # characters of a name or a comment
# What makes another value, not another spelling of one; what may stand around a person's name.
_TELLING, _BEFORE_NAMES, _AFTER_NAMES = (
    frozenset(WORDS.chinese.text(f"values.{one}"))
    for one in ("telling", "before_names", "after_names")
)
_TABLE, _INFORMATION = WORDS.chinese.phrases("tables.ends")


def words_of(text: str) -> list[str]:
    """Return the words that are compared: Latin ones singular in lower case, else characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)

    return [singular(word) for word in _WORD.findall(text.casefold())]


@dataclass(frozen=True)
class NamedValue:
    """A column, and the values of it that the question names."""

    table: Table
    column: Column
    privacy: Privacy
    values: tuple[str, ...]


class _ColumnValues:
    """The values of a column by their spellings, without those that no model may be shown."""

    def __init__(self, table: Table, column: Column) -> None:
        self.table = table
        self.column = column
        self.privacy = privacy_of(table, column)
        self.whole: defaultdict[str, list[str]] = defaultdict(list)
        # Without the ending of a place.
        self.shortened: defaultdict[str, list[str]] = defaultdict(list)
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
        """Return the values of that spelling."""
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
        self._columns: list[tuple[Table, Column]] = []
        for table in catalog.tables:
            for column in table.columns:
                if column.values:
                    self._columns.append((table, column))

        self._places: dict[str, tuple[int, ...]] = {}
        self._similar: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for number, (_, column) in enumerate(self._columns):
            keys: set[str] = set()
            for value in column.values:
                keys.update(_keys(value))

            for key in keys:
                self._add(key, number)

        self._known: dict[int, _ColumnValues] = {}
        self._schema = frozenset(_schema_phrases(catalog.tables))
        # First word of what is known → words of the longest that begins so.
        self._begins: dict[str, int] = {}
        for key in (*self._places, *self._schema):
            first = key.partition(" ")[0]
            size = key.count(" ") + 1
            self._begins[first] = max(size, self._begins.get(first, 0))

    def _add(self, key: str, number: int) -> None:
        numbers = self._places.get(key, ())
        if not numbers:
            self._similar[key[0], len(key)].append(key)
        if len(numbers) < _MOST_PLACES:
            self._places[key] = (*numbers, number)

    def find(self, question: str) -> list[NamedValue]:
        """Return the columns that hold what `question` names.

        Private columns are none of them; of names there are only those named exactly.
        """
        asked = _QuestionWords(question, self._common)
        spans = asked.spans(self._begins, self._is_known)
        schema = [span for span in spans if span.key in self._schema]
        values = [span for span in spans if span.key in self._places]
        exact = [span for span in _whole(values, schema) if not asked.says_nothing(span)]
        covering = [*exact, *schema]
        named_values: list[NamedValue] = []
        for span in exact:
            named_values.extend(self._values_named(asked, span, covering))

        for key in self._misspelt(asked, covering):
            named_values.extend(self._misspelt_at(key))

        return named_values[:_MAX_FOUND]

    def _is_known(self, key: str) -> bool:
        return key in self._places or key in self._schema

    def tables(self, question: str) -> dict[tuple[str, str], int]:
        """Return tables with values that `question` names → how many tables hold the rarest.

        Nothing of it is shown.
        """
        asked = _QuestionWords(question, self._common)
        shared: dict[tuple[str, str], int] = {}
        for span in asked.spans(self._begins, self._is_telling):
            holding = {self._columns[number][0].key for number in self._places[span.key]}
            count = len(holding)
            for key in holding:
                shared[key] = min(count, shared.get(key, count))

        return shared

    def _is_telling(self, key: str) -> bool:
        """Tell whether it is a value's key, and not what any question may hold."""
        return key in self._places and key not in self._common

    def _values_named(
        self, asked: "_QuestionWords", span: _Span, covering: Sequence[_Span]
    ) -> Iterator[NamedValue]:
        for number in self._best(asked, span.key):
            entry = self._column_values(number)
            if entry.privacy is Privacy.PRIVATE:
                continue
            if entry.privacy is Privacy.NAMES and not asked.stands_alone(span, covering):
                continue

            spelled = entry.spelled(span.key)
            written = tuple(value for value in spelled if asked.writes(span, value))
            if written:
                yield NamedValue(entry.table, entry.column, entry.privacy, written)

    def _column_values(self, number: int) -> _ColumnValues:
        """Return the column's values; kept, because most questions name the same few columns."""
        if number not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}

            self._known[number] = _ColumnValues(*self._columns[number])

        return self._known[number]

    def _best(self, asked: "_QuestionWords", key: str) -> Sequence[int]:
        """Return the columns with a value, those first that share words with the question."""

        def shared(number: int) -> int:
            table, column = self._columns[number]
            words: set[str] = set()
            for text in (table.name, table.comment, column.name, column.comment):
                words.update(terms((text or "")[:_READ_OF_TEXT]))

            return len(asked.terms & words)

        places = self._places[key]
        if len(places) <= _MAX_COLUMNS:
            return places

        ordered = sorted(places, key=lambda number: -shared(number))
        return ordered[:_MAX_COLUMNS]

    def _misspelt(self, asked: "_QuestionWords", covering: Sequence[_Span]) -> Iterator[str]:
        """Yield the keys of values that the question writes with one letter wrong.

        Where several are that near, none of them is meant.
        """
        free = asked.without(covering)
        for start, end in asked.stretches(free):
            written = " ".join(asked.words[start:end])
            if written in self._common or not _may_be_misspelt(written):
                continue

            near = self._near(written)
            if len(near) == 1:
                yield near[0]

    def _near(self, written: str) -> list[str]:
        """Return the keys of values that differ from the text in one letter."""
        size = len(written)
        sizes = range(size - 1, size + 2)
        if _IS_ALONE(written):
            sizes = range(size, size + 1)

        near = []
        for other_size in sizes:
            for key in self._similar.get((written[0], other_size), ()):
                if _is_near(written, key):
                    near.append(key)

        return near

    def _misspelt_at(self, key: str) -> Iterator[NamedValue]:
        for number in self._places[key][:_MAX_COLUMNS]:
            entry = self._column_values(number)
            if entry.privacy is not Privacy.OPEN:
                continue

            values = tuple(entry.whole.get(key, ()))
            if values:
                yield NamedValue(entry.table, entry.column, entry.privacy, values)


class _QuestionWords:
    """A question cut into the words that values are compared with."""

    def __init__(self, question: str, common: frozenset[str]) -> None:
        self._common = common
        self.words = words_of(question)
        self._written: list[str] = _WORD.findall(unicodedata.normalize("NFKC", question))
        if len(self._written) != len(self.words):  # some letters fold to two words
            self._written = self.words

        self.terms = frozenset(terms(question))

    def spans(self, begins: Mapping[str, int], is_known: Callable[[str], bool]) -> list[_Span]:
        """Return the stretches of words that are known, those that begin alike from the longest."""
        spans = []
        for start, word in enumerate(self.words):
            last = min(len(self.words), start + begins.get(word, 0))
            for end in range(last, start, -1):
                key = " ".join(self.words[start:end])
                if is_known(key):
                    spans.append(_Span(start, end, key))

        return spans

    def says_nothing(self, span: _Span) -> bool:
        """Tell whether any question may hold these words (`it`).

        An abbreviation in capitals (`IT`) is none of them, unless all is in capitals.
        """
        if span.key not in self._common:
            return False

        is_one_word = span.end - span.start == 1
        is_short = 1 < len(span.key) <= _SHORT
        if not is_one_word or not is_short:
            return True
        if not self._written[span.start].isupper():
            return True

        return all(map(str.isupper, self._written))

    def writes(self, span: _Span, value: str) -> bool:
        """Tell whether the words are written as the value is.

        Only short ones have to be: longer ones have other spellings.
        """
        is_one_word = span.end - span.start == 1
        is_short = len(span.key) <= _SHORT and not _IS_ALONE(span.key)
        if is_one_word and is_short:
            return self._written[span.start] == value.strip()

        return True

    def stands_alone(self, span: _Span, covering: Sequence[_Span]) -> bool:
        """Tell whether the words beside a person's name are surely not part of the name."""
        is_free = self.without(covering)
        if self._may_be_of_name(span.start - 1, is_free, _BEFORE_NAMES):
            return False

        return not self._may_be_of_name(span.end, is_free, _AFTER_NAMES)

    def _may_be_of_name(
        self, beside: int, is_free: Sequence[bool], characters: frozenset[str]
    ) -> bool:
        """Tell whether the word beside a name may go on with it; no word does not."""
        is_there = 0 <= beside < len(self.words)
        if not is_there or not is_free[beside]:
            return False

        word = self.words[beside]
        if _IS_ALONE(word):
            return word not in characters

        is_capitalised = self._written[beside][0].isupper()
        return is_capitalised and word not in self._common

    def without(self, covering: Sequence[_Span]) -> list[bool]:
        """Tell of each word whether no known phrase covers it."""
        covered: set[int] = set()
        for span in covering:
            covered.update(range(span.start, span.end))

        return [number not in covered for number in range(len(self.words))]

    def stretches(self, free: Sequence[bool]) -> Iterator[tuple[int, int]]:
        """Yield start and end of free words that could be one misspelt value."""
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
    """Yield the spellings under which a value is looked for.

    A number has none, nor has a single Han character.
    """
    if len(value) > _MAX_CHARS:
        return

    words = words_of(value)
    has_letters = any(map(_LETTER.search, words))
    if len(words) > _MAX_WORDS or not has_letters:
        return

    is_one_character = len(words) == 1 and _IS_ALONE(words[0])
    if not is_one_character:
        yield " ".join(words)
    if not value.endswith(NAME_TAILS):
        return

    tail = next(filter(value.endswith, NAME_TAILS))
    rest = len(words) - len(tail)
    if rest >= 2:
        yield " ".join(words[:rest])


def _whole(values: Sequence[_Span], schema: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the spans that are part of no name of the schema and of no other value."""
    for span in values:
        is_in_name = any(map(span.is_within, schema))
        if is_in_name:
            continue

        others = (other for other in values if other != span)
        is_in_value = any(map(span.is_within, others))
        if not is_in_value:
            yield span


def _schema_phrases(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        table_and_columns: tuple[Table | Column, ...] = (table, *table.columns)
        for thing in table_and_columns:
            comment_name = name_in_comment(thing.comment)
            without_end = comment_name.removesuffix(_TABLE).removesuffix(_INFORMATION)
            for text in (thing.name, comment_name, without_end):
                words: list[str] = []
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
    """Tell whether one character is wrong, missing, too many, or swapped with the next one.

    It is never a digit.
    """
    if one == other:
        return False
    if len(one) > len(other):
        one, other = other, one

    at = _first_difference(one, other)
    if len(one) != len(other):
        return one[at:] == other[at + 1 :] and other[at].isalpha()
    if one[at + 1 :] == other[at + 1 :]:
        return _may_be_mistaken(one[at], other[at])

    swapped = one[at + 1 : at + 2] + one[at : at + 1] + one[at + 2 :]
    return swapped == other[at:] and one[at : at + 2].isalpha()


def _first_difference(one: str, other: str) -> int:
    for at, (letter, counterpart) in enumerate(zip(one, other, strict=False)):
        if letter != counterpart:
            return at

    return len(one)


def _may_be_mistaken(letter: str, other: str) -> bool:
    if {letter, other} & _TELLING:
        return False

    return letter.isalpha() and other.isalpha()
