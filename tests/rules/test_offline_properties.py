"""Any question over any catalogue gets an answer or a refusal, never a crash, never broken SQL."""

import asyncio
from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg2.extensions import cursor

from agent.answers.figures_check import doubtful_figures
from common.errors import ForbiddenStatement
from common.inquiry import Inquiry
from common.text import Lang, language_of
from common.values import Catalog, Column, ForeignKey, NoSql, QueryResult, Sql, Table
from knowledge.language.spoken_names import column_names, table_names
from rules.skills import OfflineSkills
from rules.words.vocabulary import INTENTS
from tests.support.catalogs import CATALOG, wide_catalog
from tests.support.databases import open_asked
from tests.support.effort import slow_beyond, tries
from tests.support.offline_catalogs import AIR, CHINESE, SHOP

SKILLS = OfflineSkills()
TYPES = (
    "integer",
    "text",
    "numeric(12,2)",
    "date",
    "timestamp with time zone",
    "boolean",
    "uuid",
    "jsonb",
    "mood",
    "money",
)
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))


def written(question: str, catalog: Catalog, lang: Lang | None = None) -> Sql | NoSql | None:
    """The draft; None when the question asks for a write."""
    inquiry = Inquiry(question, lang or language_of(question), catalog)
    try:
        return asyncio.run(SKILLS.write_sql(inquiry)).value
    except ForbiddenStatement:
        return None


names = st.text(min_size=1, max_size=20).map(lambda text: text.replace("\x00", "") or "x")


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """Small catalogues with any names, types, comments, keys and references."""
    tables: list[Table] = []
    for number in range(draw(st.integers(0, 4))):
        columns = tuple(
            Column(
                f"{draw(names)}_{index}",
                draw(st.sampled_from(TYPES)),
                draw(st.none() | names),
                values=tuple(draw(st.lists(names, max_size=3))),
            )
            for index in range(draw(st.integers(0, 5)))
        )
        key = tuple(column.name for column in columns[:1])
        keyed = [table for table in tables if table.primary_key]
        references = tuple(
            ForeignKey((column.name,), target.key, target.primary_key)
            for column, target in zip(columns[1:], draw(st.permutations(keyed)), strict=False)
        )
        name = f"{draw(names)}{number}"
        tables.append(
            Table("public", name, "table", columns, draw(st.none() | names), key, references)
        )
    return Catalog(tuple(tables))


@RELAXED
@given(question=st.text(max_size=60), catalog=catalogs(), lang=st.sampled_from(["zh", "en"]))
def test_no_question_over_no_catalogue_fails(question: str, catalog: Catalog, lang: Lang) -> None:
    draft = written(question, catalog, lang)
    assert draft is None or isinstance(draft, Sql | NoSql)
    verdict = asyncio.run(SKILLS.classify(Inquiry(question, lang, catalog))).value
    assert 0 <= verdict.confidence <= 1


@RELAXED
@given(
    catalog=catalogs(),
    lang=st.sampled_from(["zh", "en"]),
    question=st.sampled_from(["hello", "你能做什么", "joke"]),
)
def test_small_talk_over_any_catalogue(catalog: Catalog, lang: Lang, question: str) -> None:
    pieces: list[str] = []
    outcome = asyncio.run(SKILLS.chat(Inquiry(question, lang, catalog), pieces.append))
    assert outcome.value == "".join(pieces) != ""


cells = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.decimals()
    | st.text(max_size=5)
)


@RELAXED
@given(
    rows=st.lists(st.tuples(cells, cells), max_size=6),
    limited=st.booleans(),
    lang=st.sampled_from(["zh", "en"]),
)
def test_any_rows_can_be_put_into_words(
    rows: list[tuple[object, object]], limited: bool, lang: Lang
) -> None:
    pieces: list[str] = []
    result = QueryResult(
        ("a", "b"), ("text", "numeric"), tuple(list(row) for row in rows), is_limited=limited
    )
    outcome = asyncio.run(
        SKILLS.summarize(Inquiry("?", lang, SHOP), "SELECT 1", result, pieces.append)
    )
    assert outcome.value == "".join(pieces) != ""


figures = st.decimals(min_value=-(10**12), max_value=10**12, places=6) | st.integers(
    -(10**12), 10**12
)


@RELAXED
@given(
    rows=st.lists(st.tuples(st.sampled_from(["A", "乙", "c d"]), figures), max_size=6),
    lang=st.sampled_from(["zh", "en"]),
)
def test_summaries_state_no_figure_of_their_own(rows: list[tuple[str, object]], lang: Lang) -> None:
    result = QueryResult(("name", "total"), ("text", "numeric"), tuple(list(row) for row in rows))
    outcome = asyncio.run(SKILLS.summarize(Inquiry("?", lang, SHOP), "SELECT 1", result))
    assert doubtful_figures(outcome.value, result) == []


FIXED = (CATALOG, SHOP, AIR, CHINESE, wide_catalog(60), Catalog(()))


@pytest.mark.parametrize("number", slow_beyond(2, range(len(FIXED))))
def test_fixed_catalogues_survive_intent_words(number: int) -> None:
    """Each catalogue other words than the others: together they are asked a sixth of all."""
    catalog = FIXED[number]
    table = catalog.tables[0].name if catalog.tables else "nothing"
    for phrase in list(INTENTS)[6 * number :: 6 * len(FIXED)]:
        written(f"{phrase} {table} {phrase} 3", catalog)


WORDS = [
    "3",
    "100",
    "5万",
    "2024年",
    "last month",
    "2024",
    "最近7天",
    '"abc"',
    "in March 2024",
    "10%",
]
MEASURED = ("store", "lib", "bike", "clinic")


@pytest.fixture(scope="module")
def foreign(offline_database: Callable[[str], str]) -> dict[str, tuple[Catalog, str]]:
    """Catalogue and URL of the databases that composed questions are asked over."""
    found = {}
    for name in MEASURED:
        url = offline_database(name)
        with closing(open_asked(url, pool_size=1)) as database:
            found[name] = (asyncio.run(database.catalog()), url)
    return found


def _spoken(catalog: Catalog) -> list[str]:
    """Names and values of a catalogue, as people say them."""
    spoken = [name for table in catalog.tables for name in table_names(table)]
    for table in catalog.tables:
        for column in table.columns:
            spoken += [
                name for name, quality in column_names(table, column).items() if quality > 0.6
            ]
            spoken += column.values[:5]
    return spoken


@pytest.mark.parametrize("name", slow_beyond(2, MEASURED))
def test_every_statement_can_be_planned(foreign: dict[str, tuple[Catalog, str]], name: str) -> None:
    catalog, url = foreign[name]
    words = (
        st.sampled_from(_spoken(catalog)) | st.sampled_from(list(INTENTS)) | st.sampled_from(WORDS)
    )

    @settings(RELAXED, max_examples=tries(24))
    @given(parts=st.lists(words, min_size=2, max_size=7), glue=st.sampled_from(["", " "]))
    def plan(parts: list[str], glue: str) -> None:
        draft = written(glue.join(parts), catalog)
        if isinstance(draft, Sql) and draft.text.startswith(("SELECT", "WITH")):
            planner.execute(f"EXPLAIN {draft.text}")

    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        planner: cursor = connection.cursor()
        plan()
