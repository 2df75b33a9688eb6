"""The language of patterns, and where one matches the words of a question.

A pattern is a row of elements: `mcol not? cmp num`. An element is a symbol of `words`, or several (`each|by`), or a
word in quotes (`'起'`); `?` makes it optional, `>` only looks whether it comes next, and `<` at the beginning whether
it stands before. `{name}` stands for any of the patterns of that name in a table of parts, which may name others.
`vals` and `dates` are several values or periods that are joined. Words that only tie others together may stand between
two elements.
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
from rules.reading.words import Item, Match, Question, Sense, Word
from rules.schema.links import Link

_TIES = ("noise", "of", "unit", "verb")
_MOST_TIES = 5


@dataclass(frozen=True, eq=False)
class Element:
    """One element of a pattern; there is one object for each text."""

    symbols: tuple[str, ...]
    optional: bool = False
    looks: bool = False


Make = Callable[[Match], Parts | None] | Parts
"""What a pattern gives: a function of the match, or always the same."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern, what it costs to use it, and what it gives for a match (None if the match means nothing)."""

    text: str
    elements: tuple[Element, ...]
    weight: float
    make: Make


Patterns = Mapping[str, tuple[Pattern, ...]]
"""Patterns by the symbols that may come first; those that look at the word before by `<`."""


def elements(text: str, parts: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Element, ...]]:
    """The patterns that a text with `{names}` stands for."""
    name = re.search(r"\{(\w+)\}", text)
    if name is None:
        yield tuple(map(_element, text.split()))
        return
    for choice in parts[name[1]]:
        yield from elements(text.replace(name[0], choice, 1), parts)


@cache
def _element(text: str) -> Element:
    looks = text.startswith((">", "<"))
    optional = text.endswith("?")
    return Element(tuple(text.strip("<>?").split("|")), optional, looks)


def matches(question: Question, pattern: tuple[Element, ...], start: int) -> Iterator[Match]:
    """Every way in which the pattern matches from a word on."""
    if pattern[0].looks and not pattern[0].optional and len(pattern) > 1:
        before = _nearest(question, start - 1, -1)
        for _, _, item in _taken(question, before, pattern[0])[:1] if before is not None else ():
            yield from _from(question, pattern[1:], start, Match(question, start, start, 0.0, (item,)))
        return
    yield from _from(question, pattern, start, Match(question, start, start, 0.0))


def _nearest(question: Question, place: int, step: int) -> int | None:
    while 0 <= place < len(question) and _is_tie(question.words[place]):
        place += step
    return place if 0 <= place < len(question) else None


def _from(question: Question, pattern: tuple[Element, ...], place: int, so_far: Match) -> Iterator[Match]:
    if not pattern:
        yield so_far
        return
    element = pattern[0]
    if element.optional:
        yield from _from(question, pattern[1:], place, so_far)
    passed = 0.0
    for _ in range(_MOST_TIES + 1):
        if place >= len(question):
            return
        found = False
        for end, cost, item in _taken(question, place, element):
            found = True
            kept = so_far.end if element.looks else end
            total = so_far.cost if element.looks else so_far.cost + passed + cost
            longer = Match(question, so_far.start, kept, total, (*so_far.items, item), so_far.inner)
            yield from _from(question, pattern[1:], end, longer)
        if found or place == so_far.start:
            return
        if not _is_tie(question.words[place]):
            break
        place, passed = place + 1, passed + costs.TIE
    if element.looks or so_far.inner or place >= len(question):
        return
    for end, cost, item in _attributes(question, place):  # "how many *Jazz* tracks"
        inner = replace(so_far, cost=so_far.cost + passed + cost + costs.ATTRIBUTE, inner=(item,))
        yield from _from(question, pattern, end, inner)


def _attributes(question: Question, place: int) -> Iterator[tuple[int, float, Item]]:
    yield from _vals(question, place)
    word = question.words[place]
    flag = word.senses.get("flag")
    if flag is not None and flag.link is not None:
        yield place + 1, flag.cost, Item("flag", place, place, word, (flag.link,))


def _is_tie(word: Word) -> bool:
    return word.mark.means(*_TIES) and not any(sense.link is not None for sense in word.senses.values())


def can_match(question: Question, pattern: tuple[Element, ...]) -> bool:
    """Whether the question has words for all elements, wherever they stand; far quicker than to look for a match."""
    return all(element.optional or not question.symbols.isdisjoint(element.symbols) for element in pattern)


def _taken(question: Question, place: int, element: Element) -> tuple[tuple[int, float, Item], ...]:
    """(end, cost, item) of the ways in which an element takes words from `place` on; worked out once, because many
    patterns share their elements."""
    taken = question.taken.get((place, element))
    if taken is None:
        taken = question.taken[place, element] = tuple(_ways(question, place, element))
    return taken


