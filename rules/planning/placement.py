"""Refuses a question if something that it names has no place in the query."""

from dataclasses import replace

from knowledge.atoms import stem, words_of
from knowledge.naming import comment_names, english_words
from rules.planning.heads import asked_people, person_of
from rules.planning.listing import shown_column
from rules.planning.plan import Plan, shown_names
from rules.query.query import ColumnRef, Query
from rules.query.refusals import unused_words
from rules.readers.reading import ColumnIdentity
from rules.schema.joins import AmbiguousPath
from rules.schema.links import Link
from rules.schema.schema import TableKey

_DATE_ITSELF = 0.9  # a word of at least this quality means the date itself and not what was done then


def measured_columns(plan: Plan) -> frozenset[ColumnIdentity]:
    """The columns of the figures, which another reading of the same words is to avoid."""
    figures = [*plan.asks.figures, *plan.bare, *(ranking.figure for ranking in plan.asks.rankings)]
    return frozenset((figure.link.table, figure.link.column) for figure in figures if figure and figure.link)


def said_reference(plan: Plan, ambiguity: AmbiguousPath) -> str | None:
    """The only reference of which a word stands in the question: "trips *started* at Harbor"; else None."""
    said = {stem(word) for mark in plan.reading.marks for word in words_of(mark.text)}
    target = {stem(word) for word in words_of(ambiguity.target[1])}
    scored = []
    for key, column in ambiguity.choices:
        names = [column, *comment_names(plan.reading.schema.column(key, column).comment)] if column else []
        words = {stem(word) for name in names for word in english_words(name)} - target - {"id"}
        scored.append((len(words & said), column))
    scored.sort(reverse=True)
    return scored[0][1] if scored[0][0] > 0 and (len(scored) == 1 or scored[0][0] > scored[1][0]) else None


def refuse_unplaced(plan: Plan, query: Query) -> None:
    """Refuses if a named table or column is neither in the query nor above a table that is.

    Raises:
        Refusal: there is such a name.
    """
    spoken_of = touched(query)
    reachable = {key for table in spoken_of for key in plan.reading.graph.above(table)}
    lost = [plan.reading.marks[index].text for index, key in plan.tables if key not in reachable]
    averaged = any(measure.function == "avg" and measure.per is None for measure in query.measures)
    if averaged:  # "average revenue of shops" may mean an average over shops, and the query has one over rows
        lost += [plan.reading.marks[index].text for index, key in plan.tables if key not in spoken_of]
    shown = {(column.table, column.column) for column in query.columns}
    shown |= {(dim.table, dim.column or name) for dim in query.dimensions for name in shown_names(plan, dim)}
    shown |= {(one.per.table, one.per.column) for one in query.measures if one.per and one.per.column}
    shown |= {(order.column.table, order.column.column) for order in query.order if order.column is not None}
    shown |= {
        (column.table, column.column)
        for index, link in plan.named_at.items()
        if query.columns
        for column in [ColumnRef(link.table, str(link.column))]
        if set(shown_column(plan, index, link)) <= set(query.columns)
    }
    for index, link in plan.named_at.items():
        placed = _is_reference_to(plan, link, query) or _says_event(plan, link, query)
        if (link.table, link.column) not in shown and not placed:
            lost.append(plan.reading.marks[index].text)
    if lost:
        raise unused_words(lost)


def _is_reference_to(plan: Plan, link: Link, query: Query) -> bool:
    """Whether the column is a reference to a table, or the key of one, that is grouped by."""
    grouped = {dimension.table for dimension in query.dimensions if dimension.column is None}
    facts = plan.reading.facts(link.table)
    return any(edge.columns == (link.column,) and edge.parent in grouped for edge in facts.edges) or (
        link.table in grouped and link.column in facts.key
    )


def _says_event(plan: Plan, link: Link, query: Query) -> bool:
    """Whether the column is a date whose verb only says which events are measured, as in "who sold the most"."""
    measured = {measure.table for measure in query.measures}
    is_verb = plan.reading.is_date(link) and link.quality < _DATE_ITSELF
    return plan.reading.settled.says_anything and is_verb and link.table in measured


def refuse_leftovers(plan: Plan, query: Query) -> None:
    """Refuses if a word with a meaning is still unused.

    Raises:
        Refusal: there is such a word.
    """
    left = [*plan.reading.leftovers(), *plan.reading.stray_groups()]
    if query.measures or plan.named_at or plan.bare:
        left = [mark for mark in left if not mark.means("count")]  # "is how much" asks for what is there
    if left:
        raise unused_words([mark.text for mark in left])


def touched(query: Query) -> set[TableKey]:
    """The tables that the query names."""
    keys = {query.base, *(column.table for column in query.columns), *(measure.table for measure in query.measures)}
    keys |= {dimension.table for dimension in (*query.dimensions, *query.top_per)}
    keys |= {condition.column.table for condition in query.conditions}
    keys |= {having.measure.table for having in query.having}
    return keys | {related.table for related in query.related}


def with_names_asked_for(plan: Plan, query: Query) -> Query:
    """The query, if it shows what the question asks for.

    `Who manages the Sales department?` is not answered by a department, and "which customer" not by an order. Where the
    user was asked back which events are meant, the people are shown beside the events.

    Raises:
        Refusal: the query doesn't show what is asked for.
    """
    reading = plan.reading
    asked = [index for index in range(len(reading)) if reading.asks_for(index)]
    shown = {query.base, *(column.table for column in query.columns)} if not query.measures else set()
    shown |= {dimension.table for dimension in query.dimensions}
    people = asked_people(reading)
    if people and not any(reading.facts(key).is_person for key in shown):
        person = person_of(plan, query.base)
        if person is None or query.measures or not reading.settled.says_anything or reading.facts(query.base).is_entity:
            raise unused_words([reading.marks[index].text for index in people])
        names = (ColumnRef(person, name) for name in reading.facts(person).shown)
        query = replace(query, columns=tuple(dict.fromkeys((*names, *query.columns))))
    for index in asked:
        place = reading.beside(index, 1, ("noise", "of", "unit", "number"), through_used=False)
        noun = reading.nouns[place] if place is not None else None
        if noun is None or not noun.is_table or noun.table is None or noun.table.table in shown:
            continue
        if reading.facts(noun.table.table).display and reading.marks[index].arg != "kind":
            raise unused_words([reading.marks[index].text + reading.marks[place or 0].text])
    return query
