"""Analyse without a model why an answer was wrong, and how to avoid it next time.

Facts count before words: the statement's refusal, then the difference to the corrected statement,
then the user's comment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import (
    CituError,
    CostExceeded,
    ForbiddenObject,
    ForbiddenStatement,
    InvalidSql,
    QueryTimeout,
    StatementRejected,
)
from common.learning import FailureType
from common.text import Lang, Text
from common.values import PlanEstimate
from common.word_files import Languages
from knowledge.language.safe_text import cut_off
from sqltree.query_parts import Difference, differences, parts_of

_WORDS = Languages(Path(__file__).parent / "words")
_COMPLAINTS: tuple[FailureType, ...] = (
    "performance_error",
    "syntax_error",
    "semantic_error",
    "logic_error",
    "requirement_mismatch",
)
_COMPLAINED = {kind: _WORDS.found(f"complaints.{kind}") for kind in _COMPLAINTS}
# SQLSTATEs of names that the database doesn't have: tables, columns, functions, schemas.
_UNKNOWN_NAMES = frozenset(("42P01", "42703", "42883", "3F000"))
_DATA = "22"  # the class of SQLSTATEs about values that a statement met while it ran
_MAX_COMMENT = 300  # characters of a comment in a sentence
_MOST_NAMED = 3  # texts of a part


@dataclass(frozen=True)
class Case:
    """A wrong answer, with what is known of why.

    Attributes:
        lang: language of the analysis.
        sql: the statement; None when none was written.
        corrected: the statement that the user gives instead.
        comment: the user's own words.
        error_type, error: of a run that ended in an error: the name of the error, and the message
            that the user got.
        refusal: the error of guard or EXPLAIN for the statement now.
        plan: the statement's estimate.
        row_count: rows of the result; None when there was none.
        found: what checks have found wrong, of a draft of a transformation.
    """

    lang: Lang
    sql: str | None
    corrected: str | None = None
    comment: str | None = None
    error_type: str | None = None
    error: str | None = None
    refusal: CituError | None = None
    plan: PlanEstimate | None = None
    row_count: int | None = None
    found: "FailureFinding | None" = None


@dataclass(frozen=True)
class FailureAnalysis:
    """The cause of a failure and a hint that avoids it, in sentences of the case's language."""

    failure_type: FailureType
    root_cause: str
    avoidance_hint: str


@dataclass(frozen=True)
class FailureFinding:
    """The kind of a failure, what caused it, and what avoids it."""

    type: FailureType
    cause: Text
    hint: Text


_PARTS: dict[str, tuple[FailureType, Text]] = {
    "tables": ("semantic_error", Text("表", "tables")),
    "joins": ("logic_error", Text("关联条件", "joins")),
    "filters": ("logic_error", Text("筛选条件", "filters")),
    "figures": ("logic_error", Text("统计指标", "figures")),
    "groups": ("logic_error", Text("分组", "grouping")),
    "order": ("requirement_mismatch", Text("排序或条数", "order or number of rows")),
    "shown": ("requirement_mismatch", Text("显示的列", "columns shown")),
}
"""By part of a query: the failure when it is the first part that differs, and its name."""

