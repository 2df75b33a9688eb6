"""Questions with two likely meanings, which are asked back with both as choices, and figures whose
plain reading would mislead.
"""

from dataclasses import replace

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, NoSql, Sql, Table
from rules.answering.alternatives import rewrites
from rules.composing.understanding import Understanding, understand
from rules.query.refusals import Refusal
from tests.support.rule_conversations import draft, kept


def _table(name: str, *columns: Column, refers: tuple[str, ...] = ()) -> Table:
    """Return a table whose key is its first column; it refers to others by the names of theirs."""
    keys = tuple(
        ForeignKey((f"{refer}_id",), ("public", refer), (f"{refer}_id",)) for refer in refers
    )
    key = Column(f"{name}_id", "integer", nullable=False)
    references = (Column(f"{refer}_id", "integer") for refer in refers)
    return Table(
        "public",
        name,
        "table",
        (key, *references, *columns),
        primary_key=(key.name,),
        foreign_keys=keys,
    )


AUTHOR = _table(
    "author",
    Column("full_name", "text"),
    Column("nationality", "text", values=("German", "Irish")),
)
BOOK = _table(
    "book",
    Column("title", "text"),
    Column("category", "text", values=("Fiction", "Science")),
    Column("pages", "integer"),
    refers=("author",),
)
MEMBER = _table(
    "member",
    Column("full_name", "text"),
    Column("gender", "text", values=("F", "M"), is_complete=True),
)
FINE = _table(
    "fine",
    Column("amount", "numeric", nullable=True),
    Column("reason", "text", values=("late", "damage")),
    Column("issued_on", "date"),
    refers=("member",),
)
EMPLOYEE = _table("employee", Column("full_name", "text"))
PRODUCT = _table("product", Column("product_name", "text"))
ORDERS = _table("orders", Column("order_date", "date"), refers=("employee",))
LINE = _table(
    "order_line",
    Column("unit_price", "numeric"),
    Column("quantity", "integer"),
    Column("discount", "real", nullable=False),
    refers=("orders", "product"),
)
RATED = _table("product", Column("product_name", "text"), Column("stars", "numeric"))
LIBRARY = Catalog((AUTHOR, BOOK, MEMBER, FINE))
SHOP = Catalog((EMPLOYEE, PRODUCT, ORDERS, LINE))

DRUG = _table(
    "药品",
    Column("药品名称", "text"),
    Column("类别", "text", values=("西药", "中成药")),
    Column("库存数量", "integer"),
)
PRESCRIBED = _table("处方明细", Column("数量", "integer"), refers=("药品",))
VISIT = _table(
    "挂号",
    Column("挂号渠道", "text", values=("微信", "窗口")),
    Column("费用", "numeric"),
    Column("就诊时间", "timestamp"),
)
STAY = _table(
    "住院",
    Column("入院日期", "date"),
    Column("出院日期", "date", comment="为空表示仍在院"),
    Column("医保报销", "numeric"),
)
CLINIC = Catalog((DRUG, PRESCRIBED, VISIT, STAY))


GYM = Catalog(
    (
        _table("trainer", Column("full_name", "text"), Column("left_on", "date")),
        _table("member", Column("full_name", "text"), Column("cancelled_on", "date")),
        _table("session", Column("status", "text", values=("cancelled", "held"))),
        _table("booking", Column("booked_at", "timestamp"), refers=("session", "member")),
    )
)
STORE = _table("仓库", Column("仓库名称", "text"))
STOCK = _table(
    "库存", Column("安全库存", "integer"), Column("库存数量", "integer"), refers=("仓库",)
)
CUSTOMER = _table("会员", Column("姓名", "text"), Column("省份", "text", values=("浙江", "江苏")))
ORDER = _table("订单", Column("订单金额", "numeric"), Column("下单时间", "date"), refers=("会员",))
OUTPATIENT = _table(
    "门诊", Column("费用", "numeric"), Column("就诊时间", "timestamp"), refers=("患者",)
)
SLIP = _table(
    "处方", Column("总金额", "numeric"), Column("开方时间", "timestamp"), refers=("门诊",)
)
CHAIN = Catalog((STORE, STOCK, CUSTOMER, ORDER))
HOSPITAL = Catalog((OUTPATIENT, SLIP, _table("患者", Column("姓名", "text"))))


