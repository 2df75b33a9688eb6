"""Guess, from a catalogue, what a semantic file may say; a person looks through it.

From names, comments, keys and values.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from common.meanings import PreferredJoin, TableKey
from common.text import Text
from common.values import Catalog, Column, Table
from common.word_files import Languages
from knowledge.language.atoms import key_of, normalise
from knowledge.language.codes import before_labels, labels_of
from knowledge.language.inflection import singular
from knowledge.language.spoken_names import core_words, english_words, spoken_name
from knowledge.language.terms import name_in_comment
from knowledge.language.thesaurus import TRANSLATED_EN, TRANSLATED_ZH
from knowledge.values.personal_data import Privacy, open_values, privacy_of
from knowledge.words import WORDS
from postgres.identifiers import quoted

_BRACKETED = re.compile(r"\(([^()]{1,20})\)")
_READ_OF_COMMENT = 400  # characters in which a unit is looked for
_LONGEST_NAME = 30  # characters; a longer comment is a sentence, not a name
_MOST_WORDS = 4
_LONGEST_DESCRIPTION = 1_000
_MOST_VALUES = 12  # stored values of one column that are listed to be named
_LONGEST_VALUE = 60
_MOST_ALLOWED = 60
_WORDS = Languages(Path(__file__).with_name("words"))
_EN, _ZH = _WORDS.english, _WORDS.chinese
_NUMBERS, _DECIMALS = _EN.phrases("types.numbers"), _EN.phrases("types.decimals")
_TEXTS, _DAYS = _EN.phrases("types.texts"), _EN.phrases("types.days")
_TABLE = WORDS.chinese.phrases("tables.ends")[0]
_NAME_PARTS = ("first name", "last name")
_PARTS_OF_NAME = len(_NAME_PARTS)
_WORTH = Text("销售额", "revenue")
_HAN = re.compile(r"[\u3400-\u9fff]")


def table_name_of(comment: str | None) -> str | None:
    """Return the name that a comment gives to its table, without the word for a table."""
    name = name_of(comment)
    if name is None:
        return None

    return name.removesuffix(_TABLE) or name


def name_of(comment: str | None) -> str | None:
    """Return the name that a comment gives to its table or column, if it is a short one."""
    without_brackets = _BRACKETED.sub("", normalise(comment or ""))
    name = name_in_comment(before_labels(without_brackets)).strip(" .。:：,，;；-")
    if len(name) > _LONGEST_NAME or not any(map(str.isalnum, name)):
        return None

    is_short = _HAN.search(name) is not None or len(name.split()) <= _MOST_WORDS
    if is_short:
        return name

    return None


def description_of(comment: str | None) -> str | None:
    """Return the comment when it says more than a name."""
    text = " ".join(normalise(comment or "").split())
    if not text or text == name_of(comment):
        return None

    return text[:_LONGEST_DESCRIPTION]


def is_number(column: Column) -> bool:
    """Tell whether it holds numbers."""
    return column.type.startswith(_NUMBERS)


@cache
def _units() -> Mapping[str, str]:
    units = (
        *_EN.phrases("columns.units"),
        *_EN.phrases("columns.signs"),
        *_ZH.phrases("columns.units"),
    )
    return {normalise(unit).lower(): unit for unit in units}


def unit_of(column: Column) -> str | None:
    """Return the unit of a column of numbers.

    The comment has it in brackets, `金额（元）`, or the name ends in it, `weight_kg`.
    """
    if not is_number(column):
        return None

    unit_word = WORDS.chinese.text("names.unit")
    comment = (column.comment or "")[:_READ_OF_COMMENT]
    for inside in _BRACKETED.findall(normalise(comment)):
        word = inside.strip().removeprefix(unit_word).lstrip(": ").lower()
        if word in _units():
            return _units()[word]

    *before, last = column.name.lower().split("_")
    if not before or len(last) < 2:
        return None

    return _units().get(last)


def label_of(table: Table) -> Sequence[str]:
    """Return the text columns that seem to name a row; unique ones first.

    They are one, or the first and the last name of people; empty where nothing names rows.
    """
    parts = [one.name for one in table.columns if _is_part_of_name(one)]
    if len(parts) == _PARTS_OF_NAME:
        return sorted(parts, key=_is_last_name)

    unique = {key[0] for key in (*table.unique_keys, table.primary_key) if len(key) == 1}
    columns = []
    for place, column in enumerate(table.columns):
        if not column.type.startswith(_TEXTS):
            continue

        rank = _rank_as_label(column)
        if rank is not None and privacy_of(table, column) is not Privacy.PRIVATE:
            columns.append((rank, column.name not in unique, place, column.name))

    if columns:
        return (min(columns)[3],)

    return ()


def _is_part_of_name(column: Column) -> bool:
    return " ".join(english_words(column.name)) in _NAME_PARTS


def _is_last_name(name: str) -> bool:
    return english_words(name)[0] != "first"


def _rank_as_label(column: Column) -> int | None:
    """Return the place of the column's last word among the words for names; None for other
    words.
    """
    english = _EN.phrases("columns.labels")
    chinese = _ZH.phrases("columns.labels")
    name = name_of(column.comment) or column.name
    ranks = [rank for rank, end in enumerate(chinese) if name.endswith(end)]
    for last_word in english_words(column.name)[-1:]:
        if last_word in english:
            ranks.append(english.index(last_word))

    return min(ranks, default=None)


def dates_of(table: Table) -> Sequence[str]:
    """Return the columns that periods may be about.

    Not those that keep when a row was written, nor dates of birth.
    """
    names = []
    for column in table.columns:
        if not column.type.startswith(_DAYS):
            continue
        if _is_recorded(column) or privacy_of(table, column) is not Privacy.OPEN:
            continue

        names.append(column.name)

    return names


def _is_recorded(column: Column) -> bool:
    """Tell whether the column keeps when a row was written."""
    words = set(english_words(column.name)[:2])
    if words & _EN.one_of("columns.recorded"):
        return True

    return name_in_comment(column.comment).startswith(_ZH.phrases("columns.recorded"))


def deletion_filter(table: Table) -> str | None:
    """Return a condition that leaves out rows which a boolean or a number marks as deleted."""
    for column in table.columns:
        if not _marks_deleted(column):
            continue
        if column.type == "boolean":
            return f"NOT {quoted(column.name)}"
        if is_number(column):
            return f"{quoted(column.name)} = 0"

    return None


def _marks_deleted(column: Column) -> bool:
    if " ".join(english_words(column.name)) in _EN.one_of("columns.deleted"):
        return True

    return name_in_comment(column.comment).startswith(_ZH.phrases("columns.deleted"))


def values_of(table: Table, column: Column) -> Sequence[tuple[str, str | None]]:
    """Return the values to be named, with their names in the comment; none of a personal column.

    They are those of an enumeration or a CHECK, else the codes that the comment explains, else the
    few that are stored.
    """
    if column.type == "boolean":
        return ()
    if privacy_of(table, column) is not Privacy.OPEN:
        return ()

    labels = dict(labels_of(column.comment))
    values = column.allowed[:_MOST_ALLOWED] or tuple(labels) or _few_stored(table, column)
    named = []
    for value in dict.fromkeys(values):
        is_short = len(value) <= _LONGEST_VALUE
        if is_short and value.strip():
            named.append((value, labels.get(value)))

    return named


def _few_stored(table: Table, column: Column) -> Sequence[str]:
    """Return the stored values, if they are all known and few."""
    if not column.is_complete or len(column.values) > _MOST_VALUES:
        return ()

    return tuple(open_values(table, column))


def is_sensitive(table: Table, column: Column) -> bool:
    """Tell whether its name, comment or values look personal."""
    return privacy_of(table, column) is Privacy.PRIVATE


def holds_names(table: Table, column: Column) -> bool:
    """Tell whether it seems to hold names of persons."""
    return column.type.startswith(_TEXTS) and privacy_of(table, column) is Privacy.NAMES


def implied_joins(catalog: Catalog) -> Mapping[TableKey, Sequence[PreferredJoin]]:
    """Return references that no foreign key declares, by table.

    `shop_id` leads to the table that has that key, or is called shop.
    """
    owners: defaultdict[tuple[str, str], list[Table]] = defaultdict(list)
    for table in catalog.tables:
        if len(table.primary_key) == 1:
            for name in _key_names(table):
                owners[table.schema, name].append(table)

    joins_by_table = {}
    for table in catalog.tables:
        joins = list(_implied_joins_of(table, owners))
        if joins:
            joins_by_table[table.key] = joins

    return joins_by_table


def _key_names(table: Table) -> Iterable[str]:
    """Return the names that columns of other tables may have which refer to the table's key."""
    mere_ends = _EN.one_of("columns.keys")
    names = {"_".join(english_words(table.primary_key[0]))} - mere_ends
    table_name = "_".join(map(singular, core_words(english_words(table.name))))
    if table_name:
        names |= {f"{table_name}_{end}" for end in mere_ends}

    return names


