"""The measurement of what rules answer: its questions can be asked, their SQL gives rows, and it
judges rightly.

How many of the questions the rules answer is not tested: nobody may tune to them.
"""

from collections.abc import Callable

import pytest

from benchmarks.rule_answers import CHAT, HELD_OUT, RuleResults, held_out_names, measure
from common.text import language_of
from tests.support.databases import rows_of
from tests.support.offline_questions import REFUSE, Case, cases_of


@pytest.mark.parametrize("name", held_out_names())
def test_held_out_questions_can_be_answered(name: str, make_database: Callable[[str], str]) -> None:
    url = make_database((HELD_OUT / f"{name}.sql").read_text(encoding="utf-8"))
    cases = cases_of(HELD_OUT / f"{name}_questions.sql")
    answerable = [case for case in cases if case.gold not in (REFUSE, CHAT)]
    assert len(answerable) >= 50
    assert REFUSE in {case.gold for case in cases}
    assert {language_of(case.question) for case in answerable} == {"zh", "en"}
    assert len({case.question for case in cases}) == len(cases)
    assert [case.question for case in answerable if not rows_of(url, case.gold)] == []


def test_answers_are_judged_by_their_rows(make_database: Callable[[str], str]) -> None:
    url = make_database("CREATE TABLE t AS SELECT i, i % 2 AS odd FROM generate_series(1, 4) i")
    judged = (
        ("SELECT i FROM t", "SELECT odd, i FROM t ORDER BY i DESC", "right"),
        ("SELECT i FROM t ORDER BY i", "SELECT i FROM t ORDER BY i DESC", "wrong"),
        (
            "SELECT i FROM t ORDER BY i LIMIT 2",
            "SELECT i FROM t WHERE i < 3 ORDER BY i DESC",
            "right",
        ),
        ("SELECT i FROM t", "SELECT i FROM t WHERE odd = 1", "wrong"),
        ("SELECT i FROM t", None, "refused"),
        (REFUSE, "SELECT i FROM t", "wrong"),
        (REFUSE, None, "refused"),
    )
    answers = {str(number): answer for number, (_, answer, _) in enumerate(judged)}
    for number, (gold, _, verdict) in enumerate(judged):
        found = RuleResults()
        measure(found, lambda question: {"sql": answers[question]}, url, [Case(str(number), gold)])
        assert found.answerable + found.unanswerable == {verdict: 1}


def test_talk_is_judged_by_its_kind(make_database: Callable[[str], str]) -> None:
    url = make_database("CREATE TABLE t (i int)")
    found = RuleResults()
    kinds = {"hello": CHAT, "how are you": "DATABASE", "rows of t": CHAT, "what is it": CHAT}
    cases = [
        Case("hello", CHAT),
        Case("how are you", CHAT),
        Case("rows of t", "SELECT i FROM t"),
        Case("what is it", REFUSE),
    ]
    measure(found, lambda question: {"response_type": kinds[question]}, url, cases)
    assert found.kinds == {True: 1, False: 2}
    assert found.answerable == found.unanswerable == {"refused": 1}


def test_a_service_that_fails_is_not_taken_for_a_refusal(
    make_database: Callable[[str], str],
) -> None:
    url = make_database("CREATE TABLE t (i int)")
    with pytest.raises(RuntimeError, match="all slots are taken"):
        measure(
            RuleResults(),
            lambda _: {"retryable": True, "error": "all slots are taken"},
            url,
            [Case("rows", REFUSE)],
        )
