"""Composes the one query that the parts of a reading give, or refuses it."""

from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import english_words
from rules.composing.accounting import refuse_unaccounted
from rules.composing.adjacency_accounting import refuse_misplaced
from rules.composing.asked import Asked
from rules.composing.changing import changing, compares_periods
from rules.composing.figure_accounting import refuse_unaccounted_figures
from rules.composing.listing import listed_query
from rules.composing.measuring import figures_query, filled_groups, wants_figures
from rules.composing.ranked import ranked_query
from rules.composing.restricting import asks_for_periods, has_reference, is_aggregate, restricted
from rules.composing.row_accounting import refuse_other_rows
from rules.composing.thing_accounting import answering_tables, refuse_other_things
from rules.linking.moments import Period
from rules.query.pending import NOTHING_SETTLED
from rules.query.query import (
    ColumnRef,
    Condition,
    Dimension,
    Measure,
    Operand,
    Query,
    ref,
    touched,
)
from rules.query.refusals import (
    Refusal,
    ambiguous_column,
    missing_year,
    not_combinable,
    unknown_parts,
    unknown_words,
    unused_words,
)
from rules.reading.implied import column_dimension
from rules.reading.inclusions import Inclusion
from rules.reading.parts import NO_TABLE, GroupBy, Named, Reading, Span
from rules.schema.links import Link, column_link
from rules.words import WORDS

_SURNAMED = WORDS.chinese.phrases("questions.surnamed")
_RECKONED = frozenset(WORDS.chinese.phrases("questions.reckoned"))
_NO_PLACE = -9  # before all words
_NEVER_MET = Text(
    "问题中的条件互相矛盾，没有一行数据能同时满足。请检查这些条件。",
    "The conditions of the question contradict each other, so no row can meet them all. "
    "Please check them.",
)
_MOST_CHOICES = 5  # columns that a word may mean, offered to the user


def composed(asked: Asked) -> Query:
    """Return the query of a reading.

    Raises:
        Refusal: something is missing, ambiguous, or has no place in the query.
        AmbiguousPath: two tables are tied in several ways.
    """
    for normalized in _NORMALIZATIONS:
        asked = normalized(asked)

    refuse_doubts(asked)
    _refuse_unplaced_flags(asked)
    query = _main_query(asked)
    if query.measures:
        query = replace(query, conditions=(*query.conditions, *filled_groups(asked)))

    query = _grouped_once(_with_people(asked, restricted(asked, query)))
    _refuse_figures_of_one_value(asked, query)
    _refuse_useless_counts(asked, query)
    _refuse_missing_figures(asked, query)
    _refuse_names_alone(asked, query)
    _refuse_contradictions(query)
    _refuse_unplaced_names(asked, query)
    _refuse_metrics_of_rows(asked, query)
    refuse_unaccounted(asked, query)
    refuse_unaccounted_figures(asked, query)
    refuse_misplaced(asked, query)
    refuse_other_things(asked, query)
    refuse_other_rows(asked, query)
    return query


def _grouped_once(query: Query) -> Query:
    """Leave out a group by a date of which the periods are groups: "each quarter, by due date"."""
    periods = {
        (dimension.table, dimension.column, dimension.via)
        for dimension in query.dimensions
        if dimension.bucket
    }
    dimensions = []
    for dimension in query.dimensions:
        is_plain = dimension.bucket is None and dimension.part is None
        if not is_plain or (dimension.table, dimension.column, dimension.via) not in periods:
            dimensions.append(dimension)

    return replace(query, dimensions=tuple(dimensions))


def _main_query(asked: Asked) -> Query:
    """Return the query without most of its conditions: a ranking, figures or a listing."""
    parts = asked.parts
    if parts.rankings:
        ranked = ranked_query(asked)
        if isinstance(ranked, Asked):
            return figures_query(ranked)

        return ranked

    if asks_for_periods(asked):
        return _listed_periods(asked)
    if wants_figures(asked):
        query = figures_query(asked)
        has_change = asked.says("growth") or compares_periods(asked)
        return changing(asked, query) if has_change else query

    compares_groups = any(is_aggregate(asked, threshold) for threshold in parts.thresholds)
    return listed_query(asked, compares_groups=compares_groups)


