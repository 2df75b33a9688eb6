"""What the rules can honestly say about an earlier result: what it was, and which question would tell more.

Reasons, meanings and the truth of the data can't be read from rows, and nothing is made up in their place.
"""

from common.inquiry import Inquiry
from common.text import Text
from common.values import QueryResult, Turn
from knowledge.written_values import is_number, written
from rules.answering.named_columns import columns_of
from rules.query.query import Query
from rules.schema.lexicon import lexicon_for
from rules.words.result_questions import Course, Doubt, course_asked, kind_of_doubt

_MOST_SHOWN = 6
_MOST_CHARACTERS = 300
_COMPUTED = Text("由这些数据计算得到：\n", "Computed from its rows:\n")
_ONLY_FIGURES = Text("数据看不出原因，但可以算出：\n", "The rows don't tell why, but this can be computed from them:\n")
_NO_COURSE = Text("这个结果算不出变化。", "No change could be computed from it. ")
_TIMES = ("date", "timestamp")
_LEAST_SERIES = 2  # rows
_CANNOT: dict[Doubt | Course, Text] = {
    "trend": _NO_COURSE,
    "change": _NO_COURSE,
    "outlook": Text("这个结果算不出预测。", "No forecast could be computed from it. "),
    "why": Text(
        "查询结果只说明数值是多少，看不出原因；没有接入大模型时我不会猜测。",
        "The rows say how much, not why, and without a language model I won't guess. ",
    ),
    "meaning": Text(
        "没有接入大模型时，我只能给出查询到的数字，不能替您解读。",
        "Without a language model I can state the figures, but not interpret them. ",
    ),
    "reliability": Text(
        "这些数字由上面的 SQL 直接从数据库中查出，没有经过估算；数据库里的记录本身是否准确、完整，我无法判断。",
        "The figures come straight from the database by the SQL above, nothing is estimated; "
        "whether what is recorded there is right and complete, I can't tell. ",
    ),
}


def asked_of_last(inquiry: Inquiry) -> tuple[Turn, Doubt | Course] | None:
    """The latest turn that has a result, and what the question asks about it; None if it asks something else.

    Of a series it may ask for its course, if it asks nothing beside.
    """
    turn = next((turn for turn in reversed(inquiry.history) if turn.sql is not None), None)
    asked = (kind_of_doubt(inquiry.question) or _course_of(turn, inquiry.question)) if turn is not None else None
    return (turn, asked) if turn is not None and asked is not None else None


def is_about_last(inquiry: Inquiry) -> bool:
    """Whether the question is about the last result."""
    return asked_of_last(inquiry) is not None


def _course_of(turn: Turn, question: str) -> Course | None:
    rows, periods = turn.row_count or 0, [period for period in turn.described.get("periods", ()) if period]
    is_timed = periods or any(kind.startswith(_TIMES) for kind in turn.described.get("column_types", ()))
    if rows < _LEAST_SERIES or not is_timed:
        return None
    return course_asked(question, periods[0] if periods else None, rows)


def result_pieces(inquiry: Inquiry, turn: Turn, query: Query | None, doubt: Doubt | Course) -> list[str]:
    """An answer about the result of `turn`, in pieces that concatenate to it; `query` is what gave it, if known."""
    return [_was(turn, query, inquiry), *_computed(inquiry, doubt)]


def _computed(inquiry: Inquiry, doubt: Doubt | Course) -> list[str]:
    """What was computed of the rows; without it, why the rules have nothing to say."""
    if not inquiry.findings:
        return [_CANNOT[doubt].to(inquiry.lang)]
    reason = _ONLY_FIGURES.to(inquiry.lang) if doubt == "why" else _COMPUTED.to(inquiry.lang)
    return [reason, "".join(f"- {finding}\n" for finding in inquiry.findings)]


def _was(turn: Turn, query: Query | None, inquiry: Inquiry) -> str:
    """What the result was, in its own rows; without any, in the words it was answered with."""
    if turn.row_count is None and not turn.rows:
        answer = turn.answer[:_MOST_CHARACTERS].strip()
        return Text(f"上一个结果是：“{answer}” ", f'The previous result was: "{answer}" ').to(inquiry.lang)
    count = turn.row_count if turn.row_count is not None else len(turn.rows)
    rows = "row" if count == 1 else "rows"
    found = Text(f"“{turn.question}”查到 {count:,} 条记录", f'"{turn.question}" gave {count:,} {rows}').to(inquiry.lang)
    first = _first_row(turn, query, inquiry)
    if first:
        what = Text("，第一条是：", "; the first is ") if count > 1 else Text("：", ": ")
        found += what.to(inquiry.lang) + first
    return found + Text("。", ". ").to(inquiry.lang)


def _first_row(turn: Turn, query: Query | None, inquiry: Inquiry) -> str:
    if not turn.rows or len(turn.rows[0]) != len(turn.columns):
        return ""
    types = tuple("numeric" if is_number(value) else "text" for value in turn.rows[0])
    whole = tuple(list(row) for row in turn.rows if len(row) == len(turn.columns))
    result = QueryResult(turn.columns, types, whole)
    columns = columns_of(query, turn.sql or "", result, lexicon_for(inquiry).schema, inquiry.lang)
    sign = Text(" ", ": ").to(inquiry.lang)
    pairs = list(zip(columns, turn.rows[0], strict=True))[:_MOST_SHOWN]
    fields = [f"{column.label}{sign}{written(value, column, inquiry.lang)}" for column, value in pairs]
    return Text("，", ", ").to(inquiry.lang).join(fields)[:_MOST_CHARACTERS]
