"""What is asked before anything is built, and that each answer gives its own table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.values import Catalog
from etl.schemas.requirement import UserIntent
from tests.support.requested_intents import CATALOG, SUPPORT, bind, by, join, keep, meant, request

MONTHS = {"unit": "month"}
DATES = ["orders.ordered_on", "orders.paid_at"]


@dataclass(frozen=True)
class Question:
    """An intent, and the choices that are offered by the ids of what is asked first."""

    name: str
    intent: UserIntent
    asked: dict[str, Sequence[str]]
    catalog: Catalog = field(default=CATALOG, repr=False)


QUESTIONS = [
    Question("which date", request(by(MONTHS)), {"date_column": DATES}),
    Question(
        "which date of whose table",
        request(join("orders", "users"), by(MONTHS), sources=("users", "orders")),
        {"date_column": DATES},
    ),
    Question(
        "which measure",
        request(("aggregate", {"group_by": [], "measures": [{"function": "sum"}]})),
        {"measure": ["orders.amount", "orders.weight"]},
    ),
    Question(
        "whose amount",
        request(
            join("orders", "payments"),
            by("orders.status", sums=["amount"]),
            sources=("orders", "payments"),
        ),
        {"measure": ["orders.amount", "payments.amount"]},
    ),
    Question(
        "whose column",
        request(
            join("orders", "users", on=[["user_id", "id"]]),
            join("orders", "addresses", on=[["billing_id", "id"]]),
            by("city"),
            sources=("orders", "users", "addresses"),
        ),
        {"column": ["users.city", "addresses.city"]},
    ),
    Question(
        "several keys",
        request(join("orders", "addresses"), by("addresses.city"), sources=("orders", "addresses")),
        {"join_path": ["orders.billing_id", "orders.shipping_id"]},
    ),
    Question(
        "several keys, and which date, in one round",
        request(join("orders", "addresses"), by(MONTHS), sources=("orders", "addresses")),
        {"join_path": ["orders.billing_id", "orders.shipping_id"], "date_column": DATES},
    ),
    Question(
        "a key that only names suggest",
        request(
            join("visits", "users"),
            by("city", sums=["seconds"]),
            sources=("public.visits", "users"),
        ),
        {"join_key": ["visits.user_id"]},
    ),
    Question(
        "a key that only names suggest, before a way over what both refer to",
        request(
            join("tickets", "agents"),
            by("agents.name", sums=["tickets.minutes"]),
            sources=("tickets", "agents"),
        ),
        {"join_key": ["tickets.agent_id"]},
        SUPPORT,
    ),
    Question(
        "which currency",
        request(by("paid_on", sums=["payments.amount"]), sources=("payments",)),
        {"currency": ["group", "convert", "EUR", "USD"]},
    ),
    Question(
        "which currency, of what is computed from figures and a window adds up",
        request(
            by("paid_on", "currency", sums=["payments.amount"]),
            ("transform", {"as": "net", "expression": "m0 * 0.8"}),
            (
                "window",
                {
                    "function": "lag",
                    "column": "net",
                    "partition_by": ["currency"],
                    "order_by": [{"column": "paid_on"}],
                    "as": "before",
                },
            ),
            ("window", {"function": "share", "column": "before", "as": "part"}),
            sources=("payments",),
        ),
        {"currency": ["group", "EUR", "USD"]},
    ),
    Question(
        "by which date amounts are converted that a later operation adds",
        request(
            join("orders", "users"),
            (
                "transform",
                {
                    "as": "eur",
                    "amount": "orders.amount",
                    "rate": {
                        "table": "rates",
                        "from_column": "users.city",
                        "to": "EUR",
                        "date_column": "day",
                        "rate_column": "rate",
                    },
                },
            ),
            by("orders.status", sums=["eur"]),
            sources=("orders", "users"),
        ),
        {"date_column": DATES},
    ),
    Question(
        "orders in groups of their items",
        request(
            join("orders", "items"),
            by("items.product_id", sums=["orders.amount"]),
            sources=("orders", "items"),
        ),
        {"fan_out": ["repeat", "items.quantity", "items.price"]},
    ),
    Question(
        "orders in groups behind their items",
        request(
            join("orders", "products"),
            by("products.kind", sums=["orders.amount"]),
            sources=("orders", "products"),
        ),
        {"fan_out": ["repeat", "items.quantity", "items.price"]},
    ),
    Question(
        "orders in groups of their payments, which are in several currencies",
        request(
            join("payments", "orders"),
            by(
                {"column": "payments.paid_on", "unit": "month"},
                sums=["payments.amount", "orders.weight"],
            ),
            sources=("payments", "orders"),
        ),
        {"fan_out": ["repeat", "payments.amount"], "currency": ["group", "convert", "EUR", "USD"]},
    ),
    Question(
        "a row of what",
        request(join("orders", "items"), sources=("orders", "items")),
        {"grain": ["orders", "items"]},
    ),
    Question(
        "a value that is not stored",
        request(keep("orders.status", "=", "void"), by()),
        {"filter_value": ["Void", "paid", "shipped"]},
    ),
    Question(
        "two values that are not stored",
        request(keep("orders.status", "in", ["payd", "Void", "shiped"]), by()),
        {
            "filter_value": ["paid", "shipped", "Void"],
            "filter_value_2": ["shipped", "paid", "Void"],
        },
    ),
]


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case.name)
def test_what_is_open_is_asked(case: Question) -> None:
    result = bind(case.intent, catalog=case.catalog)
    assert result.bound is None
    assert result.analysis.impossible == []
    asked = {ambiguity.id: ambiguity for ambiguity in result.analysis.ambiguities}
    assert set(asked) == set(case.asked)
    for id_, values in case.asked.items():
        assert {choice.value for choice in asked[id_].choices} == set(values)
        assert asked[id_].prompt
        assert all(choice.label for choice in asked[id_].choices)


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case.name)
def test_each_answer_gives_its_own_table(case: Question) -> None:
    first, *others = case.asked
    answers = {id_: case.asked[id_][0] for id_ in others}
    bound = []
    for value in case.asked[first]:
        result = bind(case.intent, _answered(case, answers | {first: value}), case.catalog)
        assert result.analysis.ambiguities == []
        assert result.analysis.impossible == []
        assert result.bound is not None
        bound.append(repr((result.bound.sources, result.bound.steps)))
    assert len(set(bound)) == len(bound)


def _answered(case: Question, answers: dict[str, str]) -> dict[str, str]:
    """Answers with the first choice of whatever is asked next."""
    for _ in range(3):
        further = bind(case.intent, answers, case.catalog).analysis.ambiguities
        answers = answers | {one.id: one.choices[0].value for one in further}
    return answers


def test_an_answer_that_is_no_choice_is_asked_again() -> None:
    result = bind(request(by(MONTHS)), {"date_column": "users.born_on"})
    assert [ambiguity.id for ambiguity in result.analysis.ambiguities] == ["date_column"]


@pytest.mark.parametrize(
    ("intent", "because"),
    [
        (request(by({"column": "ordered_on", "unit": "month"})), "the date is said"),
        (
            request(join("orders", "users"), by("users.city"), sources=("orders", "users")),
            "one key",
        ),
        (
            request(
                join("orders", "addresses", on=[["orders.billing_id", "addresses.id"]]),
                by("addresses.city"),
                sources=("orders", "addresses"),
            ),
            "the columns are said",
        ),
        (
            request(by("paid_on", "currency", sums=["payments.amount"]), sources=("payments",)),
            "grouped by currency",
        ),
        (
            request(
                keep("currency", "=", "EUR"),
                by("paid_on", sums=["payments.amount"]),
                sources=("payments",),
            ),
            "one currency",
        ),
        (
            request(
                join("orders", "items"),
                by("orders.status", sums=["orders.amount", "items.price"]),
                sources=("orders", "items"),
            ),
            "each row is in one group",
        ),
        (
            request(
                join("orders", "items", how="inner"),
                sources=("orders", "items"),
            ),
            "an inner join repeats",
        ),
        (
            request(
                ("dedup", {"table": "items", "keys": ["order_id"]}),
                join("orders", "items"),
                sources=("orders", "items"),
            ),
            "a dedup leaves one row to join",
        ),
        (request(keep("users.city", "=", "ulm"), sources=("users",)), "the values are not known"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_clear_is_not_asked(intent: UserIntent, because: str) -> None:
    result = bind(intent)
    assert result.analysis.ambiguities == [], because
    assert result.bound is not None


def test_the_semantic_file_decides() -> None:
    intent = request(
        join("单据", "addresses"),
        keep("status", "!=", "作废"),
        by(MONTHS, "addresses.city", sums=["营业额"]),
        sources=("单据", "addresses"),
    )
    result = bind(intent, catalog=meant())
    assert result.analysis.ambiguities == []
    semantic = {
        assumption.id
        for assumption in result.analysis.assumptions
        if assumption.decided_by == "semantic"
    }
    assert semantic == {"semantic_filter", "stored_value_2", "metric_3", "date_column_3"}
    assert result.bound is not None
    shown = repr(result.bound.steps)
    for part in ("shipping_id", "'Void'", "paid_at", "is_gift"):
        assert part in shown


def test_what_the_intent_says_comes_before_the_semantic_filter() -> None:
    result = bind(request(keep("is_gift", "is_true"), by()), catalog=meant())
    assert result.bound is not None
    assert all(assumption.id != "semantic_filter" for assumption in result.analysis.assumptions)


def test_a_table_of_two_schemas_is_asked() -> None:
    catalog = Catalog(CATALOG.tables, search_path=("nowhere",))
    intent = request(by("page", sums=["seconds"]), sources=("visits",))
    result = bind(intent, catalog=catalog)
    assert [ambiguity.kind for ambiguity in result.analysis.ambiguities] == ["table"]
    answered = bind(intent, {"table": "public.visits"}, catalog)
    assert answered.bound is not None
    assert answered.bound.base.table.schema == "public"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_texts_are_in_the_language_of_the_answer(lang: Any) -> None:
    (question,) = bind(request(by(MONTHS)), lang=lang).analysis.ambiguities
    assert question.prompt == {"zh": "按哪个日期统计？", "en": "By which date?"}[lang]
