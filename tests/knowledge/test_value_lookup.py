"""Stored values that a question names are looked up in columns of too many values to be known
beforehand.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agent.thinking.llm.schema_text import SchemaText
from app_config import Settings
from common.errors import DatabaseUnavailable
from common.inquiry import Inquiry, StoredValue
from common.ports import Database
from common.runtime import run
from common.text import Text, language_of
from common.values import Catalog, PlanEstimate, QueryResult
from knowledge.values.filter_correction import missing_literals, replacements
from knowledge.values.value_search import ValueSearch
from knowledge.words import SIMPLIFIED
from rules.linking.unexplained import wanted_values
from tests.support.asking import Asking
from tests.support.databases import Opener, as_admin, open_asked, rows_of, until
from tests.support.effort import tries
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

ENOUGH_S = 60.0  # for a lookup on a busy machine
ODD = (
    "Café Müller GmbH",
    "Smith & Sons, Ltd.",
    "O'Brien Foods",
    "Groß Kultur AG",
    "华东科技有限公司",
    "臺北書店",
    "ＮＥＣ商贸公司",
)
SHOPS = [
    f"{a}{b}{c}书店"
    for a in "东华云龙马凤乐"
    for b in "东华云龙马凤乐"
    for c in "东华云龙马凤乐宁江长门"
]
TITLES = (
    "Hyper Trail Backpack 30L",
    "The Old Man and the Sea",
    "Orders",
    "订单",
    "PX100A",
    "Café Noir",
)
PEOPLE = ("冯晨", "Ann Lee", "Jonathan Reed")
DDL = """
CREATE TABLE customers (customer_id int PRIMARY KEY, company_name text NOT NULL, city varchar(60),
    contact_phone text,
                        email text, notes_of_board text);
CREATE TABLE staff (staff_id int PRIMARY KEY, full_name text NOT NULL, home_address text);
CREATE TABLE products (product_id int PRIMARY KEY, title text NOT NULL);
CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int REFERENCES customers,
    product_id int REFERENCES products,
                     staff_id int REFERENCES staff, total_amount numeric(12,2), order_date date);
COMMENT ON TABLE orders IS '订单'; COMMENT ON TABLE customers IS '客户';
COMMENT ON TABLE products IS '产品';
COMMENT ON COLUMN orders.total_amount IS '金额'; COMMENT ON COLUMN products.title IS '产品名称';
INSERT INTO customers SELECT i, 'Nord' || i || ' Handels GmbH', 'Newtown ' || i,
    '1380000' || lpad(i::text, 4, '0'),
    'ann' || i || '@example.com', 'Secretive ' || i FROM generate_series(1000, 2999) i;
INSERT INTO staff SELECT i, (ARRAY['James','Mary','Linda','Robert'])[1 + i % 4] || ' W' ||
    translate(i::text,
    '0123456789', 'abcdefghij'), 'Long Road ' || i FROM generate_series(1000, 2999) i;
INSERT INTO products SELECT i, 'Item ' || md5(i::text) FROM generate_series(1000, 2999) i;
"""


def _ddl() -> str:
    def rows(table: str, values: Any, template: str) -> str:
        return f"INSERT INTO {table} VALUES " + ", ".join(
            template.format(number, "'" + value.replace("'", "''") + "'")
            for number, value in enumerate(values, 1)
        )

    return ";".join(
        (
            DDL,
            rows("customers", (*ODD, *SHOPS), "({0}, {1}, 'Oldtown {0}')").replace(
                "Oldtown 1'", "Köln am Rhein'", 1
            ),
            rows("products", TITLES, "({0}, {1})"),
            rows("staff", PEOPLE, "({0}, {1})"),
            "INSERT INTO orders SELECT i, 1 + i % 7, 1 + i % 6, 1 + i % 3, i, DATE '2026-01-01' + i"
            " FROM generate_series(1, 60) i",
        )
    )


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(_ddl())


class Listening:
    """A database that remembers what was asked of it."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.ran: list[str] = []
        self.explained: list[str] = []

    @property
    def statements(self) -> list[str]:
        """All that were run or only planned."""
        return [*self.ran, *self.explained]

    def forget(self) -> None:
        """Forgets what was run until now."""
        self.ran, self.explained = [], []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def explain(self, sql: str) -> PlanEstimate:
        self.explained.append(sql)
        return await self._inner.explain(sql)

    async def run(self, sql: str) -> QueryResult:
        self.ran.append(sql)
        return await self._inner.run(sql)


