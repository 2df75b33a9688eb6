"""Questions that lack something: what is asked back, and that its answer completes the question it
was asked about.
"""

from typing import Any

import pytest

from common.values import Catalog, Column, ForeignKey, NoSql, Sql, Table, Turn
from tests.support.offline_catalogs import AIR, CHINESE, SALES_BY_TWO, SHOP
from tests.support.rule_conversations import classified, draft, kept, turn


def _table(name: str, *columns: Column, keys: tuple[ForeignKey, ...] = ()) -> Table:
    return Table(
        "public", name, "table", columns, primary_key=(columns[0].name,), foreign_keys=keys
    )


SHIPMENTS = Catalog(
    (
        _table("depot", Column("depot_id", "integer"), Column("depot_name", "text")),
        _table(
            "shipment",
            Column("shipment_id", "integer"),
            Column("depot_id", "integer"),
            Column("gross_load", "numeric"),
            Column("insured_value", "numeric"),
            Column("shipped_on", "date"),
            keys=(ForeignKey(("depot_id",), ("public", "depot"), ("depot_id",)),),
        ),
    )
)


def talk(catalog: Catalog, *said: str) -> list[Any]:
    """What is written to each, in one conversation."""
    history: tuple[Turn, ...] = ()
    written: list[Any] = []
    for question in said:
        written.append(draft(question, history, catalog))
        history = (*history, kept(question, written[-1]))
    return written


@pytest.mark.parametrize(
    ("catalog", "pending", "answers", "parts"),
    [
        (SHIPMENTS, "heaviest shipment", ["gross load"], ["shipment_id", "ORDER BY gross_load DESC",
         "FETCH FIRST ROW WITH TIES"]),
        (SHIPMENTS, "heaviest shipment", ["total gross load"], ["shipment_id", "gross_load", "DESC",
         "FETCH FIRST ROW WITH TIES"]),
        (SHIPMENTS, "heaviest shipment in 2024", ["by the insured value"], ["insured_value DESC",
         "2024-01-01"]),
        (SHIPMENTS, "best depots in March", ["2024", "gross load"], ["depot_name",
         "sum(s.gross_load)", "2024-03-01"]),
        (SHOP, "who placed the largest order", ["total amount"], ["c.name", "o.total_amount DESC",
         "FETCH FIRST ROW WITH TIES"]),
        (SHOP, "the largest order of Ann Lee", ["total amount"], ["'Ann Lee'",
         "total_amount DESC"]),
        (SALES_BY_TWO, "who sold the most", ["total amount", "agents"], ["full_name",
         "sum(s.total_amount)"]),
        (SALES_BY_TWO, "who sold the most", ["quantity", "the customers"], ["c.name",
         "sum(s.quantity)", "FETCH FIRST ROW WITH TIES"]),
        (SALES_BY_TWO, "谁的销售最多", ["员工"], ["full_name", "DESC", "WITH TIES"]),
        (SALES_BY_TWO, "who sold the most in March", ["last year", "total amount", "agents"],
         ["full_name", "date_trunc('year'", "FETCH FIRST ROW WITH TIES"]),
        (SHOP, "number of orders in March", ["this year"], ["count(*)", "date_trunc('year'"]),
        (SHOP, "3月的订单数", ["2024年"], ["count(*)", "2024-03-01"]),
        (SHOP, "3月的订单数", ["去年3月"], ["count(*)", "INTERVAL"]),
        (AIR, "number of flights per airport", ["origin"], ["origin_airport_id", "count(*)",
         "GROUP BY"]),
        (AIR, "number of flights per airport", ["the destination"], ["destination_airport_id",
         "count(*)"]),
    ],
)  # fmt: skip
def test_an_answer_completes_the_question(
    catalog: Catalog, pending: str, answers: list[str], parts: list[str]
) -> None:
    *asked, last = talk(catalog, pending, *answers)
    assert all(isinstance(one, NoSql) and one.reason == "ambiguous_question" for one in asked), (
        asked
    )
    assert isinstance(last, Sql), last
    assert all(part in last.text for part in parts), last.text


def test_what_lacks_two_things_asks_for_one_after_the_other() -> None:
    by_what, who = talk(SALES_BY_TWO, "who sold the most", "total amount")
    assert "by which figure" in by_what.prompt
    assert "agents" in who.prompt and "customers" in who.prompt


def test_an_answer_is_a_follow_up_for_whoever_classifies() -> None:
    pending = "who placed the largest order"
    verdict = classified("total amount", (kept(pending, draft(pending)),))
    assert (verdict.question_type, verdict.method) == ("DATABASE", "rule_based_follow_up")


def test_what_was_completed_is_gone_on_from() -> None:
    said = ("who sold the most", "total amount", "agents", "and in 2024?", "the top 3")
    last = talk(SALES_BY_TWO, *said)[-1]
    assert isinstance(last, Sql)
    assert all(
        part in last.text for part in ("full_name", "sum(s.total_amount)", "2024-01-01", "LIMIT 3")
    )


def test_a_follow_up_that_asks_back_is_completed_with_what_it_follows() -> None:
    last = talk(SHIPMENTS, "list shipments of 2024", "the heaviest first", "gross load")[-1]
    assert isinstance(last, Sql)
    assert "2024-01-01" in last.text and "gross_load DESC" in last.text


def test_a_pointing_question_that_asks_back_stays_with_what_it_points_at() -> None:
    best = turn(
        "the customer with the highest total amount",
        row_count=1,
        columns=("a",),
        rows=(("Ann Lee",),),
    )
    asked = draft("the largest order of this customer", (best,))
    assert isinstance(asked, NoSql)
    last = draft("total amount", (best, kept("the largest order of this customer", asked)))
    assert isinstance(last, Sql)
    assert "'Ann Lee'" in last.text and "total_amount DESC" in last.text


@pytest.mark.parametrize(
    "question",
    [
        "How many customers are there?",
        "total amount by status",
        "What is the total amount?",
        "orders in 2024",
    ],
)
def test_a_question_of_its_own_completes_nothing(question: str) -> None:
    pending = "who placed the largest order"
    assert draft(question, (kept(pending, draft(pending)),)) == draft(question)


def test_no_choice_is_taken_for_a_word_of_another_meaning() -> None:
    pending = "who sold the most"
    asked, other = talk(SALES_BY_TWO, pending, "Berlin")
    assert isinstance(asked, NoSql)
    assert other == draft("Berlin", (turn(pending, None),), SALES_BY_TWO)
    assert "full_name" not in getattr(other, "text", "")


def test_a_model_s_question_back_is_completed_as_far_as_rules_read_it() -> None:
    last = draft("total amount", (turn("the largest order", None),))
    assert isinstance(last, Sql) and "ORDER BY total_amount DESC" in last.text


def test_chinese_answers_name_what_they_mean() -> None:
    asked, last = talk(CHINESE, "最好的门店", "按租金吧")
    assert isinstance(asked, NoSql)
    assert isinstance(last, Sql) and "rent DESC" in last.text and "store_name" in last.text
