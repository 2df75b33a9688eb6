"""Each stage of the rules by itself, on catalogues that need no server."""

import doctest
from decimal import Decimal

import pytest

import rules
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.values import Catalog
from rules.composing.understanding import understand
from rules.linking.dates import spans_of, whole_period
from rules.linking.linking import nouns_of
from rules.linking.longer_names import longer_name, longer_word
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.linking.moments import Moment, Period, unit_period
from rules.query.query import ColumnRef, Condition, Dimension, Having, Measure, Order, Query
from rules.reading.cover import readings
from rules.reading.patterns import BY_SYMBOL
from rules.reading.words import QuestionWords
from rules.schema.lexicon import lexicon_of
from rules.schema.reference_graph import AmbiguousPath
from rules.sql.render import render
from tests.support.offline_catalogs import AIR, CHINESE, ITEMS, SHOP, STORES

ORDERS: TableKey = ("public", "orders")
CUSTOMERS: TableKey = ("public", "customers")


def test_a_question_passes_through_the_stages() -> None:
    names = {"BY_SYMBOL": BY_SYMBOL, "catalog": SHOP}
    names |= {
        one.__name__: one
        for one in (Inquiry, QuestionWords, lexicon_of, marks_of, nouns_of, readings, understand)
    }
    example = doctest.DocTestParser().get_doctest(rules.__doc__ or "", names, "rules", None, 0)
    assert len(example.examples) > 5
    assert doctest.DocTestRunner().run(example).failed == 0


# ------------------------------------------------------------------------------
# schema


def test_the_schema_says_what_tables_and_columns_are_for() -> None:
    facts = lexicon_of(SHOP).schema.facts
    assert (facts[CUSTOMERS].display, facts[CUSTOMERS].deleted, facts[CUSTOMERS].is_person) == (
        ("name",),
        "is_deleted",
        True,
    )
    assert (facts[ORDERS].dates, facts[ORDERS].is_entity) == (("order_date",), False)
    assert [column.name for column in facts[ORDERS].measures] == ["total_amount"]


def test_the_lexicon_knows_names_values_and_codes() -> None:
    link = lexicon_of(CHINESE).find("营业")[0]
    assert (link.kind, link.column, link.value) == ("value", "state", "1")
    assert [(one.kind, one.column) for one in lexicon_of(SHOP).find("revenue")][:1] == [
        ("column", "total_amount")
    ]
    assert lexicon_of(SHOP).find("weather") == ()


def test_ways_between_tables() -> None:
    graph = lexicon_of(SHOP).graph
    path = graph.up(ORDERS, CUSTOMERS)
    assert path is not None and [edge.columns for edge in path] == [("customer_id",)]
    assert graph.up(CUSTOMERS, ORDERS) is None
    with pytest.raises(AmbiguousPath):
        lexicon_of(AIR).graph.up(("public", "flight"), ("public", "airport"))


# ------------------------------------------------------------------------------
# linking


def marked(question: str, catalog: Catalog = SHOP) -> list[tuple[str, str]]:
    """Each mark with the kind of its intent, of its best link, or of what else it is."""
    return [(mark.text, _kind(mark)) for mark in marks_of(question, lexicon_of(catalog))]


def _kind(mark: Mark) -> str:
    if mark.is_unknown:
        return "unknown"
    if mark.intent is not None:
        return mark.intent.kind
    return mark.links[0].kind if mark.links else "date" if mark.date else "number"


@pytest.mark.parametrize(
    ("question", "marks"),
    [
        ("top 5 customers", [("top", "top"), ("5", "number"), ("customers", "table")]),
        ("customers in Berlin", [("customers", "table"), ("in", "noise"), ("Berlin", "value")]),
        ("orders last month", [("orders", "table"), ("last month", "date")]),
        ("purple orders", [("purple", "unknown"), ("orders", "table")]),
        ("orders over 300", [("orders", "table"), ("over", "cmp"), ("300", "number")]),
    ],
)
def test_marks_cover_a_question(question: str, marks: list[tuple[str, str]]) -> None:
    assert marked(question) == marks


def read(question: str) -> QuestionWords:
    """The words of an English question about the shop."""
    lexicon = lexicon_of(SHOP)
    marks = marks_of(question, lexicon)
    return QuestionWords(marks, nouns_of(marks, lexicon), lexicon, is_chinese=False)


def test_chinese_is_covered_without_blanks() -> None:
    assert marked("门店的租金", CHINESE) == [("门店", "table"), ("的", "of"), ("租金", "column")]
    assert marked("各门店租金", CHINESE)[0] == ("各", "each")


def test_nouns_are_chosen_by_what_stands_around_them() -> None:
    lexicon = lexicon_of(STORES)
    marks = marks_of("门店的租金", lexicon)
    nouns = nouns_of(marks, lexicon)
    found = nouns[-1]
    assert (
        found is not None and found.column is not None and found.column.table == ("public", "store")
    )