class Shop:
    """The database of these tests, and what questions find in it."""

    def __init__(self, url: str, **changes: Any) -> None:
        self.opened = open_asked(url, **changes)
        self.database = Listening(self.opened)
        self.catalog: Catalog = run(self.opened.catalog(), timeout_s=ENOUGH_S)
        self.search = ValueSearch(ENOUGH_S)

    def inquiry(self, question: str) -> Inquiry:
        return Inquiry(question, language_of(question), self.catalog)

    def found(self, question: str) -> tuple[StoredValue, ...]:
        inquiry = self.inquiry(question)
        # On a loop that goes on: with it, the transaction would not be left, and keep its locks.
        found = run(
            self.search.find(wanted_values(inquiry), self.catalog, self.database),
            timeout_s=2 * ENOUGH_S,
        )
        self.was_complete = found.is_complete
        return found.values

    def meant(self, question: str) -> set[tuple[str, str]]:
        return {(one.column, one.value) for one in self.found(question) if one.is_meant}

    def offered(self, question: str) -> set[str]:
        return {one.value for one in self.found(question) if not one.is_meant}

    def prompt(self, question: str) -> str:
        schema = SchemaText(self.catalog)
        return schema.details(question) + schema.named_values(question, self.found(question))


@pytest.fixture(scope="module")
def shop(url: str) -> Iterator[Shop]:
    made = Shop(url)
    yield made
    made.opened.close()


# ------------------------------------------------------------------------------
# what is found


@pytest.mark.parametrize(
    ("question", "column", "value"),
    [
        ("orders of Café Müller GmbH", "company_name", "Café Müller GmbH"),
        ("how many orders did CAFÉ MÜLLER GMBH place in 2026?", "company_name", "Café Müller GmbH"),
        ("total amount of orders of café müller gmbh by month", "company_name", "Café Müller GmbH"),
        ("orders of smith & sons ltd", "company_name", "Smith & Sons, Ltd."),
        ("orders of O'Brien Foods", "company_name", "O'Brien Foods"),
        ("orders of GROSS KULTUR", "company_name", "Groß Kultur AG"),
        ("华东科技有限公司的订单有多少", "company_name", "华东科技有限公司"),
        ("華東科技的订单数量", "company_name", "华东科技有限公司"),
        ("台北书店的订单", "company_name", "臺北書店"),
        ("NEC商贸公司的订单金额", "company_name", "ＮＥＣ商贸公司"),
        ("customers in köln am rhein", "city", "Köln am Rhein"),
        ("total amount for product hyper trail backpack 30l", "title", "Hyper Trail Backpack 30L"),
        ("total amount of The Old Man and the Sea", "title", "The Old Man and the Sea"),
        ("产品“Café Noir”的金额", "title", "Café Noir"),
        ("orders of product Hyper Trail Backpak 30L", "title", "Hyper Trail Backpack 30L"),
        ("orders of px100a", "title", "PX100A"),
        ('orders of product "(Café Noir)"', "title", "Café Noir"),
        ("orders of staff Jonathan Reed", "full_name", "Jonathan Reed"),
        ("冯晨的订单", "full_name", "冯晨"),
        ("orders of product Cafe Noir", "title", "Café Noir"),
        ("orders of Cafe Muller GmbH", "company_name", "Café Müller GmbH"),
    ],
)
def test_a_value_is_found_as_people_write_it(
    shop: Shop, question: str, column: str, value: str
) -> None:
    assert shop.meant(question) == {(column, value)}


