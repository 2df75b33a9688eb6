"""Finds columns worth grouping by, and names for one row of a table."""

from common.text import Lang
from common.values import Column, Table
from knowledge.language.inflection import singular
from knowledge.language.spoken_names import comment_names, english_words, spoken_name
from rules.schema.table_facts import kind_of
from rules.words import WORDS

_MOST_GROUPS = 12
_ROWS_PER_GROUP = 2  # with fewer, the values are likely names of single rows
_PROSE = WORDS.english.one_of("columns.prose")
_PROSE_HAN = WORDS.chinese.pattern("columns.prose", end="$")


def is_worth_grouping_by(table: Table, column: Column) -> bool:
    """Tell whether a text column has few values, each in several rows, and holds no prose."""
    count = len(column.values)
    if kind_of(column) != "text" or not 2 <= count <= _MOST_GROUPS or _is_prose(column):
        return False

    is_counted = table.row_estimate > 0
    return not is_counted or table.row_estimate >= count * _ROWS_PER_GROUP


def _is_prose(column: Column) -> bool:
    """Tell whether people write sentences into the column: contents, descriptions, remarks."""
    if not _PROSE.isdisjoint(english_words(column.name)[-1:]):
        return True

    return any(map(_PROSE_HAN.search, comment_names(column.comment)))


def row_name(table: Table, lang: Lang) -> str:
    """Return the name of one row of a table: "customer" of `customers`."""
    name = spoken_name(table, lang)
    *before, last = name.split(" ")
    if lang == "en" and last.islower():
        return " ".join((*before, singular(last)))

    return name
