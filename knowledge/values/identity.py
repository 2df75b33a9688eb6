"""Tell which columns name people or identify things.

There another spelling means another person or thing.

Judged by the names and comments of the column and its table, and by what the stored values look
like.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from common.values import Column, Table
from knowledge.language.cutting import pieces
from knowledge.language.spelling import (
    COMPANIES,
    KINDS,
    PLACES,
    accents_apart,
    misspelt,
    same,
    units_apart,
)
from knowledge.words import WORDS

_EN, _ZH = WORDS.english, WORDS.chinese
_PEOPLE = _EN.one_of("people.both") | _EN.one_of("people.answers")
_PEOPLE_HAN = re.compile("|".join((*_ZH.phrases("people.both"), *_ZH.phrases("people.answers"))))
_NAMES, _NAMES_HAN = _EN.one_of("people.names.with_owner"), _ZH.pattern("people.names.with_owner")
_OWN_NAMES, _OWN_NAMES_HAN = _EN.one_of("people.names.alone"), _ZH.pattern("people.names.alone")
_OWN_PAIRS = {
    (word, _EN.text("people.names.name")) for word in _EN.phrases("people.names.before_name")
}
_OF_THINGS = _EN.one_of("people.names.of_things")
_IDENTIFYING, _IDENTIFYING_HAN = _EN.one_of("codes.identifying"), _ZH.pattern("codes.identifying")
_SURNAMES = frozenset(_ZH.text("people.names.surnames"))
_HAN_NAME = re.compile(r"[\u4e00-\u9fff·]{2,4}")
GIVEN_NAMES = _EN.one_of("people.names.given")
_CODE = re.compile(
    r"\A(?:[A-Za-z]{0,6}[-_#/]?\d[A-Za-z0-9_#/.+-]*|[\w.+-]+@[\w-]+(\.[\w-]+)+"
    r"|[\u4e00-\u9fff][A-Z][·-]?[A-Z0-9]{4,6})"
)
_HAN_COMPANIES = tuple(unit for unit in COMPANIES if not unit.isascii())
_HAN_PLACES = tuple(unit for unit in (*PLACES, *KINDS) if not unit.isascii())
_TEXT_TYPE = re.compile(r"(?i)(text|char|varchar|character|citext|name|bpchar)")
_HEAD = 20  # characters of a comment that say what a thing is
_LOOKS_SO = 0.8  # share of the values that must look like it
_LEAST_VALUES = 4
_FEW = 0.2

Resembles = Callable[[str, str], bool]


def names_people(table: Table, column: Column) -> bool:
    """Tell whether the column's values are names of people."""
    words = _words(column.name)
    comment = (column.comment or "")[:_HEAD]
    if _look_alike(column, _is_organisation, _FEW):
        return False
    if _is_always_a_persons(words, column.name, comment):
        return True
    if not _is_text(column) or not _OF_THINGS.isdisjoint(words):
        return False
    if identifies(table, column):
        return False
    if _look_alike(column, _is_person, _LOOKS_SO):
        return True

    return _is_called_so(table, column, words, comment)


def _is_always_a_persons(words: tuple[str, ...], name: str, comment: str) -> bool:
    """Tell whether the name says that it holds names of people, such as `surname` or 姓名."""
    if not _OWN_NAMES.isdisjoint((*words, "".join(words))):
        return True

    pairs = zip(words, words[1:], strict=False)
    if not _OWN_PAIRS.isdisjoint(pairs):
        return True

    return _OWN_NAMES_HAN.search(f"{name} {comment}") is not None


def _is_called_so(table: Table, column: Column, words: tuple[str, ...], comment: str) -> bool:
    """Tell whether it is called a name and is about people, or ends in a word for a person."""
    about_people = _says_people(words, column.name, comment)
    if about_people and _last_is_person(words, column.name, comment):
        return True

    is_name_in_han = any(map(_NAMES_HAN.search, (column.name, comment)))
    if _NAMES.isdisjoint(words) and not is_name_in_han:
        return False
    if about_people:
        return True

    return _says_people(_words(table.name), table.name, table.comment or "")


