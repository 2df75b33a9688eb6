"""Things that words imply without naming them: the group of a column, the figure of a table, the
column of an adjective.
"""

import re

from common.meanings import TableKey
from knowledge.language.inflection import stem
from rules.query.query import Dimension, Figure
from rules.reading import costs
from rules.reading.parts import NO_TABLE
from rules.reading.words import ColumnIdentity, MatchedItem, QuestionWords
from rules.schema.links import METRIC, Link, column_link
from rules.schema.table_facts import is_averaged, is_score, is_whole_number, stems
from rules.words import WORDS

_MONEY, _NAMED = WORDS.both("questions.money_columns"), 0.7
_KINDS = WORDS.both("questions.kinds")
_LEAST_KIND = 0.6  # the quality of a column that says of which kind a thing is
_MONEY_NAMES = frozenset(WORDS.english.phrases("figures.money"))
_INCOME = WORDS.both("questions.income")
_HOW_MUCH_MONEY = frozenset(WORDS.both("questions.money"))
_WEEKDAYS = "'weekdays'"  # as a group; elsewhere the word means days that are not at weekends
_LEAST_OF_CONCEPT = 0.5  # quality of a column that an adjective implies
_EARNS = re.compile(WORDS.any_of("questions.earns"))


def column_dimension(question: QuestionWords, link: Link) -> Dimension:
    """Return the group that a column stands for.

    A reference stands for the table it refers to, a name for its own table, a time for its day.
    """
    facts = question.facts(link.table)
    assert link.column is not None
    for edge in facts.edges:
        if edge.columns == (link.column,):
            return Dimension(edge.parent, via=link.column)

    if link.column in facts.display and facts.key:
        return Dimension(link.table)
    if question.kind(link) == "timestamp":
        return Dimension(link.table, link.column, "day")

    return Dimension(link.table, link.column)


def time_dimension(item: MatchedItem) -> Dimension | None:
    """Return the unit of time that a word names: months, hours, days of the week; else None."""
    if item.symbol in ("bucket", "date_part", "date_which"):
        return Dimension(NO_TABLE, None, item.arg)  # type: ignore[arg-type]
    if item.symbol == _WEEKDAYS:
        return Dimension(NO_TABLE, None, part="weekday")
    if item.symbol == "calendar_part":
        return Dimension(NO_TABLE, None, part=item.arg)  # type: ignore[arg-type]

    return None


def figure_of_rows(question: QuestionWords, table: TableKey, at: int) -> Figure | None:
    """Return a count of rows; for a table of reports, the sum of what its rows count.

    `多少辆货车` asks for such a sum. None where the rows of reports count several things.
    """
    facts = question.facts(table)
    if not facts.is_report:
        return Figure("count", table=table, position=at)
    if len(facts.measures) != 1 or is_averaged(facts.measures[0]):
        return None

    return Figure("sum", column_link(table, facts.measures[0].name), position=at)


def amount_of(question: QuestionWords, table: TableKey) -> Link | None:
    """Return the amount of money in a table: its only one, else the one with a word for money.

    None if it is not known which. A whole number is no amount of money unless a word says so: it
    may be points, or years.
    """
    facts = question.facts(table)
    added = set()
    for column in facts.measures:
        if not is_averaged(column) and not facts.is_count(column):
            added.add(column.name)

    only = facts.table.column(next(iter(added))) if len(added) == 1 else None
    for name in _MONEY:
        links = columns_named(question, table, name, _NAMED)
        named = {str(link.column) for link in links if link.derived is None}
        if len(named & added) == 1:
            return column_link(table, (named & added).pop())

    if only is None or is_whole_number(only):
        return None

    return _amount_of_lines(question, table) or column_link(table, only.name)


def amount_paid(question: QuestionWords, table: TableKey) -> Link | None:
    """Return the amount of money in a table, or else in the lines of its rows."""
    own = amount_of(question, table) or _amount_of_lines(question, table)
    return own or _amount_below(question, table)


