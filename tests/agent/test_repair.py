"""Hints that mend a query: the names and the stored values that were meant."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thinking.llm.repair_hints import error_text
from app_config import Settings
from common.errors import InvalidSql
from common.values import Catalog, Column, QueryResult, Table
from databases.execution.error_redaction import without_hidden_names
from guard import BUILTIN
from knowledge.tables.name_suggestions import suggested_names
from knowledge.values.filter_correction import looks_empty, replacements, rewritten
from knowledge.values.identity import near_value, value_tests
from sqltree.references import references
from tests.support.asking import Asking
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

KIND = Column(
    "kind", "text", values=("card", "cash", "微信", "支付宝", "O'Neill & Co"), is_complete=True
)
REGION = Column("region", "character varying(20)", values=("华东区", "华北区"), is_complete=True)
CATALOG = Catalog(
    (
        Table(
            "public",
            "payment",
            "table",
            (
                Column("payment_id", "integer"),
                KIND,
                Column("paid_amount", "numeric", comment="付款金额（元）"),
                Column("note", "text", values=("a", "b")),
                Column("shop_id", "integer"),
            ),
            comment="付款记录：每笔",
        ),
        Table(
            "public",
            "shop",
            "table",
            (Column("shop_id", "integer"), REGION, Column("opened_on", "date")),
        ),
        Table("Sales", "Order Items", "table", (Column("Unit Price", "numeric"), KIND)),
    )
)

# ------------------------------------------------------------------------------
# near names


def _near(sql: str, at: str, state: str, detail: str = "") -> tuple[str, ...]:
    return suggested_names(
        InvalidSql(detail, sqlstate=state, position=sql.index(at) + 1), sql, CATALOG
    )


@pytest.mark.parametrize(
    ("sql", "at", "nearest"),
    [
        ("SELECT paidamount FROM payment", "paidamount", "paid_amount"),
        ("SELECT p.amount FROM payment AS p", "p.amount", "p.paid_amount"),
        ('SELECT "P"."amonut" FROM payment AS "P"', '"P"."amonut"', '"P".paid_amount'),
        ("SELECT 付款金额 FROM payment", "付款金额", "paid_amount"),
        ("SELECT amount_paid FROM payment", "amount_paid", "paid_amount"),
        ("SELECT opened_on FROM payment", "opened_on", "shop.opened_on"),
        ('SELECT unit_price FROM "Sales"."Order Items"', "unit_price", '"Unit Price"'),
        (
            "WITH t AS (SELECT sum(paid_amount) AS total FROM payment) SELECT totl FROM t",
            "totl",
            "total",
        ),
        (
            "SELECT 1 FROM payment WHERE EXISTS (SELECT 1 FROM shop WHERE regoin = 'x')",
            "regoin",
            "region",
        ),
    ],
)
def test_the_nearest_column(sql: str, at: str, nearest: str) -> None:
    assert _near(sql, at, "42703")[0] == nearest


@pytest.mark.parametrize(
    ("sql", "at", "nearest"),
    [
        ("SELECT * FROM payments", "payments", "payment"),
        ("SELECT * FROM public.paymnet", "public.paymnet", "payment"),
        ("SELECT * FROM archive.payment", "archive.payment", "payment"),
        ("SELECT * FROM order_items", "order_items", '"Sales"."Order Items"'),
        ("SELECT * FROM 付款记录", "付款记录", "payment"),
    ],
)
def test_the_nearest_table(sql: str, at: str, nearest: str) -> None:
    assert _near(sql, at, "42P01")[0] == nearest


def test_a_table_that_goes_by_its_alias() -> None:
    sql = "SELECT payment.kind FROM payment AS p"
    assert (
        _near(sql, "payment.kind", "42P01", 'missing FROM-clause entry for table "payment"')[0]
        == "p"
    )


def test_nothing_near_is_nothing_said() -> None:
    assert _near("SELECT zzqq FROM payment", "zzqq", "42703") == ()
    assert _near("SELECT * FROM xylophone", "xylophone", "42P01") == ()
    assert _near("SELECT kind FROM payment", "kind", "42804") == (), "another kind of error"


def test_a_name_that_is_gone_is_not_its_own_suggestion() -> None:
    assert "payment" not in _near("SELECT * FROM payment", "payment", "42P01")
    assert "kind" not in _near("SELECT kind FROM payment", "kind", "42703")
    assert "p.kind" not in _near("SELECT p.kind FROM payment p", "p.kind", "42703")


def test_without_a_position_the_message_is_read() -> None:
    error = InvalidSql('relation "payments" does not exist', sqlstate="42P01")
    assert suggested_names(error, "SELECT * FROM payments", CATALOG) == ("payment",)


@given(st.text(max_size=60), st.integers(0, 80), st.sampled_from(["42P01", "42703"]))
def test_any_text_has_a_verdict(sql: str, position: int, state: str) -> None:
    names = suggested_names(InvalidSql(sql[:20], sqlstate=state, position=position), sql, CATALOG)
    assert len(names) <= 5


@pytest.mark.parametrize(
    ("hint", "is_told"),
    [
        ('Perhaps you meant to reference the column "payment.paid_amount".', True),
        ('Perhaps you meant to reference the column "payment.salary".', False),
        ("也许您想要引用列“payment.salary”。", False),
        ("No operator matches the given name.", True),
        ('There is an alias "nme".', True),
    ],
)
def test_hints_that_name_what_is_not_open_are_kept_back(hint: str, is_told: bool) -> None:
    error = InvalidSql('column "nme" does not exist', sqlstate="42703", hint=hint)
    sql = "SELECT nme FROM payment"
    shown = without_hidden_names(error, sql, CATALOG, BUILTIN)
    assert isinstance(shown, InvalidSql)
    assert (hint in error_text(shown, sql, CATALOG)) == is_told


# ------------------------------------------------------------------------------------------- which
# literals are judged


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM payment WHERE kind = 'x'", ["kind x"]),
        ("SELECT * FROM payment WHERE 'x' = kind", ["kind x"]),
        (
            "SELECT * FROM payment p JOIN shop s ON p.shop_id = s.shop_id AND s.region = 'y'",
            ["region y"],
        ),
        ("SELECT * FROM payment WHERE kind::text IN ('x', 'y'::varchar)", ["kind x", "kind y"]),
        ("SELECT * FROM payment WHERE kind = ANY (ARRAY['x', 'it''s'])", ["kind x", "kind it's"]),
        ("SELECT count(*) FILTER (WHERE kind = 'x') FROM payment", ["kind x"]),
        (
            "SELECT 1 FROM shop WHERE shop_id IN (SELECT shop_id FROM payment WHERE kind = 'x')",
            ["kind x"],
        ),
        (
            "SELECT 1 FROM shop s WHERE EXISTS (SELECT 1 FROM payment WHERE region = 'y')",
            ["region y"],
        ),
        (
            "WITH t AS (SELECT * FROM payment WHERE kind = 'x') SELECT * FROM t WHERE region = 'y'",
            ["kind x"],
        ),
        ('SELECT * FROM "Sales"."Order Items" i WHERE i.kind = \'x\'', ["kind x"]),
        (
            "SELECT * FROM payment WHERE kind LIKE '%x' OR kind ILIKE 'y%' OR kind LIKE '%z%'",
            ["kind x", "kind y", "kind z"],
        ),
        (
            (
                "SELECT * FROM payment WHERE kind LIKE 'a%b' OR kind LIKE '_x%' OR kind LIKE '%' "
                "OR kind LIKE '%5\\%%'"
            ),
            [],
        ),
        ("SELECT * FROM payment WHERE kind NOT LIKE '%x%' OR 'x' LIKE kind OR kind ~ 'x'", []),
        # not conditions that rows must meet
        ("SELECT * FROM payment WHERE kind <> 'x'", []),
        ("SELECT * FROM payment WHERE NOT (kind = 'x')", []),
        ("SELECT * FROM payment WHERE kind NOT IN ('x')", []),
        ("SELECT kind = 'x' FROM payment", []),
        ("SELECT CASE WHEN kind = 'x' THEN 1 END FROM payment", []),
        ("SELECT kind FROM payment EXCEPT SELECT kind FROM payment WHERE kind = 'x'", []),
        ("SELECT 1 FROM shop WHERE NOT EXISTS (SELECT 1 FROM payment WHERE kind = 'x')", []),
        # not certain which column it is, or how the literal is written
        ("WITH payment AS (SELECT 'x' AS kind) SELECT * FROM payment WHERE kind = 'y'", []),
        ("SELECT * FROM payment AS p (a, kind) WHERE kind = 'x'", []),
        ("SELECT * FROM (SELECT 'x' AS kind) payment WHERE payment.kind = 'y'", []),
        ("SELECT * FROM payment WHERE lower(kind) = 'x'", []),
        ("SELECT * FROM payment WHERE kind = E'x'", []),
        ("SELECT * FROM payment WHERE kind = 'x'\n'y'", []),
        ("SELECT * FROM payment WHERE kind = '' OR kind = NULL OR kind = $1", []),
        ("SELECT FROM WHERE", []),
    ],
)
def test_conditions_that_rows_must_meet(sql: str, found: list[str]) -> None:
    compared = references(sql, CATALOG).comparisons
    assert [f"{one.column.name} {one.text}" for one in compared] == found
    for one in compared:
        assert (
            sql[one.start : one.end]
            == "'" + f"{one.before}{one.text}{one.after}".replace("'", "''") + "'"
        )


# ------------------------------------------------------------------------------
# near values


THINGS = Table("public", "thing", "table", (Column("kind", "text"),))
PEOPLE = frozenset(("冯晨", "李娜", "王建国", "Ann Lee", "Peter Park", "欧阳明"))
STAFF = Table("public", "staff", "table", (Column("full_name", "text"), Column("phone", "text")))


@pytest.mark.parametrize(
    ("literal", "values", "meant"),
    [
        ("CASH", ["cash", "card"], "cash"),
        ("ｃａｓｈ ", ["cash", "card"], "cash"),
        ("A-100", ["a100", "a101"], "a100"),
        ("陕西", ["陕西省", "山西省"], "陕西省"),
        ("餐饮业", ["餐饮", "便利店"], "餐饮"),
        ("廣東", ["广东省", "广西壮族自治区"], "广东省"),
        ("Acme", ["Acme Co., Ltd.", "Apex"], "Acme Co., Ltd."),
        ("New York", ["New York City", "Boston"], "New York City"),
        ("Pendign", ["pending", "paid"], "pending"),
        ("Red Herrnig Inn", ["Red Herring Inn", "Blue Boar"], "Red Herring Inn"),
        ("Red Herrnig Ihn", ["Red Herring Inn", "Blue Boar"], None),
        ("Restaurants", ["Restaurant", "Cafe"], "Restaurant"),
        # another thing, however alike
        ("微信支付", ["微信", "支付宝"], None),
        ("朝阳区", ["朝阳市"], None),
        ("A+", ["A", "B"], None),
        ("1-11", ["11-1"], None),
        ("Constantine", ["Constantinople", "Constantia"], None),
        ("湖北省", ["湖南省", "河北省"], None),
        ("临安服务区", ["淮安服务区", "临平服务区"], None),
        ("完成", ["未完成", "已完成"], None),
        ("male", ["female"], None),
        ("active", ["inactive"], None),
        ("Niger", ["Nigeria"], None),
        ("Austria", ["Australia"], None),
        ("G30", ["G40", "G3"], None),
        ("Store 1", ["Store 12", "Store 2"], None),
        # more than one
        ("cash", ["Cash", "CASH"], None),
        ("华", ["华东区", "华北区"], None),
        ("--", ["---"], None),
        ("x", [], None),
    ],
)
def test_near_values(literal: str, values: list[str], meant: str | None) -> None:
    assert near_value(literal, values, value_tests(THINGS, THINGS.columns[0])) == meant


@given(
    st.sampled_from(sorted(PEOPLE)),
    st.text("冯晨明李娜王 ANnle.", min_size=1, max_size=3),
    st.booleans(),
)
def test_nobody_is_taken_for_another(name: str, more: str, is_longer: bool) -> None:
    """Whatever is added to a name or left out of it: nothing but blanks, case and punctuation is
    passed over.
    """
    said = name + more if is_longer else name[: -len(more)]
    for column, values in (
        (STAFF.columns[0], sorted(PEOPLE)),
        (STAFF.columns[1], ["13800001111", "13800001112"]),
    ):
        meant = near_value(said, values, value_tests(STAFF, column))
        assert meant is None or _letters(meant) == _letters(said)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=6))
def test_a_near_value_is_one_of_the_values(literal: str, values: list[str]) -> None:
    assert near_value(literal, values, value_tests(THINGS, THINGS.columns[0])) in {None, *values}


@given(
    st.lists(
        st.sampled_from(["CARD", "微信类", "o'neill & co", "cash", "nothing like it"]),
        min_size=1,
        max_size=5,
    )
)
def test_only_the_literals_change(literals: list[str]) -> None:
    written = ", ".join("'" + literal.replace("'", "''") + "'" for literal in literals)
    sql = f"SELECT '餐饮', kind FROM payment WHERE kind IN ({written}) -- 'CARD'"
    new = rewritten(sql, replacements(sql, CATALOG))
    meant = {"CARD": "card", "微信类": "微信", "o'neill & co": "O'Neill & Co"}
    expected = ", ".join(
        "'" + meant.get(literal, literal).replace("'", "''") + "'" for literal in literals
    )
    assert new == f"SELECT '餐饮', kind FROM payment WHERE kind IN ({expected}) -- 'CARD'"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("kind LIKE '%微信类%'", "kind LIKE '%微信%'"),
        ("kind LIKE '%微信支付%'", None),
        ("kind ILIKE 'CARDS%'", None),
        ("kind LIKE 'Cash%'", "kind LIKE 'cash%'"),
        ("kind LIKE 'ca%'", None),
        ("kind LIKE '%o''neill & co'", "kind LIKE '%O''Neill & Co'"),
        ("kind ILIKE '%NEILL%'", None),
    ],
)
def test_patterns(condition: str, expected: str | None) -> None:
    sql = f"SELECT * FROM payment WHERE {condition}"
    assert (
        rewritten(sql, replacements(sql, CATALOG))
        == f"SELECT * FROM payment WHERE {expected or condition}"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM payment WHERE kind = 'card'",  # stored
        "SELECT * FROM payment WHERE note = 'A'",  # not all of the values are known
        "SELECT * FROM shop WHERE region = '西南区'",  # nothing near
    ],
)
def test_nothing_is_replaced(sql: str) -> None:
    assert replacements(sql, CATALOG) == ()


@pytest.mark.parametrize(
    ("rows", "is_empty"),
    [
        ([], True),
        ([[0]], True),
        ([[None, 0]], True),
        ([[0.0]], True),
        ([[1]], False),
        ([["0"]], False),
    ]
    + [([[False]], False), ([[0], [0]], False), ([[None, 3]], False)],
)
def test_what_looks_empty(rows: list[list[object]], is_empty: bool) -> None:
    width = len(rows[0]) if rows else 1
    assert looks_empty(QueryResult(("c",) * width, ("x",) * width, tuple(rows))) == is_empty


# ------------------------------------------------------------------------------
# in a real database

DDL = """
CREATE TABLE ticket (ticket_id int, state text, area text);
INSERT INTO ticket SELECT n, CASE WHEN n % 2 = 0 THEN 'open' ELSE 'closed' END, '华东区'
    FROM generate_series(1, 10) n;
