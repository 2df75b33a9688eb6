"""A drafted semantic file fits its catalogue as it stands, whatever that holds, and says what can
be known.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.values import Catalog, Column, Table
from knowledge.semantic.__main__ import main
from knowledge.semantic.draft import draft
from knowledge.semantic.semantic_binding import BoundSemanticFile, bind
from knowledge.semantic.semantic_format import read_text
from tests.support.catalogs import wide_catalog

FIXTURES = Path(__file__).parents[1] / "fixtures"


def _fits(catalog: Catalog) -> BoundSemanticFile:
    bound = bind(read_text(draft(catalog, "x").encode(), "draft"), catalog)
    assert bound.problems == ()
    return bound


def test_a_draft_fits_the_database_it_was_drafted_from(
    make_database: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = [
        f"CREATE SCHEMA of_{path.stem}; SET search_path = of_{path.stem}; {path.read_text()};"
        for path in sorted((FIXTURES / "offline").glob("*.sql"))
        if "_" not in path.stem
    ]
    hostile, guarded = (
        (FIXTURES / name).read_text() for name in ("hostile_names.sql", "guard/schema.sql")
    )
    url = make_database(
        "CREATE SCHEMA odd; SET search_path = odd; "
        f"{hostile} {''.join(schemas)} RESET search_path; {guarded}"
    )
    assert main(["draft", "--database-url", url]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "semantic.yaml"
    path.write_text(text)
    assert main(["check", str(path), "--database-url", url]) == 0, capsys.readouterr().err
    said = yaml.safe_load(text)["tables"]
    assert said["tb_order"]["columns"]["status"]["values"]["2"] == ["已付款"]
    assert said["tb_goods"]["columns"]["price"]["unit"] == "元"
    assert said["tb_user"]["columns"]["mobile"]["sensitive"] is True
    assert {"yes", "no", "#", ": "} <= said["on"]["columns"]["mood"]["values"].keys()


def test_what_is_wrong_with_a_file_is_listed_as_compilers_do(
    demo_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "semantic.yaml"
    path.write_text(
        "tables:\n  shops: {}\n  shop:\n    columns:\n      category: {values: {餐饮: food, "
        "饭店: food}}\n"
    )
    assert main(["check", str(path), "--database-url", demo_url]) == 1
    assert capsys.readouterr().err == f"{path}:2: there is no table 'shops'; did you mean 'shop'?\n"
    path.write_text(path.read_text().replace("  shops: {}\n", "\n"))
    assert main(["check", str(path), "--database-url", demo_url]) == 0
    assert capsys.readouterr().err == f"{path}:5: note: no row has the value '饭店' in 'category'\n"
    path.write_text("tables: [")
    nowhere = "postgresql://127.0.0.1:1/nowhere"
    assert main(["check", str(path), "--database-url", nowhere]) == 1
    assert f"{path}:1: not YAML" in capsys.readouterr().err
    path.write_text("")
    assert main(["check", str(path), "--database-url", nowhere]) == 2
    assert "does not lead to a database" in capsys.readouterr().err


def test_a_draft_of_some_tables_holds_them_alone(
    demo_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["draft", "--database-url", demo_url, "--tables", "daily_*", "--tables", "public.shop"]
        )
        == 0
    )
    said = yaml.safe_load(capsys.readouterr().out)
    assert set(said["tables"]) == {"daily_revenue", "daily_traffic", "shop"}
    assert said["tables"]["daily_revenue"]["date"] == "revenue_date"
    assert said["tables"]["shop"]["label"] == "shop_name"
    assert said["tables"]["daily_revenue"]["columns"]["amount"]["unit"] == "元"


def test_references_that_nobody_declared_are_suggested() -> None:
    customer = Table(
        "public", "t_customers", "table", (Column("id", "integer"),), primary_key=("id",)
    )
    order = Table(
        "public",
        "orders",
        "table",
        (Column("customer_id", "integer"), Column("deleted", "boolean")),
    )
    text = draft(Catalog((customer, order)), "x")
    assert "#   - {columns: [customer_id], to: t_customers, target: [id]}" in text
    assert '# filter: "NOT deleted"' in text
    # What is commented out is right as it stands.
    text = (
        text.replace("# joins:", "joins:")
        .replace("#   - {", "  - {")
        .replace("# filter:", "filter:")
    )
    bound = bind(read_text(text.encode(), "draft"), Catalog((customer, order)))
    meaning = bound.catalog.tables[1].meaning
    assert bound.problems == () and meaning is not None
    assert (meaning.default_filter, meaning.joins[0].target) == ("NOT deleted", customer.key)


def test_a_draft_proposes_what_lines_are_worth_and_names_in_both_languages() -> None:
    line = Table(
        "public",
        "order_line",
        "table",
        (
            Column("order_id", "integer"),
            Column("unit_price", "numeric(9,2)", "成交单价"),
            Column("quantity", "integer"),
            Column("discount", "numeric(3,2)"),
            Column("sex", "integer", "性别：1=男 2=女"),
        ),
        comment="订单明细",
    )
    person = Table(
        "public",
        "employee",
        "table",
        (Column("last_name", "text"), Column("first_name", "text")),
    )
    catalog = Catalog((line, person))
    text = draft(catalog, "x")
    # What is commented out is right as it stands.
    text = text.replace("metrics: {}", "metrics:").replace('#  "', '  "')
    bound = bind(read_text(text.encode(), "draft"), catalog)
    assert bound.problems == ()
    (metric,) = bound.catalog.metrics
    assert metric.expression == "sum(unit_price * quantity * (1 - coalesce(discount, 0)))"
    assert (metric.names.label("zh"), metric.names.label("en")) == ("销售额", "revenue")
    lines, people = bound.catalog.tables
    assert lines.meaning is not None and people.meaning is not None
    assert lines.meaning.names.label("en") == "order line"
    assert people.meaning.label_columns == ("first_name", "last_name")
    sex = lines.column("sex")
    assert sex is not None and sex.meaning is not None
    assert [value.names.label("en") for value in sex.meaning.values] == ["man", "woman"]
    assert "# names: {zh: 数量, en: quantity}" in text, "by the dictionary, so for a person to see"


def test_a_draft_of_a_large_catalogue_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowledge.semantic.draft.MAX_CHARS", 30_000)
    catalog = wide_catalog(300)
    text = draft(catalog, "x")
    assert len(text) < 33_000
    assert "more tables are left out: draft them apart, with --tables" in text
    assert bind(read_text(text.encode(), "draft"), catalog).problems == ()


_NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)
_TYPES = st.sampled_from(
    ["text", "integer", "numeric(12,2)", "boolean", "date", "timestamp with time zone", "mood"]
)
_COLUMNS = st.builds(
    Column,
    name=_NAMES,
    type=_TYPES,
    comment=st.none()
    | _NAMES
    | st.sampled_from(["ﷺ" * 2_000, "金额（元）", "状态：0-停业 1-营业", "weight (kg)", "手机"]),
    values=st.lists(_NAMES, max_size=3).map(tuple),
    is_complete=st.booleans(),
    allowed=st.lists(_NAMES, max_size=3).map(tuple),
)
_TABLES = st.builds(
    Table,
    schema=st.sampled_from(["public", "a", "a.b", "ß"]) | _NAMES,
    name=st.sampled_from(["orders", "b.c", "c", "order"]) | _NAMES,
    kind=st.sampled_from(["table", "view"]),
    columns=st.lists(_COLUMNS, max_size=4, unique_by=lambda column: column.name).map(tuple),
    comment=st.none() | _NAMES,
)


@given(st.lists(_TABLES, max_size=5, unique_by=lambda table: table.key))
def test_a_draft_fits_any_catalogue(tables: list[Table]) -> None:
    keyed = [
        Table(
            one.schema,
            one.name,
            one.kind,
            one.columns,
            one.comment,
            primary_key=tuple(c.name for c in one.columns[:1]),
        )
        for one in tables
    ]
    _fits(Catalog(tuple(keyed)))
