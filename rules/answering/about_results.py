"""Answer questions about an earlier result by rules: its rows, and figures computed from them.

Reasons, meanings and the truth of the data can't be read from rows, and nothing is made up in their
place.
"""

from common.inquiry import Inquiry
from common.text import Text
from common.values import QueryResult, Turn
from knowledge.results.written_values import is_number, value_text
from rules.answering.named_columns import columns_of
from rules.query.query import Query
from rules.schema.lexicon import lexicon_for
from rules.words.limits import with_bounded_questions
from rules.words.result_questions import Course, Doubt, course_asked, kind_of_doubt

_MOST_SHOWN = 6
_MOST_CHARACTERS = 300
_COMPUTED = Text("由这些数据计算得到：\n", "Computed from its rows:\n")
_ONLY_FIGURES = Text(
    "数据看不出原因，但可以算出：\n",
    "The rows don't tell why, but this can be computed from them:\n",
)
_NO_COURSE = Text("这个结果算不出变化。", "No change could be computed from it. ")
_FIRST_OF_SEVERAL = Text("，第一条是：", "; the first is ")
_ONLY_ONE = Text("：", ": ")
_TIMES = ("date", "timestamp")
_LEAST_SERIES = 2  # rows
_NO_MODEL = Text("现在没有接入大模型", "Without a language model")
_MODEL_DOWN = Text("大模型暂时不可用", "The language model is down, so")
_CANNOT: dict[Doubt | Course, Text] = {
    "trend": _NO_COURSE,
    "change": _NO_COURSE,
    "outlook": Text("这个结果算不出预测。", "No forecast could be computed from it. "),
    "why": Text(
        "查询结果只说明数值是多少，看不出原因；{}，我不会猜测。",
        "The rows say how much, not why. {} I won't guess. ",
    ),
    "meaning": Text(
        "{}，我只能给出查询到的数字，不能替您解读。",
        "{} I can state the figures, but not interpret them. ",
    ),
    "reliability": Text(
        (
            "这些数字由上面的 SQL 直接从数据库中查出，没有经过估算；"
            "数据库里的记录本身是否准确、完整，我无法判断。"
        ),
        "The figures come straight from the database by the SQL above, nothing is estimated; "
        "whether what is recorded there is right and complete, I can't tell. ",
    ),
}


def without_model(inquiry: Inquiry) -> str:
    """Say that there is no model, or that it is down, at the beginning of a sentence."""
    why = _MODEL_DOWN if inquiry.is_model_down else _NO_MODEL
    return why.to(inquiry.lang)


def asked_of_last(inquiry: Inquiry) -> tuple[Turn, Doubt | Course] | None:
    """Return the latest turn that has a result, and the kind of question about it.

    None if the question is about something else. Of a series it may ask for its course, if it asks
    nothing beside.
    """
    inquiry = with_bounded_questions(inquiry)
    turn = next((turn for turn in reversed(inquiry.history) if turn.sql is not None), None)
    if turn is None:
        return None

    asked = kind_of_doubt(inquiry.question) or _course_of(turn, inquiry.question)
    return (turn, asked) if asked is not None else None


def is_about_last(inquiry: Inquiry) -> bool:
    """Tell whether the question is about the last result."""
    return asked_of_last(inquiry) is not None


def _course_of(turn: Turn, question: str) -> Course | None:
    """Return the course that the question asks for; None if the result is no series."""
    rows = turn.row_count or 0
    if rows < _LEAST_SERIES:
        return None

    periods = list(filter(None, turn.described.get("periods", ())))
    types = turn.described.get("column_types", ())
    if not periods and not any(kind.startswith(_TIMES) for kind in types):
        return None

    return course_asked(question, next(iter(periods), None), rows)


def result_pieces(
    inquiry: Inquiry, turn: Turn, query: Query | None, doubt: Doubt | Course
) -> list[str]:
    """Return an answer about the result of `turn`, in pieces that concatenate to it.

    Args:
        query: gave the result; None if the rules don't know it.
    """
    return [_description(turn, query, inquiry), *_computed(inquiry, doubt)]


def _computed(inquiry: Inquiry, doubt: Doubt | Course) -> list[str]:
    """Return the figures computed from the rows; without any, why the rules have nothing to say."""
    if not inquiry.findings:
        return [_CANNOT[doubt].to(inquiry.lang).format(without_model(inquiry))]

    reason = _ONLY_FIGURES.to(inquiry.lang) if doubt == "why" else _COMPUTED.to(inquiry.lang)
    return [reason, "".join(f"- {finding}\n" for finding in inquiry.findings)]


def _description(turn: Turn, query: Query | None, inquiry: Inquiry) -> str:
    """Return the result in its own rows; without any, in the words it was answered with."""
    lang = inquiry.lang
    if turn.row_count is None and not turn.rows:
        answer = turn.answer[:_MOST_CHARACTERS].strip()
        previous = Text(f"上一个结果是：“{answer}” ", f'The previous result was: "{answer}" ')
        return previous.to(lang)

    count = turn.row_count if turn.row_count is not None else len(turn.rows)
    rows = "row" if count == 1 else "rows"
    counted = Text(
        f"“{turn.question}”查到 {count:,} 条记录", f'"{turn.question}" gave {count:,} {rows}'
    )
    described = counted.to(lang)
    first = _first_row(turn, query, inquiry)
    if first:
        introduction = _FIRST_OF_SEVERAL if count > 1 else _ONLY_ONE
        described += introduction.to(lang) + first

    return described + Text("。", ". ").to(lang)


def _first_row(turn: Turn, query: Query | None, inquiry: Inquiry) -> str:
    """Return the first row as text, "label: value, …"; empty where it is missing or was cut."""
    if not turn.rows or len(turn.rows[0]) != len(turn.columns):
        return ""

    lang = inquiry.lang
    result = _complete_rows(turn)
    columns = columns_of(query, turn.sql or "", result, lexicon_for(inquiry).schema, lang)
    colon = Text(" ", ": ").to(lang)
    comma = Text("，", ", ").to(lang)
    fields = []
    for column, value in zip(columns[:_MOST_SHOWN], turn.rows[0], strict=False):
        fields.append(f"{column.label}{colon}{value_text(value, column, lang)}")

    return comma.join(fields)[:_MOST_CHARACTERS]


def _complete_rows(turn: Turn) -> QueryResult:
    """Return the turn's rows that have all columns, with the types that the first one shows."""
    types = tuple("numeric" if is_number(value) else "text" for value in turn.rows[0])
    rows = tuple(list(row) for row in turn.rows if len(row) == len(turn.columns))
    return QueryResult(turn.columns, types, rows)
