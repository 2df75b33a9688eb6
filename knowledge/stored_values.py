"""What people call the values stored in a column: the value itself, its inflections, and the labels of its codes."""

import re
from collections.abc import Iterator

from common.values import Column
from knowledge.atoms import key_of, normalise
from knowledge.codes import labels_of
from knowledge.naming import has_han
from knowledge.words import WORDS

_VERSION = re.compile(r"\d+(\.\d+){2,3}")
_LISTED = re.compile(r"[、,，;；/|]")
NAME_TAILS = WORDS.chinese.phrases("values.name_ends")
_MAX_LISTED = 12
_LONGEST_SHORTENED = 24

ValueName = tuple[str, str, float]


def labelled_values(column: Column) -> Iterator[ValueName]:
    """(stored value, label, quality) from a comment such as `状态：0-停用 1-正常`, and values a comment enumerates."""
    comment = normalise(column.comment or "")
    pairs = labels_of(comment)
    if pairs:
        yield from ((code, text, 1.0) for code, text in pairs)
    elif ":" in comment and has_han(comment) and not column.is_complete:
        listed = [part.strip(" 。.") for part in _LISTED.split(comment.split(":", maxsplit=1)[1])]
        if 2 <= len(listed) <= _MAX_LISTED and all(1 < len(part) <= 10 for part in listed):
            yield from ((part, part, 0.9) for part in listed if part not in column.values)


_NEGATIONS, _GENDER_END = WORDS.english.phrases("values.negations"), WORDS.chinese.text("values.gender_end")
_GENDERS = {gender: WORDS.both(f"values.genders.{gender}") for gender in WORDS.english.under("values.genders")}
_GENDER_CODES = WORDS.named("values.gender_codes")


def gender_names(column: Column) -> Iterator[ValueName]:
    """(stored code, word, quality) when the column's values are the two genders however abbreviated."""
    said = {value: value for value in column.values} | dict(labels_of(column.comment))
    codes = {value: _GENDER_CODES.get(text.strip().lower().removesuffix(_GENDER_END)) for value, text in said.items()}
    if _GENDERS.keys() <= set(codes.values()):
        for value, gender in codes.items():
            for word in _GENDERS.get(gender or "", ()):
                yield value, word, 0.95


def negated_names(names: dict[str, float], value: str) -> Iterator[ValueName]:
    """(`value`, "inactive", quality) for a flag that may be called "active", or a date called "paid"."""
    for name, quality in names.items():
        if quality >= 0.75 and name.isascii() and " " not in name:
            yield from ((value, prefix + name, quality - 0.02) for prefix in _NEGATIONS)


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
    """Beginnings and ends that people shorten a value to."""
    if not 3 <= len(value) <= _LONGEST_SHORTENED:
        return set()
    if has_han(value):
        cuts = {value[:end] for end in range(2, len(value))} | {value[start:] for start in range(1, len(value) - 2)}
        return {part for part in cuts if not part.isdigit() and not _splits_number(value, part)}
    words = value.split()
    parts = {" ".join(words[:end]) for end in range(1, len(words))} | ({words[-1]} if len(words) > 1 else set())
    return {part for part in parts if len(part) >= 3 and not part.isdigit()}


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
