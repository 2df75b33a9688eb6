"""The tools, called as models call them, over a real database: what they give, refuse and keep to
themselves.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from agent.analysis import forecasting
from agent.progress import StepResult, ToolStep
from agent.tools.argument_schema import argument_schema
from agent.tools.registry import ToolRegistry
from agent.tools.run_sql import RunSql
from agent.tools.session import ToolSession
from agent.tools.tool import Arguments, Tool, ToolContext, ToolResult
from agent.tools.tool_groups import InvalidToolGroups
from agent.tools.tool_limits import ToolLimits
from agent.tools.toolbox import TOOL_NAMES
from api.access.key_file import KeyFile
from app_config import ConfigurationError, Settings
from common.actor import Actor
from common.audit import NoAudit
from common.errors import Forbidden
from common.runtime import run
from common.text import Text
from databases.datasources import DEFAULT, Datasource, Datasources
from llm import InvalidArguments, ToolCall
from tests.support.asking import Asking
from tests.support.databases import ENDLESS, SMALL, as_admin, runs_endless, until
from tests.support.effort import tries
from tests.support.live import eventually
from tests.support.openai_replies import Called, Reply
from tests.support.openai_rules import violation
from tests.support.openai_server import OpenAiServer
from tests.support.postgres_wire import Wire
from tests.support.tool_bench import ToolBench
from tests.support.tool_scripts import calling, following
from unified_api import _warn_of_groups

# `vault` and `shop_order.margin` are closed to all; `buyer` holds personal data; `wide` has too
# many columns to show.
DDL = f"""
CREATE TABLE buyer (buyer_id int PRIMARY KEY, buyer_name text NOT NULL, email text,
    city text NOT NULL);
CREATE TABLE shop_order (order_id int PRIMARY KEY, buyer_id int NOT NULL REFERENCES buyer,
    status text NOT NULL,
    product text NOT NULL, amount numeric(10,2), margin numeric(10,2), ordered_on date NOT NULL);
CREATE TABLE vault (vault_id int PRIMARY KEY, passphrase text);
CREATE TABLE wide (wide_id int PRIMARY KEY,
    {", ".join(f"measurement_number_{n} numeric(12,2)" for n in range(400))});
COMMENT ON TABLE shop_order IS '订单';
COMMENT ON COLUMN shop_order.status IS '状态';
INSERT INTO buyer SELECT n, 'Zebedee Quill ' || n, 'quill' || n || '@example.org',
    (ARRAY['Paris', 'Berlin', 'Oslo'])[1 + n % 3] FROM generate_series(1, 30) AS n;
INSERT INTO shop_order SELECT n, 1 + n % 30, (ARRAY['paid', 'open', 'cancelled'])[1 + n % 3],
    'Gizmo ' || chr(65 + n / 26 % 26) || chr(65 + n % 26) || ' set', 10 + n % 7, 1,
        date '2025-01-01' + n / 2
    FROM generate_series(1, 600) AS n;
