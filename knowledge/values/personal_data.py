"""Tell which columns hold what belongs to persons or opens doors.

Their values must not be sent to a model.

A column is judged by its name, by what its comment calls it, and by the look of its values. In
doubt it is private: a model that does not see the values of a harmless column still writes the
query. The words are tables in `knowledge/words/`. `privacy_of` is the only place that decides.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache

from common.values import Column, Table
from common.word_files import Words
from knowledge.language.terms import name_in_comment, terms
from knowledge.values.identity import GIVEN_NAMES
from knowledge.words import WORDS

# ------------------------------------------------------------------------------
# looks of values

_EN, _ZH = WORDS.english, WORDS.chinese


def _either(words: Words, place: str) -> str:
    return "|".join(words.phrases(place))


_SHAPES = (
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w",  # e-mail
    r"(?<![\d.])(?:\+?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)",  # mobile phone in China
    # Phone with its country
    r"(?<![\w.])\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}(?!\d)",
    r"(?<!\d)\(?0[1-9]\d{1,2}\)?[ -]?\d{7,8}(?!\d)",  # land line in China
    r"(?<![\w-])(?:\d{3}[-. ]|\(\d{3}\) ?)\d{3}[-. ]\d{4}(?![\w-])",  # phone in North America
    r"(?<![0-9A-Za-z])\d{17}[0-9Xx](?![0-9A-Za-z])",  # identity card
    # Of 15 digits
    r"(?<![0-9A-Za-z])[1-9]\d{5}\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}(?![0-9A-Za-z])",
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])",  # social security number
    r"(?<![0-9A-Za-z])(?:\d{4}[ -]?){3,4}\d{1,7}(?![0-9A-Za-z])",  # bank card
    # IBAN
    r"(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?![0-9A-Za-z])",
    rf"[{_ZH.text('private.plates')}][A-HJ-NP-Z][ ·]?[A-HJ-NP-Z0-9]{{5,6}}",  # number plate
    # Address
    rf"(?:{_either(_ZH, 'private.streets')})[^,，;；]{{0,12}}\d+\s*"
    rf"(?:{_either(_ZH, 'private.houses')})",
    rf"(?<!\w)\d{{1,6}}\s+(?:[^\W\d][\w.'-]*\s+){{1,4}}(?i:{_either(_EN, 'private.streets')})\b",
    rf"(?i:{_either(_EN, 'private.street_ends')}"
    rf"|\b(?:{_either(_EN, 'private.street_beginnings')})\s.{{1,30}}?)"
    r"[\s,]*\d{1,5}\b",
    r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])",  # IP address
)
_PRIVATE_LOOK = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))
_HAN_NAME = re.compile(
    rf"(?:[{_ZH.text('people.names.common_surnames')}]"
    rf"|{_either(_ZH, 'people.names.long_surnames')})"
    r"[\u4e00-\u9fff]{1,2}"
)
_ORGANISATION = re.compile(
    rf"(?:{_either(_ZH, 'private.organisations')})$"
    rf"|\b(?i:{_either(_EN, 'private.organisations')})\b\.?$"
)
_LOOKED_AT = 60  # values of a column
_LONGEST_LOOKED_AT = 200  # characters of a value; the catalogue keeps none that are longer
_PRIVATE_SHARE = 0.2  # a column of which more values than this share look private is private
_NAMES_SHARE = 0.8  # a column of which this share of values look like persons' names holds names
_LEAST_NAMES = 4  # distinct values; fewer look like names by chance


class Privacy(Enum):
    """The values of a column that a model may be sent."""

    OPEN = "open"  # whatever helps
    NAMES = "names"  # persons' names: only one that the question itself names
    PRIVATE = "private"  # none


def privacy_of(table: Table, column: Column) -> Privacy:
    """Return which values of `table`'s `column` a model may be sent.

    Everything that shows stored values to a model asks here. What the semantic file says of the
    column decides; else its name, its comment and its values do.
    """
    declared = _said_privacy(column)
    if declared is not None:
        return declared

    calls = (column.name, name_in_comment(column.comment))
    if any(map(_is_private, calls)) or looks_private(column.values):
        return Privacy.PRIVATE

    is_called_name = any(map(_is_name, calls)) or _names_owner(table, column)
    if is_called_name and not _are_organisations(column.values):
        return Privacy.NAMES
    if _look_like_names(column.values):
        return Privacy.NAMES

    return Privacy.OPEN


def _said_privacy(column: Column) -> Privacy | None:
    """Return the semantic file's verdict on the column; None without one."""
    if column.meaning is None or column.meaning.is_sensitive is None:
        return None
    if column.meaning.is_sensitive:
        return Privacy.PRIVATE

    return Privacy.OPEN