def test_nothing_is_read_out_of_a_longer_name() -> None:
    marks = marks_of("PX100A", lexicon_of(ITEMS))
    assert longer_word(marks, 0) == "PX100A"
    people = marks_of("冯晨明的订单", lexicon_of(STORES))
    assert longer_name(people, 0, [True] + [False] * (len(people) - 1), of_person=True) == "冯晨明"


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("去年", unit_period("year", -1)),
        ("last year", unit_period("year", -1)),
        ("上上周", unit_period("week", -2)),
        ("最近三个月", Period(Moment(months=-3), Moment())),
        ("past 3 months", Period(Moment(months=-3), Moment())),
        (
            "去年第二季度",
            Period(Moment(trunc="year", months=-9), Moment(trunc="year", months=-6), "quarter"),
        ),
        (
            "second quarter of last year",
            Period(Moment(trunc="year", months=-9), Moment(trunc="year", months=-6), "quarter"),
        ),
        ("上周五", Period(Moment(trunc="week", days=-3), Moment(trunc="week", days=-2), "day")),
        (
            "friday of last week",
            Period(Moment(trunc="week", days=-3), Moment(trunc="week", days=-2), "day"),
        ),
    ],
)
def test_both_languages_say_the_same_periods(text: str, period: Period) -> None:
    assert whole_period(text) == period


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("2024年3月", "2024-03-01", "2024-04-01"),
        ("march 2024", "2024-03-01", "2024-04-01"),
        ("2024年3月到5月", "2024-03-01", "2024-06-01"),
        ("march to may 2024", "2024-03-01", "2024-06-01"),
        ("2024年3月5日到7日", "2024-03-05", "2024-03-08"),
        ("march 5 to 7, 2024", "2024-03-05", "2024-03-08"),
        ("2024年下半年", "2024-07-01", "2025-01-01"),
        ("second half of 2024", "2024-07-01", "2025-01-01"),
        ("2024 q3", "2024-07-01", "2024-10-01"),
    ],
)
def test_both_languages_say_the_same_dates(text: str, first: str, end: str) -> None:
    period = whole_period(text)
    assert period is not None and period.start is not None and period.end is not None
    assert (str(period.start.day), str(period.end.day)) == (first, end)


@pytest.mark.parametrize(
    "text", ["2024年2月31日", "2024年13月", "2024年3月到15月", "2024年5月到3月", "february 31 2024"]
)
def test_what_no_calendar_has_is_no_period(text: str) -> None:
    assert whole_period(text) is None


def test_a_month_without_its_year_is_marked() -> None:
    assert [span.missing_year for span in spans_of("3月的收入")] == [True]
    assert [span.missing_year for span in spans_of("revenue in march")] == [True]


# ------------------------------------------------------------------------------
# query


@pytest.mark.parametrize(
    ("question", "patterns"),
    [
        ("total amount per city over 1000", ["mcol", "each|by each? {group}", "sum? {compared}"]),
        (
            "customers without orders",
            ["list|which? tab list|which?", "not with? verb? vals? tab vals?"],
        ),
        (
            "the 3 customers with the most orders",
            ["num tab", "{unit}? with? {most} {figure} {unit}?"],
        ),
    ],
)
def test_patterns_cover_a_question(question: str, patterns: list[str]) -> None:
    best = readings(read(question), BY_SYMBOL)[0]
    assert best.lost == ()
    covered = sorted(
        place for fragment in best.fragments for place in range(fragment.start, fragment.end)
    )
    assert len(covered) == len(set(covered))
    assert [fragment.pattern for fragment in best.fragments] == patterns


def test_a_word_that_no_pattern_takes_is_lost() -> None:
    question = read("purple orders")
    best = readings(question, BY_SYMBOL)[0]
    assert [question.words[place].mark.text for place in best.lost] == ["purple"]


def test_the_query_of_a_question() -> None:
    city = ColumnRef(CUSTOMERS, "city")
    total = Measure("sum", ORDERS, "total_amount")
    query = understand(Inquiry("total amount per city over 1000", "en", SHOP)).query
    assert (query.base, query.measures, query.dimensions) == (
        ORDERS,
        (total,),
        (Dimension(CUSTOMERS, "city"),),
    )
    assert query.having == (Having(total, ">", (Decimal(1000),)),)
    count = understand(Inquiry("how many customers live in Berlin", "en", SHOP)).query
    assert (count.measures, count.conditions) == (
        (Measure("count", CUSTOMERS),),
        (Condition(city, "=", ("Berlin",)),),
    )


# ------------------------------------------------------------------------------
# sql


def test_the_statement_of_a_query() -> None:
    total = Measure("sum", ORDERS, "total_amount")
    query = Query(
        ORDERS,
        dimensions=(Dimension(ORDERS, "order_date", "month"),),
        measures=(total,),
        conditions=(Condition(ColumnRef(ORDERS, "status"), "in", ("open", "shipped")),),
        order=(Order(total),),
        limit=3,
    )
    lexicon = lexicon_of(SHOP)
    assert render(query, lexicon.schema, lexicon.graph).splitlines() == [
        (
            "SELECT date_trunc('month', order_date)::date AS \"month\", sum(total_amount) "
            "AS total_total_amount"
        ),
        "FROM orders",
        "WHERE status IN ('open', 'shipped')",
        "GROUP BY date_trunc('month', order_date)::date",
        "ORDER BY total_total_amount DESC NULLS LAST",
        "LIMIT 3",
    ]
