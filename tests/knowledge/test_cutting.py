"""Where names and sentences are cut into words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.language.atoms import words_of
from knowledge.language.cutting import pieces


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orderItems2", "order Items 2"),
        ("ORDER_ITEMS", "ORDER ITEMS"),
        ("HTTPServerURL", "HTTP Server URL"),
        ("1stFloor", "1 st Floor"),
        ("größeÄnderung ÜBERGröße", "größe Änderung ÜBER Größe"),
        ("ЗаказКлиента", "Заказ Клиента"),
        ("销售订单order_id（编号）", "销售订单 order id 编号"),
        ("カード番号", "カード番号"),
        ("the driver's licence, the DRIVERS’S", "the driver licence the DRIVERS"),
        ("_ -- $", ""),
    ],
)
def test_words_are_cut_at_case_digits_and_underscores(text: str, words: str) -> None:
    assert pieces(text) == words.split()


@given(st.text())
def test_cutting_again_changes_nothing_and_no_letter_is_lost(text: str) -> None:
    words = pieces(text)
    assert [again for word in words for again in pieces(word)] == words
    assert set("".join(words)) <= set(text)
    if "'" not in text and "\u2019" not in text:
        assert {char for char in text if char.isalpha()} <= set("".join(words))


def test_words_of_identifiers_are_compared_in_one_writing() -> None:
    assert (
        words_of("orderItems")
        == words_of("ORDER_ITEMS")
        == words_of("Ｏｒｄｅｒ items")
        == ("order", "items")
    )
    assert words_of("合同金額") == words_of("合同金额") == ("合同金额",)
