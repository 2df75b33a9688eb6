"""Find the words of a question that may name stored values, and make patterns that match these.

A pattern matches a value however it is written: case, width, traditional or simplified characters,
blanks and punctuation. It may match a little more, so what comes back is compared again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import dropwhile

from knowledge.language.atoms import Atom, is_one_word
from knowledge.language.spelling import COMPANIES, KINDS, PLACES, folded, plain, says, unaccented
from knowledge.words import SIMPLIFIED

MOST_ATOMS = 24
"""Longest name looked for, in words or Han characters."""
_MOST_QUOTED = 60  # the same, in quotes
# Words or characters of a name that are explained, before one that is not, and behind.
_MOST_EXPLAINED = 4
_MOST_STARTS = 24  # places in one stretch where a name may begin
_LEAST_LETTERS = 3  # of a name that is one Latin word; an abbreviation in capitals may have two
_LEAST_MISSPELT = 4  # letters of a word in which one may be wrong
_MOST_MISSPELT_WORDS = 6
_LEAST_HAN = 3  # characters of a name in which one may be wrong
_MOST_CHARS = 12_000  # of one pattern
# Letters that may be written in several ways: Latin, Greek, Cyrillic, ligatures, full and half
# width.
_LETTERS = (
    (0x0041, 0x0250),
    (0x0370, 0x0530),
    (0x1E00, 0x1F00),
    (0xF900, 0xFB07),
    (0xFF01, 0xFFEF),
)
_SPECIAL = frozenset("[]\\^")  # can't stand in brackets as they are
_GAP = "[[:space:]\u3000!\"'(),./:;?_{}·–—‘’“”，。、；：（）《》【】「」・-]*"
_OPENING = " \"'(《「“【"  # before a name
_HAN_GAP = "[ \u3000·]*"  # between characters that are written without blanks
_ANY = "[^[:space:]]"


@dataclass(frozen=True)
class Stretch:
    """A part of a question that says something nobody knows yet, with the words around it.

    Attributes:
        text: the question, normalised; atoms point into it.
        unexplained: for each atom, whether nothing that is known explains it.
        is_quoted: whether it stands in quotes, so that only all of it is a name.
    """

    text: str
    atoms: tuple[Atom, ...]
    unexplained: tuple[bool, ...]
    is_quoted: bool = False

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return start and end of all that may be a name, the longest first."""
        if self.is_quoted:
            if len(self.atoms) > _MOST_QUOTED:
                return ()

            return ((0, len(self.atoms)),)

        spans = []
        for start in range(len(self.atoms)):
            if self._may_begin(start):
                for end in self._ends_of(start):
                    spans.append((start, end))

        return tuple(sorted(spans, key=lambda span: span[0] - span[1]))

    def _ends_of(self, start: int) -> Iterator[int]:
        """Yield where names may end that begin at `start`."""
        last = min(start + MOST_ATOMS, len(self.atoms))
        for end in range(start + 1, last + 1):
            if not self._is_unexplained_at_both_ends(start, end):
                continue
            if self._may_end(end) and self._says_enough(start, end):
                yield end

    def _is_unexplained_at_both_ends(self, start: int, end: int) -> bool:
        beginning = self.unexplained[start : min(end, start + _MOST_EXPLAINED + 1)]
        ending = self.unexplained[max(start, end - _MOST_EXPLAINED - 1) : end]
        return any(beginning) and any(ending)

    @cached_property
    def keys(self) -> dict[tuple[int, int], str]:
        """Return each span in the one writing in which texts are compared, without accents."""
        keys = {}
        for span in self.spans:
            text = self.said(*span)
            keys[span] = unaccented(folded(text))

        return keys

    def said(self, start: int, end: int) -> str:
        """Return the words of a span, as they are written."""
        first = self.atoms[start]
        last = self.atoms[end - 1]
        return self.text[first.start : last.end].strip()

    def widened(self, start: int, end: int) -> tuple[int, int]:
        """Return the span with what stands beside it and may belong to the same name.

        That is what nothing explains, and what is capitalised if it is Latin.
        """
        while start and self._adds(start - 1):
            start -= 1

        while end < len(self.atoms) and self._adds(end):
            end += 1

        return start, end

    def is_between(self, place: int) -> bool:
        """Tell whether one explained Han character stands between two that nothing explains.

        Then it is a part of a name.
        """
        is_inside = 0 < place < len(self.atoms) - 1
        if not is_inside:
            return False

        around = slice(place - 1, place + 2)
        kinds = {atom.kind for atom in self.atoms[around]}
        return kinds == {"han"} and self.unexplained[around] == (True, False, True)

    def is_unknown(self, start: int, end: int) -> bool:
        """Tell whether the span begins and ends with what nothing explains, or a number."""
        return self._is_unknown_at(start) and self._is_unknown_at(end - 1)

    def _is_unknown_at(self, place: int) -> bool:
        if self.unexplained[place]:
            return True

        return self.atoms[place].kind == "number"

    def _adds(self, place: int) -> bool:
        if not self.unexplained[place]:
            return False

        atom = self.atoms[place]
        return atom.kind != "word" or atom.text[0].isupper()

    def _may_begin(self, start: int) -> bool:
        first = self.atoms[start]
        if first.kind == "mark":
            return False
        if start == 0:
            return True

        return not is_one_word(self.atoms[start - 1], first)

    def _may_end(self, end: int) -> bool:
        last = self.atoms[end - 1]
        if last.kind == "mark":
            return False
        if end == len(self.atoms):
            return True

        return not is_one_word(last, self.atoms[end])

    def _says_enough(self, start: int, end: int) -> bool:
        """Tell whether it may be a name: letters, and not one character alone."""
        atoms = [atom for atom in self.atoms[start:end] if atom.kind != "mark"]
        has_letters = any(atom.kind in ("word", "han") for atom in atoms)
        if not has_letters:
            return False
        if len(atoms) > 1:
            return True

        return _is_name_alone(atoms[0])


