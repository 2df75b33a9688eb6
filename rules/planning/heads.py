"""Sorts the nouns that are neither conditions nor figures: the asked table, plain measures, shown columns."""

import re

from rules.planning.plan import Plan
from rules.query.conditions import ref
from rules.query.query import Condition
from rules.query.refusals import several_people, unused_words
from rules.query.wishes import Figure
from rules.readers.figures import figure_of_rows
from rules.readers.reading import Reading
from rules.schema.links import Link, column_link
from rules.schema.schema import TableKey
from rules.words import WORDS


def sort_heads(plan: Plan) -> None:
    """Sorts the nouns that nothing has used into the asked table, plain measures and shown columns."""
    reading = plan.reading
    tables: list[tuple[int, TableKey]] = []
    for index in plan.asks.heads:
        noun = reading.nouns[index]
        assert noun is not None
        measure = reading.plain_measure(index)
        if measure is not None:
            plan.bare.append(Figure(None, measure, position=index))
        elif noun.is_table and noun.table is not None:
            tables.append((index, noun.table.table))
        elif (link := _left_column(plan, index)) is not None and not _is_attributive(plan, index, link):
            _refuse_foreign_state(plan, index, link)
            plan.projection.append(link)
            plan.named_at[index] = link
        reading.use(index)
    for index in list(reading.having("count")):
        conditions = [one for one in plan.filters.conditions[:1] if not _names_thing(plan, one)]
        nothing_else = not (tables or plan.asks.figures or plan.bare or plan.projection)
        if nothing_else and conditions and reading.counts_conditions(conditions[0]):
            reading.use(index)  # "how many records have no amount" counts rows of the condition's table
            plan.asks.figures.append(Figure("count", table=conditions[0].column.table, position=index))
    plan.bare = _without_echoes(plan)
    plan.tables = tables
    named = tables or plan.asks.qualifiers
    if not reading.is_chinese:
        named = sorted([*tables, *plan.asks.qualifiers])
    plan.head = _choose_head(plan, named)
    if plan.head is None and any(mark.arg == "person" for mark in reading.marks) and not plan.asks.dimensions:
        plan.head = _person_concerned(plan)


def _without_echoes(plan: Plan) -> list[Figure]:
    """The plain measures without those that only repeat what the one right before means (`保费收入` beside 年收入).

    Raises:
        Refusal: two measures stand in a row, and the second is named as well as the first.
    """
    kept: list[Figure] = []
    for figure in plan.bare:
        before = kept[-1] if kept and plan.reading.is_chinese else None
        if before is None or before.link is None or figure.link is None or before.position != figure.position - 1:
            kept.append(figure)
        elif figure.link.quality > before.link.quality - _ECHO:
            raise unused_words([plan.reading.marks[figure.position].text])
    return kept


def _names_thing(plan: Plan, condition: Condition) -> bool:
    """Whether a condition is the name of one thing, which there is no use in counting."""
    return condition.operator == "=" and condition.column.column in plan.reading.facts(condition.column.table).display


def _refuse_foreign_state(plan: Plan, index: int, link: Link) -> None:
    """Refuses a word before a table that names a date of another table: `open tickets`, where only sites are opened.

    Raises:
        Refusal: there is such a word.
    """
    reading = plan.reading
    after = reading.nouns[index + 1] if index + 1 < len(reading) else None
    said = after is not None and after.is_table and after.table is not None and after.table.table != link.table
    if said and not reading.is_chinese and reading.is_date(link) and not _DATE_WORD.search(reading.marks[index].text):
        raise unused_words([reading.marks[index].text])


