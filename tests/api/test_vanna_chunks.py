"""Any events become chunks that Vanna's clients can read, in which nothing of a model or a database
is HTML.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.vanna.chunks import ChunkEnvelope, Translation, error_chunks
from common.envelope import to_bytes
from common.errors import TooManyStreams
from common.text import Lang, Text
from tests.support.vanna_client import VannaPage, as_html, read
from tests.support.vanna_events import IDS, MOMENT, RUN, completed, progress, result, token, tool

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "'><script>alert(1)</script>",
    "&lt;b&gt;",
    "a\nb",
    "\\",
    "`${x}`",
    "__proto__",
    "constructor",
    "",
    "\u202eabc",
]
UNSAFE = set("<>&\"'`\\\n\r\0")


def translated(
    events: Iterable[Mapping[str, Any]], *, lang: Lang = "en", **more: Any
) -> list[dict[str, Any]]:
    """The chunks as a client reads them."""
    translation = Translation(
        ChunkEnvelope("conv_1", "r-1", RUN), lang, "why?", RUN, MOMENT, **more
    )
    made = [chunk for event in events for chunk in translation.chunks_of(event)]
    return [read(to_bytes(chunk).decode()) for chunk in made]


# ------------------------------------------------------------------------------
# any events

texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))
numbers = st.one_of(
    st.integers(), st.decimals(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
cells = st.one_of(
    texts, numbers, st.lists(texts, max_size=2), st.dictionaries(texts, numbers, max_size=2)
)
nodes = st.sampled_from(["think", "execute_tools", "<b>"])
charts = st.sampled_from(["number", "line", "bar", "pie", "scatter", "map"])


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    columns = draw(st.lists(texts, min_size=1, max_size=3))
    width: dict[str, Any] = {"min_size": len(columns), "max_size": len(columns)}
    rows = draw(st.lists(st.lists(cells, **width), max_size=3))
    labels, units = draw(st.lists(texts, **width)), draw(st.lists(st.none() | texts, **width))
    names = st.sampled_from([*columns, "none", None])
    spec = {
        "type": draw(charts),
        "x": draw(names),
        "y": draw(names),
        "series": draw(names),
        "title": draw(texts),
    }
    found = result(columns, rows, labels=labels, units=units, is_limited=draw(st.booleans()))
    return {"sql": draw(texts), "query_result": found, "chart": draw(st.none() | st.just(spec))}


steps = st.one_of(
    st.builds(progress, nodes, st.sampled_from(["running", "done", "failed"])),
    st.builds(token, texts),
    st.builds(
        tool,
        st.sampled_from(["call_1", "call_2", "<i>"]),
        st.sampled_from(["running", "done", "failed"]),
        display_name=texts,
        arguments=st.dictionaries(texts, cells, max_size=3),
        summary=st.none() | texts,
    ),
    results().map(lambda found: {"type": "result", "call_id": "call_1", **IDS, **found}),
    st.just({"type": "novelty", **IDS}),
)
offers = st.fixed_dictionaries(
    {},
    optional={
        key: st.lists(texts.filter(str.strip), max_size=3)
        for key in ("choices", "rewrites", "follow_ups")
    },
)
ends = st.one_of(
    st.builds(
        lambda found, offered, said, warnings: completed(
            **found, **offered, response=said, warnings=warnings
        ),
        results() | st.just({}),
        offers,
        texts,
        st.lists(texts, max_size=2),
    ),
    st.builds(
        lambda said, again: {
            "type": "error",
            "error": said,
            "error_type": "x",
            "retryable": again,
            **IDS,
        },
        texts,
        st.booleans(),
    ),
    st.builds(
        lambda said, choices, schema: (
            {"type": "question", "interrupt_id": "i-1", "prompt": said, **IDS}
            | ({"choices": choices} if choices else {})
            | ({"schema": schema} if schema else {})
        ),
        texts,
        st.lists(texts, max_size=3),
        st.sampled_from([None, {"type": "boolean"}, {"type": "integer"}]),
    ),
)
runs = st.builds(lambda events, end: [*events, end], st.lists(steps, max_size=12), ends)


@given(runs, st.sampled_from(["zh", "en"]))
def test_any_run_is_shown_and_nothing_of_it_is_html(
    events: list[dict[str, Any]], lang: Lang
) -> None:
    page = VannaPage()
    for chunk in translated(events, lang=lang):
        page.show(chunk)
        for text in as_html(chunk):
            assert not UNSAFE & set(text), chunk["rich"]
        assert (chunk["conversation_id"], chunk["request_id"], chunk["run_id"]) == (
            "conv_1",
            "r-1",
            RUN,
        )
    assert page.is_ready
    names = [part["id"] for part in page.parts]
    assert len(names) == len(set(names)), "no part is shown twice"


@given(runs, st.data())
def test_a_client_that_was_cut_off_ends_with_the_page_of_one_that_was_not(
    events: list[dict[str, Any]], data: st.DataObject
) -> None:
    whole = translated(events)
    seen = data.draw(st.integers(0, len(whole)), "chunks that came before the cut")
    page = VannaPage([*whole[:seen], *translated(events, is_repeated=True)])
    undisturbed = VannaPage(whole)
    assert page.parts == undisturbed.parts
    assert (page.status, page.input) == (undisturbed.status, undisturbed.input)
    assert page.is_ready
    known = [task["id"] for task in page.tasks]
    assert page.tasks == [task for task in undisturbed.tasks if task["id"] in known]


@given(results())
def test_a_table_shows_every_value(found: dict[str, Any]) -> None:
    (table,) = VannaPage(translated([completed(**found)])).all("dataframe")
    given_rows = found["query_result"]["rows"]
    assert (table["row_count"], table["column_count"]) == (
        len(given_rows),
        len(found["query_result"]["columns"]),
    )
    for row, values in zip(table["data"], given_rows, strict=True):
        shown = [row[title] for title in table["columns"]]
        for cell, value in zip(shown, values, strict=True):
            if isinstance(value, bool | str) or value is None:
                assert cell == (
                    value
                    if not isinstance(value, str)
                    else value.encode("utf-8", "replace").decode()
                )
            elif isinstance(value, int | Decimal):
                assert Decimal(str(cell)) == value, "no digit is lost"
            else:
                assert json.loads(cell) is not None


# ------------------------------------------------------------------------------
# a run


def test_steps_move_the_status_bar_and_the_list_of_tasks() -> None:
    page = VannaPage(translated([progress("think", "running")]))
    assert (page.status["status"], page.status["message"]) == ("working", "Think")
    assert [(task["title"], task["status"]) for task in page.tasks] == [("Think", "in_progress")]
    loop = [progress("think", status) for status in ("running", "done", "running", "failed")]
    page = VannaPage(translated([*loop, completed()]))
    assert [(task["status"], task["detail"]) for task in page.tasks] == [
        ("completed", "done think"),
        ("error", "failed think"),
    ]
    assert (page.status["status"], page.status["message"]) == ("idle", "")


def test_a_text_grows_in_its_place_and_ends_as_the_answer() -> None:
    chunks = translated([token("Hel"), token("lo"), token(" <b>"), completed(response="Hello!")])
    texts = [chunk["rich"] for chunk in chunks if chunk["rich"]["type"] == "text"]
    assert [(text["lifecycle"], text["data"]["content"]) for text in texts] == [
        ("create", "Hel"),
        ("replace", "Hello"),
        ("replace", "Hello <b>"),
        ("replace", "Hello!"),
    ]
    assert len({text["id"] for text in texts}) == 1


def test_a_text_that_is_written_already_is_not_sent_again() -> None:
    chunks = translated([token("Hello"), completed(response="Hello")])
    assert [chunk["rich"]["type"] for chunk in chunks].count("text") == 1


def test_a_long_text_does_not_cost_the_square_of_its_length() -> None:
    pieces = ["word "] * 5000
    chunks = translated([*map(token, pieces), completed(response="".join(pieces))])
    sent = [
        len(chunk["rich"]["data"]["content"]) for chunk in chunks if chunk["rich"]["type"] == "text"
    ]
    assert sent[-1] == 25_000
    assert sum(sent) < 20 * 25_000


def test_what_is_said_between_tools_stays_and_the_answer_comes_last() -> None:
    events = [
        token("I look it up."),
        tool("call_1", "running"),
        tool("call_1", "done", summary="1 row", ms=3),
        {
            "type": "result",
            "call_id": "call_1",
            "sql": "SELECT 1",
            "query_result": result(["n"], [[1]]),
            **IDS,
        },
        token("It is "),
        token("one."),
        completed(response="It is one.", sql="SELECT 1", query_result=result(["n"], [[1]])),
    ]
    page = VannaPage(translated(events))
    assert [part["type"] for part in page.parts] == [
        *("text", "status_card", "text", "dataframe", "text", "button_group")
    ]
    assert page.texts == ["I look it up.", "It is one."]
    assert page.sql == ["SELECT 1"], "the table of the last query is not shown twice"
    (card,) = page.all("status_card")
    assert (card["title"], card["status"], card["description"]) == ("Run SQL", "completed", "1 row")
    assert card["metadata"] == {"sql": "SELECT 1"}
    assert [(task["title"], task["status"]) for task in page.tasks] == [("Run SQL", "completed")]


def test_warnings_and_offers_come_after_the_rows() -> None:
    body = {
        "sql": "SELECT 1",
        "query_result": result(["n"], [[1]]),
        "warnings": ["said above", "new"],
    }
    page = VannaPage(
        translated([completed(response="said above. One.", follow_ups=["by month"], **body)])
    )
    assert page.texts == ["said above. One.", "⚠️ new"]
    assert page.buttons == {
        "by month": "by month",
        "👍 Good answer": f"/feedback good {RUN}",
        "👎 Wrong answer": f"/feedback bad {RUN}",
    }


def test_talk_is_not_rated() -> None:
    assert VannaPage(translated([completed(response="Hello")])).buttons == {}


@pytest.mark.parametrize("is_retryable", [True, False])
def test_an_error_is_seen_in_the_bar_and_in_the_conversation(is_retryable: bool) -> None:
    error = {
        "type": "error",
        "error": "No <db>.",
        "error_type": "database_unavailable",
        "retryable": is_retryable,
    }
    chunks = translated([progress("think", "running"), token("So far"), {**error, **IDS}])
    page = VannaPage(chunks)
    assert page.texts == ["So far", "❌ No <db>."]
    assert (page.status["status"], page.status["detail"]) == ("error", "No <db>.")
    assert page.buttons == ({"Try again": "why?"} if is_retryable else {})
    assert [task["status"] for task in page.tasks] == ["error"]
    (told,) = [chunk["error"] for chunk in chunks if "error" in chunk]
    assert told == {
        "error_type": "database_unavailable",
        "error": "No <db>.",
        "retryable": is_retryable,
    }


def test_an_error_outside_of_runs_has_the_same_shape() -> None:
    error = TooManyStreams(Text("满", "Full"), retry_after_s=2)
    chunks = [
        read(to_bytes(chunk).decode())
        for chunk in error_chunks(error, ChunkEnvelope("c", "r"), "req_1", "en")
    ]
    page = VannaPage(chunks)
    assert (page.texts, page.status["status"]) == (["❌ Full"], "error")
    assert chunks[0]["error"]["retry_after_s"] == 2


# ------------------------------------------------------------------------------
# tables and charts


def test_columns_of_one_name_stay_apart_and_hostile_names_read_well() -> None:
    found = result(["a", "a", "<b>x</b>", ""], [[1, 2, 3, 4]], units=["€", None, None, None])
    (table,) = VannaPage(translated([completed(query_result=found)])).all("dataframe")
    assert table["columns"] == ["a (€)", "a", "＜b＞x＜/b＞", "#4"]
    assert list(table["data"][0].values()) == [1, 2, 3, 4]
    same = result(["a", "a", "a (2)"], [[1, 2, 3]])
    (table,) = VannaPage(translated([completed(query_result=same)])).all("dataframe")
    assert table["columns"] == ["a", "a (2)", "a (2) (2)"]


def test_a_number_that_javascript_can_not_hold_is_text() -> None:
    values = [
        2**53,
        2**53 + 1,
        Decimal("1.10"),
        Decimal("0.1234567890123456789"),
        Decimal("1E+30"),
        True,
        None,
    ]
    (table,) = VannaPage(
        translated([completed(query_result=result(["n"], [[value] for value in values]))])
    ).all("dataframe")
    shown = [row["n"] for row in table["data"]]
    assert shown == [
        2**53,
        "9007199254740993",
        1.1,
        "0.1234567890123456789",
        "1" + "0" * 30,
        True,
        None,
    ]


SALES = result(
    ["month", "shop", "total"],
    [
        ["2026-01-01", "<a href=//x>A</a>", 1],
        ["2026-01-01", "B", 2],
        ["2026-02-01", "B", Decimal("3.5")],
    ],
    labels=["month", "shop", "total sales"],
    units=[None, None, "€"],
)


def charted(rows: dict[str, Any] = SALES, **spec: Any) -> dict[str, Any] | None:
    """Traces and layout of a chart of the rows."""
    full = {"x": None, "y": "total", "series": None, "title": "Sales <b>", "unit": "€", **spec}
    found = VannaPage(translated([completed(query_result=rows, chart=full)])).all("chart")
    return found[0] if found else None


def test_a_chart_over_time_has_a_line_for_each_series() -> None:
    drawn = charted(type="line", x="month", series="shop")
    assert drawn is not None
    assert [
        (one["type"], one["mode"], one["name"], one["x"], one["y"]) for one in drawn["data"]
    ] == [
        ("scatter", "lines+markers", "＜a href=//x＞A＜/a＞", ["2026-01-01"], [1.0]),
        ("scatter", "lines+markers", "B", ["2026-01-01", "2026-02-01"], [2.0, 3.5]),
    ]
    layout = drawn["layout"]
    assert (layout["title"]["text"], layout["xaxis"]["type"], layout["showlegend"]) == (
        "Sales ＜b＞",
        "date",
        True,
    )
    assert layout["yaxis"]["title"]["text"] == "total sales (€)"


@pytest.mark.parametrize(
    ("months", "scale"),
    [(["2026-01", "2026-02"], "category"), (["2026-01-01", "2026-02-01"], "date")],
)
def test_lines_go_forward_in_time_whatever_the_order_of_rows(months: list[str], scale: str) -> None:
    first, second = months
    rows: list[list[Any]] = [
        [second, "A", 1],
        [second, "B", 2],
        [first, "A", None],
        [first, "B", 4],
    ]
    drawn = charted(result(["month", "shop", "total"], rows), type="line", x="month", series="shop")
    assert drawn is not None
    assert [one["x"] for one in drawn["data"]] == [months, months]
    axis = drawn["layout"]["xaxis"]
    assert axis["type"] == scale
    assert scale == "date" or axis["categoryarray"] == months


def test_a_histogram_has_few_steps_and_bars_the_order_that_is_asked_for() -> None:
    rows: list[list[Any]] = [[11, "A", 1], [19, "B", 2], [None, "C", 5], [31, "A", 4]]
    steps = charted(result(["month", "shop", "total"], rows), type="bar", x="month", step=10)
    assert steps is not None
    assert steps["data"][0]["x"] == ["10–20", "20–30", "30–40"]
    assert steps["data"][0]["y"] == [3.0, 0.0, 4.0]
    rows = [["2", "A", 1], ["1", "A", 2]]
    ordered = charted(
        result(["month", "shop", "total"], rows), type="bar", x="month", order=["1", "2"]
    )
    assert ordered is not None
    assert (ordered["data"][0]["x"], ordered["data"][0]["y"]) == (["1", "2"], [2.0, 1.0])


def test_other_charts() -> None:
    bars, pie, number, dots = (
        charted(type=kind, x=x)
        for kind, x in (("bar", "shop"), ("pie", "shop"), ("number", None), ("scatter", "total"))
    )
    assert bars and pie and number and dots
    assert (bars["data"][0]["type"], bars["layout"]["xaxis"]["type"]) == ("bar", "category")
    assert (pie["data"][0]["labels"][1], pie["data"][0]["values"]) == ("B", [1.0, 2.0, 3.5])
    assert (number["data"][0]["type"], number["data"][0]["value"]) == ("indicator", 1.0)
    assert (dots["data"][0]["mode"], dots["data"][0]["x"]) == ("markers", [1.0, 2.0, 3.5])


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "map"},
        {"type": "bar", "x": "none"},
        {"type": "scatter"},
        {"type": "line", "y": "none"},
    ],
)
def test_a_chart_that_can_not_be_drawn_is_left_out(spec: dict[str, Any]) -> None:
    assert charted(**spec) is None


# ------------------------------------------------------------------------------
# what a run asks back


def test_choices_of_a_run_that_waits_are_buttons_that_answer_it() -> None:
    question = {"type": "question", "interrupt_id": "i-1", "prompt": "Which?", **IDS}
    page = VannaPage(translated([{**question, "choices": ["a b", "c"]}]))
    assert page.texts == ["Which?"]
    assert page.buttons == {"a b": f"/answer {RUN} i-1 a b", "c": f"/answer {RUN} i-1 c"}
    page = VannaPage(translated([{**question, "schema": {"type": "boolean"}}], lang="zh"))
    assert page.buttons == {"是": f"/answer {RUN} i-1 true", "否": f"/answer {RUN} i-1 false"}
    page = VannaPage(translated([{**question, "schema": {"type": "integer"}}]))
    assert (page.buttons, f"/answer {RUN} i-1 " in page.texts[0]) == ({}, True)