def identifies(table: Table, column: Column) -> bool:
    """Tell whether the column's values are numbers, codes or addresses, each of one thing."""
    words = _words(column.name)
    if words and words[-1] in _IDENTIFYING:
        return True

    comment = (column.comment or "")[:_HEAD]
    is_called_so_in_han = any(map(_IDENTIFYING_HAN.search, (column.name, comment)))
    if is_called_so_in_han or _is_key(table, column):
        return True

    return _look_alike(column, _is_code, _LOOKS_SO)


def _is_key(table: Table, column: Column) -> bool:
    """Tell whether the column is of a key, and its values are no phrases."""
    keys = {*table.primary_key, *table.referring_columns}
    if column.name not in keys:
        return False

    are_phrases = any(" " in value for value in column.values)
    return not are_phrases


def value_tests(table: Table, column: Column) -> tuple[Resembles, ...]:
    """Return the tests by which a text may mean a value of the column, the surest first."""
    if identifies(table, column):
        return (same,)
    if names_people(table, column):
        # A customer may be a company, and no person is called "Ltd".
        return (same, _companies_apart)

    return (same, _units_apart, accents_apart, misspelt)


def _companies_apart(one: str, other: str) -> bool:
    return units_apart(one, other, COMPANIES)


def _units_apart(one: str, other: str) -> bool:
    return units_apart(one, other, (*PLACES, *COMPANIES, *KINDS))


def near_value(literal: str, values: Iterable[str], ways: Iterable[Resembles]) -> str | None:
    """Return the value that `literal` spells differently, by the first of `ways` that finds any.

    None when several match.
    """
    stored = tuple(values)
    for is_near in ways:
        near = [value for value in stored if is_near(literal, value)]
        if len(near) == 1:
            return near[0]
        if near:
            return None

    return None


def _is_text(column: Column) -> bool:
    own_name = column.type.split(".")[-1]
    return _TEXT_TYPE.match(own_name) is not None


def _says_people(words: tuple[str, ...], name: str, comment: str) -> bool:
    stems: set[str] = set()
    for each in words:
        stems.update((each, each.removesuffix("s"), each.removesuffix("es")))

    if not _PEOPLE.isdisjoint(stems):
        return True

    return any(map(_PEOPLE_HAN.search, (name, comment[:_HEAD])))


def _last_is_person(words: tuple[str, ...], name: str, comment: str) -> bool:
    """Tell whether the name ends in a word for a person (`manager`, `负责人`).

    Then it does not end in something that belongs to one.
    """
    if words and words[-1] in _PEOPLE:
        return True

    first_words = re.split(r"[\s,，:：;；(（。]", comment, maxsplit=1)[0]
    return _ends_in_person(name) or _ends_in_person(first_words)


def _ends_in_person(text: str) -> bool:
    ends = [match.end() for match in _PEOPLE_HAN.finditer(text)]
    return len(text) in ends


def _words(name: str) -> tuple[str, ...]:
    words = []
    for word in pieces(name):
        if word.isascii() and word.isalpha():
            words.append(word.lower())

    return tuple(words)


def _look_alike(column: Column, is_one: Callable[[str], bool], part: float) -> bool:
    if len(column.values) < _LEAST_VALUES:
        return False

    return _share(column.values, is_one) >= part


@lru_cache(maxsize=1024)  # many columns have the same values, and all are judged more than once
def _share(values: tuple[str, ...], is_one: Callable[[str], bool]) -> float:
    return sum(map(is_one, values)) / len(values)


def _is_code(value: str) -> bool:
    return _CODE.fullmatch(value) is not None


def _is_organisation(value: str) -> bool:
    if value.endswith(_HAN_COMPANIES):
        return True

    words = re.findall(r"\w+", value.lower())
    if not words or " " not in value:
        return False

    return words[-1] in COMPANIES


def _is_person(value: str) -> bool:
    if _HAN_NAME.fullmatch(value):
        is_place = value.endswith(_HAN_PLACES)
        return value[0] in _SURNAMES and not is_place

    words = value.split()
    if not 2 <= len(words) <= 3:
        return False
    if words[0].lower() not in GIVEN_NAMES:
        return False

    return all(word[:1].isupper() for word in words)
