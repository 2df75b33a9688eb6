"""Which tables a question is about: how names are cut and words compared, and which tables come
along.
"""

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.retrieval import RetrievalQuestion, described, measure, needed, pooled, questions_of
from common.meanings import BilingualNames, ColumnMeaning, Metric, TableMeaning, ValueMeaning
from common.text import Text
from common.values import Catalog, Column, ForeignKey, Table
from knowledge.language.terms import terms
from knowledge.tables.implied_references import implied_references
from knowledge.tables.relevance import Hints, TableIndex
from knowledge.tables.table_graph import TableGraph


def table(
    name: str, columns: str, comment: str | None = None, refers_to: Iterable[str] = ()
) -> Table:
    """A table whose first column is its key; it refers to others by columns called after them."""
    names = columns.split()
    keys = tuple(ForeignKey((f"{other}_id",), ("public", other), ("id",)) for other in refers_to)
    listed = tuple(Column(one, "text") for one in (*names, *(key.columns[0] for key in keys)))
    return Table(
        "public", name, "table", listed, comment, primary_key=(names[0],), foreign_keys=keys
    )


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
def test_names_are_cut_at_case_digits_and_underscores_and_chinese_into_pairs(
    name: str, words: list[str]
) -> None:
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
    words = [
        f"{stem}{end}"
        for stem in ("enrol", "repair", "deliver", "contract")
        for end in ("ing", "ed", "s")
    ]
    tables = [table(f"{word}_x{number}", "id") for number in range(40) for word in words]
    found: list[list[str]] = []

    def look() -> None:
        found.append(
            [one.name for one in TableIndex(Catalog(tuple(tables))).ranked(" ".join(words), 50)]
        )

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(one == found[0] for one in found)


def test_a_link_table_without_a_word_of_the_question_comes_along() -> None:
    tables = (
        *filler(40),
        table("actor", "id"),
        table("film", "id"),
        table("casting", "id", None, ("actor", "film")),
    )
    assert set(ranked("which actor is in the film", *tables)) == {"actor", "film", "casting"}


def test_a_link_may_be_told_by_names() -> None:
    tables = (
        *filler(40),
        table("actor", "actor_id"),
        table("film", "film_id"),
        table("casting", "id actor_id film_id"),
    )
    assert set(ranked("which actor is in the film", *tables)) == {"actor", "film", "casting"}


def test_a_link_table_comes_right_behind_what_it_links_however_many_namesakes_there_are() -> None:
    namesakes = [
        table(f"{thing}_{letter}", "id") for thing in ("actor", "film") for letter in "abcdefghij"
    ]
    linked = (
        table("actor", "id"),
        table("film", "id"),
        table("casting", "id", None, ("actor", "film")),
    )
    tables = (*filler(400), *namesakes, *linked)
    assert set(ranked("which actor is in the film", *tables)) == {"actor", "film", "casting"}


def bare(name: str, columns: str) -> Table:
    """A table without any key."""
    return Table("public", name, "table", tuple(Column(one, "text") for one in columns.split()))


SNOWFLAKE = (
    bare("fact_sales", "customer_key product_key date_key amount"),
    bare("dim_customer", "customer_key customer_name city_key"),
    bare("dim_product", "product_key product_name category_key"),
    bare("dim_category", "category_key category_name"),
    bare("dim_date", "date_key day month"),
    bare("dim_city", "city_key city_name country_key"),
    bare("dim_country", "country_key country_name"),
)


