"""English words with and without their inflection: keys that agree, words that can be shown."""

import pytest

from knowledge.language.inflection import plural, root, singular, stem


@pytest.mark.parametrize(
    "forms",
    ["category categories", "hire hired hires hiring", "ship shipped", "sell selling", "box boxes"],
)
def test_forms_of_one_word_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_only_the_root_joins_a_family() -> None:
    assert root("enrolled") == root("enrollment")
    assert stem("enrolled") != stem("enrollment")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("categories", "category"),
        ("boxes", "box"),
        ("ties", "tie"),
        ("address", "address"),
        ("status", "status"),
        ("analysis", "analysis"),
        ("gas", "gas"),
        ("hired", "hired"),
    ],
)
def test_singular_takes_plural_endings_only(word: str, expected: str) -> None:
    assert singular(word) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("order line", "order lines"),
        ("category", "categories"),
        ("used bus", "used buses"),
        ("daily sales", "daily sales"),
        ("订单", "订单"),
        ("sku", "skus"),
        ("kg", "kg"),
    ],
)
def test_plural_of_names(name: str, expected: str) -> None:
    assert plural(name) == expected
