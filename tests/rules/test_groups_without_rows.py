"""Groups without rows count where the words say so: held against SQL that looks at every group by
itself.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, NoSql, Sql, Turn
from databases.execution.guarded import GuardedDatabase
from rules.composing.understanding import Understanding
from rules.conversation.conversation import understand_in_context
from rules.query.query_json import to_json
from rules.skills import OfflineSkills
from tests.support.cases import all_cases
from tests.support.databases import open_asked, rows_of
from tests.support.offline_catalogs import SALES_BY_TWO, SHOP, STORES
from tests.support.offline_questions import same_rows


class Pair(NamedTuple):
    """Things, and rows that belong to them, as people and as tables.

    Attributes:
        things, rows: what a condition keeps of them, if any, is behind the table's name.
        key, reference: the columns that tie them.
        name: what shows a thing.
        one, many, events: what they are called.
    """

    things: str
    rows: str
    key: str
    reference: str
    name: str
    one: str
    many: str
    events: str

    def counts(self, condition: str = "TRUE") -> str:
        """Every thing with its number of rows, counted one thing after the other."""
        rows, _, kept_rows = self.rows.partition(" WHERE ")
        things, _, kept_things = self.things.partition(" WHERE ")
        count = (
            f"SELECT count(*) FROM {rows} r WHERE r.{self.reference} = g.{self.key} AND {condition}"
            f" AND {kept_rows or 'TRUE'}"
        )
        return (
            f"SELECT {self.name} AS name, ({count}) AS n FROM {things} g "
            f"WHERE {kept_things or 'TRUE'}"
        )


PAIRS = {
    "music": [
        Pair("artist", "album", "artist_id", "artist_id", "g.name", "artist", "artists", "albums"),
        Pair("genre", "track", "genre_id", "genre_id", "g.name", "genre", "genres", "tracks"),
        Pair(
            "customer",
            "invoice",
            "customer_id",
            "customer_id",
            "g.first_name",
            "customer",
            "customers",
            "invoices",
        ),
    ],
    "hr": [
        Pair(
            "departments",
            "employees WHERE deleted_at IS NULL",
            "department_id",
            "department_id",
            "g.department_name",
            "department",
            "departments",
            "employees",
        ),
        Pair(
            "departments",
            "projects",
            "department_id",
            "department_id",
            "g.department_name",
            "department",
            "departments",
            "projects",
        ),
    ],
    "store": [
        Pair(
            "customers",
            "orders",
            "customer_id",
            "customer_id",
            "g.first_name",
            "customer",
            "customers",
            "orders",
        ),
        Pair(
            "products",
            "reviews",
            "product_id",
            "product_id",
            "g.product_name",
            "product",
            "products",
            "reviews",
        ),
        Pair(
            "suppliers",
            "products",
            "supplier_id",
            "supplier_id",
            "g.company_name",
            "supplier",
            "suppliers",
            "products",
        ),
    ],
    "bike": [
        Pair(
            '"Rider"',
            '"Trip"',
            '"RiderId"',
            '"RiderId"',
            'g."FullName"',
            "rider",
            "riders",
            "trips",
        ),
        Pair('"Bike"', '"Trip"', '"BikeId"', '"BikeId"', 'g."BikeId"', "bike", "bikes", "trips"),
    ],
    "lib": [
        Pair(
            "t_reader",
            "t_borrow",
            "reader_id",
            "reader_id",
            "g.reader_name",
            "读者",
            "",
            "借阅记录",
        ),
        Pair(
            "t_publisher",
            "t_book WHERE is_del = 0",
            "publisher_id",
            "publisher_id",
            "g.publisher_name",
            "出版社",
            "",
            "图书",
        ),
        Pair(
            "t_book WHERE is_del = 0",
            "t_borrow",
            "book_id",
            "book_id",
            "g.title",
            "图书",
            "",
            "借阅记录",
        ),
    ],
    "clinic": [
        Pair("患者", "就诊记录", "患者编号", "患者编号", "g.姓名", "患者", "", "就诊记录"),
        Pair("科室", "医生", "科室编号", "科室编号", "g.科室名称", "科室", "", "医生"),
    ],
    "mall": [
        Pair(
            "tb_user WHERE is_deleted = 0",
            "tb_order",
            "user_id",
            "user_id",
            "g.nickname",
            "用户",
            "",
            "订单",
        ),
        Pair("tb_category", "tb_goods", "cat_id", "cat_id", "g.cat_name", "商品分类", "", "商品"),
    ],
}
AVERAGES = (
    "average number of {events} per {one} including {many} without {events}",
    "average number of {events} per {one}, even those without",
    "average number of {events} per {one}, counting {many} that have no {events}",
    "average number of {events} per {one}, {many} without {events} included",
    "average number of {events} per {one}, all {many} counted",
    "average number of {events} per {one} across all {many}",
    "平均每个{one}有多少{events}，包括没有{events}的{one}",
    "平均每个{one}有多少{events}，没有{events}的{one}也算",
    "平均每个{one}有多少{events}（含没有{events}的）",
    "平均每个{one}有多少{events}，所有{one}都算",
)
LISTS = (
    "number of {events} per {one} including those with none",
    "number of {events} per {one}, {many} without {events} count as zero",
    "每个{one}的{events}数量，没有{events}的也要列出来",
    "包括没有{events}的{one}在内，每个{one}的{events}数量",
)
FEW = ("which {many} have fewer than 2 {events}", "哪些{one}的{events}数量少于2")


@pytest.fixture(scope="module")
def foreign(
    offline_database: Callable[[str], str],
) -> Iterator[dict[str, tuple[GuardedDatabase, str]]]:
    made = {}
    for name in PAIRS:
        url = offline_database(name)
        made[name] = (open_asked(url), url)
    yield made
    for database, _ in made.values():
        database.close()


def _asked(pair: Pair, templates: tuple[str, ...]) -> list[str]:
    """The questions in the language that the pair's names are in."""
    lang = language_of(pair.one)
    return [
        template.format(**pair._asdict()) for template in templates if language_of(template) == lang
    ]


