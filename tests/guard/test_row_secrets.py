"""Nothing of hidden rows reaches who may not see them, whatever they ask: by policies of the
server, by row rules.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.answers.chart_image import can_draw
from common.errors import InvalidSql
from common.runtime import run
from databases.execution.error_redaction import without_values
from sqltree.value_constants import holds_values
from tests.support.openai_replies import Called
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.row_worlds import (
    POLICIES,
    PROBES,
    TABLES,
    Way,
    World,
    prompts,
    serving,
    told,
    world,
)

FEEDBACK, KNOWLEDGE = "/api/v0/feedback", "/api/v0/knowledge"
WORDS = Reply("These are the rows.")
BY_MONTH = (
    "SELECT s.sold_on, c.name, sum(s.amount) AS amount FROM sale s "
    "JOIN customer c ON c.id = s.customer_id"
    " GROUP BY s.sold_on, c.name ORDER BY s.sold_on"
)


@pytest.fixture(scope="module", params=["policies", "rules"])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture(scope="module")
def asked(
    way: Way,
    model: OpenAiServer,
    make_database: Callable[[str], str],
    make_app_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """A service of which `root`, who sees everything, has asked, and taught, much about what is
    hidden from others.
    """
    folder = tmp_path_factory.mktemp("rows")
    with world(way, make_database, folder, model, app_database_url=make_app_database()) as opened:
        _teach(opened)
        model.requests.clear()
        yield opened


def _teach(opened: World) -> None:
    questions = {
        "Sales of Zanzicanary Ltd": "SELECT sum(amount) FROM sale s "
        "JOIN customer c ON c.id = s.customer_id"
        " WHERE c.name = 'Zanzicanary Ltd'",
        "Customers with number 900001": "SELECT name FROM customer WHERE id = 900001",
        "All the customers": "SELECT id, name FROM customer ORDER BY id LIMIT 5",
        "Total of sales": 'SELECT sum(amount) AS "Zanzicanary Ltd total" FROM sale',
        "The name of each customer": (
            "SELECT name FROM customer /* not Zanzicanary Ltd, id 900001 */"
        ),
    }
    for question, sql in questions.items():
        data = opened.answered("root", sql, question)
        assert told(json.dumps(data)), "root sees what is hidden from others"
        given = {"run_id": data["run_id"], "rating": "satisfied"}
        assert opened.call("root", FEEDBACK, given)[1]["example"]
    wrong = opened.answered(
        "root", "SELECT city FROM customer WHERE city = 'Canaryville'", "Cities of customers"
    )
    failed = {
        "run_id": wrong["run_id"],
        "rating": "unsatisfied",
        "comment": "Canaryville is missing",
    }
    opened.call("root", FEEDBACK, failed)
    _share(opened)


def _share(opened: World) -> None:
    """Shares what root brought: at the store, because nobody reviews their own, and others may not
    see it.
    """
    learned = opened.asking.services.store.learned
    for kind in ("example", "lesson"):
        for item in opened.call("root", f"{KNOWLEDGE}/{kind}s?limit=100")[1][f"{kind}s"]:
            verdict: Any = "approve"
            reviewed = learned.review("default", item[f"{kind}_id"], "reviewer", verdict, seen=None)
            assert run(reviewed, 10).outcome == "done"


def _clean(answer: bytes | str) -> None:
    assert told(answer) == [], (
        answer if isinstance(answer, str) else answer.decode("utf-8", "replace")
    )


@pytest.mark.parametrize("sql", PROBES)
def test_statements_tell_nothing(asked: World, sql: str) -> None:
    for path in ("/api/v0/sql/run", "/api/v0/sql/validate"):
        for who in ("ann", "eve"):
            code, answer = asked.fetch(who, path, {"sql": sql})
            assert code in (200, 403, 422), answer
            said = answer.decode().replace(json.dumps(sql)[1:-1], "")
            _clean(said)
            plan = json.loads(answer)["data"].get("plan")
            assert plan is None, "an estimate counts hidden rows"


def test_rights_are_said_and_count_nothing_that_is_closed(asked: World) -> None:
    """Whether a hidden row matches or no row at all, the sentence is the same."""
    said = []
    for amount in ("7654321.25", "7654321.26"):
        sql = (
            "SELECT c.name FROM customer c JOIN sale s ON s.customer_id = c.id "
            f"WHERE s.amount = {amount}"
        )
        data = asked.answered("ann", sql, "Who bought for this much")
        said.append((data["response"], data["warnings"]))
    assert said[0] == said[1] == ("No rows that you may see match.", [])
    open_to_all = asked.answered("ann", "SELECT * FROM product WHERE id = 7", "Product 7")
    assert open_to_all["response"] == "No rows match."
    counted = asked.answered("ann", "SELECT status, count(*) FROM sale GROUP BY 1", "By status")
    assert any('Some of "sale' in warning for warning in counted["warnings"]), counted["warnings"]
    _clean(json.dumps(counted))
    assert not asked.answered("ann", "SELECT * FROM product", "Products")["warnings"]


@pytest.mark.parametrize(
    "question",
    [
        "Sales of Zanzicanari Ltd",
        "Customers with number 900002",
        "All the customers",
        "Total of sales",
    ],
)
def test_questions_tell_neither_who_asks_nor_the_model(
    asked: World, model: OpenAiServer, question: str
) -> None:
    """The names are near to hidden ones: suggestions, looked-up values and examples of others would
    tell them.
    """
    model.requests.clear()
    given = question.replace("Zanzicanari", "").replace("900002", "")
    for stream in (False, True):
        for sql in (
            "SELECT name FROM customer WHERE name = 'Zanzicanari Ltd'",
            "SELECT count(*) FROM sale",
            BY_MONTH,
        ):
            answer = asked.ask("ann", question, Reply(sql), WORDS, stream=stream).decode()
            assert '"sql"' in answer and '"plan"' not in answer and "estimate" not in answer
            for said in (question, given, "Zanzicanari"):
                answer = answer.replace(said, "")
            _clean(answer)
    assert model.requests
    _clean(prompts(model.requests).replace("Zanzicanari", "").replace("900002", ""))


def test_a_value_that_somebody_else_has_looked_up(asked: World, model: OpenAiServer) -> None:
    """The stored spelling tells that the value was found."""
    for who, finds in (("root", True), ("ann", False), ("eve", False), ("root", True)):
        model.requests.clear()
        answer = asked.ask(
            who, "sales of zanzicanary ltd", Reply("SELECT count(*) FROM sale"), WORDS
        ).decode()
        assert ("Zanzicanary Ltd" in answer + prompts(model.requests)) == finds


def test_errors_that_are_repaired_tell_the_model_nothing(asked: World, model: OpenAiServer) -> None:
    for failing in PROBES[5:9]:
        model.requests.clear()
        replies = (
            Reply(failing),
            Reply("SELECT name FROM customer WHERE note::date > '2000-01-01'"),
            WORDS,
        )
        _clean(asked.ask("ann", "Customers by note", *replies).decode().replace("900001", ""))
        _clean(prompts(model.requests).replace("900001", ""))


def test_everything_that_is_made_of_an_answer(asked: World, way: Way) -> None:
    run_id = asked.answered("ann", BY_MONTH, "Amount by day")["run_id"]
    draws = way == "rules" and can_draw()  # it takes a second
    for kind in ("csv", "json", "xlsx", *(["png"] if draws else [])):
        code, file = asked.fetch("ann", f"/api/v0/runs/{run_id}/export?format={kind}")
        assert code == 200, file
        if kind != "png":
            _clean(file)
    whats = {"what": ["describe", "shares", "change", "outliers"]}
    code, found = asked.fetch("ann", f"/api/v0/runs/{run_id}/analyze", whats)
    assert code == 200
    _clean(found)
    changed = {
        "run_id": run_id,
        "rating": "need_modification",
        "modified_sql": "SELECT * FROM customer",
    }
    code, data = asked.call("ann", FEEDBACK, changed)
    assert code == 200 and data["query_result"]["row_count"] == 2 and data["plan"] is None
    _clean(json.dumps(data))
    assert asked.fetch("eve", f"/api/v0/runs/{run_id}/export?format=csv")[0] == 404


def test_the_catalogue(asked: World) -> None:
    for path in (
        *(
            "schema/tables",
            "schema/tables/customer",
            "schema/tables/sale",
            "schema/tables/public.membership",
        ),
        *(
            "schema/search?question=Zanzicanari",
            "schema/search?question=customers+in+Oslo",
            "examples",
        ),
        "schema/tables/customre",
    ):
        for who in ("ann", "eve"):
            _clean(asked.fetch(who, f"/api/v0/{path}")[1])
    columns = asked.call("ann", "/api/v0/schema/tables/sale")[1]["columns"]
    assert not any(column["values"] or column["period"] for column in columns)
    assert asked.call("ann", "/api/v0/schema/tables/product")[1]["columns"][1]["values"] == [
        "Desk",
        "Lamp",
    ]


def test_what_others_taught(asked: World, way: Way) -> None:
    """Reviewers who don't see all rows don't see what others said of these; root does under rules,
    which limit nothing for root, and what holds no value everybody does.
    """
    for path in ("examples?limit=100", "lessons?limit=100", "export"):
        for who in ("ann", "eve"):
            _clean(asked.fetch(who, f"{KNOWLEDGE}/{path}")[1])
    everybodys = [
        example["question"]
        for example in asked.call("eve", f"{KNOWLEDGE}/examples?limit=100")[1]["examples"]
    ]
    assert "All the customers" in everybodys
    (hidden,) = [
        example
        for example in asked.call("root", f"{KNOWLEDGE}/examples?limit=100")[1]["examples"]
        if example["question"] == "Sales of Zanzicanary Ltd"
    ]
    code, answer = asked.fetch("ann", f"{KNOWLEDGE}/examples/{hidden['example_id']}/certify", {})
    assert code == 404, answer
    _clean(answer)


def test_an_idempotency_key_gives_nobody_elses_answer(asked: World) -> None:
    body = {"question": "Who are they?", "routing_mode": "database_direct"}
    for who, rows in (("root", 3), ("ann", 2), ("eve", 0)):
        assert asked.model is not None
        asked.model.forget_replies()
        asked.model.replies(Reply("SELECT id, name FROM customer ORDER BY id"), WORDS)
        code, data = asked.call(who, "/api/v0/ask_agent", body, Idempotency_Key="same-key")
        assert (code, data["query_result"]["row_count"]) == (200, rows)
        assert asked.call(who, f"/api/v0/runs/{data['run_id']}")[0] == 200
    assert asked.call("ann", f"/api/v0/runs/{data['run_id']}")[0] == 404, "it is eve's"


def test_the_audit_log_has_what_was_run(asked: World, way: Way) -> None:
    statement = "SELECT name FROM customer WHERE tenant <> 'nowhere'"
    asked.fetch("ann", "/api/v0/sql/run", {"sql": statement})
    line = asked.audited("ann")[-1]
    assert (line["sql"], line["verdict"], line["rows"]) == (statement, "executed", 2)
    if way == "rules":
        assert (
            "m.member = 'ann'" in line["sql_as_run"] and line["sql_as_run"].count("OFFSET 0") == 1
        )
    asked.fetch("ann", "/api/v0/sql/run", {"sql": "SELECT 1 / (id - id) FROM customer"})
    line = asked.audited("ann")[-1]
    assert (line["verdict"], line["error_type"]) == ("failed", "syntax_error")
    assert ("sql_as_run" in line) == (way == "rules")
    asked.fetch("ann", "/api/v0/sql/run", {"sql": "SELECT name FROM product"})
    assert "sql_as_run" not in asked.audited("ann")[-1]


def test_rules_answer_without_a_model(asked: World, way: Way, tmp_path: Path) -> None:
    with serving(way, asked.url, tmp_path) as offline:
        for question in (
            "How many sales are there?",
            "customers in Canaryvile",
            "amount by status",
            "the latest sale",
        ):
            answer = offline.ask("ann", question, routing_mode="hybrid").decode()
            for said in ("Canaryvile", "Zanzicanari", "canaryvile", "zanzicanari"):
                answer = answer.replace(said, "")
            _clean(answer)


@pytest.mark.parametrize("about", ["values", "names"])
def test_conditions_that_fail_on_hidden_rows_quote_none(
    way: Way, make_database: Callable[[str], str], tmp_path: Path, about: str
) -> None:
    """A policy, or a rule, of the operator's own that meets a value it can't read, or that names
    nothing.
    """
    condition = "note::integer > 0"
    if about == "names":
        condition = "id < 9 OR pg_has_role(name, 'USAGE')"
    elif way == "policies":
        condition = "make_date(id, CASE WHEN id > 9 THEN 13 ELSE 1 END, 1) IS NOT NULL"
    failing = (
        f"DROP POLICY own_rows ON customer; CREATE POLICY fails ON customer USING ({condition});"
    )
    url = make_database(TABLES + (POLICIES + failing if way == "policies" else ""))
    rules = f'tables: {{public.customer: [{{groups: [north], rows: "{condition}"}}]}}'
    with serving(way, url, tmp_path, rules=rules) as failing_world:
        for sql in ("SELECT name FROM customer WHERE name > ''", "SELECT count(*) FROM customer"):
            code, answer = failing_world.fetch("ann", "/api/v0/sql/run", {"sql": sql})
            assert code == 422, answer
            _clean(answer)


@pytest.mark.parametrize(
    ("said", "sqlstate", "told_as"),
    [
        ('role "canary" does not exist', "42704", 'role "…"'),
        ("invalid byte sequence: 0xd0 0x96", "22021", "invalid byte sequence: … …"),
        (
            'invalid input syntax for type integer: "canary"',
            "22P02",
            'invalid input syntax for type integer: "…"',
        ),
        (
            'invalid input syntax for type integer: "abc"',
            "22P02",
            'invalid input syntax for type integer: "abc"',
        ),
        (
            'invalid input syntax for type bit: "abc" or "canary"',
            "22P02",
            'invalid input syntax for type bit: "…"',
        ),
        (
            'invalid input syntax for type json: "can"ary" is',
            "22P02",
            'invalid input syntax for type json: "…"',
        ),
        (
            "date field value out of range: 900001-13-01",
            "22008",
            "date field value out of range: …",
        ),
        ("integer out of range", "22003", "integer out of range"),
        (
            "canary is not welcome",
            "P0001",
            "a function of the database failed; what it says is not shown",
        ),
    ],
)
def test_values_in_messages(said: str, sqlstate: str, told_as: str) -> None:
    error = InvalidSql(said, sqlstate=sqlstate, hint="canary")
    found = without_values(error, "SELECT 'abc'::integer, id FROM customer")
    assert (found.detail, found.hint) == (told_as, None)


def test_names_in_messages_stay_where_the_statement_is_at_fault() -> None:
    error = InvalidSql(
        'column "kanary" does not exist', sqlstate="42703", position=8, hint="canary"
    )
    assert without_values(error, "SELECT canary FROM customer") is error


@pytest.mark.parametrize(
    ("sql", "holds"),
    [
        ("SELECT name, sum(amount) FROM sale GROUP BY 1 ORDER BY 2 DESC LIMIT 5", False),
        (
            (
                "SELECT date_trunc('month', sold_on), round(sum(amount) / 1000, 2) "
                "FROM sale GROUP BY 1"
            ),
            False,
        ),
        (
            "SELECT to_char(sold_on, 'YYYY-MM'), coalesce(sum(amount), 0) FROM sale GROUP BY 1",
            False,
        ),
        ("SELECT count(*) FROM sale WHERE sold_on > CURRENT_DATE - interval '7 days'", False),
        ("SELECT * FROM customer WHERE name = 'Acorn'", True),
        ("SELECT * FROM customer WHERE name ~ 'Acorn'", True),
        ("SELECT * FROM customer WHERE strpos(name, 'Acorn') > 0", True),
        ("SELECT * FROM customer WHERE id = 17", True),
        ("SELECT CASE WHEN id = 1 THEN 'Acorn' END FROM customer", True),
        ("SELECT 'Acorn' AS said FROM customer", True),
        ("SELECT * FROM sale WHERE sold_on > '2026-01-01'", True),
        ("SELECT * FROM (VALUES ('Acorn')) AS v", True),
        ("not SQL at all", True),
        ("SELECT 1 / (id - 900001) FROM customer", True),
        ("SELECT * FROM customer WHERE id / 900001 = 1", True),
        ("SELECT amount * 100.0 / 24, amount * 0.001, -amount / 1e6 FROM sale", False),
        ("SELECT * FROM customer WHERE strpos(name, 'May') > 0", True),
        ("SELECT * FROM customer WHERE length('Month') > 0", True),
        ("SELECT extract(month FROM sold_on), date_part('year', sold_on) FROM sale", False),
        ("SELECT name FROM customer ORDER BY ARRAY['Acorn']", True),
        ("SELECT name FROM customer /* Acorn */", True),
        ("SELECT name FROM customer -- Acorn", True),
        ('SELECT sum(amount) AS "Acorn Ltd total" FROM sale', True),
        ('SELECT "Acorn".name FROM customer AS "Acorn"', True),
        ('WITH "Acorn" AS (SELECT 1) SELECT * FROM "Acorn"', True),
        ('SELECT * FROM (SELECT 1) AS t ("Acorn")', True),
        ('SELECT rank() OVER "Acorn" FROM sale WINDOW "Acorn" AS (ORDER BY id)', True),
        ('SELECT xmlelement(NAME "Acorn", id) FROM sale', True),
        ('SELECT id AS U&"Acorn" FROM sale', True),
        ("SELECT count(*) AS id_900001 FROM sale", True),
        ("SELECT count(*) AS 阿科恩公司 FROM sale", True),
        ('SELECT count(*) AS "900001" FROM sale', True),
        ("SELECT Sum(s.amount) AS total_2025, count(*) AS 客户数量 FROM Sale s", False),
        (
            'SELECT sum(amount) AS 销售额合计, avg(amount) AS "average amount per id" FROM sale',
            False,
        ),
        ("SELECT sum(amount) AS 张三销售额合计 FROM sale", True),
        (
            'SELECT sum(amount) AS "总销售额（Amount）", max(id) AS "2025年最大 Sale ID" FROM sale',
            False,
        ),
    ],
)
def test_what_rows_may_have(sql: str, holds: bool) -> None:
    assert holds_values(sql, "sale\n销售额\namount\nid\n客户") == holds


@pytest.mark.parametrize(
    ("agent", "calls"),
    [
        (
            "tool_loop",
            [
                Called("search_schema", {"words": "customers"}),
                Called("describe_table", {"table": "sale"}),
                Called("search_values", {"words": "Zanzi canari", "table": "customer"}),
                Called("search_memory", {"question": "sales of customers"}),
                Called(
                    "run_sql",
                    {
                        "sql": (
                            "SELECT c.*, s.amount FROM customer c "
                            "JOIN sale s ON s.customer_id = c.id"
                        )
                    },
                ),
                Called("run_sql", {"sql": "SELECT note::date FROM customer"}),
            ],
        ),
        (
            "tool_graph",
            [
                Called(
                    "query_schema_metadata", {"tables": ["sale", "customer"], "words": "customers"}
                ),
                Called(
                    "generate_sql",
                    {"instruction": "all customers", "sql": "SELECT * FROM customer"},
                ),
                Called("execute_current_sql", {}),
            ],
        ),
    ],
)
def test_tools_tell_the_model_nothing(
    asked: World, model: OpenAiServer, agent: str, calls: list[Called]
) -> None:
    model.requests.clear()
    replies = [*(Reply(calls=[call]) for call in calls), *[Reply("There are two customers.")] * 3]
    answer = asked.ask("ann", "who are the customers?", *replies, stream=True, agent=agent).decode()
    _clean(answer)
    assert '"plan"' not in answer and "Estimate" not in prompts(model.requests)
    _clean(prompts(model.requests))
    assert "Acorn" in prompts(model.requests), "the rows that ann may see were found"
