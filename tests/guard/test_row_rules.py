"""Row rules in place of policies: the same rows, whatever the statement, and nothing of the others
anywhere.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from common.actor import NOBODY, Actor, attributes_of
from common.errors import DatabaseUnavailable, StatementRejected
from databases.catalog.catalog import Knowledge
from guard.row_rules import RowRules
from guard.row_rules.rule_file import read_text
from tests.conftest import alone
from tests.support.cases import all_cases
from tests.support.databases import as_admin
from tests.support.effort import tries
from tests.support.row_rules import ANN, FOLDER, KINDS, Bench, open_bench, prepare, statements
from tests.support.row_statements import queries

MOST_REFUSED = 0.05  # of the statements that policies allow
EVERYONE = "tables:\n  {}:\n  - groups: everyone\n    rows: {}\n"


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    url = make_database((FOLDER / "schema.sql").read_text("utf-8"))
    with alone():
        prepare(as_admin(url, admin_url))
    return url


@pytest.fixture(scope="module")
def ann(url: str, admin_url: str) -> Iterator[Bench]:
    with open_bench(url, as_admin(url, admin_url)) as bench:
        yield bench


def _rules(text: str) -> RowRules:
    return RowRules(read_text(text.encode(), "rules.yaml"))


def _same(bench: Bench, sql: str, *, in_order: bool = False) -> bool:
    """Whether the rules allow the statement where the policies do; fails unless what it gives is
    the same then.
    """
    standard, ruled = bench.standard(sql), bench.ruled(sql)
    assert not ruled.canaries(sql)
    if standard.error is not None:
        assert ruled.error is not None, f"policies: {standard.error}"
        return True
    if ruled.error is not None:
        return False
    if in_order:
        assert ruled == standard
    assert ruled.in_any_order == standard.in_any_order
    return True


# ------------------------------------------------------------------------------
# against policies


def test_statements_give_what_policies_give(ann: Bench) -> None:
    tried, refused = 0, []
    with all_cases() as cases:
        for kind in KINDS:
            for sql in statements(kind):
                with cases.case(sql):
                    tried += 1
                    if not _same(ann, sql, in_order=kind == "ordered"):
                        refused.append(sql)
    assert tried >= 300
    assert len(refused) <= tried * MOST_REFUSED, refused


@settings(
    max_examples=tries(24),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sql=queries())
def test_any_statement_gives_what_policies_give(ann: Bench, sql: str) -> None:
    assert _same(ann, sql), ann.ruled(sql).error


def test_the_standard_hides_something(ann: Bench) -> None:
    """Without rules the canaries are there, so the tests above can fail."""
    everybody = ann.of(_rules("tables: {}"))
    assert everybody.rows.is_open
    assert len(everybody.ruled("SELECT * FROM orders").canaries("")) > 10
    assert everybody.ruled("SELECT id FROM orders WHERE note::int > 0").canaries("") == {"SECRET-1"}


def test_without_the_fence_errors_would_show_hidden_rows(ann: Bench) -> None:
    """The fence is what keeps a statement's conditions from hidden rows: PostgreSQL tries cheaper
    ones first.
    """
    fenced = ann.rows.rewritten("SELECT id FROM orders WHERE note::int > 0", ann.known)
    bare = ann.of(_rules("tables: {}"))
    assert ann.ruled("SELECT id FROM orders WHERE note::int > 0").error is None
    assert bare.ruled(fenced.replace("OFFSET 0", "")).canaries("") == {"SECRET-1"}


def test_what_shows_hidden_rows_past_the_tables_is_refused(ann: Bench) -> None:
    with all_cases() as cases:
        for sql in statements("refused"):
            with cases.case(sql):
                outcome = ann.ruled(sql)
                assert outcome.error is not None
                assert not outcome.canaries(sql)
                assert "tenant" not in outcome.error


# ------------------------------------------------------------------------------
# grants and masks

MASKED = """
tables:
  public.customer:
    - groups: [a]
      rows: tenant = 'a'
      masks: {salary: null, name: "left(name, 1) || '**'", Display Name: "'***'"}
    - groups: [x]
      rows: tenant = 'x'
      masks: {name: "'x' || id"}
    - groups: [payroll]
      rows: tenant <> 'c' AND salary < 600
  public.orders:
    - groups: everyone
      rows: all
      masks: {note: null, amount: "round(amount, -2)", placed: "date_trunc('year', placed)",
              phone: "'***'", tags: null}