TRADITIONAL = {simplified: chr(code) for code, simplified in SIMPLIFIED.items()}
WRITINGS: dict[str, Callable[[str], str]] = {
    "upper case": str.upper,
    "lower case": str.lower,
    "capitalised": str.title,
    "full width": lambda text: "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text
    ),
    "traditional": lambda text: "".join(TRADITIONAL.get(char, char) for char in text),
    "simplified": lambda text: text.translate(SIMPLIFIED),
    "blanks": lambda text: text.replace(" ", "  "),
}
STORED = (
    *((value, "company_name") for value in (*ODD, *SHOPS[::40])),
    *((f"Nord{number} Handels GmbH", "company_name") for number in range(1000, 3000, 150)),
    *((f"Newtown {number}", "city") for number in range(1000, 3000, 150)),
    *((title, "title") for title in TITLES if title not in ("Orders", "订单")),
    *((person, "full_name") for person in PEOPLE),
)


@examples(max_examples=tries(18))
@given(
    st.sampled_from(STORED),
    st.sampled_from(sorted(WRITINGS)),
    st.sampled_from(("orders of {}", "{}的订单有多少")),
)
def test_any_writing_of_any_stored_value_finds_it(
    shop: Shop, stored: tuple[str, str], way: str, form: str
) -> None:
    value, column = stored
    assert (column, value) in shop.meant(form.format(WRITINGS[way](value)))


_PIECES = st.sampled_from(
    (
        *"\"'“”《》`()[]{}!?#$%.,:;-_/\\^*+ ",
        "\u202e",
        "\ufeff",
        "ﾞ",
        "e\u0301",
        "Xq",
        "ß",
        "三星",
        "1.5",
    )
)


@examples(max_examples=tries(18))
@given(st.lists(_PIECES, max_size=12).map("".join))
def test_any_question_can_be_looked_up(shop: Shop, said: str) -> None:
    shop.found(f"orders of {said}")


@pytest.mark.parametrize(
    "question",
    [
        "how many orders are there",
        "订单金额合计",
        "orders over 200",
        "金额大于1000的订单",
        "hello",
        "I used to work abroad",
        "orders in 2026",
    ],
)
def test_nothing_is_looked_up_where_every_word_is_explained(shop: Shop, question: str) -> None:
    shop.database.forget()
    assert shop.found(question) == ()
    assert shop.database.statements == []


@pytest.mark.parametrize(
    "question",
    [
        "orders of 100",
        "orders of Nord100",
        "orders of Newtown 10",
        "orders of PX100",
        "orders of X100A",
        "华东的订单",
        "orders of Handels",
    ],
)
def test_a_part_of_a_value_is_another(shop: Shop, question: str) -> None:
    assert shop.meant(question) == set()


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("冯晨明的订单", {"冯晨"}),
        ("orders of staff Jonathan Read", {"Jonathan Reed"}),
        ("orders of staff Ann Lee Miller", {"Ann Lee"}),
        ("orders of PX100B", set()),
        ("orders of Cafe Muler GmbH", {"Café Müller GmbH"}),
        ("华东科枝有限公司的订单", {"华东科技有限公司"}),
        ("orders of staff Jónathan Reed", {"Jonathan Reed"}),
    ],
)
def test_a_person_is_never_taken_for_another(shop: Shop, question: str, offered: set[str]) -> None:
    assert shop.meant(question) == set()
    assert shop.offered(question) == offered
    assert not any(value in shop.prompt(question) for value in (*PEOPLE, "Café Müller GmbH"))


def test_a_name_in_two_columns_is_found_whole(make_database: Callable[[str], str]) -> None:
    ddl = """CREATE TABLE actors (actor_id int PRIMARY KEY, first_name text, last_name text);
        INSERT INTO actors SELECT i, 'First' || i, 'Last' || i FROM generate_series(1, 1000) i;
        INSERT INTO actors VALUES (2000, 'Nancy', 'Fuller'), (2001, 'Ann', 'Reed')"""
    actors = Shop(make_database(ddl))
    with closing(actors.opened):
        assert actors.meant("actors called Nancy Fuller") == {
            ("first_name", "Nancy"),
            ("last_name", "Fuller"),
        }
        assert actors.meant("actors called Nancy Miller") == set()
        assert actors.meant("actors called Mary Nancy Fuller") == set()