@pytest.mark.parametrize(
    ("question", "needed_tables"),
    [
        ("sales amount by category", {"fact_sales", "dim_product", "dim_category"}),
        ("amount per country", {"fact_sales", "dim_customer", "dim_city", "dim_country"}),
        (
            "categories bought by customers",
            {"fact_sales", "dim_product", "dim_category", "dim_customer"},
        ),
    ],
)
def test_dimensions_without_any_declared_key_come_along(
    question: str, needed_tables: set[str]
) -> None:
    assert needed_tables <= set(ranked(question, *filler(300), *SNOWFLAKE, most=8))


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (
            (bare("orders", "order_no cust_id"), bare("customers", "name city")),
            [("orders", "cust_id", "customers")],
        ),
        (
            (bare("订单表", "订单号 客户编号"), bare("客户", "客户编号 名称")),
            [("订单表", "客户编号", "客户")],
        ),
        (
            (table("crm_visit", "visit user_id"), table("sys_user", "id")),
            [("crm_visit", "user_id", "sys_user")],
        ),
        ((table("leg", "id ship_port_id"), table("port", "id")), [("leg", "ship_port_id", "port")]),
        ((table("paper", "id isbn"), table("book", "isbn title")), [("paper", "isbn", "book")]),
        ((table("port", "id port_id"),), []),
        (
            (table("leg", "id port_id"), *(table(f"port_{word}", "port_id") for word in "abcdef")),
            [],
        ),
    ],
)
def test_columns_tell_references_by_their_names(
    tables: tuple[Table, ...], found: list[tuple[str, str, str]]
) -> None:
    implied = implied_references(tables)
    assert found == [
        (one.name, reference.column, tables[reference.target].name)
        for one, references in zip(tables, implied, strict=True)
        for reference in references
    ]


def test_a_reference_that_fits_several_tables_is_less_sure() -> None:
    tables = (
        table("visit", "id shop_id"),
        table("north_shop", "shop_id"),
        table("south_shop", "shop_id"),
    )
    assert TableGraph(tables).above[0] == {1: 0.5, 2: 0.5}


@pytest.mark.parametrize(
    ("question", "tables"),
    [
        ("每位歌手演唱会的观众", (table("singer", "id"), table("concert", "id audience"))),
        (
            "which surgeons work at the hospital",
            (table("外科医生", "编号"), table("医院", "编号 名称")),
        ),
    ],
)
def test_tables_that_speak_the_other_language_alone_are_found(
    question: str, tables: tuple[Table, ...]
) -> None:
    assert set(ranked(question, *filler(30), *tables, most=2)) == {one.name for one in tables}


def test_words_that_stand_in_any_question_hardly_count() -> None:
    tables = (table("is_there", "id"), table("kiosk", "id"))
    assert ranked("is there a kiosk", *filler(30), *tables, most=1) == ["kiosk"]
    assert ranked("is there", *filler(30), *tables, most=1) == ["is_there"], (
        "when there is nothing else"
    )


def test_tables_are_found_by_what_the_semantic_file_says() -> None:
    closed = ValueMeaning("9", BilingualNames(("停业",), ("shut down",)))
    secret = ColumnMeaning(
        values=(ValueMeaning("1", BilingualNames((), ("Ravenhall",))),), is_sensitive=True
    )
    columns = (
        Column(
            "c1",
            "integer",
            meaning=ColumnMeaning(BilingualNames((), ("footfall",)), values=(closed,)),
        ),
        Column("c2", "text", meaning=secret),
    )
    meaning = TableMeaning(
        BilingualNames(("门店",), ("outlet",)), Text("卖东西的地方", "where goods are sold")
    )
    thing = replace(table("x1", "id"), meaning=meaning, columns=columns)
    metric = Metric("takings", thing.key, "sum(c1)", BilingualNames((), ("basket size",)))
    index = TableIndex(Catalog((*filler(20), thing), metrics=(metric,)))
    for question in (
        "outlets",
        "各门店",
        "where are goods",
        "footfall",
        "which are shut down",
        "basket size",
        "takings",
    ):
        assert [one.table.name for one in index.found(question, 3)] == ["x1"], question
    assert index.found("Ravenhall", 3) == []


