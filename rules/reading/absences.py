"""Makes parts of patterns of absence: empty columns, events that did not happen, missing rows."""

import re
from decimal import Decimal

from rules.query.query import OPPOSITE, Condition, Operator, Related, ref
from rules.reading.parts import Parts
from rules.reading.words import Match, MatchedItem, QuestionWords
from rules.schema.links import Link
from rules.schema.table_facts import is_due, is_outcome
from rules.words import WORDS

_NEVER = frozenset(WORDS.both("questions.never"))
_LACKS = frozenset(WORDS.both("questions.lacks"))
_NOT_DONE = frozenset(WORDS.chinese.phrases("questions.not_done"))
# Qualities of a word that is like the name of its column: the verb of a date.
_LEAST_LIKE_VERB, _WHOLE_NAME = 0.68, 0.9
_STATE = re.compile(
    f"{WORDS.found('columns.said.dates').pattern}|{WORDS.any_of('columns.said.states')}",
    re.IGNORECASE,
)


def null(match: Match) -> Parts | None:
    """Ask for rows whose column is empty, or not empty."""
    link = match["tcol|mcol|dcol|flag"].link
    operator: Operator = "null" if match.get("null") is not None else "not null"
    operator = OPPOSITE[operator] if match.is_negated else operator
    if not match.question.column_of(link).nullable:  # "bottles were filled in"
        return None

    return Parts(conditions=(Condition(ref(link), operator),))


def lacking(match: Match) -> Parts | None:
    """Ask for rows without a value in a column, or without the events whose column that is.

    Examples are "orders without an employee" and "shops without revenue".
    """
    item = match["tcol|mcol|dcol"]
    question = match.question
    link = item.link
    word = match["not"].word.text
    if word in _NOT_DONE and question.is_measure(link):
        # `未回款金额` is an amount not yet paid, not an empty one
        return None
    if word not in _LACKS and _has_date(item):
        # "not shipped" asks for no date when it was done, not for no shipper
        return None
    if question.display(link):
        return None
    if word in _NOT_DONE and _tells_state(question, link):
        # `未通过审核` is a state of the review, no missing one
        return None
    if not _is_of_events(question, link):
        return Parts(conditions=(_empty(question, link),))
    if not _dates_outcome(question, link):
        return Parts(related=(Related(link.table, negated=True),))
    if word in _NEVER:
        happened = Condition(ref(link), "not null")
        return Parts(related=(Related(link.table, (happened,), negated=True),))

    is_open = Condition(ref(link), "null")
    return Parts(related=(Related(link.table, (is_open,)),))


def _tells_state(question: QuestionWords, link: Link) -> bool:
    """Tell whether a word is only like the name of a column that holds one of few texts."""
    if link.derived is not None or link.quality >= _WHOLE_NAME or question.is_measure(link):
        return False

    column = question.column_of(link)
    return bool(column.values) or (not column.nullable and not question.is_date(link))


def _has_date(item: MatchedItem) -> bool:
    """Tell whether a word taken for another column may be the date when something is done."""
    return item.symbol != "dcol" and "dcol" in item.word.senses


def _is_of_events(question: QuestionWords, link: Link) -> bool:
    """Tell whether a column belongs to rows below the tables that the question names."""
    named = question.named_tables()
    if link.table in named:
        return False

    return any(link.table in question.graph.below(table) for table in named)


def _empty(question: QuestionWords, link: Link) -> Condition:
    """Return the condition that a column is empty; a measure that can't be is 0: "no stock"."""
    is_measure = question.is_measure(link) and not link.derived
    if is_measure and not question.column_of(link).nullable:
        return Condition(ref(link), "=", (Decimal(0),))

    return Condition(ref(link), "null")


def _dates_outcome(question: QuestionWords, link: Link) -> bool:
    """Tell whether a column dates the outcome of an event, which may still be open."""
    if not question.is_date(link):
        return False

    is_later = link.column in question.facts(link.table).dates[1:]
    return is_later or is_outcome(question.column_of(link))


def without(match: Match) -> Parts | None:
    """Ask for rows without related rows, or without those of a value: "never ordered Laptop"."""
    value = match.get("vals")
    conditions = (_has_value(value),) if value is not None else ()
    return Parts(related=(Related(match["tab"].link.table, conditions, negated=True),))


def _has_value(item: MatchedItem) -> Condition:
    return Condition(ref(item.link), "=", (str(item.link.value),))


def never_done(match: Match) -> Parts | None:
    """Ask for rows without the events that a verb names: "customers who never bought anything"."""
    events = match.question.events_of(match["verb"].word)
    if len(events) != 1:
        return None

    return Parts(related=(Related(events[0], negated=True),))


def having_one(match: Match) -> Parts | None:
    """Do as `having` after an article: "orders with an employee", not "customers with orders"."""
    if match["with"].word.text.endswith((" a", " an")):
        return having(match)

    return None


def having(match: Match) -> Parts | None:
    """Ask for rows that have a value or related rows: `有手机号的客户`, "orders with a note"."""
    table = match.get("tab")
    if table is not None:
        return Parts(related=(Related(table.link.table),))

    link = match["tcol|mcol|dcol"].link
    question = match.question
    if question.kind(link) == "boolean":
        return None
    if not question.is_measure(link) and _is_of_events(question, link):
        # `有退货的订单`, where only the date of returns is called so
        return Parts(related=(Related(link.table),))
    if not question.column_of(link).nullable:
        return None

    return Parts(conditions=(Condition(ref(link), "not null"),))


def having_each(match: Match) -> Parts | None:
    """Ask for related rows of two kinds: "clients with an open claim and an overdue invoice"."""
    conditions = []
    for value, table in zip(match.all("vals"), match.all("tab"), strict=True):
        if value.link.table != table.link.table:
            return None

        conditions.append(Related(value.link.table, (_has_value(value),)))

    return Parts(related=tuple(conditions))


def done(match: Match) -> Parts | None:
    """Ask for rows with a date whose verb stands beside their table: `shipped orders`."""
    item = match["dcol"]
    table = match["tab"].link.table
    if item.link.table != table or _STATE.search(item.word.text):
        return None
    if is_due(match.question.column_of(item.link)):
        return None
    if not _LEAST_LIKE_VERB <= item.link.quality < _WHOLE_NAME:
        return None

    return Parts(conditions=(Condition(ref(item.link), "not null"),))