def _person_concerned(plan: Plan) -> TableKey | None:
    """The people that `Who placed the most orders?` asks for: the nearest ones that the rows in question belong to."""
    figures = [*plan.asks.figures, *plan.bare, *(ranking.figure for ranking in plan.asks.rankings)]
    spoken = [figure.link.table if figure.link else figure.table for figure in figures if figure]
    spoken += [condition.column.table for condition in plan.filters.conditions]
    for table in spoken:
        above = plan.reading.graph.above(table) if table else {}
        people = sorted((steps, key) for key, steps in above.items() if plan.reading.facts(key).is_person)
        if (said := plan.reading.settled.among((key, None) for _, key in people)) is not None:
            return said[0]
        if people and (len(people) == 1 or people[0][0] < people[1][0]):
            return people[0][1]
    return None


def asked_people(reading: Reading) -> list[int]:
    """The places of marks that ask for people: 谁, "who"."""
    found = [index for index in range(len(reading)) if reading.asks_for(index) and reading.marks[index].arg == "person"]
    leads = reading.marks[0].text.lower().split()[0] == _WHO and not reading.asks_for(0)
    return [*found, 0] if leads else found  # "who has …" is one mark


def person_of(plan: Plan, table: TableKey) -> TableKey | None:
    """The people that rows of the table belong to; None where they belong to nobody.

    Raises:
        Refusal: it may be several kinds of people.
    """
    reading = plan.reading
    people = [key for key in reading.graph.above(table) if reading.facts(key).is_person]
    said = reading.settled.among((key, None) for key in people)
    if said is None and len(people) > 1:
        word = reading.marks[asked_people(reading)[0]].text
        raise several_people(word.split()[0], people, reading.lexicon)
    return said[0] if said is not None else next(iter(people), None)


def split_attributes(plan: Plan) -> None:
    """Shows columns of the thing that is grouped by, instead of grouping by them too: `各公司名称和成立日期`."""
    dimensions = plan.asks.dimensions
    if plan.asks.figures or plan.asks.rankings or len(dimensions) < 2 or dimensions[0].column is not None:
        return
    own = [dim for dim in dimensions[1:] if dim.table == dimensions[0].table and dim.column and not dim.bucket]
    if len(own) == len(dimensions) - 1:
        plan.asks.dimensions = dimensions[:1]
        for place, dim in enumerate(own):
            link = column_link(dim.table, str(dim.column))
            plan.projection.append(link)
            plan.named_at[-1 - place] = link


def _left_column(plan: Plan, index: int) -> Link | None:
    """The column that an unused noun shows; "name" alone is the name of the table beside it."""
    owner = plan.reading.named_thing(index)
    if owner is not None:
        return column_link(owner, plan.reading.facts(owner).display[-1])
    return plan.reading.pick(index)


def _is_attributive(plan: Plan, index: int, link: Link) -> bool:
    """Reads the verb of a date beside its table as "has that date": `shipped orders`; returns whether it did."""
    reading = plan.reading
    text = reading.marks[index].text
    if not reading.is_date(link) or not 0.68 <= link.quality < 0.9 or _NOT_DONE.search(text):
        return False
    for step in (1,) if reading.is_chinese else (1, -1):
        skip = ("noise", "of", "verb") if step == 1 else ("noise", "verb", "which", "with")
        place = reading.beside(index, step, skip, through_used=False)
        noun = reading.nouns[place] if place is not None else None
        if noun is not None and noun.is_table and noun.table is not None and noun.table.table == link.table:
            plan.filters.conditions.append(Condition(ref(link), "not null"))
            return True
    return False


def _choose_head(plan: Plan, tables: list[tuple[int, TableKey]]) -> TableKey | None:
    """The table whose rows answer: the one after "which", else the last one in Chinese and the first in English."""
    if not tables:
        return None
    reading = plan.reading
    for index, key in tables:
        before = reading.beside(index, -1, ("noise", "of", "unit", "top", "super"))
        if before is not None and reading.asks_for(before):
            return key
    return tables[-1][1] if reading.is_chinese else tables[0][1]


