"""Titles of conversations: what is asked, in a few words."""

import pytest

from store.titles import title_of_question


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("请帮我查一下上个月的营业收入", "上个月的营业收入"),
        ("Could you please show me revenue by month", "revenue by month"),
        ("please", "please"),
        ("各服务区\n收入", "各服务区 收入"),
        ("收入" * 20, "收入" * 13 + "收…"),
        ("listing of shops", "listing of shops"),
        (
            "revenue of each service area for the provinces of the south",
            "revenue of each service area for the provinces of the…",
        ),
    ],
)
def test_a_title_is_short_and_says_what_is_asked(question: str, title: str) -> None:
    assert title_of_question(question) == title
