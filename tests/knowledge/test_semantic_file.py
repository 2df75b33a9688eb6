"""What a semantic file may say: every mistake is named with its line, and no text makes reading it
fail otherwise.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.meanings import BilingualNames
from common.text import Text
from common.values import Catalog, Column, Table
from common.yaml_tree import MAX_BYTES
from knowledge.semantic.problems import SemanticFileError
from knowledge.semantic.semantic_binding import BoundSemanticFile, bind
from knowledge.semantic.semantic_format import SCHEMA_PATH, SemanticFile, read_file, read_text
from sqltree.operator_expressions import NotAnExpression, expression

ROOT = Path(__file__).resolve().parents[2]
FILE = """
tables:
  orders:
    names: {zh: [订单, 单子], en: order}
    description: one row per order
    label: order_no
    date: order_time
    filter: is_deleted = false
    joins: [{columns: shop_id, to: shops}]
    columns:
      amount: {names: [金额, amount], unit: {zh: 元, en: CNY}}
      status: {values: {P: {zh: [已付], en: paid}, no: 2024}}
      phone: {sensitive: true}
metrics:
  net_revenue:
    table: orders
    expression: sum(amount) FILTER (WHERE "Qty" > 0)
    filter: status = 'P'
    grain: [shop_id]
"""


def _table(name: str, *columns: str, schema: str = "public", **more: Any) -> Table:
    return Table(schema, name, "table", tuple(Column(column, "text") for column in columns), **more)


ORDERS = _table(
    "orders", "order_no", "order_time", "is_deleted", "shop_id", "amount", "Qty", "status", "phone"
)
SHOPS = _table("shops", "id", primary_key=("id",))
CATALOG = Catalog(
    (ORDERS, SHOPS, _table("orders", "order_no", schema="old"), _table("twice", schema="a"))
)


def _bound(text: str, catalog: Catalog = CATALOG) -> BoundSemanticFile:
    return bind(read_text(text.encode(), "f.yaml"), catalog)


def _problems(text: str, catalog: Catalog = CATALOG) -> list[str]:
    """What is wrong with the file, by itself or with the catalogue."""
    try:
        return [problem.at("f") for problem in _bound(text, catalog).problems]
    except SemanticFileError as error:
        return [problem.at("f") for problem in error.problems]


def test_a_catalogue_carries_what_the_file_says() -> None:
    bound = _bound(FILE)
    assert bound.problems == ()
    orders, metric = bound.catalog.by_key["public", "orders"], bound.catalog.metrics[0]
    assert orders.meaning is not None
    assert orders.meaning.names == BilingualNames(zh=("订单", "单子"), en=("order",))
    assert orders.meaning.description == Text("one row per order", "one row per order")
    assert (orders.meaning.label_columns, orders.meaning.date_column) == (
        ("order_no",),
        "order_time",
    )
    assert (orders.meaning.default_filter, orders.meaning.filter_columns) == (
        "is_deleted = false",
        ("is_deleted",),
    )
    assert [(join.columns, join.target, join.target_columns) for join in orders.meaning.joins] == [
        (("shop_id",), ("public", "shops"), ("id",))
    ]
    amount, status, phone = (orders.column(name) for name in ("amount", "status", "phone"))
    assert amount and amount.meaning and status and status.meaning and phone and phone.meaning
    assert amount.meaning.names == BilingualNames(zh=("金额",), en=("amount",))
    assert amount.meaning.unit == Text("元", "CNY")
    # What YAML reads as a boolean and a number is the stored value and its name as they are
    # written.
    assert {value.value: value.names.all for value in status.meaning.values} == {
        "P": ("已付", "paid"),
        "no": ("2024",),
    }
    assert (phone.meaning.is_sensitive, amount.meaning.is_sensitive) == (True, None)
    assert metric.names.en == ("net revenue",)  # its own name, when no other is given
    assert (metric.date_column, metric.grain) == (
        "order_time",
        ("shop_id",),
    )  # the date is the table's
    assert metric.columns == ("amount", "Qty", "status")
    assert bound.catalog.by_key["old", "orders"].meaning is None
    assert hash(bound.catalog)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tables:\n  ordres: {}", "f:2: there is no table 'ordres'; did you mean 'orders'?"),
        (
            "tables:\n  old.order: {}",
            "f:2: there is no table 'old.order'; did you mean 'old.orders'?",
        ),
        (
            "tables:\n  orders:\n    columns:\n      Amount: {}",
            "f:4: the table 'orders' has no column 'Amount'; did",
        ),
        (
            "tables:\n  orders:\n    colums: {}",
            "f:3: tables.orders has no key 'colums'; did you mean 'columns'?",
        ),
        (
            "tables:\n  orders: {}\n  public.orders: {}",
            "f:3: the table 'public.orders' is described in line 2 already",
        ),
        (
            "tables:\n  orders:\n    label: [order_no,\n      nr]",
            "f:4: the table 'orders' has no column 'nr'",
        ),
        (
            "tables:\n  orders: {joins: [{columns: [shop_id, amount], to: shops}]}",
            "f:2: the join to 'shops' needs tar",
        ),
        (
            "tables:\n  orders:\n    filter: amount >\n",
            "f:3: the filter of 'orders' can't be used: it is no SQL",
        ),
        (
            "tables:\n  orders:\n    columns:\n      phone: {sensitive: maybe}",
            "f:4: tables.orders.columns.phone.s",
        ),
        ("metrics:\n  x: {table: orders}", "f:2: metrics.x needs 'expression'"),
        (
            "metrics:\n  x: {table: orders,\n    expression: amount}",
            "f:3: the metric 'x' is no aggregate such as sum(",
        ),
        (
            "metrics:\n  x: {table: orders, expression: sum(amout)}",
            "f:2: the table 'orders' has no column 'amout'; d",
        ),
        (
            "metrics:\n  x: {table: orders, expression: 'max((SELECT 1))'}",
            "f:2: the metric 'x' can't be used: subqu",
        ),
        (
            "metrics:\n  x: {table: orders, expression: f(a, b)}",
            "f:2: metrics.x has no key 'b)'; a text with commas",
        ),
        ("tables: []", "f:1: tables must be a mapping of tables"),
        ("hello", "f:1: the file must be a mapping with the keys tables, metrics and reports"),
        ("tables:\n  a: {}\n  a: {}", "f:3: the key 'a' stands here twice"),
        ("tables:\n  a: !!python/object/apply:os.system [ls]", "f:2: tags (!…) are not allowed"),
        ("tables: {}\n---\ntables: {}", "f:2: a second document begins here"),
        ("tables:\n  - [a\n", "f:2: not YAML"),
        ("tables: {orders: &a [*a]}", "f:1: the alias *a stands for nothing that is complete here"),
        ("[" * 30, "f:1: nested more than 16 levels deep"),
        ("version: 2", "f:1: version must be 1"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_nearest_name(text: str, problem: str) -> None:
    assert any(said.startswith(problem) for said in _problems(text)), _problems(text)


def test_what_does_not_fit_is_left_out_and_the_rest_is_used() -> None:
    bound = _bound(
        FILE.replace("amount: {names", "amunt: {names").replace("date: order_time", "date: ordered")
    )
    assert [problem.line for problem in bound.problems] == [7, 11]
    orders = bound.catalog.by_key["public", "orders"]
    assert (
        orders.meaning
        and orders.meaning.names.zh == ("订单", "单子")
        and orders.meaning.date_column is None
    )
    assert [metric.name for metric in bound.catalog.metrics] == ["net_revenue"]
    # Without the filter of its table, a metric would be another figure.
    unfiltered = _bound(FILE.replace("is_deleted = false", "is_gone = false"))
    assert [problem.line for problem in unfiltered.problems] == [8, 15]
    assert unfiltered.catalog.metrics == ()


def test_a_value_that_a_column_can_not_have_is_named() -> None:
    status = Column("status", "text", allowed=("paid", "open"))
    catalog = Catalog((Table("public", "t", "table", (status, Column("done", "boolean"))),))
    text = (
        "tables: {t: {columns: {status: {values: {piad: x, open: y}}, done: {values: {TRUE: "
        "fertig, maybe: z}}}}}"
    )
    assert _problems(text, catalog) == [
        "f:1: the column 'done' can't have the value 'maybe'",
        "f:1: the column 'status' can't have the value 'piad'; did you mean 'paid'?",
    ]
    done = _bound(text, catalog).catalog.tables[0].columns[1].meaning
    assert done and [(value.value, value.names.en) for value in done.values] == [
        ("true", ("fertig",))
    ]


def test_a_name_of_several_tables_must_say_which() -> None:
    tables = (
        _table("t", schema="a"),
        _table("t", schema="b"),
        _table("b.t", schema="a"),
        _table("t", schema="a.b"),
    )
    catalog = Catalog(tables)
    assert _problems("tables: {t: {}}", catalog) == [
        """f:1: several tables are called 't': write one of "a"."t", "b"."t", "a.b"."t\""""
    ]
    assert "several tables are called 'a.b.t'" in _problems("tables: {a.b.t: {}}", catalog)[0]
    described = _bound(
        """tables: {'"a"."b.t"': {names: x}, '"b"."t"': {names: y}}""", catalog
    ).catalog
    assert {
        table.key: table.meaning and table.meaning.names.en
        for table in described.tables
        if table.meaning
    } == {
        ("a", "b.t"): ("x",),
        ("b", "t"): ("y",),
    }
    assert _problems("tables: {t: {}}", Catalog(tables, search_path=("b",))) == []


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "*",
            "a b",
            "a AS b",
            "a, b",
            "a; DROP TABLE t",
            "a)",
            "(a",
            "1) FROM t --",
            "a -- x",
            "a /* x */",
        ),
        *(
            "ALL a",
            "DISTINCT a",
            "t.a",
            "t.*",
            "count(t.*)",
            "(SELECT 1)",
            "EXISTS (SELECT 1)",
            "ARRAY(SELECT 1)",
        ),
        *(
            "sum(a) OVER ()",
            "$1",
            "a FROM t",
            "1 UNION SELECT 2",
            "a LIMIT 1",
            "a INTO t",
            "DEFAULT",
            "a\0b",
        ),
        *("a FOR UPDATE", "a ORDER BY 1", "a WHERE true", "(" * 5000 + "a" + ")" * 5000, "\ud800"),
    ],
)
def test_only_one_expression_over_the_tables_own_rows_is_one(text: str) -> None:
    with pytest.raises(NotAnExpression):
        expression(text)


