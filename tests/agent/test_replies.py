"""What replies of models mean: SQL is found however it is wrapped, and prose is never taken for
SQL.
"""

import json

import postgast
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thinking.llm.reasoning import VisibleText, without_reasoning
from agent.thinking.llm.replies import MAX_EXPLANATION_CHARS, REPHRASE, sql_from_reply
from common.errors import ForbiddenStatement
from common.values import Draft, NoSql, Sql

TABLES = ("shop", "daily_revenue", "list", "stores")
QUERY = "SELECT category, count(*) AS n\nFROM shop\nGROUP BY category"


def read(reply: str, *, is_cut: bool = False) -> Draft:
    return sql_from_reply(reply, "en", known_tables=TABLES, is_cut=is_cut)


WRAPPED = {
    "fenced": f"```sql\n{QUERY}\n```",
    "fenced as postgresql": f"```postgresql\n{QUERY};\n```",
    "fenced in capitals": f"```SQL\n{QUERY}\n```",
    "fenced without a language": f"```\n{QUERY}\n```",
    "fenced with tildes": f"~~~sql\n{QUERY}\n~~~",
    "fenced and indented": f"Here:\n\n  ```sql\n  {QUERY}\n  ```",
    "fenced with Windows line ends": f"```sql\r\n{QUERY};\r\n```\r\n",
    "never closed": f"```sql\n{QUERY}",
    "text around": (
        f"Sure! This counts shops:\n\n```sql\n{QUERY}\n```\n\nLet me know if you need more."
    ),
    "unfenced": QUERY,
    "unfenced with a semicolon": f"{QUERY};",
    "unfenced, two semicolons and a comment": f"{QUERY};; -- that is all",
    "unfenced with text before": f"Here is the query:\n{QUERY}",
    "unfenced with text after": f"{QUERY};\n\nThis counts the shops of each category.",
    "unfenced with a paragraph after": f"{QUERY}\n\nThis counts the shops of each category.",
    "unfenced with a Chinese paragraph after": f"查询如下：\n{QUERY}\n\n说明：统计每类店铺数量",
    "labelled": f"SQL: {QUERY}",
    "labelled as some tutorials do": f"SQLQuery: {QUERY}\nSQLResult: ",
    "JSON": json.dumps({"sql": QUERY, "explanation": "Select one"}),
    "JSON under another key": json.dumps({"query": f"{QUERY};"}),
    "JSON in a fence": f"```json\n{json.dumps({'sql': QUERY}, indent=1)}\n```",
    "reasoning before": (
        "<think>SELECT 1 FROM shop? No.\n```sql\nDROP TABLE shop\n```</think>\n```sql\n"
        f"{QUERY}\n```"
    ),
    "reasoning without its opening tag": f"First I thought of SELECT 2 ...</think>\n{QUERY}",
    "reasoning between other signs": f"◁think▷SELECT 3◁/think▷{QUERY}",
    "reasoning in capitals": f"<THINK>no</THINK>{QUERY}",
    "an empty block of reasoning": f"<think></think>\n\n{QUERY}",
    "another language first": f"```python\nprint('hello')\n```\n```sql\n{QUERY}\n```",
    "an explanation in a fence first": f"```\nI look at shop.\n```\n```sql\n{QUERY}\n```",
    "a temporary table first": (
        f"```sql\nCREATE TEMP TABLE x AS SELECT 1\n```\n```sql\n{QUERY}\n```"
    ),
    "a draft first": f"```sql\nSELECT 2\n```\nor better\n```sql\n{QUERY}\n```",
    "the final one first": (
        f"Final query:\n```sql\n{QUERY}\n```\nI began with\n```sql\nSELECT 2\n```"
    ),
    "broken after": f"```sql\n{QUERY}\n```\nand not\n```sql\nSELECT FROM FROM\n```",
    "alone on a line in one fence": f"```{QUERY.replace(chr(10), ' ')}```",
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_sql_is_found(kind: str) -> None:
    draft = read(WRAPPED[kind])
    assert isinstance(draft, Sql)
    text = draft.text.removesuffix("SQLResult:").replace("\r\n", "\n")
    assert postgast.fingerprint(text).hex == postgast.fingerprint(QUERY).hex


def test_lower_case_needs_a_table_that_exists() -> None:
    assert read("select count(*) from daily_revenue") == Sql("select count(*) from daily_revenue")
    assert isinstance(read("select something from nowhere"), NoSql)


def test_a_query_on_a_table_that_is_not_there_can_still_be_repaired() -> None:
    assert read("SELECT a FROM nowhere") == Sql("SELECT a FROM nowhere")


PROSE = [
    "With pleasure! Which shop do you mean?",
    "Select one from the list",
    "Select a table",
    "Select one",
    "Please\nselect carefully\nfrom the menu.",
    "Table users",
    "Table: shop",
    "Table stores",
    "Use `table stores` here.",
    '{"explanation": "SELECT 1 FROM list"}',
    "<p>Select one from the shop</p>",
    "Values matter",
    "Explain yourself",
    "Begin",
    "Show me more",
    "Set the date first",
    "Do not worry",
    "Call me",
    "Update: the data is not available.",
    "Delete old mail",
    "Drop me a line",
    "抱歉，我无法回答这个问题。",
    "SELECT is a keyword of SQL.",
    "I can't do that; ask your administrator.",
    "The word select, from your question, is unclear.",
    "```\nI can't answer this.\n```",
    "```sql\nSorry, there is no such data.\n```",
    "```sql\n-- there is no weather data\n```",
    "-- there is no weather data",
    "/* nothing */",
    "```python\nprint(1)\n```",
]


@pytest.mark.parametrize("reply", PROSE)
def test_prose_is_never_sql(reply: str) -> None:
    draft = read(reply)
    assert isinstance(draft, NoSql)
    assert draft.reason in {"llm_explanation", "unknown_generation_failure"}


def test_prose_is_shown_with_advice() -> None:
    draft = sql_from_reply("没有天气数据。", "zh")
    assert draft == NoSql("llm_explanation", f"没有天气数据。 {REPHRASE.zh}")


def test_long_prose_is_shortened() -> None:
    draft = read("I am sorry. " * 500)
    assert isinstance(draft, NoSql)
    assert len(draft.prompt) <= MAX_EXPLANATION_CHARS + len(REPHRASE.en) + 1


@pytest.mark.parametrize(
    "reply", ["", "  \n", "<think>hm", "```sql\n```", ";", "{}", '{"sql": ""}']
)
def test_nothing_is_an_unknown_failure(reply: str) -> None:
    draft = read(reply)
    assert isinstance(draft, NoSql)
    assert draft.prompt


# ------------------------------------------------------------------------------------------- what
# the guard must see


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; DROP TABLE shop",
        "COMMIT; DROP TABLE shop",
        "DELETE FROM shop",
        "DROP TABLE shop; -- SELECT 1",
        "SELECT * FROM shop; SELECT * FROM list",
        "EXPLAIN ANALYZE DELETE FROM shop",
        "COPY shop TO '/tmp/x'",
        "SET ROLE postgres",
        "WITH x AS (DELETE FROM shop RETURNING *) SELECT * FROM x",
    ],
)
@pytest.mark.parametrize("template", ["```sql\n{}\n```", "{}", "Here:\n```\n{};\n```"])
def test_statements_reach_the_guard_whole(sql: str, template: str) -> None:
    draft = read(template.format(sql))
    assert isinstance(draft, Sql)
    kinds = [statement.stmt.WhichOneof("node") for statement in postgast.parse(draft.text).stmts]
    assert kinds == [statement.stmt.WhichOneof("node") for statement in postgast.parse(sql).stmts]


