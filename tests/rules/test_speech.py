"""What dictionaries know of words, and which unknown words of a question may be passed over."""

import threading

import pytest

from common.values import Catalog, Column, ForeignKey, Table
from knowledge.language.inflection import lemma
from rules.linking.marks import marks_of
from rules.schema.lexicon import lexicon_of
from rules.words.speech import (
    Speech,
    is_participle,
    may_be_verb,
    part_of_speech,
    segmented,
    verbs_of,
)
from tests.support.offline_catalogs import CHINESE, SHOP

MEMBERS = Table(
    "public",
    "members",
    "table",
    (Column("member_id", "integer", nullable=False), Column("name", "text", nullable=False)),
    comment="会员",
    primary_key=("member_id",),
)
RESERVATIONS = Table(
    "public",
    "reservation",
    "table",
    (
        Column("reservation_id", "integer", nullable=False),
        Column("member_id", "integer", nullable=False),
        Column("geese", "integer"),
        Column("made_on", "date", nullable=False),
    ),
    comment="订座单",
    primary_key=("reservation_id",),
    foreign_keys=(ForeignKey(("member_id",), ("public", "members"), ("member_id",)),),
)
CLUB = Catalog((MEMBERS, RESERVATIONS))
SHOWS = Table(
    "public",
    "shows",
    "table",
    (Column("show_id", "integer", nullable=False), Column("show_date", "date", nullable=False)),
    comment="演出场次",
    primary_key=("show_id",),
)
THEATRE = Catalog((SHOWS,))


@pytest.mark.parametrize(
    ("word", "speech"),
    [
        ("ticket", "noun"),
        ("Tickets", "noun"),
        ("fetch", "verb"),
        ("fetches", "verb"),
        ("bought", "verb"),
        ("urgent", "adjective"),
        ("roughly", "adverb"),
        ("ourselves", "pronoun"),
        ("upon", "particle"),
        ("outside", "preposition"),
        ("kindly", "courtesy"),
        ("hardly", "decisive"),
        ("xyzzy", "unknown"),
        ("", "unknown"),
    ],
)
def test_english_words_have_a_part_of_speech(word: str, speech: Speech) -> None:
    assert part_of_speech(word, "en") == speech


@pytest.mark.parametrize(
    ("word", "speech"),
    [
        ("仓库", "noun"),
        ("北京", "proper noun"),
        ("瞅", "verb"),
        ("紧急", "adjective"),
        ("大概", "adverb"),
        ("咱们", "pronoun"),
        ("呗", "particle"),
        ("劳烦", "courtesy"),
        ("仅", "decisive"),
        ("跑了", "verb"),
        ("", "unknown"),
    ],
)
def test_chinese_words_have_a_part_of_speech(word: str, speech: Speech) -> None:
    assert part_of_speech(word, "zh") == speech


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("bought", "buy"),
        ("Sold", "sell"),
        ("children", "child"),
        ("cities", "city"),
        ("ordering", "order"),
        ("lent", "lend"),
        ("order", "order"),
    ],
)
def test_english_words_have_a_lemma(form: str, base: str) -> None:
    assert lemma(form) == base


def test_forms_of_verbs_are_known() -> None:
    assert is_participle("cancelled") and not is_participle("cancel")
    assert may_be_verb("rack") and not may_be_verb("urgent")


def test_chinese_is_cut_into_words_that_are_the_text() -> None:
    assert [word.text for word in segmented("瞅瞅哪家门店")] == ["瞅瞅", "哪家", "门店"]
    assert (
        "".join(word.text for word in segmented("帮忙捋一捋各家店的租金"))
        == "帮忙捋一捋各家店的租金"
    )
    assert segmented("") == ()


def test_many_threads_may_ask_first() -> None:
    found: list[tuple[Speech, str]] = []
    ready = threading.Barrier(8)

    def ask() -> None:
        ready.wait()
        found.append((part_of_speech("捋", "zh"), lemma("fetching")))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [("verb", "fetch")] * 8


def unknown(question: str, catalog: Catalog) -> dict[str, bool]:
    """The unknown words of a question, with whether each may be passed over."""
    marks = marks_of(question, lexicon_of(catalog))
    return {mark.text: mark.is_skippable for mark in marks if mark.is_unknown}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("could you dig the orders of last month out", ["dig", "out"]),
        ("mind telling me the total amount", ["mind", "telling"]),
        ("basically total amount per customer", ["basically"]),
        ("kindly pull up total amount per customer", ["kindly", "pull", "up"]),
    ],
)
def test_words_that_only_ask_or_tie_are_passed_over(question: str, words: list[str]) -> None:
    assert unknown(question, SHOP) == dict.fromkeys(words, True)