def wants_figures(plan: Plan) -> bool:
    """Whether the answer is figures and not rows; adds a count where one is implied."""
    if plan.asks.figures or plan.asks.share or (plan.asks.per_entity is not None and plan.bare):
        return True
    if _counts_implied(plan):
        plan.asks.figures.append(_implied_count(plan))
        return True
    if plan.bare and (plan.asks.dimensions or plan.asks.trend):
        return not is_attribute_listing(plan)
    return bool(plan.bare) and _bare_is_total(plan)


def _counts_implied(plan: Plan) -> bool:
    """Whether rows by groups without a figure are counted: `orders by status`, `shops per company`."""
    if plan.bare or plan.projection or (plan.head is None and not _is_value_grouped(plan)):
        return False
    if plan.head is None:
        return True
    several = any(len(span.periods) > 1 for span in plan.filters.spans) or bool(plan.filters.compared)
    if plan.asks.compare and several:
        return True
    grouped = any(dimension.table != plan.head for dimension in plan.asks.dimensions) or _groups_by_kind(plan)
    per = not plan.asks.lists and any(mark.text.lower() == "per" for mark in plan.reading.marks)
    return grouped and (per or plan.reading.has("by", "bucket"))


def _is_value_grouped(plan: Plan) -> bool:
    """`trucks by month`, "trucks compared with cars": what a report counts of stored values."""
    compared = plan.asks.compare and plan.filters.compared
    grouped = compared or plan.asks.trend or any(one.bucket for one in plan.asks.dimensions)
    return bool(grouped) and _count_of_values(plan) is not None


def _count_of_values(plan: Plan) -> Figure | None:
    tables = {condition.column.table for condition in plan.filters.conditions}
    reports = [table for table in tables if plan.reading.facts(table).is_report]
    return figure_of_rows(plan.reading, reports[0], 0) if len(reports) == 1 else None


def _implied_count(plan: Plan) -> Figure:
    found = _count_of_values(plan) if plan.head is None else Figure("count", table=plan.head)
    assert found is not None
    return found


def _groups_by_kind(plan: Plan) -> bool:
    """Whether all groups are columns that say the kind of a thing, and no list is asked for: `orders by status`."""
    reading = plan.reading
    lists = any(mark.means("list") and mark.text not in _REPORTS for mark in reading.marks)
    by = any(mark.means("by") for mark in reading.marks)
    links = [column_link(dim.table, dim.column) for dim in plan.asks.dimensions if dim.column and not dim.bucket]
    kinds = bool(links) and all(reading.kind(link) in ("text", "boolean", "number") for link in links)
    return by and kinds and not lists and len(links) == len(plan.asks.dimensions)


def is_attribute_listing(plan: Plan) -> bool:
    """Whether the measures are columns of the thing that is grouped by, so that they are listed: `各店铺的月租金`."""
    if len(plan.asks.dimensions) != 1:
        return False
    (one,) = plan.asks.dimensions
    own = all(figure.link is not None and figure.link.table == one.table for figure in plan.bare)
    return one.column is None and one.bucket is None and own and plan.reading.facts(one.table).is_entity


def _bare_is_total(plan: Plan) -> bool:
    """Whether plain measures are added up: those of events are, those of things are shown."""
    figure = plan.bare[0]
    assert figure.link is not None
    facts = plan.reading.facts(figure.link.table)
    if plan.head is not None and plan.head != figure.link.table:
        return figure.link.table not in plan.reading.graph.above(plan.head)
    return not facts.is_entity and bool(facts.edges) and (not plan.asks.lists or plan.head is None)


_ECHO = 0.15
_WHO = WORDS.english.text("questions.who")
_REPORTS = frozenset(WORDS.both("questions.reports"))
_DATE_WORD = WORDS.found("columns.said.dates")
# Words for a date itself or for a state; they don't say that something was done.
_NOT_DONE = re.compile(f"{_DATE_WORD.pattern}|{WORDS.any_of('columns.said.states')}", re.IGNORECASE)