CREATE TABLE staff (staff_id int, full_name text);
COMMENT ON TABLE staff IS '员工'; COMMENT ON COLUMN staff.full_name IS '姓名';
INSERT INTO staff VALUES (1, '冯晨'), (2, '李娜'), (3, '王建国'), (4, 'Ann Lee'), (5, 'Peter Park');
"""


@pytest.fixture(scope="module")
def asking(make_database: Callable[[str], str]) -> Iterator[Asking]:
    with (
        OpenAiServer() as model,
        Asking(
            Settings(database_url=make_database(DDL), enable_result_summary=False), model
        ) as asking,
    ):
        yield asking


def _asked(asking: Asking, sql: str, **fields: str) -> dict[str, object]:
    body = {"question": "how many tickets", "routing_mode": "database_direct", **fields}
    code, answer = asking.sync(body, Reply(sql))
    assert code == 200
    data: dict[str, object] = answer["data"]
    return data


def test_an_empty_result_is_looked_at_again_and_the_user_is_told(asking: Asking) -> None:
    data = _asked(
        asking, "SELECT ticket_id FROM ticket WHERE state = 'OPEN' AND area = '华东' ORDER BY 1"
    )
    assert (
        data["sql"]
        == "SELECT ticket_id FROM ticket WHERE state = 'open' AND area = '华东区' ORDER BY 1"
    )
    assert data["query_result"]["rows"] == [[2], [4], [6], [8], [10]]  # type: ignore[index]
    assert data["warnings"] == [
        'state holds no "OPEN"; "open" was used instead.',
        'area holds no "华东"; "华东区" was used instead.',
    ]

    assert data["response"] == "\n".join([*data["warnings"], "The query ran and returned 5 rows."])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("冯晨明", "冯晨"),
        ("王建", "王建国"),
        ("Ann", "Ann Lee"),
        ("Ann Lees", "Ann Lee"),
        ("Peter Parks", "Peter Park"),
    ],
)
@pytest.mark.parametrize("shown", ["full_name", "count(*)"])
def test_nobody_answers_for_another_and_the_user_is_asked(
    asking: Asking, said: str, meant: str, shown: str
) -> None:
    sql = f"SELECT {shown} FROM staff WHERE full_name = '{said}'"
    data = _asked(asking, sql, lang="en")
    question = f'There is no "{said}"; did you mean "{meant}"?'
    assert (data["sql"], data["warnings"]) == (sql, [question])
    assert str(data["response"]).startswith(question)
    result = data["query_result"]
    assert isinstance(result, dict)
    assert meant not in str(result["rows"])


def test_what_was_taken_for_what_is_said_in_the_summary(
    make_database: Callable[[str], str],
) -> None:
    with (
        OpenAiServer() as model,
        Asking(Settings(database_url=make_database(DDL)), model) as asking,
    ):
        data = _asked(asking, "SELECT count(*) FROM staff WHERE full_name = 'ann  lee'")
    notice = 'full_name holds no "ann  lee"; "Ann Lee" was used instead.'
    assert str(data["summary"]).startswith(f"{notice}\n") and data["response"] == data["summary"]


def test_a_result_that_is_there_is_left_alone(asking: Asking) -> None:
    sql = "SELECT count(*) FROM ticket WHERE state IN ('open', 'CLOSED')"
    data = _asked(asking, sql)
    assert (data["sql"], data["warnings"]) == (sql, [])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ticket_id FROM ticket WHERE state = 'archived'",
        "SELECT ticket_id FROM ticket WHERE state = 'OPEN' AND ticket_id > 100",
        "SELECT ticket_id FROM ticket WHERE state = 'OPEN' AND 1 / (ticket_id % 2) = 1",
    ],
    ids=["nothing near", "empty again", "the second look fails"],
)
def test_the_first_answer_stands(asking: Asking, sql: str) -> None:
    data = _asked(asking, sql)
    assert (data["sql"], data["warnings"]) == (sql, [])
    assert data["query_result"]["rows"] == []  # type: ignore[index]


def test_an_expensive_filter_correction_is_not_taken(make_database: Callable[[str], str]) -> None:
    with OpenAiServer() as model:
        settings = Settings(
            database_url=make_database(DDL), enable_result_summary=False, max_plan_rows=1
        )
        with Asking(settings, model) as asking:
            sql = "SELECT ticket_id FROM ticket WHERE state = 'OPEN'"
            data = _asked(asking, sql)
    assert (data["sql"], data["warnings"]) == (sql, [])
