"""Questions whose words are easily taken for other things or ways than those they speak of."""

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, ForeignKey, NoSql, Sql, Table
from rules.composing.understanding import understand
from rules.query.refusals import Refusal
from tests.support.rule_conversations import draft, kept


def _table(name: str, comment: str | None, *columns: Column, **refers: str) -> Table:
    """Return a table whose key is its first column; `refers` says which column refers to what."""
    keys = tuple(
        ForeignKey((column,), ("public", table), ("id",)) for column, table in refers.items()
    )
    own = [Column("id", "integer", nullable=False)]
    own += [column for column in columns if column.name not in refers]
    said = {column.name: column for column in columns}
    own += [said.get(column, Column(column, "integer")) for column in refers]
    return Table(
        "public", name, "table", tuple(own), comment, primary_key=("id",), foreign_keys=keys
    )


UNIT = _table(
    "unit", None, Column("unit_name", "text", values=("Cardiology", "Surgery")), parent_id="unit"
)
DOCTOR = _table(
    "doctor",
    None,
    Column("full_name", "text", values=("Ann Bell", "Ben Cole")),
    Column("grade", "text", values=("junior", "senior")),
    unit_id="unit",
    supervisor_id="doctor",
)
PATIENT = _table(
    "patient",
    None,
    Column("patient_name", "text"),
    Column("gender", "text", values=("F", "M")),
    Column("city", "text"),
    Column("insurer", "text", values=("Axa", "Bupa")),
    family_doctor_id="doctor",
)
VISIT = _table(
    "visit",
    None,
    Column("visited_on", "date", nullable=False),
    Column("visit_kind", "text", values=("urgent", "routine")),
    patient_id="patient",
    doctor_id="doctor",
)
BILL = _table(
    "bill",
    None,
    Column("amount", "numeric", nullable=False),
    Column("discount", "real", nullable=False),
    Column("status", "text", values=("paid", "open")),
    Column("paid_on", "date"),
    visit_id="visit",
)
REFUND = _table("refund", None, Column("reason", "text", values=("late", "damage")), bill_id="bill")
SHOW = _table(
    "show",
    None,
    Column("title", "text"),
    Column("made_year", "integer"),
    Column("starts_on", "date", nullable=False),
)
SEAT = _table(
    "seat",
    None,
    Column("quantity", "integer", nullable=False),
    Column("price", "numeric", nullable=False),
    Column("currency", "text", values=("EUR", "GBP")),
    show_id="show",
)
RESTORATION = _table(
    "restoration", None, Column("outcome", "text", values=("restored", "failed")), room_id="room"
)
ROOM = _table("room", None, Column("room_type", "text", values=("single", "double")))
BED = _table(
    "bed", None, Column("bed_model_type", "text"), Column("price", "numeric"), room_id="room"
)
ENGLISH = Catalog((UNIT, DOCTOR, PATIENT, VISIT, BILL, REFUND, ROOM, BED, SHOW, SEAT, RESTORATION))

PART = _table("bm", "部门", Column("mc", "text", "部门名称", values=("诉讼部",)), sj_id="bm")
LAWYER = _table("ls", "律师", Column("xm", "text", "姓名", values=("王磊",)), bm_id="bm")
CASE = _table(
    "aj",
    "案件",
    Column("ah", "text", "案号"),
    Column("zb_id", "integer", "主办律师"),
    zb_id="ls",
)
TAKES_PART = _table("cy", "参与记录", Column("js", "text", "角色"), aj_id="aj", ls_id="ls")
HOURS = _table("gs", "工时记录", Column("xss", "numeric", "小时数"), aj_id="aj", ls_id="ls")
ORDER = _table(
    "dd",
    "销售订单",
    Column("ddbh", "text", "订单编号"),
    Column("zt", "text", "订单状态", values=("完成", "取消")),
    Column("xdrq", "date", "下单日期"),
)
LINE = _table(
    "ddmx",
    "订单明细",
    Column("sl", "integer", "数量"),
    Column("dj", "numeric", "单价"),
    dd_id="dd",
)
RETURN = _table(
    "th",
    "退货",
    Column("thrq", "date", "退货日期", nullable=False),
    Column("tkje", "numeric", "退款金额"),
    dd_id="dd",
)
STORE = _table("ck", "仓库", Column("ckmc", "text", "仓库名称"))
STAFF = _table(
    "yg", "员工", Column("xm", "text", "姓名"), Column("gz", "numeric", "工资"), ck_id="ck"
)
CHINESE = Catalog((PART, LAWYER, CASE, TAKES_PART, HOURS, ORDER, LINE, RETURN, STORE, STAFF))