def open_values(table: Table, column: Column) -> tuple[str, ...]:
    """Return the known values of a column that are nobody's: none of a personal column."""
    if not column.values:
        return ()
    if privacy_of(table, column) is not Privacy.OPEN:
        return ()

    return tuple(value for value in column.values if not is_private_value(value))


def looks_private(values: Iterable[str]) -> bool:
    """Tell whether many of `values` look like phone numbers, addresses and the like."""
    looked_at = _some(tuple(values))
    private = sum(map(is_private_value, looked_at))
    return private > _PRIVATE_SHARE * len(looked_at)


def is_private_value(value: str) -> bool:
    """Tell whether something in this text looks like a phone number, an e-mail address …"""
    beginning = value[:_LONGEST_LOOKED_AT]
    return _PRIVATE_LOOK.search(beginning) is not None


def _some(values: Sequence[str]) -> Sequence[str]:
    """Return a sample that is spread evenly over the values.

    These are sorted, so that values of one shape stand together.
    """
    step = max(1, len(values) // _LOOKED_AT)
    return values[::step]


def _phrases(place: str) -> re.Pattern[str]:
    """Find any of the phrases among space-separated terms."""
    phrases = {" ".join(terms(phrase)) for phrase in _EN.phrases(place)}
    alternatives = "|".join(map(re.escape, sorted(phrases)))
    return re.compile(rf"(?<!\S)(?:{alternatives})(?!\S)")


def _any_of(place: str, end: str = "") -> re.Pattern[str]:
    alternatives = "|".join(map(re.escape, _ZH.phrases(place)))
    return re.compile(rf"(?:{alternatives}){end}")


def _terms_of(place: str) -> frozenset[str]:
    terms_found: set[str] = set()
    for phrase in _EN.phrases(place):
        terms_found.update(terms(phrase))

    return frozenset(terms_found)


_GLUED = _either(_EN, "private.glued")
_PRIVATE, _NAMES = _phrases("private.words"), _phrases("people.names.private_alone")
_PRIVATE_PART = re.compile(
    rf"(?:{_GLUED})(?:{_either(_EN, 'private.glued_numbers')})?\d*(?!\S)|(?<!\S)(?:{_GLUED})"
)
_HARMLESS, _PERSONS = (
    _terms_of("private.harmless_ends"),
    _terms_of("people.both") | _terms_of("people.models"),
)
_HAN_PRIVATE, _HAN_HARMLESS = _any_of("private.words"), _any_of("private.harmless_ends", "$")
_NAME_NOUNS = _EN.one_of("people.names.private_with_owner")
_HAN_NAMES, _HAN_NAME_NOUN = (
    _any_of("people.names.private_alone"),
    _ZH.text("people.names.private_with_owner"),
)
_HAN_PERSON = (
    rf"(?:{_either(_ZH, 'people.both')}|{_either(_ZH, 'people.models')}"
    rf"|[{_ZH.text('people.ends')}])"
)
_HAN_PERSON_END = re.compile(f"{_HAN_PERSON}$")
_HAN_NAME_END = re.compile(
    rf"{_HAN_PERSON}(?:{_either(_ZH, 'people.names.private_ends')})?"
    rf"[\d{_ZH.text('private.numbers')}]?$"
)
_HAN_TABLE_END = re.compile(rf"(?:{_either(_ZH, 'private.table_words')}){{1,8}}$")
_TABLE_NOISE, _QUALIFIERS, _ARTICLES = (
    frozenset(_EN.phrases(f"private.{one}")) for one in ("table_words", "of", "articles")
)
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBERED = re.compile(r"(?:\s\d{1,20}){1,8}$")


@lru_cache(maxsize=20_000)
def _words(text: str) -> str:
    """Return the Latin words of a name or a phrase, up to a word that qualifies them.

    Of "status of the e-mail" it is "status".
    """
    latin = [word for word in terms(text) if not _HAN.match(word)]
    words: list[str] = []
    for number, word in enumerate(latin):
        if number > 0 and word in _QUALIFIERS:
            break
        if word not in _ARTICLES:
            words.append(word)

    return _NUMBERED.sub("", " ".join(words))


def _is_private(text: str) -> bool:
    words = _words(text)
    is_called_private = _PRIVATE.search(words) or _PRIVATE_PART.search(words)
    last = words.rpartition(" ")[2]
    if is_called_private and last not in _HARMLESS:
        return True
    if _HAN_HARMLESS.search(text):
        return False

    return _HAN_PRIVATE.search(text) is not None


def _is_name(text: str) -> bool:
    """Tell whether a column called so holds persons' names.

    Such as `customer_name`, `driver`, 收货人姓名.
    """
    return _is_english_name(text) or _is_han_name(text)


def _is_english_name(text: str) -> bool:
    words = _words(text)
    *before, last = words.split() or [""]
    if last in _PERSONS:
        return True

    is_of_person = bool(before) and before[-1] in _PERSONS
    if is_of_person and last in _NAME_NOUNS:
        return True
    if last in _HARMLESS:
        return False

    all_words = " ".join(terms(text))
    return any(map(_NAMES.search, (words, all_words)))


def _is_han_name(text: str) -> bool:
    if _HAN_HARMLESS.search(text):
        return False
    if _HAN_NAMES.search(text):
        return True

    return _HAN_NAME_END.search(text) is not None


def _names_owner(table: Table, column: Column) -> bool:
    """Tell whether it is the `name` of the persons that the table is about."""
    own = _words(column.name).split()
    is_bare = bool(own) and _NAME_NOUNS.issuperset(own)
    is_bare_in_han = _HAN_NAME_NOUN in (column.name, name_in_comment(column.comment))
    if not is_bare and not is_bare_in_han:
        return False

    return _about_persons(table.name, name_in_comment(table.comment))


@lru_cache(maxsize=4_000)
def _about_persons(name: str, comment: str) -> bool:
    without_numbers = [word for word in _words(name).split() if not word.isdigit()]
    if _end_in_person(without_numbers):
        return True

    comment_words = _words(comment).split()
    if _end_in_person(comment_words):
        return True

    names = [_HAN_TABLE_END.sub("", text) for text in (name, comment)]
    return any(map(_HAN_PERSON_END.search, names))


def _end_in_person(words: Sequence[str]) -> bool:
    """Tell whether the last word, those for tables aside, is one for persons."""
    telling = [word for word in words if word not in _TABLE_NOISE]
    if not telling:
        return False

    return telling[-1] in _PERSONS


def _are_organisations(values: Sequence[str]) -> bool:
    looked_at = _some(values)
    organisations = [value for value in looked_at if _ORGANISATION.search(value)]
    return 2 * len(organisations) > len(looked_at)


def _look_like_names(values: Sequence[str]) -> bool:
    looked_at = _some(values)
    if len(looked_at) < _LEAST_NAMES:
        return False

    names = sum(map(_looks_like_name, looked_at))
    return names >= _NAMES_SHARE * len(looked_at)


def _looks_like_name(value: str) -> bool:
    if _HAN_NAME.fullmatch(value):
        return True

    words = value.split()
    if not 1 <= len(words) <= 3:
        return False
    if not value[0].isupper():
        return False

    return words[0].lower() in GIVEN_NAMES
