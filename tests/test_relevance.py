"""Which tables a question is about: how names are cut and words compared, and which tables come along."""

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.retrieval import Asked, described, measure, needed, pooled, questions_of
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.relevance import TableIndex
from knowledge.terms import terms


def table(name: str, columns: str, comment: str | None = None, refers_to: Iterable[str] = ()) -> Table:
    """A table whose first column is its key; it refers to others by columns called after them."""
    names = columns.split()
    keys = tuple(ForeignKey((f"{other}_id",), ("public", other), ("id",)) for other in refers_to)
    listed = tuple(Column(one, "text") for one in (*names, *(key.columns[0] for key in keys)))
    return Table("public", name, "table", listed, comment, primary_key=(names[0],), foreign_keys=keys)


def ranked(question: str, *tables: Table, most: int = 3) -> list[str]:
    return [one.name for one in TableIndex(Catalog(tables)).ranked(question, most)]


def filler(count: int) -> list[Table]:
    """Tables that nobody asks about."""
    return [table(f"zz{number}", f"id qq{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orderLines", ["order", "line"]),
        ("HTTPRequestLog", ["http", "request", "log"]),
        ("crm_customer2address", ["crm", "customer", "2", "address"]),
        ("客户订单", ["客户", "户订", "订单"]),
        ("T_客户_info", ["t", "客户", "info"]),
    ],
)
def test_names_are_cut_at_case_digits_and_underscores_and_chinese_into_pairs(name: str, words: list[str]) -> None:
    assert list(terms(name)) == words


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("who enrolled", "enrollment"),
        ("how were cars repaired", "repairs"),
        ("which flights were delayed", "delay"),
        ("organizers of it", "organization"),
    ],
)
def test_words_of_one_stem_find_each_other(question: str, name: str) -> None:
    assert ranked(question, *filler(5), table(name, "id"), most=1) == [name]


def test_stems_are_the_same_in_threads() -> None:
    words = [f"{stem}{end}" for stem in ("enrol", "repair", "deliver", "contract") for end in ("ing", "ed", "s")]
    tables = [table(f"{word}_x{number}", "id") for number in range(40) for word in words]
    found: list[list[str]] = []

    def look() -> None:
        found.append([one.name for one in TableIndex(Catalog(tuple(tables))).ranked(" ".join(words), 50)])

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(one == found[0] for one in found)


def test_a_link_table_without_a_word_of_the_question_comes_along() -> None:
    tables = (*filler(40), table("actor", "id"), table("film", "id"), table("casting", "id", None, ("actor", "film")))
    assert set(ranked("which actor is in the film", *tables)) == {"actor", "film", "casting"}


def test_a_link_may_be_told_by_names() -> None:
    tables = (
        *filler(40),
        table("actor", "actor_id"),
        table("film", "film_id"),
        table("casting", "id actor_id film_id"),
    )
    assert set(ranked("which actor is in the film", *tables)) == {"actor", "film", "casting"}


def test_a_word_said_in_many_ways_does_not_outweigh_another() -> None:
    """One table says "customer" in two languages and by its stem, the other both words of the question."""
    wordy = table("customer", "id customers 客户", "客户 customer")
    both = table("visit", "id customer fragrance")
    others = [table(f"customer_{number}", "id", "客户") for number in range(8)]
    assert ranked("customer fragrance", wordy, *others, both, most=1) == ["visit"]


def test_of_tables_that_say_the_same_words_all_but_four_give_way() -> None:
    alike = [table(f"{word}_shed", "id") for word in ("north", "south", "east", "west", "old", "new")]
    found = TableIndex(Catalog((*filler(40), *alike))).found("sheds", 10)
    assert [one.table.name for one in found] == [one.name for one in alike]
    scores = [one.score for one in found]
    assert scores[:4] == [scores[0]] * 4
    assert scores[4:] == [pytest.approx(0.6 * scores[0])] * 2


def test_a_table_that_says_more_of_the_question_and_is_joined_to_the_best_comes_before_namesakes() -> None:
    parts = [table(f"{word}_shed", "id") for word in ("north", "south", "east", "west")]
    tables = (*filler(40), table("shed", "id"), *parts, table("staff", "id pay", None, ("shed",)))
    assert set(ranked("pay by shed", *tables, most=2)) == {"shed", "staff"}


def test_when_few_tables_are_meant_others_follow_the_most_referred_to_first() -> None:
    tables = (table("leaf", "id", None, ("hub",)), table("twig", "id", None, ("hub",)), table("hub", "id"))
    assert ranked("nothing of it", *tables, most=3) == ["hub", "leaf", "twig"]
    assert TableIndex(Catalog(tables)).found("nothing of it", 3) == []


# ------------------------------------------------------------------------------------------------------- measuring it


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT * FROM A JOIN old.b USING (i) WHERE i IN (SELECT i FROM c)", {"a", "b", "c"}),
        ("WITH w AS (SELECT 1 FROM d) SELECT * FROM w", {"d"}),
        ("SELECT T1.x FROM `Some` AS T1 JOIN other AS T2 ON T1.a == T2.a", {"some", "other"}),
    ],
)
def test_the_tables_of_sql(sql: str, tables: set[str]) -> None:
    assert needed(sql) == tables


def test_a_question_counts_when_all_of_its_tables_are_found() -> None:
    index = TableIndex(Catalog((*filler(20), table("film", "id"), table("actor", "id"))))
    asked = [
        Asked("1", "films", frozenset({"film"}), "x", "en"),
        Asked("2", "films", frozenset({"film", "nowhere"}), "x", "en"),
        Asked("3", "films", frozenset({"film"}), "x", "zh"),
    ]
    found = measure(index, asked)
    assert found.counts == {("en", True): 1, ("en", False): 1, ("zh", True): 1}
    assert [one.id for one in found.missed] == ["2"]


def test_databases_become_one_schema_with_others_up_to_a_size() -> None:
    one = Catalog((table("film", "id"), table("cast", "id", None, ("film",))))
    whole, names = pooled({"a": one, "b": one}, 30)
    assert len({each.key for each in whole.tables}) == len(whole.tables) == 30
    assert names == {"a": {"film": "film", "cast": "cast"}, "b": {"film": "b_film", "cast": "b_cast"}}
    assert whole.by_key["public", "b_cast"].foreign_keys[0].target == ("public", "b_film")


def test_questions_and_databases_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(
        '{"id": 7, "question": "films?", "sql": "SELECT 1 FROM Film", "database": "x", "lang": "en"}\n\n'
        '{"question": "电影", "tables": ["public.film"]}\n',
        "utf-8",
    )
    assert questions_of(path) == [
        Asked("7", "films?", frozenset({"film"}), "x", "en"),
        Asked("some:3", "电影", frozenset({"film"}), "demo", "zh"),
    ]
    path.write_text('{"question": "films?"}', "utf-8")
    with pytest.raises(ValueError, match="line 1"):
        questions_of(path)


def test_published_descriptions_are_catalogues() -> None:
    catalog = described(
        {
            "db_id": "x",
            "table_names_original": ["Film", "Cast"],
            "column_names_original": [[-1, "*"], [0, "id"], [1, "id"], [1, "film"]],
            "column_types": ["text", "number", "number", "number"],
            "primary_keys": [1, 2],
            "foreign_keys": [[3, 1]],
        }
    )
    film, cast = catalog.tables
    assert (film.primary_key, [column.name for column in cast.columns]) == (("id",), ["id", "film"])
    assert cast.foreign_keys == (ForeignKey(("film",), ("public", "Film"), ("id",)),)