def _listed_periods(asked: Asked) -> Query:
    """Return the query for periods whose figure is compared: "days with revenue above 5000"."""
    link = asked.parts.thresholds[0].link
    assert link is not None
    dimension = asked.resolved(asked.parts.groups[0].dimension, link.table)
    return Query(link.table, dimensions=(dimension,), counts_rows=asked.says("how_many"))


def _refuse_unplaced_flags(asked: Asked) -> None:
    """Refuse words that ask for something which the rest of the question gives no place."""
    parts = asked.parts
    is_ranked = bool(parts.rankings)
    has_groups = bool(parts.thresholds or parts.groups)
    lost = []
    if asked.says("or"):
        lost.append("or")
    if is_ranked:
        if asked.says("per_entity"):
            lost.append("per_entity")
    else:
        if asked.says("shown_too") and not has_groups:
            lost.append("each")
        if asked.says("periods") and not asks_for_periods(asked):
            lost.append("date_part")

    if lost:
        raise unused_words(asked.question.texts(*lost))


def _refuse_metrics_of_rows(asked: Asked, query: Query) -> None:
    """Refuse an order of single rows by a metric, which single rows don't have."""
    for order in query.order:
        column = order.column
        if column is None:
            continue
        if asked.question.schema.table(column.table).column(column.column) is None:
            raise not_combinable()


def _refuse_contradictions(query: Query) -> None:
    """Refuse conditions that no row can meet together."""
    operands_of: dict[ColumnRef, tuple[Operand, ...]] = {}
    for condition in query.conditions:
        if condition.operator != "=":
            continue

        operands = operands_of.setdefault(condition.column, condition.operands)
        if operands != condition.operands:
            raise unused_words([str(condition.operands[0])])

    empty: set[ColumnRef] = set()
    filled: set[ColumnRef] = set()
    for condition in query.conditions:
        columns = empty if condition.operator == "null" else filled
        columns.add(condition.column)

    absent: set[TableKey] = set()
    present: set[TableKey] = set()
    for related in query.related:
        if not related.negated:
            present.add(related.table)
        elif not related.conditions:
            absent.add(related.table)

    if empty & filled or absent & present:
        raise Refusal("ambiguous_question", _NEVER_MET)


def _refuse_useless_counts(asked: Asked, query: Query) -> None:
    """Refuse a count of the rows by which is grouped: it is 1 for each."""
    count = Measure("count", query.base)
    rows = Dimension(query.base)
    if query.counts_rows or count not in query.measures or rows not in query.dimensions:
        return

    raise unused_words(asked.question.texts("count", "super", "each", "by") or ["?"])


def _refuse_figures_of_one_value(asked: Asked, query: Query) -> None:
    """Refuse the greatest date of one day, or how many values equal one: that says nothing."""
    fixed = {(one.table, one.column) for one in query.dimensions if not one.is_of_time}
    for condition in query.conditions:
        if condition.operator == "=" and condition.column.part is None:
            fixed.add((condition.column.table, condition.column.column))

    for measure in query.measures:
        is_of_one = measure.function in ("count_distinct", "max", "min")
        if is_of_one and (measure.table, measure.column) in fixed and not measure.is_age:
            raise unused_words(asked.question.texts("count", "super", "max", "min", "by") or ["?"])


def _refuse_missing_figures(asked: Asked, query: Query) -> None:
    """Refuse a question for figures that the query does not have."""
    question = asked.question
    if asked.says("avg") and not any(map(_is_average, query.measures)):
        raise unused_words(question.texts("avg"))

    has_running = any(measure.is_running for measure in query.measures)
    if asked.says("running") and not has_running:
        raise unused_words(question.texts("running"))

    asks_for_total = asked.says("sum", "how_many", "how_much")
    if asks_for_total and not _has_answer(asked, query):
        raise unused_words(question.texts("sum", "count"))


def _is_average(measure: Measure) -> bool:
    """Tell whether a figure is an average; a metric may be one."""
    is_over_groups = measure.per is not None
    return is_over_groups or measure.function in ("avg", "metric")


