"""`python -m knowledge.load`: what it takes, what it says of the rest, and that it runs nothing."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app_config import Settings
from common.learning import MAX_DOCUMENT_CHARS
from knowledge import load
from knowledge.learning.documents import documents_of_ddl, documents_of_text
from store import Retention, Visible
from store.open_store import open_store

PAIRS = [
    {"question": "how many shops?", "sql": "SELECT count(*) FROM shop"},
    {"question": "各类别店铺数", "sql": "SELECT category, count(*) FROM shop GROUP BY 1;"},
    {"question": "drop", "sql": "DROP TABLE shop"},
    {"question": "gone", "sql": "SELECT * FROM nowhere"},
]
DDL = """
\\connect demo
-- one line per shop
CREATE TABLE sales.shop (id bigint PRIMARY KEY, "Name" text);
COMMENT ON TABLE sales.shop IS '店铺; shops';
COMMENT ON COLUMN sales.shop."Name" IS 'as on its sign';
CREATE INDEX ON sales.shop ("Name");
ALTER TABLE ONLY sales.shop ADD CONSTRAINT named UNIQUE ("Name");
CREATE TABEL typo ();
CREATE VIEW names AS SELECT "Name" FROM sales.shop;
DROP TABLE sales.shop;
"""
PROSE = """What we call things.

# Revenue
Net of tax.

## Refunds
Are subtracted.

```sql
# no heading
```

# Revenue
Said twice.
"""


@pytest.fixture
def loading(
    demo_url: str,
    make_app_database: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., int]:
    """Runs the command with an empty store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APP_DATABASE_URL", make_app_database())
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("DATABASE_URL", demo_url)
    return lambda *arguments: load.main([str(each) for each in arguments])


def seen(user_id: str = "bob") -> Visible:
    async def look() -> Visible:
        settings = Settings.from_env()
        store = open_store(app_source=settings.app_database_url, timeout_s=5, retention=Retention())
        try:
            return await store.learned.visible("default", user_id)
        finally:
            await store.aclose()

    return asyncio.run(look())


def written(path: Path, pairs: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, pairs)), "utf-8")
    return path


def test_pairs_are_proven_one_by_one(
    loading: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path / "pairs.jsonl", PAIRS)
    assert loading("--pairs", file, "--author", "dba") == 1
    said = capsys.readouterr().out
    assert f"{file}:3: refused: Operation not allowed: DROP" in said
    assert f"{file}:4: refused: The SQL is not valid" in said
    assert f"{file}: 2 added, 0 known already, 2 not taken" in said
    assert seen().examples == ()
    assert {each.trust for each in seen("dba").examples} == {"personal"}
    # The operator may share them at once; the same author's same pairs are raised.
    written(file, PAIRS[:2])
    assert loading("--pairs", file, "--author", "dba", "--trust", "certified") == 0
    assert {(each.lang, each.trust, each.tables) for each in seen().examples} == {
        ("en", "certified", (("public", "shop"),)),
        ("zh", "certified", (("public", "shop"),)),
    }
    assert loading("--pairs", file, "--author", "dba", "--trust", "certified") == 0
    assert "0 added, 2 known already" in capsys.readouterr().out


def test_ddl_and_documentation_become_documents(
    loading: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ddl, docs = tmp_path / "schema.sql", tmp_path / "docs"
    ddl.write_text(DDL, "utf-8")
    (docs / "more").mkdir(parents=True)
    (docs / "words.md").write_text(PROSE, "utf-8")
    (docs / "more" / "note.txt").write_text("one note", "utf-8")
    (docs / "image.png").write_bytes(b"\x89PNG")
    assert loading("--ddl", ddl, "--docs", docs) == 1
    assert f"{ddl}:9: invalid: The SQL is not valid: syntax error" in capsys.readouterr().out
    titles = {each.title for each in seen().shared.documents}
    assert {
        "schema.sql › sales.shop",
        "schema.sql › names",
        "words.md › Revenue › Refunds",
    } < titles
    assert len(titles) == 7
    ddl.write_text("CREATE TABLE other (id int)", "utf-8")
    assert loading("--ddl", ddl) == 0
    assert "schema.sql › sales.shop" not in {each.title for each in seen().shared.documents}


def test_what_cannot_be_loaded_is_said(
    loading: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert loading() == 2
    assert loading("--pairs", tmp_path / "none.jsonl") == 2
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    assert loading("--docs", tmp_path / "latin.md") == 2
    assert "latin.md is not UTF-8" in capsys.readouterr().err
    file = written(tmp_path / "pairs.jsonl", PAIRS)
    assert loading("--pairs", file, "--database-url", "postgresql://nobody@127.0.0.1:9/none") == 2


def test_ddl_is_read_table_by_table() -> None:
    documents, unread = documents_of_ddl("d", "schema.sql", DDL)
    assert [document.title for document in documents] == [
        "schema.sql › sales.shop",
        "schema.sql › names",
    ]
    shop = documents[0].text
    assert shop.startswith("-- one line per shop\nCREATE TABLE sales.shop")
    assert "as on its sign" in shop
    assert "ADD CONSTRAINT" in shop
    assert "DROP" not in shop
    assert [statement.line for statement in unread] == [9]


def test_prose_is_cut_at_its_headings() -> None:
    documents = documents_of_text("d", "words.md", PROSE)
    assert [(each.title, each.text.splitlines()[0]) for each in documents] == [
        ("words.md", "What we call things."),
        ("words.md › Revenue", "Net of tax."),
        ("words.md › Revenue › Refunds", "Are subtracted."),
        ("words.md › Revenue (2)", "Said twice."),
    ]
    assert "# no heading" in documents[2].text
    long = documents_of_text("d", "a", "\n\n".join(["word " * 300] * 9) + "\n\n" + "x" * 9_000)
    assert all(0 < len(each.text) <= MAX_DOCUMENT_CHARS for each in long)
    assert "".join(each.text for each in long).count("word") == 2_700
    assert len({each.document_id for each in long}) == len(long)
    assert documents_of_text("d", "a", "\n\n") == []
