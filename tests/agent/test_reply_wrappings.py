"""Queries survive whatever a model wraps them in: every statement of the fixtures in many layouts
of a reply.

Each statement is tried in a few wrappings, another few for the next; `CITU_ALL_WRAPPINGS=1` tries
them all.
"""

import html
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.thinking.llm.replies import sql_from_reply
from agent.thinking.llm.sql_text import in_code
from common.values import Sql
from tests.support.offline_questions import REFUSE, cases_of

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_PER_STATEMENT = 4
COMMENT = "-- Query: what was asked\n"

# Statements whose contents look like what replies are made of.
AWKWARD = [
    "SELECT '```sql\nSELECT 2\n```' AS fence, \"a`b\" FROM t",
    "SELECT 1 -- ``` not the end\nFROM shop",
    'SELECT /* ```\n``` */ name FROM shop WHERE note = $q$it\'s; <b>"{"sql": "SELECT 3"}"$q$',
    "SELECT '{\"sql\": \"SELECT 4\"}'::jsonb ->> 'sql' AS q",
    (
        "SELECT name\nFROM shop\nWHERE note = 'first line\n  second; line\n\nNote: third'\n\n"
        "ORDER BY name"
    ),
    (
        'SELECT "名称", count(*) AS 数量\nFROM 店铺\nWHERE "状态" <> \'停业；\' '
        "AND 面积 >= 100\nGROUP BY 1"
    ),
    (
        "WITH a AS (\n  SELECT x, y FROM t\n\n),\n\nb AS (SELECT x FROM a)\nSELECT *\nFROM b "
        "JOIN a USING (x)\n-- the end"
    ),
    "-- monthly figures\nSELECT date_trunc('month', d), sum(v) FROM f GROUP BY 1",
    "/* final */ SELECT a < b, c > d, e && f FROM t WHERE s LIKE '%</sql>%' OR s = '</code>'",
    "SELECT E'it\\'s', U&'\\0041', 'a''b', '\\n' FROM t",
    (
        "select o.id, sum(i.qty) from orders o join items i on i.order_id = o.id group by o.id "
        "order by 2 desc limit 5"
    ),
    "(SELECT a FROM t ORDER BY b LIMIT 1) UNION ALL (SELECT c FROM u)",
    "SELECT a[1:2], ARRAY[1, 2], ('{1,2}'::int[])[1], j #>> '{a,b}', x ? 'k' FROM t",
    "SELECT 'NO_SQL: ambiguous_question' AS no_sql FROM t",
    (
        "SELECT CASE WHEN a THEN 'x' ELSE 'y' END FROM t WHERE b IN (\n1,\n2) AND c = '**bold**' "
        "AND d ~ '^> \\[x\\]'"
    ),
    "SELECT 1 AS \"final query\", '<think' AS t",
]


def _statements() -> list[str]:
    found = list(AWKWARD)
    for path in [*_FIXTURES.glob("questions_*.sql"), *_FIXTURES.glob("offline/*_questions.sql")]:
        lines = (
            line
            for case in cases_of(path)
            if case.gold != REFUSE
            for line in case.gold.splitlines()
        )
        found += [line for line in lines if line.strip()]
    blocks = (_FIXTURES / "guard" / "allowed.sql").read_text(encoding="utf-8").split("\n\n")
    found += [sql for block in blocks[1:] if (sql := _without_title(block))]
    return list(dict.fromkeys(found))


def _without_title(block: str) -> str:
    return block.strip().partition("\n")[2].strip()


def _expected(sql: str) -> str:
    """What is to be left of `sql`: the statement without its semicolon and what follows."""
    draft = (
        sql_from_reply(f"<answer><![CDATA[{sql}]]></answer>", "en") if "]]>" not in sql else None
    )
    return draft.text if isinstance(draft, Sql) else sql


def _lines(sql: str, prefix: str) -> str:
    return "\n".join(f"{prefix}{line}" for line in sql.split("\n"))


