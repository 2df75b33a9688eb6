"""What the rules make of a semantic file, over a database whose names say little."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from common.inquiry import Inquiry
from common.text import Lang, language_of
from common.values import Catalog, NoSql, QueryResult, Sql, Turn
from databases.execution.guarded import GuardedDatabase
from knowledge.semantic.semantic_binding import bind
from knowledge.semantic.semantic_format import read_text
from rules.composing.understanding import Understanding
from rules.conversation.conversation import understand_in_context
from rules.query.query import Query
from rules.query.query_json import from_json
from rules.skills import OfflineSkills
from tests.support.databases import open_asked, rows_of

SKILLS = OfflineSkills()
DDL = """
CREATE TABLE ort (nr int PRIMARY KEY, kurz text NOT NULL, lang text NOT NULL,
    is_deleted text NOT NULL DEFAULT 'nein');
INSERT INTO ort VALUES (1, 'B', 'Berlin'), (2, 'P', 'Paris'), (3, 'R', 'Rom');
INSERT INTO ort VALUES (4, 'O', 'Oslo', 'ja');
CREATE TABLE laden (nr int PRIMARY KEY, name text, art text, zustand text, sitz int, lager int,
    FOREIGN KEY (sitz) REFERENCES ort, FOREIGN KEY (lager) REFERENCES ort);
INSERT INTO laden VALUES (1, 'Ada', 'K1', 'a', 1, 2), (2, 'Bob', 'K2', 'a', 1, 3), (3, 'Cid', 'K1',
    'z', 2, 1);
CREATE TABLE bon (nr int PRIMARY KEY, laden int NOT NULL REFERENCES laden, tag date NOT NULL,
    gebucht date NOT NULL,
    betrag numeric NOT NULL, posten int NOT NULL, weg text NOT NULL);
INSERT INTO bon VALUES
    (1, 1, '2024-01-05', '2024-02-01', 10, 1, 'x'), (2, 1, '2024-01-20', '2024-02-01', 30, 3, 'y'),
    (3, 2, '2024-02-10', '2024-03-01', 100, 2, 'x'), (4, 3, '2024-02-11', '2024-03-01', 7, 7, 'y');
"""
FILE = """
tables:
  ort:
    names: {zh: [城市], en: [city, town]}
    label: lang
    filter: is_deleted = 'nein' OR is_deleted = ''
    columns:
      lang: {values: {Rom: {zh: 罗马, en: Rome}}}
  laden:
    names: {zh: [店铺, 门店], en: [shop, store]}
    label: name
    filter: zustand <> 'z'
    joins: [{columns: sitz, to: ort}]
    columns:
      art:
        names: {zh: [类别], en: [category, kind of shop]}
        kind: true
        values: {K1: {zh: 面包店, en: bakery}, K2: {zh: 书店, en: [bookshop, bookstore]}}
      zustand:
        names: {zh: [状态], en: [state]}
        values: {a: {zh: 营业, en: open}, z: {zh: 停业, en: [closed, shut down]}}
  bon:
    names: {zh: [小票], en: [receipt, sale]}
    date: gebucht
    verbs: {en: [rang up]}
    columns:
      betrag:
        names: {zh: [金额, 收入], en: [takings, revenue]}
        unit: {zh: 元, en: EUR}
        most: {en: [busiest], zh: [最忙]}
      posten: {names: {zh: [件数], en: [items sold]}, least: {en: [quietest]}}
      tag: {names: {zh: [购买日期], en: [purchase date]}}
      weg:
        names: {zh: [支付方式], en: [payment method]}
        values: {x: {zh: 现金, en: cash}, y: {zh: 刷卡, en: card}}
metrics:
  item_value:
    {names: {zh: [件均价], en: [value per item]}, table: bon, expression: sum(betrag) / sum(posten),
     unit: {zh: 元, en: EUR}}
  cash_takings:
    {names: {zh: [现金收入], en: [cash takings]}, table: bon, expression: sum(betrag),
     filter: weg = 'x'}
  early:
    {names: {en: [early takings]}, table: bon, expression: sum(betrag), date: tag, grain: [laden]}
