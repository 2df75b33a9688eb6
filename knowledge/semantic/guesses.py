"""What names, comments, keys and values of a catalogue suggest, for a semantic file that a person looks through."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from common.meanings import PreferredJoin
from common.postgres.identifiers import quoted
from common.values import Catalog, Column, Table
from common.word_files import Languages
from knowledge.atoms import normalise
from knowledge.codes import before_labels, labels_of
from knowledge.naming import core_words, english_words
from knowledge.personal_data import Privacy, open_values, privacy_of
from knowledge.terms import called, singular
from knowledge.words import WORDS

_BRACKETED = re.compile(r"\(([^()]{1,20})\)")
_LONGEST_NAME = 30  # characters; a longer comment is a sentence, not a name
_MOST_WORDS = 4
_LONGEST_DESCRIPTION = 1_000
_MOST_VALUES = 12  # stored values of one column that are listed to be named
_LONGEST_VALUE = 60
_MOST_ALLOWED = 60
_MOST_OWNERS = 1  # tables that a key's name may belong to; more are no hint
_WORDS = Languages(Path(__file__).with_name("words"))
_EN, _ZH = _WORDS.english, _WORDS.chinese
_NUMBERS, _DECIMALS = _EN.phrases("types.numbers"), _EN.phrases("types.decimals")
_TEXTS, _DAYS = _EN.phrases("types.texts"), _EN.phrases("types.days")
_TABLE = WORDS.chinese.phrases("tables.ends")[0]
_HAN = re.compile(r"[\u3400-\u9fff]")


def table_name_of(comment: str | None) -> str | None:
    """What a comment calls its table, without the word for a table."""
    name = name_of(comment)
    return (name.removesuffix(_TABLE) or name) if name else None


def name_of(comment: str | None) -> str | None:
    """What a comment calls its table or column, when that is short enough for a name."""
    said = called(before_labels(_BRACKETED.sub("", normalise(comment or "")))).strip(" .。:：,，;；-")
    is_short = len(said) <= _LONGEST_NAME and (_HAN.search(said) or len(said.split()) <= _MOST_WORDS)
    return said if said and is_short and any(char.isalnum() for char in said) else None


def description_of(comment: str | None) -> str | None:
    """The comment when it says more than a name."""
    text = " ".join(normalise(comment or "").split())
    return text[:_LONGEST_DESCRIPTION] if text and text != name_of(comment) else None


def is_number(column: Column) -> bool:
    """Whether it holds numbers."""
    return column.type.startswith(_NUMBERS)


@cache
def _units() -> Mapping[str, str]:
    known = (*_EN.phrases("columns.units"), *_EN.phrases("columns.signs"), *_ZH.phrases("columns.units"))
    return {normalise(unit).lower(): unit for unit in known}


def unit_of(column: Column) -> str | None:
    """The unit that the comment puts in brackets, `金额（元）`, or that the name ends in, `weight_kg`."""
    if not is_number(column):
        return None
    unit_word = WORDS.chinese.text("names.unit")
    for inside in _BRACKETED.findall(normalise(column.comment or "")):
        said = inside.strip().removeprefix(unit_word).lstrip(": ").lower()
        if said in _units():
            return _units()[said]
    parts = column.name.lower().split("_")
    return _units().get(parts[-1]) if len(parts) > 1 and len(parts[-1]) > 1 else None


def label_of(table: Table) -> str | None:
    """The text column that seems to name a row: by its name or comment, unique ones first."""
    unique = {key[0] for key in (*table.unique_keys, table.primary_key) if len(key) == 1}
    ends = {word: rank for rank, word in enumerate(_EN.phrases("columns.labels"))}
    ends_han = _ZH.phrases("columns.labels")
    found = []
    for place, column in enumerate(table.columns):
        if not column.type.startswith(_TEXTS) or privacy_of(table, column) is Privacy.PRIVATE:
            continue
        said = english_words(column.name)[-1:]
        rank = min((ends[word] for word in said if word in ends), default=len(ends))
        name = name_of(column.comment) or column.name
        rank = min([rank, *(number for number, end in enumerate(ends_han) if name.endswith(end))])
        if rank < len(ends):
            found.append((rank, column.name not in unique, place, column.name))
    return min(found)[3] if found else None


def dates_of(table: Table) -> Sequence[str]:
    """The columns that periods may be about: not those that keep when a row was written, nor dates of birth."""
    return [
        column.name
        for column in table.columns
        if column.type.startswith(_DAYS) and not _is_recorded(column) and privacy_of(table, column) is Privacy.OPEN
    ]


def _is_recorded(column: Column) -> bool:
    first = english_words(column.name)[:2]
    said = called(column.comment)
    return bool(set(first) & _EN.one_of("columns.recorded")) or said.startswith(_ZH.phrases("columns.recorded"))


def deletion_filter(table: Table) -> str | None:
    """A condition that leaves out what is only marked as deleted, where a boolean or a number marks it."""
    for column in table.columns:
        is_said = " ".join(english_words(column.name)) in _EN.one_of("columns.deleted")
        if is_said or called(column.comment).startswith(_ZH.phrases("columns.deleted")):
            if column.type == "boolean":
                return f"NOT {quoted(column.name)}"
            if is_number(column):
                return f"{quoted(column.name)} = 0"
    return None


def values_of(table: Table, column: Column) -> Sequence[tuple[str, str | None]]:
    """Values to be named, with what the comment calls them; none of a personal column.

    They are those of an enumeration or a CHECK, else the codes that the comment explains, else the few that are stored.
    """
    privacy = privacy_of(table, column)
    labels = dict(labels_of(column.comment))
    stored = open_values(table, column) if column.is_complete and len(column.values) <= _MOST_VALUES else ()
    values = dict.fromkeys(column.allowed[:_MOST_ALLOWED] or tuple(labels) or stored)
    if privacy is not Privacy.OPEN or column.type == "boolean":
        return ()
    return [(value, labels.get(value)) for value in values if value.strip() and len(value) <= _LONGEST_VALUE]


def is_sensitive(table: Table, column: Column) -> bool:
    """Whether its name, comment or values look personal."""
    return privacy_of(table, column) is Privacy.PRIVATE


def holds_names(table: Table, column: Column) -> bool:
    """Whether it seems to hold names of persons."""
    return column.type.startswith(_TEXTS) and privacy_of(table, column) is Privacy.NAMES


def implied_joins(catalog: Catalog) -> Mapping[tuple[str, str], Sequence[PreferredJoin]]:
    """References that no foreign key declares, by table: `shop_id` leads to what has that key, or is called shop."""
    owners: defaultdict[tuple[str, str], list[Table]] = defaultdict(list)
    for table in catalog.tables:
        if len(table.primary_key) == 1:
            for name in _key_names(table):
                owners[table.schema, name].append(table)
    return {table.key: joins for table in catalog.tables if (joins := list(_implied(table, owners)))}


def _key_names(table: Table) -> Iterable[str]:
    bare = _EN.one_of("columns.keys")
    core = "_".join(singular(word) for word in core_words(english_words(table.name)))
    names = {f"{core}_{end}" for end in bare} if core else set()
    return names | ({"_".join(english_words(table.primary_key[0]))} - bare)


def _implied(table: Table, owners: Mapping[tuple[str, str], list[Table]]) -> Iterable[PreferredJoin]:
    declared = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key[:1])
    for column in table.columns:
        found = owners.get((table.schema, "_".join(map(singular, english_words(column.name)))), [])
        if column.name in declared or not 0 < len(found) <= _MOST_OWNERS or found[0].key == table.key:
            continue
        target = found[0].column(found[0].primary_key[0])
        if target is not None and is_number(target) == is_number(column):
            yield PreferredJoin((column.name,), found[0].key, found[0].primary_key)


def measures_of(table: Table) -> Sequence[Column]:
    """What may be summed: numbers with a unit or with decimals that are no keys."""
    keys = {name for key in (table.primary_key, *(one.columns for one in table.foreign_keys)) for name in key}
    numbers = (column for column in table.columns if column.name not in keys)
    return [column for column in numbers if unit_of(column) or column.type.startswith(_DECIMALS)]