def test_a_value_found_is_told_to_the_model(shop: Shop) -> None:
    assert "customers.company_name = 'Café Müller GmbH'" in shop.prompt(
        "orders of CAFÉ MÜLLER GMBH"
    )


def test_names_of_tables_and_columns_are_no_values(shop: Shop) -> None:
    for question in ("how many orders", "订单有多少", 'number of "orders"', "Orders by order date"):
        assert shop.meant(question) == set()


# ------------------------------------------------------------------------------
# what is never shown


@pytest.mark.parametrize(
    "question",
    [
        "orders of 13800001000",
        "customers with phone 13800001000",
        "customers with email ann1000@example.com",
        'customers whose email is "ann1000@example.com"',
        "staff living at Long Road 1000",
        "地址是“Long Road 1000”的员工",
    ],
)
def test_personal_columns_are_not_searched(shop: Shop, question: str) -> None:
    shop.database.forget()
    assert shop.found(question) == ()
    assert not any(
        name in sql
        for sql in shop.database.statements
        for name in ("contact_phone", 'email"', "home_address")
    )
    assert not any(
        value in shop.prompt(question)
        for value in ("13800001000", "ann1000@example.com", "Long Road 1000")
    )


def test_columns_that_look_personal_are_found_out(make_database: Callable[[str], str]) -> None:
    ddl = """CREATE TABLE things (thing_id int PRIMARY KEY, label text, remark text);
        INSERT INTO things SELECT i, 'box' || i || '@example.com', 'James W' || translate(i::text,
            '0123456789',
        'abcdefghij') FROM generate_series(1000, 1999) i;
        INSERT INTO things VALUES (1, 'Blue Moon', 'James Wood')"""
    things = Shop(make_database(ddl))
    with closing(things.opened):
        assert things.found("things with label Blue Moon") == ()  # in a column of addresses
        assert things.meant("things with remark James Wood") == {("remark", "James Wood")}
        assert (
            things.meant("things with remark James Wode") == set()
        )  # in a column of persons' names


def test_denied_columns_are_not_searched(url: str) -> None:
    denying = Shop(url, denied_objects=("public.customers.notes_of_board", "public.products"))
    with closing(denying.opened):
        assert denying.found("customers with Secretive 1500") == ()
        assert denying.found('orders of "Hyper Trail Backpack 30L"') == ()
        assert not any(
            "notes_of_board" in sql or "products" in sql for sql in denying.database.statements
        )


def test_what_was_found_for_one_catalogue_is_not_shown_for_another(url: str, shop: Shop) -> None:
    question = 'orders of "Hyper Trail Backpack 30L"'
    assert shop.meant(question)
    denying = Shop(url, denied_objects=("public.products",))
    denying.search = shop.search
    with closing(denying.opened):
        assert denying.found(question) == ()


# ------------------------------------------------------------------------------
# large columns


@pytest.mark.slow
def test_a_large_column_is_compared_as_its_index_allows(
    make_database: Callable[[str], str],
) -> None:
    ddl = """CREATE TABLE parts (part_id int PRIMARY KEY, part_name text, maker text, colour text);
        INSERT INTO parts SELECT i, 'Part Nr ' || i, 'MacMaker ' || i, 'Hue ' || i
            FROM generate_series(1, 400000) i;
        CREATE INDEX ON parts (part_name); CREATE INDEX ON parts (lower(maker))"""
    parts = Shop(make_database(ddl))
    with closing(parts.opened):
        assert parts.meant("how many parts with part name PART NR 77777") == {
            ("part_name", "Part Nr 77777")
        }
        assert parts.meant("parts of macmaker 77777") == {("maker", "MacMaker 77777")}
        assert (
            parts.meant("parts of colour Hue 77777") == set()
        )  # no index serves, and the column is too long to read
        assert not any("CAST(colour" in sql for sql in parts.database.ran)


