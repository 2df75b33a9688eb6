"""Questions of which a word would be left out of the statement, or would be answered by another
figure than the one asked for.
"""

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, Table
from rules.composing.understanding import understand
from rules.query.refusals import Refusal


def _table(name: str, comment: str | None, *columns: Column, **more: object) -> Table:
    key = (columns[0].name,)
    return Table("public", name, "table", columns, comment, primary_key=key, **more)  # type: ignore[arg-type]


def _key(name: str) -> Column:
    return Column(name, "integer", nullable=False)


def _to(column: str, table: str, key: str) -> tuple[ForeignKey, ...]:
    return (ForeignKey((column,), ("public", table), (key,)),)


WARD = _table("ward", "科室", _key("id"), Column("mc", "text", "科室名称", values=("骨科", "内科")))
STAY = _table(
    "stay",
    "住院记录",
    _key("id"),
    Column("ward_id", "integer"),
    Column("ry", "date", "入院日期"),
    Column("cy", "date", "出院日期"),
    foreign_keys=_to("ward_id", "ward", "id"),
)
MEMBER = _table(
    "member",
    "会员",
    _key("id"),
    Column("xm", "text", "姓名"),
    Column("sheng", "text", "省份", values=("浙江", "江苏")),
    Column("jifen", "integer", "积分"),
)
STORE = _table("store", "仓库", _key("id"), Column("mc", "text", "仓库名称", values=("杭州仓",)))
STOCK = _table(
    "stock",
    "库存",
    _key("id"),
    Column("store_id", "integer"),
    Column("sl", "integer", "库存数量"),
    foreign_keys=_to("store_id", "store", "id"),
)
DRUG = _table(
    "drug",
    "药品",
    _key("id"),
    Column("mc", "text", "药品名称"),
    Column("lb", "text", "类别", values=("西药", "中成药"), is_complete=True),
    Column("xb", "text", "性别", values=("男", "女"), is_complete=True),
    Column("dj", "numeric", "单价"),
)
RETURN = _table(
    "th",
    "退货",
    _key("id"),
    Column("yy", "text", "退货原因"),
    Column("rq", "date", "退货日期"),
    Column("je", "numeric", "退款金额"),
)
ORDER = _table("dd", "订单", _key("id"), Column("sl", "integer", "订单数量"))
SLIP = _table("dj", "单据", _key("id"), Column("zje", "numeric", "总金额"))
PART = _table(
    "djmx",
    "单据明细",
    _key("id"),
    Column("dj_id", "integer"),
    Column("je", "numeric", "金额"),
    foreign_keys=_to("dj_id", "dj", "id"),
)
CHINESE = Catalog((WARD, STAY, MEMBER, STORE, STOCK, DRUG, RETURN, ORDER, SLIP, PART))

CATEGORY = _table(
    "category",
    None,
    _key("category_id"),
    Column("category_name", "text", values=("Beverages", "Seafood")),
)
PRODUCT = _table(
    "product",
    None,
    _key("product_id"),
    Column("product_name", "text"),
    Column("category_id", "integer"),
    Column("unit_price", "numeric"),
    Column("discontinued", "integer", nullable=False),
    Column("units_per_box", "text"),
    Column("milliseconds", "integer"),
    foreign_keys=_to("category_id", "category", "category_id"),
)
INVOICE = _table(
    "invoice",
    None,
    _key("invoice_id"),
    Column("invoice_date", "date"),
    Column("billing_address", "text"),
    Column("billing_city", "text"),
    Column("billing_state", "text"),
    Column("billing_postal_code", "text"),
    Column("total", "numeric"),
)
LINE = _table(
    "invoice_line",
    None,
    _key("invoice_line_id"),
    Column("invoice_id", "integer"),
    Column("unit_price", "numeric"),
    Column("quantity", "integer"),
    foreign_keys=_to("invoice_id", "invoice", "invoice_id"),
)
ANIMAL = _table(
    "animal",
    None,
    _key("animal_id"),
    Column("animal_name", "text"),
    Column("status", "text", values=("available", "adopted", "booked")),
    Column("keeper", "text", values=("vet", "guest")),
    Column("booked_at", "timestamp"),
)
VISITOR = _table(
    "visitor",
    None,
    _key("visitor_id"),
    Column("visitor_name", "text"),
    Column("adopted_on", "date"),
)
VISIT = _table(
    "visit",
    None,
    _key("visit_id"),
    Column("visitor_id", "integer"),
    Column("state", "text", values=("adopted",)),
    Column("visited_on", "date"),
    foreign_keys=_to("visitor_id", "visitor", "visitor_id"),
)
EVENT = _table("event", None, _key("event_id"), Column("seats_left", "integer"))
ENGLISH = Catalog((CATEGORY, PRODUCT, INVOICE, LINE, ANIMAL, EVENT, VISITOR, VISIT))