def _is_name_alone(atom: Atom) -> bool:
    if atom.kind != "word":
        return False
    if len(atom.text) >= _LEAST_LETTERS:
        return True

    return len(atom.text) > 1 and atom.text.isupper()


# ------------------------------------------------------------------------------
# patterns


@dataclass(frozen=True)
class ValuePattern:
    """A pattern that finds values of a name however it is written.

    Attributes:
        beginnings: the first character or two of any such value. Comparing them takes a fraction of
            the time that the expression takes, and leaves few values.
        expression: a regular expression.
    """

    beginnings: tuple[str, ...]
    expression: str


def exact_pattern(stretches: Iterable[Stretch]) -> ValuePattern | None:
    """Match values that are named in the stretches; None when nothing can be."""
    starts: list[ValuePattern] = []
    for stretch in stretches:
        starts.extend(_from_each_start(stretch))

    return _either(starts)


def misspelt_pattern(stretches: Iterable[Stretch]) -> ValuePattern | None:
    """Match values that differ in few letters or in accents from what nothing explains."""
    patterns = []
    for stretch in stretches:
        for run in _unexplained_runs(stretch):
            pattern = _with_slips(run)
            if pattern is not None:
                patterns.append(pattern)

    return _either(patterns)


def writings(stretches: Iterable[Stretch], most: int) -> list[str]:
    """Return the likeliest ways in which values named in the stretches are stored.

    They are for comparing without a pattern.
    """
    distinct: dict[str, None] = {}
    for stretch in stretches:
        for start, end in stretch.spans:
            text = stretch.said(start, end)
            cases = (text, text.upper(), text.lower(), text.title())
            distinct.update(dict.fromkeys(cases))
            distinct[text.translate(SIMPLIFIED)] = None

    return list(distinct)[:most]


def _either(patterns: Iterable[ValuePattern]) -> ValuePattern | None:
    """Join patterns into one, which also takes a word behind that says what kind of thing it is."""
    room = _MOST_CHARS
    kept = []
    for pattern in dict.fromkeys(patterns):
        room -= len(pattern.expression) + 1
        if room >= 0:
            kept.append(pattern)

    if not kept:
        return None

    beginnings: dict[str, None] = {}
    for pattern in kept:
        beginnings.update(dict.fromkeys(pattern.beginnings))

    for beginning in tuple(beginnings):
        for mark in _OPENING:
            beginnings[mark + beginning[0]] = None

    expressions = "|".join(pattern.expression for pattern in kept)
    whole = f"^{_GAP}(?:{expressions})(?:{_GAP}{_units()})?{_GAP}$"
    return ValuePattern(tuple(beginnings), whole)


