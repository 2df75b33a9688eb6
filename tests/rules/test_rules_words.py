"""The files of words: they load, they say nothing twice, and everything in them is used."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.word_files import Languages, Words, WordsError
from knowledge.language.atoms import atoms_of
from rules.words import WORDS
from rules.words.numerals import numerals_of
from rules.words.result_questions import Course, course_asked, kind_of_doubt
from rules.words.talk import signs_of_talk, without_courtesy
from rules.words.vocabulary import FOLLOW_UP_INTENTS, INTENTS, Intent, common_phrases, intents_of

ROOT = Path(__file__).resolve().parents[2]


def words_of(folder: Path, text: str) -> Words:
    path = folder / "some.toml"
    path.write_text(text, "utf-8")
    return Words(path)


def test_phrases_are_parted_by_bars_and_lines(tmp_path: Path) -> None:
    words = words_of(
        tmp_path, '[a]\nb = """\none | two words\n三"""\nc = [\'x|y\']\n[a.d]\n"-1" = "last"\n'
    )
    assert words.phrases("a.b") == ("one", "two words", "三")
    assert words.phrases("a.c") == ("x|y",)
    assert words.under("a") == {"b": ("one", "two words", "三"), "c": ("x|y",), "d.-1": ("last",)}
    assert words.get("a.e") == ()


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("a = ", "some.toml: Invalid value"),
        ('[a]\nb = "one | one"', "some.toml: a.b says 'one' twice"),
        ("[a]\nb = 3", "some.toml: a.b holds neither a text nor a list of texts"),
        ('[a]\nb = ""', "some.toml: a.b holds neither a text nor a list of texts"),
        ("[a]\nb = [1]", "some.toml: a.b holds neither a text nor a list of texts"),
    ],
)
def test_what_can_not_be_meant_is_refused(tmp_path: Path, text: str, trouble: str) -> None:
    with pytest.raises(WordsError, match=trouble):
        words_of(tmp_path, text)


def test_words_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(WordsError, match="some.toml: a.c is missing"):
        words_of(tmp_path, '[a]\nb = "one"').phrases("a.c")


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ('[intents]\nnois = "the"', "some.toml: intents.nois is of no kind"),
        ('[intents]\nnoise = "the"\nlist = "the"', "intents.list says 'the'"),
        ('[intents]\nnoise = "The"\n[intents.super]\n"+" = "the"', "says 'the'"),
    ],
)
def test_a_word_has_one_intent_of_a_known_kind(tmp_path: Path, text: str, trouble: str) -> None:
    with pytest.raises(WordsError, match=trouble):
        intents_of("intents", words_of(tmp_path, text))


def test_english_words_are_whole_words_and_chinese_ones_stand_anywhere(tmp_path: Path) -> None:
    (tmp_path / "english.toml").write_text("a = ['hi|hello there']\n[n]\n1 = \"first\"", "utf-8")
    (tmp_path / "chinese.toml").write_text("a = ['你好']\n[n]\n1 = \"第一\"", "utf-8")
    languages = Languages(tmp_path)
    assert languages.found("a").search("well, HI!") and languages.found("a").search("我说你好")
    assert not languages.found("a").search("this")
    assert languages.begins("a").search(" (hi") and not languages.begins("a").search("oh hi")
    assert languages.numbers("n") == {"first": 1, "第一": 1}
    with pytest.raises(WordsError, match="chinese.toml: b is missing"):
        languages.both("b")


def test_intents_of_both_languages() -> None:
    assert INTENTS["how many"] == INTENTS["多少"] == Intent("count")
    assert (
        INTENTS["cheapest"]
        == INTENTS["the cheapest"]
        == INTENTS["最便宜"]
        == Intent("super", "-price")
    )
    assert not {"busiest", "最忙", "辆次"} & INTENTS.keys()
    assert FOLLOW_UP_INTENTS["what about"] == FOLLOW_UP_INTENTS["那"] == Intent("noise", "lead")
    assert WORDS.both("concepts.weight") == ("weight", "重量")
    assert {"how many", "多少", "monday"} <= {phrase.lower() for phrase in common_phrases()}


def test_a_word_is_said_in_one_file(tmp_path: Path) -> None:
    with pytest.raises(WordsError, match="says 'how many'"):
        intents_of("intents", WORDS.english, words_of(tmp_path, '[intents]\nnoise = "how many"'))


def test_numbers_and_forms_of_talk() -> None:
    said = {
        text: [numeral.value for numeral in numerals_of(atoms_of(text))][:1]
        for text in ("三百二十", "5 million")
    }
    assert said == {"三百二十": [320], "5 million": [5_000_000]}
    assert without_courtesy("你好，请问有多少订单，谢谢！") == "有多少订单"
    assert without_courtesy("Hi there, how many orders? Thanks!") == "how many orders?"
    assert (
        signs_of_talk("为什么天空是蓝的")
        and signs_of_talk("how do I cook rice")
        and not signs_of_talk("各店铺的收入")
    )
    assert (kind_of_doubt("why is the first one so high?"), kind_of_doubt("这个结果准确吗")) == (
        "why",
        "reliability",
    )


@pytest.mark.parametrize(
    ("question", "unit", "course"),
    [
        ("what is the trend?", "month", "trend"),
        ("What's the trend here", None, "trend"),
        ("is it going up?", "day", "trend"),
        ("how did these figures change over time?", "month", "trend"),
        ("compare it with last month", "month", "change"),
        ("How does that compare with the month before?", "month", "change"),
        ("and against yesterday?", "day", "change"),
        ("month over month", "month", "change"),
        ("forecast this", "month", "outlook"),
        ("趋势怎么样", "month", "trend"),
        ("这些数据有什么变化？", None, "trend"),
        ("和上个月比呢", "month", "change"),
        ("跟上月相比如何", "month", "change"),
        ("环比", "week", "change"),
        ("未来会怎么样", "month", "outlook"),
        # a period alone, whose figures are asked for
        ("and last month?", "month", None),
        ("the previous month?", "month", None),
        ("what about the previous period?", "month", None),
        ("and yesterday?", "day", None),
        ("上个月呢", "month", None),
        ("上一期呢", "month", None),
        # of a series of another unit, of something else than the series, or nothing about a course
        ("compare it with last month", "day", None),
        ("和上个月比呢", "year", None),
        ("trend of complaints", "month", None),
        ("compare the stores", "month", None),
        ("退货的趋势", "month", None),
        ("各门店的变化", "month", None),
        ("how is it?", "month", None),
        ("怎么样", "month", None),
        ("", "month", None),
    ],
)
def test_what_is_asked_of_a_series(question: str, unit: str | None, course: Course | None) -> None:
    assert course_asked(question, unit, 6) == course


def test_a_year_before_is_asked_of_series_that_have_one() -> None:
    found = [
        course_asked(said, "month", rows)
        for said in ("和去年同期比", "versus last year")
        for rows in (12, 13)
    ]
    assert found == [None, "change"] * 2
    assert [course_asked(said, "month", 13) for said in ("year over year", "同比呢")] == [
        "change"
    ] * 2
    assert [
        course_asked(said, "month", 13) for said in ("and last year?", "去年呢", "去年同期呢")
    ] == [None] * 3


@pytest.mark.slow
def test_all_words_are_used() -> None:
    """Reading is watched while everything is imported; what is read with a question only is named
    in the code.
    """
    program = """
import importlib, pathlib, sys
from common.word_files import Words
read = set()
for method in ("get", "phrases", "under"):
    def watched(self, place, real=getattr(Words, method)):
        read.add((self._name, place))
        return real(self, place)
    setattr(Words, method, watched)
paths = [path for room in ("knowledge", "rules") for path in pathlib.Path(room).rglob("*.py")]
for path in paths:
    importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
code = "".join(path.read_text("utf-8") for path in paths)
from knowledge.words import THESAURUS, WORDS as KNOWN
from rules.words import WORDS
for words in (WORDS.english, WORDS.chinese, KNOWN.english, KNOWN.chinese, THESAURUS):
    for place in words.places:
        parts = place.split(".")
        tables = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        named = any(f'"{table}.{{' in code or f'"{table}"' in code for table in tables)
        if not named and not any((words._name, table) in read for table in tables):
            print(words._name, place)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == []
