"""The names of a column's stored values: the value itself, its short forms, its code's label."""

import re
from collections.abc import Iterator

from common.values import Column
from knowledge.language.atoms import key_of, normalise
from knowledge.language.codes import labels_of
from knowledge.language.cutting import has_han
from knowledge.words import WORDS

_VERSION = re.compile(r"\A\d++(\.\d++){2,3}")
_FIGURE = re.compile(r"[\d\s.,:+-]*")
_LISTED = re.compile(r"[、,，;；/|]")
NAME_TAILS = WORDS.chinese.phrases("values.name_ends")
_MAX_LISTED = 12
_LONGEST_LISTED = 10  # characters of a value that a comment lists
_LONGEST_SHORTENED = 24
_LEAST_NEGATED = 0.75  # how good a name must be

ValueName = tuple[str, str, float]


def labelled_values(column: Column) -> Iterator[ValueName]:
    """Yield (stored value, label, quality) of what the comment lists or explains.

    Such as `0-停用 1-正常`.
    """
    comment = normalise(column.comment or "")
    pairs = labels_of(comment)
    for code, label in pairs:
        yield code, label, 1.0

    is_known = bool(pairs) or column.is_complete
    if is_known or not has_han(comment):
        return

    for value in _listed_values(comment):
        if value not in column.values:
            yield value, value, 0.9


def _listed_values(comment: str) -> list[str]:
    _, colon, explanation = comment.partition(":")
    if not colon:
        return []

    listed = [part.strip(" 。.") for part in _LISTED.split(explanation)]
    is_list = 2 <= len(listed) <= _MAX_LISTED
    are_short = all(1 < len(part) <= _LONGEST_LISTED for part in listed)
    if is_list and are_short:
        return listed

    return []


_NEGATIONS, _GENDER_END = (
    WORDS.english.phrases("values.negations"),
    WORDS.chinese.text("values.gender_end"),
)
_GENDERS = {
    gender: WORDS.both(f"values.genders.{gender}")
    for gender in WORDS.english.under("values.genders")
}
_GENDER_CODES = WORDS.named("values.gender_codes")


def gender_names(column: Column) -> Iterator[ValueName]:
    """Yield (stored code, word, quality) when the values are the genders, abbreviated or not."""
    texts = {value: value for value in column.values} | dict(labels_of(column.comment))
    codes: dict[str, str] = {}
    for value, text in texts.items():
        word = text.strip().lower().removesuffix(_GENDER_END)
        if word in _GENDER_CODES:
            codes[value] = _GENDER_CODES[word]

    if not _GENDERS.keys() <= set(codes.values()):
        return

    for value, gender in codes.items():
        for word in _GENDERS.get(gender, ()):
            yield value, word, 0.95


def negated_names(names: dict[str, float], value: str) -> Iterator[ValueName]:
    """Yield (`value`, "inactive", quality) of a flag called "active", or a date called "paid"."""
    for name, quality in names.items():
        if quality < _LEAST_NEGATED:
            continue

        is_word = name.isascii() and " " not in name
        if not is_word:
            continue

        for prefix in _NEGATIONS:
            yield value, prefix + name, quality - 0.02


def meant_values(column: Column) -> Iterator[ValueName]:
    """Yield (stored value, name, quality) for the values that the semantic file names."""
    if column.meaning is None:
        return

    for meant in column.meaning.values:
        for name in meant.names.all:
            yield meant.value, name, 1.0


def has_labels(column: Column) -> bool:
    """Tell whether the comment explains the column's values as codes."""
    return bool(labels_of(column.comment))


def partial_names(column: Column) -> Iterator[ValueName]:
    """Yield (stored value, a part of it that only this value has, quality).

    Such as `沪昆高速` of G60沪昆高速.
    """
    owners: dict[str, set[str]] = {}
    for value in column.values:
        for part in _parts(normalise(value)):
            owners.setdefault(part, set()).add(value)

    for part, values in owners.items():
        if len(values) == 1:
            value = next(iter(values))
            yield value, part, 0.55 + 0.2 * len(part) / max(len(value), 1)


def _parts(value: str) -> set[str]:
    """Return beginnings and ends that people shorten a value to."""
    if not 3 <= len(value) <= _LONGEST_SHORTENED:
        return set()

    parts = _han_parts(value) if has_han(value) else _latin_parts(value)
    return {part for part in parts if not part.isdigit()}


def _han_parts(value: str) -> list[str]:
    beginnings = [value[:end] for end in range(2, len(value))]
    ends = [value[start:] for start in range(1, len(value) - 2)]
    parts = []
    for part in (*beginnings, *ends):
        if not _splits_number(value, part):
            parts.append(part)

    return parts


def _latin_parts(value: str) -> list[str]:
    words = value.split()
    if len(words) < 2:
        return []

    parts = [" ".join(words[:end]) for end in range(1, len(words))]
    parts.append(words[-1])
    return [part for part in parts if len(part) >= 3]


def _splits_number(value: str, part: str) -> bool:
    """Tell whether the part begins or ends inside a number.

    `3号楼` of 13号楼 is another building.
    """
    inside, beyond = part[0], value[-len(part) - 1]
    if value.startswith(part):
        inside, beyond = part[-1], value[len(part)]

    return inside.isdigit() and beyond.isdigit()


def value_names(column: Column) -> Iterator[ValueName]:
    """Yield (stored value, how people say it, quality) for the sampled values."""
    for value in column.values:
        folded = normalise(value)
        if not folded or _is_number(folded):
            continue

        yield value, folded, 1.0
        if not has_han(folded):
            continue

        short = _without_tail(folded)
        if short is not None:
            yield value, short, 0.85


def _is_number(text: str) -> bool:
    """Tell whether the text is a number, a date or a time, and no version."""
    if _VERSION.fullmatch(text):
        return False

    return _FIGURE.fullmatch(text) is not None


def _without_tail(name: str) -> str | None:
    """Return a name without what only says what kind of place or company it is."""
    size = len(key_of(name))
    for tail in filter(name.endswith, NAME_TAILS):
        if size - len(tail) >= 2:
            return name[: -len(tail)]

    return None
