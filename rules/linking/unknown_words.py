"""The words of Chinese that nothing explains, cut by the dictionary; Chinese is written without blanks."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from knowledge.atoms import Atom
from rules.linking.mark import Mark
from rules.words.speech import segmented


def dictionary_words(atoms: Sequence[Atom], at: Callable[[int, int], Mark]) -> Iterator[Mark]:
    """An unknown mark for each word of at least two characters; `at` gives the bare mark of a stretch."""
    for run in _runs(atoms):
        start = run[0]
        for word in segmented("".join(atoms[place].key for place in run)):
            end = start + len(word.text)
            if end - start > 1:
                yield replace(at(start, end), is_unknown=True, speech=word.speech)
            start = end


def _runs(atoms: Sequence[Atom]) -> Iterator[list[int]]:
    """Places of Han characters side by side."""
    run: list[int] = []
    for place, atom in enumerate(atoms):
        if run and not (atom.kind == "han" and atom.glued):
            yield run
            run = []
        if atom.kind == "han":
            run.append(place)
    if run:
        yield run


def cut(marks: Sequence[Mark], atoms: Sequence[Atom]) -> Iterator[Mark]:
    """The marks; unknown characters that stand side by side are cut into words."""
    for is_open, row in itertools.groupby(marks, key=lambda mark: _is_uncut(mark, atoms)):
        if not is_open:
            yield from row
            continue
        run: list[Mark] = []
        for mark in row:
            if run and not (mark.glued and mark.start == run[-1].end):
                yield from _words(run, atoms)
                run = []
            run.append(mark)
        yield from _words(run, atoms)


def _is_uncut(mark: Mark, atoms: Sequence[Atom]) -> bool:
    return mark.is_unknown and mark.speech is None and atoms[mark.start].kind == "han"


def _words(run: Sequence[Mark], atoms: Sequence[Atom]) -> Iterator[Mark]:
    start = 0
    for word in segmented("".join(atoms[mark.start].key for mark in run)):
        end = start + len(word.text)
        said = "".join(mark.text for mark in run[start:end])
        yield replace(run[start], end=run[end - 1].end, text=said, speech=word.speech)
        start = end
