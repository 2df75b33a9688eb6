"""What was learnt, as prompts tell it: bounded, as data, and each part with its size."""

import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thinking.llm.experience_text import experience_parts
from common.learning import Experience
from llm.tokens import PromptBudget, estimated_tokens, prompt_budget, schema_budget
from tests.support.catalogs import wide_catalog
from tests.support.experiences import DOCUMENT, EXAMPLE, EXPERIENCE, LESSON
from tests.support.prompt_messages import inquiry_with, messages_of

TAGS = re.compile(
    r"<\s*/?\s*(?:notes|examples|lessons|schema|question|history|values)\b", re.IGNORECASE
)
HOSTILE = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(
            [
                "</examples>",
                "<lessons>",
                "< / NOTES >",
                "\n",
                "- question: x",
                "  sql: DROP",
                "\u202e",
                "\x00",
            ]
        )
    ).map("".join),
)


@given(HOSTILE, HOSTILE, st.integers(0, 800))
def test_no_text_leaves_its_place_or_its_budget(text: str, other: str, tokens: int) -> None:
    experience = Experience(
        (replace(EXAMPLE, question=text, sql=other), replace(EXAMPLE, question=other, sql=text)),
        (replace(LESSON, question=text, root_cause=other, avoidance_hint=text),),
        (replace(DOCUMENT, title=text, text=other),),
    )
    parts = experience_parts(
        experience, PromptBudget(examples=tokens, lessons=tokens, notes=tokens)
    )
    for name, part in parts.items():
        assert estimated_tokens(part) <= max(0, tokens)
        if part:
            lines = part.splitlines()
            assert (lines[0], lines[-2:]) == (f"<{name}>", [f"</{name}>", ""])
            assert TAGS.findall(part) == [f"<{name}", f"</{name}"]
            assert all(line.startswith(("- ", "  ")) for line in lines[1:-2])
            assert sum(line.startswith("- ") for line in lines) <= 2


def test_what_does_not_fit_whole_is_left_out_and_less_useful_ones_may_still_fit() -> None:
    long = replace(EXAMPLE, sql="SELECT " + "a, " * 600 + "b")
    endless = replace(EXAMPLE, sql="SELECT " + "a, " * 6_000 + "b")
    part = experience_parts(Experience((endless, long, EXAMPLE)), PromptBudget(examples=200))[
        "examples"
    ]
    assert part.count("- question: ") == 1 and "装修中" in part
    assert experience_parts(Experience(()), PromptBudget()) == {
        "notes": "",
        "examples": "",
        "lessons": "",
    }


def test_tables_of_examples_are_shown_of_a_schema_that_does_not_fit() -> None:
    catalog = wide_catalog(400)
    example = replace(EXAMPLE, question="zzz", tables=(("public", "table_377"),))
    text = messages_of(
        "write_sql",
        about=inquiry_with(catalog=catalog, question="zzz", experience=Experience((example,))),
    )
    before = messages_of("write_sql", about=inquiry_with(catalog=catalog, question="zzz"))
    shown = [message[1]["content"].partition("</schema>")[0] for message in (text, before)]
    assert ["TABLE table_377 " in each for each in shown] == [True, False]


def test_questions_with_and_without_experience_share_the_beginning_of_their_prompts() -> None:
    users = [
        messages_of("write_sql", about=inquiry_with(question=question, experience=experience))
        for question, experience in (
            ("a", EXPERIENCE),
            ("b", Experience()),
            ("c", Experience((EXAMPLE,))),
        )
    ]
    assert len({messages[0]["content"] for messages in users}) == 1
    assert len({messages[1]["content"].partition("</schema>")[0] for messages in users}) == 1


@pytest.mark.parametrize("context", [4_096, 8_192, 16_385, 32_000, 128_000, None])
def test_the_budget_of_all_parts_fits_the_context(context: int | None) -> None:
    budget = prompt_budget(context, 2_048)
    assert budget.schema == schema_budget(context, 2_048)
    room = (context or 32_000) - 2_048
    parts = sum(getattr(budget, part.name) for part in fields(budget))
    instructions_and_question = 1_200
    assert parts + (instructions_and_question if room > 5_000 else 0) <= room
    assert prompt_budget(context, 2_048, 777).schema == 777
    halved = budget.halved(500)
    assert halved.schema == 250 and halved.history == budget.history // 2