def _refuse_names_alone(asked: Asked, query: Query) -> None:
    """Refuse to answer by a thing that the question only names.

    "how much did Ann spend" is not answered by Ann.
    """
    parts = asked.parts
    question = asked.question
    others = (
        *parts.tables,
        *parts.columns,
        *parts.bare,
        *parts.groups,
        *parts.labels,
        *parts.related,
    )
    if others or _has_answer(asked, query):
        return

    for condition in parts.conditions:
        column = condition.column
        if column.column not in question.facts(column.table).display:
            return

    if question.has("which", "verb"):
        raise unused_words(question.texts("which", "verb"))


def _has_answer(asked: Asked, query: Query) -> bool:
    """Tell whether the query answers by more than listed rows."""
    if query.measures or query.counts_rows:
        return True

    ranks = any(
        not ranking.is_order or ranking.limit is not None for ranking in asked.parts.rankings
    )
    return ranks or bool(asked.parts.thresholds)


def _without_dates_of_verbs(asked: Asked) -> Asked:
    """Leave out a date whose verb only says which events rank people: "who *sold* the most"."""
    if not asked.says("person") or not asked.parts.rankings:
        return asked

    kept = []
    for column in asked.parts.columns:
        is_verb = asked.question.words[column.at].mark.means("verb")
        if not is_verb or not asked.question.is_date(column.link):
            kept.append(column)

    return asked.with_parts(columns=tuple(kept))


def _with_people(asked: Asked, query: Query) -> Query:
    """Show the people beside the events about which the user was asked back.

    "who placed the largest order" lists an order, with who placed it.
    """
    question = asked.question
    is_of_events = not query.measures and not question.facts(query.base).is_entity
    if not is_of_events or question.settled == NOTHING_SETTLED:
        return query

    person = asked.person([query.base])
    if person is None:
        return query

    names = [ColumnRef(person, name) for name in question.facts(person).shown]
    return replace(query, columns=tuple(dict.fromkeys((*names, *query.columns))))


def refuse_lost(asked: Asked, reading: Reading) -> None:
    """Refuse a reading in which words with a meaning found no place."""
    marks = [word.mark for word in asked.question.words]
    lost = list(dict.fromkeys((*reading.lost, *_lost_numbers(asked, reading))))
    unused = []
    for at in lost:
        mark = marks[at]
        if mark.date is not None and mark.date.missing_year:
            raise missing_year(mark.text)

        unused.append(mark.text)

    unknown = unknown_parts(marks, lost)
    if unknown:
        raise unknown_words(unknown, asked.question.lexicon)
    if unused:
        raise unused_words(unused)


def _lost_numbers(asked: Asked, reading: Reading) -> list[int]:
    """Return the places of numbers that were passed over as if they only counted."""
    taken = reading.taken
    lost = []
    for word in asked.question.words:
        is_number = word.mark.number is not None and "date" not in word.senses
        is_passed = is_number and word.at not in taken
        if is_passed or _is_surname(asked, word.at):
            lost.append(word.at)

    return lost


def _is_surname(asked: Asked, at: int) -> bool:
    """Tell whether a character that may count things stands behind a name: `业主姓张`."""
    mark, before = asked.question.words[at].mark, asked.question.word_at(at - 1)
    if before is None or before.noun is None or before.mark.end != mark.start:
        return False

    return before.text.endswith(_SURNAMED) and mark.means("unit")


def refuse_doubts(asked: Asked) -> None:
    """Refuse a word that names several columns equally well, unless the user chose one."""
    for word, links in asked.parts.doubts:
        choices = [(link.table, str(link.column)) for link in links]
        if asked.question.settled.among(choices) is None:
            raise ambiguous_column(word, choices[:_MOST_CHOICES], asked.question.lexicon)


def _with_one_span(asked: Asked) -> Asked:
    """Join periods that are compared, wherever they stand: `上周车流量和上上周相比`."""
    spans = asked.parts.spans
    if len(spans) < 2 or not asked.says("compare", "growth"):
        return asked

    periods: list[Period] = []
    for span in spans:
        is_plain = span.link is None and not span.negated
        if not is_plain or not span.periods[0].grain:
            return asked

        periods += span.periods

    whole = Span(tuple(periods), spans[0].at, compares=True)
    return asked.with_parts(spans=(whole,))


