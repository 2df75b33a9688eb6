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


DONOR = _table("juanzengren", "捐赠人", _key("id"), Column("xm", "text", "捐赠人姓名"))
RELIC = _table(
    "wenwu",
    "文物",
    _key("id"),
    Column("mc", "text", "文物名称"),
    Column("zt", "text", "状态", values=("在库", "展出")),
    Column("jzr_id", "integer", "捐赠人"),
    foreign_keys=_to("jzr_id", "juanzengren", "id"),
)
EXHIBITION = _table(
    "zl", "展览", _key("id"), Column("mc", "text", "展览名称"), Column("ys", "numeric", "预算")
)
EXHIBIT = _table(
    "zpqd",
    "展品清单",
    _key("id"),
    Column("zl_id", "integer"),
    Column("wenwu_id", "integer"),
    foreign_keys=(*_to("zl_id", "zl", "id"), *_to("wenwu_id", "wenwu", "id")),
)
GUESTS = _table(
    "cg",
    "参观记录",
    _key("id"),
    Column("zl_id", "integer", nullable=False),
    Column("lx", "text", "观众类型", values=("学生", "成人")),
    Column("rs", "integer", "人数"),
    Column("sr", "numeric", "门票收入"),
    foreign_keys=_to("zl_id", "zl", "id"),
)
WORKER = _table("worker", "工人", _key("id"), Column("xm", "text", "姓名"))
PROJECT = _table(
    "project",
    "工程项目",
    _key("id"),
    Column("mc", "text", "项目名称"),
    Column("manager_id", "integer", "项目经理"),
    foreign_keys=_to("manager_id", "worker", "id"),
)
ATTENDANCE = _table(
    "kq",
    "考勤",
    _key("id"),
    Column("worker_id", "integer", nullable=False),
    Column("project_id", "integer", nullable=False),
    Column("rq", "date", "出勤日期"),
    foreign_keys=(*_to("worker_id", "worker", "id"), *_to("project_id", "project", "id")),
)
INSPECTION = _table(
    "jc",
    "质量检查",
    _key("id"),
    Column("project_id", "integer", nullable=False),
    Column("rq", "date", "检查日期"),
    Column("tg", "boolean", "是否通过", nullable=False),
    foreign_keys=_to("project_id", "project", "id"),
)
PURCHASE = _table(
    "cgd",
    "采购单",
    _key("id"),
    Column("cgrq", "date", "采购日期"),
    Column("dhrq", "date", "到货日期"),
)
TEAM = _table(
    "team",
    None,
    _key("team_id"),
    Column("team_name", "text", nullable=False),
    Column("town", "text", values=("Ashford", "Brixham")),
    Column("dissolved_on", "date"),
)
MATCH = _table(
    "match",
    None,
    _key("match_id"),
    Column("team_id", "integer"),
    Column("scheduled_on", "date", nullable=False),
    Column("played_on", "date"),
    foreign_keys=_to("team_id", "team", "team_id"),
)
MEMBERSHIP = _table(
    "membership",
    None,
    _key("membership_id"),
    Column("team_id", "integer"),
    Column("role", "text", values=("player", "coach")),
    Column("joined_on", "date", nullable=False),
    Column("left_on", "date"),
    foreign_keys=_to("team_id", "team", "team_id"),
)
PENALTY = _table(
    "penalty",
    None,
    _key("penalty_id"),
    Column("reason", "text", values=("late arrival", "wrong kit")),
    Column("paid_on", "date"),
)
STAFF = _table(
    "employee",
    None,
    _key("employee_id"),
    Column("full_name", "text"),
    Column("country", "text", values=("UK", "USA")),
    Column("reports_to", "integer"),
    foreign_keys=_to("reports_to", "employee", "employee_id"),
)
BOTTLING = _table(
    "bottlings",
    None,
    _key("bottling_id"),
    Column("bottled_on", "date", nullable=False),
    Column("bottles", "integer", nullable=False),
    Column("rejected", "integer"),
    Column("wine_id", "integer"),
    foreign_keys=_to("wine_id", "wine", "wine_id"),
)
HARVEST = _table(
    "harvest",
    None,
    _key("harvest_id"),
    Column("kg", "integer", nullable=False),
    Column("picked_by", "text", values=("hand", "machine")),
)
GOODS_KEPT = _table(
    "goods_kept",
    None,
    _key("goods_id"),
    Column("goods_name", "text"),
    Column("units_on_order", "integer"),
)
SOLD = _table(
    "order_line",
    None,
    _key("line_id"),
    Column("goods_id", "integer"),
    Column("quantity", "integer"),
    foreign_keys=_to("goods_id", "goods_kept", "goods_id"),
)
EDITOR = _table(
    "编辑",
    None,
    _key("编辑id"),
    Column("姓名", "text", values=("陆青", "叶舟"), nullable=False),
    Column("职称", "text", values=("编辑", "编审")),
    Column("主管id", "integer"),
    foreign_keys=_to("主管id", "编辑", "编辑id"),
)
BOOKSHOP = _table(
    "书店", None, _key("书店id"), Column("店名", "text"), Column("停止合作日期", "date")
)
SENT = _table(
    "发货",
    None,
    _key("发货id"),
    Column("书店id", "integer", nullable=False),
    Column("发货日期", "date", nullable=False),
    Column("册数", "integer", nullable=False),
    Column("折扣", "numeric(3,2)", nullable=False),
    foreign_keys=_to("书店id", "书店", "书店id"),
)
SENT_BACK = _table(
    "退书",
    None,
    _key("退书id"),
    Column("发货id", "integer", nullable=False),
    Column("退书日期", "date", nullable=False),
    foreign_keys=_to("发货id", "发货", "发货id"),
)
LISTENER = _table(
    "listener",
    None,
    _key("listener_id"),
    Column("full_name", "text", nullable=False),
    Column("company", "text", values=("Telus", "Apple")),
)
VEHICLE = _table(
    "vehicle", "车辆", _key("id"), Column("hm", "text", "号"), Column("cz_id", "integer")
)
OWNER = _table("owner", "车主", _key("id"), Column("xm", "text", "车主姓名"))
LOT = _table("lot", "停车场", _key("id"), Column("mc", "text", "停车场名称"))
DEVICE = _table(
    "sb",
    "设备",
    _key("id"),
    Column("lot_id", "integer", nullable=False),
    Column("zt", "text", "设备状态", values=("故障", "正常")),
    foreign_keys=_to("lot_id", "lot", "id"),
)
CAPTAIN = _table(
    "captain",
    None,
    _key("captain_id"),
    Column("full_name", "text", nullable=False),
    Column("port_id", "integer"),
    foreign_keys=_to("port_id", "port", "port_id"),
)
PORT = _table(
    "port",
    None,
    _key("port_id"),
    Column("port_name", "text", nullable=False),
    Column("country", "text", values=("UK", "Norway")),
)
WINE = _table(
    "wine",
    None,
    _key("wine_id"),
    Column("wine_name", "text"),
    Column("status", "text", values=("bottled", "sold out")),
)