_NOT_WRITTEN = FailureFinding(
    "requirement_mismatch",
    Text("没有为这个问题写出 SQL。", "No SQL was written for the question."),
    Text(
        "先弄清问题指的是哪些表和字段；不清楚时请用户补充。",
        "Find out which tables and columns the question means, "
        "and ask the user where that is not clear.",
    ),
)
_FORBIDDEN = FailureFinding(
    "requirement_mismatch",
    Text("SQL 做的不是查询，被拒绝。", "The SQL was refused, because it is not a query."),
    Text("只写一条 SELECT 查询。", "Write one SELECT and nothing else."),
)
_CLOSED = FailureFinding(
    "semantic_error",
    Text("SQL 使用了不允许使用的对象。", "The SQL uses something that may not be used."),
    Text(
        "只使用所给结构中的表、字段和常用函数。",
        "Use only the tables and columns described, and plain functions.",
    ),
)
_UNKNOWN = FailureFinding(
    "semantic_error",
    Text(
        "SQL 使用了数据库里没有的名称。", "The SQL names something that the database does not have."
    ),
    Text(
        "表名和字段名要与所给结构完全一致。",
        "Spell tables and columns exactly as they are described.",
    ),
)
_BAD_VALUES = FailureFinding(
    "logic_error",
    Text("SQL 执行时遇到了无法处理的数据。", "The SQL met values that it can't deal with."),
    Text(
        "避免除以零，转换类型前先检查值（NULLIF、CASE）。",
        "Guard divisions and casts against the values that are stored (NULLIF, CASE).",
    ),
)
_BROKEN = FailureFinding(
    "syntax_error",
    Text("SQL 不符合 PostgreSQL 的语法。", "The SQL is not valid in PostgreSQL."),
    Text("使用 PostgreSQL 的语法，写法尽量简单。", "Write PostgreSQL's SQL, and keep it simple."),
)
_SLOW = FailureFinding(
    "performance_error",
    Text(
        "查询超时，或估计的开销过大。",
        "The query took too long, or was estimated to be too expensive.",
    ),
    Text(
        "先按时间或主键缩小范围，再关联和汇总；不要读取不需要的表。",
        "Narrow by date or key before joining and aggregating, "
        "and leave out tables that are not needed.",
    ),
)
_EMPTY = FailureFinding(
    "logic_error",
    Text("查询没有找到任何记录。", "The query found no rows."),
    Text(
        "筛选值要与数据库中存储的写法一致，并检查条件是否互相矛盾。",
        "Write values in filters as they are stored, "
        "and see whether conditions exclude each other.",
    ),
)
_COMPLAINT: dict[FailureType, Text] = {
    "performance_error": _SLOW.hint,
    "syntax_error": _BROKEN.hint,
    "semantic_error": Text(
        "换用与问题所指一致的表和字段。",
        "Use the tables and columns that the question's words stand for.",
    ),
    "logic_error": Text(
        "检查关联是否造成重复、条件是否完整、统计方式是否正确。",
        "Check that joins duplicate nothing, that no condition is missing, "
        "and that figures are made the right way.",
    ),
    "requirement_mismatch": Text(
        "按问题的原意作答，不要换成别的问题。", "Answer what was asked, and not a question like it."
    ),
}
_DISSATISFIED = Text("用户认为回答不对。", "The user says that the answer is wrong.")
_BY_ERROR_TYPE: dict[str, FailureFinding] = {
    InvalidSql.error_type: _BROKEN,
    ForbiddenStatement.error_type: _FORBIDDEN,
    ForbiddenObject.error_type: _CLOSED,
    CostExceeded.error_type: _SLOW,
    QueryTimeout.error_type: _SLOW,
    StatementRejected.error_type: _BROKEN,
}


def analysed(case: Case) -> FailureAnalysis | None:
    """Analyse a wrong answer; None when the service itself had failed, which teaches nothing."""
    if _has_service_failed(case):
        return None

    changed = differences(case.sql, case.corrected) if case.sql and case.corrected else ()
    finding = _finding(case, changed)
    lang = case.lang
    hints = [_advice(each) for each in changed] or [finding.hint]
    return FailureAnalysis(
        finding.type,
        _join_sentences(_causes(case, finding, changed), lang),
        _join_sentences([hint.to(lang) for hint in hints], lang),
    )


def _has_service_failed(case: Case) -> bool:
    if case.error_type is None or case.refusal is not None:
        return False

    return case.error_type not in _BY_ERROR_TYPE


def _causes(case: Case, finding: FailureFinding, changed: Sequence[Difference]) -> list[str]:
    """Return the sentences about what went wrong; the user's comment comes last."""
    lang = case.lang
    causes: list[str] = []
    comment_tells = case.comment and finding.cause is _DISSATISFIED
    if not comment_tells:
        causes.append(finding.cause.to(lang))

    causes += _details(case, finding)
    causes += [_difference(each).to(lang) for each in changed]
    if case.comment:
        causes.append(_quoted_comment(case.comment).to(lang))

    return causes


def _finding(case: Case, changed: Sequence[Difference]) -> FailureFinding:
    for look in _LOOKS:
        finding = look(case, changed)
        if finding is not None:
            return finding

    return _MISMATCHED


def _not_written(case: Case, _changed: Sequence[Difference]) -> FailureFinding | None:
    if case.sql is None and case.error_type is None:
        return _NOT_WRITTEN

    return None


