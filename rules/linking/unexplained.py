"""What a question says that no name, known value, intent word, number or date explains: it may name a stored value."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from common.inquiry import Inquiry
from common.meanings import TableKey
from knowledge.atoms import Atom, atoms_of, normalise
from knowledge.value_matching import Place
from knowledge.value_patterns import Stretch
from knowledge.value_search import Wanted
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.facts import kind_of
from rules.schema.joins import Graph
from rules.schema.lexicon import Lexicon, lexicon_of
from rules.words.talk import without_courtesy
from rules.words.vocabulary import Kind

_CLEAR, _WHOLE = 0.6, 0.95
_AROUND = 8  # atoms on each side of an unexplained one that may belong to the same name
_MOST_ATOMS = 60  # looked at in one question
_MOST_TABLES = 40  # whose columns are offered for the search
_ASKS: tuple[Kind, ...] = ("list", "count", "sum", "avg", "max", "min", "top", "rank", "share", "trend")


def wanted_values(inquiry: Inquiry, *, is_data: bool = False) -> Wanted:
    """The parts of the question to look up, and the columns that may hold them, the likeliest first.

    Nothing where everything is explained, or where the question has nothing to do with the database.

    Args:
        is_data: whether it is known to be about the data, whatever its words say.
    """
    lexicon = lexicon_of(inquiry.catalog)
    marks, stretches = _marks_and_stretches(inquiry.question, lexicon)
    if not stretches and not (stretches := _pending_stretches(inquiry, lexicon)):
        return Wanted()
    said = (mark.means(*_ASKS) or (mark.quality >= _CLEAR and not mark.means("noise")) for mark in marks)
    is_data = is_data or any(said) or any(turn.question_type == "DATABASE" for turn in inquiry.history)
    return Wanted(stretches, partial(_places, marks, lexicon)) if is_data else Wanted()


def _pending_stretches(inquiry: Inquiry, lexicon: Lexicon) -> tuple[Stretch, ...]:
    """Those of the question that was asked back: what completes it does not name its values again."""
    last = inquiry.history[-1] if inquiry.history else None
    if last is None or last.sql is not None or last.question_type != "DATABASE":
        return ()
    return _marks_and_stretches(last.question, lexicon)[1]


def _marks_and_stretches(question: str, lexicon: Lexicon) -> tuple[tuple[Mark, ...], tuple[Stretch, ...]]:
    text = normalise(without_courtesy(question) or question)
    atoms = atoms_of(text)
    marks = marks_of(question, lexicon)
    unknown = {place for mark in marks if _is_unexplained(mark) for place in range(mark.start, mark.end)}
    named = {mark.start for mark in marks if mark.quality >= _WHOLE}
    quoted = (_quoted(atom.text) for at, atom in enumerate(atoms) if atom.kind == "quote" and at not in named)
    return marks, (*(stretch for stretch in quoted if stretch.atoms), *_stretches(text, atoms, unknown))


def _is_unexplained(mark: Mark) -> bool:
    if mark.intent is not None or mark.number is not None or mark.date is not None or mark.literal is not None:
        return False
    return mark.is_unknown or mark.quality < _CLEAR


def _quoted(literal: str) -> Stretch:
    text = normalise(literal)
    atoms = atoms_of(text)
    return Stretch(text, atoms, (True,) * len(atoms), is_quoted=True)


def _stretches(text: str, atoms: Sequence[Atom], unknown: set[int]) -> Iterator[Stretch]:
    """The unexplained atoms with those around them; what is in quotes is a stretch by itself."""
    near = {place for at in unknown for place in range(at - _AROUND, at + _AROUND + 1)}
    places: list[int] = []
    for place in range(min(len(atoms), _MOST_ATOMS) + 1):
        if place < min(len(atoms), _MOST_ATOMS) and place in near and atoms[place].kind != "quote":
            places.append(place)
        elif places:
            if not unknown.isdisjoint(places):
                yield Stretch(text, tuple(atoms[at] for at in places), tuple(at in unknown for at in places))
            places = []


def _places(marks: Sequence[Mark], lexicon: Lexicon) -> Iterator[Place]:
    """Columns named in the question, then names and other texts of the tables it is about, and of those near them."""
    links = [link for mark in marks for link in mark.links if link.quality >= _CLEAR]
    yield from ((link.table, link.column) for link in links if link.kind == "column" and link.column is not None)
    named = list(dict.fromkeys(link.table for link in links))[:_MOST_TABLES]
    tables = _near(named, lexicon.graph) or list(islice(lexicon.schema.facts, _MOST_TABLES))
    for key in tables:
        yield from ((key, name) for name in lexicon.schema.facts[key].display)
    for key in tables:
        columns = lexicon.schema.table(key).columns
        yield from ((key, column.name) for column in columns if kind_of(column) == "text")


def _near(named: Sequence[TableKey], graph: Graph) -> list[TableKey]:
    """The named tables, and those that meet them in a table below both, the nearest first: buyers of a product."""
    steps: dict[TableKey, float] = {}
    for key in named:
        for below, down in graph.below(key).items():
            for other, up in graph.above(below).items():
                steps[other] = min(down + up, steps.get(other, down + up))
            steps[below] = min(down, steps.get(below, down))
    near = sorted(steps, key=lambda other: (other not in named, steps[other]))
    return near[:_MOST_TABLES]