"""
MASKED_ROWS = {
    ("a",): ["(1, 'H**', None, '***')", "(2, 'L**', None, '***')"],
    ("x",): ["(3, 'x3', 700, None)"],
    ("a", "x"): ["(1, 'H**', None, '***')", "(2, 'L**', None, '***')", "(3, 'x3', 700, None)"],
    ("a", "payroll"): ["(1, 'Han', 500, 'Han M.')", "(2, 'L**', None, '***')"],
    (): [],
}


def test_rights_add_up_row_by_row(ann: Bench) -> None:
    with all_cases() as cases:
        for groups, rows in MASKED_ROWS.items():
            with cases.case(groups):
                bench = ann.of(_rules(MASKED), Actor("ann", groups))
                found = bench.ruled(
                    'SELECT id, name, salary, "Display Name" FROM customer ORDER BY id'
                )
                assert list(found.rows) == rows


def test_statements_see_nothing_behind_a_mask(ann: Bench) -> None:
    masked = ann.of(_rules(MASKED), Actor("ann", ("a",)))
    probes = {
        "SELECT id FROM customer WHERE salary = 500": [],
        "SELECT id FROM customer WHERE salary IS NULL AND name = 'H**'": ["(1,)"],
        "SELECT count(DISTINCT salary), sum(salary), max(name) FROM customer": ["(0, None, 'L**')"],
        "SELECT c.id FROM customer c JOIN (VALUES ('Han')) AS v (name) USING (name)": [],
        "SELECT to_jsonb(c) ->> 'name' FROM customer c WHERE c.id = 1": ["('H**',)"],
        "SELECT id FROM customer ORDER BY salary DESC NULLS LAST, name DESC": ["(2,)", "(1,)"],
        "SELECT name, count(*) FROM customer GROUP BY id, name ORDER BY 1": [
            "('H**', 1)",
            "('L**', 1)",
        ],
        "SELECT note, amount, placed::text, phone, tags FROM orders WHERE id = 10": [
            "(None, Decimal('0'), '2024-01-01', '***', None)"
        ],
        (
            "SELECT id FROM orders WHERE note LIKE 'SECRET%' OR phone LIKE '138%' "
            "OR tags IS NOT NULL"
        ): [],
        "SELECT count(*) FROM orders": ["(10,)"],
        (
            "SELECT id FROM orders WHERE placed > '2023-06-01'::date AND length(phone) = 3 "
            "AND amount > 99 ORDER BY 1"
        ): [
            "(1,)",
            "(14,)",
        ],
    }
    with all_cases() as cases:
        for sql, rows in probes.items():
            with cases.case(sql):
                assert list(masked.ruled(sql).rows) == rows


def test_values_of_the_actor_are_constants_whatever_they_hold(ann: Bench) -> None:
    rules = _rules(
        EVERYONE.format("public.membership", "user_id = :user_id OR tenant = ANY (:groups)")
    )
    sql = "SELECT tenant FROM membership ORDER BY 1"
    hostile = (
        "ann\0",
        "' OR true --",
        "ann'",
        "\\' OR 1=1",
        "$1",
        ":groups",
        '"ann"',
        "ann; SELECT 1",
        "李雷'",
        "\n",
        "{a}",
        "",
    )
    with all_cases() as cases:
        for text in hostile:
            with cases.case(text):
                assert ann.of(rules, Actor(text, (text, "no"))).ruled(sql).rows == ()
        with cases.case("real ones"):
            assert ann.of(rules, Actor("ann", ("b",))).ruled(sql).rows == (
                "('a',)",
                "('b',)",
                "('x',)",
            )
            assert ann.of(rules, NOBODY).ruled(sql).rows == ()


def test_a_user_is_compared_as_the_type_of_the_column(ann: Bench) -> None:
    rules = _rules(EVERYONE.format("public.customer", "id = :user_id"))
    assert ann.of(rules, Actor("2")).ruled("SELECT name FROM customer").rows == ("('Li',)",)
    assert ann.of(rules, NOBODY).ruled("SELECT name FROM customer").rows == ()
    assert ann.of(rules, Actor("bob")).ruled("SELECT name FROM customer").error is not None


def test_attributes_are_constants_of_the_type_they_are_compared_with(ann: Bench) -> None:
    sql = "SELECT id FROM customer ORDER BY 1"

    def shown(rows: str, *values: str) -> tuple[str, ...]:
        rules = _rules(EVERYONE.format("public.customer", rows))
        actor = Actor("ann", attributes=attributes_of({"of": values}))
        outcome = ann.of(rules, actor).ruled(sql)
        assert outcome.error is None
        return outcome.rows

    everything = shown("true")
    with all_cases() as cases:
        for hostile in ("' OR true --", '1","2', '"}', "{1,2}", "\\", "", ":attribute.of", "李"):
            with cases.case(hostile):
                assert shown("id::text = :attribute.of", hostile) == ()
                assert shown("id::text = ANY (:attribute.of)", hostile, "no") == ()
        with cases.case("one, several"):
            assert shown("id = :attribute.of", "2") == ("(2,)",)
            assert shown("id = ANY (:attribute.of)", "2") == ("(2,)",)
            assert shown("id = ANY (:attribute.of)", "1", "2") == ("(1,)", "(2,)")
            assert shown("id <> ALL (:attribute.of)", "1") == everything[1:]
            assert shown("ARRAY[id::text] <@ :attribute.of::text[]", "1") == ("(1,)",)
            assert shown("id = :attribute.of", "1", "2") == ()
        for widening in (
            "id IS DISTINCT FROM :attribute.of",
            "id <> ALL (:attribute.of)",
            ":attribute.of IS NULL OR id = 1",
            "coalesce(id = :attribute.of, true)",
            "NOT EXISTS (SELECT FROM public.orders o WHERE o.note = :attribute.of)",
        ):
            with cases.case(widening):
                assert shown(widening) == ()


def test_a_table_that_no_grant_opens_shows_no_rows(ann: Bench) -> None:
    rules = _rules("tables:\n  public.orders: []\n  public.line:\n  - {groups: [boss], rows: all}")
    nobody = ann.of(rules)
    assert nobody.ruled("SELECT count(*), max(note) FROM orders").rows == ("(0, None)",)
    assert nobody.ruled("SELECT code FROM line").rows == ()
    boss = ann.of(rules, Actor("bob", ("boss",)))
    assert boss.ruled("SELECT count(*) FROM line").rows == ("(9,)",)
    assert (
        boss.rows.rewritten("SELECT  1 FROM line", ann.known) == "SELECT  1 FROM line"
    )  # as it was written


# ------------------------------------------------------------------------------
# names in conditions

CONDITIONS = {
    # Innermost first, as in SQL; what is found is written down.
    "tenant IN (SELECT tenant FROM membership WHERE user_id = 'bob')": "1 2 3",
    (
        "EXISTS (SELECT 1 FROM membership m WHERE m.tenant = orders.tenant AND user_id = 'bob')"
    ): "1 2 3",
    (
        "EXISTS (SELECT * FROM membership WHERE membership.tenant = public.orders.tenant "
        "AND role = 'boss')"
    ): "3",
    "EXISTS (SELECT 1 FROM orders o WHERE o.parent_id = orders.id)": "1 10 11 13 14",
    (
        "(SELECT count(*) FROM line l JOIN product p ON p.code = l.code "
        "WHERE order_id = orders.id) > 1"
    ): "1 10",
    "id IN (SELECT s.order_id FROM (SELECT order_id FROM line WHERE no = 2) s)": "1 10 14",
    "tenant = ANY (SELECT g.name FROM unnest(:groups) AS g (name))": "10 11 12 13 14 15",
    "id IN (SELECT s FROM (SELECT order_id AS s, no FROM line) q WHERE no = 2)": "1 10 14",
    (
        "id IN (SELECT y FROM (SELECT order_id, no FROM line) q (y) WHERE no = 2 "
        "GROUP BY y ORDER BY y)"
    ): "1 10 14",
    "id = (SELECT count(*) AS id FROM line GROUP BY no ORDER BY id LIMIT 1)": "3",
    "id IN (SELECT order_id FROM line UNION SELECT 15 ORDER BY 1)": "1 3 10 11 12 14 15",
    (
        "id IN (SELECT x.id FROM line l, LATERAL (SELECT l.order_id AS id) x WHERE l.no = 2)"
    ): "1 10 14",
    "tenant = 'b' OR tenant = 'c' OR (tenant = 'x' OR id = 15)": "1 2 3 13 14 15",
    "ctid IS NOT NULL AND tenant IS NULL": "4",
    "id * id > 120 AND id - id = 0": "11 12 13 14 15",
    "tags[1:1] = '{red}' AND (doc ->> 'k') IS NOT NULL": "10 11",
}
MISFITS = {
    "nothing = 1": "orders has no column nothing",
    "orders.nothing = 1": "orders has no column nothing",
    "customer.id = 1": "customer is no table that it reads from",
    "id IN (SELECT id FROM nowhere)": "there is no table public.nowhere",
    "EXISTS (SELECT FROM membership m WHERE m.tenant = tenant)": "it compares m.tenant with itself",
    "EXISTS (SELECT FROM membership m WHERE lower(m.tenant) = lower(tenant))": (
        "it compares m.tenant with itself"
    ),
    "id = id": "it compares orders.id with itself",
    "EXISTS (SELECT FROM line, product WHERE code = note)": (
        "write whose column code is: line.code or product.code"
    ),
    "id IN (SELECT s FROM (SELECT order_id + 0 FROM line) q)": "write whose column s is: q.s",
    "id IN (SELECT order_id FROM (SELECT * FROM line) q)": (
        "write whose column order_id is: q.order_id"
    ),
    "id IN (SELECT g FROM generate_series(1, 9) AS g)": "write whose column g is: g.g",
    "id IN (WITH w AS (SELECT 1 AS id) SELECT w.id FROM w)": "WITH is not allowed in it",
    "orders IS NOT NULL": "orders has no column orders",
    "orders.* IS NOT NULL": "name its columns one by one",
    "EXISTS (SELECT FROM (orders o JOIN line l ON true) AS j)": (
        "its subqueries may read tables, joins"
    ),
    "note": "argument of WHERE must be type boolean, not type text",
    "id = 'x'::text": "operator does not exist: integer = text",
    "nofunction(id)": "function nofunction(integer) does not exist",
    "rank() OVER () > 1": "window functions are not allowed in WHERE",
    "sum(id) > 1": "aggregate functions are not allowed in WHERE",
}


def test_a_name_in_a_condition_means_one_thing(ann: Bench) -> None:
    """Whatever the statement calls its own tables and columns."""
    ids = "string_agg(id::text, ' ' ORDER BY id)"
    around = (
        f"SELECT {ids} FROM orders",
        f"SELECT {ids} FROM orders AS membership",
        (
            "WITH membership AS (SELECT 1 AS id, 'a' AS tenant), line AS (SELECT 1) "
            f"SELECT {ids} FROM orders"
        ),
        (
            f"SELECT (SELECT {ids} FROM orders) FROM (SELECT 'b' AS tenant, 0 AS order_id, 'bob' "
            "AS user_id) AS m"
        ),
    )
    with all_cases() as cases:
        for condition, found in CONDITIONS.items():
            bench = ann.of(_rules(EVERYONE.format("public.orders", condition)))
            for sql in around:
                with cases.case((condition, sql)):
                    assert bench.ruled(sql).rows == (f"('{found}',)",)


def test_a_condition_that_does_not_fit_closes_its_table(
    ann: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    everything = ann.of(_rules("tables: {}"))

    async def plan(sql: str) -> str | None:
        error = everything.ruled(sql).error
        return error.splitlines()[0] if error else None

    with all_cases() as cases:
        for condition, said in MISFITS.items():
            with cases.case(condition):
                rules = _rules(EVERYONE.format("public.orders", condition))
                (problem,) = asyncio.run(rules.check(ann.known, plan))
                assert problem.startswith(f"rules.yaml:3: {said}")
                assert problem in caplog.text
                closed = ann.of(rules)
                assert "has a mistake" in str(closed.ruled("SELECT 1 FROM orders").error)
                assert closed.ruled("SELECT count(*) FROM line").rows == ("(9,)",)


def test_a_mistake_closes_a_table_only_for_whom_it_counts(ann: Bench) -> None:
    rules = _rules(
        "tables:\n  public.orders:\n  - {groups: [a], rows: gone = 1}\n  - {groups: [b], "
        "rows: id = 1}\n"
        "  - {groups: [c], rows: all, masks: {nothing: null}}\n  public.gone: []\n"
    )
    problems = asyncio.run(rules.check(ann.known))
    assert [problem.split(";")[0] for problem in problems] == [
        "rules.yaml:3: orders has no column gone",
        "rules.yaml:5: orders has no column nothing",
        "rules.yaml:6: there is no table public.gone that the role may see",
    ]
    shown = {
        group: ann.of(rules, Actor("x", (group,))).ruled("SELECT id FROM orders") for group in "abc"
    }
    assert (shown["b"].rows, shown["a"].rows, shown["c"].rows) == (("(1,)",), (), ())
    assert shown["a"].error == shown["c"].error != shown["b"].error is None
    assert "does not exist" in str(ann.of(rules).ruled("SELECT * FROM gone").error)


# -------------------------------------------------------------------------------------- relatives,
# columns, catalogue


def test_views_are_read_when_they_have_a_rule_or_are_opened(ann: Bench) -> None:
    text = FOLDER.joinpath("rules.yaml").read_text("utf-8")
    opened = ann.of(
        _rules(
            text + "open: {views: [public.order_view], functions: [public.twice, public.note_of]}"
        )
    )
    assert opened.ruled("SELECT count(*) FROM order_view").rows == ("(10,)",)
    assert opened.ruled("SELECT twice(id) FROM orders WHERE id = 10").rows == ("(20,)",)
    assert opened.ruled("SELECT note_of(1)").rows == (
        "('SECRET-1',)",
    )  # what the operator opens shows what it reads
    assert opened.ruled("SELECT count(*) FROM view_of_view").error is not None
    assert ann.ruled("SELECT id FROM ruled_view ORDER BY id").rows == ("(10,)", "(20,)", "(21,)")


def test_relatives_of_ruled_tables(ann: Bench) -> None:
    child = ann.of(_rules(EVERYONE.format("public.event_2024", "kind = 'open'")))
    assert child.ruled("SELECT n FROM event_2024").rows == ("(3,)",)
    assert child.ruled("SELECT n FROM ONLY event").rows == ()
    for sql in ("SELECT n FROM event", "SELECT n FROM event_2023"):
        assert "Row rules hold for tables" in str(child.ruled(sql).error)
    own = ann.of(
        _rules(
            EVERYONE.format("public.animal", "tenant = 'a'")
            + "  public.dog:\n  - {groups: [a], rows: all}"
        )
    )
    assert own.ruled("SELECT count(*) FROM dog").rows == (
        "(2,)",
    )  # a rule of its own wins over its parent's
    assert own.ruled("SELECT name FROM animal").rows == ("('cat',)",)


def test_what_rules_mean_for_the_catalogue(ann: Bench) -> None:
    rows = _rules(EVERYONE.format("public.animal", "tenant = 'a'\n    masks: {name: null}")).of(ANN)
    limits = rows.limits(ann.known)
    dog, animal = ("public", "dog"), ("public", "animal")
    assert limits.ruled == {dog, animal}
    assert limits.masked == {(*dog, "name"), (*animal, "name")}
    assert limits.closed == frozenset()
    limits = ann.rows.limits(ann.known)
    assert limits.closed == {("public", name) for name in ("order_view", "view_of_view", "kept")}
    assert ("public", "ruled_view") in limits.ruled


def test_columns_that_the_role_may_not_read(ann: Bench) -> None:
    """Naming the others works as it does without rules; rules don't make `*` leave columns out."""
    columns = {
        **ann.known.facts.columns,
        ("public", "customer"): frozenset(("id", "tenant", "name", "salary")),
    }
    known = Knowledge(ann.known.catalog, replace(ann.known.facts, columns=columns))
    half = replace(ann, known=known)
    assert (
        half.ruled(
            "SELECT c.id, o.note FROM customer c JOIN orders o ON o.customer_id = c.id"
        ).error
        is None
    )
    for sql in (
        "SELECT * FROM customer",
        "SELECT c FROM customer c",
        "SELECT x FROM customer AS t (x)",
    ):
        assert "Some columns of public.customer may not be read" in str(half.ruled(sql).error)
    rules = _rules(EVERYONE.format("public.customer", 'length(customer."Display Name") > 0'))
    half.of(rules).ruled("SELECT id FROM customer")
    assert "the role may not read the column Display Name" in rules.problems[0]


def test_a_server_that_hides_what_views_read_answers_nothing_under_rules(ann: Bench) -> None:
    known = Knowledge(ann.known.catalog, replace(ann.known.facts, is_followable=False))
    with pytest.raises(DatabaseUnavailable):
        ann.rows.rewritten("SELECT 1 FROM product", known)


def test_what_no_subquery_can_stand_for_is_refused(ann: Bench) -> None:
    with all_cases() as cases:
        for sql in (
            "SELECT orders.id FROM public.orders JOIN archive.orders ON orders.id = 1",
            "SELECT ctid, * FROM orders",
            (
                "SELECT x.* FROM orders, XMLTABLE('/r' PASSING '<r/>'::xml COLUMNS a text "
                "PATH '.') AS x"
            ),
            f"SELECT {' + '.join(['id'] * 700)} FROM orders",
        ):
            with cases.case(sql[:80]), pytest.raises(StatementRejected) as caught:
                ann.rows.rewritten(sql, ann.known)
            with cases.case(sql[:80]):
                assert "tenant" not in str(caught.value)
                assert caught.value.text.zh != caught.value.text.en
