"""Words of a question among which stored values may be named, and patterns that find these values
in PostgreSQL.

A pattern matches a value however it is written: case, width, traditional or simplified characters,
blanks and punctuation. It may match a little more, so what comes back is compared again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import dropwhile

from knowledge.language.atoms import Atom
from knowledge.language.spelling import COMPANIES, KINDS, PLACES, folded, plain, says, unaccented
from knowledge.words import SIMPLIFIED

MOST_ATOMS = 24
"""Longest name looked for, in words or Han characters."""
_MOST_QUOTED = 60  # the same, in quotes
_MOST_EXPLAINED = (
    4  # words or characters of a name that are explained, before one that is not, and behind
)
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
        """Start and end of what may be a name, the longest first: it holds something unexplained,
        and ends no word.
        """
        if self.is_quoted:
            if len(self.atoms) <= _MOST_QUOTED:
                return ((0, len(self.atoms)),)
            return ()
        found = []
        for start in range(len(self.atoms)):
            if self._may_begin(start):
                for end in range(start + 1, min(start + MOST_ATOMS, len(self.atoms)) + 1):
                    if (
                        any(self.unexplained[start : min(end, start + _MOST_EXPLAINED + 1)])
                        and any(self.unexplained[max(start, end - _MOST_EXPLAINED - 1) : end])
                        and (self._may_end(end) and self._says_enough(start, end))
                    ):
                        found.append((start, end))
        return tuple(sorted(found, key=lambda span: span[0] - span[1]))

    @cached_property
    def keys(self) -> dict[tuple[int, int], str]:
        """Each span in the one writing in which texts are compared, without accents."""
        return {span: unaccented(folded(self.said(*span))) for span in self.spans}

    def said(self, start: int, end: int) -> str:
        """The words of a span, as they are written."""
        return self.text[self.atoms[start].start : self.atoms[end - 1].end].strip()

    def widened(self, start: int, end: int) -> tuple[int, int]:
        """The span with what stands beside it and may belong to the same name: unexplained, in
        Latin capitalised.
        """
        while start and self._adds(start - 1):
            start -= 1
        while end < len(self.atoms) and self._adds(end):
            end += 1
        return start, end

    def is_between(self, place: int) -> bool:
        """Whether one Han character that is explained stands between two that are not: of a name it
        is a part.
        """
        around = (place - 1, place, place + 1)
        is_inside = 0 < place < len(self.atoms) - 1
        return is_inside and all(
            self.atoms[at].kind == "han" and self.unexplained[at] is (at != place) for at in around
        )

    def is_unknown(self, start: int, end: int) -> bool:
        """Whether the span begins and ends with what nothing explains, or a number."""
        return all(
            self.unexplained[at] or self.atoms[at].kind == "number" for at in (start, end - 1)
        )

    def _adds(self, place: int) -> bool:
        atom = self.atoms[place]
        return self.unexplained[place] and (atom.kind != "word" or atom.text[0].isupper())

    def _may_begin(self, start: int) -> bool:
        atom = self.atoms[start]
        return atom.kind != "mark" and not (
            start and atom.glued and _are_one_word(self.atoms[start - 1], atom)
        )

    def _may_end(self, end: int) -> bool:
        last = self.atoms[end - 1]
        after = None
        if end < len(self.atoms):
            after = self.atoms[end]
        return last.kind != "mark" and not (
            after is not None and after.glued and _are_one_word(last, after)
        )

    def _says_enough(self, start: int, end: int) -> bool:
        """Whether it may be a name: letters, and not one character alone."""
        atoms = [atom for atom in self.atoms[start:end] if atom.kind != "mark"]
        if not any(atom.kind in ("word", "han") for atom in atoms):
            return False
        if len(atoms) > 1:
            return True
        text = atoms[0].text
        return atoms[0].kind == "word" and (
            len(text) >= _LEAST_LETTERS or (len(text) > 1 and text.isupper())
        )


def _are_one_word(one: Atom, other: Atom) -> bool:
    """PX100A is three atoms, and PX100 is another name."""
    return one.kind in ("word", "number") and other.kind in ("word", "number")


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
    """Finds values that are named in the stretches; None when nothing can be."""
    starts: list[ValuePattern] = []
    for stretch in stretches:
        starts.extend(_from_each_start(stretch))
    return _either(starts)


def misspelt_pattern(stretches: Iterable[Stretch]) -> ValuePattern | None:
    """Finds values that differ in few letters or in accents from what the stretches say without
    knowing it.
    """
    found = []
    for stretch in stretches:
        for run in _unexplained_runs(stretch):
            pattern = _with_slips(run)
            if pattern is not None:
                found.append(pattern)
    return _either(found)


def writings(stretches: Iterable[Stretch], most: int) -> list[str]:
    """The likeliest ways in which values named in the stretches are stored, for comparing without a
    pattern.
    """
    found: dict[str, None] = {}
    for stretch in stretches:
        for start, end in stretch.spans:
            said = stretch.said(start, end)
            found.update(
                dict.fromkeys(
                    (said, said.upper(), said.lower(), said.title(), said.translate(SIMPLIFIED))
                )
            )
    return list(found)[:most]


def _either(patterns: Iterable[ValuePattern]) -> ValuePattern | None:
    """Join patterns into one, which also takes a word behind that says what kind of thing it is."""
    room = _MOST_CHARS
    kept = []
    for pattern in dict.fromkeys(patterns):
        room -= len(pattern.expression) + 1
        if room >= 0:
            kept.append(pattern)
    beginnings = dict.fromkeys(beginning for pattern in kept for beginning in pattern.beginnings)
    marked = []
    for beginning in beginnings:
        for mark in _OPENING:
            marked.append(mark + beginning[0])
    expressions = "|".join(pattern.expression for pattern in kept)
    whole = f"^{_GAP}(?:{expressions})(?:{_GAP}{_units()})?{_GAP}$"
    if kept:
        return ValuePattern(tuple(dict.fromkeys((*beginnings, *marked))), whole)
    return None


def _from_each_start(stretch: Stretch) -> Iterator[ValuePattern]:
    """For each place where a name may begin, the pattern of all names that begin there, the
    likeliest places first.
    """
    ends: dict[int, list[int]] = {}
    for start, end in stretch.spans:
        ends.setdefault(start, []).append(end)
    for start in sorted(ends, key=lambda start: not stretch.unexplained[start])[:_MOST_STARTS]:
        shortest = min(ends[start])
        longest = max(ends[start])
        pattern = ""
        for place in reversed(range(start, longest)):
            gap = ""
            if place > start:
                gap = _gap_before(stretch.atoms, place)
            pattern = f"{gap}{_letters(_plain(stretch.atoms[place]))}{pattern}"
            if place >= shortest:
                pattern = f"(?:{pattern})?"
        telling = tuple(dropwhile(lambda atom: not _plain(atom), stretch.atoms[start:shortest]))
        if telling:  # a quotation may begin with punctuation, or hold nothing else
            yield ValuePattern(_beginnings(telling), pattern)


def _gap_before(atoms: Sequence[Atom], place: int) -> str:
    if atoms[place - 1].kind == "han" == atoms[place].kind:
        return _HAN_GAP
    return _GAP


def _beginnings(atoms: Sequence[Atom]) -> tuple[str, ...]:
    """The first letter in all its writings, with the second one where a name that begins so surely
    has it.
    """
    first = _plain(atoms[0])
    written = _writings()
    if len(first) > 1:
        is_joined = first[:2] in written or (len(first) > 2 and first[1:3] in written)
        if is_joined:
            return _written(first[:1])
        return _both(first[0], first[1])
    are_han = len(atoms) > 1 and atoms[0].kind == "han" == atoms[1].kind
    if are_han:
        return _both(first, _plain(atoms[1]))
    return _written(first)


def _both(first: str, second: str) -> tuple[str, ...]:
    pairs = []
    for one in _written(first):
        for other in _written(second):
            pairs.append(one + other)
    return tuple(pairs)


def _written(char: str) -> tuple[str, ...]:
    return (char, *_writings().get(char, ""))


def _unexplained_runs(stretch: Stretch) -> Iterator[tuple[Atom, ...]]:
    """Yield what may be one misspelt name: unexplained words with numbers, or Han characters."""
    run: list[Atom] = []
    for at, atom in enumerate(stretch.atoms):
        if atom.kind == "mark":
            continue
        is_han = bool(run) and run[-1].kind == "han"
        is_number = atom.kind == "number" and not is_han
        belongs = stretch.unexplained[at] or is_number or stretch.is_between(at)
        is_other_script = is_han != (atom.kind == "han")
        if run and (not belongs or is_other_script):
            yield tuple(run)
            run = []
        if belongs:
            run.append(atom)
    if run:
        yield tuple(run)


def _with_slips(run: Sequence[Atom]) -> ValuePattern | None:
    """Return the run with some letters wrong: one half of each word is right, or of a Han name.

    A name in Han characters may also go on.
    """
    if run[0].kind == "han":
        return _han_with_slips("".join(map(_plain, run)))
    if len(run) > _MOST_MISSPELT_WORDS or not any(atom.kind == "word" for atom in run):
        return None
    words = []
    for atom in run:
        word = _plain(atom)
        words.append(_slipped(word) if _may_slip(atom) else _letters(word, accents=True))
    first = unaccented(_plain(run[0])[:1])
    beginnings = dict.fromkeys(other for letter in _accented(first) for other in _written(letter))
    return ValuePattern(tuple(beginnings), _GAP.join(words))


def _han_with_slips(text: str) -> ValuePattern | None:
    if not _LEAST_HAN <= len(text) <= MOST_ATOMS:
        return None
    longer = f"{_letters(text)}{_ANY}{{1,{MOST_ATOMS}}}"
    return ValuePattern(_written(text[0]), f"(?:{_slipped(text)}|{longer})")


def _may_slip(atom: Atom) -> bool:
    return atom.kind == "word" and len(atom.text) >= _LEAST_MISSPELT


def _slipped(word: str) -> str:
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
        letters = "".join(_accented(unaccented(text[at]))) if accents else text[at]
        pieces.append(_class(letters))
        at += 1
    return "".join(pieces)


def _class(chars: str) -> str:
    if chars in _SPECIAL:
        return "."
    kept = "".join(other for char in chars for other in _written(char) if other not in _SPECIAL)
    if len(kept) > 1 or not kept.isalnum():
        return f"[{kept}]"
    return kept


@cache
def _writings() -> dict[str, str]:
    """Return {a character or two, in lower case and simplified: all others that stand for it}."""
    found: defaultdict[str, str] = defaultdict(str)
    codes = (code for first, end in _LETTERS for code in range(first, end))
    for code in (*codes, *SIMPLIFIED):
        char = chr(code)
        folded = plain(char)
        if folded != char and 0 < len(folded) <= 2:
            found[folded] += char
    return dict(found)


@cache
def _accents() -> dict[str, str]:
    """Return {plain letter: the accented ones}, all in lower case."""
    known = set(_writings())
    for chars in _writings().values():
        known.update(map(plain, chars))
    found: defaultdict[str, str] = defaultdict(str)
    for char in known:
        bare = char
        if len(char) == 1:
            bare = unaccented(char)
        if bare != char:
            found[bare] += char
    return {bare: "".join(sorted(chars)) for bare, chars in found.items()}


def _accented(char: str) -> tuple[str, ...]:
    return (char, *_accents().get(char, ""))


@cache
def _units() -> str:
    """Match what may follow a name without making another: the kind of a place or a company."""
    units = dict.fromkeys((*PLACES, *COMPANIES, *KINDS))
    return (
        f"(?:{'|'.join(map(_letters, units))})(?:{_GAP}(?:{'|'.join(map(_letters, COMPANIES))}))?"
    )