def _finding_of_refusal(case: Case, _changed: Sequence[Difference]) -> FailureFinding | None:
    error = case.refusal
    if isinstance(error, InvalidSql):
        if error.sqlstate in _UNKNOWN_NAMES:
            return _UNKNOWN

        met_bad_values = (error.sqlstate or "").startswith(_DATA)
        if met_bad_values:
            return _BAD_VALUES

        return _BROKEN

    if error is not None:
        return _BY_ERROR_TYPE.get(error.error_type, _BROKEN)

    return _BY_ERROR_TYPE.get(case.error_type or "")


def _failed_checks(case: Case, _changed: Sequence[Difference]) -> FailureFinding | None:
    return case.found


def _finding_of_correction(_case: Case, changed: Sequence[Difference]) -> FailureFinding | None:
    if not changed:
        return None

    kind = _PARTS[changed[0].part][0]
    return FailureFinding(
        kind, Text("用户改正了 SQL。", "The user corrected the SQL."), _COMPLAINT[kind]
    )


def _finding_of_comment(case: Case, _changed: Sequence[Difference]) -> FailureFinding | None:
    for kind in _COMPLAINTS:
        if case.comment and _COMPLAINED[kind].search(case.comment):
            return FailureFinding(kind, _DISSATISFIED, _COMPLAINT[kind])

    return None


def _empty(case: Case, _changed: Sequence[Difference]) -> FailureFinding | None:
    if case.row_count == 0:
        return _EMPTY

    return None


_MISMATCHED = FailureFinding(
    "requirement_mismatch", _DISSATISFIED, _COMPLAINT["requirement_mismatch"]
)
_LOOKS: tuple[Callable[[Case, Sequence[Difference]], FailureFinding | None], ...] = (
    _not_written,
    _finding_of_refusal,
    _failed_checks,
    _finding_of_correction,
    _finding_of_comment,
    _empty,
)
"""In this order; the first that finds something counts."""


def _details(case: Case, finding: FailureFinding) -> list[str]:
    """Return the error's message, the tables of a slow query, or the filters of an empty one."""
    if finding is _EMPTY:
        filters = sorted(parts_of(case.sql or "").filters)
        text = Text(f"筛选条件：{_short_list(filters)}。", f"It filters by {_short_list(filters)}.")
        if filters:
            return [text.to(case.lang)]

        return []

    details = []
    message = case.error
    if case.refusal is not None:
        message = case.refusal.message(case.lang)
    if message:
        details.append(message)

    is_slow = finding.type == "performance_error"
    if is_slow and case.plan is not None and case.plan.scans:
        tables = _short_list(case.plan.scans)
        text = Text(f"开销最大的表：{tables}。", f"Most of the work is in {tables}.")
        details.append(text.to(case.lang))

    return details


def _difference(difference: Difference) -> Text:
    part = _PARTS[difference.part][1]
    before = difference.without
    after = difference.with_
    if not before:
        return Text(
            f"缺少{part.zh} {_short_list(after)}。", f"Missing {part.en}: {_short_list(after)}."
        )
    if not after:
        return Text(
            f"多了{part.zh} {_short_list(before)}。",
            f"Too much among the {part.en}: {_short_list(before)}.",
        )

    return Text(
        f"{part.zh}写成了 {_short_list(before)}，应为 {_short_list(after)}。",
        f"Wrong {part.en}: {_short_list(before)} instead of {_short_list(after)}.",
    )


def _advice(difference: Difference) -> Text:
    part = _PARTS[difference.part][1]
    before = difference.without
    after = difference.with_
    if not after:
        return Text(
            f"不要用{part.zh} {_short_list(before)}。",
            f"Leave out of the {part.en}: {_short_list(before)}.",
        )

    return Text(f"{part.zh}用 {_short_list(after)}。", f"Use as {part.en}: {_short_list(after)}.")


def _short_list(texts: Sequence[str]) -> str:
    listed = ", ".join(texts[:_MOST_NAMED])
    more = len(texts) - _MOST_NAMED
    if more > 0:
        return f"{listed} … (+{more})"

    return listed


def _quoted_comment(comment: str) -> Text:
    line = cut_off(" ".join(comment.split()), _MAX_COMMENT)
    return Text(f"用户说：“{line}”", f'The user says: "{line}"')


def _join_sentences(sentences: Sequence[str], lang: Lang) -> str:
    return ("" if lang == "zh" else " ").join(sentences)
