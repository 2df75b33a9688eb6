"""The question as a sequence of marks: the cheapest way to cover its atoms with words that mean something.

Chinese is written without spaces and names overlap ("月租金" holds "租金", "每月租金" begins with "每月"), so no greedy
reading is right. Every stretch that is a name, a stored value, an intent word, a number or a date is a candidate with a
cost; dynamic programming takes the cover of least total cost, which prefers few, long, exact matches.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from knowledge.atoms import Atom, atoms_of, join, normalise
from knowledge.naming import has_han
from rules.linking.dates import spans_of
from rules.linking.mark import Mark
from rules.linking.skipping import with_speech
from rules.linking.unknown_words import cut, dictionary_words, with_characters, with_other_forms
from rules.schema.lexicon import MAX_PHRASE_ATOMS, Lexicon
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.numerals import numerals_of
from rules.words.talk import without_courtesy
from rules.words.vocabulary import INTENTS, Intent

_SEPARATOR = re.compile("[,;、]")
_COST_OF_UNKNOWN = {"han": 2.2, "word": 3.0, "number": 3.0, "quote": 1.0, "mark": 0.0}
_UNKNOWN_WORD, _LONGER_WORD = 1.7, 0.5  # less than one unknown character and one known
_WEAK = ("noise", "unit", "of", "and", "by", "from", "to", "with", "verb", "date_part")  # what may be part of a word
_WHOLE_VALUE = 0.8
_WHOLE_NAME, _NAME_OF_WORDS = 0.95, -0.1  # a table's name of several words, before values that begin one word earlier
# Words of these kinds are often part of a name: "total amount", "average score".
_NAMING = (
    "sum", "avg", "max", "min", "median", "count", "share", "date_part", "bucket", "date_which", "null", "like",
    "super", "top", "rank", "unsupported", "calendar", "calendar_part", "growth", "distinct", "cmp", "range", "deleted",
    "compare",
)  # fmt: skip
_NEGATIONS, _OF = WORDS.chinese.phrases("names.negations"), WORDS.chinese.phrases("names.of")
_BUCKET_WORDS = WORDS.english.one_of("names.periodic")
_WITH = WORDS.english.text("questions.with")
_BEFORE = WORDS.chinese.text("dates.before")


@dataclass
class _Candidates:
    """Marks by start position; senses of one stretch are one mark."""

    atoms: tuple[Atom, ...]
    text: str
    places: dict[tuple[int, int], Mark] = field(default_factory=dict)

    def at(self, start: int, end: int) -> Mark:
        known = self.places.get((start, end))
        if known is None:
            first, last = self.atoms[start], self.atoms[end - 1]
            known = Mark(start, end, self.text[first.start : last.end], glued=first.glued)
        return known

    def written(self, start: int, end: int) -> Mark | None:
        """The mark from one character up to another; None where one of them is inside an atom."""
        starts = [index for index, atom in enumerate(self.atoms) if atom.start == start]
        ends = [index + 1 for index, atom in enumerate(self.atoms) if atom.end == end]
        return self.at(starts[0], ends[0]) if starts and ends else None

    def put(self, mark: Mark) -> None:
        self.places[mark.start, mark.end] = mark


def marks_of(
    question: str, lexicon: Lexicon, intents: Mapping[str, Intent] = INTENTS, *, with_views: bool = True
) -> tuple[Mark, ...]:
    """The marks of a question, in order; every atom that is not mere punctuation is inside exactly one.

    `intents` are the words that ask for something, by comparison key. Without `with_views`, views have no names.
    Several steps of one question read its marks, so they are remembered.
    """
    if intents is not INTENTS:
        return _marks(question, lexicon, intents, with_views=with_views)
    key = (question, with_views, lexicon.said)
    if (known := lexicon.remembered.get(key)) is None:
        known = _marks(question, lexicon, intents, with_views=with_views)
        lexicon.remembered.put(key, known)
    return known


def _marks(question: str, lexicon: Lexicon, intents: Mapping[str, Intent], *, with_views: bool) -> tuple[Mark, ...]:
    text = normalise(without_courtesy(question) or question)
    atoms = atoms_of(text)
    found = _Candidates(atoms, text)
    stretches = [(start, *stretch) for start in range(len(atoms)) for stretch in _stretches(atoms, start)]
    tables = lexicon.schema.catalog.by_key
    near = lexicon.near({stem_key for *_, stem_key in stretches})
    for start, end, key, stem_key in stretches:
        links = lexicon.links(key, stem_key, near) if stem_key else ()
        if not with_views:
            links = tuple(link for link in links if link.kind != "table" or tables[link.table].kind == "table")
        is_quote = atoms[start].kind == "quote"
        intent = None if is_quote else lexicon.intents.get(key) or intents.get(key) or lexicon.intents.get(stem_key)
        _add_words(found, links, intent, start, end)
    _add_numbers_and_dates(found, lexicon)
    _add_looked_up(found, lexicon)
    _add_dictionary_words(found)
    named = with_characters(with_other_forms(cut(_cheapest(found), atoms), lexicon, intents), lexicon)
    marks = with_speech(list(named), lexicon.schema)
    return tuple(_with_kinds(list(marks), lexicon))


def _add_dictionary_words(found: _Candidates) -> None:
    """Adds the words of the dictionary that no name overlaps, so that no piece of one is taken for a word."""
    named = {at for (start, end), mark in found.places.items() if _is_firm(mark) for at in range(start, end)}
    for mark in dictionary_words(found.atoms, found.at):
        if (mark.start, mark.end) not in found.places and named.isdisjoint(range(mark.start, mark.end)):
            found.put(mark)


def _is_firm(mark: Mark) -> bool:
    if mark.intent is not None and (mark.end - mark.start > 1 or not mark.means(*_WEAK)):
        return True
    return mark.links != () or mark.number is not None or mark.date is not None or mark.literal is not None


def _with_kinds(marks: list[Mark], lexicon: Lexicon) -> Iterator[Mark]:
    """The marks; an English value that says of which kind a thing is gets the thing after it: restaurants are shops.

    The "with" of "compare this month with last month" joins the two.
    """
    compares = False
    for index, mark in enumerate(marks):
        joins = compares and mark.means("with") and mark.text.lower() == _WITH
        yield replace(mark, intent=Intent("and")) if joins else mark
        compares = compares or mark.means("compare")
        best = mark.links[0] if mark.links else None
        if best is None or best.kind != "value" or best.quality < _WHOLE_VALUE or has_han(mark.text):
            continue
        meaning = lexicon.schema.column(best.table, str(best.column)).meaning
        beside = [link for other in marks[max(index - 1, 0) : index + 2] for link in other.links if other is not mark]
        is_said = any(link.kind == "table" and link.table == best.table for link in beside)
        if meaning is not None and meaning.is_kind and not is_said:
            yield replace(mark, intent=None, links=(Link("table", best.table, None, None, 1.0, mark.text),))


def _stretches(atoms: tuple[Atom, ...], start: int) -> Iterator[tuple[int, str, str]]:
    """(end, exact key, loose key) of the stretches that begin at `start` and may be one phrase."""
    first = atoms[start]
    if first.kind == "mark":
        yield start + 1, first.text, first.text
        if start + 1 < len(atoms) and atoms[start + 1].kind == "mark" and atoms[start + 1].glued:
            yield start + 2, first.text + atoms[start + 1].text, ""
        return
    if first.kind == "quote":
        inside = atoms_of(normalise(first.text))
        yield start + 1, join(inside), join(inside, stems=True)
        return
    # The keys grow by one atom at a time, and are the same as `join` would make of all the atoms.
    key = stem_key = ""
    previous = "han"
    for end in range(start + 1, min(start + MAX_PHRASE_ATOMS, len(atoms)) + 1):
        last = atoms[end - 1]
        if last.kind == "quote" or (last.kind == "mark" and not last.glued):
            return
        if last.kind != "mark":
            blank = " " if key and last.kind != "han" and previous != "han" else ""
            key, stem_key, previous = f"{key}{blank}{last.key}", f"{stem_key}{blank}{last.stem}", last.kind
            yield end, key, stem_key


def _add_words(found: _Candidates, links: tuple[Link, ...], intent: Intent | None, start: int, end: int) -> None:
    atom = found.atoms[start]
    is_quote = atom.kind == "quote"
    if intent is None and not links and not is_quote:  # most stretches
        return
    written = found.text[atom.start : found.atoms[end - 1].end]
    rest = found.text[found.atoms[end - 1].end :]
    is_list = _SEPARATOR.search(written) is not None  # "revenue, orders" are two names, "Acme, Inc" may be stored
    is_said = found.text[: atom.start].endswith(_NEGATIONS) or rest.startswith(_OF)
    links = tuple(
        link
        for link in links
        if not (is_list and link.kind != "value")
        and not _is_chance(link, atom.text)
        and (intent is None or _outweighs(link, written, intent, is_said=is_said))
    )
    if intent is not None or links or is_quote:
        literal = atom.text if is_quote else None
        found.put(Mark(start, end, written, intent=intent, links=links, literal=literal, glued=atom.glued))


def _is_chance(link: Link, written: str) -> bool:
    """Whether a word is part of a stored value by chance: a part that is meant as a name is capitalised."""
    partial = link.kind == "value" and link.quality < _WHOLE_VALUE
    return partial and written.isascii() and not written[:1].isupper()


def _outweighs(link: Link, written: str, intent: Intent, *, is_said: bool) -> bool:
    """Whether a name that is also an intent word may be meant: only as a whole name, or a value written as stored."""
    if is_said and intent.kind == "noise" and link.kind == "column":
        return link.quality >= _WHOLE_VALUE  # `未完成` and `完成的` say something of 完成时间
    if link.kind == "value":
        verb = intent.kind == "verb" and link.quality >= _WHOLE_VALUE  # `处理` is not 处理中
        return verb or intent.kind == "bucket" or (link.value == written and written != written.lower())
    if intent.kind == "named":
        return False
    if intent.kind == "verb":
        return link.quality >= 0.72
    if intent.kind == "unsupported" and link.spelling != normalise(written).lower():
        return False  # a `rate` is no rating
    if intent.kind == "unit":
        return link.quality >= 0.6
    return link.quality >= (0.7 if intent.kind in _NAMING else 0.9)


def _ranks_dates(found: _Candidates, lexicon: Lexicon, start: int) -> bool:
    """`营业收入前3天`, `收入排名前3天`: there 前 begins the days that have the most, not those before today."""
    atom = found.atoms[start]
    if atom.text != _BEFORE or not atom.glued:
        return False
    facts = lexicon.schema.facts
    ending = [mark for (_, end), mark in found.places.items() if end == start and mark.end - mark.start > 1]
    if any(mark.means("rank") for mark in ending):
        return True
    best = next((mark.links[0] for mark in sorted(ending, key=lambda mark: mark.start) if mark.links), None)
    if best is None:
        return False
    measures = {column.name for column in facts[best.table].measures}
    return not facts[best.table].is_entity if best.kind == "table" else best.column in measures


def _add_numbers_and_dates(found: _Candidates, lexicon: Lexicon) -> None:
    for numeral in numerals_of(found.atoms):
        found.put(replace(found.at(numeral.start, numeral.end), number=numeral))
    for span in sorted(spans_of(found.text), key=lambda span: span.is_impossible):
        mark = found.written(span.start, span.end)
        if mark is None or mark.date is not None or _ranks_dates(found, lexicon, mark.start):
            continue
        if not (span.is_impossible and (mark.links or mark.intent)):
            found.put(replace(mark, date=span))


def _add_looked_up(found: _Candidates, lexicon: Lexicon) -> None:
    """Adds the stored values that were looked up for the question, at the words that name them."""
    quotes = {atom.text: index for index, atom in enumerate(found.atoms) if atom.kind == "quote"}
    for words, links in lexicon.said:
        at = found.text.find(words)
        while at >= 0:
            _add_links(found, found.written(at, at + len(words)), links)
            at = found.text.find(words, at + 1)
        if words in quotes:
            _add_links(found, found.at(quotes[words], quotes[words] + 1), links)


def _add_links(found: _Candidates, mark: Mark | None, links: tuple[Link, ...]) -> None:
    if mark is None:
        return
    known = {link.identity for link in mark.links}
    added = (*mark.links, *(link for link in links if link.identity not in known))
    found.put(replace(mark, links=tuple(sorted(added, key=lambda link: -link.quality))))


def _cost(mark: Mark) -> float:
    costs = []
    if mark.is_unknown:
        return _UNKNOWN_WORD + _LONGER_WORD * (mark.end - mark.start)
    if mark.intent is not None and not any(char.isalnum() for char in mark.text):
        return -0.5 * (mark.end - mark.start)  # so that signs are always part of the cover
    if mark.intent is not None:
        costs.append(1.05 if mark.intent.kind == "noise" else 1.0)
    if mark.links:
        best = mark.links[0]
        split = best.kind == "table" and best.spelling.split(" ")[0] in _BUCKET_WORDS
        partial = 2.5 * max(0.0, 0.8 - best.quality)
        is_whole = any(link.kind == "table" and link.quality >= _WHOLE_NAME for link in mark.links)
        if " " in mark.text and not split and is_whole:
            partial = _NAME_OF_WORDS
        lacking = (0.3 if best.kind == "value" else 0.8) * (1 - best.quality)
        costs.append(1.0 + lacking + partial + (1.5 if split else 0.0))
    if mark.number is not None or mark.literal is not None:
        costs.append(1.0)
    if mark.date is not None:
        costs.append(1.0 if mark.date.is_bare else 0.9)
    return min(costs)


def _cheapest(found: _Candidates) -> list[Mark]:
    atoms = found.atoms
    by_end: dict[int, list[Mark]] = {}
    for mark in found.places.values():
        by_end.setdefault(mark.end, []).append(mark)
    costs = [0.0]
    chosen: list[Mark] = []
    for end in range(1, len(atoms) + 1):
        atom = atoms[end - 1]
        unknown = Mark(end - 1, end, atom.text, is_unknown=atom.kind != "mark", glued=atom.glued)
        best, best_cost = unknown, costs[end - 1] + _COST_OF_UNKNOWN[atom.kind]
        for mark in by_end.get(end, ()):
            cost = costs[mark.start] + _cost(mark)
            is_known = best.is_unknown and mark.links != ()
            if cost < best_cost or (cost == best_cost and (mark.start < best.start or is_known)):
                best, best_cost = mark, cost
        costs.append(best_cost)
        chosen.append(best)
    cover: list[Mark] = []
    end = len(atoms)
    while end > 0:
        cover.append(chosen[end - 1])
        end = chosen[end - 1].start
    return [mark for mark in reversed(cover) if mark.is_unknown or not _is_bare_punctuation(mark, atoms)]


def _is_bare_punctuation(mark: Mark, atoms: tuple[Atom, ...]) -> bool:
    return atoms[mark.start].kind == "mark" and mark.intent is None and mark.number is None