def test_tables_of_similar_questions_come_first_and_bring_what_links_them() -> None:
    tables = (
        *filler(40),
        table("a1", "id"),
        table("b1", "id"),
        table("c1", "id", None, ("a1", "b1")),
        table("shop", "id"),
    )
    index = TableIndex(Catalog(tables))
    hints = Hints(
        alike=((("public", "a1"), ("public", "b1")), (("public", "zz7"),), (("no", "where"),))
    )
    names = [one.name for one in index.ranked("shops", 5, hints)]
    assert set(names) == {"a1", "b1", "c1", "shop", "zz7"}
    assert names[-1] == "zz7", "the second one counts for less"
    assert index.ranked("shops", 1)[0].name == "shop", "nothing of it is remembered"


def test_a_word_said_in_many_ways_does_not_outweigh_another() -> None:
    """One table says "customer" in two languages and by its stem, the other both words of the
    question.
    """
    wordy = table("customer", "id customers 客户", "客户 customer")
    both = table("visit", "id customer fragrance")
    others = [table(f"customer_{number}", "id", "客户") for number in range(8)]
    assert ranked("customer fragrance", wordy, *others, both, most=1) == ["visit"]


def test_of_tables_that_say_the_same_words_all_but_four_give_way() -> None:
    alike = [
        table(f"{word}_shed", "id") for word in ("north", "south", "east", "west", "old", "new")
    ]
    found = TableIndex(Catalog((*filler(40), *alike))).found("sheds", 10)
    assert [one.table.name for one in found] == [one.name for one in alike]
    scores = [one.score for one in found]
    assert scores[:4] == [scores[0]] * 4
    assert scores[4:] == [pytest.approx(0.6 * scores[0])] * 2


def test_a_table_that_says_more_and_is_joined_to_the_best_comes_before_namesakes() -> None:
    parts = [table(f"{word}_shed", "id") for word in ("north", "south", "east", "west")]
    tables = (*filler(40), table("shed", "id"), *parts, table("staff", "id pay", None, ("shed",)))
    assert set(ranked("pay by shed", *tables, most=2)) == {"shed", "staff"}


def test_when_few_tables_are_meant_others_follow_the_most_referred_to_first() -> None:
    tables = (
        table("leaf", "id", None, ("hub",)),
        table("twig", "id", None, ("hub",)),
        table("hub", "id"),
    )
    assert ranked("nothing of it", *tables, most=3) == ["hub", "leaf", "twig"]
    assert TableIndex(Catalog(tables)).found("nothing of it", 3) == []


# ------------------------------------------------------------------------------
# measuring it


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
        RetrievalQuestion("1", "films", frozenset({"film"}), "x", "en"),
        RetrievalQuestion("2", "films", frozenset({"film", "nowhere"}), "x", "en"),
        RetrievalQuestion("3", "films", frozenset({"film"}), "x", "zh"),
    ]
    found = measure(index, asked)
    assert found.counts == {("en", True): 1, ("en", False): 1, ("zh", True): 1}
    assert [one.id for one in found.missed] == ["2"]


def test_databases_become_one_schema_with_others_up_to_a_size() -> None:
    one = Catalog((table("film", "id"), table("cast", "id", None, ("film",))))
    whole, names = pooled({"a": one, "b": one}, 30)
    assert len({each.key for each in whole.tables}) == len(whole.tables) == 30
    assert names == {
        "a": {"film": "film", "cast": "cast"},
        "b": {"film": "b_film", "cast": "b_cast"},
    }
    assert whole.by_key["public", "b_cast"].foreign_keys[0].target == ("public", "b_film")


def test_questions_and_databases_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(
        '{"id": 7, "question": "films?", "sql": "SELECT 1 FROM Film", "database": "x", '
        '"lang": "en"}\n\n'
        '{"question": "电影", "tables": ["public.film"]}\n',
        "utf-8",
    )
    assert questions_of(path) == [
        RetrievalQuestion("7", "films?", frozenset({"film"}), "x", "en"),
        RetrievalQuestion("some:3", "电影", frozenset({"film"}), "demo", "zh"),
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