def test_the_columns_of_an_expression_get_an_alias() -> None:
    found = expression(""" sum(金额 * "Qty") FILTER (WHERE 'a' = kind AND 金额 > 0)/count(*) """)
    assert found.columns == ("金额", "Qty", "kind")
    assert (
        found.of("o")
        == """sum(o.金额 * o."Qty") FILTER (WHERE 'a' = o.kind AND o.金额 > 0)/count(*)"""
    )


def test_aliases_stand_for_what_they_name_within_bounds() -> None:
    shared = "tables: {orders: {columns: {status: {values: {P: &n [paid], R: *n}}}}}"
    assert _problems(shared) == []
    bomb = "".join(
        f"k{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12)
    )
    assert "stand for too much" in _problems(f"k0: &a0 [x]\n{bomb}")[0]
    chain = "".join(f"k{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 40))
    assert "levels deep" in _problems(f"k0: &a0 [x]\n{chain}")[0]


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    for data, said in (
        (b"#" * (MAX_BYTES + 1), "larger than"),
        (b"a: 1\nb: \xff", "f:2: the file is not UTF-8"),
    ):
        with pytest.raises(SemanticFileError, match=said):
            read_text(data, "f")
    with pytest.raises(SemanticFileError, match=r"missing\.yaml:1: the file can't be read"):
        read_file(tmp_path / "missing.yaml")
    assert (
        read_text(b"", "f")
        == read_text(b"# nothing\n", "f")
        == read_text(b"tables:\nmetrics:\n", "f")
        == SemanticFile()
    )


# ------------------------------------------------------------------------------
# whatever it says

_WORDS = st.sampled_from(
    [
        *(
            "tables",
            "metrics",
            "version",
            "orders",
            "shops",
            "columns",
            "names",
            "zh",
            "en",
            "values",
            "unit",
            "joins",
        ),
        *(
            "label",
            "date",
            "filter",
            "sensitive",
            "to",
            "target",
            "table",
            "expression",
            "grain",
            "amount",
            "status",
        ),
        *("sum(amount)", "1", "true", "null", "~", "订单", "description", ""),
    ]
)
_VALUES = st.recursive(
    _WORDS | st.text(max_size=8) | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)


def _is_read_or_refused_with_a_line(data: bytes) -> None:
    try:
        bound = bind(read_text(data, "f"), CATALOG)
    except SemanticFileError as error:
        assert error.problems
        lines = [problem.line for problem in error.problems]
    else:
        hash(bound.catalog)
        lines = [problem.line for problem in bound.problems]
    assert all(
        1 <= line <= max(1, len(data.decode("utf-8", "replace").splitlines())) for line in lines
    )


@given(
    st.binary(max_size=200)
    | st.text(alphabet="[]{}&*!|>'\"%@`,:?- \n\t#abtrue1~<=", max_size=80).map(str.encode)
)
def test_any_bytes_are_read_or_refused_with_a_line(data: bytes) -> None:
    _is_read_or_refused_with_a_line(data)


@given(_VALUES)
def test_any_yaml_is_read_or_refused_with_a_line(value: Any) -> None:
    _is_read_or_refused_with_a_line(
        yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
    )


@given(
    st.dictionaries(
        st.sampled_from(["orders", "shops"]),
        st.fixed_dictionaries(
            {},
            optional={
                "names": _VALUES,
                "label": _VALUES,
                "filter": _VALUES,
                "joins": _VALUES,
                "columns": _VALUES,
            },
        ),
        max_size=2,
    ),
    _VALUES,
)
def test_any_entry_is_read_or_refused_with_a_line(tables: Any, metric: Any) -> None:
    whole = {
        "tables": tables,
        "metrics": {"m": {"table": "orders", "expression": "sum(amount)", "grain": metric}},
    }
    _is_read_or_refused_with_a_line(yaml.safe_dump(whole).encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------
# the page


def test_the_page_shows_a_file_that_is_valid() -> None:
    page = (ROOT / "docs/semantic.md").read_text()
    shown = page.split("```yaml\n")[1].split("```")[0]
    said = read_text(shown.encode(), "docs/semantic.md")
    assert [metric.name.text for metric in said.metrics] == ["revenue"]


def test_the_page_describes_every_key() -> None:
    schema = json.loads(SCHEMA_PATH.read_text())
    page = (ROOT / "docs/semantic.md").read_text()
    places = [
        schema,
        *(schema["$defs"][name] for name in ("table", "join", "columnMeaning", "metric")),
    ]
    keys = {key for place in places for key in place["properties"]}
    assert [key for key in sorted(keys) if f"`{key}`" not in page and f"{key}:" not in page] == []
