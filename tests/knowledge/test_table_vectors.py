"""Tables found by vectors of an embedding model: a real endpoint over HTTP that also fails,
dawdles, talks nonsense.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from app_config import Settings
from common.meanings import BilingualNames, ColumnMeaning, TableMeaning, ValueMeaning
from common.values import Catalog, Column, Table
from knowledge.tables import table_vectors
from knowledge.tables.relevance import Hints, TableIndex
from knowledge.tables.schema_search import SchemaSearch
from knowledge.tables.table_vectors import TableVectors
from llm import InvalidEndpoint
from llm.embedding import MOST_TEXTS, Embedder, open_embedder
from store import Retention, Store
from store.open_store import open_store
from tests.support.asking import Asking
from tests.support.databases import as_admin
from tests.support.live import eventually
from tests.support.openai_replies import Gate, Reply, Request
from tests.support.openai_server import OpenAiServer

FIELDS = (
    "hound|kennel|barking",
    "invoice|debtor",
    "orchard|apple",
)  # each a direction in which its words point
SECRET = "Ravenhall"
KENNEL = Table(
    "public",
    "kennel",
    "table",
    (
        Column("id", "integer"),
        Column("house", "text", "in which it is", values=(SECRET,), is_complete=True),
        Column(
            "state",
            "text",
            meaning=ColumnMeaning(
                BilingualNames((), ("shape",)),
                values=(ValueMeaning("x", BilingualNames((), (SECRET,))),),
            ),
        ),
    ),
    meaning=TableMeaning(BilingualNames(("犬舍",), ("pound",))),
)
OTHERS = tuple(
    Table("public", name, "table", (Column("id", "integer"),))
    for name in ("debtor", "orchard", "xyz")
)
CATALOG = Catalog((*OTHERS, KENNEL))


def direction(text: str) -> list[float]:
    return [0.01 + sum(text.count(word) for word in words.split("|")) for words in FIELDS] + [
        0.0,
        0.02,
    ]


def answered(
    texts: Sequence[str], vector: Callable[[str], list[float]] = direction
) -> dict[str, Any]:
    data = [
        {"object": "embedding", "index": at, "embedding": vector(text)}
        for at, text in enumerate(texts)
    ]
    return {"object": "list", "data": data[::-1], "model": "m"}


def sent(server: OpenAiServer) -> list[str]:
    """The texts that vectors were asked for, in order."""
    return [text for request in server.requests for text in request.params["input"]]


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        server.embeddings = lambda request: Reply(body=answered(request.params["input"]))
        yield server


def embedder(server: OpenAiServer, model: str = "m") -> Embedder:
    opened = open_embedder(
        Settings(embedding_model=model, embedding_base_url=server.url, openai_api_key="sk-other")
    )
    assert opened is not None
    return opened


@asynccontextmanager
async def opened(
    server: OpenAiServer, model: str = "m", store: Store | None = None
) -> AsyncIterator[TableVectors]:
    source = embedder(server, model)
    vectors = TableVectors(model, source.embed, store.vectors if store else None)
    try:
        yield vectors
    finally:
        await vectors.aclose()
        await source.aclose()


async def filled(vectors: TableVectors, catalog: Catalog = CATALOG) -> None:
    await vectors.begin(catalog)
    await vectors.settled()


def test_tables_are_found_that_share_no_word_with_the_question(server: OpenAiServer) -> None:
    async def main() -> None:
        async with opened(server) as vectors:
            assert await vectors.nearest(CATALOG, "which hound is barking") == (), (
                "until the vectors are there"
            )
            await filled(vectors)
            near = await vectors.nearest(CATALOG, "which hound is barking")
            assert near[0] == KENNEL.key and len(near) == 4
            ranked = TableIndex(CATALOG).ranked("which hound is barking", 1, Hints(near=near))
            assert ranked == [KENNEL]
            found = SchemaSearch(TableIndex(CATALOG)).matches("hound barking", 2, near)
            assert (found[0].table, found[0].is_near, found[0].words) == (KENNEL, True, ())

    asyncio.run(main())
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer none"}, (
        "no other's key"
    )


def test_stored_values_are_never_sent(server: OpenAiServer) -> None:
    async def main() -> None:
        async with opened(server) as vectors:
            await filled(vectors)

    asyncio.run(main())
    (text,) = [text for text in sent(server) if text.startswith("kennel")]
    assert text.split("\n") == [
        "kennel",
        "犬舍",
        "pound",
        "id",
        "house",
        "in which it is",
        "state",
        "shape",
    ]
    assert SECRET not in "".join(sent(server))


def test_nothing_unchanged_is_asked_for_twice(server: OpenAiServer) -> None:
    async def main() -> None:
        async with opened(server) as vectors:
            await filled(vectors)
            await vectors.nearest(CATALOG, "hounds")
            await vectors.nearest(CATALOG, "hounds")
            await filled(vectors, Catalog((*OTHERS, replace(KENNEL, comment="where hounds live"))))

    asyncio.run(main())
    texts = sent(server)
    assert len(texts) == len(set(texts)) == len(CATALOG.tables) + 2


def test_vectors_are_kept_where_there_is_pgvector(
    server: OpenAiServer, make_database: Callable[[str], str], admin_url: str
) -> None:
    url = as_admin(make_database(""), admin_url)

    async def main() -> None:
        for model in ("m", "m", "other"):
            store = open_store(app_source=url, timeout_s=10, retention=Retention())
            async with opened(server, model, store) as vectors:
                await filled(vectors)
                assert (await vectors.nearest(CATALOG, "barking"))[0] == KENNEL.key
            await store.aclose()

    asyncio.run(main())
    asked = [request for request in server.requests if request.params["input"] != ["barking"]]
    assert [request.params["model"] for request in asked] == ["m", "other"]


def test_texts_are_asked_for_in_batches_one_after_the_other(server: OpenAiServer) -> None:
    catalog = Catalog(
        tuple(Table("public", f"t{number}", "table", ()) for number in range(2 * MOST_TEXTS + 1))
    )

    async def main() -> None:
        async with opened(server) as vectors:
            await filled(vectors, catalog)

    asyncio.run(main())
    assert [len(request.params["input"]) for request in server.requests] == [
        MOST_TEXTS,
        MOST_TEXTS,
        1,
    ]
    assert server.most_in_flight <= 1


BROKEN: dict[str, Callable[[Sequence[str]], Reply]] = {
    "failure": lambda _: Reply(status=500),
    "no JSON": lambda _: Reply(body="<html>"),
    "no list": lambda _: Reply(body={"data": 5}),
    "deep": lambda _: Reply(body="[" * 100_000),
    "too few": lambda texts: Reply(body=answered(texts[1:])),
    "empty": lambda texts: Reply(body=answered(texts, lambda _: [])),
    "zeros": lambda texts: Reply(body=answered(texts, lambda _: [0.0, 0.0])),
    "no numbers": lambda texts: Reply(body=answered(texts, lambda _: ["a", None])),  # type: ignore[list-item]
    "text": lambda texts: Reply(body=answered(texts, lambda _: "abc")),  # type: ignore[arg-type,return-value]
    "infinite": lambda texts: Reply(body=answered(texts, lambda _: [1e308, 1e308])),
    "uneven": lambda texts: Reply(body=answered(texts, lambda text: [1.0] * len(text))),
    "disconnect": lambda texts: Reply(body=answered(texts), ending="disconnect", delay_s=0.001),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_whatever_the_endpoint_does_words_decide_alone(server: OpenAiServer, kind: str) -> None:
    works = server.embeddings

    async def main() -> None:
        async with opened(server) as vectors:
            server.embeddings = lambda request: BROKEN[kind](request.params["input"])
            await filled(vectors)
            asked = len(server.requests)
            assert await vectors.nearest(CATALOG, "hounds") == ()
            assert len(server.requests) == asked, "not again at once"
        async with opened(server) as vectors:
            server.embeddings = works
            await filled(vectors)
            server.embeddings = lambda request: BROKEN[kind](request.params["input"])
            found = await vectors.nearest(CATALOG, "hounds")
            assert found == (), "also when only the question's vector is none"
            server.embeddings = works
            assert (await vectors.nearest(CATALOG, "hounds"))[0] == KENNEL.key

    asyncio.run(main())


def test_a_question_of_another_length_than_the_tables_finds_nothing(server: OpenAiServer) -> None:
    async def main() -> None:
        async with opened(server) as vectors:
            await filled(vectors)
            server.embeddings = lambda request: Reply(
                body=answered(request.params["input"], lambda _: [1.0])
            )
            assert await vectors.nearest(CATALOG, "hounds") == ()

    asyncio.run(main())


def test_a_question_does_not_wait_for_a_slow_endpoint(
    server: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    def slow(request: Request) -> Reply:
        return Reply(body=answered(request.params["input"]), gate=gate)

    async def main() -> None:
        async with opened(server) as vectors:
            await filled(vectors)
            server.embeddings = slow
            with monkeypatch.context() as patch:
                patch.setattr(table_vectors, "_WAIT_S", 0.1)
                assert await vectors.nearest(CATALOG, "hounds") == ()
            gate.open()
            assert (await vectors.nearest(CATALOG, "hounds"))[0] == KENNEL.key
        assert sent(server).count("hounds") == 1, "what came late is used"

    asyncio.run(main())


def test_a_search_of_the_schema_finds_what_is_meant(
    server: OpenAiServer, make_database: Callable[[str], str]
) -> None:
    url = make_database("CREATE TABLE kennel (id int); CREATE TABLE debtor (id int)")
    settings = Settings(database_url=url, embedding_model="m", embedding_base_url=server.url)

    def found(asking: Asking) -> list[dict[str, Any]]:
        response = asking.client.get("/api/v0/schema/search", query_string={"q": "barking"})
        assert response.status_code == 200 and response.json is not None
        tables: list[dict[str, Any]] = response.json["data"]["tables"]
        return tables

    with Asking(settings) as asking:
        tables = eventually(lambda: found(asking))
    assert [(table["name"], table["reasons"]) for table in tables] == [
        ("kennel", [{"kind": "similar"}]),
        ("debtor", [{"kind": "similar"}]),
    ]


def test_without_a_model_nothing_is_asked() -> None:
    assert open_embedder(Settings(openai_api_key="sk-x")) is None
    with pytest.raises(InvalidEndpoint, match="EMBEDDING_BASE_URL"):
        open_embedder(Settings(embedding_model="m", embedding_base_url="nowhere"))
