"""What people call the values stored in a column: the value itself, its inflections, and the labels
of its codes.
"""

import re
from collections.abc import Iterator

from common.values import Column
from knowledge.language.atoms import key_of, normalise
from knowledge.language.codes import labels_of
from knowledge.language.cutting import has_han
from knowledge.words import WORDS

_VERSION = re.compile(r"\A\d++(\.\d++){2,3}")
_LISTED = re.compile(r"[、,，;；/|]")
NAME_TAILS = WORDS.chinese.phrases("values.name_ends")
_MAX_LISTED = 12
_LONGEST_LISTED = 10  # characters of a value that a comment lists
_LONGEST_SHORTENED = 24
_LEAST_NEGATED = 0.75  # how good a name must be

ValueName = tuple[str, str, float]


def labelled_values(column: Column) -> Iterator[ValueName]:
    """Yield (stored value, label, quality) of what the comment explains (`0-停用 1-正常`) or lists."""
    comment = normalise(column.comment or "")
    pairs = labels_of(comment)
    if pairs:
        yield from ((code, text, 1.0) for code, text in pairs)
        return
    if column.is_complete or not has_han(comment):
        return
    listed = _listed_values(comment)
    yield from ((value, value, 0.9) for value in listed if value not in column.values)


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
    """(stored code, word, quality) when the column's values are the two genders however
    abbreviated.
    """
    said = {value: value for value in column.values} | dict(labels_of(column.comment))
    codes = {
        value: _GENDER_CODES.get(text.strip().lower().removesuffix(_GENDER_END))
        for value, text in said.items()
    }
    if _GENDERS.keys() <= set(codes.values()):
        for value, gender in codes.items():
            for word in _GENDERS.get(gender or "", ()):
                yield value, word, 0.95


def negated_names(names: dict[str, float], value: str) -> Iterator[ValueName]:
    """Yield (`value`, "inactive", quality) of a flag called "active", or a date called "paid"."""
    for name, quality in names.items():
        is_word = name.isascii() and " " not in name
        if not is_word or quality < _LEAST_NEGATED:
            continue
        for prefix in _NEGATIONS:
            yield value, prefix + name, quality - 0.02


def meant_values(column: Column) -> Iterator[ValueName]:
    """(stored value, name, quality) for the values that the semantic file names."""
    for meant in column.meaning.values if column.meaning is not None else ():
        yield from ((meant.value, name, 1.0) for name in meant.names.all)


def has_labels(column: Column) -> bool:
    """Whether the comment explains the column's values as codes."""
    return bool(labels_of(column.comment))


def partial_names(column: Column) -> Iterator[ValueName]:
    """(stored value, a part of it that only this value has, quality): `沪昆高速` of G60沪昆高速."""
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


def _han_parts(value: str) -> Iterator[str]:
    beginnings = [value[:end] for end in range(2, len(value))]
    ends = [value[start:] for start in range(1, len(value) - 2)]
    return (part for part in (*beginnings, *ends) if not _splits_number(value, part))


def _latin_parts(value: str) -> Iterator[str]:
    words = value.split()
    if len(words) < 2:
        return iter(())
    beginnings = [" ".join(words[:end]) for end in range(1, len(words))]
    return (part for part in (*beginnings, words[-1]) if len(part) >= 3)


def _splits_number(value: str, part: str) -> bool:
    """Whether the part begins or ends inside a number: `3号楼` of 13号楼 is another building."""
    if value.startswith(part):
        return part[-1].isdigit() and value[len(part)].isdigit()
    return part[0].isdigit() and value[-len(part) - 1].isdigit()


def value_names(column: Column) -> Iterator[ValueName]:
    """(stored value, how people say it, quality) for the sampled values."""
    for value in column.values:
        folded = normalise(value)
        if not folded or (re.fullmatch(r"[\d\s.,:+-]*", folded) and not _VERSION.fullmatch(folded)):
            continue
        yield value, folded, 1.0
        if not has_han(folded):
            continue
        for tail in NAME_TAILS:
            if folded.endswith(tail) and len(key_of(folded)) - len(tail) >= 2:
                yield value, folded[: -len(tail)], 0.85
                break