def _tool_call(sql: str) -> str:
    arguments = json.dumps({"query": sql, "limit": 10})
    return json.dumps({"tool_calls": [{"function": {"name": "run_sql", "arguments": arguments}}]})


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "fence": lambda q: f"```sql\n{q}\n```",
    "fence, postgresql": lambda q: f"```postgresql\n{q};\n```",
    "fence, no language": lambda q: f"```\n{q}\n```",
    "fence with attributes": lambda q: f"``` {{.sql}}\n{q}\n```",
    "fence of four": lambda q: f"````sql\n{q}\n````",
    "fence of tildes": lambda q: f"~~~sql\n{q}\n~~~",
    "fence with a comment": lambda q: f"```sql\n{COMMENT}{q}\n```",
    "fence on one line": lambda q: f"```sql {q} ```",
    "fence closed on the last line": lambda q: f"```sql\n{q}```",
    "fence opened on the first line": lambda q: f"```sql {q}\n```",
    "fence never closed": lambda q: f"Here it is:\n```sql\n{q}",
    "fence after a label on its line": lambda q: f"Query: ```sql\n{q}\n```",
    "fence, indented": lambda q: f"Result:\n\n  ```sql\n{_lines(q, '  ')}\n  ```\n",
    "fence in a list": lambda q: (
        f"1. Look at it\n2. Run:\n   ```sql\n{_lines(q, '   ')}\n   ```\n3. Done"
    ),
    "fence in a nested list": lambda q: f"- a\n  - b:\n    ```sql\n{_lines(q, '    ')}\n    ```\n",
    "fence in a quotation": lambda q: f"> Here:\n> ```sql\n{_lines(q, '> ')}\n> ```",
    "fence with prose around": lambda q: (
        f"Sure, here's the SQL:\n\n```sql\n{q}\n```\n\nIt doesn't change `data`. Ask!"
    ),
    "fence with Chinese prose": lambda q: (
        f"好的，查询如下：\n\n```sql\n{q};\n```\n\n**说明**：按要求统计。"
    ),
    "fence, Windows line ends": lambda q: f"Here:\n```sql\n{q}\n```\nDone.\n".replace("\n", "\r\n"),
    "fence after reasoning": lambda q: (
        f"<think>Maybe ```sql\nSELECT 0\n```?</think>\n```sql\n{q}\n```"
    ),
    "fence after drafts": lambda q: (
        "Draft:\n```sql\nSELECT 0\n```\nSecond:\n```sql\nSELECT 1 FROM x\n```\nFinal query:\n"
        f"```sql\n{q}\n```"
    ),
    "fence before a draft": lambda q: (
        f"最终查询：\n```sql\n{q}\n```\n起初写的是：\n```sql\nSELECT 0\n```"
    ),
    "fence after another language": lambda q: (
        f"```python\nrun('SELECT 0')\n```\n\n```sql\n{q}\n```"
    ),
    "fence in JSON": lambda q: json.dumps({"answer": f"Here:\n```sql\n{q}\n```\nDone."}),
    "fence in a tag": lambda q: f"<answer>\n```sql\n{q}\n```\n</answer>",
    "bold label": lambda q: f"**SQL:** {q}",
    "bold label, outer colon": lambda q: f"**SQL**: {q};",
    "label": lambda q: f"SQL: {q}",
    "Chinese label": lambda q: f"查询语句：{q}",
    "heading": lambda q: f"### SQL\n\n{q}\n\n### Explanation\n\nIt counts things.",
    "tag": lambda q: f"<sql>{q}</sql>",
    "tag on lines of its own": lambda q: f"I think so.\n<SQL>\n{q}\n</SQL>\nThat's it.",
    "answer tag": lambda q: f"<answer>{q};</answer>",
    "nested tags": lambda q: (
        f"<response><reasoning_summary>a < b</reasoning_summary><query>{q}</query></response>"
    ),
    "tag with CDATA": lambda q: f"<query><![CDATA[{q}]]></query>",
    "HTML": lambda q: f'<pre><code class="language-sql">{html.escape(q)}</code></pre>',
    "HTML, not escaped": lambda q: f"<p>Here:</p><pre><code>{q}</code></pre>",
    "HTML, escaped in a fence": lambda q: f"```sql\n{html.escape(q, quote=False)}\n```",
    "parameter of a tool": lambda q: (
        f'<invoke name="run"><parameter name="sql">{q}</parameter></invoke>'
    ),
    "JSON": lambda q: json.dumps({"sql": q, "explanation": "Select one"}),
    "JSON, not ASCII": lambda q: json.dumps(
        {"SQL": f"{q};", "confidence": 0.9}, ensure_ascii=False, indent=2
    ),
    "JSON after prose": lambda q: (
        f"Here's the result [1]: {json.dumps({'query': q})} - enjoy {{it}}."
    ),
    "JSON in a list": lambda q: json.dumps([{"statement": q}]),
    "JSON nested": lambda q: json.dumps(
        {"result": {"steps": ["look", "join"], "output": {"sql_query": q}}}
    ),
    "JSON in a fence": lambda q: f"```json\n{json.dumps({'sql': q}, indent=1)}\n```",
    "JSON with an answer": lambda q: json.dumps({"answer": q}),
    "JSON of a tool call": _tool_call,
    "JSON with a trailing comma": lambda q: f'{{"sql": {json.dumps(q)},}}',
    "JSON with line breaks in its string": lambda q: (
        '{"sql": "' + json.dumps(q)[1:-1].replace("\\n", "\n") + '"}'
    ),
    "bare": lambda q: q,
    "bare, full-width semicolon": lambda q: f"{q}；",
    "bare after a sentence": lambda q: f"Here is the SQL:\n{q}",
    "bare after a byte order mark": lambda q: f"\ufeff{q}",
    "bare among invisible characters": lambda q: f"\u200b{q}\u200b\n",
    "bare with prose after": lambda q: f"{q};\n\nThis query doesn't count what isn't there.",
    "bare with an explanation": lambda q: f"{q}\n\nExplanation: it's simple; trust me.",
    "bare with a numbered explanation": lambda q: (
        f"{q}\n\n1. It reads the table.\n2. It isn't hard; really."
    ),
    "bare with a Chinese explanation": lambda q: (
        f"{q}\n\n说明：按要求统计。\n1. 读取数据；\n2. 汇总。"
    ),
    "bare, explanation on its line": lambda q: f"{q}; This returns what was asked.",
    "inline code": lambda q: f"Use `{q}` for that.",
    "inline code, doubled": lambda q: f"`` {q} ``",
    "in quotes": lambda q: f'"{q}"',
    "in Chinese quotes": lambda q: f"查询：“{q}”",
    "escaped line breaks": lambda q: f"```sql\n{json.dumps(q, ensure_ascii=False)[1:-1]}\n```",
    "a numbered step": lambda q: f"1. {q}",
}
# What a wrapping can't hold, because it would end in the statement's own text.
UNFIT: dict[str, Callable[[str], bool]] = {
    "tag with CDATA": lambda q: "]]>" in q,
    "escaped line breaks": lambda q: (
        "\\" in q or '"' in q or "\n" in q and "--" in q
    ),  # it can't be told whose the backslashes are
    # What is escaped in its literals alone may be meant so.
    "HTML, escaped in a fence": lambda q: (
        "&" in q or in_code(q, lambda code: code.replace("<", "").replace(">", "")) == q
    ),
    "HTML, not escaped": lambda q: "&" in q,
}
# These add something on the statement's last line, which a comment there would swallow.
_ON_THE_LAST_LINE = {
    name
    for name, wrap in WRAPPINGS.items()
    if wrap("…").partition("…")[2].lstrip(" ")[:1] in set(';；`"”')
}


