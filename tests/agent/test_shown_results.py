"""What is said of a result beside its rows: what may be added up, and of which rows figures are."""

from datetime import date

import pytest

from agent.answers.condition_texts import condition_texts
from agent.answers.shown_result import shown_result
from common.text import Lang
from common.values import Catalog, Column, ForeignKey, QueryResult, Table

TODAY = date(2026, 11, 24)


def _table(name: str, comment: str | None, *columns: tuple[str, str, str]) -> Table:
    made = tuple(Column(column, kind, said) for column, kind, said in columns)
    return Table("public", name, "table", made, comment=comment)


CATALOG = Catalog(
    (
        _table(
            "stock_level",
            None,
            ("day", "date", "日期"),
            ("shop", "text", "店铺"),
            ("quantity", "integer", "数量"),
            ("price", "numeric", "单价"),
            ("is_open", "boolean", "营业中"),
            ("state", "integer", "状态：0=停业 1=营业 2=装修"),
            ("kind", "integer", "1=small 2=large"),
        ),
        _table(
            "move",
            "库存流水",
            ("day", "date", ""),
            ("quantity", "integer", "数量"),
            ("balance", "numeric", "余额"),
            ("stock_change", "integer", "库存变动"),
        ),
        _table(
            "payment", "付款", ("currency", "text", "币种"), ("amount", "numeric(12,2)", "金额")
        ),
    )
)


@pytest.mark.parametrize(
    ("select", "total", "why"),
    [
        ("day, sum(quantity) FROM stock_level GROUP BY 1", None, "stock of two days is no stock"),
        ("shop, sum(quantity) FROM stock_level GROUP BY 1", 3, "stock of two shops is"),
        ("shop, sum(price) FROM stock_level GROUP BY 1", None, "prices have no sum"),
        ("day, sum(quantity) FROM move GROUP BY 1", 3, "what was moved adds up"),
        ("day, sum(stock_change) FROM move GROUP BY 1", 3, "so does what changed"),
        ("day, sum(balance) FROM move GROUP BY 1", None, "balances of two days don't"),
        ("day, avg(quantity) FROM move GROUP BY 1", None, "averages don't"),
        ("day, count(DISTINCT quantity) FROM move GROUP BY 1", None, "some may count twice"),
        ("day, sum(quantity) FROM move GROUP BY ROLLUP (1)", None, "one row is the total"),
        ("day, sum(quantity) FROM move GROUP BY 1 UNION ALL SELECT NULL, 3", None, "one may be"),
    ],
)
def test_only_what_may_be_added_has_a_total(select: str, total: int | None, why: str) -> None:
    is_dated = select.startswith("day")
    names = ["2026-01-01", "2026-01-02"] if is_dated else ["a", "b"]
    columns = (select.split(",")[0], select.split("(")[0].split()[-1])
    types = ("date" if is_dated else "text", "int8")
    result = QueryResult(columns, types, ([names[0], 1], [names[1], 2]))
    shown = shown_result(f"SELECT {select}", result, CATALOG, "zh")["query_result"]
    assert shown.get("totals") == (None if total is None else [None, total]), why


@pytest.mark.parametrize(("second", "total"), [("USD", None), ("CNY", 3)])
def test_amounts_of_several_currencies_are_not_added_up(second: str, total: int | None) -> None:
    sql = "SELECT currency, sum(amount), count(*) FROM payment GROUP BY 1"
    rows = (["CNY", 1, 5], [second, 2, 7])
    result = QueryResult(("currency", "sum", "count"), ("text", "numeric", "int8"), rows)
    shown = shown_result(sql, result, CATALOG, "en")["query_result"]
    assert shown["totals"] == [None, total, 12]


@pytest.mark.parametrize(
    ("where", "zh", "en"),
    [
        ("", [], []),
        (
            "WHERE day >= date_trunc('month', CURRENT_DATE) - INTERVAL '1 month' "
            "AND day < date_trunc('month', CURRENT_DATE) AND shop = 'a'",
            ["日期 2026-10", "店铺为a"],
            ["day October 2026", "shop is a"],
        ),
        (
            "WHERE shop IN ('a', 'b') AND price IS NOT NULL AND 3 < quantity AND NOT is_open",
            ["店铺为a、b", "单价不为空", "数量大于3", "营业中：否"],
            ["shop is a or b", "price is not empty", "quantity above 3", "is open: no"],
        ),
        ("WHERE state IN (1, 2)", ["状态为营业、装修"], ["state is 1 or 2"]),
        ("WHERE shop = ''", ["店铺为“”"], ["shop is “”"]),
        ("WHERE shop = 'a' OR shop = 'b'", ["其他条件见 SQL"], ["and what else the SQL says"]),
        (
            "WHERE shop LIKE 'a%' AND day = (SELECT max(day) FROM stock_level)",
            ["店铺匹配a%", "其他条件见 SQL"],
            ["shop like a%", "and what else the SQL says"],
        ),
        ("AS s, (SELECT 1) AS t WHERE s.shop = 'a'", ["店铺为a", "其他条件见 SQL"], None),
    ],
)
def test_conditions_are_said_and_what_is_not_said_is_named(
    where: str, zh: list[str], en: list[str] | None
) -> None:
    sql = f"SELECT count(*) FROM stock_level {where}"
    assert condition_texts(sql, CATALOG, "zh", TODAY) == zh
    if en is not None:
        assert condition_texts(sql, CATALOG, "en", TODAY) == en


