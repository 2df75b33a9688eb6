"""Which databases fit a question, by what each is known to say of its words."""

from agent.database_fit import DatabaseEvidence, databases_that_fit
from common.inquiry import Inquiry
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


def _evidence(question: str, name: str, *, is_readable: bool) -> DatabaseEvidence:
    """A value of the sales, and of them alone, says "live", which means nothing."""
    explained = explained_words(Inquiry(question, "en", CATALOGS[name]))
    by_chance = {"live": 0.65} if name == "sales" and "live" in question else {}
    return DatabaseEvidence(QuestionCoverage(by_chance, {}), explained, is_readable)


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
            ("count the orders", "orders stock", "orders stock"),
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