def _from_each_start(stretch: Stretch) -> Iterator[ValuePattern]:
    """Yield, for each place where a name may begin, the pattern of all names that begin there.

    The likeliest places come first.
    """
    ends: dict[int, list[int]] = {}
    for start, end in stretch.spans:
        ends.setdefault(start, []).append(end)

    starts = sorted(ends, key=lambda start: not stretch.unexplained[start])
    for start in starts[:_MOST_STARTS]:
        shortest = min(ends[start])
        expression = _expression(stretch.atoms[start : max(ends[start])], shortest - start)
        telling = tuple(dropwhile(lambda atom: not _plain(atom), stretch.atoms[start:shortest]))
        if telling:  # a quotation may begin with punctuation, or hold nothing else
            yield ValuePattern(_beginnings(telling), expression)


def _expression(atoms: Sequence[Atom], shortest: int) -> str:
    """Match the first `shortest` atoms, and as many of the others as follow them."""
    expression = ""
    for place in reversed(range(len(atoms))):
        gap = ""
        if place > 0:
            gap = _gap(atoms[place - 1], atoms[place])

        letters = _letters(_plain(atoms[place]))
        expression = f"{gap}{letters}{expression}"
        if place >= shortest:
            expression = f"(?:{expression})?"

    return expression


def _gap(before: Atom, after: Atom) -> str:
    if before.kind == "han" == after.kind:
        return _HAN_GAP

    return _GAP


def _beginnings(atoms: Sequence[Atom]) -> tuple[str, ...]:
    """Return the first letter in all its writings.

    With the second one, where a name that begins so surely has it.
    """
    first = _plain(atoms[0])
    written = _writings()
    if len(first) > 1:
        is_joined = first[:2] in written or (len(first) > 2 and first[1:3] in written)
        if is_joined:
            return _writings_of(first[:1])

        return _both(first[0], first[1])

    are_han = len(atoms) > 1 and atoms[0].kind == "han" == atoms[1].kind
    if are_han:
        return _both(first, _plain(atoms[1]))

    return _writings_of(first)


def _both(first: str, second: str) -> tuple[str, ...]:
    pairs = []
    for one in _writings_of(first):
        for other in _writings_of(second):
            pairs.append(one + other)

    return tuple(pairs)


def _writings_of(char: str) -> tuple[str, ...]:
    return (char, *_writings().get(char, ""))


def _unexplained_runs(stretch: Stretch) -> Iterator[tuple[Atom, ...]]:
    """Yield stretches that may be one misspelt name: unexplained words with numbers, or Han
    characters.
    """
    run: list[Atom] = []
    for at, atom in enumerate(stretch.atoms):
        if atom.kind == "mark":
            continue

        belongs = _belongs(stretch, at, run)
        goes_on = belongs and _are_of_one_script(run, atom)
        if run and not goes_on:
            yield tuple(run)
            run = []

        if belongs:
            run.append(atom)

    if run:
        yield tuple(run)


def _belongs(stretch: Stretch, at: int, run: Sequence[Atom]) -> bool:
    """Tell whether an atom may be of a misspelt name, also one that the run begins."""
    if stretch.unexplained[at] or stretch.is_between(at):
        return True

    follows_han = bool(run) and run[-1].kind == "han"
    return stretch.atoms[at].kind == "number" and not follows_han


def _are_of_one_script(run: Sequence[Atom], atom: Atom) -> bool:
    follows_han = bool(run) and run[-1].kind == "han"
    is_han = atom.kind == "han"
    return is_han == follows_han