@pytest.mark.parametrize(
    "broken",
    [
        "SELECT * FORM shop",
        "SELECT a FROM shop WHERE b = 'x",
        "SELECT a FROM shop\nWHERE AND c",
        "SELECT (a FROM shop",
    ],
)
def test_broken_sql_goes_to_the_repair_uncut(broken: str) -> None:
    """Cut down to what parses it might run without its condition."""
    assert read(f"```sql\n{broken}\n```") == Sql(broken)
    assert read(broken) == Sql(broken) or isinstance(read(broken), NoSql)


@pytest.mark.parametrize(
    "template", ["{}", "```sql\n{}\n```", "Here:\n\n{}", "<sql>{}</sql>", '{{"sql": "{}"}}']
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_a_part_of_a_broken_query_is_not_run(template: str, gap: str) -> None:
    broken = f"WITH x AS (SELECT a FORM shop){gap}SELECT count(*) FROM shop"
    draft = read(template.format(broken))
    assert draft == Sql(broken) or isinstance(draft, NoSql)


def test_a_condition_after_a_blank_line_is_not_lost() -> None:
    sql = "SELECT count(*) FROM shop\n\nWHERE category = 'x'"
    assert read(sql) == Sql(sql)
    broken = "SELECT count(*) FROM shop\n\nWHERE category = 'x' AND"
    assert read(broken) == Sql(broken)


@pytest.mark.parametrize("reply", [f"```sql\n{QUERY}", QUERY, f"text\n```sql\n{QUERY}\n-- and the"])
def test_a_cut_reply_is_not_run(reply: str) -> None:
    """`… FROM shop` may have been going to say `WHERE …`."""
    draft = read(reply, is_cut=True)
    assert isinstance(draft, NoSql)
    assert "cut off" in draft.prompt


def test_a_reply_cut_after_its_semicolon_is_whole() -> None:
    assert read(f"```sql\n{QUERY};\n", is_cut=True) == Sql(QUERY)


def test_a_draft_is_not_run_for_the_query_that_was_cut() -> None:
    cut = f"Draft:\n```sql\nSELECT 1\n```\nFinal:\n```sql\n{QUERY}"
    assert isinstance(read(cut, is_cut=True), NoSql)
    assert isinstance(
        read("Draft:\n```sql\nSELECT 1\n```\nFinal:\n```sql\nSELECT a FROM (", is_cut=True), NoSql
    )


def test_a_final_query_that_is_broken_goes_to_the_repair() -> None:
    broken = "SELECT category FORM shop"
    assert read(f"Draft:\n```sql\nSELECT 1\n```\nFinal query:\n```sql\n{broken}\n```") == Sql(
        broken
    )


def test_a_reply_cut_after_the_closing_fence_is_whole() -> None:
    assert read(f"```sql\n{QUERY}\n```\nThis que", is_cut=True) == Sql(QUERY)


# ------------------------------------------------------------------------------
# markers


@pytest.mark.parametrize(
    "template",
    ["NO_SQL: {}", "```\nNO_SQL: {}\n```", "```sql\n-- NO_SQL: {}\n```", "**NO_SQL: {}**"],
)
@pytest.mark.parametrize("reason", ["missing_database_info", "ambiguous_question"])
def test_markers_give_the_reason(template: str, reason: str) -> None:
    draft = read(template.format(f"{reason}: no weather here"))
    assert isinstance(draft, NoSql)
    assert draft.reason == reason
    assert draft.prompt.startswith("no weather here ")


def test_a_marker_outweighs_sql() -> None:
    assert isinstance(read(f"NO_SQL: ambiguous_question: which year?\n```sql\n{QUERY}\n```"), NoSql)


def test_reasons_have_advice_in_both_languages() -> None:
    zh, en = (sql_from_reply("NO_SQL: missing_database_info", lang) for lang in ("zh", "en"))
    assert isinstance(zh, NoSql)
    assert isinstance(en, NoSql)
    assert "数据库中没有相关的表或字段信息" in zh.prompt
    assert "no table or column" in en.prompt


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("NO_SQL:", "unknown_generation_failure"),
        ("NO_SQL", "unknown_generation_failure"),
        ("no_sql", "unknown_generation_failure"),
        ("```sql\nno_sql\n```", "unknown_generation_failure"),
        ("`No_SQL`.", "unknown_generation_failure"),
        ('{"sql": "NO_SQL"}', "unknown_generation_failure"),
        ("NO_SQL: 不行", "llm_explanation"),
        ("I have to answer no_sql here", "llm_explanation"),
        ("no_sql: missing_database_info: 没有天气", "missing_database_info"),
        ("NO_SQL - ambiguous_question - which year?", "ambiguous_question"),
        ("NO_SQL missing_database_info", "missing_database_info"),
        ('{"sql": "NO_SQL: ambiguous_question: which year?"}', "ambiguous_question"),
        ("Answer: **NO_SQL**: ambiguous_question: which year?", "ambiguous_question"),
    ],
)
def test_markers_of_no_known_reason(reply: str, reason: str) -> None:
    draft = read(reply)
    assert isinstance(draft, NoSql)
    assert draft.reason == reason
    assert "no_sql" not in draft.prompt.lower()