def _fits(name: str, sql: str) -> bool:
    if "--" in sql.rpartition("\n")[2] and name in _ON_THE_LAST_LINE:
        return False
    return name not in UNFIT or not UNFIT[name](sql)


STATEMENTS = _statements()


def _lost(name: str, sql: str) -> bool:
    draft = sql_from_reply(WRAPPINGS[name](sql.rstrip(";")), "en")
    return not (
        isinstance(draft, Sql) and draft.text.removeprefix(COMMENT) == _expected(sql.rstrip(";"))
    )


@pytest.mark.slow
def test_queries_survive_their_wrapping() -> None:
    names, step = (
        list(WRAPPINGS),
        1 if os.environ.get("CITU_ALL_WRAPPINGS") else len(WRAPPINGS) // _PER_STATEMENT,
    )
    pairs = [
        (name, sql)
        for number, sql in enumerate(STATEMENTS)
        for name in names[number % step :: step]
        if _fits(name, sql)
    ]
    lost = [pair for pair in pairs if _lost(*pair)]
    assert len(lost) <= len(pairs) // 500, lost[:20]


@pytest.mark.parametrize("name", WRAPPINGS)
def test_awkward_queries_survive_every_wrapping(name: str) -> None:
    lost = [sql for sql in AWKWARD if _fits(name, sql) and _lost(name, sql)]
    assert len(lost) <= 1, lost