def _inquiry(question: str) -> Inquiry:
    lang = language_of(question)
    return Inquiry(question, lang, CHINESE if lang == "zh" else ENGLISH)


def _sql(question: str) -> str:
    return " ".join(understand(_inquiry(question)).sql.split())


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("哪些律师没有填过工时", "律师"),  # no hours of cases without a lawyer
        ("诉讼部有哪些下级部门", "下级"),  # not that department
        ("Which unit does Cardiology belong to?", "Which"),
        ("doctors supervised by Ann Bell", "supervised"),  # not herself
        ("doctors and their visits", "their"),
        ("销售订单和它们的退货", "它们"),
        ("doctors per grade and their visits", "grade"),  # no row for each visit
        ("juniors and the amount of their bills", "their"),  # not one amount of all
        ("patients who have never been to Cardiology", "never"),  # not those of others
        ("bills paid late", "late"),  # no reason of a refund
        ("bills with a discount", "discount"),  # not the average discount
        ("share of female patients per city", "share"),  # of all women, or of the city
        ("how many seats were sold", "sold"),  # one line may have several
        ("total price of seats in pounds", "pounds"),  # not that in any currency
        ("rooms restored", "restored"),  # whatever came out of it
        ("shows starting in 2024", "starting in"),  # not all since then
        ("各仓库员工和工资", "员工"),
        ("每笔订单的平均金额", "金额"),  # no average of refunds
        ("各订单状态的订单数量", "订单数量"),  # not how much was ordered
        ("美元订单的数量", "美元"),
        ("退款笔数最多的销售订单", "笔数最多"),  # not the highest amount
    ],
)
def test_what_would_be_about_other_things_is_refused(question: str, words: str) -> None:
    with pytest.raises(Refusal) as refused:
        _sql(question)

    told = refused.value.text
    assert words in told.zh + told.en


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("最近一次退货是哪天", "FROM th ORDER BY thrq DESC"),  # no last one of each day
        ("有退货的订单", "FROM dd AS d WHERE EXISTS (SELECT 1 FROM th"),  # not when
        ("number of doctors per supervisor", "JOIN doctor AS d2 ON d2.id = d.supervisor_id"),
        ("how many patients does each insurer have", "WHERE insurer IS NOT NULL GROUP BY"),
        ("number of patients by insurer", "FROM patient GROUP BY insurer"),
        ("number of patients per family doctor", "ON d.id = p.family_doctor_id"),
        ("各律师主办的案件数", "ON l.id = a.zb_id"),
        ("patients with visits of Ann Bell", "ON d.id = v.doctor_id"),  # not their family doctor
    ],
)
def test_the_things_that_are_meant_are_shown(question: str, part: str) -> None:
    assert part in _sql(question)


@pytest.mark.parametrize(
    ("question", "said", "part"),
    [
        ("number of patients per doctor", "family doctor", "ON d.id = p.family_doctor_id"),
        ("number of patients per doctor", "visits", "FROM visit AS v JOIN patient"),
        ("王磊的案件", "参与记录", "FROM cy AS c JOIN ls"),
        ("oldest show", "made year", "ORDER BY made_year FETCH"),
        ("total price of beds by type", "bed model type", "GROUP BY bed_model_type"),
    ],
)
def test_which_way_two_things_are_tied_is_asked_back(question: str, said: str, part: str) -> None:
    catalog = _inquiry(question).catalog
    asked = draft(question, catalog=catalog)
    assert isinstance(asked, NoSql)
    answered = draft(said, (kept(question, asked),), catalog)
    assert isinstance(answered, Sql)
    assert part in " ".join(answered.text.split())
