"""From what a question wants and restricts to one `Query`, or a refusal that says what is missing.

`understand` is the only entry; it reads the question, decides which table answers it, gives every wish and condition its
place, and refuses when a meaningful word found none.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from agent.skills.offline.asks import AskReader, Asks, Figure, Ranking
from agent.skills.offline.dates import Period, Unit
from agent.skills.offline.filters import FilterReader, Filters, Span, Threshold, ref
from agent.skills.offline.joins import AmbiguousPath, is_default
from agent.skills.offline.lexicon import Lexicon, lexicon_of
from agent.skills.offline.links import Link, column_link
from agent.skills.offline.linking import Noun
from agent.skills.offline.marks import marks_of
from agent.skills.offline.atoms import stem, words_of
from agent.skills.offline.naming import comment_names, english_words, label
from agent.skills.offline.query import (
    ColumnRef,
    Condition,
    Dimension,
    Function,
    Having,
    Measure,
    Operator,
    Order,
    Query,
    Related,
)
from agent.skills.offline.reading import ColumnIdentity, Reading
from agent.skills.offline.refusals import (
    Refusal,
    ambiguous_column,
    ambiguous_way,
    missing_measure,
    no_date_column,
    not_connected,
    not_understood,
    unknown_words,
    unsupported,
    unused_words,
)
from agent.skills.offline.render import Unrenderable, render
from agent.skills.offline.schema import TableKey, is_year, kind_of
from agent.skills import Inquiry
from common.text import language_of


@dataclass(frozen=True)
class Understanding:
    """A question understood: the structure, its statement, and what the user should know about the reading."""

    query: Query
    sql: str
    warnings: tuple[str, ...] = ()


def understand(inquiry: Inquiry) -> Understanding:
    """The structure and the statement of a question.

    Raises:
        Refusal: rules can't answer it.
    """
    lexicon = lexicon_of(inquiry.catalog)
    marks = marks_of(inquiry.question, lexicon)
    avoided: frozenset[ColumnIdentity] = frozenset()
    for is_last in (False, True):
        reading = Reading(marks, lexicon, inquiry.table, language_of(inquiry.question) == "zh", avoided)
        _refuse_unknown(reading)
        try:
            planner = Planner(reading)
            query = planner.plan()
            query, sql = _rendered(planner, query)
        except AmbiguousPath as ambiguity:
            raise ambiguous_way(ambiguity.target, ambiguity.choices, lexicon) from ambiguity
        except (Unrenderable, LookupError) as failure:
            avoided = planner.measured_columns()
            if is_last or not avoided:
                raise _unconnected(reading, lexicon) from failure
        else:
            return Understanding(query, sql, tuple(warning.to(inquiry.lang) for warning in planner.warnings))
    raise AssertionError("the last turn returns or raises")


def _rendered(planner: "Planner", query: Query) -> tuple[Query, str]:
    """The statement; where several references lead to a table, through the one whose name the question says."""
    schema, graph = planner.lexicon.schema, planner.lexicon.graph
    try:
        return query, render(query, schema, graph)
    except AmbiguousPath as ambiguity:
        via = planner.said_reference(ambiguity)
        if via is None:
            raise
        query = with_role(query, ambiguity.target, via)
        return query, render(query, schema, graph)


def with_role(query: Query, table: TableKey, via: str) -> Query:
    """The query with every mention of `table` reached through the referencing column `via`."""

    def column(ref_: ColumnRef) -> ColumnRef:
        return replace(ref_, via=via) if ref_.table == table and ref_.via is None else ref_

    def dimension(dim: Dimension) -> Dimension:
        return replace(dim, via=via) if dim.table == table and dim.via is None else dim

    return replace(
        query,
        columns=tuple(map(column, query.columns)),
        dimensions=tuple(map(dimension, query.dimensions)),
        top_per=tuple(map(dimension, query.top_per)),
        conditions=tuple(replace(one, column=column(one.column)) for one in query.conditions),
        order=tuple(replace(one, column=column(one.column)) if one.column else one for one in query.order),
    )


def _refuse_unknown(reading: Reading) -> None:
    for index in reading.having("unsupported"):
        mark = reading.marks[index]
        raise unsupported(mark.arg, mark.text)


def _unconnected(reading: Reading, lexicon: Lexicon) -> Refusal:
    tables = [
        noun.table.table for noun in reading.nouns if noun is not None and noun.table is not None and noun.is_table
    ]
    keys = list(dict.fromkeys(tables))
    names = [label(lexicon.schema.table(key)) for key in keys]
    if len(names) >= 2:
        return not_connected(names[0], names[1])
    return not_understood(lexicon)


class Planner:
    """Builds the structure for one reading."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.lexicon = reading.lexicon
        self._filters: Filters = FilterReader(reading).read()
        if unknown := reading.unknown():
            raise unknown_words([mark.text for mark in unknown], reading.lexicon)
        restricted = frozenset(condition.column.table for condition in self._filters.conditions)
        self._asks: Asks = AskReader(reading, restricted).read()
        self._asks.compare = self._asks.compare or self._filters.compares
        self.warnings: list = []
        self._head: TableKey | None = None
        self._projection: list[Link] = []
        self._bare: list[Figure] = []
        self._named_at: dict[int, Link] = {}
        self._tables: list[tuple[int, TableKey]] = []

    def plan(self) -> Query:
        """The structure.

        Raises:
            Refusal: something is missing, ambiguous, or found no place.
        """
        self._sort_heads()
        self._split_attributes()
        query = self._ranked() if self._rankings() else self._measured() if self._figures() else self._listed()
        query = self._filtered(query)
        self._refuse_leftovers(query)
        self._refuse_unplaced(query)
        return query

    # ---------------------------------------------------------------------------------------------------------- heads

    def _sort_heads(self) -> None:
        """Splits the nouns left over into the asked table, plain measures and shown columns."""
        reading = self._reading
        tables: list[tuple[int, TableKey]] = []
        for index in self._asks.heads:
            noun = reading.nouns[index]
            assert noun is not None
            measure = reading.measure(index)
            if measure is not None and not (noun.is_table and self._is_plain_table(index, noun, measure)):
                self._bare.append(Figure(None, measure, position=index))
            elif noun.is_table and noun.table is not None:
                tables.append((index, noun.table.table))
            elif (link := self._column(index)) is not None and not self._attributes(index, link):
                self._projection.append(link)
                self._named_at[index] = link
            reading.use(index)
        for index in list(reading.having("count")):
            if not (tables or self._asks.figures or self._bare or self._projection) and self._filters.conditions:
                reading.use(index)  # "how many records have no amount": rows of the condition's table
                self._asks.figures.append(
                    Figure("count", table=self._filters.conditions[0].column.table, position=index)
                )
        self._tables = tables
        named = tables or self._asks.qualifiers
        if not reading.is_chinese:
            named = sorted([*tables, *self._asks.qualifiers])
        self._head = self._choose_head(named)

    def _split_attributes(self) -> None:
        """`各公司名称和成立日期`: columns of the very thing grouped by are shown, not grouped by."""
        dimensions = self._asks.dimensions
        if self._asks.figures or self._asks.rankings or len(dimensions) < 2 or dimensions[0].column is not None:
            return
        own = [dim for dim in dimensions[1:] if dim.table == dimensions[0].table and dim.column and not dim.bucket]
        if len(own) == len(dimensions) - 1:
            self._asks.dimensions = dimensions[:1]
            for place, dim in enumerate(own):
                link = column_link(dim.table, str(dim.column))
                self._projection.append(link)
                self._named_at[-1 - place] = link

    def _column(self, index: int) -> Link | None:
        """The column a noun left over shows; a plain "name" is that of the thing named beside it."""
        owner = self._reading.named_thing(index)
        if owner is not None:
            return column_link(owner, self._reading.facts(owner).display[-1])
        return self._reading.pick(index)

    def _attributes(self, index: int, link: Link) -> bool:
        """`shipped orders`, `注册用户`: the verb of a date beside the table says that the date is there."""
        reading = self._reading
        if not reading.is_date(link) or link.quality >= 0.9 or not 0.68 <= link.quality:
            return False
        for step in (1, -1):
            skip = ("noise", "of", "verb") if step == 1 else ("noise", "verb")
            place = reading.beside(index, step, skip, through_used=False)
            noun = reading.nouns[place] if place is not None else None
            if noun is not None and noun.is_table and noun.table is not None and noun.table.table == link.table:
                self._filters.conditions.append(Condition(ref(link), "not null"))
                return True
        return False

    def _is_plain_table(self, index: int, noun: Noun, measure: Link) -> bool:
        """Whether a word that names a table and one of its measures means the table."""
        if noun.table is None:
            return False
        return measure.quality < noun.table.quality - 0.08 or (
            self._reading.facts(noun.table.table).is_entity and measure.table != noun.table.table
        )

    def _choose_head(self, tables: list[tuple[int, TableKey]]) -> TableKey | None:
        """The table whose rows answer: after `which`, else the last one in Chinese and the first in English."""
        if not tables:
            return None
        reading = self._reading
        for index, key in tables:
            before = reading.beside(index, -1, ("noise", "of", "unit", "top", "super"))
            if before is not None and reading.marks[before].means("which"):
                return key
        return tables[-1][1] if reading.is_chinese else tables[0][1]

    def _rankings(self) -> list[Ranking]:
        return self._asks.rankings

    def _figures(self) -> bool:
        """Whether the answer is figures rather than rows."""
        if self._asks.figures or self._asks.share:
            return True
        if self._counts_implied():
            self._asks.figures.append(Figure("count", table=self._head))
            return True
        if not self._bare:
            return False
        if self._grouped_dimensions():
            return not self._is_attribute_listing()
        return self._bare_is_total()

    def _counts_implied(self) -> bool:
        """`orders by status`: rows of a thing by group, without a figure, are counted."""
        compared = self._asks.compare and any(len(span.periods) > 1 for span in self._filters.spans)
        if self._head is not None and not self._bare and not self._projection and compared:
            return True
        grouped = any(dimension.table != self._head for dimension in self._asks.dimensions)
        plain = self._head is not None and not self._bare and not self._projection and grouped
        return plain and any(mark.means("by", "bucket") for mark in self._reading.marks)

    def _grouped_dimensions(self) -> bool:
        return bool(self._asks.dimensions or self._asks.trend)

    def _is_attribute_listing(self) -> bool:
        """`各店铺的月租金`: the measure is an attribute of the very entity it is asked for."""
        dimensions = self._asks.dimensions
        return (
            len(dimensions) == 1
            and dimensions[0].column is None
            and dimensions[0].bucket is None
            and all(figure.link is not None and figure.link.table == dimensions[0].table for figure in self._bare)
            and self._reading.facts(dimensions[0].table).is_entity
        )

    def _bare_is_total(self) -> bool:
        """Whether plain measures are to be added up: measures of events are, attributes of things are shown."""
        figure = self._bare[0]
        assert figure.link is not None
        facts = self._reading.facts(figure.link.table)
        if self._head is not None and self._head != figure.link.table:
            return figure.link.table not in self._reading.graph.above(self._head)
        if not facts.is_entity and facts.edges:
            return not self._asks.lists or self._head is None
        return False

    # ------------------------------------------------------------------------------------------------------- measures

    def _measure(self, figure: Figure, default: Function | None = None) -> Measure:
        if figure.link is None:
            assert figure.table is not None
            return Measure("count", figure.table)
        column = self._reading.column_of(figure.link)
        is_age = figure.link.derived == "age"
        averaged = is_age or (figure.link.factor is None and self._reading.facts(figure.link.table).is_averaged(column))
        function = figure.function or default or ("avg" if averaged else "sum")
        if figure.per_unit is not None:
            per = Dimension(figure.link.table, self._date_column(figure.link.table, figure.per_unit), figure.per_unit)
            return Measure("sum", figure.link.table, figure.link.column, per=per)
        return Measure(function, figure.link.table, figure.link.column, figure.link.factor, is_age=is_age)

    def _date_column(self, table: TableKey, what: str = "") -> str:
        found = self._event_date(table)
        if found is None or found.table != table:
            raise no_date_column(label(self._reading.schema.table(table)) + (f" ({what})" if what else ""))
        return found.column

    def _measured(self) -> Query:
        figures = sorted([*self._asks.figures, *self._bare], key=lambda figure: figure.position)
        if not figures:
            figures = self._shared_figure()
        measures = list(dict.fromkeys(self._measure(figure) for figure in figures))
        base = measures[0].table
        dimensions = [dim for dim in self._dimensions(base, measures) if not self._is_each_row(dim, measures)]
        if self._asks.per_entity is not None:
            return self._average_per_entity(measures, dimensions)
        if self._asks.share:
            return self._share(base, measures, dimensions)
        query = Query(base, dimensions=tuple(dimensions), measures=tuple(measures))
        return replace(query, order=self._group_order(query))

    def _share(self, base: TableKey, measures: list[Measure], dimensions: list[Dimension]) -> Query:
        """Shares of groups in the total, or, without groups, of what meets the conditions in everything."""
        if dimensions:
            measures += [replace(measure, is_share=True) for measure in measures]
            query = Query(base, dimensions=tuple(dimensions), measures=tuple(measures))
            return replace(query, order=self._group_order(query))
        part = tuple(self._filters.conditions)
        above = self._reading.graph.above(base)
        if not part or self._filters.thresholds or len(measures) != 1 or any(one.column.table not in above for one in part):
            raise unused_words([mark.text for mark in self._reading.marks if mark.means("share")])
        self._filters.conditions.clear()
        return Query(base, measures=(replace(measures[0], is_share=True, share_of=part),))

    def _is_each_row(self, dimension: Dimension, measures: list[Measure]) -> bool:
        """`average fare per trip`: per row of the measured events is no group."""
        same = dimension.column is None and dimension.bucket is None and dimension.table == measures[0].table
        return same and not self._reading.facts(dimension.table).is_entity and measures[0].function == "avg"

    def _shared_figure(self) -> list[Figure]:
        """A share of nothing named counts the rows of the asked table."""
        if self._head is None:
            raise not_understood(self._reading.lexicon)
        return [Figure("count", table=self._head)]

    def _average_per_entity(self, measures: list[Measure], dimensions: list[Dimension]) -> Query:
        """`平均每个服务区有多少店铺`: one figure, the average over entities."""
        entity = dimensions[0] if dimensions else Dimension(self._head) if self._head else None
        if entity is None:
            raise unused_words([self._reading.marks[self._asks.per_entity or 0].text])
        return Query(measures[0].table, measures=(replace(measures[0], per=entity),))

    def _group_order(self, query: Query) -> tuple[Order, ...]:
        if not query.dimensions:
            return ()
        if any(dimension.bucket for dimension in query.dimensions):
            return (Order(descending=False),)
        return (Order(measure=query.measures[0]), Order(descending=False))

    def _dimensions(self, base: TableKey, measures: list[Measure]) -> list[Dimension]:
        """Groups said, with dates resolved; plus things named beside a figure of something else."""
        dimensions = [self._resolved(dimension, base) for dimension in self._asks.dimensions]
        if self._asks.trend and not any(dimension.bucket for dimension in dimensions):
            dimensions.insert(0, self._trend(base))
        if self._asks.compare and not dimensions:
            dimensions += [Dimension(column.table, column.column) for column in self._filters.compared]
            grains = {period.grain for span in self._filters.spans if len(span.periods) > 1 for period in span.periods}
            if len(grains) == 1 and (grain := grains.pop()) is not None:
                dimensions.append(self._resolved(Dimension(("", ""), None, grain), base))
        if not dimensions:
            dimensions = self._implied_dimensions(measures)
        return list(dict.fromkeys(dimensions))

    def _resolved(self, dimension: Dimension, base: TableKey) -> Dimension:
        if dimension.table != ("", ""):
            return dimension
        date = self._span_date(base)
        if date is None:
            raise no_date_column(label(self._reading.schema.table(base)))
        if is_year(self._reading.schema.column(date.table, date.column)):
            if dimension.bucket != "year":
                raise no_date_column(label(self._reading.schema.table(base)))
            return Dimension(date.table, date.column)
        return Dimension(date.table, date.column, dimension.bucket)

    def _trend(self, base: TableKey) -> Dimension:
        unit: Unit = "month"
        for span in self._filters.spans:
            if span.periods[0].grain in ("day", "week", "month") or self._is_short(span):
                unit = "day"
        return self._resolved(Dimension(("", ""), None, unit), base)

    def _is_short(self, span: Span) -> bool:
        start = span.periods[0].start
        return (
            start is not None and start.day is None and start.trunc == "day" and start.months == 0 and start.days >= -62
        )

    def _implied_dimensions(self, measures: list[Measure]) -> list[Dimension]:
        """`服务区的店铺数量`, "customers and their number of orders": per thing named, unless it is restricted."""
        found: list[Dimension] = []
        measured = {measure.table for measure in measures}
        explicit_total = any(figure.function in ("sum", "avg", "max", "min") for figure in self._asks.figures)
        for index, key in self._tables:
            if key in measured or not self._reading.facts(key).is_entity:
                continue
            asked = self._is_asked(index)
            if asked or (self._reading.is_chinese and not explicit_total and not self._is_restricted()):
                found.append(Dimension(key))
        if found:
            return found
        for index, link in self._named_at.items():
            if self._is_asked(index) or self._asks.which or self._asks.lists:
                found.append(AskReader(self._reading).column_dimension(link))
        return found

    def _is_asked(self, index: int) -> bool:
        reading = self._reading
        before = reading.beside(index, -1, ("noise", "of", "unit"))
        return before is not None and reading.marks[before].means("list", "which")

    def _is_restricted(self) -> bool:
        filters = self._filters
        return bool(filters.conditions or filters.related)

    # ------------------------------------------------------------------------------------------------------- rankings

    def _ranked(self) -> Query:
        ranking = self._asks.rankings[0]
        if len(self._asks.rankings) > 1:
            return self._ranked_twice()
        if ranking.figure is None and not ranking.hint:
            ranking.figure = self._implied_figure(ranking)
        if ranking.is_value and ranking.figure is not None:
            return self._extreme_value(ranking)
        entity = self._ranked_entity(ranking)
        figure = ranking.figure or self._hinted_figure(ranking, entity)
        if ranking.hint.endswith("date") and ranking.hint:
            pass
        return self._ranked_by(ranking, figure, entity)

    def _ranked_twice(self) -> Query:
        """Highest and lowest of one figure, as values."""
        rankings = self._asks.rankings
        if not all(ranking.is_value or ranking.figure is None for ranking in rankings):
            raise unused_words([self._reading.marks[ranking.position].text for ranking in rankings])
        link = next((ranking.figure.link for ranking in rankings if ranking.figure is not None), None)
        if link is None:
            raise unused_words([self._reading.marks[ranking.position].text for ranking in rankings])
        for ranking in rankings:
            self._asks.figures.append(Figure("max" if ranking.descending else "min", link, position=ranking.position))
        self._asks.rankings.clear()
        return self._measured()

    def _implied_figure(self, ranking: Ranking) -> Figure | None:
        """A figure named elsewhere: a count asked for, or the one plain measure."""
        if self._asks.figures:
            return self._asks.figures.pop(0)
        if self._bare:
            return self._bare.pop(0)
        return None

    def _extreme_value(self, ranking: Ranking) -> Query:
        figure = ranking.figure
        assert figure is not None
        function: Function = "max" if ranking.descending else "min"
        if figure.function is not None:
            raise unused_words([self._reading.marks[ranking.position].text])
        self._asks.figures.insert(0, replace_figure(figure, function))
        self._asks.rankings.clear()
        return self._measured()

    def _ranked_entity(self, ranking: Ranking) -> Dimension | None:
        """The thing ranked: the asked table, else the asked column, else the only group."""
        if self._head is not None and self._head != (ranking.figure.table if ranking.figure else None):
            return Dimension(self._head)
        for index, link in self._named_at.items():
            if not self._asks.dimensions or self._is_asked(index):
                self._projection.remove(link)
                return AskReader(self._reading).column_dimension(link)
        if self._asks.dimensions:
            return self._asks.dimensions.pop()
        if self._head is not None:
            return Dimension(self._head)
        return None

    def _hinted_figure(self, ranking: Ranking, entity: Dimension | None) -> Figure:
        """The column an adjective speaks of: the price of the cheapest, the date of the latest."""
        reading = self._reading
        name = (
            label(reading.schema.table(entity.table))
            if entity and entity.table != ("", "")
            else reading.marks[ranking.position].text
        )
        if entity is None or entity.table == ("", "") or not ranking.hint:
            raise missing_measure(name, self._measure_labels(entity))
        link = concept_column(reading, entity.table, ranking.hint)
        if link is None:
            raise missing_measure(name, self._measure_labels(entity))
        if ranking.hint == "date" or (ranking.hint == "age" and reading.is_date(link)):
            ranking.descending = ranking.descending if ranking.hint == "date" else not ranking.descending
        return Figure(None, link)

    def _measure_labels(self, entity: Dimension | None) -> list[str]:
        if entity is None or entity.table == ("", ""):
            return []
        facts = self._reading.facts(entity.table)
        return [label(column) for column in facts.table.columns if facts.is_measure(column)][:4]

    def _ranked_by(self, ranking: Ranking, figure: Figure, entity: Dimension | None) -> Query:
        limit = ranking.limit if not ranking.is_order else self._asks.limit
        if limit is None and not ranking.is_order:
            limit = 1
        self._asks.limit = None
        link = figure.link
        if entity is None and link is not None:
            entity = Dimension(link.table)
        if entity is None:
            raise missing_measure(self._reading.marks[ranking.position].text, [])
        if link is not None and figure.function is None and self._is_attribute(link, entity):
            return self._ranked_rows(ranking, link, entity, limit)
        return self._ranked_groups(ranking, figure, entity, limit)

    def _is_attribute(self, link: Link, entity: Dimension) -> bool:
        """Whether the figure is a column of the ranked thing itself (or of something above it)."""
        if entity.column is not None or entity.bucket is not None:
            return False
        return link.table in self._reading.graph.above(entity.table) and (
            link.table == entity.table or not self._reading.facts(link.table).edges or True
        )

    def _ranked_rows(self, ranking: Ranking, link: Link, entity: Dimension, limit: int | None) -> Query:
        facts = self._reading.facts(entity.table)
        columns = [ColumnRef(entity.table, name) for name in facts.display or self._all_columns(entity.table)]
        columns += [ref(shown) for shown in self._projection]
        columns += [ref(bare.link) for bare in self._bare if bare.link is not None]
        columns.append(ref(link))
        top_per = tuple(self._resolved(dimension, entity.table) for dimension in self._asks.dimensions)
        columns = [ColumnRef(dim.table, name) for dim in top_per for name in self._shown(dim)] + columns
        order = (Order(column=ref(link), descending=ranking.descending), *self._tie_break(entity.table))
        return Query(
            entity.table, tuple(dict.fromkeys(columns)), order=order, limit=limit, top_per=top_per if limit else ()
        )

    def _tie_break(self, table: TableKey) -> tuple[Order, ...]:
        facts = self._reading.facts(table)
        return tuple(
            Order(column=ColumnRef(table, name), descending=False) for name in (facts.key or facts.display)[:2]
        )

    def _shown(self, dimension: Dimension) -> tuple[str, ...]:
        facts = self._reading.facts(dimension.table)
        return (dimension.column,) if dimension.column else facts.display or facts.key

    def _ranked_groups(self, ranking: Ranking, figure: Figure, entity: Dimension, limit: int | None) -> Query:
        default: Function | None = None
        if figure.link is not None and self._reading.facts(figure.link.table).is_averaged(
            self._reading.column_of(figure.link)
        ):
            default = "max" if ranking.descending else "min"
        if figure.link is not None and not self._reading.is_measure(figure.link):
            if not self._reading.is_date(figure.link):
                raise missing_measure(self._reading.marks[ranking.position].text, self._measure_labels(entity))
            default = "max" if ranking.descending else "min"
        measure = self._measure(figure, default)
        entity = self._resolved(entity, measure.table)
        others = [self._measure(other) for other in [*self._asks.figures, *self._bare]]
        top_per = tuple(self._resolved(dimension, measure.table) for dimension in self._asks.dimensions)
        if ranking.is_order:
            entity_dimensions, top_per = (*top_per, entity), ()
        else:
            entity_dimensions = (*top_per, entity)
        order = (Order(measure=measure, descending=ranking.descending), Order(descending=False))
        measures = tuple(dict.fromkeys((measure, *others)))
        return Query(
            measure.table,
            dimensions=tuple(dict.fromkeys(entity_dimensions)),
            measures=measures,
            order=order,
            limit=limit,
            top_per=top_per,
        )

    # ------------------------------------------------------------------------------------------------------- listings

    def _listed(self) -> Query:
        thresholds = [threshold for threshold in self._filters.thresholds if self._is_aggregate(threshold)]
        base = self._listed_base()
        if base is None:
            raise not_understood(self._reading.lexicon)
        if thresholds:
            return Query(base, dimensions=(Dimension(base),))
        columns = self._listed_columns(base)
        limit, self._asks.limit = self._asks.limit, None
        if self._asks.dimensions and not self._is_attribute_listing():
            raise unused_words([mark.text for mark in self._reading.marks if mark.means("each", "by")])
        distinct = self._is_distinct(base, columns)
        order = () if distinct else self._tie_break(base)
        return Query(base, tuple(columns), order=order, limit=limit, distinct=distinct)

    def _listed_base(self) -> TableKey | None:
        if self._is_attribute_listing():
            return self._asks.dimensions[0].table
        shown = [link.table for link in self._projection] + [figure.link.table for figure in self._bare if figure.link]
        candidates = [*([self._head] if self._head else []), *shown]
        candidates += [key for _, key in self._tables]
        candidates += [dimension.table for dimension in self._asks.dimensions if dimension.table != ("", "")]
        if not candidates:
            candidates = self._condition_tables()
        if not candidates:
            return None
        graph = self._reading.graph
        base = candidates[0]
        for key in shown:
            if key not in graph.above(base) and base in graph.above(key):
                base = key
        return base

    def _condition_tables(self) -> list[TableKey]:
        return [condition.column.table for condition in self._filters.conditions][:1]

    def _listed_columns(self, base: TableKey) -> list[ColumnRef]:
        shown = sorted(
            [(index, link) for index, link in self._named_at.items()]
            + [(figure.position, figure.link) for figure in self._bare if figure.link is not None],
            key=lambda item: item[0],
        )
        columns = [column for index, link in shown for column in self._shown_column(index, link)]
        others = [
            key
            for index, key in self._tables
            if key != base and key in self._reading.graph.above(base) and (key != self._head or self._is_joined(index))
        ]
        facts = self._reading.facts(base)
        if self._is_attribute_listing() or (others and columns == []):
            columns = [ColumnRef(base, name) for name in facts.display] + columns
        if columns:
            columns += [ColumnRef(key, name) for key in others for name in self._reading.facts(key).display]
            return list(dict.fromkeys(columns))
        if self._asks.which and facts.display:
            return [ColumnRef(base, name) for name in facts.display]
        return [ColumnRef(base, name) for name in self._all_columns(base)]

    def _is_joined(self, index: int) -> bool:
        """Whether the noun stands after an `and`."""
        before = self._reading.beside(index, -1, ("noise", "of"))
        return before is not None and self._reading.marks[before].means("and")

    def _shown_column(self, index: int, link: Link) -> list[ColumnRef]:
        """A reference is shown by the name of what it points to, unless its number is asked for."""
        facts = self._reading.facts(link.table)
        if link.column in facts.display and self._reading.named_thing(index) == link.table:
            return [ColumnRef(link.table, name) for name in facts.display]
        says_key = re.search(r"(?i)\bids?\b|编号|编码|代码|id$", self._reading.marks[index].text)
        for edge in facts.edges:
            display = self._reading.facts(edge.parent).display
            if edge.columns == (link.column,) and display and not says_key:
                via = link.column if edge.parent == link.table or not is_default(edge) else None
                return [ColumnRef(edge.parent, name, via) for name in display]
        return [ref(link)]

    def _all_columns(self, table: TableKey) -> list[str]:
        facts = self._reading.facts(table)
        names = [column.name for column in facts.table.columns if not facts.is_housekeeping(column)]
        return names or [column.name for column in facts.table.columns]

    def _is_distinct(self, base: TableKey, columns: list[ColumnRef]) -> bool:
        """A listing of categories, or one that was asked to be: each value once."""
        if self._asks.distinct:
            return True
        asked = [index for index in self._named_at if self._is_asked(index)]
        whose = self._asks.which or any(mark.means("list") and "哪些" in mark.text for mark in self._reading.marks)
        if whose and asked and len(columns) == 1 and not self._is_display(columns[0]):
            return True
        facts = self._reading.facts(base)
        identifying = {*facts.key, *facts.display}
        if self._head is not None or any(column.column in identifying for column in columns):
            return False
        return all(
            kind_of(self._reading.schema.column(column.table, column.column)) in ("text", "boolean")
            for column in columns
        )

    def _is_display(self, column: ColumnRef) -> bool:
        facts = self._reading.facts(column.table)
        return column.column in (*facts.display, *facts.key)

    # ----------------------------------------------------------------------------------------------------- conditions

    def _filtered(self, query: Query) -> Query:
        """The query with every condition in its place."""
        filters = self._filters
        query = self._with_thresholds(query)
        query = self._with_spans(query)
        conditions = (*query.conditions, *filters.conditions)
        query = replace(
            query, conditions=tuple(dict.fromkeys(conditions)), with_deleted=frozenset(filters.with_deleted)
        )
        related = [*query.related, *filters.related]
        query, lacking = self._lacking(query)
        related = self._with_existence(query, [*related, *lacking])
        return self._counted(replace(query, related=tuple(related)))

    def _lacking(self, query: Query) -> tuple[Query, list[Related]]:
        """`没有加油站的服务区`: another value somewhere below is no answer; there must be no row with that value."""
        below = self._reading.graph.below(query.base)
        above = self._reading.graph.above(query.base)
        kept: list[Condition] = []
        lacking: list[Related] = []
        for condition in query.conditions:
            key, operator = condition.column.table, _POSITIVE.get(condition.operator)
            if operator is not None and key not in above and key in below and not query.dimensions:
                positive = replace(condition, operator=operator)
                lacking.append(Related(key, (positive,), negated=True))
            else:
                kept.append(condition)
        return replace(query, conditions=tuple(kept)), lacking

    def _with_existence(self, query: Query, related: list[Related]) -> list[Related]:
        """Tables merely mentioned below the listed one: "customers with orders"."""
        used = {query.base, *(column.table for column in query.columns), *(dim.table for dim in query.dimensions)}
        used |= {measure.table for measure in query.measures} | {one.table for one in related}
        used |= {condition.column.table for condition in query.conditions}
        above = self._reading.graph.above(query.base)
        for index, key in self._tables:
            if key not in used and key not in above:
                before = self._reading.beside(index, -1, ("noise", "of", "unit"))
                if before is not None and self._reading.marks[before].means("with", "and", "verb"):
                    related.append(Related(key))
        return related

    def _is_aggregate(self, threshold: Threshold) -> bool:
        """Whether a comparison is about a figure of the asked thing, not about one of its columns."""
        if threshold.function is not None or threshold.table is not None:
            return True
        link, head = threshold.link, self._head
        if link is None or head is None:
            return False
        return link.table not in self._reading.graph.above(head)

    def _with_thresholds(self, query: Query) -> Query:
        for threshold in self._filters.thresholds:
            query = self._with_threshold(query, threshold)
        return query

    def _with_threshold(self, query: Query, threshold: Threshold) -> Query:
        if threshold.hint:
            link = concept_column(self._reading, query.base, threshold.hint)
            if link is None:
                raise missing_measure(label(self._reading.schema.table(query.base)), [])
            threshold.link = (
                replace(link, derived="age") if threshold.hint == "age" and self._reading.is_date(link) else link
            )
        if threshold.link is None and threshold.table is None:
            threshold.link = self._implied_threshold(query)
        grouped = bool(query.measures and query.dimensions)
        aggregated = self._is_aggregate(threshold)
        if (
            threshold.link is not None
            and not aggregated
            and not (grouped and self._compares_figure(query, threshold.link))
        ):
            condition = Condition(ref(threshold.link), threshold.operator, threshold.operands)
            return replace(query, conditions=(*query.conditions, condition))
        figure = Figure(threshold.function, threshold.link, threshold.table)  # type: ignore[arg-type]
        measure = self._measure(figure)
        having = Having(measure, threshold.operator, threshold.operands)
        return self._with_having(query, having)

    def _implied_threshold(self, query: Query) -> Link | None:
        """`超过5个的服务区` after the measure was already taken: compare the figure asked for."""
        measure = next((measure for measure in query.measures), None)
        if measure is None and (only := self._only_measure(query.base)) is not None:
            return only
        if measure is None or measure.column is None:
            words = [mark.text for mark in self._reading.marks if mark.means("cmp", "between")]
            raise unused_words(words or ["?"])
        return column_link(measure.table, measure.column)

    def _only_measure(self, table: TableKey) -> Link | None:
        """The measure of a table that has just one ("invoices over 15")."""
        facts = self._reading.facts(table)
        names = [column.name for column in facts.table.columns if facts.is_measure(column)]
        return column_link(table, names[0]) if len(names) == 1 else None

    def _compares_figure(self, query: Query, link: Link) -> bool:
        return any(measure.column == link.column and measure.table == link.table for measure in query.measures)

    def _with_having(self, query: Query, having: Having) -> Query:
        if not query.dimensions:
            if query.measures and query.measures[0].column is None and query.measures[0].function == "count":
                entity = query.measures[0].table
                query = replace(
                    query, measures=(having.measure,), dimensions=(Dimension(entity),), base=entity, counts_rows=True
                )
            else:
                raise unused_words([mark.text for mark in self._reading.marks if mark.means("cmp", "between")])
        measures = query.measures or (having.measure,)
        if having.measure.table not in {measure.table for measure in measures}:
            raise unused_words([mark.text for mark in self._reading.marks if mark.means("cmp", "between")])
        order = query.order or (Order(measure=measures[0]), Order(descending=False))
        if query.counts_rows:
            order = ()
        return replace(query, base=measures[0].table, measures=measures, having=(*query.having, having), order=order)

    def _counted(self, query: Query) -> Query:
        return replace(query, limit=self._asks.limit) if self._asks.limit and query.limit is None else query

    # ---------------------------------------------------------------------------------------------------------- dates

    def _with_spans(self, query: Query) -> Query:
        plain = [span for span in self._filters.spans if span.link is None]
        if len(plain) > 1 and not _are_bounds(plain):
            raise unused_words([mark.text for mark in self._reading.marks if mark.date is not None])
        for span in self._filters.spans:
            date = (ref(span.link) if span.link else None) or self._span_date(query.base)
            if date is None:
                raise self._no_date(query.base)
            query = replace(query, conditions=(*query.conditions, *self._during(date, span)))
        return query

    def _no_date(self, table: TableKey) -> Refusal:
        facts = self._reading.facts(table)
        word = label(facts.table)
        choices = [(table, name) for name in facts.dates]
        return ambiguous_column(word, choices, self._reading.lexicon) if choices else no_date_column(word)

    def _during(self, date: ColumnRef, span: Span) -> list[Condition]:
        """The period as a condition on a date column, or on a column of years."""
        if not is_year(self._reading.schema.column(date.table, date.column)):
            return [Condition(date, "not during" if span.negated else "during", tuple(span.periods))]
        found: list[Condition] = []
        for period in span.periods:
            found += year_conditions(date, period)
        if not found or (len(span.periods) > 1 and any(condition.operator != "=" for condition in found)):
            raise no_date_column(label(self._reading.schema.table(date.table)))
        if len(found) > 1 and len(span.periods) > 1:
            return [Condition(date, "in", tuple(condition.operands[0] for condition in found))]
        return found

    def _span_date(self, base: TableKey) -> ColumnRef | None:
        """The date that dates the base's rows: its own, or that of the event it is a part of."""
        for related in self._filters.related:
            if related.table in self._reading.graph.below(base):
                found = self._event_date(related.table)
                if found is not None:
                    return found
        return self._event_date(base)

    def _event_date(self, table: TableKey) -> ColumnRef | None:
        """The date of a row's event: its own, its year, or the date of the one event it is a part of."""
        facts = self._reading.facts(table)
        own = self._default_date(table)
        if own is not None:
            return ColumnRef(table, own)
        if facts.year is not None:
            return ColumnRef(table, facts.year)
        steps = sorted(self._reading.graph.above(table).items(), key=lambda item: item[1])
        parents = [key for key, distance in steps if 0 < distance < 2 and not self._reading.facts(key).is_entity]
        dated = [ColumnRef(key, date) for key in parents if (date := self._default_date(key)) is not None]
        return dated[0] if len(dated) == 1 else None

    def _default_date(self, table: TableKey) -> str | None:
        """The date meant when none is named: things have many dates, so only their registration is taken for granted."""
        facts = self._reading.facts(table)
        if not facts.is_entity:
            return facts.dates[0] if facts.dates else None
        registered = [name for name in facts.dates if REGISTERED.search(name)]
        return registered[0] if registered else None

    # ------------------------------------------------------------------------------------------------------ leftovers

    def measured_columns(self) -> frozenset[ColumnIdentity]:
        """What the figures were taken from, so that another reading of the same words can be tried."""
        figures = [*self._asks.figures, *self._bare, *(ranking.figure for ranking in self._asks.rankings)]
        return frozenset((figure.link.table, figure.link.column) for figure in figures if figure and figure.link)

    def said_reference(self, ambiguity: AmbiguousPath) -> str | None:
        """The one referencing column of which a word stands in the question ("trips *started* at Harbor")."""
        said = {stem(word) for mark in self._reading.marks for word in words_of(mark.text)}
        target = {stem(word) for word in words_of(ambiguity.target[1])}
        scored = []
        for key, column in ambiguity.choices:
            names = [column, *comment_names(self._reading.schema.column(key, column).comment)] if column else []
            words = {stem(word) for name in names for word in english_words(name)} - target - {"id"}
            scored.append((len(words & said), column))
        scored.sort(reverse=True)
        return scored[0][1] if scored[0][0] > 0 and (len(scored) == 1 or scored[0][0] > scored[1][0]) else None

    def _refuse_unplaced(self, query: Query) -> None:
        """Tables and columns that were named must show up somewhere, or at least lie on the way up."""
        touched = _touched(query)
        reachable = {key for table in touched for key in self._reading.graph.above(table)}
        lost = [self._reading.marks[index].text for index, key in self._tables if key not in reachable]
        shown = {(column.table, column.column) for column in query.columns}
        shown |= {(dim.table, dim.column or name) for dim in query.dimensions for name in self._shown(dim)}
        shown |= {(order.column.table, order.column.column) for order in query.order if order.column is not None}
        shown |= {
            (column.table, column.column)
            for index, link in self._named_at.items()
            if query.columns
            for column in [ColumnRef(link.table, str(link.column))]
            if set(self._shown_column(index, link)) <= set(query.columns)
        }
        for index, link in self._named_at.items():
            if (link.table, link.column) not in shown and not self._is_reference_to(link, query):
                lost.append(self._reading.marks[index].text)
        if lost:
            raise unused_words(lost)

    def _is_reference_to(self, link: Link, query: Query) -> bool:
        """Whether the column only points to a thing that is shown or grouped by."""
        grouped = {dimension.table for dimension in query.dimensions if dimension.column is None}
        facts = self._reading.facts(link.table)
        return any(edge.columns == (link.column,) and edge.parent in grouped for edge in facts.edges) or (
            link.table in grouped and link.column in facts.key
        )

    def _refuse_leftovers(self, query: Query) -> None:
        left = self._reading.leftovers()
        if query.measures or self._named_at or self._bare:
            left = [mark for mark in left if not mark.means("count")]  # "is how much" asks for what is there already
        if left:
            raise unused_words([mark.text for mark in left])