def _amount_below(question: QuestionWords, table: TableKey) -> Link | None:
    """Return the amount in the only table of parts of the rows that has one: of order lines."""
    amounts = []
    for key in question.graph.below(table):
        parents = [edge.parent for edge in question.facts(key).edges]
        amount = amount_of(question, key) if table in parents else None
        if amount is not None:
            amounts.append(amount)

    return amounts[0] if len(amounts) == 1 else None


def _amount_of_lines(question: QuestionWords, table: TableKey) -> Link | None:
    """Return the price times quantity of the table's lines: what is paid beside the freight."""
    below = question.graph.below(table)
    amounts = {}
    for name in _INCOME:
        for link in question.lexicon.find(name):
            if link.factor is not None and link.table in below:
                amounts[link.table, link.column] = link

    return next(iter(amounts.values())) if len(amounts) == 1 else None


def columns_named(question: QuestionWords, table: TableKey, name: str, least: float) -> list[Link]:
    """Return the table's columns that a phrase names, with a quality of at least `least`."""
    columns = []
    for link in question.lexicon.find(name):
        is_own = link.kind == "column" and link.table == table
        if is_own and link.quality >= least:
            columns.append(link)

    return columns


def kind_columns(question: QuestionWords, table: TableKey) -> list[Link]:
    """Return the columns whose names mean a kind, the best first."""
    link_by_column: dict[str | None, Link] = {}
    for name in _KINDS:
        for link in columns_named(question, table, name, _LEAST_KIND):
            if question.is_measure(link):
                continue

            better = link_by_column.get(link.column)
            if better is None or link.quality > better.quality:
                link_by_column[link.column] = link

    return sorted(link_by_column.values(), key=lambda link: -link.quality)


def is_number(question: QuestionWords, link: Link) -> bool:
    """Tell whether a figure is a number of the things that its name names, no amount of money."""
    if link.derived == METRIC:
        return link.spelling not in _MONEY_NAMES

    facts = question.facts(link.table)
    column = question.column_of(link)
    if facts.is_report or facts.is_count(column):
        return True

    names = stems(column.name)
    return stem(link.spelling) in names


def is_money(question: QuestionWords, link: Link) -> bool:
    """Tell whether a figure is called by a word for money, so that no "how many" asks for it."""
    return link.spelling in _MONEY_NAMES and not is_number(question, link)


def is_counted_by_word(question: QuestionWords, link: Link) -> bool:
    """Tell whether "how many" may ask for a figure: not for money, nor for a price or a rate."""
    if is_money(question, link):
        return False

    return link.derived == METRIC or not is_averaged(question.column_of(link))


def concept_column(question: QuestionWords, table: TableKey, hint: str) -> Link | None:
    """Return the table's column for a concept that an adjective implies, such as a price."""
    if hint in ("date", "recent"):
        dates = question.facts(table).dates
        return column_link(table, dates[0]) if dates else None

    for name in WORDS.both(f"concepts.{hint}"):
        for link in columns_named(question, table, name, _LEAST_OF_CONCEPT):
            if hint == "rating" and not is_score(question.column_of(link)):
                continue  # an hourly rate
            if question.is_measure(link) or question.is_date(link):
                return link

    return None


def income_asked(question: QuestionWords) -> Figure | None:
    """Return the income, where only a verb says that money is meant: "how much did it bring in"."""
    amounts = map(str.lower, question.texts("count", "sum"))
    verbs = map(str.lower, question.texts("verb"))
    asks_how_much = not _HOW_MUCH_MONEY.isdisjoint(amounts)
    if not asks_how_much or not any(map(_EARNS.fullmatch, verbs)):
        return None

    columns = _income_columns(question)
    if len(columns) != 1:
        return None

    (income,) = columns.values()
    return Figure("sum", income)


def _income_columns(question: QuestionWords) -> dict[ColumnIdentity, Link]:
    links: dict[ColumnIdentity, Link] = {}
    for name in _INCOME:
        for link in question.lexicon.find(name):
            if _is_income(question, link):
                links[link.table, link.column] = link

    return links


def _is_income(question: QuestionWords, link: Link) -> bool:
    if link.kind != "column" or link.quality < costs.CLEAR:
        return False

    is_of_table = question.schema.table(link.table).kind == "table"
    return is_of_table and question.is_measure(link)