def _with_slips(run: Sequence[Atom]) -> ValuePattern | None:
    """Return the run with some letters wrong: one half of each word is right, or of a Han name.

    A name in Han characters may also go on.
    """
    if run[0].kind == "han":
        return _han_with_slips("".join(map(_plain, run)))

    has_word = any(atom.kind == "word" for atom in run)
    if len(run) > _MOST_MISSPELT_WORDS or not has_word:
        return None

    expression = _GAP.join(map(_word_with_slips, run))
    first = unaccented(_plain(run[0])[:1])
    beginnings: dict[str, None] = {}
    for letter in _accents_of(first):
        beginnings.update(dict.fromkeys(_writings_of(letter)))

    return ValuePattern(tuple(beginnings), expression)


def _han_with_slips(text: str) -> ValuePattern | None:
    if not _LEAST_HAN <= len(text) <= MOST_ATOMS:
        return None

    longer = f"{_letters(text)}{_ANY}{{1,{MOST_ATOMS}}}"
    return ValuePattern(_writings_of(text[0]), f"(?:{_pattern_of_slip(text)}|{longer})")


def _word_with_slips(atom: Atom) -> str:
    word = _plain(atom)
    may_slip = atom.kind == "word" and len(atom.text) >= _LEAST_MISSPELT
    if may_slip:
        return _pattern_of_slip(word)

    return _letters(word, accents=True)


def _pattern_of_slip(word: str) -> str:
    half = len(word) // 2
    first = _letters(word[:half], accents=True)
    second = _letters(word[half:], accents=True)
    begun = len(word) - half
    ended = half
    return f"(?:{first}{_ANY}{{{begun - 1},{begun + 1}}}|{_ANY}{{{ended - 1},{ended + 1}}}{second})"


def _plain(atom: Atom) -> str:
    return "".join(filter(says, plain(atom.text)))


def _letters(text: str, *, accents: bool = False) -> str:
    """Match a text, given in lower case and simplified, in all its writings.

    With `accents`, letters match with and without accents.
    """
    written = _writings()
    pieces: list[str] = []
    at = 0
    while at < len(text):
        pair = text[at : at + 2]
        ligatures = written.get(pair, "") if len(pair) == 2 else ""  # ß for ss
        if ligatures:
            pieces.append(f"(?:{_class(pair[0])}{_class(pair[1])}|[{ligatures}])")
            at += 2
            continue

        letters = "".join(_accents_of(unaccented(text[at]))) if accents else text[at]
        pieces.append(_class(letters))
        at += 1

    return "".join(pieces)


def _class(chars: str) -> str:
    """Return a regular expression for one character that any of these may be written with."""
    if chars in _SPECIAL:
        return "."

    written: list[str] = []
    for char in chars:
        written.extend(_writings_of(char))

    kept = "".join(char for char in written if char not in _SPECIAL)
    is_plain = len(kept) == 1 and kept.isalnum()
    if is_plain:
        return kept

    return f"[{kept}]"


@cache
def _writings() -> dict[str, str]:
    """Return {a character or two, in lower case and simplified: all others that stand for it}."""
    writings: defaultdict[str, str] = defaultdict(str)
    codes = (code for first, end in _LETTERS for code in range(first, end))
    for code in (*codes, *SIMPLIFIED):
        char = chr(code)
        folded = plain(char)
        if folded != char and 0 < len(folded) <= 2:
            writings[folded] += char

    return dict(writings)


@cache
def _accents() -> dict[str, str]:
    """Return {plain letter: the accented ones}, all in lower case."""
    written_chars = set(_writings())
    for chars in _writings().values():
        written_chars.update(map(plain, chars))

    accents: defaultdict[str, str] = defaultdict(str)
    for char in written_chars:
        bare = char
        if len(char) == 1:
            bare = unaccented(char)
        if bare != char:
            accents[bare] += char

    return {bare: "".join(sorted(chars)) for bare, chars in accents.items()}


def _accents_of(char: str) -> tuple[str, ...]:
    return (char, *_accents().get(char, ""))


@cache
def _units() -> str:
    """Match what may follow a name without making another: the kind of a place or a company."""
    units = dict.fromkeys((*PLACES, *COMPANIES, *KINDS))
    any_unit = "|".join(map(_letters, units))
    any_company = "|".join(map(_letters, COMPANIES))
    return f"(?:{any_unit})(?:{_GAP}(?:{any_company}))?"