@pytest.mark.parametrize(
    ("question", "tables", "words"),
    [
        ("没有捐过文物的捐赠人", (RELIC, DONOR), "文物"),  # no relics without a donor, with him
        ("哪些文物从来没有展出过", (RELIC, DONOR), "从来没有"),  # a state tells no history
        ("门票收入超过预算的展览", (EXHIBITION, GUESTS), "超过"),  # not that of one visit
        ("学生占总人数的比例", (EXHIBITION, GUESTS), "总人数"),  # not of the rows
        ("平均每个展览展出多少件文物", (RELIC, DONOR, EXHIBITION, EXHIBIT), "展出"),  # no state
        ("平均每个工人干过几个项目", (WORKER, PROJECT, ATTENDANCE), "项目经理"),  # or that manage
        ("每月的考勤人数", (WORKER, PROJECT, ATTENDANCE), "人数"),  # people, not their days
        ("检查没通过的项目有哪些", (WORKER, PROJECT, INSPECTION), "项目"),  # no days of checks
        ("到货超过15天的采购单", (PURCHASE,), "天"),  # it took so long, or was so long ago
        ("teams in Ashford with the number of matches", (TEAM, MATCH), "teams"),
        ("teams that still exist in Ashford", (TEAM, MATCH), "dissolved on"),
        ("how many matches last month", (TEAM, MATCH), "scheduled_on"),  # or played?
        ("the three most recent matches", (TEAM, MATCH), "scheduled_on"),
        ("penalties paid late", (PENALTY,), "late"),  # not those for a late arrival
        ("which managers are in the UK", (STAFF,), "managers"),  # not whose managers
        ("how many bottles were filled in 2025", (BOTTLING,), "filled in"),  # all rows have some
        ("how many kilograms were picked by hand", (HARVEST,), "How many"),  # no way of picking
        ("how many units are on order", (GOODS_KEPT, SOLD), "units"),  # not those of all orders
        ("which wines have run out", (WINE,), "out"),  # not all of them
        ("wines that are still together", (WINE,), "still"),  # not all of them
        ("陆青主管哪些编辑", (EDITOR,), "主管"),  # not who is above her
        ("仍在合作的书店", (BOOKSHOP,), "停止合作日期"),
        ("发货了多少册", (BOOKSHOP, SENT), "多少"),  # not how many times
        ("折扣低于6折的发货有几次", (BOOKSHOP, SENT), "6折"),  # 0.6
        ("发货后三个月内退书的有多少笔", (BOOKSHOP, SENT, SENT_BACK), "三个月"),  # no three rows
        ("which listeners work for a company", (LISTENER,), "company"),  # not all with theirs
        ("captains who live in the UK", (CAPTAIN, PORT), "UK"),  # their port is no home
        ("车一共有多少辆", (VEHICLE, OWNER), "车"),  # no owners
        ("故障的设备有哪些，在哪个停车场", (DEVICE, LOT), "设备"),  # not the places alone
        ("上个月发货册数比前一个月增长多少", (BOOKSHOP, SENT), "前一个月"),  # not thirty days
        ("每个发货日期的最晚发货日期", (BOOKSHOP, SENT), "最晚"),  # the latest of one day
    ],
)
def test_what_would_be_of_other_rows_is_refused(
    question: str, tables: tuple[Table, ...], words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        understand(Inquiry(question, language_of(question), Catalog(tables)))
    told = refused.value.text
    assert words.lower() in (told.zh + told.en).lower()


@pytest.mark.parametrize(
    ("question", "tables", "part"),
    [
        ("matches per month played in 2025", (TEAM, MATCH), "GROUP BY date_trunc('month', played"),
        ("how many players left in 2026", (TEAM, MEMBERSHIP), "WHERE left_on >="),
        ("没有职称的编辑有谁", (EDITOR,), 'WHERE "职称" IS NULL'),  # not those of other titles
        # no sum of bottles
        ("bottlings with more than 50 rejects", (BOTTLING, WINE), "SELECT bottling_id"),
    ],
)
def test_what_is_said_of_rows_is_asked_of_them(
    question: str, tables: tuple[Table, ...], part: str
) -> None:
    assert part in " ".join(understand(Inquiry(question, "en", Catalog(tables))).sql.split())


CUSTOMER = _table("customer", None, _key("customer_id"), Column("customer_name", "text"))
BOOKING = _table(
    "orders",
    None,
    _key("order_id"),
    Column("customer_id", "integer", nullable=False),
    Column("order_date", "date", nullable=False),
    Column("ship_date", "date"),
    Column("ship_country", "text", values=("France", "Norway")),
    foreign_keys=_to("customer_id", "customer", "customer_id"),
)
BOOKED = _table(
    "order_line",
    None,
    _key("line_id"),
    Column("order_id", "integer", nullable=False),
    Column("goods_id", "integer", nullable=False),
    foreign_keys=(*_to("order_id", "orders", "order_id"), *_to("goods_id", "goods", "goods_id")),
)
TRADE = Catalog((CUSTOMER, BOOKING, BOOKED, GOODS))


@pytest.mark.parametrize(
    "question",
    [
        "which customers ordered Chai in 2025",  # not tea once, and something else in 2025
        "which customers ordered Chai shipped to Norway",
        "customers with orders of Chai in 2025",
    ],
)
def test_conditions_on_what_was_done_hold_for_one_row(question: str) -> None:
    assert understand(Inquiry(question, "en", TRADE)).sql.count("EXISTS") == 1


def test_what_is_shipped_to_a_country_need_not_be_on_its_way() -> None:
    sql = understand(Inquiry("orders shipped to Norway", "en", TRADE)).sql
    assert "ship_country = 'Norway'" in sql
    assert "NULL" not in sql