def _answer(database: GuardedDatabase, url: str, question: str) -> list[tuple[object, ...]]:
    catalog = asyncio.run(database.catalog())
    draft = asyncio.run(
        OfflineSkills().write_sql(Inquiry(question, language_of(question), catalog))
    ).value
    assert isinstance(draft, Sql), draft
    database.check(draft.text)
    return rows_of(url, draft.text)


@pytest.mark.parametrize("name", PAIRS)
def test_groups_without_rows_count_where_the_words_say_so(
    foreign: dict[str, tuple[GuardedDatabase, str]], name: str
) -> None:
    database, url = foreign[name]
    with all_cases() as cases:
        for pair in PAIRS[name]:
            average = rows_of(url, f"SELECT avg(n) FROM ({pair.counts()}) AS one")
            assert average != rows_of(
                url, f"SELECT avg(n) FROM ({pair.counts()}) AS one WHERE n > 0"
            )
            few = f"SELECT name FROM ({pair.counts()}) AS one WHERE n < 2"
            wanted = {AVERAGES: average, LISTS: rows_of(url, pair.counts()), FEW: rows_of(url, few)}
            for templates, rows in wanted.items():
                for question in _asked(pair, templates):
                    with cases.case(question):
                        assert same_rows(rows, _answer(database, url, question))


# A question with the SQL that a person wrote for it: conditions keep rows from being counted, and
# no group from being there, unless they are about the groups themselves.
CONDITIONS = {
    "store": {
        "average number of orders per customer in 2024, including customers without orders": """
            SELECT avg((SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id
                        AND o.order_date >= '2024-01-01' AND o.order_date < '2025-01-01'))
                            FROM customers c""",
        "number of delivered orders per customer, including those without": """
            SELECT first_name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id
                                AND status = 'delivered') FROM customers c""",
        "total order amount per customer including customers without orders": """
            SELECT first_name, coalesce((SELECT sum(total_amount) FROM orders o
                                         WHERE o.customer_id = c.customer_id), 0)
                                             FROM customers c""",
        "average rating of reviews per product including products without reviews": """
            SELECT product_name, (SELECT avg(rating) FROM reviews r
                WHERE r.product_id = p.product_id)
            FROM products p""",
        "average number of reviews per product in the Books category, "
        "even products without reviews": """
            SELECT avg((SELECT count(*) FROM reviews r WHERE r.product_id = p.product_id))
                FROM products p
            WHERE category_id IN (SELECT category_id FROM categories
                WHERE category_name = 'Books')""",
        "number of products per category including categories without products": """
            SELECT category_name, (SELECT count(*) FROM products p
                WHERE p.category_id = c.category_id)
            FROM categories c""",
        "total quantity of order items per category including categories without": """
            SELECT category_name, coalesce((SELECT sum(quantity) FROM order_items JOIN products p
                USING (product_id)
                                            WHERE p.category_id = c.category_id), 0)
                                                FROM categories c""",
    },
    "mall": {
        "2024年每个用户的订单数，没有订单的也算": """
            SELECT nickname, (SELECT count(*) FROM tb_order o WHERE o.user_id = u.user_id
                              AND order_time >= '2024-01-01' AND order_time < '2025-01-01')
            FROM tb_user u WHERE is_deleted = 0""",
        "每个用户的实付金额合计，包括没有订单的用户": """
            SELECT nickname, coalesce((SELECT sum(pay_amount) FROM tb_order o
                WHERE o.user_id = u.user_id), 0)
            FROM tb_user u WHERE is_deleted = 0""",
    },
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_restrict_what_is_counted_not_the_groups(
    foreign: dict[str, tuple[GuardedDatabase, str]], name: str
) -> None:
    with all_cases() as cases:
        for question, gold in CONDITIONS[name].items():
            with cases.case(question):
                assert same_rows(rows_of(foreign[name][1], gold), _answer(*foreign[name], question))


PER_CUSTOMER = "average number of orders per customer"
OF_ALL = f"{PER_CUSTOMER} including those without orders"


def _read(question: str, history: tuple[Turn, ...] = (), catalog: Catalog = SHOP) -> Understanding:
    made = understand_in_context(Inquiry(question, language_of(question), catalog, history=history))
    assert isinstance(made, Understanding), made
    return made


def _sql(question: str, history: tuple[Turn, ...] = (), catalog: Catalog = SHOP) -> str:
    return _read(question, history, catalog).sql


def test_without_the_words_groups_without_rows_do_not_count() -> None:
    assert "LEFT JOIN" not in _sql(PER_CUSTOMER)
    assert "LEFT JOIN" in _sql(OF_ALL)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (
            PER_CUSTOMER,
            'Only those of "customers" that have "orders" are counted; to count all, add',
        ),
        (OF_ALL, 'Those of "customers" without "orders" count as 0.'),
        (
            "which customers have fewer than 3 orders",
            'Those of "customers" without "orders" count as 0.',
        ),
        (
            "average total amount per customer including customers without orders",
            'Those of "customers" without "orders" have no such figure.',
        ),
    ],
)
def test_an_answer_says_what_stands_for_groups_without_rows(question: str, says: str) -> None:
    assert says in " ".join(assumption.en for assumption in _read(question).assumptions)