def test_a_verb_ties_things_only_where_it_can_not_mean_a_state() -> None:
    assert unknown("members who racked up the most reservations", CLUB) == {
        "racked": True,
        "up": True,
    }
    assert (
        unknown("customers who racked up the most orders", SHOP)["racked"] is False
    )  # orders are open or shipped


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("purple orders", "purple"),
        ("orders out of stock", "out"),
        ("profit by customer", "profit"),
        ("orders sold out", "out"),
        ("who complains the most", "complains"),
        ("how long are the orders", "how"),
        ("cancelled orders", "cancelled"),
        ("orders from Gotham", "Gotham"),
        ("customers that resigned last month", "resigned"),
        ("orders paid manually", "manually"),
        ("warehouses of our customers", "warehouses"),
        ("orders outside Berlin", "outside"),
        ("customers lost in Berlin", "lost"),
        ("customers who complained the most", "complained"),
        ("customers who hardly ordered", "hardly"),
    ],
)
def test_words_that_name_or_restrict_are_not_passed_over(question: str, word: str) -> None:
    assert unknown(question, SHOP)[word] is False


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("麻烦帮我瞅瞅各门店的租金", ["瞅瞅"]),
        ("劳烦捋一捋门店数量", ["劳烦", "捋"]),
        ("把门店的租金扒拉出来看看呗", ["扒拉"]),
    ],
)
def test_chinese_words_that_only_ask_are_passed_over(question: str, words: list[str]) -> None:
    assert unknown(question, CHINESE) == dict.fromkeys(words, True)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("紧急门店", "紧急"),
        ("逾期的门店", "逾期"),
        ("拖欠的门店有多少", "拖欠"),
        ("请问拖欠门店有多少", "拖欠"),
        ("其他门店", "其他"),
        ("我们欠各门店多少租金", "欠"),
        ("门店平均开多久", "多久"),
        ("仓库的租金", "仓库"),
    ],
)
def test_chinese_words_that_name_or_restrict_are_not_passed_over(question: str, word: str) -> None:
    assert unknown(question, CHINESE)[word] is False


def test_unknown_characters_are_cut_into_words_with_their_parts_of_speech() -> None:
    marks = marks_of("仓库盘点的租金", lexicon_of(CHINESE))
    assert [(mark.text, mark.speech) for mark in marks if mark.is_unknown] == [
        ("仓库", "noun"),
        ("盘点", "noun"),
    ]


@pytest.mark.parametrize(
    ("noun", "verbs"),
    [
        ("reservations", {"reserve"}),
        ("delivery", {"deliver"}),
        ("subscription", {"subscribe"}),
        ("complaint", {"complain"}),
        ("sale", {"sell"}),
        ("order", {"order"}),
        ("customer", set()),
        ("company", set()),
        ("invoice", set()),
    ],
)
def test_nouns_know_the_verbs_they_come_from(noun: str, verbs: set[str]) -> None:
    assert verbs_of(noun) == verbs


def named(question: str, word: str, catalog: Catalog) -> list[tuple[str, str, str | None]]:
    """What a word of the question links to."""
    marks = [mark for mark in marks_of(question, lexicon_of(catalog)) if mark.text == word]
    return [(link.kind, link.table[1], link.column) for mark in marks for link in mark.links]


def test_other_forms_of_names_are_known() -> None:
    assert named("members by goose", "goose", CLUB) == [("column", "reservation", "geese")]
    assert named("members who reserved in May", "reserved", CLUB) == [
        ("table", "reservation", None)
    ]


def test_forms_of_words_that_ask_ask_as_well() -> None:
    [mark] = [
        mark
        for mark in marks_of("orders exceeding 300", lexicon_of(SHOP))
        if mark.text == "exceeding"
    ]
    assert mark.means("cmp") and mark.arg == ">"


def test_chinese_verbs_lead_to_the_events_whose_name_holds_them() -> None:
    assert named("今年演了几次", "演", THEATRE) == [("table", "shows", None)]
    assert named("今年唱了几次", "唱", THEATRE) == []


def test_no_word_of_the_dictionary_hides_a_word_that_asks() -> None:
    assert [mark.text for mark in marks_of("各户租金", lexicon_of(CHINESE))][0] == "各"