def test_what_was_found_is_used_again(shop: Shop) -> None:
    shop.found("orders of Newtown 2345")
    shop.database.forget()
    assert shop.meant("how many orders of Newtown 2345") == {("city", "Newtown 2345")}
    shop.database.forget()
    assert shop.meant("how many orders of Newtown 2345") == {("city", "Newtown 2345")}
    assert shop.database.statements == []


# ------------------------------------------------------------------------------
# answers


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("how many orders did Café Müller GmbH place", [[8]]),
        ("华东科技有限公司的订单有多少", [[9]]),
        ("total amount of product The Old Man and the Sea", [[280.0]]),
        ("冯晨的订单有多少", [[20]]),
        ("how many orders", [[60]]),
        ("订单有多少", [[60]]),
    ],
)
def test_rules_answer_by_what_was_found(url: str, question: str, rows: list[list[float]]) -> None:
    with Asking(Settings(database_url=url, value_lookup_timeout_s=ENOUGH_S)) as asking:
        status, answer = asking.sync({"question": question})
    assert status == 200
    assert answer["data"]["query_result"]["rows"] == rows


def test_rules_ask_whom_they_did_not_find(url: str) -> None:
    with Asking(Settings(database_url=url, value_lookup_timeout_s=ENOUGH_S)) as asking:
        _, answer = asking.sync({"question": "冯晨明的订单有多少"})
        assert "query_result" not in answer["data"]
        assert "冯晨明" in answer["data"]["response"]
        assert "“冯晨”" in answer["data"]["response"] or "冯晨？" in answer["data"]["response"]
        _, other = asking.sync({"question": "how many orders of product Hyper Trail Backpak 30L"})
    assert other["data"]["query_result"]["rows"] == [[10]]
    said = '"Hyper Trail Backpak 30L" was taken to mean "Hyper Trail Backpack 30L".'
    assert other["data"]["response"].startswith(said)


def test_what_was_named_before_is_found_again(url: str) -> None:
    with Asking(Settings(database_url=url, value_lookup_timeout_s=ENOUGH_S)) as asking:
        asking.sync(
            {"question": "how many orders did Café Müller GmbH place", "conversation_id": "c"}
        )
        _, answer = asking.sync({"question": "and Smith & Sons Ltd?", "conversation_id": "c"})
        assert answer["data"]["query_result"]["rows"] == [[9]]
        _, back = asking.sync(
            {"question": "top 3 customers in köln am rhein", "conversation_id": "d"}
        )
        assert "query_result" not in back["data"]
        _, answer = asking.sync({"question": "total amount", "conversation_id": "d"})
    assert answer["data"]["query_result"]["rows"] == [["Café Müller GmbH", 252.0]]


def test_prompts_hold_what_was_found(url: str, model: OpenAiServer, tmp_path: Path) -> None:
    settings = Settings(
        database_url=url,
        value_lookup_timeout_s=ENOUGH_S,
        audit_log=str(tmp_path / "a.jsonl"),
        llm_max_retries=0,
    )
    mended = "SELECT count(*) FROM customers WHERE company_name = 'Café Müller GmbH'"
    with Asking(settings, model) as asking:
        asked = {"question": "café müller gmbh 的客户数", "routing_mode": "database_direct"}
        _, answer = asking.sync(asked, Reply("SELECT nothing FROM customers"), Reply(mended))
    assert answer["data"]["query_result"]["rows"] == [[1]]
    prompts = [
        "\n".join(str(message["content"]) for message in request.messages)
        for request in model.requests[-2:]
    ]
    assert all("customers.company_name = 'Café Müller GmbH'" in prompt for prompt in prompts)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines()]
    assert {line["source"] for line in lines} == {"ask", "value_lookup"}
    assert {line["question"] for line in lines} == {asked["question"]}


