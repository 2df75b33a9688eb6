"""Examples, lessons and feedback as desks make them."""

from dataclasses import replace
from typing import Any

from common.learning import (
    EtlExample,
    EtlLesson,
    Example,
    Feedback,
    Lesson,
    Rating,
    example_id,
    lesson_id,
)
from store import Learning

AT = "2026-01-02T03:04:05.678+00:00"


def second(number: int) -> str:
    """A moment, `number` seconds after another."""
    return f"2026-01-02T03:{number // 60:02}:{number % 60:02}.678+00:00"


def example(
    within: str, author: str = "ann", question: str = "多少?", sql: str = "SELECT 1", **more: Any
) -> Example:
    """A personal example in the datasource `within`."""
    made = Example(
        example_id=example_id(within, author, question, sql),
        datasource=within,
        question=question,
        sql=sql,
        lang="zh",
        trust="personal",
        author=author,
        source="feedback",
        tables=(("public", "a"), ("s", "b.c")),
        tables_hash="h",
        created_at=AT,
        proven_at=AT,
    )
    return replace(made, **more)


def lesson(
    within: str,
    author: str = "ann",
    question: str = "多少?",
    sql: str | None = "SELECT 1",
    **more: Any,
) -> Lesson:
    """A lesson of the author's own in the datasource `within`."""
    made = Lesson(
        lesson_id=lesson_id(within, author, question, sql, more.get("root_cause", "why"), "how"),
        datasource=within,
        question=question,
        sql=sql,
        lang="zh",
        author=author,
        failure_type="logic_error",
        root_cause="why",
        avoidance_hint="how",
        created_at=AT,
    )
    return replace(made, **more)


def learning(
    within: str,
    rating: Rating = "satisfied",
    *,
    user: str = "ann",
    run: str = "run_1",
    question: str = "多少?",
    sql: str | None = "SELECT 1",
    corrected: str | None = None,
    at: str = AT,
) -> Learning:
    """What the service makes of feedback of this kind."""
    new: Example | None = None
    wrong: Lesson | None = None
    if rating == "satisfied" and sql is not None:
        new = example(within, user, question, sql, created_at=at)
    elif rating == "need_modification":
        new = example(
            within, user, question, corrected or "SELECT 2", source="correction", created_at=at
        )
    if rating in ("unsatisfied", "need_modification"):
        wrong = lesson(within, user, question, sql, created_at=at)
    said = Feedback(run, user, rating, at, comment="c", modified_sql=corrected)
    return Learning(within, said, question, sql, new, wrong)


def drafted(made: Example, meaning: str | None = None) -> EtlExample:
    """The example as a draft of a transformation, of a request that means `meaning`."""
    asked = meaning or f"meaning of {made.question}"
    known = example_id(made.datasource, made.author, asked, made.sql)
    return EtlExample(
        **vars(made) | {"example_id": known},
        meaning=asked,
        intent={"summary": made.question, "operations": []},
        code=(("ods_a", made.sql), ("dws_b", "SELECT 1")),
        target="b",
        answers={"date_column": "a.b"},
    )


def drafted_learning(said: Learning, meaning: str | None = None) -> Learning:
    """The same feedback on a draft of a transformation."""
    asked = meaning or f"meaning of {said.question}"
    draft = None if said.example is None else drafted(said.example, asked)
    wrong = None
    if said.lesson is not None:
        told = (said.lesson.sql, said.lesson.root_cause, said.lesson.avoidance_hint)
        known = lesson_id(said.datasource, said.lesson.author, asked, *told)
        wrong = EtlLesson(**vars(said.lesson) | {"lesson_id": known}, meaning=asked)
    return replace(said, example=draft, lesson=wrong, topic="etl", meaning=asked)