"""


class Asked:
    """The database with what the file says of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database: GuardedDatabase = open_asked(url, pool_size=1)
        bound = bind(read_text(FILE.encode(), "file"), asyncio.run(self.database.catalog()))
        assert bound.problems == ()
        self.catalog: Catalog = bound.catalog

    def inquiry(
        self, question: str, history: tuple[Turn, ...] = (), lang: Lang | None = None
    ) -> Inquiry:
        return Inquiry(question, lang or language_of(question), self.catalog, history=history)

    def draft(self, question: str, history: tuple[Turn, ...] = ()) -> Sql | NoSql:
        return asyncio.run(SKILLS.write_sql(self.inquiry(question, history))).value

    def sql(self, question: str, *history: Turn) -> str:
        """The statement, which the guard lets pass."""
        draft = self.draft(question, history)
        assert isinstance(draft, Sql), draft
        self.database.check(draft.text)
        return draft.text

    def rows(self, question: str, *history: Turn) -> list[tuple[Any, ...]]:
        """The rows, figures as numbers."""
        found = rows_of(self.url, self.sql(question, *history))
        return [tuple(_plain(value) for value in row) for row in found]

    def turn(self, question: str) -> Turn:
        """The question as one that was answered."""
        draft = self.draft(question)
        assert isinstance(draft, Sql)
        at, sql, understood = "2026-01-01T00:00:00.000Z", draft.text, draft.understood
        return Turn("r", question, "DATABASE", "hybrid", "", at, sql, 1, understood=understood)

    def summary(self, question: str, lang: Lang | None = None) -> str:
        """The answer in words."""
        inquiry = self.inquiry(question, lang=lang)
        sql = self.sql(question)
        result: QueryResult = asyncio.run(self.database.run(sql))
        return asyncio.run(SKILLS.summarize(inquiry, sql, result)).value


def _plain(value: Any) -> Any:
    return (
        value
        if isinstance(value, str | type(None)) or hasattr(value, "isoformat")
        else round(float(value), 2)
    )


@pytest.fixture(scope="module")
def asked(make_database: Callable[[str], str]) -> Iterator[Asked]:
    asked = Asked(make_database(DDL))
    with closing(asked.database):
        yield asked


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        # names of tables, columns and values, in both languages; plurals; the label shows a row
        ("takings by shop", [("Bob", 100), ("Ada", 40)]),
        ("各店铺的收入", [("Bob", 100), ("Ada", 40)]),
        ("total takings by payment method", [("x", 110), ("y", 37)]),
        ("现金和刷卡的收入分别是多少", [("x", 110), ("y", 37)]),
        ("how much revenue by cash", [(110,)]),
        ("towns", [("Berlin",), ("Paris",), ("Rom",)]),
        ("how many cities", [(3,)]),
        ("how many cities including deleted", [(4,)]),
        # a value that names a kind of thing
        ("how many bakeries", [(1,)]),
        ("takings of bookshops", [(100,)]),
        ("list all bookstores", [("Bob",)]),
        ("which cities have a bakery", [("Berlin",)]),
        ("cities with more than 1 bakery", []),
        # periods are about the date column, unless another is named
        ("takings in February 2024", [(40,)]),
        ("takings with a purchase date in February 2024", [(107,)]),
        # the join to take
        ("number of shops per city", [("Berlin", 2)]),
        ("takings by city", [("Berlin", 140)]),
        # what holds unless the question says otherwise
        ("how many shops", [(2,)]),
        ("how many closed shops", [(1,)]),
        ("number of shops by state", [("a", 2), ("z", 1)]),
        ("停业的店铺有多少", [(1,)]),
        ("cities without shops", [("Paris",), ("Rom",)]),
        ("cities with closed shops", [("Paris",)]),
        ("takings of closed shops", [(7,)]),
        # metrics: alone, by group, by period, ranked, compared, with others
        ("value per item", [(11.31,)]),
        ("件均价是多少", [(11.31,)]),
        ("value per item by shop", [("Bob", 50), ("Ada", 10)]),
        ("各店铺的件均价", [("Bob", 50), ("Ada", 10)]),
        ("shop with the highest value per item", [("Bob", 50)]),
        ("shops with a value per item over 20", [("Bob", 50)]),
        ("cash takings", [(110,)]),
        ("cash takings by shop", [("Bob", 100), ("Ada", 10)]),
        ("takings and value per item by shop", [("Bob", 100, 50), ("Ada", 40, 10)]),
        ("takings, items sold and value per item by shop", [("Bob", 100, 2, 50), ("Ada", 40, 4,
         10)]),
        ("cash takings and takings by shop", [("Bob", 100, 100), ("Ada", 10, 40)]),
        ("early takings in January 2024", [(40,)]),
        ("early takings by shop", [("Bob", 100), ("Ada", 40)]),
        # adjectives
        ("the busiest shop", [("Bob", 100)]),
        ("最忙的店铺", [("Bob", 100)]),
        ("the quietest shop", [("Bob", 2)]),
    ],
)  # fmt: skip
def test_what_the_file_says_is_understood(
    asked: Asked, question: str, rows: list[tuple[object, ...]]
) -> None:
    found = asked.rows(question)
    shown = [
        tuple(value for value in row if value in expected)
        for row, expected in zip(found, rows, strict=False)
    ]
    assert (len(found), shown) == (len(rows), rows), asked.sql(question)