def _ways(question: Question, place: int, element: Element) -> Iterator[tuple[int, float, Item]]:
    word = question.words[place]
    for symbol in element.symbols:
        if symbol in _JOINED:
            yield from _JOINED[symbol](question, place)
        elif symbol.startswith("'"):
            if word.text == symbol.strip("'"):
                yield place + 1, 0.0, Item(symbol, place, place, word)
        elif (sense := word.senses.get(symbol)) is not None:
            links = () if sense.link is None else (sense.link,)
            yield place + 1, sense.cost, Item(symbol.split(":")[0], place, place, word, links, rivals=sense.rivals)


# --------------------------------------------------------------------------------------------- values and dates joined


def _vals(question: Question, place: int) -> Iterator[tuple[int, float, Item]]:
    word = question.words[place]
    sense = word.senses.get("val")
    if sense is None or word.noun is None:
        return
    columns = _columns_of(word)
    joint, last, links = "", place, {key: [link] for key, link in columns.items()}
    whole = links
    yield place + 1, sense.cost, Item("vals", place, place, word, (next(iter(columns.values())),))
    while (after := _joined_to(question, last, ("and", "or", "compare")) or _next_value(question, last)) is not None:
        kind, other = after
        found = _columns_of(question.words[other]) if "val" in question.words[other].senses else {}
        links = {key: [*known, found[key]] for key, known in links.items() if key in found}
        if not links:
            break
        joint, last, whole = kind if not joint or kind == "or" else joint, other, links
    if last > place:
        first = next(iter(whole.values()))
        yield last + 1, sense.cost, Item("vals", place, last, word, tuple(first), joint=joint)


def _next_value(question: Question, place: int) -> tuple[str, int] | None:
    """The value right after another one: `男的女的`, "small medium large"."""
    other = place + 1
    while other < len(question) and question.words[other].mark.means("of"):
        other += 1
    value = question.words[other].senses.get("val") if other < len(question) else None
    return ("and", other) if value is not None and value.cost <= 0 else None


def _columns_of(word: Word) -> dict[tuple[object, ...], Link]:
    """The values that the word may be, by their columns, the likeliest first."""
    found: dict[tuple[object, ...], Link] = {}
    for _, link in word.noun.values if word.noun else ():
        found.setdefault((link.table, link.column), link)
    return found


def _joined_to(question: Question, place: int, kinds: tuple[str, ...]) -> tuple[str, int] | None:
    """The kind of the word that joins another to the one at `place`, and where that one stands."""
    joint = ""
    for other in range(place + 1, min(place + 5, len(question))):
        mark = question.words[other].mark
        if "to" in kinds and not joint and joins_ends(mark):
            joint = "to"
        elif mark.means(*kinds):
            joint = mark.intent.kind if mark.intent and joint != "or" else joint
        elif joint and not _is_tie(question.words[other]):
            return joint, other
        elif not mark.means("noise") and not _is_own_table(question, place, other):
            return None
    return None


def _is_own_table(question: Question, place: int, other: int) -> bool:
    """Whether the word names the table of the value before it: `男用户和女用户`."""
    value, table = question.words[place].senses.get("val"), question.words[other].senses.get("tab")
    keys = [sense.link.table for sense in (value, table) if sense is not None and sense.link is not None]
    return len(keys) == 2 and keys[0] == keys[1]


def _dates(question: Question, place: int) -> Iterator[tuple[int, float, Item]]:
    word = question.words[place]
    sense: Sense | None = word.senses.get("date")
    if sense is None or word.mark.date is None or not word.mark.date.is_known:
        return
    periods, last, joint = [word.mark.date.period], place, ""
    yield place + 1, sense.cost, Item("dates", place, place, word, periods=tuple(periods))
    while (after := _joined_to(question, last, ("to", "range", "and", "or", "compare"))) is not None:
        kind, other = after
        date = question.words[other].mark.date
        if date is not None and date.missing_year:
            period = in_year_of(periods[-1], question.words[other].mark.text, question.is_chinese)
            date = replace(date, period=period, missing_year=False) if period is not None else None
        if date is None or not date.is_known:
            return
        before = question.words[place - 1].mark if place else None
        ranged = kind in ("to", "range") or (kind == "and" and before is not None and before.means("between"))
        if ranged and len(periods) > 1:
            return
        periods = [Period(periods[0].start, date.period.end)] if ranged else [*periods, date.period]
        joint, last = kind, other
        yield last + 1, sense.cost, Item("dates", place, last, word, periods=tuple(periods), joint=joint)


_Joined = Callable[[Question, int], Iterator[tuple[int, float, Item]]]
_JOINED: Mapping[str, _Joined] = {"vals": _vals, "dates": _dates}
