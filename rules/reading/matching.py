"""The language of patterns, and the places of a question where a pattern matches.

A pattern is a row of elements, each of which stands for a word of the question. Two examples:

    mcol not? cmp num               the name of a measure, perhaps "not", a comparison, a number:
                                    "price not over 100", `价格不高于100`
    count distinct? tcol|dcol|mcol  "how many", perhaps "different", the name of a column:
                                    "how many different cities", `有多少个不同的城市`

The elements are written so:

    mcol             a word in that sense, a symbol of `rules.reading.words` (a kind of column, a
                     table, a value …) or a kind of `rules.words.vocabulary` (a comparison …)
    cmp:!=           a word of that kind whose argument is `!=`
    vals, dates      several values or periods, joined by "and", "or", "to"
    '起'             that very word
    each|by          a word that matches one of them
    not?             such a word, or none
    >tab, <tab       as the last element: such a word comes next; as the first one: it stands
                     before; neither takes the word
    {compared}       any pattern of that name in a table of parts, which may name others

Words that only tie others together ("of", "the") may stand between two elements.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from rules.linking.mark import joins_ends
from rules.linking.moments import Period
from rules.query.years import in_year_of
from rules.reading import costs
from rules.reading.parts import Parts
from rules.reading.words import ColumnIdentity, Match, MatchedItem, QuestionWords, Word
from rules.schema.links import Link

_TIES = ("noise", "of", "unit", "verb")
_MOST_TIES = 5
_FARTHEST_JOINT = 5  # words from a value or period to the next one that is joined to it

_Way = tuple[int, float, MatchedItem]
"""A way in which an element takes words: the place after them, the cost, and the item."""


@dataclass(frozen=True, eq=False)
class Element:
    """One element of a pattern; there is one object for each text.

    Attributes:
        takes_no_word: it only tests which word stands before or after the match.
    """

    symbols: tuple[str, ...]
    optional: bool = False
    takes_no_word: bool = False


Make = Callable[[Match], Parts | None] | Parts
"""Makes parts of a match, or None if it means nothing; a pattern may also give constant parts."""


@dataclass(frozen=True, eq=False)
class PhrasePattern:
    """A pattern with the cost of using it; there is one object for each choice of its `{names}`."""

    text: str
    elements: tuple[Element, ...]
    weight: float
    make: Make


Patterns = Mapping[str, tuple[PhrasePattern, ...]]
"""Patterns by the symbols that may come first; those that look at the word before by `<`."""


def elements(text: str, parts: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Element, ...]]:
    """Yield the patterns that a text with `{names}` stands for."""
    name = re.search(r"\{(\w+)\}", text)
    if name is None:
        yield tuple(map(_element, text.split()))
        return

    for choice in parts[name[1]]:
        yield from elements(text.replace(name[0], choice, 1), parts)


@cache
def _element(text: str) -> Element:
    """Parse one element of a pattern: `tab|val?` is optional, `>tab` takes no word."""
    takes_no_word = text.startswith((">", "<"))
    optional = text.endswith("?")
    return Element(tuple(text.strip("<>?").split("|")), optional, takes_no_word)


def matches(question: QuestionWords, pattern: tuple[Element, ...], start: int) -> Iterator[Match]:
    """Yield every way in which the pattern matches from a word on."""
    nothing = Match(question, start, start, 0.0)
    first = pattern[0]
    tests_word_before = first.takes_no_word and not first.optional and len(pattern) > 1
    if not tests_word_before:
        yield from _from(question, pattern, start, nothing)
        return

    before = _untied_before(question, start)
    if before is None:
        return

    for _, _, item in _taken(question, before, first)[:1]:
        yield from _from(question, pattern[1:], start, replace(nothing, items=(item,)))


def _untied_before(question: QuestionWords, place: int) -> int | None:
    """Return the place of the nearest word before `place` that does not only tie others."""
    for before in reversed(range(place)):
        if not _is_tie(question.words[before]):
            return before

    return None


def _from(
    question: QuestionWords, pattern: tuple[Element, ...], place: int, so_far: Match
) -> Iterator[Match]:
    """Yield every way in which the elements match from a place on, behind what has matched."""
    if not pattern:
        yield so_far
        return

    element = pattern[0]
    if element.optional:
        yield from _from(question, pattern[1:], place, so_far)

    next_word = _after_ties(question, place, element, is_first=place == so_far.start)
    if next_word is None:
        return

    at, passed = next_word
    ways = _taken(question, at, element)
    for end, cost, item in ways:
        longer = replace(so_far, items=(*so_far.items, item))
        if not element.takes_no_word:
            longer = replace(longer, end=end, cost=so_far.cost + passed + cost)

        yield from _from(question, pattern[1:], end, longer)

    if ways or at == so_far.start or element.takes_no_word or so_far.inner:
        return

    for end, cost, item in _attributes(question, at):  # "how many *Jazz* tracks"
        total = so_far.cost + passed + cost + costs.ATTRIBUTE
        yield from _from(question, pattern, end, replace(so_far, cost=total, inner=(item,)))


def _after_ties(
    question: QuestionWords, place: int, element: Element, *, is_first: bool
) -> tuple[int, float] | None:
    """Pass over words that only tie others, up to one that the element takes, or to any other.

    Returns:
        The place of that word and the cost of those before it; None after the last word.
    """
    passed = 0.0
    for at in range(place, min(place + _MOST_TIES + 1, len(question))):
        if is_first or _taken(question, at, element) or not _is_tie(question.words[at]):
            return at, passed

        passed += costs.TIE

    return None


def _attributes(question: QuestionWords, place: int) -> Iterator[_Way]:
    """Yield the values and flags that may restrict the next element."""
    yield from _vals(question, place)
    word = question.words[place]
    flag = word.senses.get("flag")
    if flag is not None and flag.link is not None:
        yield place + 1, flag.cost, MatchedItem("flag", place, place, word, (flag.link,))


def _is_tie(word: Word) -> bool:
    """Tell whether a word only ties others together and names nothing."""
    if not word.mark.means(*_TIES):
        return False

    return all(sense.link is None for sense in word.senses.values())


def can_match(question: QuestionWords, pattern: tuple[Element, ...]) -> bool:
    """Tell whether the question has words for all elements, wherever they stand.

    That is far quicker than looking for a match.
    """
    for element in pattern:
        if element.optional:
            continue
        if question.symbols.isdisjoint(element.symbols):
            return False

    return True


def _taken(question: QuestionWords, place: int, element: Element) -> tuple[_Way, ...]:
    """Return the ways in which an element takes words from a place on.

    They are kept with the question, because many patterns share their elements.
    """
    taken: tuple[_Way, ...] | None = question.taken.get((place, element))
    if taken is None:
        taken = question.taken[place, element] = tuple(_ways(question, place, element))

    return taken


def _ways(question: QuestionWords, place: int, element: Element) -> Iterator[_Way]:
    for symbol in element.symbols:
        if symbol in _JOINED:
            yield from _JOINED[symbol](question, place)
        elif symbol.startswith("'"):
            yield from _quoted_word(question, place, symbol)
        else:
            yield from _single_word(question, place, symbol)


def _quoted_word(question: QuestionWords, place: int, symbol: str) -> Iterator[_Way]:
    word = question.words[place]
    if word.text == symbol.strip("'"):
        yield place + 1, 0.0, MatchedItem(symbol, place, place, word)


def _single_word(question: QuestionWords, place: int, symbol: str) -> Iterator[_Way]:
    word = question.words[place]
    sense = word.senses.get(symbol)
    if sense is None:
        return

    kind = symbol.split(":")[0]
    links = () if sense.link is None else (sense.link,)
    yield place + 1, sense.cost, MatchedItem(kind, place, place, word, links, rivals=sense.rivals)


# ------------------------------------------------------------------------------
# joined values and dates


def _vals(question: QuestionWords, place: int) -> Iterator[_Way]:
    """Yield the value at a place, and all values of one column that are joined to it."""
    word = question.words[place]
    sense = word.senses.get("val")
    if sense is None or word.noun is None:
        return

    candidates: _Values = {key: (link,) for key, link in _values_by_column(word).items()}
    yield place + 1, sense.cost, MatchedItem("vals", place, place, word, _first(candidates))
    joint = ""
    last = place
    while True:
        joined = _joined_to(question, last, ("and", "or", "compare"))
        joined = joined or _next_value(question, last)
        if joined is None:
            break

        kind, other = joined
        longer = _with_values_of(candidates, question.words[other])
        if not longer:
            break
        if not joint or kind == "or":
            joint = kind

        last = other
        candidates = longer

    if last > place:
        links = _first(candidates)
        yield last + 1, sense.cost, MatchedItem("vals", place, last, word, links, joint=joint)


_Values = dict[ColumnIdentity, tuple[Link, ...]]
"""Values that words may be, by the column that has all of them."""


def _with_values_of(candidates: _Values, word: Word) -> _Values:
    """Add the values of one more word, of the columns that have them."""
    if "val" not in word.senses:
        return {}

    links_by_column = _values_by_column(word)
    return {
        key: (*links, links_by_column[key])
        for key, links in candidates.items()
        if key in links_by_column
    }


def _first(candidates: _Values) -> tuple[Link, ...]:
    return next(iter(candidates.values()))


def _next_value(question: QuestionWords, place: int) -> tuple[str, int] | None:
    """Return the value right after another one, as if joined by "and": "small medium large"."""
    other = place + 1
    while question.means(other, "of"):  # 男的女的
        other += 1

    word = question.word_at(other)
    value = word.senses.get("val") if word is not None else None
    if value is not None and value.cost <= 0:
        return ("and", other)

    return None


def _values_by_column(word: Word) -> dict[ColumnIdentity, Link]:
    """Return the values that the word may be, by their columns, the likeliest first."""
    link_by_column: dict[ColumnIdentity, Link] = {}
    for _, link in word.noun.values if word.noun else ():
        link_by_column.setdefault((link.table, link.column), link)

    return link_by_column


def _joined_to(
    question: QuestionWords, place: int, kinds: tuple[str, ...]
) -> tuple[str, int] | None:
    """Find the word that is joined to the one at `place`.

    Returns:
        The kind of the word that joins them, one of `kinds`, and the place of the other word.
    """
    joint = ""
    end = min(place + _FARTHEST_JOINT, len(question))
    for other in range(place + 1, end):
        mark = question.words[other].mark
        may_range = "to" in kinds and not joint
        if may_range and joins_ends(mark):
            joint = "to"
        elif mark.intent is not None and mark.means(*kinds):
            if joint != "or":
                joint = mark.intent.kind
        elif joint and not _is_tie(question.words[other]):
            return joint, other
        elif not mark.means("noise") and not _is_own_table(question, place, other):
            return None

    return None


def _is_own_table(question: QuestionWords, place: int, other: int) -> bool:
    """Tell whether the word names the table of the value before it: `男用户和女用户`."""
    value = question.words[place].senses.get("val")
    table = question.words[other].senses.get("tab")
    if value is None or value.link is None or table is None or table.link is None:
        return False

    return value.link.table == table.link.table


def _dates(question: QuestionWords, place: int) -> Iterator[_Way]:
    """Yield the period at a place, and each longer run of periods that are joined to it."""
    word = question.words[place]
    sense = word.senses.get("date")
    date = word.mark.date
    if sense is None or date is None or not date.is_known:
        return

    periods = [date.period]
    yield place + 1, sense.cost, MatchedItem("dates", place, place, word, periods=tuple(periods))
    last = place
    while True:
        joined = _joined_to(question, last, ("to", "range", "and", "or", "compare"))
        if joined is None:
            return

        joint, last = joined
        period = _period_after(question, last, periods[-1])
        if period is None:
            return
        if not _is_range(question, place, joint):
            periods.append(period)
        elif len(periods) == 1:
            periods = [Period(periods[0].start, period.end)]
        else:
            return

        item = MatchedItem("dates", place, last, word, periods=tuple(periods), joint=joint)
        yield last + 1, sense.cost, item


def _period_after(question: QuestionWords, place: int, before: Period) -> Period | None:
    """Return the period at a place; without a year it is in the year of the period before it."""
    mark = question.words[place].mark
    if mark.date is None:
        return None
    if mark.date.missing_year:
        return in_year_of(before, mark.text, question.is_chinese)

    return mark.date.period if mark.date.is_known else None


def _is_range(question: QuestionWords, first: int, joint: str) -> bool:
    """Tell whether the joining word makes two periods a beginning and an end."""
    if joint == "and":
        return question.means(first - 1, "between")

    return joint in ("to", "range")


_JOINED: Mapping[str, Callable[[QuestionWords, int], Iterator[_Way]]] = {
    "vals": _vals,
    "dates": _dates,
}