def test_a_model_is_told_what_only_its_verdict_led_to(url: str, model: OpenAiServer) -> None:
    settings = Settings(database_url=url, value_lookup_timeout_s=ENOUGH_S, llm_max_retries=0)
    with Asking(settings, model) as asking:
        asking.sync(
            {"question": "华东科技有限公司呢"},
            Reply("DATABASE"),
            Reply("SELECT count(*) FROM customers"),
            Reply("x"),
        )
    written = "\n".join(str(message["content"]) for message in model.requests[-1].messages)
    assert "customers.company_name = '华东科技有限公司'" in written


def test_the_filter_correction_uses_what_was_found(shop: Shop) -> None:
    found = shop.found("orders of café müller gmbh")
    sql = "SELECT * FROM customers WHERE company_name = 'café müller gmbh'"
    assert [replacement.stored for replacement in replacements(sql, shop.catalog, found)] == [
        "Café Müller GmbH"
    ]
    people = shop.found("orders of staff Jonathan Read")
    sql = "SELECT * FROM staff WHERE full_name = 'Jonathan Read'"
    assert replacements(sql, shop.catalog, people) == ()
    assert [one.choices for one in missing_literals(sql, shop.catalog, people)] == [
        ("Jonathan Reed",)
    ]


# ------------------------------------------------------------------------------
# faults


def _locked(url: str, admin_url: str) -> Any:
    connection = psycopg2.connect(as_admin(url, admin_url))
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
    return closing(connection)


def _waiting(url: str, admin_url: str) -> int:
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()"
    )
    return int(rows_of(as_admin(url, admin_url), sql)[0][0])


def test_a_lookup_that_takes_too_long_is_left(url: str, embedded_server: Any) -> None:
    shop = Shop(url)
    shop.search = ValueSearch(0.2)
    with closing(shop.opened), _locked(url, embedded_server.admin_url):
        assert shop.found("orders of Café Müller GmbH") == ()
        assert not shop.was_complete
        asyncio.run(until(lambda: _waiting(url, embedded_server.admin_url) == 0))
        shop.database.forget()
        shop.search._timeout_s = ENOUGH_S  # noqa: SLF001 - what took too long is not tried again for a while
        assert shop.found("orders of Café Müller GmbH") == ()
        assert not any("customers" in sql for sql in shop.database.statements)
        assert not shop.was_complete


def test_a_question_is_answered_though_its_lookup_fails(url: str, embedded_server: Any) -> None:
    with Asking(Settings(database_url=url, value_lookup_timeout_s=0.2)) as asking:
        asking.sync({"question": "how many orders"})  # reads the catalogue
        with _locked(url, embedded_server.admin_url):
            status, answer = asking.sync({"question": "how many orders of Café Müller GmbH"})
    assert status == 200
    assert answer["data"]["response"]


def test_cancelling_stops_the_lookup(url: str, embedded_server: Any) -> None:
    shop = Shop(url)

    async def cancelled() -> None:
        wanted = wanted_values(shop.inquiry("orders of Café Müller GmbH"))
        task = asyncio.create_task(shop.search.find(wanted, shop.catalog, shop.database))
        await until(lambda: _waiting(url, embedded_server.admin_url) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: _waiting(url, embedded_server.admin_url) == 0)

    with closing(shop.opened), _locked(url, embedded_server.admin_url):
        run(cancelled(), timeout_s=ENOUGH_S)


def test_errors_of_the_database_are_not_the_questions(url: str, opened: Opener) -> None:
    shop = Shop(url)

    class Broken(Listening):
        async def run(self, sql: str) -> QueryResult:
            raise DatabaseUnavailable(Text("断", "down"))

    with closing(shop.opened):
        shop.database = Broken(shop.opened)
        assert shop.found("orders of Café Müller GmbH") == ()


def test_lookups_can_be_switched_off(url: str) -> None:
    with Asking(Settings(database_url=url, value_lookup_timeout_s=0.0)) as asking:
        _, answer = asking.sync({"question": "how many orders did Café Müller GmbH place"})
    assert "query_result" not in answer["data"]
