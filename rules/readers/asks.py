"""Reads what a question wants: figures, groups, rankings, and the things that it names as the answer."""

from rules.query.wishes import Asks, Figure
from rules.readers.figures import FigureReader
from rules.readers.groups import GroupReader
from rules.readers.rankings import RankingReader
from rules.readers.reading import Reading
from rules.schema.schema import TableKey


def read_asks(reading: Reading, restricted: frozenset[TableKey]) -> Asks:
    """Reads everything that is wanted; the conditions must have been read before.

    The nouns that are still unused afterwards are the things that the question names as its answer.

    Args:
        restricted: the tables that the conditions are on.
    """
    found = Asks()
    reading.skip_used = True
    found.which = reading.has("which", "date_which")
    found.lists = reading.has("list")
    _flags(reading, found)
    _compounds(reading, found)
    GroupReader(reading, found, restricted).read()
    RankingReader(reading, found).read()
    FigureReader(reading, found).read()
    _heads(reading, found)
    return found


def _flags(reading: Reading, found: Asks) -> None:
    for name in ("distinct", "trend", "share", "compare"):
        for index in list(reading.having(name)):
            reading.use(index)
            setattr(found, name, True)
    averaged = [index for index in reading.having("avg") if reading.marks[index].text.lower() == "on average"]
    if averaged and reading.has("each") and reading.has("count"):
        found.per_entity = averaged[0]
        reading.use(*averaged)
    for index in list(reading.having("per_entity")):
        found.per_entity = index
        reading.use(index)
        place = reading.free_beside(index, 1, ("noise", "of", "unit", "distinct"))
        noun = reading.noun(place)
        if (
            place is not None
            and noun is not None
            and noun.is_table
            and noun.table
            and "number" in reading.marks[index].text
        ):
            reading.use(place)
            found.figures.append(Figure("count", table=noun.table.table, position=place))


def _compounds(reading: Reading, found: Asks) -> None:
    """Uses up a table right before one of its columns, because it only says whose column it is: `order amount`."""
    for index in range(len(reading) - 1):
        noun, after = reading.noun(index), reading.noun(index + 1)
        if noun is None or after is None or noun.table is None or not noun.is_table or after.is_value or after.is_table:
            continue
        before = reading.beside(index, -1)
        leads = before is not None and reading.marks[before].means(
            "each", "by", "which", "count", "top", "super", "rank"
        )
        owned = after.column is not None and after.column.table == noun.table.table
        if after.column is not None and after.column.column in reading.facts(after.column.table).reference_columns:
            continue  # "tickets resolved per worker": the worker is a group
        if after.column is not None and reading.is_date(after.column) and after.column.quality < 0.9:
            continue  # "employees hired in 2010": the column's name is said as a verb
        if (
            owned
            and not (leads and reading.is_chinese)
            and not (leads and reading.marks[before or 0].means("each", "which"))
        ):
            reading.use(index)
            found.qualifiers.append((index, noun.table.table))


def _heads(reading: Reading, found: Asks) -> None:
    """Notes the nouns that nothing has used, in their order: they are listed, measured, or only mentioned."""
    found.heads = [
        index
        for index, noun in enumerate(reading.nouns)
        if reading.free(index)
        and noun is not None
        and not noun.is_value
        and (not reading.marks[index].means("noise") or _states(reading, index))
    ]
    for index, mark in enumerate(reading.marks):
        if not reading.free(index) or not found.lists or found.limit is not None:
            continue
        if mark.number is not None and reading.counts_rows(index):
            reading.use(index)
            found.limit = int(mark.number.value)


def _states(reading: Reading, index: int) -> bool:
    """Whether a word that usually says nothing is a date of the table right after it, as in `完成的工单`."""
    noun = reading.nouns[index]
    after = reading.nouns[index + 2] if index + 2 < len(reading) and reading.marks[index + 1].means("of") else None
    link = noun.column if noun is not None else None
    if link is None or after is None or not after.is_table or after.table is None:
        return False
    return reading.is_date(link) and after.table.table == link.table
