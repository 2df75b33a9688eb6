"""Which databases fit a question, by what each is known to say of its words."""

from collections.abc import Mapping
from dataclasses import replace

from agent.database_fit import DatabaseEvidence, databases_that_fit
from common.inquiry import Inquiry, Readability
from common.values import Catalog, Column, Table
from knowledge.tables.question_coverage import QuestionCoverage
from rules.linking.explained import explained_words
from tests.support.cases import all_cases

CATALOGS = {
    "sales": Catalog((Table("public", "customer", "table", (Column("city", "text"),)),)),
    "shop": Catalog((Table("public", "customer", "table", (Column("town", "text"),)),)),
    "notes": Catalog((Table("public", "note", "table", (Column("customer", "text"),)),)),
    "clinic": Catalog((Table("public", "patient", "table", (Column("age", "int"),)),)),
    "orders": Catalog((Table("public", "order", "table", (Column("at", "date"),), "订单"),)),
    "trade": Catalog((Table("public", "mfg_order", "table", (), "Order / 订单"),)),
    "stock": Catalog(
        (
            Table("public", "order", "table", (Column("at", "date"),)),
            Table("public", "stock_count", "table", (Column("at", "date"),)),
        )
    ),
}
IN_TWO_LANGUAGES = {
    "school": Catalog(
        (
            Table("public", "student", "table", (), "学生"),
            Table("public", "note", "table", (), "文件备注"),
        )
    ),
    "freight": Catalog(
        (
            Table("public", "demurrage", "table", ()),
            Table("public", "customer", "table", ()),
            Table("public", "employee", "table", ()),
        )
    ),
    **{
        name: Catalog(
            (Table("public", "employee", "table", (Column("band", "text", "岗级"),), "员工"),)
        )
        for name in ("shop", "bank")
    },
}

# The freight's names are English; what its `fico` is called in Chinese, no dictionary says.
IN_ONE_LANGUAGE = {
    "shop": Catalog(
        (
            Table(
                "public",
                "customer",
                "table",
                (Column("credit", "numeric", "芝麻分"), Column("alias", "text", "花名")),
                "客户",
            ),
            Table("public", "payment", "table", (), "付款"),
            Table("public", "product", "table", (), "商品"),
            Table("public", "payment_approval", "table", (), "付款审批"),
        )
    ),
    "freight": Catalog(
        (
            Table("public", "customer", "table", (Column("fico", "numeric"),)),
            Table("public", "payment", "table", ()),
            Table("public", "payment_approval", "table", ()),
            Table("public", "dangerous_good", "table", ()),
            Table("public", "dangerous_good_note", "table", ()),
            *(Table("public", name, "table", ()) for name in ("ship", "port", "sailor", "crane")),
        )
    ),
}

# The farm's names are Chinese; what its 料位 is called in English, no dictionary says.
IN_CHINESE = {
    "farm": Catalog(
        (
            Table("public", "拖拉机", "table", (Column("品牌", "text"),)),
            Table("public", "供应商", "table", (Column("料位", "numeric"),)),
        )
    ),
    "hotel": Catalog(
        (
            Table("public", "supplier", "table", (Column("silo_level", "numeric"),)),
            Table("public", "booking", "table", (Column("has_charger", "boolean"),)),
            Table("public", "reading_room", "table", ()),
            Table("public", "reading_room_chair", "table", ()),
        )
    ),
    "shelves": Catalog(
        (Table("public", "book", "table", ()), Table("public", "room", "table", ()))
    ),
}


def _evidence(
    question: str, name: str, *, is_readable: bool, catalogs: Mapping[str, Catalog] = CATALOGS
) -> DatabaseEvidence:
    """A value of the sales, and of them alone, says "live", which means nothing."""
    explained = explained_words(Inquiry(question, "en", catalogs[name]))
    by_chance = {"live": 0.65} if name == "sales" and "live" in question else {}
    readability: Readability = "readable" if is_readable else "unreadable"
    return DatabaseEvidence(QuestionCoverage(by_chance, {}), explained, readability)