PORT = _table("port", Column("port_name", "text"))
CAPTAIN = _table(
    "captain",
    Column("full_name", "text"),
    Column("grade", "text", values=("junior", "senior")),
)
SAILING = _table(
    "sailing",
    Column(
        "status",
        "text",
        values=("planned", "boarding", "departed", "arrived", "cancelled"),
        nullable=False,
    ),
    Column("departed_on", "date"),
    refers=("captain", "port"),
)
TICKET = _table(
    "ticket",
    Column("channel", "text", values=("web", "kiosk", "agent")),
    Column("price", "numeric", nullable=False),
    Column("seats", "integer", nullable=False),
    Column("ordered_on", "date"),
    refers=("sailing",),
)
INCIDENT = _table(
    "incident",
    Column("kind", "text", values=("fire", "medical"), nullable=False),
    Column("severity", "text", values=("high", "low"), nullable=False),
    refers=("sailing",),
)
FERRY = Catalog((PORT, CAPTAIN, SAILING, TICKET, INCIDENT))
PATIENT = _table(
    "patient",
    Column("full_name", "text"),
    Column("sex", "text", values=("F", "M")),
    Column("born_on", "date"),
)
ADMISSION = _table(
    "admission",
    Column("urgency", "text", values=("emergency", "planned")),
    Column("admitted_on", "date", nullable=False),
    refers=("patient",),
)
WARDS = Catalog((PATIENT, ADMISSION))
GUEST = _table("客人", Column("姓名", "text"))
BOOKED = _table(
    "预订",
    Column("渠道", "text", values=("官网", "携程", "电话")),
    Column("审核状态", "text", values=("待审核", "通过", "驳回"), nullable=False),
    Column("金额", "numeric"),
    Column("下单时间", "timestamp"),
    Column("入住日期", "date"),
    refers=("客人",),
)
HOTEL = Catalog((GUEST, BOOKED))
EVENT = _table(
    "event", Column("title", "text"), Column("category", "text", values=("fair", "congress"))
)
TALK = _table(
    "talk",
    Column("title", "text"),
    Column("kind", "text", values=("keynote", "panel")),
    refers=("event",),
)
EVENTS = Catalog((EVENT, TALK))
FILM = _table("film", Column("title", "text"))
MEALS = _table(
    "meal_order",
    Column("meals", "integer", nullable=False),
    Column("channel", "text", values=("app", "desk")),
    refers=("film",),
)
TRACK = _table("曲目", Column("曲名", "text"), Column("时长毫秒", "integer", nullable=False))
BUYER = _table("客户", Column("姓名", "text"), Column("国家", "text", values=("德国", "法国")))
BOUGHT = _table("购买明细", Column("数量", "integer"), refers=("曲目", "客户"))
CINEMA = Catalog((FILM, MEALS))
MUSIC = Catalog((TRACK, BUYER, BOUGHT))


def _understood(question: str, catalog: Catalog) -> Understanding:
    return understand(Inquiry(question, language_of(question), catalog))


def _sql(question: str, catalog: Catalog) -> str:
    return " ".join(_understood(question, catalog).sql.split())


