"""The language of a question."""

import pytest

from common.text import language_of


@pytest.mark.parametrize(
    "question",
    [
        "How many shops are there?",
        "revenue of 庐山服务区 last year",
        "Which service areas are run by 钱塘交通服务有限公司?",
        "top 3 shops by revenue in 浙江省",
        "",
    ],
)
def test_names_in_an_english_question_leave_it_english(question: str) -> None:
    assert language_of(question) == "en"


@pytest.mark.parametrize(
    "question",
    [
        "有多少店铺",
        "top 5 的店铺",
        "查询 shop 表 by month",
        "KFC 的 revenue 是多少",
        "店铺 revenue",
    ],
)
def test_english_words_in_a_chinese_question_leave_it_chinese(question: str) -> None:
    assert language_of(question) == "zh"