def _implied_joins_of(
    table: Table, owners: Mapping[tuple[str, str], list[Table]]
) -> Iterable[PreferredJoin]:
    declared = {*table.primary_key[:1], *table.referring_columns}
    for column in table.columns:
        if column.name in declared:
            continue

        name = "_".join(map(singular, english_words(column.name)))
        owner = _only_owner(owners.get((table.schema, name), []))
        if owner is None or owner.key == table.key:
            continue

        target = owner.column(owner.primary_key[0])
        if target is not None and is_number(target) == is_number(column):
            yield PreferredJoin((column.name,), owner.key, owner.primary_key)


def _only_owner(owners: Sequence[Table]) -> Table | None:
    if len(owners) == 1:
        return owners[0]

    return None


def measures_of(table: Table) -> Sequence[Column]:
    """Return the columns that may be summed: numbers with a unit or decimals that are no keys."""
    keys = {*table.primary_key, *table.referring_columns}
    measures = []
    for column in table.columns:
        has_unit = unit_of(column) is not None
        is_measured = has_unit or column.type.startswith(_DECIMALS)
        if is_measured and column.name not in keys:
            measures.append(column)

    return measures


@dataclass(frozen=True)
class Amount:
    """The money of a line: price by quantity, without a discount where there is one.

    Attributes:
        expression: SQL over the table's own columns.
        names: what the figure is called.
    """

    expression: str
    names: Text