def _with_said_date(asked: Asked) -> Asked:
    """Take a date by which is reckoned for that of the periods: `2024年的金额，按入住日期算`.

    Without a period, or where that is of this date anyway, it is a group like others.
    """
    has_spans = any(span.link is None for span in asked.parts.spans)
    has_units = any(group.dimension.table == NO_TABLE for group in asked.parts.groups)
    if not has_spans and not has_units:
        return asked

    date, groups = _date_of_reckoning(asked)
    if date is None or not asked.question.is_date(date):
        return asked
    if not has_units and _is_usual_date(asked, date):
        return asked

    for place, group in enumerate(groups):
        if group.dimension.table == NO_TABLE:
            dated = replace(group.dimension, table=date.table, column=date.column)
            groups[place] = replace(group, dimension=dated)

    spans = [
        span if span.link is not None else replace(span, link=date) for span in asked.parts.spans
    ]
    return asked.with_parts(groups=tuple(groups), spans=tuple(spans))


def _date_of_reckoning(asked: Asked) -> tuple[Link | None, list[GroupBy]]:
    """Return what the question reckons by, `按入住日期算`, and the other groups."""
    date: Link | None = None
    groups = []
    for group in asked.parts.groups:
        dimension = group.dimension
        after = asked.question.word_at(group.at + 1)
        is_reckoned = group.by and after is not None and after.text in _RECKONED
        if is_reckoned and dimension.column and dimension.bucket in (None, "day"):
            date = column_link(dimension.table, dimension.column)
        else:
            groups.append(group)

    return date, groups


def _is_usual_date(asked: Asked, date: Link) -> bool:
    usual = asked.event_date(date.table)
    return usual == ColumnRef(date.table, str(date.column))


def _with_repeated_texts(asked: Asked) -> Asked:
    """Group rows that are counted by their own title, which several may have: "talks by title"."""
    counted = {figure.table for figure in asked.parts.figures if figure.function == "count"}
    if not asked.parts.figures:
        counted.add(asked.head)

    groups = []
    for group in asked.parts.groups:
        dimension = group.dimension
        title = asked.question.words[group.at].link_as("tcol")
        is_of_rows = dimension.column is None and dimension.via is None
        is_of_rows = is_of_rows and dimension.table in counted
        if is_of_rows and title is not None and title.table == dimension.table:
            dimension = Dimension(title.table, title.column)

        groups.append(replace(group, dimension=dimension))

    return asked.with_parts(groups=tuple(groups))


def _with_both_sides(asked: Asked) -> Asked:
    """Group by a column of which yes and no are named, since no row is both: "paid vs unpaid"."""
    conditions = asked.parts.conditions
    both: dict[ColumnRef, None] = {}
    for one in conditions:
        if one.operator == "true" and replace(one, operator="false") in conditions:
            both[one.column] = None

    sides = [GroupBy(Dimension(one.table, one.column, via=one.via), 0) for one in both]
    return asked.with_parts(
        conditions=tuple(one for one in conditions if one.column not in both),
        groups=(*asked.parts.groups, *sides),
    )


def _with_all_kinds(asked: Asked) -> Asked:
    """Group by a column of which each value is named beside a figure: "number of men and women"."""
    parts = asked.parts
    has_others = bool(parts.groups or parts.rankings) or asked.says("share", "or", "compare")
    counts = bool(parts.figures) and all(figure.function == "count" for figure in parts.figures)
    if asked.about is not None or has_others or not (counts or asked.says("how_many")):
        return asked

    kept, groups = [], []
    for condition in parts.conditions:
        if asked.takes_all_values(condition):
            link = column_link(condition.column.table, condition.column.column)
            groups.append(GroupBy(column_dimension(asked.question, link), 0))
        else:
            kept.append(condition)

    return asked.with_parts(conditions=tuple(kept), groups=tuple(groups))