@pytest.mark.parametrize(
    ("question", "catalog", "choices"),
    [
        (
            "books by German authors",
            LIBRARY,
            {"author": "GROUP BY a.author_id", "book": "SELECT b.title"},
        ),
        ("哪种药品库存最多", CLINIC, {"类别": "GROUP BY 类别", "药品": "SELECT 药品名称"}),
        (
            "which employee sold the most",
            SHOP,
            {
                "number of orders": "e.full_name, count(*)",
                "revenue": "e.full_name, sum(ol.unit_price",
                "quantity": "e.full_name, sum(ol.quantity)",
            },
        ),
        (
            "the best selling employee",
            SHOP,
            {
                "revenue": "e.full_name, sum(ol.unit_price",
                "quantity": "e.full_name, sum(ol.quantity)",
            },
        ),
        ("the best product", Catalog((RATED,)), {"stars": "ORDER BY stars DESC"}),
        (
            "which member paid the most in fines",
            LIBRARY,
            {"number of fines": "m.full_name, count(*)", "amount": "m.full_name, sum("},
        ),
        (
            "各省份会员的订单金额排名",
            CHAIN,
            {"省份": "SELECT t2.省份, sum(t.订单金额)", "会员": "SELECT t2.省份, t2.姓名, sum("},
        ),
        (
            "每个仓库的库存总量",
            CHAIN,
            {"安全库存": "sum(t.安全库存)", "库存数量": "sum(t.库存数量)"},
        ),
    ],
)
def test_two_likely_meanings_are_choices_that_are_read_as_what_they_say(
    question: str, catalog: Catalog, choices: dict[str, str]
) -> None:
    written = draft(question, (), catalog)

    assert isinstance(written, NoSql), written
    assert [offer.question for offer in written.choices] == list(choices)
    for answer, part in choices.items():
        completed = draft(answer, (kept(question, written),), catalog)
        assert isinstance(completed, Sql)
        assert part in " ".join(completed.text.split()).replace('"', "")


def test_things_are_chosen_and_not_written_behind_the_question() -> None:
    written = draft("books by German authors", (), LIBRARY)
    assert isinstance(written, NoSql)
    assert written.choices
    assert not written.rewrites  # "books by German authors by books"


BRANCH = _table("shop", Column("shop_name", "text"))
REPORT = replace(
    _table(
        "daily_sales", Column("sale_date", "date"), Column("amount", "numeric"), refers=("shop",)
    ),
    primary_key=("shop_id", "sale_date"),
)


def test_of_daily_reports_the_amount_is_meant() -> None:
    statement = _sql("which shop sold the most", Catalog((BRANCH, REPORT)))
    assert "sum(ds.amount)" in statement
    assert "count(*)" not in statement


def test_a_rewrite_of_a_ranking_still_ranks() -> None:
    question = "which employee sold the most"
    inquiry = Inquiry(question, "en", SHOP)
    with pytest.raises(Refusal) as refused:
        understand(inquiry)

    offered = [rewrite.question for rewrite in rewrites(inquiry, refused.value)]
    assert offered
    assert all(one.startswith(f"{question} by ") for one in offered)


@pytest.mark.parametrize(
    ("question", "catalog", "part"),
    [
        ("number of male and female members", LIBRARY, "GROUP BY gender"),  # not both together
        ("average number of pages by category", LIBRARY, "avg(pages)"),  # not of the totals
        ("各挂号渠道的占比", CLINIC, "count(*)"),  # of the visits, not of what they cost
        ("books with German authors", LIBRARY, "SELECT b.title"),
        ("web and kiosk tickets", FERRY, "channel IN ('web', 'kiosk')"),
        ("web, kiosk tickets", FERRY, "channel IN ('web', 'kiosk')"),
        ("sailings that were not cancelled", FERRY, "status <> 'cancelled'"),
        ("sailings that have not been cancelled", FERRY, "status <> 'cancelled'"),
        ("how many sailings are not planned", FERRY, "status <> 'planned'"),
        ("how many high severity incidents were there", FERRY, "count(*)"),  # not severities
        ("number of tickets per channel, including none", FERRY, "GROUP BY channel"),
        ("number of sailings per captain, including those without any", FERRY, "LEFT JOIN"),
        ("有客人的预订有多少", HOTEL, "count(*) AS 预订_count FROM 预订 WHERE 客人_id IS NOT NULL"),
        ("2024年的金额合计，按入住日期算", HOTEL, "WHERE 入住日期 >= DATE '2024-01-01'"),
        ("按下单时间算，2024年各月的金额", HOTEL, "GROUP BY date_trunc('month', 下单时间)"),
        ("官网和携程的预订有多少", HOTEL, "IN ('官网', '携程')"),
        ("时长超过5分钟的曲目", MUSIC, "时长毫秒 > 300000"),
        ("number of talks per title", EVENTS, "GROUP BY title"),  # several may have the same
        ("number of events per category without a keynote", EVENTS, "NOT EXISTS"),
    ],
)
def test_the_plain_meaning_is_answered(question: str, catalog: Catalog, part: str) -> None:
    assert part in _sql(question, catalog).replace('"', "")


