"""No question, reply or result holds the interpreter: what is read of it is bounded."""

import asyncio
from collections.abc import Callable
from time import process_time, thread_time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.answers.figures_check import doubtful_figures
from agent.answers.shown_result import shown_result
from benchmarks.synthetic_schema import synthetic_catalog
from common import cpu_clock
from common.cpu_clock import check, within
from common.errors import ForbiddenStatement
from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, NoSql, QueryResult, Table, Turn
from rules.answering.chat import chat_reply
from rules.answering.classify import classified
from rules.conversation.conversation import understand_in_context
from rules.linking.linking import nouns_of
from rules.linking.marks import marks_of
from rules.linking.unexplained import wanted_values
from rules.query.refusals import Refusal
from rules.schema.lexicon import LEXICON, lexicon_of
from rules.skills import OfflineSkills
from rules.words.limits import with_bounded_questions
from tests.support.effort import EXPLORES, tries
from tests.support.hostile_questions import LONGEST, PLAIN_UNITS, hostile_questions, units_of
from tests.support.offline_catalogs import SHOP
from tests.support.work import calls

LARGE = synthetic_catalog(876)
EARLIER = Turn("", "how many orders by city", "DATABASE", "", "", "", sql="SELECT 1", row_count=9)
# Of one step, which may take a twentieth of it: tests run beside others, and measure coverage.
MOST_S = 1.0


def asked(question: str, catalog: Catalog = SHOP, history: tuple[Turn, ...] = ()) -> Inquiry:
    return Inquiry(question, language_of(question), catalog, history=history)


# ------------------------------------------------------------------------------
# questions


@pytest.mark.parametrize(
    "question",
    ["A B C D " * 250, "a-b-" * 500, "orders by city " * 30, "各城市的订单金额" * 40, "x" * 8_000],
)
def test_a_question_of_many_parts_is_refused_with_what_to_do(question: str) -> None:
    skills = OfflineSkills()
    kind = asyncio.run(skills.classify(asked(question)))
    assert kind.value.question_type == "DATABASE"
    for lang, said in (("en", "ask several shorter questions"), ("zh", "拆成几个较短的问题")):
        draft = asyncio.run(skills.write_sql(Inquiry(question, lang, SHOP))).value  # type: ignore[arg-type]
        assert isinstance(draft, NoSql) and said in draft.prompt
        assert draft.reason == "unknown_generation_failure"


def test_what_follows_the_part_that_is_read_is_not_left_out_in_silence() -> None:
    """Few marks, but more characters than are read: the answer would lack the last condition."""
    name = Column("name", "text", "医院名称", values=("浙江省杭州市西湖区第一人民医院",))
    hospitals = Catalog((Table("public", "hospital", "table", (name,), comment="医院"),))
    question = f"{'、'.join(name.values * 19)}的医院，名称不是西湖区的"
    made = understand_in_context(asked(question, hospitals))
    assert isinstance(made, Refusal) and "too long" in made.text.en


@pytest.mark.parametrize("unit", ["city and status of orders, ", "Berlin and "])
def test_linking_takes_time_in_proportion_to_the_marks(unit: str) -> None:
    lexicon = lexicon_of(SHOP)
    marks = marks_of(unit * 6, lexicon)[:10]

    def least_time(times: int) -> float:
        """Processor time of the quickest of several runs."""
        taken = []
        for _ in range(3):
            began = thread_time()
            nouns_of(marks * times, lexicon)
            taken.append(thread_time() - began)
        return min(taken)

    assert least_time(160) < 10 * least_time(40), "four times the marks"


STEPS: dict[str, Callable[[Inquiry], Any]] = {
    "kind": classified,
    "values": wanted_values,
    "query": lambda inquiry: understand_in_context(with_bounded_questions(inquiry)),
    "talk": chat_reply,
}


def slow_steps(inquiry: Inquiry) -> list[str]:
    slow = []
    for name, step in STEPS.items():
        began = thread_time()
        step(inquiry)
        if thread_time() - began > MOST_S:
            slow.append(f"{name}: {inquiry.question[:40]!r}")
    return slow


def test_no_step_over_a_hostile_question_takes_long() -> None:
    LEXICON.of(LARGE)
    slow_steps(asked("hello", LARGE))  # examples to offer are looked for once
    slow = []
    for question in hostile_questions(LARGE)[:: 1 if EXPLORES else 3]:
        slow += slow_steps(asked(question, LARGE))
    assert slow == []