_MEMBERS = Table(
    "public",
    "member",
    "table",
    (Column("id", "integer"), Column("born", "date", "出生日期"), Column("rank", "text")),
    comment="会员",
    primary_key=("id",),
)
_PAYMENTS = Table(
    "public",
    "payment",
    "table",
    (Column("member_id", "integer"), Column("amount", "numeric", "金额"), Column("rank", "text")),
    foreign_keys=(ForeignKey(("member_id",), ("public", "member"), ("id",)),),
)
_REFUNDS = Table(
    "public", "refund", "table", (Column("amount", "numeric", "金额"),), comment="退款"
)
_CHANGES = ("before", "change", "change_percent")
_GROWN = """
SELECT total_amount, total_amount_before,
       total_amount - total_amount_before AS total_amount_change,
       100.0 * (total_amount - total_amount_before) / total_amount_before
           AS total_amount_change_percent
FROM (SELECT sum(amount) AS total_amount, sum(amount) AS total_amount_before
      FROM payment) AS figures
"""


@pytest.mark.parametrize(
    ("sql", "names", "zh", "en"),
    [
        (
            _GROWN,
            ("total_amount", *(f"total_amount_{change}" for change in _CHANGES)),
            ["金额合计", "上期金额合计", "金额合计变化", "金额合计变化率"],
            [
                "total amount",
                "total amount before",
                "change of total amount",
                "growth of total amount",
            ],
        ),
        (
            "SELECT member_id, id FROM payment, member",
            ("member_id", "id"),
            ["会员编号", "编号"],
            ["member id", "id"],
        ),
        ("SELECT date_part('year', age(born)) AS age FROM member", ("age",), ["年龄"], ["age"]),
        (
            "SELECT p.amount, m.amount FROM payment AS p, refund AS m",
            ("amount", "amount"),
            ["金额 (payment)", "退款金额"],
            ["payment amount", "refund amount"],
        ),
        (
            "SELECT p.rank, m.rank FROM payment AS p, member AS m",
            ("rank", "rank"),
            ["payment rank", "member rank"],
            ["payment rank", "member rank"],
        ),
    ],
)
def test_labels_are_in_one_language_and_each_is_of_one_column(
    sql: str, names: tuple[str, ...], zh: list[str], en: list[str]
) -> None:
    catalog = Catalog((_MEMBERS, _PAYMENTS, _REFUNDS))
    expectations: tuple[tuple[Lang, list[str]], ...] = (("zh", zh), ("en", en))
    for lang, expected in expectations:
        result = QueryResult(names, ("int4",) * len(names), ())
        shown = shown_result(sql, result, catalog, lang)
        assert shown["query_result"]["labels"] == expected


BOTH = {"1": "营业", "2": "装修"}


@pytest.mark.parametrize(
    ("sql", "lang", "labels"),
    [
        ("SELECT state, count(*) FROM stock_level GROUP BY 1", "zh", BOTH),
        ("SELECT state, count(*) FROM stock_level GROUP BY 1", "en", None),  # no Chinese in English
        ("SELECT kind, count(*) FROM stock_level GROUP BY 1", "en", {"1": "small", "2": "large"}),
        ("SELECT state + 1, count(*) FROM stock_level GROUP BY 1", "zh", None),  # no state any more
        (
            "SELECT s, count(*) FROM (SELECT state AS s FROM stock_level) AS a GROUP BY 1",
            "zh",
            BOTH,
        ),
        ("SELECT state, 1 FROM stock_level UNION ALL SELECT quantity, 1 FROM move", "zh", None),
        ("SELECT max(state), count(*) FROM stock_level", "zh", None),
    ],
)
def test_codes_are_told_by_their_labels(
    sql: str, lang: Lang, labels: dict[str, str] | None
) -> None:
    result = QueryResult(("state", "count"), ("int4", "int8"), ([1, 30], [2, 20], [None, 3]))
    shown = shown_result(sql, result, CATALOG, lang)["query_result"]
    assert shown.get("value_labels") == (None if labels is None else [labels, None])
    assert shown["rows"] == [[1, 30], [2, 20], [None, 3]]  # the stored values stay
