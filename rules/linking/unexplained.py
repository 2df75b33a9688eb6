"""Parts of a question that nothing explains, which may name stored values.

No name, known value, intent word, number or date covers them.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.meanings import TableKey
from knowledge.language.atoms import Atom, atoms_of, normalise
from knowledge.values.value_matching import Place
from knowledge.values.value_patterns import Stretch
from knowledge.values.value_search import ValueRequest
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.lexicon import Lexicon, lexicon_of
from rules.schema.reference_graph import Graph
from rules.schema.table_facts import kind_of
from rules.words.limits import STEP_S, with_bounded_questions
from rules.words.talk import without_courtesy
from rules.words.vocabulary import WordKind

_CLEAR, _WHOLE = 0.6, 0.95
_AROUND = 8  # atoms on each side of an unexplained one that may belong to the same name
_MOST_ATOMS = 60  # looked at in one question
_MOST_TABLES = 40  # whose columns are offered for the search
_ASKS: tuple[WordKind, ...] = (
    "list",
    "count",
    "sum",
    "avg",
    "max",
    "min",
    "top",
    "rank",
    "share",
    "trend",
)


def wanted_values(inquiry: Inquiry, *, is_data: bool = False) -> ValueRequest:
    """Return the parts of the question to look up, and the columns that may hold them.

    The likeliest columns come first. The request is empty where everything is explained, or where
    the question has nothing to do with the database.

    Args:
        is_data: whether it is known to be about the data, whatever its words say.
    """
    inquiry = with_bounded_questions(inquiry)
    return within(STEP_S, lambda: _value_request(inquiry, is_data=is_data), ValueRequest())


def _value_request(inquiry: Inquiry, *, is_data: bool) -> ValueRequest:
    lexicon = lexicon_of(inquiry.catalog)
    marks, stretches = _marks_and_stretches(inquiry.question, lexicon)
    if not stretches:
        stretches = _pending_stretches(inquiry, lexicon)
    if not stretches:
        return ValueRequest()
    if is_data or any(map(_is_of_data, marks)) or _continues_data(inquiry):
        return ValueRequest(stretches, partial(_places, marks, lexicon))

    return ValueRequest()


def _is_of_data(mark: Mark) -> bool:
    if mark.means(*_ASKS):
        return True

    return mark.quality >= _CLEAR and not mark.means("noise")


def _continues_data(inquiry: Inquiry) -> bool:
    return any(turn.question_type == "DATABASE" for turn in inquiry.history)


def _pending_stretches(inquiry: Inquiry, lexicon: Lexicon) -> tuple[Stretch, ...]:
    """Return the stretches of the question before, if it is still open: a question back followed.

    An answer to a question back does not name the values again.
    """
    if not inquiry.history:
        return ()

    last = inquiry.history[-1]
    if last.sql is not None or last.question_type != "DATABASE":
        return ()

    _marks, stretches = _marks_and_stretches(last.question, lexicon)
    return stretches


def _marks_and_stretches(
    question: str, lexicon: Lexicon
) -> tuple[tuple[Mark, ...], tuple[Stretch, ...]]:
    text = normalise(without_courtesy(question) or question)
    atoms = atoms_of(text)
    marks = marks_of(question, lexicon)
    unknown: set[int] = set()
    for mark in marks:
        if _is_unexplained(mark):
            unknown.update(range(mark.start, mark.end))

    named = {mark.start for mark in marks if mark.quality >= _WHOLE}
    stretches = (*_quoted_stretches(atoms, named), *_stretches(text, atoms, unknown))
    return marks, stretches


def _quoted_stretches(atoms: Sequence[Atom], named: set[int]) -> Iterator[Stretch]:
    """Yield the quoted stretches that are no names of tables or columns."""
    for place, atom in enumerate(atoms):
        if atom.kind != "quote" or place in named:
            continue

        stretch = _quoted_stretch(atom.text)
        if stretch.atoms:
            yield stretch


def _is_unexplained(mark: Mark) -> bool:
    says_amount = mark.number is not None or mark.date is not None
    if says_amount or mark.intent is not None or mark.literal is not None:
        return False

    return mark.is_unknown or mark.quality < _CLEAR


def _quoted_stretch(literal: str) -> Stretch:
    text = normalise(literal)
    atoms = atoms_of(text)
    return Stretch(text, atoms, (True,) * len(atoms), is_quoted=True)


def _stretches(text: str, atoms: Sequence[Atom], unknown: set[int]) -> Iterator[Stretch]:
    """Yield the unexplained atoms with those around them; quotes are stretches by themselves."""
    near = _near_places(atoms, unknown)
    for run in _runs(near):
        if unknown.isdisjoint(run):
            continue

        run_atoms = tuple(atoms[place] for place in run)
        is_unknown = tuple(place in unknown for place in run)
        yield Stretch(text, run_atoms, is_unknown)


def _near_places(atoms: Sequence[Atom], unknown: set[int]) -> list[int]:
    """Return the places in or near unexplained atoms, in order, without quotes."""
    near: set[int] = set()
    for place in unknown:
        near.update(range(place - _AROUND, place + _AROUND + 1))

    read = range(min(len(atoms), _MOST_ATOMS))
    return [place for place in read if place in near and atoms[place].kind != "quote"]


def _runs(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the runs of places that directly follow each other."""
    run: list[int] = []
    for place in places:
        if run and place > run[-1] + 1:
            yield run
            run = []

        run.append(place)

    if run:
        yield run


def _places(marks: Sequence[Mark], lexicon: Lexicon) -> Iterator[Place]:
    """Yield the columns that may hold the values, the likeliest first.

    They are the columns named in the question, then the names and the other texts of the tables it
    is about, and of those near them.
    """
    links = [link for mark in marks for link in mark.links if link.quality >= _CLEAR]
    for link in links:
        if link.kind == "column" and link.column is not None:
            yield link.table, link.column

    named = list(dict.fromkeys(link.table for link in links))[:_MOST_TABLES]
    tables = _near(named, lexicon.graph)
    if not tables:
        tables = list(islice(lexicon.schema.facts, _MOST_TABLES))

    yield from _names_and_texts(tables, lexicon)


def _names_and_texts(tables: Sequence[TableKey], lexicon: Lexicon) -> Iterator[Place]:
    """Yield the names of all the tables, then their texts."""
    for key in tables:
        for name in lexicon.schema.facts[key].display:
            yield key, name

    for key in tables:
        for column in lexicon.schema.table(key).columns:
            if kind_of(column) == "text":
                yield key, column.name


def _near(named: Sequence[TableKey], graph: Graph) -> list[TableKey]:
    """Return the named tables and those that share a table below both, the nearest first.

    Buyers and products share the orders.
    """
    steps: dict[TableKey, float] = {}
    for key in named:
        for below, down in graph.below(key).items():
            for other, up in graph.above(below).items():
                steps[other] = min(down + up, steps.get(other, down + up))

            steps[below] = min(down, steps.get(below, down))

    near = sorted(steps, key=lambda other: (other not in named, steps[other]))
    return near[:_MOST_TABLES]