INSERT INTO vault VALUES (1, 'xyzzy');
ANALYZE;
"""
PER_MONTH = (
    "SELECT date_trunc('month', ordered_on)::date AS month, sum(amount) AS total FROM shop_order "
    "GROUP BY 1 ORDER BY 1"
)
PER_STATUS = "SELECT status, count(*) AS orders FROM shop_order GROUP BY 1 ORDER BY 2 DESC"
SAVED = {"question": "how many orders per status are there", "sql": PER_STATUS}
MOST_CHARS = 24_000  # of any result: about 6,000 tokens


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools") / "audit.jsonl"


@pytest.fixture(scope="module")
def database_url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@pytest.fixture(scope="module")
def configured(database_url: str, audit: Path) -> Settings:
    closed = "public.vault, public.shop_order.margin"
    return Settings(
        database_url=database_url,
        audit_log=str(audit),
        denied_objects=closed,
        max_rows=50,
        value_lookup_timeout_s=20.0,  # else a busy machine would find less
    )


@pytest.fixture(scope="module")
def asking(configured: Settings) -> Iterator[Asking]:
    with Asking(configured) as asking:
        yield asking


@pytest.fixture
def bench(asking: Asking, audit: Path) -> ToolBench:
    return ToolBench(asking, audit)


# ------------------------------------------------------------------------------
# every tool

GOOD: dict[str, dict[str, Any]] = {
    "run_sql": {"sql": PER_STATUS},
    "search_schema": {"words": "orders", "limit": None},
    "describe_table": {"table": "shop_order"},
    "search_values": {"words": "Gizmo AB set", "table": None, "column": None},
    "search_memory": {"question": "orders per status"},
    "save_memory": SAVED,
    "chart": {"call_id": "c1", "type": "bar", "x": None, "y": None},
    "statistics": {
        "call_id": "c1",
        "what": "describe",
        "measure": None,
        "by": None,
        "horizon": None,
    },
    "export": {"call_id": "c1", "format": "csv"},
    "search_assets": {"query": "orders", "limit": None},
    "get_table_lineage": {"table": "shop_order", "column": None, "direction": None, "depth": None},
    "kg_join_hints": {"tables": ["shop_order", "buyer"]},
    "kg_quality_rules": {"table": "shop_order"},
    "search_reference_sql": {
        "query": "orders per status",
        "source_tables": None,
        "target_tables": None,
        "limit": None,
    },
}
BAD: list[tuple[str, Any, str]] = [
    ("run_sql", {}, "invalid_arguments"),
    ("run_sql", {"sql": 1}, "invalid_arguments"),
    ("run_sql", InvalidArguments("{", "The arguments are not valid JSON."), "invalid_arguments"),
    ("run_sql", {"sql": "DELETE FROM buyer"}, "forbidden_keywords"),
    ("run_sql", {"sql": "SELECT 1; SELECT 2"}, "forbidden_keywords"),
    ("run_sql", {"sql": "SELECT * FROM vault"}, "forbidden_object"),
    ("run_sql", {"sql": "SELECT FROM WHERE"}, "syntax_error"),
    ("run_sql", {"sql": "SELECT 1 / 0"}, "syntax_error"),
    ("search_schema", {"words": ""}, "invalid_arguments"),
    ("search_schema", {"words": "orders", "limit": 0}, "invalid_arguments"),
    ("describe_table", {"table": "vault"}, "not_found"),
    ("describe_table", {"table": "shop_ordr"}, "not_found"),
    ("describe_table", {"table": "x" * 30_000}, "not_found"),
    ("search_values", {"words": "x" * 201}, "invalid_arguments"),
    ("search_values", {"words": "x", "table": "nowhere"}, "not_found"),
    ("search_values", {"words": "x", "column": "nothing"}, "not_found"),
    ("search_values", {"words": "quill1@example.org", "column": "email"}, "forbidden"),
    ("search_memory", {"question": ["orders"]}, "invalid_arguments"),
    ("save_memory", {**SAVED, "sql": "DROP TABLE buyer"}, "forbidden_keywords"),
    ("save_memory", {**SAVED, "sql": "SELECT * FROM vault"}, "forbidden_object"),
    ("save_memory", {**SAVED, "question": ""}, "invalid_arguments"),
    ("chart", {"call_id": "nothing"}, "not_found"),
    ("chart", {"call_id": "c1", "type": "radar"}, "invalid_arguments"),
    ("chart", {"call_id": "c1", "type": "line"}, "invalid_request"),
    ("statistics", {"call_id": "c1", "what": "guess"}, "invalid_arguments"),
    ("statistics", {"call_id": "c1", "what": "describe", "measure": "city"}, "invalid_request"),
    ("statistics", {"call_id": "c9", "what": "describe"}, "not_found"),
    ("export", {"call_id": "c1", "format": "png"}, "invalid_arguments"),
    ("export", {"call_id": "", "format": "csv"}, "not_found"),
    ("search_assets", {"query": "orders", "limit": 21}, "invalid_arguments"),
    ("get_table_lineage", {"table": "vault"}, "not_found"),
    ("get_table_lineage", {"table": "shop_order", "column": "margin"}, "not_found"),
    ("get_table_lineage", {"table": "shop_order", "depth": 11}, "invalid_arguments"),
    ("kg_join_hints", {"tables": ["shop_order", "vault"]}, "not_found"),
    ("kg_join_hints", {"tables": []}, "invalid_arguments"),
    ("kg_quality_rules", {"table": "vault"}, "not_found"),
    ("search_reference_sql", {"query": "x", "source_tables": ["vault"]}, "not_found"),
    ("search_reference_sql", {"query": ""}, "invalid_arguments"),
]


def test_the_tables_here_name_every_tool(bench: ToolBench) -> None:
    names = [tool.name for tool in bench.registry.allowed(Actor("ann"))]
    assert list(GOOD) == names == list(TOOL_NAMES)
    assert {name for name, *_ in BAD} == set(names)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_call_gives_a_bounded_text_and_leaves_one_line(bench: ToolBench, name: str) -> None:
    bench.sql(PER_STATUS)
    result = bench.call(name, GOOD[name])
    assert (result.error_type, bool(result.text), len(result.text) < MOST_CHARS) == (
        None,
        True,
        True,
    ), result.text
    assert result.summary.zh and result.summary.en
    line = [line for line in bench.lines() if line["source"] == "tool"][-1]
    assert (line["tool"], line["call_id"], line["verdict"], line["arguments"]) == (
        name,
        "c2",
        "executed",
        GOOD[name],
    )


@pytest.mark.parametrize(
    ("name", "arguments", "error_type"), BAD, ids=[f"{name}-{error}" for name, _, error in BAD]
)
def test_a_bad_call_says_what_is_wrong(
    bench: ToolBench, name: str, arguments: Any, error_type: str
) -> None:
    bench.sql(PER_STATUS)
    result = bench.call(name, arguments)
    assert (result.error_type, result.found, result.shown) == (error_type, None, {}), result.text
    assert 0 < len(result.text) < MOST_CHARS
    assert "xyzzy" not in result.text and "passphrase" not in result.text
    line = [line for line in bench.lines() if line["source"] == "tool"][-1]
    assert (line["verdict"] in ("refused", "failed"), line["error_type"]) == (True, error_type)


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_a_tool_for_others_is_not_there(bench: ToolBench, name: str) -> None:
    found = bench.registry.find(name, Actor("ann"))
    assert found is not None
    mine = bench.registry.changed(
        without=[name], more=[replace(found, groups=frozenset({"others"}))]
    )
    assert bench.call(name, GOOD[name], mine) == bench.call("no_such_tool", {}, mine)
    assert bench.statements() == []
    assert [line["verdict"] for line in bench.lines()] == ["refused", "refused"]


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_a_call_that_is_cancelled_is_noted(asking: Asking, audit: Path, name: str) -> None:
    bench, begun = ToolBench(asking, audit), asyncio.Event()
    bench.sql(PER_STATUS)

    async def waiting(_tool: Tool[Any], _arguments: Arguments, _context: ToolContext) -> Arguments:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def cancelled() -> None:
        registry = asking.services.tools.changed(transforms=[waiting])
        task = asyncio.create_task(registry.execute(ToolCall("c2", name, GOOD[name]), bench.use))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled(), timeout_s=10)
    last = bench.lines()[-1]
    assert (last["tool"], last["verdict"], last["error_type"]) == (name, "cancelled", "cancelled")


def test_sql_that_is_cancelled_stops_in_the_server(
    bench: ToolBench, database_url: str, admin_url: str
) -> None:
    admin = as_admin(database_url, admin_url)

    async def cancelled() -> None:
        call = ToolCall("c1", "run_sql", {"sql": ENDLESS})
        task = asyncio.create_task(bench.registry.execute(call, bench.use))
        await until(lambda: runs_endless(admin))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled(), timeout_s=30)
    run(until(lambda: not runs_endless(admin)), timeout_s=20)
    assert [line["verdict"] for line in bench.lines()] == [
        "cancelled",
        "cancelled",
    ]  # the statement, then the call


def test_schemas_are_such_that_every_provider_takes_them(bench: ToolBench) -> None:
    tools = [tool.definition for tool in bench.registry.allowed(Actor("ann"))]
    sent = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
    assert violation({"messages": [{"role": "user", "content": "Hi"}], "tools": sent}) is None
    assert len(json.dumps(sent)) < 8_000  # they are sent with every call of the model


class Part(Arguments):
    """A part of an argument."""

    name: str = Field(description="Its name.", min_length=1, pattern="^[a-z]+$")
    size: Literal["small", "large"] | None = None


class Whole(Arguments):
    """Arguments of every kind."""

    parts: list[Part] = Field(max_length=3)
    first: Part | None = None
    number: int | str = Field(default=1, ge=0)


class Tree(Arguments):
    """Arguments that hold themselves."""

    branches: list["Tree"]


def test_the_schema_of_any_arguments_is_plain() -> None:
    part = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Its name."},
            "size": {"type": ["string", "null"], "enum": ["small", "large", None]},
        },
        "required": ["name", "size"],
        "additionalProperties": False,
    }
    schema = argument_schema(Whole)
    described = schema["properties"]["parts"]["items"]
    assert {key: value for key, value in described.items() if key != "description"} == part
    assert schema["properties"]["first"]["type"] == ["object", "null"]
    assert [one["type"] for one in schema["properties"]["number"]["anyOf"]] == ["integer", "string"]
    tool = {
        "type": "function",
        "function": {"name": "whole", "description": "", "parameters": schema},
    }
    assert violation({"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}) is None
    with pytest.raises(ValueError, match="nested"):
        argument_schema(Tree)


# ------------------------------------------------------------------------------
# any arguments at all

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
)
WORDS = st.sampled_from(
    [
        "c1",
        "shop_order",
        "status",
        "csv",
        "SELECT 1",
        "bar",
        "%",
        "'",
        "\x00",
        "\ud800",
        "订单",
        "month",
    ]
)


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_no_arguments_break_a_tool(asking: Asking, audit: Path, name: str) -> None:
    bench = ToolBench(asking, audit)
    bench.sql(PER_MONTH)
    fields = {field: st.none() | WORDS | LEAVES | JSON for field in GOOD[name]}

    @settings(
        max_examples=tries(10),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(JSON.filter(lambda value: isinstance(value, dict)) | st.fixed_dictionaries(fields))
    def holds(arguments: dict[str, Any]) -> None:
        result = bench.call(name, arguments)
        assert isinstance(result, ToolResult)
        assert result.error_type != "internal_error", arguments
        assert 0 < len(result.text) < MOST_CHARS

    holds()


# ------------------------------------------------------------------------------
# rights

GROUPS = "run_sql: analysts; chart: analysts, leads; save_memory:; export: everyone"
ACTORS = [(), ("analysts",), ("leads",), ("analysts", "leads"), ("everyone",), ("save_memory",)]


@pytest.fixture(scope="module")
def grouped(configured: Settings) -> Iterator[Asking]:
    with Asking(configured, tool_groups=GROUPS) as asking:
        yield asking


@pytest.mark.parametrize("groups", ACTORS)
def test_tools_are_for_the_groups_that_the_setting_names(
    grouped: Asking, audit: Path, groups: tuple[str, ...]
) -> None:
    closed = {"save_memory"} | ({"run_sql"} if "analysts" not in groups else set())
    closed |= {"chart"} if not {"analysts", "leads"} & set(groups) else set()
    bench = ToolBench(grouped, audit, Actor("ann", groups))
    refused = {
        name for name in TOOL_NAMES if bench.call(name, GOOD[name]).error_type == "unknown_tool"
    }
    assert refused == closed
    assert {tool.name for tool in bench.registry.allowed(bench.question.actor)} == set(
        TOOL_NAMES
    ) - closed


@pytest.mark.parametrize(
    "text", ["run_sql", "run_sql analysts", "run_sql: a b", "run_sql: a; run_sql: b", ": a", "a: ,"]
)
def test_a_setting_that_is_no_list_of_tools_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match="TOOL_GROUPS"):
        Settings.from_env({"TOOL_GROUPS": text})


def test_a_tool_that_there_is_not_is_named(configured: Settings) -> None:
    with pytest.raises(InvalidToolGroups, match="TOOL_GROUPS.*run_python.*There are: chart"):
        Asking(configured, tool_groups="run_python: analysts")


def test_groups_that_no_key_has_are_named_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    KeyFile(tmp_path / "api_keys.json").create("ann", groups=("leads",))
    _warn_of_groups(
        Settings(
            data_dir=str(tmp_path), tool_groups="run_sql: leads, analists; chart: everyone; export:"
        )
    )
    assert capsys.readouterr().err == "TOOL_GROUPS names groups that no API key has: analists.\n"
    _warn_of_groups(Settings(data_dir=str(tmp_path), tool_groups="run_sql: leads"))
    assert capsys.readouterr().err == ""


def test_tools_that_settings_switch_off_are_not_there_and_may_be_named(
    configured: Settings,
) -> None:
    groups = "save_memory: leads; search_values: leads"
    with Asking(configured, learning=False, schema_samples=False, tool_groups=groups) as asking:
        names = {tool.name for tool in asking.services.tools.allowed(Actor("ann", ("leads",)))}
        assert names == set(TOOL_NAMES) - {"save_memory", "search_values"}


def test_a_transform_rewrites_and_refuses_sql(bench: ToolBench) -> None:
    async def only_paid(tool: Tool[Any], arguments: Arguments, _context: ToolContext) -> Arguments:
        if not isinstance(arguments, RunSql):
            return arguments
        if "buyer" in arguments.sql:
            raise Forbidden(Text("不可以", "Buyers are not for you"))
        return arguments.model_copy(
            update={"sql": f"SELECT * FROM ({arguments.sql}) AS s WHERE status = 'paid'"}
        )

    ruled = bench.registry.changed(transforms=[only_paid])
    result = bench.call("run_sql", {"sql": PER_STATUS}, ruled)
    assert result.found is not None
    assert [row[0] for row in result.found.result.rows] == ["paid"]
    refused = bench.call("run_sql", {"sql": "SELECT * FROM buyer"}, ruled)
    assert (refused.error_type, refused.text) == ("forbidden", "forbidden: Buyers are not for you")
    assert [line["sql"] for line in bench.statements()] == [
        f"SELECT * FROM ({PER_STATUS}) AS s WHERE status = 'paid'"
    ]


def test_what_a_group_may_not_read_is_in_no_result(
    asking: Asking, audit: Path, database_url: str
) -> None:
    options = replace(SMALL, group_denied_objects={"guests": ("public.buyer.city", "public.wide")})
    datasources = Datasources({DEFAULT: Datasource(lambda: database_url, options)})
    bench = ToolBench(asking, audit, Actor("ann", ("guests",)))
    own = bench.registry.allowed(bench.question.actor)
    closed = ToolRegistry(
        own, lambda occasion: datasources.open(DEFAULT, occasion.actor, occasion), NoAudit()
    )
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_schema", {"words": "city of buyers, measurement number, Oslo"}),
        ("search_schema", {"words": "zyzzyva"}),
        ("describe_table", {"table": "buyer"}),
        ("describe_table", {"table": "wid"}),
        ("search_values", {"words": "Oslo"}),
        ("search_values", {"words": "oslo", "column": "citi"}),
        ("run_sql", {"sql": "SELECT citi FROM buyer"}),
        ("run_sql", {"sql": "SELECT wide_id FROM wid"}),
        ("search_assets", {"query": "city of buyers, measurement number, Oslo"}),
        ("get_table_lineage", {"table": "buyer"}),
        ("kg_quality_rules", {"table": "buyer"}),
        ("kg_join_hints", {"tables": ["buyer", "shop_order"]}),
        ("search_reference_sql", {"query": "buyers per city"}),
    ]
    for name, arguments in calls:
        told = bench.call(name, arguments, closed)
        assert not re.search("city|Oslo|measurement|wide(?!_id)", told.text + told.summary.zh), (
            name,
            told.text,
        )
    assert (
        "Oslo" in bench.call("search_values", {"words": "oslo"}).text
    )  # who is not in the group sees it
    datasources.close()


# ------------------------------------------------------------------------------
# audit


# How a statement of a user reaches the server: as a query, as a cursor, as the cursor of a block.
# Plans do otherwise.
RUN = re.compile(
    rb"BEGIN READ ONLY; SELECT \w+\.\* FROM|DECLARE citu NO SCROLL CURSOR"
    rb"|OPEN rows SCROLL FOR EXECUTE"
)


def test_every_statement_that_the_server_saw_has_a_line_with_its_call(
    configured: Settings, audit: Path, tmp_path: Path
) -> None:
    with (
        Wire(configured.database_url, tmp_path) as wire,
        Asking(configured, database_url=wire.url) as asking,
    ):
        bench = ToolBench(asking, audit)
        bench.call("search_schema", GOOD["search_schema"])
        wire.sent.clear()
        bench.sql(PER_STATUS)
        bench.call(
            "run_sql", {"sql": "SELECT 1 / (order_id - 1) FROM shop_order"}
        )  # fails while it runs
        bench.call("run_sql", {"sql": "SELECT nothing FROM shop_order"})  # is not run
        bench.call("search_values", {"words": "gizmo ab set"})
        for what in ("describe", "shares", "outliers"):
            bench.call("statistics", {"call_id": "c2", "what": what})
        bench.call("save_memory", SAVED)
        ran = [
            line
            for line in bench.statements()
            if line["verdict"] == "executed" or "SELECT 1 /" in line["sql"]
        ]
        assert len(RUN.findall(wire.sent)) == len(ran) > 8
        assert {(line["tool"], line["call_id"]) for line in ran} == {
            ("run_sql", "c2"), ("run_sql", "c3"), ("search_values", "c5"),
            ("statistics", "c6"), ("statistics", "c7"), ("statistics", "c8"),
        }  # fmt: skip
        assert {line["user_id"] for line in bench.lines()} == {"ann"}


# ------------------------------------------------------------------------------
# run_sql


def test_the_user_gets_all_rows_and_the_model_the_first(bench: ToolBench) -> None:
    result = bench.call(
        "run_sql", {"sql": "SELECT order_id, repeat('x', 300) AS long FROM shop_order"}
    )
    assert result.found is not None
    assert result.found.shown["query_result"]["row_count"] == 50
    assert result.found.shown["query_result"]["is_limited"] is True
    assert "more than 50 rows, of which 50 were kept" in result.text
    assert "Only the first" in result.text
    assert 'types: ["int4", "text"]' in result.text
    assert len(result.text) < 7_000
    many = ", ".join(
        f"{n} AS a_rather_long_name_of_a_column_that_says_little_{n}" for n in range(1000)
    )
    assert len(bench.call("run_sql", {"sql": f"SELECT {many}"}).text) < 20_000


def test_a_mistake_in_sql_is_told_with_its_place_and_near_names(bench: ToolBench) -> None:
    told = bench.call("run_sql", {"sql": "SELECT stauts FROM shop_order"}).text
    assert "stauts FROM shop_order" in told and "status" in told
    near = bench.call("run_sql", {"sql": "SELECT * FROM vaul"})
    assert "vault" not in near.text + near.summary.zh
    closed = bench.call("run_sql", {"sql": "SELECT marginn FROM shop_order"})
    assert "margin" not in closed.text.replace("marginn", "")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "SELECT order_id FROM shop_order WHERE status = 'payed'",
            'No row has ["payed"] in shop_order.status. Similar',
        ),
        ("SELECT count(*) FROM shop_order WHERE status IN ('zz', 'qq')", 'No row has ["zz"]'),
        ("SELECT * FROM buyer WHERE city = 'Pariss'", '"Paris"'),
        ("SELECT * FROM buyer WHERE email = 'quill1@example.com'", "0 rows"),
    ],
)
def test_an_empty_result_says_what_is_not_stored(bench: ToolBench, sql: str, told: str) -> None:
    text = bench.call("run_sql", {"sql": sql}).text
    assert told in text
    assert "@example.org" not in text


# ------------------------------------------------------------------------------
# schema and values


def test_tables_are_found_by_words_and_what_is_left_out_is_said(bench: ToolBench) -> None:
    found = bench.call("search_schema", {"words": "订单 status", "limit": 2}).text
    assert found.index("TABLE shop_order") < found.index("REFERENCES buyer")
    assert (
        "'paid'" in found
        and "margin" not in found
        and "vault" not in found
        and "Quill" not in found
    )
    wide = bench.call("search_schema", {"words": "measurement number"}).text
    assert "more columns are not shown" in wide
    nothing = bench.call("search_schema", {"words": "zyzzyva"}).text
    assert "No table has to do with these words" in nothing and "shop_order" in nothing


def test_a_table_is_described_whole(bench: ToolBench) -> None:
    buyer = bench.call("describe_table", {"table": "BUYER"}).text
    assert "Referred to by: shop_order (buyer_id)" in buyer
    assert "'Oslo'" in buyer and "about 30 rows" in buyer
    assert "Quill" not in buyer and "example.org" not in buyer
    order = bench.call("describe_table", {"table": "public.shop_order"}).text
    assert "margin" not in order and "订单" in order and "from 2025-01-01" in order
    wide = bench.call("describe_table", {"table": "wide"}).text
    assert all(f"measurement_number_{number} numeric(12,2)" in wide for number in (0, 150, 399))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"words": "gizmo ab set"}, 'shop_order.product "Gizmo AB set" (exact)'),
        ({"words": "PAID"}, 'shop_order.status "paid" (exact)'),
        ({"words": "cancelld", "table": "shop_order"}, 'shop_order.status "cancelled" (near)'),
        (
            {"words": "Gizmo CD set", "column": "product"},
            'shop_order.product "Gizmo CD set" (exact)',
        ),
        ({"words": "oslo", "table": "buyer", "column": "city"}, 'buyer.city "Oslo" (exact)'),
        ({"words": "zyzzyva", "table": "buyer"}, "No stored value matches there."),
    ],
)
def test_values_are_found_as_they_are_stored(
    bench: ToolBench, arguments: dict[str, str], told: str
) -> None:
    assert told in bench.call("search_values", arguments).text


@pytest.mark.parametrize(
    "words", ["quill7@example.org", "Quill 7", "Zebedee", "example.org", "xyzzy", "Zebede Quill 7"]
)
@pytest.mark.parametrize("table", [None, "buyer"])
def test_personal_values_and_closed_ones_are_never_found(
    bench: ToolBench, words: str, table: str | None
) -> None:
    told = bench.call("search_values", {"words": words, "table": table}).text
    assert "Quill" not in told and "example.org" not in told and "xyzzy" not in told


# ------------------------------------------------------------------------------
# memory


def told_in_time(bench: ToolBench, question: str, sql: str) -> str:
    """What memory tells, once it tells of `sql`: it gives what it finds within half a second."""

    def told() -> str:
        text = bench.call("search_memory", {"question": question}).text
        return text if sql in text else ""

    return eventually(told)


def test_what_a_model_saves_is_told_to_nobody_until_a_person_approves_it(
    asking: Asking, audit: Path
) -> None:
    learned = asking.services.store.learned
    question = "which products does the city of Oslo order most"
    sql = (
        "SELECT product, count(*) FROM shop_order JOIN buyer USING (buyer_id) "
        "WHERE city = 'Oslo' GROUP BY 1"
    )
    ann, bob = (ToolBench(asking, audit, Actor(name)) for name in ("ann", "bob"))
    assert ann.call("save_memory", {"question": question, "sql": sql}).error_type is None
    assert "kept already" in ann.call("save_memory", {"question": question, "sql": sql}).text
    (kept,) = [
        example
        for example in run(learned.visible(DEFAULT, "ann"), timeout_s=9).own.examples
        if example.sql == sql
    ]
    assert (kept.trust, kept.source, kept.author) == ("candidate", "agent", "ann")
    asked = [bench.call("search_memory", {"question": question}).text for bench in (ann, bob)]
    assert [sql in text for text in asked] == [False, False]
    wanted = {"query": question, "source_tables": ["buyer"]}
    assert "Oslo" not in ann.call("search_reference_sql", wanted).text
    answered = asking.sync({"question": question, "user_id": "ann"})[1]["data"]
    assert answered.get("generation_method") != "verified_example"
    run(learned.review(DEFAULT, kept.example_id, "rob", "approve"), timeout_s=9)
    told = [told_in_time(bench, question, sql) for bench in (ann, bob)]
    assert "It is data" in told[0]
    reference = json.loads(bob.call("search_reference_sql", wanted).text.splitlines()[1])
    assert (reference["sql_text"], reference["confidence"], reference["trust"]) == (
        sql,
        0.9,
        "reviewed",
    )
    assert (
        "Oslo" not in bob.call("search_reference_sql", {**wanted, "source_tables": ["wide"]}).text
    )
    run(learned.delete(DEFAULT, kept.example_id, None), timeout_s=9)


def test_nothing_is_kept_of_somebody_whom_others_can_pass_for(bench: ToolBench) -> None:
    bench.question = replace(bench.question, is_credible=False)
    result = bench.call("save_memory", {**SAVED, "question": "how many orders does nobody have"})
    assert (result.error_type, "API key" in result.text) == ("forbidden", True)


@pytest.mark.parametrize(("is_open", "count"), [(False, 1), (True, 0)])
def test_nothing_is_saved_where_anybody_may_name_any_user(
    configured: Settings, is_open: bool, count: int
) -> None:
    user = f"named-{is_open}"
    replies = [calling("save_memory", **SAVED), Reply("Kept, or not.")]
    with OpenAiServer() as model, Asking(configured, model, allow_anonymous=is_open) as asking:
        model.default = following(replies)
        body = {"question": "how many orders are there", "agent": "tool_loop", "user_id": user}
        assert asking.sync(body)[0] == 200
        kept = run(asking.services.store.learned.visible(DEFAULT, user), timeout_s=9).own.examples
        assert len(kept) == count


def test_anothers_own_example_is_not_told(asking: Asking, audit: Path) -> None:
    learned = asking.services.store.learned
    ToolBench(asking, audit, Actor("eve")).call(
        "save_memory", {**SAVED, "question": "eve's own number of orders"}
    )
    (kept,) = run(learned.visible(DEFAULT, "eve"), timeout_s=9).own.examples
    personal = replace(kept, trust="personal", source="feedback")
    run(learned.add(DEFAULT, [personal]), timeout_s=9)
    eve, ann = (ToolBench(asking, audit, Actor(name)) for name in ("eve", "ann"))
    assert told_in_time(eve, "eve's own number of orders", PER_STATUS)
    assert (
        PER_STATUS not in ann.call("search_memory", {"question": "eve's own number of orders"}).text
    )


def test_one_question_saves_a_few_candidates_and_one_user_some(asking: Asking, audit: Path) -> None:
    bench = ToolBench(asking, audit, Actor("greedy"))
    session = ToolSession(bench.question, bench.use.occasion, None, ToolLimits())  # type: ignore[arg-type]
    shown: list[str | ToolStep | StepResult] = []

    async def saving(count: int) -> list[str | None]:
        calls = [
            ToolCall(
                f"s{n}",
                "save_memory",
                {"question": f"how many orders of {n} are there", "sql": f"SELECT {n}"},
            )
            for n in range(count)
        ]
        return [
            (await session.call(call, bench.registry, shown.append, TOOL_NAMES)).error_type
            for call in calls
        ]

    assert run(saving(5), timeout_s=20) == [None, None, None, "limit_reached", "limit_reached"]
    texts = [
        bench.call(
            "save_memory", {"question": f"how many orders of {n} are there", "sql": f"SELECT {n}"}
        ).text
        for n in range(3, 52)
    ]
    assert texts[0].startswith("Kept") and texts[-1].startswith("Not kept")
    assert (
        len(run(asking.services.store.learned.visible(DEFAULT, "greedy"), timeout_s=9).own.examples)
        == 50
    )


# ------------------------------------------------------------------------------
# rows of earlier calls

PAIRS = (
    "SELECT order_id, amount, extract(day FROM ordered_on)::int AS day_of_month "
    "FROM shop_order LIMIT 20"
)


@pytest.mark.parametrize(
    ("sql", "arguments", "drawn"),
    [
        (PER_STATUS, {}, ("bar", "status", "orders")),
        (PER_STATUS, {"type": "pie"}, ("pie", "status", "orders")),
        (PER_STATUS, {"x": "STATUS"}, ("bar", "status", "orders")),
        (PER_MONTH, {}, ("line", "month", "total")),
        (PER_MONTH, {"type": "bar", "y": "total"}, ("bar", "month", "total")),
        (
            PAIRS,
            {"type": "scatter", "x": "amount", "y": "day_of_month"},
            ("scatter", "amount", "day_of_month"),
        ),
        (
            "SELECT count(*) AS orders FROM shop_order",
            {"type": "number"},
            ("number", None, "orders"),
        ),
    ],
)
def test_a_chart_is_as_wished(
    bench: ToolBench, sql: str, arguments: dict[str, str], drawn: tuple[str, str | None, str]
) -> None:
    call_id = bench.sql(sql)
    found = bench.call("chart", {"call_id": call_id, **arguments}).found
    assert found is not None
    chart = found.shown["chart"]
    assert (chart["type"], chart["x"], chart["y"]) == drawn
    assert found.shown["query_result"] == bench.found[call_id].shown["query_result"]


@pytest.mark.parametrize(
    ("sql", "arguments", "told"),
    [
        (PER_STATUS, {"type": "line"}, "bar (x=status, y=orders)"),
        (PER_MONTH, {"type": "pie"}, "line (x=month, y=total)"),
        (PER_STATUS, {"y": "status"}, "those that do: orders"),
        (PER_STATUS, {"x": "colour"}, "they have: status, orders"),
        (PER_STATUS, {"type": "scatter"}, "What fits: bar"),
        ("SELECT product FROM shop_order LIMIT 9", {}, "What fits: none"),
        ("SELECT order_id, amount FROM shop_order", {"type": "bar"}, "The rows were cut"),
        ("SELECT 1 AS a, 2 AS a", {"type": "number"}, "same name"),
    ],
)
def test_a_chart_that_does_not_fit_says_what_does(
    bench: ToolBench, sql: str, arguments: dict[str, str], told: str
) -> None:
    result = bench.call("chart", {"call_id": bench.sql(sql), **arguments})
    assert (result.error_type, result.found) == ("invalid_request", None)
    assert told in result.text


def test_statistics_are_about_all_rows_and_name_their_method(bench: ToolBench) -> None:
    call_id = bench.sql("SELECT order_id, amount FROM shop_order")  # 600 rows, of which 50 are kept
    told = bench.call(
        "statistics", {"call_id": call_id, "what": "describe", "measure": "amount"}
    ).text
    figures = [10 + n % 7 for n in range(1, 601)]
    assert '"rows": 600' in told or '"count": 600' in told, told
    assert f"{sum(figures) / 600:.2f}" in told and "[method: " in told
    change = bench.call("statistics", {"call_id": bench.sql(PER_MONTH), "what": "change"}).text
    assert "2025-10" in change and "[method: " in change
    none = bench.call("statistics", {"call_id": call_id, "what": "change"}).text
    assert "not told" in none


def test_a_forecast_says_what_it_needs(bench: ToolBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "is_installed", lambda: False)
    told = bench.call(
        "statistics", {"call_id": bench.sql(PER_MONTH), "what": "forecast", "horizon": 2}
    ).text
    assert "not told" in told and "requirements-analysis.txt" in told


def test_a_call_that_found_no_rows_is_answered_by_those_that_did(bench: ToolBench) -> None:
    assert "run a query first" in bench.call("chart", {"call_id": "c1"}).text
    call_id = bench.sql(PER_STATUS)
    assert (
        f"those that have: {call_id}."
        in bench.call("statistics", {"call_id": "c99", "what": "describe"}).text
    )


# ------------------------------------------------------------------------------
# files

FILES = [
    Reply(calls=[Called("run_sql", {"sql": PER_STATUS}, id="functions.run_sql:0")]),
    Reply(
        calls=[
            Called(
                "run_sql",
                {"sql": "SELECT order_id FROM shop_order ORDER BY 1"},
                id="functions.run_sql:1",
            )
        ]
    ),
    Reply(
        calls=[
            Called(
                "export",
                {"call_id": "functions.run_sql:0", "format": "csv"},
                id="functions.export:2",
            )
        ]
    ),
    Reply(
        calls=[
            Called(
                "export",
                {"call_id": "functions.run_sql:1", "format": "json"},
                id="functions.export:3",
            )
        ]
    ),
    Reply("Here are the files."),
]


def test_an_offered_file_holds_the_rows_of_its_call(configured: Settings) -> None:
    with OpenAiServer() as model, Asking(configured, model) as asking:
        model.default = following(FILES)
        data = asking.sync({"question": "Orders as files", "agent": "tool_loop", "user_id": "ann"})[
            1
        ]["data"]
        assert [(export["call_id"], export["format"]) for export in data["exports"]] == [
            ("functions.run_sql:0", "csv"),
            ("functions.run_sql:1", "json"),
        ]
        files = []
        for offer in data["exports"]:
            with asking.client.get(offer["url"]) as response:  # closing it frees its connection
                files.append(response.get_data())
        table, rows = files
        assert sorted(table.decode("utf-8-sig").splitlines()) == [
            "cancelled,200",
            "open,200",
            "paid,200",
            "status,number of shop orders",
        ]
        assert [row[0] for row in json.loads(rows)["rows"]] == list(range(1, 601))
        path = data["exports"][0]["url"]
        for other in (
            path.replace("ann", "bob"),
            path.replace("%3A0", "%3A9"),
            path.replace("%3A0", "%3A2"),
        ):
            assert asking.client.get(other).status_code == 404