@settings(deadline=None, max_examples=tries(24), suppress_health_check=list(HealthCheck))
@given(
    units=st.lists(st.sampled_from((*PLAIN_UNITS, *units_of(SHOP))), min_size=1, max_size=4),
    length=st.sampled_from((60, 300, 1_000, LONGEST)),
    goes_on=st.booleans(),
)
def test_no_step_over_repeated_units_takes_long(
    units: list[str], length: int, goes_on: bool
) -> None:
    unit = "".join(units)
    question = (unit * (length // len(unit) + 1))[:length]
    assert slow_steps(asked(question, SHOP, (EARLIER,) if goes_on else ())) == []


@pytest.mark.parametrize("unit", ["A B C D ", "不", "id and name of customer by "])
def test_a_long_question_is_thought_about_beside_the_loop(unit: str) -> None:
    """Others are served meanwhile."""
    inquiry = asked((unit * 400)[:900], LARGE)

    async def main() -> float:
        skills = OfflineSkills()
        await skills.prepare(LARGE)
        on_loop, in_all = thread_time(), process_time()
        await skills.classify(inquiry)
        return (thread_time() - on_loop) / (process_time() - in_all)

    assert asyncio.run(main()) < 0.5  # of the processor's time


def test_a_step_out_of_time_is_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    inquiry, module = asked("how many orders by city in Berlin"), "rules.conversation.conversation"
    monkeypatch.setattr(f"{module}.STEP_S", -1.0)
    made = understand_in_context(inquiry)
    assert isinstance(made, Refusal) and "too long" in made.text.en
    monkeypatch.undo()
    assert not isinstance(understand_in_context(inquiry), Refusal)


class Clock:
    """Processor time as the test says.

    Args:
        few: checks that a step may make before its time holds.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, few: int = 0) -> None:
        monkeypatch.setattr(cpu_clock, "_FEW_CHECKS", few)
        self.now = 0.0
        self.looks = 0
        monkeypatch.setattr(cpu_clock, "thread_time", self._processor_time)
        monkeypatch.setattr(cpu_clock, "monotonic", lambda: self.now)

    def _processor_time(self) -> float:
        self.looks += 1
        return self.now

    def work(self, seconds: float, times: int = 1) -> str:
        for _ in range(times):
            self.now += seconds
            check()
        return "done"


def test_a_step_has_so_much_time_and_what_is_read_once_takes_little_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    assert within(0.05, lambda: clock.work(0.004, 12), "late") == "done"
    assert within(0.05, lambda: clock.work(0.004, 13), "late") == "late"
    assert within(0.05, lambda: clock.work(3.0), "late") == "done", "a dictionary was read"
    check()  # nothing is bounded outside of steps


def test_a_step_of_few_checks_that_is_held_up_has_several_times_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, few=100)
    assert within(0.05, lambda: clock.work(0.004, 49), "late") == "done"
    assert within(0.05, lambda: clock.work(0.004, 51), "late") == "late"
    assert within(0.05, lambda: clock.work(0.0006, 99), "late") == "done"
    assert within(0.05, lambda: clock.work(0.0006, 101), "late") == "late"


def test_steps_within_a_step_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    def outer() -> list[str]:
        return [within(0.05, lambda: clock.work(0.004, 5), "late") for _ in range(3)]

    assert within(0.1, outer, []) == ["done"] * 3
    assert within(0.05, outer, []) == ["done", "done", "late"]


def test_checks_that_follow_at_once_do_not_ask_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert within(0.05, lambda: clock.work(0.000_001, 100), "late") == "done"
    assert clock.looks == 1, "at the beginning of the step"
    assert within(0.05, lambda: clock.work(0.000_001, 100_000), "late") == "late"


# ------------------------------------------------------------------------------
# results


def wide(count: int, comment: str = "") -> tuple[Catalog, QueryResult]:
    columns = tuple(
        Column(f"c{number}", "integer", f"{comment} {number}") for number in range(count)
    )
    rows = tuple(list(range(row, row + count)) for row in range(20))
    names = tuple(column.name for column in columns)
    return Catalog((Table("public", "wide", "table", columns),)), QueryResult(
        names, ("int4",) * count, rows
    )


@pytest.mark.slow
def test_a_wide_result_has_labels_and_no_chart_at_little_cost() -> None:
    costs = []
    for count in (800, 1_600):
        catalog, result = wide(count, "客户的" * 3_000)
        shown = shown_result("SELECT * FROM wide", result, catalog, "zh")
        labels = shown["query_result"]["labels"]
        assert len(labels) == count and "chart" not in shown
        assert max(map(len, labels)) <= 200
        costs.append(
            calls(lambda c=catalog, r=result: shown_result("SELECT * FROM wide", r, c, "zh"))  # type: ignore[misc]
        )
    assert costs[1] < 2.2 * costs[0], "twice the columns"
    assert costs[1] < 30 * 1_600, "few calls for each column"


@pytest.mark.parametrize(
    "text", ["一" * 6_000, "9" * 6_000, "百分之" + "三" * 6_000, "1,000" * 900]
)
def test_a_row_of_numerals_without_end_is_no_figure(text: str) -> None:
    result = QueryResult(("n",), ("text",), ([text],))
    assert doubtful_figures(f"{text} there are 17", result) in (["17"], [text, "17"])


def test_a_write_in_a_long_question_is_still_one() -> None:
    with pytest.raises(ForbiddenStatement):
        asyncio.run(OfflineSkills().write_sql(asked("delete all orders " + "now " * 2_000)))
