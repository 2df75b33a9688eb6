"""Which columns hold names of people or identify things, where another spelling means another
person or thing.

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
_HEAD = 20  # characters of a comment that say what a thing is
_LOOKS_SO = 0.8  # share of the values that must look like it
_LEAST_VALUES = 4
_FEW = 0.2

Nearness = Callable[[str, str], bool]


def names_people(table: Table, column: Column) -> bool:
    """Whether the column's values are names of people."""
    words = _words(column.name)
    said = (column.comment or "")[:_HEAD]
    if _look(column, _is_organisation, _FEW):
        return False
    if _is_always_a_persons(words, column.name, said):
        return True
    if not _is_text(column) or _OF_THINGS & {*words} or identifies(table, column):
        return False
    return _look(column, _is_person, _LOOKS_SO) or _is_called_so(table, column, words, said)


def _is_always_a_persons(words: tuple[str, ...], name: str, said: str) -> bool:
    """Whether the column's name says that it holds names of people, such as `surname` or 姓名."""
    paired = _OWN_PAIRS & set(zip(words, words[1:], strict=False))
    return bool(
        _OWN_NAMES & {*words, "".join(words)} or paired or _OWN_NAMES_HAN.search(f"{name} {said}")
    )


def _is_called_so(table: Table, column: Column, words: tuple[str, ...], said: str) -> bool:
    """Tell whether it is called a name and is about people, or ends in a word for a person."""
    about_people = _says_people(words, column.name, said)
    if about_people and _last_is_person(words, column.name, said):
        return True
    is_name = _NAMES & {*words} or _NAMES_HAN.search(column.name) or _NAMES_HAN.search(said)
    if not is_name:
        return False
    return about_people or _says_people(_words(table.name), table.name, table.comment or "")


def identifies(table: Table, column: Column) -> bool:
    """Tell whether the column's values are numbers, codes or addresses, each of one thing."""
    words = _words(column.name)
    if words and words[-1] in _IDENTIFYING:
        return True
    comment = (column.comment or "")[:_HEAD]
    if _IDENTIFYING_HAN.search(column.name) or _IDENTIFYING_HAN.search(comment):
        return True
    return _is_key(table, column) or _look(column, _is_code, _LOOKS_SO)


def _is_key(table: Table, column: Column) -> bool:
    """Tell whether the column is of a key, and its values are no phrases."""
    keys = {*table.primary_key}
    for key in table.foreign_keys:
        keys.update(key.columns)
    return column.name in keys and not any(" " in value for value in column.values)


def allowed(table: Table, column: Column) -> tuple[Nearness, ...]:
    """The tests by which a text may mean a value of the column, the surest first."""
    if identifies(table, column):
        return (same,)
    if names_people(table, column):
        return (
            same,
            _companies_apart,
        )  # a customer may be a company, and no person is called "Ltd"
    return (same, _units_apart, accents_apart, misspelt)


def _companies_apart(one: str, other: str) -> bool:
    return units_apart(one, other, COMPANIES)


def _units_apart(one: str, other: str) -> bool:
    return units_apart(one, other, (*PLACES, *COMPANIES, *KINDS))


def near_value(literal: str, values: Iterable[str], ways: Iterable[Nearness]) -> str | None:
    """The value that `literal` spells differently, by the first of `ways` that finds any; None when
    several match.
    """
    stored = tuple(values)
    for is_near in ways:
        near = [value for value in stored if is_near(literal, value)]
        if near:
            if len(near) == 1:
                return near[0]
            return None
    return None


def _is_text(column: Column) -> bool:
    return bool(
        re.match(
            r"(?i)(text|char|varchar|character|citext|name|bpchar)", column.type.split(".")[-1]
        )
    )


def _says_people(words: tuple[str, ...], name: str, comment: str) -> bool:
    stems: set[str] = set()
    for each in words:
        stems.update((each, each.removesuffix("s"), each.removesuffix("es")))
    return bool(_PEOPLE & stems) or bool(
        _PEOPLE_HAN.search(name) or _PEOPLE_HAN.search(comment[:_HEAD])
    )


def _last_is_person(words: tuple[str, ...], name: str, comment: str) -> bool:
    """Whether the name ends in a word for a person (`manager`, `负责人`), not in something that
    belongs to one.
    """
    ends = [match.end() for match in _PEOPLE_HAN.finditer(name)]
    said = re.split(r"[\s,，:：;；(（。]", comment, maxsplit=1)[0]
    said_ends = [match.end() for match in _PEOPLE_HAN.finditer(said)]
    if words and words[-1] in _PEOPLE:
        return True
    return len(name) in ends or len(said) in said_ends


def _words(name: str) -> tuple[str, ...]:
    words = []
    for word in pieces(name):
        if word.isascii() and word.isalpha():
            words.append(word.lower())
    return tuple(words)


def _look(column: Column, is_one: Callable[[str], bool], part: float) -> bool:
    return len(column.values) >= _LEAST_VALUES and _share(column.values, is_one) >= part


@lru_cache(maxsize=1024)  # many columns have the same values, and all are judged more than once
def _share(values: tuple[str, ...], is_one: Callable[[str], bool]) -> float:
    return sum(map(is_one, values)) / len(values)


def _is_code(value: str) -> bool:
    return _CODE.fullmatch(value) is not None


def _is_organisation(value: str) -> bool:
    last = re.findall(r"\w+", value.lower())[-1:]
    return value.endswith(tuple(unit for unit in COMPANIES if not unit.isascii())) or (
        bool(last) and last[0] in COMPANIES and " " in value
    )


def _is_person(value: str) -> bool:
    if _HAN_NAME.fullmatch(value):
        return value[0] in _SURNAMES and not value.endswith(
            tuple(unit for unit in (*PLACES, *KINDS) if not unit.isascii())
        )
    words = value.split()
    if not 2 <= len(words) <= 3:
        return False
    if words[0].lower() not in GIVEN_NAMES:
        return False
    return all(word[:1].isupper() for word in words)