def test_the_best_fits_and_those_that_explain_the_question_as_well() -> None:
    with all_cases() as cases:
        for question, readable, names in (
            ("customers by city", "sales shop", "sales"),
            ("how many customers", "sales shop", "sales shop"),
            ("how many customers", "sales", "sales"),
            ("how many customers live here", "sales shop", "sales shop"),
            ("how many customers live here", "sales", "sales"),
            ("how many customers", "", "sales shop notes"),
            ("how many patients", "", "clinic"),
            ("what is that", "clinic", "clinic"),
            ("what is that", "", ""),
            # The count of a stock count only asks.
            # Where the user is asked, those that the rules can't read are among the choices.
            ("count the orders", "orders stock", "orders stock trade"),
            # What has a name in one language only goes by its translation as well.
            ("订单有多少", "orders trade stock", "orders trade stock"),
            # What the rules read without a word that another one knows may not be what is asked.
            ("patients of orders", "orders", "clinic orders"),
        ):
            with cases.case((question, readable)):
                evidence = {
                    name: _evidence(question, name, is_readable=name in readable.split())
                    for name in CATALOGS
                }
                assert sorted(databases_that_fit(evidence)) == sorted(names.split())


def test_a_database_without_names_in_the_language_may_know_what_the_best_does_not() -> None:
    with all_cases() as cases:
        for question, readable, names in (
            # No translation of demurrages is known, so the freight may have them.
            ("滞期备注有多少", "", "freight school"),
            ("滞期有多少", "", "freight"),
            # It has no students, as these would be found by their translation.
            ("学生的滞期有多少", "", "school"),
            ("学生有多少", "school", "school"),
            ("客户有多少", "freight", "freight"),
            # Two fit: the user, who is asked anyway, may mean its employees, too.
            ("各岗级的员工有多少", "bank shop", "bank freight shop"),
            ("多少", "", ""),
        ):
            with cases.case(question):
                evidence = {
                    name: _evidence(
                        question,
                        name,
                        is_readable=name in readable.split(),
                        catalogs=IN_TWO_LANGUAGES,
                    )
                    for name in IN_TWO_LANGUAGES
                }
                assert sorted(databases_that_fit(evidence)) == sorted(names.split())

        with cases.case("where none has names in the language, that tells nothing"):
            evidence = {
                name: _evidence("滞期有多少", name, is_readable=False)
                for name in ("sales", "clinic")
            }
            assert databases_that_fit(evidence) == []


def test_one_that_may_know_all_of_a_question_otherwise_fits_as_well() -> None:
    with all_cases() as cases:
        for question, names in (
            # The freight's customers have a figure that nothing translates.
            ("芝麻分最高的客户", "freight shop"),
            # They have no such text.
            ("各花名的客户数量", "shop"),
            # The rules don't read by the dictionary, which knows approvals.
            ("付款审批有多少", "freight shop"),
            # Dangerous goods are no goods in general.
            ("商品有多少", "shop"),
        ):
            with cases.case(question):
                evidence = {
                    name: _evidence(
                        question, name, is_readable=name == "shop", catalogs=IN_ONE_LANGUAGE
                    )
                    for name in IN_ONE_LANGUAGE
                }
                assert sorted(databases_that_fit(evidence)) == names.split()

        with cases.case("where the rules would ask what is unclear, the question may be meant"):
            sales = _evidence("how many customers", "sales", is_readable=True)
            shop = replace(sales, readability="unclear")
            assert databases_that_fit({"sales": sales, "shop": shop}) == ["sales", "shop"]


def test_english_questions_are_compared_with_chinese_names() -> None:
    with all_cases() as cases:
        for question, readable, names in (
            ("how many tractors do we have", "", "farm"),
            ("tractors by brand", "", "farm"),
            ("how many suppliers", "hotel", "farm hotel"),
            # It may have the level under a name that nothing translates.
            ("highest silo level of the suppliers", "hotel", "farm hotel"),
            ("how many bookings", "hotel", "hotel"),
            # Nobody knows it, but the farm may call it otherwise.
            ("how many zebras", "", "farm"),
            # A booking is no book, and a reading room no room in general.
            ("how many books do we have", "shelves", "shelves"),
            ("how many rooms", "hotel shelves", "shelves"),
        ):
            with cases.case(question):
                evidence = {
                    name: _evidence(
                        question,
                        name,
                        is_readable=name in readable.split(),
                        catalogs=IN_CHINESE,
                    )
                    for name in IN_CHINESE
                }
                assert sorted(databases_that_fit(evidence)) == names.split()
