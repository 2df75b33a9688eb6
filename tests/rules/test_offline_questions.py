"""Questions over the demo and over databases the rules were not written for, held against
hand-written SQL.

Every fixture question is asked through the public skill; its statement must pass the guard, and its
rows must be those of the SQL a person wrote. `REFUSE` marks questions that no statement over that
database answers.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from agent.flows.ask.routing import SURE
from agent.thinking.llm.schema_text import SchemaText
from common.errors import ForbiddenStatement
from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Classification, NoSql, Sql, Table
from postgres.identifiers import quoted
from rules.skills import OfflineSkills
from tests.support.cases import all_cases
from tests.support.databases import demo_meant
from tests.support.offline_questions import FIXTURES, REFUSE, Case, cases_of, same_rows
from tests.support.question_databases import SCHEMAS, QuestionDatabase, foreign_databases

DEMO = ("zh", "en")


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Iterator[QuestionDatabase]:
    with closing(QuestionDatabase(demo_url, demo_meant)) as asked:
        yield asked


@pytest.fixture(scope="module")
def foreign(offline_database: Callable[[str], str]) -> Iterator[Callable[[str], QuestionDatabase]]:
    with foreign_databases(offline_database) as databases:
        yield databases


def _draft(asked: QuestionDatabase, question: str) -> Sql | NoSql:
    inquiry = Inquiry(question, language_of(question), asked.catalog)
    try:
        return asyncio.run(OfflineSkills().write_sql(inquiry)).value
    except ForbiddenStatement as refusal:
        return NoSql("unknown_generation_failure", refusal.message(inquiry.lang))


def _check(asked: QuestionDatabase, case: Case) -> None:
    draft = _draft(asked, case.question)
    if case.gold == REFUSE:
        assert isinstance(draft, NoSql), f"should have been refused, but became:\n{draft.text}"
        return
    assert isinstance(draft, Sql), f"refused: {draft}"
    asked.database.check(draft.text)
    gold, answer = asked.rows(case.gold), asked.rows(draft.text)
    assert same_rows(gold, answer), (
        f"{draft.text}\nwanted {len(gold)}: {gold[:5]}\ngot {len(answer)}: {answer[:5]}"
    )


def _foreign_cases() -> Iterator[tuple[str, Case]]:
    for name in SCHEMAS:
        for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql"):
            yield name, case


@pytest.mark.parametrize("name", [*DEMO, "more", "semantic"])
def test_demo_questions(demo: QuestionDatabase, name: str) -> None:
    with all_cases() as cases:
        for case in cases_of(FIXTURES / f"questions_{name}.sql"):
            with cases.case(case):
                _check(demo, case)


@pytest.mark.parametrize("name", SCHEMAS)
def test_questions_over_foreign_databases(
    foreign: Callable[[str], QuestionDatabase], name: str
) -> None:
    with all_cases() as cases:
        for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql"):
            with cases.case(case):
                _check(foreign(name), case)


def test_a_model_is_told_the_values_a_question_names_and_those_alone(
    foreign: Callable[[str], QuestionDatabase],
) -> None:
    told, wanted = [], []
    for name in SCHEMAS:
        schema = SchemaText(foreign(name).catalog)
        always = schema.details("")
        columns = (column for table in schema.catalog.tables for column in table.columns)
        stored = {value for column in columns for value in column.values}
        for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql"):
            lines = schema.named_values(case.question).splitlines()
            told += [_is_said(line, case.question) for line in lines]
            named = [
                text
                for text in _LITERAL.findall(case.gold)
                if text in stored and text in case.question
            ]
            wanted += [any(f"'{text}'" in line for line in (always, *lines)) for text in named]
    assert len(told) >= 20
    assert all(told)
    assert len(wanted) >= 60
    assert all(wanted)


_LITERAL = re.compile(r"'([^'%]*[^'%\d][^'%]*)'")


def _is_said(line: str, question: str) -> bool:
    return all(
        value.casefold() in question.casefold()
        for value in _LITERAL.findall(line.partition(": ")[2])
    )


@pytest.mark.slow
def test_the_tables_of_a_question_are_shown_among_hundreds(
    foreign: Callable[[str], QuestionDatabase],
) -> None:
    pooled = {name: _moved(foreign(name).catalog, name) for name in SCHEMAS}
    tables = [table for name in SCHEMAS for table in pooled[name]]
    copies = [
        replace(table, schema="old", name=f"{table.schema}_{table.name}_bak") for table in tables
    ]
    others = [
        replace(table, schema="other", name=f"x{number}_{table.name}")
        for number, table in enumerate(tables * 5)
    ]
    schema = SchemaText(Catalog((*copies, *tables, *others)[:463], search_path=()))
    asked = found = 0
    for name in SCHEMAS:
        for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql")[::3]:
            words = set(re.findall(r"\w+", case.gold.lower()))
            needed = [table for table in pooled[name] if table.name.lower() in words]
            text = schema.details(case.question, budget=16_000)
            asked += 1
            found += all(f" {name}.{quoted(table.name)}" in text for table in needed)
    assert found >= 0.9 * asked, f"{found} of {asked}"


def _moved(catalog: Catalog, schema: str) -> list[Table]:
    """The tables, in a schema of that name."""
    return [
        replace(
            table,
            schema=schema,
            foreign_keys=tuple(
                replace(key, target=(schema, key.target[1])) for key in table.foreign_keys
            ),
        )
        for table in catalog.tables
    ]


@pytest.mark.parametrize("lang", DEMO)
def test_there_are_enough_answerable_demo_questions(lang: str) -> None:
    cases = cases_of(FIXTURES / f"questions_{lang}.sql")
    assert sum(case.gold != REFUSE for case in cases) >= 40


# ------------------------------------------------------------------------------------------- data
# questions and talk

SENTENCES = [
    line.split(" ", 2)
    for line in (FIXTURES / "offline" / "kinds.txt").read_text("utf-8").splitlines()
]
GREETINGS = (
    "你好，{}", "你好{}", "您好！{}", "早上好，请问{}", "谢谢，{}", "辛苦了，{}，谢谢", "Hi, {}",
    "Good morning! {}", "hello there, {}, thanks",
)  # fmt: skip


def _classified(asked: QuestionDatabase, question: str) -> Classification:
    return asyncio.run(
        OfflineSkills().classify(Inquiry(question, language_of(question), asked.catalog))
    ).value


def test_talk_that_mentions_the_data_is_told_from_questions_about_it(
    foreign: Callable[[str], QuestionDatabase],
) -> None:
    """Nearly all right where a model decides what the rules leave open, most by the rules alone."""
    wrong, surely_wrong = [], []
    for name, kind, sentence in SENTENCES:
        verdict = _classified(foreign(name), sentence)
        if verdict.question_type[0] != kind:
            wrong.append(sentence)
            surely_wrong += [sentence] if verdict.confidence >= SURE else []
    assert len(surely_wrong) <= 0.01 * len(SENTENCES), surely_wrong
    assert len(wrong) <= 0.05 * len(SENTENCES), wrong


def test_rules_decide_the_questions_they_answer(foreign: Callable[[str], QuestionDatabase]) -> None:
    answerable = [(name, case.question) for name, case in _foreign_cases() if case.gold != REFUSE]
    verdicts = [(question, _classified(foreign(name), question)) for name, question in answerable]
    assert [question for question, verdict in verdicts if verdict.question_type != "DATABASE"] == []
    left = [question for question, verdict in verdicts if verdict.confidence < SURE]
    assert len(left) <= 0.02 * len(answerable), left


@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_request_after_a_greeting_is_the_request(
    foreign: Callable[[str], QuestionDatabase], greeting: str
) -> None:
    for name, case in list(_foreign_cases())[::25]:
        if case.gold != REFUSE:
            assert (
                _classified(foreign(name), greeting.format(case.question)).question_type
                == "DATABASE"
            )
            assert _draft(foreign(name), greeting.format(case.question)) == _draft(
                foreign(name), case.question
            )
