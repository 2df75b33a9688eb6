"""The file of databases: what it may say, and what is said of its mistakes."""

from pathlib import Path

import pytest

from common.text import Text
from databases.databases_file import DatabasesFile, DatabasesFileError, read_databases
from databases.options import DatabaseOptions

SETTINGS = DatabaseOptions(max_rows=50, denied_objects=("hr",))


def _read(folder: Path, text: str, **environ: str) -> DatabasesFile:
    path = folder / "databases.yaml"
    path.write_text(text, "utf-8")
    return read_databases(path, SETTINGS, environ)


def test_a_file_says_what_differs_from_the_settings(tmp_path: Path) -> None:
    file = _read(
        tmp_path,
        """
databases:
  sales:
    url: postgresql://citu:${SALES_PASSWORD}@db:5432/sales
    names: {zh: [销售库, 销售], en: sales}
    description: orders and customers
    groups: analysts
    semantic_file: words/sales.yaml
    row_rules: /etc/citu/rows.yaml
    denied_objects: [pay, public.person.salary]
    group_denied_objects: {clerks: [hr]}
    pool_size: 3
    statement_timeout_s: 2.5
    row_context: true
  demo:
    url: demo
    default: true
""",
        SALES_PASSWORD="p%40ss",
    )
    sales, demo = file.entries
    assert (sales.name, sales.url) == ("sales", "postgresql://citu:p%40ss@db:5432/sales")
    assert (sales.names.zh, sales.names.en) == (("销售库", "销售"), ("sales",))
    assert sales.description == Text("orders and customers", "orders and customers")
    assert sales.groups == frozenset({"analysts"})
    assert sales.semantic_file == tmp_path / "words/sales.yaml"
    assert sales.row_rules == Path("/etc/citu/rows.yaml")
    options = sales.options
    assert (options.pool_size, options.statement_timeout_s, options.max_rows) == (3, 2.5, 50)
    assert list(options.denied_objects) == ["pay", "public.person.salary"]
    assert options.group_denials == {"clerks": frozenset({("hr",)})}
    assert options.row_context
    assert demo.is_demo
    assert demo.options == SETTINGS
    assert demo.groups is None
    assert file.default == "demo"


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("", ["1: the file needs 'databases'"]),
        ("databases: {}", ["1: the file needs 'databases'"]),
        ("databases: [a]", ["1: the file needs 'databases'"]),
        ("database:\n  a: {url: demo}", ["1: the file needs 'databases'"]),
        ("databases:\n  a: {url: demo}\nother: 1", ["3: the file has no key 'other'"]),
        ("databases:\n  a b: {url: demo}", ["2: 'a b' is no name"]),
        ("databases:\n  a: demo", ["2: a needs a mapping with 'url'"]),
        ("databases:\n  a: {groups: [x]}", ["2: a.url: Field required"]),
        (
            "databases:\n  a:\n    url: mysql://x/y",
            ["3: a.url can't be used. It is an address of MySQL"],
        ),
        ("databases:\n  a:\n    url: demo\n    pool: 3", ["4: a.pool: Extra inputs"]),
        ("databases:\n  a:\n    url: demo\n    pool_size: 0", ["4: a.pool_size: "]),
        ("databases:\n  a:\n    url: demo\n    groups: [a b]", ["4: a.groups.0: "]),
        (
            "databases:\n  a:\n    url: ${NONE}\n  b: {url: demo, max_rows: many}",
            ["3: the environment has no variable NONE", "4: b.max_rows: "],
        ),
        (
            "databases:\n  a: {url: demo, default: true}\n  b: {url: demo, default: true}",
            ["2: only one can be the default: a, b"],
        ),
        ("databases:\n  a: {url: demo, denied_objects: ['a.b.c.d']}", ["2: a: "]),
        ("databases:\n  a: {url: demo}\n  a: {url: demo}", ["3: "]),
        ("databases:\n  a: {url: !secret demo}", ["2: tags"]),
    ],
)
def test_mistakes_are_named_with_their_lines(
    tmp_path: Path, text: str, mistakes: list[str]
) -> None:
    with pytest.raises(DatabasesFileError) as caught:
        _read(tmp_path, text)
    said = str(caught.value).replace(f"{tmp_path}/databases.yaml:", "")
    lines = said.split("\n")
    starts = [line[: len(mistake)] for line, mistake in zip(lines, mistakes, strict=False)]
    assert starts == mistakes


def test_no_password_is_in_a_message(tmp_path: Path) -> None:
    with pytest.raises(DatabasesFileError) as caught:
        _read(tmp_path, "databases: {a: {url: 'postgresql://u:s3cret@@host/db'}}")
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabasesFileError, match="can't be read"):
        read_databases(tmp_path / "none.yaml", SETTINGS)
