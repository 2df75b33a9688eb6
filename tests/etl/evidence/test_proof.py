"""The evidence for drafts: sound drafts pass, and drafts that are broken don't."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from sqlglot import exp

from common.errors import InvalidSql
from common.values import Column
from etl.evidence.mutants import mutants_of
from etl.evidence.proof import DraftProof, ProofOptions, make_tests, prove
from etl.meaning.bound import AnyOf, BoundCondition, BoundIntent, BoundSource, Watermark
from etl.planning.draft_model import Draft
from etl.planning.drafting import make_draft
from etl.rendering.column_tests import failing_rows
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_options import ScratchOptions
from etl.scratch.scratch_values import as_text
from etl.scratch.source_sampling import Samples, TableSample
from tests.support.bound_intents import (
    TABLES,
    column,
    compute,
    dedup,
    group,
    intent,
    join,
    keep,
    key,
    mapped,
    measure,
    rate,
    window,
)
from tests.support.drawn_intents import drawn_intents
from tests.support.effort import tries
from tests.support.shop_rows import Rows, shop_rows

OPTIONS = ProofOptions("proof")
BY_USER = join("users", ("orders.user_id", "users.id"))
BY_ORDER = join("items", ("orders.id", "items.order_id"), is_multiple=True)
NOT_VOID = keep(BoundCondition(column("orders.status"), "!=", "void"))
INTENTS: dict[str, BoundIntent] = {
    "monthly": intent(
        BY_USER,
        BY_ORDER,
        NOT_VOID,
        group(
            [key("orders.paid_at", "month", "month"), key("users.city", "city")],
            measure("sum", "orders", "orders.amount", "total"),
            measure("sum", "items", "items.quantity * items.price", "goods"),
            measure("count", "orders", None, "n"),
            has_spine=True,
        ),
        window("lag", "total", partition=["city"], sorting=[("month", "asc")], name="before"),
        sources=("orders", "users", "items"),
        columns=("month", "city", "total", "goods", "n", "before"),
        time_zone="Asia/Shanghai",
    ),
    "having": intent(
        keep(BoundCondition(column("orders.status"), "in", ("paid", "done")), source="orders"),
        group(
            [key("orders.user_id", "user")],
            measure("sum", "orders", "orders.amount", "total"),
            measure("count_distinct", "orders", "orders.currency", "currencies"),
        ),
        keep(BoundCondition(column("total"), ">=", 100), stage="result"),
        columns=("user", "total", "currencies"),
    ),
    "latest": intent(
        dedup("orders", ["user_id", "ordered_on"], [("paid_at", "desc")]),
        columns=("id", "amount"),
        outputs=[("id", "orders.id"), ("amount", "orders.amount")],
    ),
    "wide": intent(
        join("users", ("orders.user_id", "users.id"), "inner"),
        keep(
            BoundCondition(column("orders.paid_at"), ">=", date(2024, 1, 1)),
            BoundCondition(column("orders.paid_at"), "<", date(2024, 4, 1)),
            AnyOf(
                (
                    BoundCondition(column("orders.currency"), "=", "EUR"),
                    BoundCondition(column("orders.amount"), ">", 300),
                    BoundCondition(column("orders.ordered_on"), "is_null"),
                )
            ),
        ),
        mapped("state", "orders.status", {"p": "paid", "v": "void"}, "other"),
        compute("twice", "orders.amount * 2"),
        sources=("orders", "users"),
        columns=("id", "city", "state", "twice"),
        outputs=[
            ("id", "orders.id"),
            ("city", "users.city"),
            ("state", "state"),
            ("twice", "twice"),
        ],
    ),
    "together": intent(
        keep(
            BoundCondition(column("orders.status"), "prefix", "pa"),
            BoundCondition(column("orders.status"), "suffix", "id"),
            source="orders",
        ),
        compute("net", "orders.amount * 2 - COALESCE(orders.user_id, 1)"),
        keep(BoundCondition(column("net"), "<=", 9)),
        columns=("id", "net"),
        outputs=[("id", "orders.id"), ("net", "net")],
    ),
    "converted": intent(
        rate("USD"),
        group(
            [key("orders.ordered_on", "week", "week")],
            measure("sum", "orders", "converted", "dollars"),
        ),
        sources=("orders", "rates"),
        columns=("week", "dollars"),
    ),
}


@pytest.fixture
def scratch(scratch_url: str) -> ScratchDatabase:
    return ScratchDatabase(lambda: scratch_url, ScratchOptions(), dict)


def samples_of(bound: BoundIntent, rows: Rows) -> Samples:
    """Samples that hold these rows of the shop."""
    tables = {}
    for source in bound.sources:
        columns = tuple(one.name for one in source.table.columns)
        texts = [tuple(_text(row.get(name)) for name in columns) for row in rows[source.table.name]]
        tables[source.table.key] = TableSample(source.table, columns, texts, len(texts), True)
    return Samples(tables)


def _text(value: Any) -> str | None:
    return None if value is None else as_text(value)


def empty(bound: BoundIntent) -> Samples:
    return samples_of(bound, {source.table.name: [] for source in bound.sources})


def proven(
    scratch: ScratchDatabase, draft: Draft, bound: BoundIntent, samples: Samples, **changes: Any
) -> DraftProof:
    return asyncio.run(prove(draft, bound, scratch, samples, replace(OPTIONS, **changes)))


def failed(proof: DraftProof) -> set[str]:
    return {
        test.kind for test in proof.report.tests if test.status == "fail" and not test.is_warning
    }


@settings(max_examples=tries(8))
@given(drawn_intents(), shop_rows())
def test_sound_drafts_pass_whatever_the_rows_are(
    scratch_url: str, bound: BoundIntent, rows: Rows
) -> None:
    scratch = ScratchDatabase(lambda: scratch_url, ScratchOptions(), dict)
    numbered = {
        name: [{"id": place, **row} for place, row in enumerate(table, 1)]
        for name, table in rows.items()
    }
    proof = proven(scratch, make_draft(bound), bound, samples_of(bound, numbered), mutants=False)
    assert (failed(proof), proof.failure, proof.report.status) == (set(), None, "passed")
    for total in proof.report.totals:
        assert total.difference is None or float(total.difference) == 0


def test_converted_amounts_are_reconciled_where_rates_name_both_currencies() -> None:
    bound = INTENTS["converted"]
    table = TABLES["rates"]
    both = replace(table, columns=(*table.columns, Column("into", "text")))
    sources = [
        replace(source, table=both) if source.table is table else source for source in bound.sources
    ]
    steps = (replace(rate("USD"), target_currency="into"), *bound.steps[1:])
    bound = replace(bound, sources=tuple(sources), steps=steps)
    tests = {test.id for test in make_tests(make_draft(bound), bound)}
    assert "reconcile_result_dollars" in tests


def test_rows_may_be_looked_up_by_way_of_other_tables(scratch: ScratchDatabase) -> None:
    bound = intent(
        keep(BoundCondition(column("items.quantity"), ">", 1), source="items"),
        replace(join("items", ("orders.id", "items.order_id"), "semi"), source="orders"),
        join("orders", ("users.id", "orders.user_id"), "semi"),
        sources=("users", "orders", "items"),
        columns=("id",),
        outputs=[("id", "users.id")],
    )
    proof = proven(scratch, make_draft(bound), bound, empty(bound), mutants=False)
    assert (failed(proof), proof.report.status) == (set(), "passed")
    assert any(test.kind == "unit" and "orders" in test.node for test in proof.report.tests)


@pytest.mark.parametrize("name", INTENTS)
def test_broken_models_are_caught(scratch: ScratchDatabase, name: str) -> None:
    bound = INTENTS[name]
    mutants = proven(scratch, make_draft(bound), bound, empty(bound)).report.mutants
    assert mutants is not None
    assert mutants.tried == mutants.caught + mutants.equivalent + len(mutants.survivors)
    assert mutants.caught >= 10
    assert [(survivor.operator, survivor.detail) for survivor in mutants.survivors] == []


def test_a_model_that_is_wrong_is_never_proven(scratch: ScratchDatabase) -> None:
    """Mutants are handed in as if they were the draft, over tables without a row."""
    bound = INTENTS["having"]
    draft = make_draft(bound)
    statuses = {}
    for mutant in list(mutants_of(draft))[::3]:
        broken = _replaced(draft, mutant.node, mutant.select)
        proof = proven(scratch, broken, bound, empty(bound), mutants=False)
        if not mutant.is_equivalent:
            statuses[mutant.operator, mutant.detail] = proof.report.status
    assert {one for one, status in statuses.items() if status != "failed"} == set()


def _replaced(draft: Draft, name: str, select: exp.Query) -> Draft:
    models = tuple(
        replace(model, select=select) if model.name == name else model for model in draft.models
    )
    return replace(draft, models=models)


def test_changes_that_keys_and_not_null_make_no_difference_of_are_told() -> None:
    never_null = [replace(one, nullable=False) for one in TABLES["orders"].columns]
    bound = INTENTS["having"]
    table = replace(TABLES["orders"], columns=tuple(never_null))
    bound = replace(bound, sources=(BoundSource("orders", table),))
    bound = replace(bound, steps=(NOT_VOID, dedup("orders", ["user_id"], []), *bound.steps))
    equivalent = {one.detail for one in mutants_of(make_draft(bound)) if one.is_equivalent}
    assert any("<> 'void' for" in detail for detail in equivalent)
    assert any(detail.endswith("user_id IS NULL") for detail in equivalent)


def test_a_mistake_that_the_next_model_makes_up_for_is_found(scratch: ScratchDatabase) -> None:
    bound = INTENTS["monthly"]
    draft = make_draft(bound)
    source = draft.model("ods_orders")
    broken = _replaced(draft, source.name, _with_other_sign(source.select, ""))
    for model in draft.models:
        if source.name in model.node.inputs:
            mended = _with_other_sign(model.select, source.name)
            broken = _replaced(broken, model.name, mended)
    proof = proven(scratch, broken, bound, empty(bound), mutants=False)
    assert {test.node for test in proof.report.tests if test.status == "fail"} == {source.name}


def _with_other_sign(select: exp.Query, table: str) -> exp.Query:
    """The query with the amount negated where it is read from the table."""
    changed = select.copy()
    for read in list(changed.find_all(exp.Column)):
        if (read.table, read.name) != (table, "amount"):
            continue
        negative: exp.Expr = exp.Paren(this=exp.Neg(this=read.copy()))
        if isinstance(read.parent, exp.Select):
            negative = exp.alias_(negative, "amount")
        read.replace(negative)
    return changed


def _rows() -> Rows:
    orders = [
        {"id": n, "user_id": n % 3, "status": "paid", "amount": n, "ordered_on": date(2024, 1, n)}
        for n in range(1, 9)
    ]
    return {"orders": orders, "users": [{"id": 1, "city": "Ulm"}], "items": []}


def test_figures_of_their_own_notice_what_made_up_rows_could_miss(
    scratch: ScratchDatabase,
) -> None:
    bound = INTENTS["monthly"]
    draft = make_draft(bound)
    target = draft.target
    tampered = target.select.copy()
    assert isinstance(tampered, exp.Select)
    tampered.where("n < 5", copy=False)
    proof = proven(
        scratch, _replaced(draft, target.name, tampered), bound, samples_of(bound, _rows())
    )
    assert "reconcile" in failed(proof)


def test_the_report_tells_rows_totals_and_where_rows_went(scratch: ScratchDatabase) -> None:
    bound = INTENTS["monthly"]
    proof = proven(scratch, make_draft(bound), bound, samples_of(bound, _rows()), preview_rows=1)
    report = proof.report
    assert (report.status, report.built_by) == ("passed", "sql")
    assert report.scratch is not None
    assert report.scratch.tables["public.orders"].rows == 8
    (total,) = [one for one in report.totals if one.measure == "total"]
    assert (total.built, total.independent, total.of) == ("36.00", "36.00", "whole")
    by_table = {entry.table: entry for entry in report.ledger if entry.operation == 1}
    assert (by_table["users"].rows_in, by_table["users"].unmatched) == (8, 5)
    assert proof.preview is not None
    assert proof.preview.columns == ("month", "city", "total", "goods", "n", "before")
    assert (proof.preview.row_count, proof.preview.is_limited) == (1, True)
    assert report.timings_ms.keys() == {"sample", "build", "test", "mutate"}


def test_a_model_that_postgresql_refuses_is_a_failed_build(scratch: ScratchDatabase) -> None:
    bound = INTENTS["latest"]
    draft = make_draft(bound)
    wrong = exp.select("nothing").from_("nowhere")
    proof = proven(scratch, _replaced(draft, draft.target.name, wrong), bound, empty(bound))
    assert proof.report.status == "failed"
    assert isinstance(proof.failure, InvalidSql)
    assert proof.failure.sqlstate == "42P01"


def test_each_kind_of_test_has_rows_that_break_it() -> None:
    bound = INTENTS["converted"]
    tests = make_tests(make_draft(bound), bound)
    assert len({test.id for test in tests}) == len(tests)
    assert {test.kind for test in tests} == {
        "contract",
        "grain",
        "not_null",
        "unique",
        "reconcile",
    }
    for test in tests:
        assert (failing_rows(test) is None) == (test.kind == "contract")


def _merged() -> BoundIntent:
    bound = intent(
        BY_USER,
        group(
            [key("orders.ordered_on", "month", "month"), key("users.city", "city")],
            measure("sum", "orders", "orders.amount", "total"),
        ),
        sources=("orders", "users"),
        columns=("month", "city", "total"),
    )
    target = replace(
        bound.target,
        mode="merge",
        materialization="incremental",
        watermark=Watermark(column("orders.ordered_on"), 3),
    )
    return replace(bound, target=target)


def test_late_rows_are_found_and_building_again_changes_nothing(scratch: ScratchDatabase) -> None:
    bound = _merged()
    draft = make_draft(bound)
    samples = samples_of(bound, _rows())
    proof = proven(scratch, draft, bound, samples, mutants=False)
    statuses = {test.kind: test.status for test in proof.report.tests}
    assert failed(proof) == set()
    assert (statuses["idempotent"], statuses["late_rows"]) == ("pass", "pass")
    (late,) = [test for test in proof.tests if test.kind == "late_rows"]
    assert late.case is not None
    assert late.case.inputs is not None
    assert late.case.inputs[-1].name == draft.target.name, "what is there before"
    forgetful = replace(draft.target, increment=exp.false())
    proof = proven(scratch, replace(draft, models=(*draft.models[:-1], forgetful)), bound, samples)
    assert failed(proof) == {"late_rows"}


def _divisions(draft: Draft) -> Iterator[exp.Expr]:
    for model in draft.models:
        yield from model.select.find_all(exp.Nullif)


def test_what_is_wrong_with_any_rows_fails_too(scratch: ScratchDatabase) -> None:
    bound = intent(
        compute("part", "orders.amount / orders.user_id"),
        columns=("id", "part"),
        outputs=[("id", "orders.id"), ("part", "part")],
    )
    draft = make_draft(bound)
    assert failed(proven(scratch, draft, bound, empty(bound), mutants=False)) == set()
    for guard in _divisions(draft):
        guard.replace(guard.this.copy())
    assert "static" in failed(proven(scratch, draft, bound, empty(bound), mutants=False))