def _are_bounds(spans: list[Span]) -> bool:
    """Whether several periods are one beginning and one end ("since 2022 … until 2024")."""
    starts = [span for span in spans if span.periods[0].start is None]
    ends = [span for span in spans if span.periods[0].end is None]
    return len(spans) == 2 and len(starts) == len(ends) == 1


def _touched(query: Query) -> set[TableKey]:
    """Tables that the structure mentions."""
    keys = {query.base, *(column.table for column in query.columns), *(measure.table for measure in query.measures)}
    keys |= {dimension.table for dimension in (*query.dimensions, *query.top_per)}
    keys |= {condition.column.table for condition in query.conditions}
    keys |= {having.measure.table for having in query.having}
    return keys | {related.table for related in query.related}


def year_conditions(column: ColumnRef, period: Period) -> list[Condition]:
    """A period of whole calendar years as conditions on a number column; empty when it is no such period."""
    bounds = [moment for moment in (period.start, period.end) if moment is not None]
    if any(moment.day is None or (moment.day.month, moment.day.day) != (1, 1) for moment in bounds):
        return []
    if period.grain == "year" and period.start is not None and period.start.day is not None:
        return [Condition(column, "=", (Decimal(period.start.day.year),))]
    found = []
    if period.start is not None and period.start.day is not None:
        found.append(Condition(column, ">=", (Decimal(period.start.day.year),)))
    if period.end is not None and period.end.day is not None:
        found.append(Condition(column, "<", (Decimal(period.end.day.year),)))
    return found