def test_a_name_is_no_marker() -> None:
    sql = "SELECT a AS\n  no_sql\nFROM shop"
    assert read(f"```sql\n{sql}\n```") == Sql(sql)


@pytest.mark.parametrize(
    ("reply", "operation"),
    [("NO_SQL: write_requested: delete", "DELETE"), ("NO_SQL: write_requested:", "WRITE")],
)
def test_a_requested_write_is_forbidden(reply: str, operation: str) -> None:
    with pytest.raises(ForbiddenStatement) as caught:
        read(reply)
    assert caught.value.operation == operation


# ------------------------------------------------------------------------------
# whatever comes

_PIECES: tuple[str, ...] = (
    "```sql\n",
    "```",
    "\n",
    "SELECT ",
    "FROM shop",
    " WHERE ",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "(",
    ")",
    "<think>",
)
_PIECES += ("</think>", "NO_SQL:", "{", "}", "说明", "With ", "DELETE ", "\0", "\\", "$$", "\ud800")
ANY_REPLY = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=8)), max_size=25).map(
    "".join
)


@given(ANY_REPLY, st.booleans())
def test_every_reply_has_a_meaning(reply: str, is_cut: bool) -> None:
    try:
        draft = read(reply, is_cut=is_cut)
    except ForbiddenStatement:
        return
    text = draft.text if isinstance(draft, Sql) else draft.prompt
    assert text
    assert text == text.strip()