def amount_of(table: Table) -> Amount | None:
    """Return what the rows of a table of lines are worth, where it has a price and a quantity.

    A table that keeps an amount itself needs no product of others.
    """
    price = _number_ending_in(table, "prices")
    quantity = _number_ending_in(table, "quantities")
    if price is None or quantity is None or _number_ending_in(table, "amounts") is not None:
        return None

    product = f"{quoted(price.name)} * {quoted(quantity.name)}"
    discount = _number_ending_in(table, "discounts")
    if discount is not None:  # a part of one, as it mostly is; a person sees whether it is
        product = f"{product} * (1 - coalesce({quoted(discount.name)}, 0))"

    return Amount(f"sum({product})", _WORTH)


def _number_ending_in(table: Table, list_name: str) -> Column | None:
    """Return the first numeric column whose name ends in a word of the list `amounts.list_name`."""
    english, chinese = _EN.phrases(f"amounts.{list_name}"), _ZH.phrases(f"amounts.{list_name}")
    keys = {*table.primary_key, *table.referring_columns}
    for column in table.columns:
        if not is_number(column) or column.name in keys:
            continue

        name = name_of(column.comment) or ""
        if english_words(column.name)[-1:] and english_words(column.name)[-1] in english:
            return column
        if name.endswith(chinese):
            return column

    return None


def names_of(thing: Table | Column, name: str | None) -> Text | None:
    """Return what a comment in Chinese and an identifier in English call a thing."""
    english = spoken_name(thing, "en")
    if name is None or not _HAN.search(name) or _HAN.search(english):
        return None

    is_word = english.isascii() and any(map(str.isalpha, english))
    return Text(name, english) if is_word else None


def in_both_languages(name: str) -> Text | None:
    """Return an everyday word in both languages, as the dictionary has it; None for others."""
    if _HAN.search(name):
        english = next(iter(TRANSLATED_ZH.get(name, ())), None)
        return Text(name, english) if english is not None else None

    words = english_words(name)
    chinese = TRANSLATED_EN.get(key_of(" ".join(words), stems=True), ())
    return Text(chinese[0], " ".join(words)) if chinese else None