def _sql(question: str) -> str:
    lang = language_of(question)
    catalog = CHINESE if lang == "zh" else ENGLISH
    return " ".join(understand(Inquiry(question, lang, catalog)).sql.split())


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("骨科现在有多少住院记录", "出院日期"),  # now: those who have not left, or all
        ("products that are still available", "discontinued"),
        ("浙江的会员一共花了多少钱", "多少钱"),  # points are no money
        ("各退货原因的退货数，退货原因为空", "为空"),  # one group only
        ("两个西药", "两"),  # a number is not passed over
        ("男的中成药或者单价低于10元的西药", "或者"),  # of which the price is said
        ("how many beverages cost more than 20 dollars", "how many"),  # no average price
        ("which vet has the most animals", "vet"),  # a kind of keepers, none of which is known
        ("average milliseconds of products in minutes", "minutes"),
        ("how many invoices have a unit price", "unit price"),  # it does not ask how many there are
        ("得过满分的会员有多少", "满分"),  # looks like an adverb
        ("每种类别有几间房，平均单价多少", "几间房"),
        ("各类别的男女药品数量", "男"),  # groups by both
        ("单据金额的平均值", "单据金额"),  # of the whole, or of its lines
        ("男和女的中成药的比例", "比例"),  # each drug is for one of them
        ("库存最多的仓库", "指标"),  # not the most rows
    ],
)
def test_what_would_be_left_out_is_refused(question: str, words: str) -> None:
    with pytest.raises(Refusal) as refused:
        _sql(question)
    told = refused.value.text
    assert words in told.zh + told.en


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("男女比例", "GROUP BY xb"),  # one share for each
        ("杭州仓有多少库存", "sum(s.sl)"),
        ("有多少订单", "count(*)"),  # each row is one, whatever it says of its quantity
        ("how many events are there now", "count(*)"),  # what is left has not ended
        ("list all products that are discontinued", "WHERE discontinued = 1"),
        ("which products are discontinued", "WHERE discontinued = 1"),
        ("which animals are available right now", "WHERE status = 'available'"),
        ("how many visits were adopted in 2024", "state = 'adopted'"),  # not their visitors
        ("which keeper has the most animals", "keeper IS NOT NULL"),  # nobody is no seller
        ("sales by year", "date_trunc('year', invoice_date)"),  # the address names no invoice
        (
            "2024年每个季度的退款金额合计（按退货日期）",  # the date of the quarters, no group
            "GROUP BY date_trunc('quarter', rq)::date ORDER",
        ),
    ],
)
def test_what_is_meant_is_asked(question: str, part: str) -> None:
    assert part in _sql(question)


DEFECT = _table(
    "defect",
    None,
    _key("defect_id"),
    Column("reported_by", "text", values=("pilot", "mechanic")),
    Column("reported_at", "timestamp"),
)
SHIPMENT = _table(
    "shipments",
    None,
    _key("shipment_id"),
    Column("reference_no", "text"),
    Column("status", "text", values=("booked", "arrived")),
    Column("booked_at", "timestamp"),
)
GOODS = _table(
    "goods",
    None,
    _key("goods_id"),
    Column("goods_name", "text", values=("Chai", "Ikura")),
    Column("quantity_per_unit", "text"),
)
SALE = _table(
    "snack_sales",
    None,
    _key("sale_id"),
    Column("cinema_id", "integer"),
    Column("quantity", "integer"),
    Column("amount", "numeric"),
    foreign_keys=_to("cinema_id", "cinemas", "cinema_id"),
)
CINEMA = _table("cinemas", None, _key("cinema_id"), Column("name", "text"))
TRAINER = _table(
    "trainers",
    None,
    _key("id"),
    Column("full_name", "text"),
    Column("hourly_rate", "numeric(8,2)", nullable=False),
)


