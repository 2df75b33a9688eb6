"""What patterns of absence give: empty columns, events that did not happen, things that have no others."""

import re
from decimal import Decimal

from rules.query.query import OPPOSITE, Condition, Operator, Related, ref
from rules.reading.parts import Parts
from rules.reading.words import Match
from rules.schema.facts import is_outcome
from rules.words import WORDS

_NEVER, _NOT_DONE = frozenset(WORDS.both("questions.never")), frozenset(WORDS.chinese.phrases("questions.not_done"))
_STATE = re.compile(f"{WORDS.found('columns.said.dates').pattern}|{WORDS.any_of('columns.said.states')}", re.IGNORECASE)


def null(match: Match) -> Parts | None:
    """A column that is empty, or not."""
    link = match["tcol|mcol|dcol|flag"].link
    operator: Operator = "null" if match.get("null") is not None else "not null"
    operator = OPPOSITE[operator] if match.is_negated else operator
    return Parts(conditions=(Condition(ref(link), operator),))


def lacking(match: Match) -> Parts | None:
    """A negated column: it is empty, or the events that it dates have not happened: "shops without revenue"."""
    item, question = match["tcol|mcol|dcol"], match.question
    link, word = item.link, match["not"].word.text
    if word in _NOT_DONE and question.is_measure(link):
        return None  # `未回款金额` is an amount not yet paid, not an empty one
    if link.column in question.facts(link.table).display:
        return None
    tables = [key for key in question.named_tables() if key != link.table]
    below = {key for table in tables for key in question.graph.below(table)}
    if link.table in question.named_tables() or link.table not in below:
        if question.is_measure(link) and not link.derived and not question.column_of(link).nullable:
            return Parts(conditions=(Condition(ref(link), "=", (Decimal(0),)),))  # "no stock" where it can't be empty
        return Parts(conditions=(Condition(ref(link), "null"),))
    is_later = link.column in question.facts(link.table).dates[1:]  # than the date that makes it an event
    if not question.is_date(link) or not (is_later or is_outcome(question.column_of(link))):
        return Parts(related=(Related(link.table, negated=True),))
    if word in _NEVER:
        return Parts(related=(Related(link.table, (Condition(ref(link), "not null"),), negated=True),))
    return Parts(related=(Related(link.table, (Condition(ref(link), "null"),)),))


def without(match: Match) -> Parts | None:
    """A negated table: no related rows, or none with the values after it: "never ordered Laptop"."""
    table = match["tab"].link.table
    conditions: tuple[Condition, ...] = ()
    if match.get("vals") is not None:
        link = match["vals"].link
        conditions = (Condition(ref(link), "=", (str(link.value),)),)
    return Parts(related=(Related(table, conditions, negated=True),))


def never_done(match: Match) -> Parts | None:
    """ "customers who never bought anything": no row of the events that the verb names."""
    events = match.question.events_of(match["verb"].word)
    return Parts(related=(Related(events[0], negated=True),)) if len(events) == 1 else None


def having_one(match: Match) -> Parts | None:
    """ "orders with an employee", not "customers with orders"."""
    return having(match) if match["with"].word.text.endswith((" a", " an")) else None


def having(match: Match) -> Parts | None:
    """`有手机号的客户`, "employees with a commission", "orders with an employee": it is there."""
    table = match.get("tab")
    if table is not None:
        return Parts(related=(Related(table.link.table),))
    link = match["tcol|mcol|dcol"].link
    if not match.question.column_of(link).nullable or match.question.kind(link) == "boolean":
        return None
    return Parts(conditions=(Condition(ref(link), "not null"),))


def having_each(match: Match) -> Parts | None:
    """ "clients with an open claim and an overdue invoice": related rows of both kinds."""
    pairs = list(zip(match.all("vals"), match.all("tab"), strict=True))
    if any(value.link.table != table.link.table for value, table in pairs):
        return None
    conditions = ((Condition(ref(one.link), "=", (str(one.link.value),)),) for one, _ in pairs)
    return Parts(related=tuple(Related(one.link.table, said) for (one, _), said in zip(pairs, conditions, strict=True)))


def done(match: Match) -> Parts | None:
    """The verb of a date beside its table: `shipped orders`, `完成的工单`: those that have that date."""
    item, table = match["dcol"], match["tab"].link.table
    if item.link.table != table or not 0.68 <= item.link.quality < 0.9 or _STATE.search(item.word.text):
        return None
    return Parts(conditions=(Condition(ref(item.link), "not null"),))