def test_value_per_item_by_month(asked: Asked) -> None:
    assert [row[1] for row in asked.rows("monthly value per item in 2024")] == [
        10,
        pytest.approx(11.89),
    ]


@pytest.mark.parametrize(
    "question",
    [
        "early takings by payment method",
        "highest value per item of all sales",
        "share of value per item by shop",
    ],
)
def test_a_metric_is_not_bent(asked: Asked, question: str) -> None:
    assert isinstance(asked.draft(question), NoSql)


def test_a_metric_goes_on_in_a_follow_up_and_is_gone_with_its_file(asked: Asked) -> None:
    first = asked.turn("value per item by shop")
    assert asked.rows("and by payment method?", first) == [("x", 36.67), ("y", 3.7)]
    assert asked.rows("only bakeries", first) == [("Ada", 10)]
    assert first.understood is not None
    assert from_json(Query, first.understood, asked.catalog) is not None
    without = Catalog(asked.catalog.tables, asked.catalog.search_path)
    assert from_json(Query, first.understood, without) is None


def test_an_answer_is_labelled_in_its_language_with_units(asked: Asked) -> None:
    assert asked.summary("takings by shop").startswith(
        "2 rows. Total takings is highest for Bob (100.00 EUR) and lowest for Ada (40.00 EUR)."
    )
    assert asked.summary("takings by shop", "zh").startswith(
        "共 2 条记录。金额合计最高的是Bob（100.00元）"
    )
    assert asked.summary("value per item") == "Value per item: 11.31 EUR."
    assert asked.summary("件均价是多少") == "件均价为 11.31元。"


def test_an_answer_says_which_filter_held(asked: Asked) -> None:
    assert "By default only those of \"shop\" count that fulfil zustand <> 'z'." in asked.summary(
        "how many shops"
    )
    assert "默认只计入满足 zustand <> 'z' 的“店铺”。" in asked.summary("各店铺的收入")
    assert "By default" not in asked.summary("how many closed shops")
    assert "By default" not in asked.summary("how many cities")  # deleted ones are told nowhere
    made = understand_in_context(asked.inquiry("total takings"))
    assert isinstance(made, Understanding)
    assert made.assumptions == ()  # no shop takes part


def test_unknown_words_stay_unknown(asked: Asked) -> None:
    draft = asked.draft("how many libraries")
    assert isinstance(draft, NoSql)
    assert draft.reason == "missing_database_info"
