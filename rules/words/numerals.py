"""Numbers as people write them: digits, Chinese numerals, English number words, and the units that
scale them.
"""

from dataclasses import dataclass
from decimal import Decimal

from knowledge.language.atoms import Atom
from rules.words import WORDS

_DIGITS = {
    char: int(value)
    for value, chars in WORDS.chinese.under("numbers.words").items()
    for char in chars
}
_PLACE_VALUES = {
    char: int(value)
    for value, chars in WORDS.chinese.under("numbers.places").items()
    for char in chars
}
_NUMERALS = frozenset(_DIGITS.keys() | _PLACE_VALUES.keys())
_SCALES = WORDS.numbers("numbers.scales")
_GLUED, _PERCENT = WORDS.both("numbers.glued"), WORDS.both("numbers.percent")
ENGLISH_NUMBERS = {
    word: int(value)
    for value, words in WORDS.english.under("numbers.words").items()
    for word in words
}


@dataclass(frozen=True)
class Numeral:
    """A number covering the atoms from `start` up to `end`.

    Attributes:
        scale: what a unit such as 万 or "million" multiplied it by.
        is_percent: whether it is written as so many of a hundred.
    """

    start: int
    end: int
    value: Decimal
    scale: int = 1
    is_percent: bool = False

    @property
    def unscaled(self) -> Decimal:
        """Return the number before its unit."""
        return self.value / self.scale


def chinese_number(text: str) -> int | None:
    """Return the value of a Chinese numeral (`三百二十`, `二〇二四`); None when it isn't one."""
    if not text or not _NUMERALS.issuperset(text):
        return None
    if _DIGITS.keys() >= set(text):
        return int("".join(str(_DIGITS[char]) for char in text))

    total = section = digit = 0
    for char in text:
        if char in _DIGITS:
            digit = _DIGITS[char]
            continue

        place_value = _PLACE_VALUES[char]
        if place_value < 10**4:
            section += (digit or 1) * place_value
        elif section + digit > 0:
            total += (section + digit) * place_value
            section = 0
        else:
            total = (total or 1) * place_value
            section = 0

        digit = 0

    return total + section + digit


def numerals_of(atoms: tuple[Atom, ...]) -> list[Numeral]:
    """Return every reading of a run of atoms as a number, longest first at each place."""
    numerals: list[Numeral] = []
    for start in range(len(atoms)):
        base = _base_at(atoms, start)
        if base is not None:
            numerals.append(_scaled(atoms, base))

    return numerals


def _base_at(atoms: tuple[Atom, ...], start: int) -> Numeral | None:
    atom = atoms[start]
    if atom.kind == "number":
        if _is_negative(atoms, start):
            return Numeral(start - 1, start + 1, -Decimal(atom.key))

        return Numeral(start, start + 1, Decimal(atom.key))

    if atom.kind == "word" and atom.key in ENGLISH_NUMBERS:
        return Numeral(start, start + 1, Decimal(ENGLISH_NUMBERS[atom.key]))

    return _chinese_at(atoms, start)


def _is_negative(atoms: tuple[Atom, ...], start: int) -> bool:
    """Tell whether a minus stands right before the number, and not between two words."""
    if start == 0 or atoms[start - 1].key != "-" or not atoms[start].glued:
        return False

    return not _glued_to_word(atoms, start - 1)


def _chinese_at(atoms: tuple[Atom, ...], start: int) -> Numeral | None:
    """Return the Chinese numeral that begins at `start`; None where none begins there."""
    is_within = start > 0 and _is_numeral(atoms[start - 1])
    if is_within or not _is_numeral(atoms[start]):
        return None

    end = start
    while end < len(atoms) and _is_numeral(atoms[end]):
        end += 1

    text = "".join(atom.text for atom in atoms[start:end])
    value = chinese_number(text)
    if value is None:
        return None

    return Numeral(start, end, Decimal(value), scale=_final_scale(text))


def _final_scale(text: str) -> int:
    """Return the place value that a Chinese numeral ends with; 1 where it has no scale.

    十 is no scale: 三到五百 is 300 to 500, but 三到五十 is 3 to 50.
    """
    place_value = _PLACE_VALUES.get(text[-1], 1)
    is_scale = len(text) > 1 and place_value > 10
    return place_value if is_scale else 1


def _glued_to_word(atoms: tuple[Atom, ...], index: int) -> bool:
    return atoms[index].glued and index > 0 and atoms[index - 1].kind in ("word", "number", "han")


def _is_numeral(atom: Atom) -> bool:
    return atom.kind == "han" and atom.text in _NUMERALS


def _scaled(atoms: tuple[Atom, ...], base: Numeral) -> Numeral:
    """Take a following scale (`100万`, `5 million`, `20k`) or percent sign into the number."""
    for length in (2, 1):
        following = atoms[base.end : base.end + length]
        if len(following) < length:
            continue

        scale = _SCALES.get("".join(atom.key for atom in following))
        if scale is None:
            continue

        first = following[0]
        if first.glued or first.key not in _GLUED:
            return Numeral(base.start, base.end + length, base.value * scale, scale=scale)

    if base.end < len(atoms) and atoms[base.end].key in _PERCENT:
        return Numeral(base.start, base.end + 1, base.value, is_percent=True)

    return base
