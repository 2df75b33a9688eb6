"""Read a question as a sequence of marks: the cheapest cover of its atoms with known words.

Chinese is written without spaces and names overlap ("月租金" holds "租金", "每月租金" begins with
"每月"), so no greedy reading is right. Every stretch that is a name, a stored value, an intent
word, a number or a date is a candidate with a cost; dynamic programming takes the cover of least
total cost, which prefers few, long, exact matches.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from common.cpu_clock import check
from common.meanings import TableKey
from knowledge.language.atoms import Atom, atoms_of, join, normalise
from knowledge.language.cutting import has_han
from rules.linking.dates import spans_of
from rules.linking.mark import Mark
from rules.linking.skipping import with_speech
from rules.linking.unknown_words import cut, dictionary_words, with_characters, with_other_forms
from rules.schema.lexicon import MAX_PHRASE_ATOMS, Lexicon
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.limits import MOST_ATOMS
from rules.words.numerals import numerals_of
from rules.words.talk import without_courtesy
from rules.words.vocabulary import FOLLOW_UP_INTENTS, INTENTS, Intent

_SEPARATOR = re.compile("[,;、]")
_COST_OF_UNKNOWN = {"han": 2.2, "word": 3.0, "number": 3.0, "quote": 1.0, "mark": 0.0}
_UNKNOWN_WORD, _LONGER_WORD = 1.7, 0.5  # less than one unknown character and one known
# Costs of what is known; signs cost less than nothing, so that they are always part of the cover.
_SIGN, _DATE, _WORD, _NOISE = -0.5, 0.9, 1.0, 1.05
# What may be part of a word.
_STATE = Intent("noise", "state")  # that something holds now
_WEAK = ("noise", "unit", "of", "and", "by", "from", "to", "with", "verb", "date_part")
_WHOLE_VALUE = 0.8
_SPLIT_NAME = 1.5  # what a table's name costs that begins with a word of time: "daily revenue"
_WHOLE_NAME = 0.95
_NAME_OF_WORDS = -0.1  # puts a table's name of several words before values that begin one earlier
# The least quality of a name that is also a word of such an intent.
_LEAST_QUALITIES: Mapping[str, float] = {"verb": 0.72, "unit": 0.6}
_LEAST_NAMING, _LEAST_OTHER = 0.7, 0.9
# Words of these kinds are often part of a name: "total amount", "average score".
_NAMING = (
    "sum", "avg", "max", "min", "median", "count", "share", "date_part", "bucket", "date_which",
    "null", "like", "super", "top", "rank", "unsupported", "calendar", "calendar_part", "growth",
    "distinct", "cmp", "range", "deleted", "compare",
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
        """Return the mark of a stretch, a bare one where it has none."""
        mark = self.places.get((start, end))
        if mark is not None:
            return mark

        first, last = self.atoms[start], self.atoms[end - 1]
        return Mark(start, end, self.text[first.start : last.end], glued=first.glued)

    def written(self, start: int, end: int) -> Mark | None:
        """Return the mark from one character up to another; None where one is inside an atom."""
        first = last = None
        for index, atom in enumerate(self.atoms):
            if atom.start == start and first is None:
                first = index
            if atom.end == end and last is None:
                last = index

        if first is None or last is None:
            return None

        return self.at(first, last + 1)

    def ending_at(self, end: int) -> list[Mark]:
        """Return the marks of several atoms that end there."""
        found: list[Mark] = []
        for (_, mark_end), mark in self.places.items():
            if mark_end == end and mark.end - mark.start > 1:
                found.append(mark)

        return found

    def put(self, mark: Mark) -> None:
        self.places[mark.start, mark.end] = mark


def marks_of(
    question: str,
    lexicon: Lexicon,
    intents: Mapping[str, Intent] = INTENTS,
    *,
    with_views: bool = True,
) -> tuple[Mark, ...]:
    """Return the marks of a question, in order, without mere punctuation.

    Every other atom is inside exactly one mark; what is beyond `MOST_ATOMS` is one unknown mark.
    Several steps of one question read its marks, so they are remembered.

    Args:
        intents: the words that ask for something, by comparison key.
        with_views: whether views have names.
    """
    if intents is not INTENTS and intents is not FOLLOW_UP_INTENTS:
        return _marks(question, lexicon, intents, with_views=with_views)

    key = (question, with_views, intents is INTENTS, lexicon.said)
    marks = lexicon.marks_cache.get(key)
    if marks is None:
        marks = _marks(question, lexicon, intents, with_views=with_views)
        lexicon.marks_cache.put(key, marks)

    return marks


def _marks(
    question: str, lexicon: Lexicon, intents: Mapping[str, Intent], *, with_views: bool
) -> tuple[Mark, ...]:
    text = normalise(without_courtesy(question) or question)
    written = atoms_of(text)
    atoms = written[:MOST_ATOMS]
    found = _Candidates(atoms, text[: atoms[-1].end] if atoms else "")
    _add_phrases(found, lexicon, intents, with_views=with_views)
    _add_numbers_and_dates(found, lexicon)
    _add_looked_up(found, lexicon)
    _add_dictionary_words(found)
    words = cut(_cheapest(found), atoms)
    words_in_forms = with_other_forms(words, lexicon, intents)
    named = with_characters(words_in_forms, lexicon)
    marks = with_speech(list(named), lexicon.schema)
    return (*_with_kinds(marks, lexicon), *_rest(text, written))


def _add_phrases(
    found: _Candidates, lexicon: Lexicon, intents: Mapping[str, Intent], *, with_views: bool
) -> None:
    """Add a mark for each stretch that is a name, a stored value or a word that asks."""
    atoms = found.atoms
    stretches: list[tuple[int, int, str, str]] = []
    for start in range(len(atoms)):
        for end, key, stem_key in _stretches(atoms, start):
            stretches.append((start, end, key, stem_key))

    near = lexicon.near({stem_key for *_, stem_key in stretches})
    for start, end, key, stem_key in stretches:
        check()
        links = lexicon.links(key, stem_key, near) if stem_key else ()
        if not with_views:
            links = tuple(link for link in links if not _is_view(link, lexicon))

        intent: Intent | None = None
        if atoms[start].kind != "quote":
            intent = _intent_of(key, stem_key, lexicon, intents)

        _add_words(found, links, intent, start, end)


def _is_view(link: Link, lexicon: Lexicon) -> bool:
    if link.kind != "table":
        return False

    return lexicon.schema.table(link.table).kind != "table"


def _intent_of(
    key: str, stem_key: str, lexicon: Lexicon, intents: Mapping[str, Intent]
) -> Intent | None:
    own = lexicon.intents
    return own.get(key) or intents.get(key) or own.get(stem_key)


def _rest(text: str, atoms: Sequence[Atom]) -> Iterator[Mark]:
    """Yield an unknown mark for what is beyond the part of a long question that is read."""
    if len(atoms) > MOST_ATOMS:
        text = text[atoms[MOST_ATOMS].start :]
        yield Mark(MOST_ATOMS, len(atoms), text, is_unknown=True, speech="unknown")


def _add_dictionary_words(found: _Candidates) -> None:
    """Add the words of the dictionary that no name overlaps.

    So no piece of such a word is taken for a word.
    """
    named: set[int] = set()
    for (start, end), mark in found.places.items():
        if _is_firm(mark):
            named.update(range(start, end))

    for mark in dictionary_words(found.atoms, found.at):
        is_new = (mark.start, mark.end) not in found.places
        if is_new and named.isdisjoint(range(mark.start, mark.end)):
            found.put(mark)


def _is_firm(mark: Mark) -> bool:
    """Tell whether a mark is more than a short word that may be part of a longer one."""
    is_long = mark.end - mark.start > 1
    if mark.intent is not None and (is_long or not mark.means(*_WEAK)):
        return True
    if mark.links or mark.literal is not None:
        return True

    return mark.number is not None or mark.date is not None


def _with_kinds(marks: Sequence[Mark], lexicon: Lexicon) -> Iterator[Mark]:
    """Yield the marks; a value that says of which kind a thing is gets the thing after it.

    "Restaurants" are shops of a kind, where nothing beside the word names shops. The "with" of
    "compare this month with last month" joins the two.
    """
    compares = False
    for index, mark in enumerate(marks):
        if compares and _is_with(mark):
            yield replace(mark, intent=Intent("and"))
        else:
            yield mark

        compares = compares or mark.means("compare")
        kind = _english_kind(mark, lexicon)
        if kind is None:
            continue

        neighbours = (*marks[max(index - 1, 0) : index], *marks[index + 1 : index + 2])
        if not any(_names_table(other, kind.table) for other in neighbours):
            thing = Link("table", kind.table, None, None, 1.0, mark.text)
            yield replace(mark, intent=None, links=(thing,))


def _is_with(mark: Mark) -> bool:
    return mark.means("with") and mark.text.lower() == _WITH


def _english_kind(mark: Mark, lexicon: Lexicon) -> Link | None:
    """Return the stored value that an English word is, if it says of which kind a thing is."""
    if not mark.links or has_han(mark.text):
        return None

    best = mark.links[0]
    if best.kind != "value" or best.quality < _WHOLE_VALUE:
        return None

    meaning = lexicon.schema.column(best.table, str(best.column)).meaning
    if meaning is None or not meaning.is_kind:
        return None

    return best


def _names_table(mark: Mark, table: TableKey) -> bool:
    return any(link.kind == "table" and link.table == table for link in mark.links)


def _stretches(atoms: tuple[Atom, ...], start: int) -> Iterator[tuple[int, str, str]]:
    """Yield the stretches that begin at `start` and may be one phrase: end, exact and loose key."""
    first = atoms[start]
    if first.kind == "mark":
        yield from _stretches_of_signs(atoms, start)
    elif first.kind == "quote":
        inside = atoms_of(normalise(first.text))
        yield start + 1, join(inside), join(inside, stems=True)
    else:
        yield from _stretches_of_words(atoms, start)


def _stretches_of_signs(atoms: tuple[Atom, ...], start: int) -> Iterator[tuple[int, str, str]]:
    first = atoms[start]
    yield start + 1, first.text, first.text
    if start + 1 == len(atoms):
        return

    second = atoms[start + 1]
    if second.kind == "mark" and second.glued:
        yield start + 2, first.text + second.text, ""


def _stretches_of_words(atoms: tuple[Atom, ...], start: int) -> Iterator[tuple[int, str, str]]:
    # The keys grow by one atom at a time, and are the same as `join` would make of all the atoms.
    key = stem_key = ""
    previous = "han"
    limit = min(start + MAX_PHRASE_ATOMS, len(atoms))
    for place in range(start, limit):
        last = atoms[place]
        if last.kind == "quote":
            return
        if last.kind == "mark":
            if not last.glued:
                return

            continue

        is_apart = key != "" and last.kind != "han" and previous != "han"
        blank = " " if is_apart else ""
        key = f"{key}{blank}{last.key}"
        stem_key = f"{stem_key}{blank}{last.stem}"
        previous = last.kind
        yield place + 1, key, stem_key


def _add_words(
    found: _Candidates, links: tuple[Link, ...], intent: Intent | None, start: int, end: int
) -> None:
    """Add a mark for a stretch of words that is a quotation, or asks for or names something."""
    atom = found.atoms[start]
    is_quote = atom.kind == "quote"
    if intent is None and not links and not is_quote:  # most stretches
        return

    links = tuple(_meant_links(found, links, intent, start, end))
    if intent is None and not links and not is_quote:
        return

    mark = Mark(
        start,
        end,
        found.text[atom.start : found.atoms[end - 1].end],
        intent=intent,
        links=links,
        literal=atom.text if is_quote else None,
        glued=atom.glued,
    )
    found.put(mark)


def _meant_links(
    found: _Candidates, links: tuple[Link, ...], intent: Intent | None, start: int, end: int
) -> Iterator[Link]:
    """Yield the links of a stretch that may be meant there."""
    atom = found.atoms[start]
    written = found.text[atom.start : found.atoms[end - 1].end]
    is_list = _SEPARATOR.search(written) is not None
    is_said = _is_said_of(found, start, end)
    for link in links:
        # "revenue, orders" are two names, "Acme, Inc" may be stored.
        if is_list and link.kind != "value":
            continue
        if _is_chance(link, atom.text):
            continue
        if intent is None or _outweighs(link, written, intent, is_said=is_said):
            yield link


def _is_said_of(found: _Candidates, start: int, end: int) -> bool:
    """Tell whether a stretch says something of a thing: `未完成`, `完成的`."""
    before = found.text[: found.atoms[start].start]
    rest = found.text[found.atoms[end - 1].end :]
    return before.endswith(_NEGATIONS) or rest.startswith(_OF)


def _is_chance(link: Link, written: str) -> bool:
    """Tell whether a word is part of a stored value by chance.

    A part that is meant as a name is capitalised.
    """
    if link.kind != "value" or link.quality >= _WHOLE_VALUE:
        return False

    return written.isascii() and not written[:1].isupper()


def _outweighs(link: Link, written: str, intent: Intent, *, is_said: bool) -> bool:
    """Tell whether a name that is also an intent word may be meant.

    Only a whole name may, or a value written as stored.
    """
    if link.kind == "value":
        return _outweighs_as_value(link, written, intent)
    if intent.kind == "noise" and is_said and link.kind == "column":
        return link.quality >= _WHOLE_VALUE  # `未完成` and `完成的` say something of 完成时间
    if intent.kind == "named":
        return False
    if intent.kind == "unsupported" and link.spelling != normalise(written).lower():
        return False  # a `rate` is no rating

    least = _LEAST_QUALITIES.get(intent.kind)
    if least is None:
        least = _LEAST_NAMING if intent.kind in _NAMING else _LEAST_OTHER

    return link.quality >= least


def _outweighs_as_value(link: Link, written: str, intent: Intent) -> bool:
    if intent.kind == "bucket":
        return True
    if intent.kind == "verb" and link.quality >= _WHOLE_VALUE:
        return True  # `处理` is not 处理中
    if intent == _STATE and link.quality >= _WHOLE_VALUE:
        return True  # "available" is a status

    is_proper = written != written.lower()
    return is_proper and link.value == written


def _ranks_dates(found: _Candidates, lexicon: Lexicon, start: int) -> bool:
    """Tell whether 前 begins the days that have the most, not those before today.

    It does in `营业收入前3天` and `收入排名前3天`.
    """
    atom = found.atoms[start]
    if atom.text != _BEFORE or not atom.glued:
        return False

    ending = found.ending_at(start)
    if any(mark.means("rank") for mark in ending):
        return True

    names = [mark for mark in ending if mark.links]
    if not names:
        return False

    longest = min(names, key=lambda mark: mark.start)
    best = longest.links[0]
    facts = lexicon.schema.facts[best.table]
    if best.kind == "table":
        return not facts.is_entity

    return any(column.name == best.column for column in facts.measures)


def _add_numbers_and_dates(found: _Candidates, lexicon: Lexicon) -> None:
    for numeral in numerals_of(found.atoms):
        mark = found.at(numeral.start, numeral.end)
        found.put(replace(mark, number=numeral))

    for span in sorted(spans_of(found.text), key=lambda span: span.is_impossible):
        stretch = found.written(span.start, span.end)
        if stretch is None or stretch.date is not None:
            continue
        if _ranks_dates(found, lexicon, stretch.start):
            continue

        means_other = bool(stretch.links) or stretch.intent is not None
        if not span.is_impossible or not means_other:
            found.put(replace(stretch, date=span))


def _add_looked_up(found: _Candidates, lexicon: Lexicon) -> None:
    """Add the stored values that were looked up for the question, at the words that name them."""
    quotes = {atom.text: index for index, atom in enumerate(found.atoms) if atom.kind == "quote"}
    for words, links in lexicon.said:
        at = found.text.find(words)
        while at >= 0:
            _add_links(found, found.written(at, at + len(words)), links)
            at = found.text.find(words, at + 1)

        if words in quotes:
            _add_links(found, found.at(quotes[words], quotes[words] + 1), links)


def _add_links(candidates: _Candidates, mark: Mark | None, links: tuple[Link, ...]) -> None:
    if mark is None:
        return

    identities = {link.identity for link in mark.links}
    added = (*mark.links, *(link for link in links if link.identity not in identities))
    best_first = sorted(added, key=lambda link: -link.quality)
    candidates.put(replace(mark, links=tuple(best_first)))


def _cost(mark: Mark) -> float:
    atoms = mark.end - mark.start
    if mark.is_unknown:
        return _UNKNOWN_WORD + _LONGER_WORD * atoms

    is_sign = not any(map(str.isalnum, mark.text))
    if is_sign and mark.intent is not None:
        return _SIGN * atoms

    costs: list[float] = []
    if mark.intent is not None:
        costs.append(_NOISE if mark.intent.kind == "noise" else _WORD)
    if mark.links:
        costs.append(_cost_of_name(mark))
    if mark.number is not None or mark.literal is not None:
        costs.append(_WORD)
    if mark.date is not None:
        costs.append(_WORD if mark.date.is_bare else _DATE)

    return min(costs)


def _cost_of_name(mark: Mark) -> float:
    best = mark.links[0]
    per_lack = 0.3 if best.kind == "value" else 0.8
    lacking = per_lack * (1 - best.quality)
    partial = 2.5 * max(0.0, 0.8 - best.quality)
    if best.kind == "table":
        first_word = best.spelling.split(" ")[0]
        if first_word in _BUCKET_WORDS:
            return 1.0 + lacking + partial + _SPLIT_NAME

    if " " in mark.text and any(map(_is_whole_table, mark.links)):
        partial = _NAME_OF_WORDS

    return 1.0 + lacking + partial


def _is_whole_table(link: Link) -> bool:
    return link.kind == "table" and link.quality >= _WHOLE_NAME


def _cheapest(found: _Candidates) -> list[Mark]:
    """Return the cover of least cost, in order, without mere punctuation."""
    atoms = found.atoms
    by_end: dict[int, list[Mark]] = {}
    for mark in found.places.values():
        by_end.setdefault(mark.end, []).append(mark)

    costs = [0.0]  # of the best cover of each beginning of the question
    chosen: list[Mark] = []  # the last mark of that cover
    for end in range(1, len(atoms) + 1):
        best, cost = _best_ending(atoms[end - 1], end, by_end.get(end, ()), costs)
        chosen.append(best)
        costs.append(cost)

    cover: list[Mark] = []
    end = len(atoms)
    while end > 0:
        mark = chosen[end - 1]
        if mark.is_unknown or not _is_bare_punctuation(mark, atoms):
            cover.append(mark)

        end = mark.start

    cover.reverse()
    return cover


def _best_ending(
    atom: Atom, end: int, candidates: Sequence[Mark], costs: Sequence[float]
) -> tuple[Mark, float]:
    """Return the mark that ends the best cover up to `end`, and the cost of that cover.

    Of covers of equal cost, the one whose last mark is longer wins, then one that names something.
    """
    best = Mark(end - 1, end, atom.text, is_unknown=atom.kind != "mark", glued=atom.glued)
    best_cost = costs[end - 1] + _COST_OF_UNKNOWN[atom.kind]
    for mark in candidates:
        cost = costs[mark.start] + _cost(mark)
        if cost < best_cost or (cost == best_cost and _goes_first(mark, best)):
            best, best_cost = mark, cost

    return best, best_cost


def _goes_first(mark: Mark, best: Mark) -> bool:
    if mark.start < best.start:
        return True

    return best.is_unknown and mark.links != ()


def _is_bare_punctuation(mark: Mark, atoms: tuple[Atom, ...]) -> bool:
    if atoms[mark.start].kind != "mark":
        return False

    return mark.intent is None and mark.number is None