def _with_whole_names(asked: Asked) -> Asked:
    """Take first and last name side by side for one person in one role.

    In "whose manager is Nancy Fuller", both names are the manager's.
    """
    places = _places_of_names(asked)
    placed = [
        (places.get(_value_of(condition), _NO_PLACE), condition)
        for condition in asked.parts.conditions
    ]
    roles = {}
    for at, one in placed:
        if at != _NO_PLACE and one.column.via:
            roles[at, one.column.table] = one.column.via

    found = []
    for at, one in placed:
        table = one.column.table
        via = one.column.via or roles.get((at - 1, table)) or roles.get((at + 1, table))
        found.append(replace(one, column=replace(one.column, via=via)))

    return asked.with_parts(conditions=tuple(found))


def _places_of_names(asked: Asked) -> dict[tuple[object, ...], int]:
    """Return the place of the word for each stored name: by its table, column and value."""
    found: dict[tuple[object, ...], int] = {}
    for at, link in asked.parts.said:
        if asked.question.display(link):
            found[link.table, link.column, link.value] = at

    return found


def _value_of(condition: Condition) -> tuple[object, ...]:
    return (condition.column.table, condition.column.column, *condition.operands)


def _without_verbs_of_values(asked: Asked) -> Asked:
    """Take a participle for a part of the name of a value's column: "shipped to France".

    That is the `ship_country`, of what is yet to be shipped as well. In a period it is a date.
    """
    if asked.parts.spans:
        return asked

    columns = {
        condition.column for condition in asked.parts.conditions if condition.operator == "="
    }
    verbs = set()
    for word in asked.question.words:
        date = word.link_as("dcol")
        after = asked.question.nearest(word.at + 1, 1, "noise")
        value = after.link_as("val") if after is not None else None
        if date is None or value is None or ref(value) not in columns:
            continue
        if stem(word.text) in map(stem, english_words(str(value.column))):
            verbs.add(ref(date))

    kept = []
    for condition in asked.parts.conditions:
        if condition.operator != "not null" or condition.column not in verbs:
            kept.append(condition)

    return asked.with_parts(conditions=tuple(kept))


def _split_attributes(asked: Asked) -> Asked:
    """Show columns of the thing that is grouped by, instead of grouping by them as well.

    `各公司名称和成立日期` lists the companies with their names and dates.
    """
    parts = asked.parts
    if parts.figures or parts.rankings or len(parts.groups) < 2:
        return asked

    thing, *others = parts.groups
    table = thing.dimension.table
    if table == NO_TABLE or thing.dimension.column is not None:
        return asked

    columns = []
    for other in others:
        dimension = other.dimension
        if dimension.table != table or not dimension.column or dimension.bucket:
            return asked

        columns.append(Named(other.at, column_link(table, dimension.column)))

    return asked.with_parts(groups=(thing,), columns=(*columns, *parts.columns))


_NORMALIZATIONS = (
    _with_repeated_texts,
    _with_said_date,
    _with_both_sides,
    _with_all_kinds,
    _without_dates_of_verbs,
    _with_one_span,
    _with_whole_names,
    _without_verbs_of_values,
    _split_attributes,
)
"""Each returns the question with some of its parts put differently, in this order."""


def _refuse_unplaced_names(asked: Asked, query: Query) -> None:
    """Refuse tables and columns that are named but have no place in the query."""
    lost = [
        *_unplaced_tables(asked, query),
        *_unshown_columns(asked, query),
        *_unanswered_people(asked, query),
        *_unanswered_tables(asked, query),
    ]
    if lost:
        words = asked.question.words
        raise unused_words([words[at].mark.text for at in lost])


def _unplaced_tables(asked: Asked, query: Query) -> list[int]:
    """Return the places of tables that are neither in the query nor above a table that is."""
    spoken = touched(query)
    reachable: set[TableKey] = set()
    for table in spoken:
        reachable |= asked.question.graph.above(table).keys()

    lost = [one.at for one in asked.tables if one.link.table not in reachable]
    averages_rows = any(
        measure.function == "avg" and measure.per is None for measure in query.measures
    )
    if averages_rows:
        # "average revenue of shops" may mean an average over shops, and the query has one over rows
        lost += [one.at for one in asked.tables if one.link.table not in spoken]

    return lost