@pytest.mark.parametrize(
    ("question", "catalog", "words"),
    [
        ("average fine by reason", LIBRARY, "average"),  # not of the numbers of fines
        ("average number of books by category", LIBRARY, "average number of"),
        ("how many order lines have a discount", SHOP, "have"),  # no average discount
        ("empty books", LIBRARY, "empty"),  # a key is never empty
        ("各药品的投诉数量", CLINIC, "投诉数量"),  # not what was prescribed
        ("现在有多少住院", CLINIC, "现在"),  # those who have not left
        ("门诊的收入合计", HOSPITAL, "收入"),  # not that of prescriptions
        ("供应品有多少", CLINIC, "供应品"),  # a character of 药品, and of other words
        ("compare fine amounts between 2024 Q1 and 2024 Q2", LIBRARY, "compare"),
        ("how many members have cancelled", GYM, "cancelled"),  # not of whom a session was
        ("trainers who have left", GYM, "left"),
        ("Which trainers have left?", GYM, "left"),  # not when each did
        ("number of products sold", SHOP, "sold"),  # not how many there are
        ("卖出了多少药品", CLINIC, "卖出了"),
        ("number of web kiosk tickets", FERRY, "kiosk"),  # of both, or of kiosks in the web
        ("官网携程的预订有多少", HOTEL, "携程"),
        ("the 3 cheapest tickets of 2 sailings", FERRY, "2"),
        ("sailings that haven't arrived", FERRY, "arrived"),  # nor those that were cancelled
        ("sailings that are no longer boarding", FERRY, "boarding"),
        ("top 3 films by number of meals ordered", CINEMA, "meals ordered"),  # not of orders
        (
            "largest meal order: how many meals and which channel",
            CINEMA,
            "largest",
        ),  # not where most came
        ("德国人买了多少首曲目", MUSIC, "买了"),  # or how many different ones
        ("how many seats were ordered", FERRY, "ordered"),  # not tickets in order of seats
        ("未通过审核的预订", HOTEL, "未"),  # not those without a state
        ("number of sailings per captain, including none", FERRY, "including none"),
        ("每个客人的预订数，没有客人的也算", HOTEL, "没有"),  # these belong to no guest
        ("how many types of incidents are there", FERRY, "types of"),  # not how many incidents
        ("captains per grade and number of sailings", FERRY, "captains"),
        ("how many male patients born before 1960 were admitted", WARDS, "admitted"),
    ],
)
def test_what_would_mislead_is_refused(question: str, catalog: Catalog, words: str) -> None:
    with pytest.raises(Refusal) as refused:
        _sql(question, catalog)
    told = refused.value.text
    assert words in told.zh + told.en


@pytest.mark.parametrize(
    ("type_", "amount", "said"),
    [
        ("real", "unit_price * quantity * (1 - discount)", "Reduced by"),
        ("numeric(4,3)", "unit_price * quantity * (1 - discount)", "Reduced by"),
        ("numeric(10,2)", "unit_price * quantity)", "Not reduced by"),  # it may be money
        ("integer", "unit_price * quantity)", "Not reduced by"),  # or percent
    ],
)
def test_sales_are_less_discounts_and_the_answer_says_so(
    type_: str, amount: str, said: str
) -> None:
    discount = Column("discount", type_, nullable=False)
    columns = tuple(discount if column.name == "discount" else column for column in LINE.columns)
    catalog = Catalog((EMPLOYEE, PRODUCT, ORDERS, replace(LINE, columns=columns)))

    understood = _understood("total sales", catalog)

    assert amount in understood.sql
    assert any(assumption.en.startswith(said) for assumption in understood.assumptions)


def test_an_amount_that_is_missing_is_not_one_of_zero_and_the_answer_says_so() -> None:
    understood = _understood("没有医保报销的住院", CLINIC)

    assert '"医保报销" IS NULL' in understood.sql
    assert any("为0" in assumption.zh for assumption in understood.assumptions)
