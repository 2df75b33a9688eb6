"""Words that nothing explains: Chinese ones, cut by the dictionary, and such as are known in
another form.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from knowledge.language.atoms import Atom
from knowledge.language.cutting import has_han
from knowledge.language.inflection import lemma, stem
from rules.linking.mark import Mark
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.speech import segmented
from rules.words.vocabulary import Intent, WordKind

_RESULTS = WORDS.chinese.text("speech.results")
_OTHER_FORM = 0.05  # what another form of a name costs
_INFLECTED: tuple[WordKind, ...] = (
    "verb",
    "list",
    "cmp",
    "like",
    "rank",
    "compare",
    "sum",
    "avg",
    "count",
    "share",
)


def dictionary_words(atoms: Sequence[Atom], at: Callable[[int, int], Mark]) -> Iterator[Mark]:
    """Yield an unknown mark for each word of at least two characters; `at` gives the bare mark of a
    stretch.
    """
    for run in _runs(atoms):
        start = run[0]
        for word in segmented("".join(atoms[place].key for place in run)):
            end = start + len(word.text)
            if end - start > 1:
                yield replace(at(start, end), is_unknown=True, speech=word.speech)

            start = end


def _runs(atoms: Sequence[Atom]) -> Iterator[list[int]]:
    """Yield places of Han characters side by side."""
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
    """Yield the marks; unknown characters that stand side by side are cut into words."""
    # An uncut mark is one atom: places of those side by side grow as their numbers do.
    numbered = (
        (_is_uncut(mark, atoms), mark.start - number, mark) for number, mark in enumerate(marks)
    )
    for (is_uncut, _), row in itertools.groupby(numbered, key=lambda one: one[:2]):
        run = [mark for *_, mark in row]
        yield from _words(run, atoms) if is_uncut else run


def _is_uncut(mark: Mark, atoms: Sequence[Atom]) -> bool:
    return mark.is_unknown and mark.speech is None and atoms[mark.start].kind == "han"


def _words(run: Sequence[Mark], atoms: Sequence[Atom]) -> Iterator[Mark]:
    """Yield a mark for each word of a run of characters, as a dictionary segments it."""
    start = 0
    for word in segmented("".join(atoms[mark.start].key for mark in run)):
        end = start + len(word.text)
        text = "".join(mark.text for mark in run[start:end])
        yield replace(run[start], end=run[end - 1].end, text=text, speech=word.speech)
        start = end


def with_other_forms(
    marks: Iterable[Mark], lexicon: Lexicon, intents: Mapping[str, Intent]
) -> Iterator[Mark]:
    """Yield the marks; unknown words mean what their lemmas do, at a slightly lower quality, or the
    events they speak of.
    """
    for place, mark in enumerate(marks):
        word = mark.text.lower()
        is_word = (
            mark.is_unknown
            and mark.text.isascii()
            and word.isalpha()
            and (mark.text == word or place == 0)
        )
        yield _linked_mark(mark, word, lexicon, intents) if is_word else mark


def _linked_mark(mark: Mark, word: str, lexicon: Lexicon, intents: Mapping[str, Intent]) -> Mark:
    base = lemma(word)
    links = lexicon.links(base, stem(base)) or lexicon.find(lexicon.other_forms.get(base, ""))
    if links:
        poorer = tuple(
            replace(link, quality=link.quality - _OTHER_FORM) for link in links if not link.is_exact
        )
        return replace(mark, links=poorer, is_unknown=not poorer)

    intent = intents.get(base) if base != word else None
    if intent is not None and intent.kind in _INFLECTED:
        return replace(mark, intent=intent, is_unknown=False)

    event = lexicon.spoken.verbs.get(base)
    if event is not None:
        return replace(mark, intent=Intent("verb"), links=(event,), is_unknown=False)

    return mark


def with_characters(marks: Iterable[Mark], lexicon: Lexicon) -> Iterator[Mark]:
    """Yield the marks; unknown verbs and their objects mean the table of events whose name holds
    them: `演了`, `买过票`.
    """
    before: Mark | None = None
    for mark in marks:
        link = _character(mark, before, lexicon) if mark.is_unknown and has_han(mark.text) else None
        intent = Intent("verb") if mark.speech == "verb" else None
        before = (
            mark if link is None else replace(mark, links=(link,), intent=intent, is_unknown=False)
        )
        yield before


def _character(mark: Mark, before: Mark | None, lexicon: Lexicon) -> Link | None:
    """Return the table of events that a Chinese verb, or its object, names by one character."""
    if mark.speech == "verb" and all(char in _RESULTS for char in mark.text[1:]):
        return lexicon.spoken.verb_characters.get(mark.text[0])

    is_object = (
        mark.speech == "noun"
        and before is not None
        and before.end == mark.start
        and before.means("verb")
    )
    if is_object:
        return lexicon.spoken.verb_characters.get(mark.text)

    return None