def _unshown_columns(asked: Asked, query: Query) -> list[int]:
    """Return the places of columns that are neither shown nor of a table that is grouped by."""
    shown = _shown_columns(asked, query)
    grouped = {dimension.table for dimension in query.dimensions if dimension.column is None}
    lost = []
    for column in asked.parts.columns:
        refs = asked.shown_column(column.link, asked.question.words[column.at].mark.text)
        is_shown = any((ref.table, ref.column) in shown for ref in refs)
        is_of_group = any(ref.table in grouped for ref in refs)
        if not is_shown and not is_of_group:
            lost.append(column.at)

    return lost


def _shown_columns(asked: Asked, query: Query) -> set[tuple[TableKey, str]]:
    """Return the columns that the answer shows, or by which it is in order."""
    columns = list(query.columns)
    for order in query.order:
        if order.column is not None:
            columns.append(order.column)

    for dimension in query.dimensions:
        columns += asked.shown_columns(dimension)

    found = {(column.table, column.column) for column in columns}
    for measure in query.measures:
        if measure.per is not None and measure.per.column is not None:
            found.add((measure.per.table, measure.per.column))

    return found


def _unanswered_people(asked: Asked, query: Query) -> list[int]:
    """Return the places of words for "who" where the answer shows no people."""
    if not asked.says("person"):
        return []

    for table in answering_tables(query):
        if asked.question.facts(table).is_person:
            return []

    return [word.at for word in asked.question.words if word.mark.arg == "person"]


def _unanswered_tables(asked: Asked, query: Query) -> list[int]:
    """Return the places of tables after "which" whose rows the answer does not show."""
    question = asked.question
    answering = answering_tables(query)
    lost = []
    for table in asked.tables:
        is_asked = table.role == "asked" and question.means(table.at - 1, "which")
        is_shown = table.link.table in answering or not question.facts(table.link.table).display
        if is_asked and not is_shown:
            lost.append(table.at)

    return lost


def with_all_groups(asked: Asked, query: Query, inclusion: Inclusion) -> Query:
    """Return the query with groups that have no rows.

    Groups by columns of the rows themselves have one for the rows that lack it already.

    Raises:
        Refusal: the groups are not rows of one table, or the words name other groups, or rows that
            belong to none of the groups.
    """
    if _lacks_own_columns(asked, query, inclusion):
        return query

    table = grouped_table(query)
    lost = unused_words([inclusion.text])
    if table is None:
        raise lost

    _refuse_rows_without_group(asked, query, table, inclusion)
    graph = asked.question.graph
    between = graph.below(table).keys() & graph.above(query.base).keys()
    tables = {query.base, table, *between}
    for links in inclusion.named:
        if tables.isdisjoint(link.table for link in links):
            raise lost

    for dimension in (*query.dimensions, *query.top_per):
        if dimension.table not in graph.above(table):
            raise lost

    return replace(query, all_of=table)


def _lacks_own_columns(asked: Asked, query: Query, inclusion: Inclusion) -> bool:
    """Tell whether the words mean rows without the columns of theirs by which is grouped."""
    if not inclusion.says_absent or not query.dimensions or query.top_per:
        return False

    grouped = set()
    for dimension in query.dimensions:
        if dimension.table != query.base or dimension.column is None or dimension.is_of_time:
            return False

        grouped.add((dimension.table, dimension.column))

    missing = {(link.table, str(link.column)) for link in inclusion.missing[:1]}
    schema = asked.question.schema
    return missing <= grouped and all(schema.column(*one).nullable for one in grouped)


def _refuse_rows_without_group(
    asked: Asked, query: Query, table: TableKey, inclusion: Inclusion
) -> None:
    """Refuse to leave out rows that belong to no group where just these may be meant.

    "sailings per captain, including none" may be sailings without a captain.
    """
    if not inclusion.says_absent or not has_reference(asked, query.base, table):
        return

    missing = inclusion.missing[:1]
    is_of_group = bool(missing) and missing[0].table == table
    if is_of_group or inclusion.is_unclear:
        raise unused_words([inclusion.text])


def grouped_table(query: Query) -> TableKey | None:
    """Return the only table, beside the measured one, whose rows or columns are the groups."""
    grouped = list(query.dimensions)
    for measure in query.measures:
        if measure.per is not None:
            grouped.append(measure.per)

    tables = {one.table for one in grouped if one.bucket is None}
    tables.discard(query.base)
    return tables.pop() if len(tables) == 1 else None