def replace_figure(figure: Figure, function: Function) -> Figure:
    """The figure with another function."""
    return Figure(function, figure.link, figure.table, figure.position)


_POSITIVE: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not contains": "contains"}
# Dates that say since when a thing has been known, in identifiers.
REGISTERED = re.compile(r"^(created?|regist|sign_?up|join|hire|enrol|admission|入职|注册|加入|创建)", re.IGNORECASE)
_HINTS = {
    "price": (
        "price",
        "cost",
        "unit price",
        "fee",
        "fare",
        "total amount",
        "amount",
        "total",
        "价格",
        "单价",
        "费用",
        "金额",
    ),
    "length": ("length", "duration", "时长", "长度"),
    "weight": ("weight", "重量"),
    "height": ("height", "高度", "身高"),
    "age": ("age", "birth date", "年龄", "出生日期"),
    "rating": ("rating", "score", "评分"),
    "salary": ("salary", "工资"),
    "quantity": ("quantity", "sales", "销量", "数量"),
    "population": ("population", "人口"),
}


def concept_column(reading: Reading, table: TableKey, hint: str) -> Link | None:
    """The table's column for a concept that only an adjective names."""
    facts = reading.facts(table)
    if hint == "date":
        return column_link(table, facts.dates[0]) if facts.dates else None
    for name in _HINTS[hint]:
        for link in reading.lexicon.find(name):
            if (
                link.kind == "column"
                and link.table == table
                and link.quality >= 0.5
                and (reading.is_measure(link) or reading.is_date(link))
            ):
                return link
    return None