NURSE = _table(
    "nurse",
    None,
    _key("nurse_id"),
    Column("nurse_name", "text"),
    Column("date_of_birth", "date"),
    Column("shift", "text", values=("day", "night")),
)
KEEPER = _table("keeper", None, _key("keeper_id"), Column("keeper_name", "text"))
FINE = _table(
    "fine",
    None,
    _key("fine_id"),
    Column("keeper_id", "integer"),
    Column("amount", "numeric"),
    foreign_keys=_to("keeper_id", "keeper", "keeper_id"),
)
TUBE = _table("tube", None, _key("tube_id"), Column("colour", "text"))
SAMPLE = _table(
    "sample",
    None,
    _key("sample_id"),
    Column("nurse_id", "integer"),
    Column("tube_id", "integer", nullable=False),
    Column("taken_at", "timestamp"),
    Column("value", "numeric"),
    Column("rejected_reason", "text"),
    Column("colour", "text", values=("white", "red")),
    foreign_keys=(*_to("nurse_id", "nurse", "nurse_id"), *_to("tube_id", "tube", "tube_id")),
)
PUPIL = _table(
    "pupil",
    None,
    _key("pupil_id"),
    Column("pupil_name", "text"),
    Column("enrolled_on", "date", nullable=False),
)
TEACHER = _table(
    "teacher",
    None,
    _key("teacher_id"),
    Column("teacher_name", "text"),
    Column("home_town", "text"),
)
LESSON = _table(
    "lesson",
    None,
    _key("lesson_id"),
    Column("pupil_id", "integer"),
    Column("teacher_id", "integer"),
    Column("attendance", "text", values=("late", "punctual")),
    Column("held_on", "date", nullable=False),
    foreign_keys=(
        *_to("pupil_id", "pupil", "pupil_id"),
        *_to("teacher_id", "teacher", "teacher_id"),
    ),
)


@pytest.mark.parametrize(
    ("question", "tables", "words"),
    [
        ("Which pilot reports the most defects?", (DEFECT,), "pilot"),  # no day of reports
        ("How many units of Chai were sold?", (GOODS,), "units"),  # no kinds of packages
        ("the snack takings for each cinema", (SALE, CINEMA), "snack_sales.amount"),  # or quantity
        ("平均每张发票多少钱", (INVOICE, LINE), "names nothing"),  # no average of days
        ("Who is the best rated trainer?", (TRAINER,), "by which figure"),  # a rate is no rating
        ("how many samples were rejected", (SAMPLE, NURSE), "rejected"),  # not all of them
        ("samples that were rejected", (SAMPLE, NURSE), "rejected"),
        ("white per nurse", (SAMPLE, NURSE), "nurse"),  # a number is asked for, not which nurses
        ("samples taken at night", (SAMPLE, NURSE), "night"),  # no shift of those who took them
        ("best selling keeper", (KEEPER, FINE), "by which figure"),  # not by what they were fined
        ("total of invoices in 2024", (INVOICE, LINE), "total of"),  # their number, or amount
        ("revenue per nurse", (SAMPLE, NURSE), "revenue"),  # what is measured is no money
        ("list the town of lessons", (PUPIL, LESSON, TEACHER), "town"),  # of no teacher
        ("pupils who were late in 2024", (PUPIL, LESSON, TEACHER), "2024"),  # not enrolled then
        ("how many late pupils in 2024", (PUPIL, LESSON, TEACHER), "2024"),  # no lessons
    ],
)
def test_what_only_looks_like_it_is_refused(
    question: str, tables: tuple[Table, ...], words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        understand(Inquiry(question, language_of(question), Catalog(tables)))
    assert words in refused.value.text.en


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("how many samples have a nurse", "count(*) AS sample_count FROM sample WHERE nurse_id IS"),
        ("how many samples belong to a nurse", "nurse_id IS NOT NULL"),
        ("how many samples have a tube", "count(*) AS sample_count FROM sample"),  # each has one
        ("oldest nurse", "ORDER BY date_of_birth FETCH FIRST ROW WITH TIES"),  # not of a whole year
        ("which nurse has the most samples", "DESC NULLS LAST FETCH FIRST ROW WITH TIES"),
    ],
)
def test_what_a_row_may_lack_and_share_is_kept(question: str, part: str) -> None:
    catalog = Catalog((SAMPLE, NURSE, TUBE))
    written = " ".join(understand(Inquiry(question, "en", catalog)).sql.split())
    assert part in written.replace("s.", "").replace("AS s ", "")


def test_a_moment_is_no_state() -> None:
    question = "When was the last shipment booked?"
    assert "status" not in understand(Inquiry(question, "en", Catalog((SHIPMENT,)))).sql