def _turn(question: str, catalog: Catalog, before: tuple[Turn, ...] = ()) -> Turn:
    asked_at, made = "2026-01-01T00:00:00.000Z", _read(question, before, catalog)
    understood = to_json(made.query)
    return Turn(
        "run",
        question,
        "DATABASE",
        "hybrid",
        "6",
        asked_at,
        made.sql,
        1,
        ("average",),
        ((6,),),
        understood,
    )


@pytest.mark.parametrize(
    "follow_up",
    [
        "including those without orders",
        "even customers with no orders",
        "and including those without?",
    ],
)
def test_a_follow_up_lets_all_groups_count(follow_up: str) -> None:
    assert _sql(follow_up, (_turn(PER_CUSTOMER, SHOP),)) == _sql(OF_ALL)


@pytest.mark.parametrize("follow_up", ["包括没有订单的", "没有订单的员工也算", "没有的也算上呢"])
def test_a_chinese_follow_up_lets_all_groups_count(follow_up: str) -> None:
    before = _turn("平均每个员工有多少订单", STORES)
    assert _sql(follow_up, (before,), STORES) == _sql(
        "平均每个员工有多少订单，没有的也算", (), STORES
    )


def test_a_follow_up_for_few_means_none_as_well() -> None:
    before = _turn("which customers have more than 5 orders", SHOP)
    assert _sql("fewer than 3 orders", (before,)) == _sql(
        "which customers have fewer than 3 orders"
    )


def test_later_follow_ups_keep_what_counts_while_the_groups_stay() -> None:
    first = _turn("number of orders per customer", SHOP)
    second = _turn("including those without orders", SHOP, (first,))
    in_berlin = "number of orders per customer in Berlin including those without orders"
    assert _sql("only in Berlin", (first, second)) == _sql(in_berlin)
    assert _sql("by status instead", (first, second)) == _sql("number of orders by status")


@pytest.mark.parametrize(
    ("question", "catalog"), [(PER_CUSTOMER, SHOP), ("平均每个员工有多少订单", STORES)]
)
def test_the_offered_words_are_understood(question: str, catalog: Catalog) -> None:
    lang = language_of(question)
    said = _read(question, (), catalog).assumptions[0].to(lang)
    offered = re.split('["“”]', said)[-2]
    assert "LEFT JOIN" in _sql(f"{question}, {offered}", (), catalog)


@pytest.mark.parametrize(
    "question",
    [
        # Other groups than those without sales
        "number of sales per agent including agents without customers",
        "number of sales per agent per month including agents without sales",  # of which month?
        "number of sales per month including months without sales",  # no table has the months
        "average quantity including those without sales",  # no groups
    ],
)
def test_words_that_fit_no_groups_are_not_passed_over(question: str) -> None:
    draft = asyncio.run(OfflineSkills().write_sql(Inquiry(question, "en", SALES_BY_TWO))).value
    assert isinstance(draft, NoSql), draft


def test_words_about_rows_stay_conditions() -> None:
    assert "NOT EXISTS" in _sql("customers without orders too")