@given(
    # Without what is read in more than one way: `&lt;` and `\<` are `<` where only that makes a
    # query.
    st.text(
        alphabet=st.characters(
            exclude_characters="`~\0\r&；\\", exclude_categories=["Cs", "Cf", "Zs"]
        ),
        max_size=60,
    )
)
def test_nothing_is_left_out_of_a_closed_fence(body: str) -> None:
    """Except the semicolon and the comments that end a single statement."""
    expected = f"SELECT 1 AS x, {body}".strip()
    draft = read(f"```sql\n{expected}\n```")
    if isinstance(draft, Sql):
        rest = expected.removeprefix(draft.text).lstrip()
        assert draft.text == expected or rest.startswith((";", "--", "/*"))


@pytest.mark.parametrize(
    "unit",
    ["(", "SELECT ", "NOT ", "1+", "UNION SELECT 1 ", "CASE WHEN ", "[", "a.", "```", "<think>"],
)
def test_monstrous_replies_are_survived(unit: str) -> None:
    read("SELECT " + unit * 30_000)
    read("SELECT " + unit * 2_000)
    read("```sql\nSELECT " + unit * 30_000 + "\n```")


# ------------------------------------------------------------------------------
# reasoning


def shown(pieces: list[str]) -> tuple[str, list[str]]:
    visible = VisibleText()
    given_out = [visible.feed(piece) for piece in pieces]
    return "".join([*given_out, visible.finish()]), given_out


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in zip(edges, edges[1:], strict=False)]


@given(
    before=st.text(max_size=10),
    hidden=st.text(alphabet="sECRET<>/think \n", max_size=20),
    after=st.text(max_size=10),
    tag=st.sampled_from(["think", "thinking", "THINK", "reasoning"]),
    places=st.lists(st.integers(0, 100), max_size=12),
)
def test_reasoning_stays_hidden_however_it_is_cut(
    before: str, hidden: str, after: str, tag: str, places: list[int]
) -> None:
    reply = f"{before}<{tag}>{hidden}</{tag}>{after}"
    whole, pieces = shown([reply])[0], shown(cut(reply, places))[0]
    assert pieces == whole
    assert whole == whole.strip()


@given(st.text(alphabet="ab <>/think\n", max_size=40), st.lists(st.integers(0, 100), max_size=12))
def test_text_without_reasoning_arrives_whole(text: str, places: list[int]) -> None:
    if without_reasoning(text) == text.strip():
        assert shown(cut(text, places))[0] == text.strip()


def test_only_what_may_be_a_tag_is_held_back() -> None:
    _, pieces = shown(["1 <", " 2 and 3 <th", "ird"])
    assert pieces == ["1", " < 2 and 3", " <third"]


def test_reasoning_that_never_ends_hides_the_rest() -> None:
    assert shown(["Hello <thi", "nk>secret", " more"])[0] == "Hello"
