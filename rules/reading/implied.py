"""What is implied where it is not said: the group of a column, the figure of a table, the column of an adjective."""

import re

from common.meanings import TableKey
from knowledge.atoms import stem
from rules.query.query import Dimension, Figure
from rules.reading import costs
from rules.reading.parts import NO_TABLE
from rules.reading.words import Item, Question
from rules.schema.facts import is_averaged, stems
from rules.schema.links import METRIC, Link, column_link
from rules.words import WORDS

_MONEY, _NAMED = WORDS.both("questions.money_columns"), 0.7
_MONEY_NAMES = frozenset(WORDS.english.phrases("figures.money"))
_INCOME, _HOW_MUCH_MONEY = WORDS.both("questions.income"), frozenset(WORDS.both("questions.money"))
_WEEKDAYS = "'weekdays'"  # elsewhere: not at weekends
_EARNS = re.compile(WORDS.any_of("questions.earns"))


def column_dimension(question: Question, link: Link) -> Dimension:
    """The group that a column stands for: a reference its table, a name its own table, a time its day."""
    facts = question.facts(link.table)
    assert link.column is not None
    for edge in facts.edges:
        if edge.columns == (link.column,):
            return Dimension(edge.parent, via=link.column if edge.child != edge.parent else None)
    if link.column in facts.display and facts.key:
        return Dimension(link.table)
    if question.kind(link) == "timestamp":
        return Dimension(link.table, link.column, "day")
    return Dimension(link.table, link.column)


def time_dimension(item: Item) -> Dimension | None:
    """The unit of time that a word of a pattern names: months, hours, days of the week."""
    if item.symbol in ("bucket", "date_part", "date_which"):
        return Dimension(NO_TABLE, None, item.arg)  # type: ignore[arg-type]
    part = "weekday" if item.symbol == _WEEKDAYS else item.arg if item.symbol == "calendar_part" else None
    return Dimension(NO_TABLE, None, part=part) if part is not None else None  # type: ignore[arg-type]


def figure_of_rows(question: Question, table: TableKey, at: int) -> Figure | None:
    """A count of rows; for a table of reports, the sum of what its rows count (`多少辆货车`).

    None where the rows of reports count several things.
    """
    facts = question.facts(table)
    if not facts.is_report:
        return Figure("count", table=table, position=at)
    if len(facts.measures) != 1 or is_averaged(facts.measures[0]):
        return None
    return Figure("sum", column_link(table, facts.measures[0].name), position=at)


def amount_of(question: Question, table: TableKey) -> Link | None:
    """The amount of money in a table: its only one, else the one that is called so; None if it is not known which."""
    facts = question.facts(table)
    added = {one.name for one in facts.measures if not is_averaged(one) and not facts.is_count(one)}
    if len(added) == 1:
        return column_link(table, added.pop())
    for name in _MONEY:
        links = [one for one in question.lexicon.find(name) if one.table == table and one.column in added]
        named = {one.column for one in links if one.quality >= _NAMED and one.derived is None}
        if len(named) == 1:
            return column_link(table, str(named.pop()))
    return None


def is_number(question: Question, link: Link) -> bool:
    """Whether a figure is itself a number of the things that its phrase names, rather than an amount of money."""
    if link.derived == METRIC:
        return link.spelling not in _MONEY_NAMES
    facts, column = question.facts(link.table), question.column_of(link)
    return facts.is_report or facts.is_count(column) or stem(link.spelling) in stems(column.name)


def is_money(question: Question, link: Link) -> bool:
    """Whether a figure is called by a word for money, so that no "how many" asks for it."""
    return link.spelling in _MONEY_NAMES and not is_number(question, link)


def concept_column(question: Question, table: TableKey, hint: str) -> Link | None:
    """The table's column for a concept that an adjective implies, such as a price; None without one."""
    facts = question.facts(table)
    if hint in ("date", "recent"):
        return column_link(table, facts.dates[0]) if facts.dates else None
    for name in WORDS.both(f"concepts.{hint}"):
        for link in question.lexicon.find(name):
            suits = link.kind == "column" and link.table == table and link.quality >= 0.5
            if suits and (question.is_measure(link) or question.is_date(link)):
                return link
    return None


def income_asked(question: Question) -> Figure | None:
    """The income, where only a verb says that money is meant: "how much did it bring in"."""
    asks = any(word.text in _HOW_MUCH_MONEY for word in question.words if word.mark.means("count", "sum"))
    earns = any(_EARNS.fullmatch(word.text) for word in question.words if word.mark.means("verb"))
    if not asks or not earns:
        return None
    links = {
        (link.table, link.column): link
        for name in _INCOME
        for link in question.lexicon.find(name)
        if link.kind == "column" and link.quality >= costs.CLEAR and question.schema.table(link.table).kind == "table"
        and question.is_measure(link)
    }  # fmt: skip
    return Figure("sum", next(iter(links.values()))) if len(links) == 1 else None
