"""What a model's reply means: SQL, a reason why there is none, or prose, which is never executed.

Models wrap SQL in fences, JSON, reasoning and explanations, or answer in prose although they were asked for SQL.
Fenced text is taken at its word (the guard judges it); everything else must be proven to be SQL by PostgreSQL's own
parser and by more than grammar, because `Select one from the list` is both a sentence and a valid statement.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import postgast
from google.protobuf.message import DecodeError

from agent.skills.reasoning import without_reasoning
from common.errors import ForbiddenStatement
from common.text import Lang, Text
from common.values import Draft, FailureReason, NoSql, Sql

MAX_EXPLANATION_CHARS = 500  # longest explanation of the model's that is shown to the user
_MAX_PARSED_CHARS = 20_000  # longer text is not parsed here: the parser recurses, and no honest statement is longer
_MAX_STARTS, _MAX_ENDS = 8, 60  # most places at which unfenced text is cut in search of SQL

REPHRASE = Text("请尝试重新描述您的问题或询问其他内容。", "Try to rephrase your question, or ask something else.")
_PROMPTS: dict[FailureReason, Text] = {
    "missing_database_info": Text(
        "数据库中没有相关的表或字段信息，请您提供更多具体信息或修改问题。",
        "The database has no table or column for this. Give more details or change the question.",
    ),
    "ambiguous_question": Text(
        "您的问题需要更多信息才能准确查询，请提供更详细的描述。",
        "The question needs more information to be answered precisely. Describe in more detail what you want to know.",
    ),
    "unknown_generation_failure": Text(
        "无法生成有效的SQL查询，请尝试重新描述您的问题。",
        "No valid SQL could be written for this question. Try to rephrase it.",
    ),
}
_CUT_OFF = Text(
    "模型的回答过长而被截断，没有得到完整的SQL。请缩小问题范围后重试。",
    "The model's reply was cut off before the SQL was complete. Ask a narrower question.",
)
WITHHELD = Text(
    "模型或其内容审核拒绝回答这个问题。请换一种问法。",
    "The model, or its content filter, refused to answer this question. Try to rephrase it.",
)


def sql_from_reply(reply: str, lang: Lang, *, known_tables: Collection[str] = (), is_cut: bool = False) -> Draft:
    """What the reply to a prompt for SQL says.

    Args:
        known_tables: lower-case names of the tables that exist; they tell unfenced SQL from prose.
        is_cut: the reply ends before the model was finished, so that SQL at its end may be incomplete: a statement
            without its last condition would run and answer wrongly.

    Several statements in one block are returned as they are, for the guard to refuse. Among several blocks the first
    that is a query is meant.

    Raises:
        ForbiddenStatement: the model says that the question asks for a write.
    """
    text = without_reasoning(reply)
    declined = _declined(text, lang)
    if declined:
        return declined
    blocks = list(_fenced_blocks(text))
    sql = _sql_of_blocks(blocks) or _sql_of_json(text) or _unfenced_sql(text, frozenset(known_tables))
    if is_cut and not any(sql == _single_statement(block.text) for block in blocks if block.is_closed):
        return NoSql("unknown_generation_failure", _CUT_OFF.to(lang))
    return Sql(sql) if sql else _prose(_explanation(text), lang)


def withheld(refusal: str, lang: Lang) -> NoSql:
    """What a refusal means, with the model's own words when it gave any."""
    return _prose(refusal, lang) if refusal.strip() else NoSql("llm_explanation", WITHHELD.to(lang))


# ------------------------------------------------------------------------------------------------------- declining

# `NO_SQL: reason: explanation` on a line of its own, as the prompts ask for it; also inside a comment or a fence.
_MARKER = re.compile(r"^[\s\-#*`>]*NO_SQL\s*[:：]\s*([A-Za-z_]*)\s*[:：]?[ \t]*(.*)", re.MULTILINE)
_REASONS: dict[str, FailureReason] = {
    "missing_database_info": "missing_database_info",
    "ambiguous_question": "ambiguous_question",
}
_WRITE = "write_requested"


def _declined(text: str, lang: Lang) -> NoSql | None:
    marker = _MARKER.search(text)
    if marker is None:
        return None
    word, explanation = marker[1].lower(), _capped(marker[2].strip("`* \t"))
    if word == _WRITE:
        operation = re.match(r"[A-Za-z]+", explanation)
        raise ForbiddenStatement(operation[0].upper() if operation else "WRITE")
    reason = _REASONS.get(word, "llm_explanation" if explanation else "unknown_generation_failure")
    if reason == "llm_explanation":
        return _prose(explanation, lang)
    advice = _PROMPTS[reason].to(lang)
    return NoSql(reason, f"{explanation} {advice}" if explanation else advice)


def _prose(text: str, lang: Lang) -> NoSql:
    explanation = _capped(text)
    if not explanation:
        return NoSql("unknown_generation_failure", _PROMPTS["unknown_generation_failure"].to(lang))
    return NoSql("llm_explanation", f"{explanation} {REPHRASE.to(lang)}")


def _capped(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_EXPLANATION_CHARS else text[: MAX_EXPLANATION_CHARS - 1].rstrip() + "…"


def _explanation(text: str) -> str:
    """The words of a reply without SQL: without fences and comment signs, the message of a JSON object alone."""
    value = _json_object(text)
    if value is not None:
        return next((word for key in _EXPLANATION_KEYS if isinstance(word := value.get(key), str)), "")
    return re.sub(r"^\s*(?:```\w*|--+|/\*+|\*+/)[ \t]*", "", text, flags=re.MULTILINE)


# ---------------------------------------------------------------------------------------------------------- fences

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*?$", re.MULTILINE)
_INLINE_FENCE = re.compile(r"```[ \t]*([A-Za-z]*)[ \t]+([^`\n]+?)[ \t]*```")
_SQL_LANGUAGES = {"", "sql", "postgresql", "postgres", "psql", "pgsql", "plpgsql", "pg", "text", "json"}
_SQL_KEYS = ("sql", "SQL", "query", "sql_query", "statement")
_EXPLANATION_KEYS = ("explanation", "reason", "error", "message", "answer", "response")


class _Block(NamedTuple):
    text: str
    is_closed: bool


def _fenced_blocks(text: str) -> Iterator[_Block]:
    """The blocks that may hold SQL, in order; blocks in other languages are skipped."""
    fences = list(_FENCE.finditer(text))
    if not fences:
        yield from (_Block(m[2], True) for m in _INLINE_FENCE.finditer(text) if m[1].lower() in _SQL_LANGUAGES)
        return
    for index in range(0, len(fences), 2):
        opening = fences[index]
        closing = fences[index + 1] if index + 1 < len(fences) else None
        body = text[opening.end() : closing.start() if closing else len(text)].strip()
        if opening[2].lower() in _SQL_LANGUAGES:
            yield _Block(body, closing is not None)


def _sql_of_blocks(blocks: list[_Block]) -> str | None:
    """The first block that is a query, else the first that is SQL at all, else the first that tries to be."""
    candidates = [sql for block in blocks if (sql := _sql_of_json(block.text) or _single_statement(block.text))]
    parsed = [(sql, _parse(sql)) for sql in candidates]
    queries = [sql for sql, statements in parsed if statements is not None and statements.is_query]
    others = [sql for sql, statements in parsed if statements is not None]
    broken = [sql for sql in candidates if _FIRST_WORD.match(sql)]
    return next(iter(queries + others + broken), None)


def _json_object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _sql_of_json(text: str) -> str | None:
    value = _json_object(text) or {}
    sql = next((sql for key in _SQL_KEYS if isinstance(sql := value.get(key), str)), "")
    return _single_statement(sql)


# --------------------------------------------------------------------------------------------------------- unfenced

_WORDS = (
    "SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER|CREATE|TRUNCATE|GRANT|REVOKE|COPY|EXPLAIN|CALL|DO|"
    "SET|BEGIN|COMMIT"
)
_START = re.compile(rf"(?:^|[:：])[\s`(]*\b({_WORDS})\b", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(r"^[:：\s`]+")
_FIRST_WORD = re.compile(rf"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:{_WORDS})\b", re.IGNORECASE | re.DOTALL)
_BROKEN_QUERY = re.compile(r"\s*(?:SELECT|WITH)\b.*\bFROM\b", re.DOTALL)
# Where a statement may end: never at a single line break, because what follows a broken line may be a condition, and
# the statement without it would run and answer wrongly. A label (`Explanation:`) and a paragraph of prose do end it.
_END = re.compile(r";|`|\n(?=[ \t]*(\w+[:：])(?!:))|\n[ \t]*\n(?=\s*([^\W\d_]+))")


def _unfenced_sql(text: str, known_tables: frozenset[str]) -> str | None:
    """The longest piece of `text` that is SQL beyond doubt, or a query that does not parse and is worth a repair."""
    if len(text) > _MAX_PARSED_CHARS:
        return None
    for _, start in zip(range(_MAX_STARTS), _START.finditer(text), strict=False):
        tail = text[start.start() :]
        tail = tail[len(label[0]) :] if (label := _LABEL.match(tail)) else tail
        for end in _ends(tail):
            statements = _parse(tail[:end])
            if statements is not None and statements.is_beyond_doubt(start[1], known_tables):
                return _first_of(statements, tail[:end])
    return text.strip() if _BROKEN_QUERY.match(text) and _parse(text) is None else None


def _ends(tail: str) -> list[int]:
    """Places at which to cut: before prose, nearest first; else as late as possible, so that nothing is left out."""
    marks = list(_END.finditer(tail))[:_MAX_ENDS]
    before_prose = [mark.start() for mark in marks if mark[1] or (mark[2] and _is_prose_word(mark[2]))]
    after_statement = [mark.end() if mark[0] == ";" else mark.start() for mark in reversed(marks) if mark[0] in ";`"]
    return [*before_prose, len(tail), *after_statement]


def _is_prose_word(word: str) -> bool:
    """Whether a paragraph that begins with `word` can't be the next clause of a statement."""
    return not word.isascii() or (word[0].isupper() and not _is_keyword(word))


def _is_keyword(word: str) -> bool:
    tokens = postgast.scan(word).tokens
    return bool(tokens) and tokens[0].keyword_kind != 0


class _Statements(NamedTuple):
    """What the parser says about a text that is SQL; `trees` is None when they are too deep to look at."""

    trees: list[Any] | None

    @property
    def is_query(self) -> bool:
        """One SELECT (or VALUES, or TABLE)."""
        return self.trees is None or (len(self.trees) == 1 and self.trees[0].stmt.WhichOneof("node") == "select_stmt")

    def is_beyond_doubt(self, first_word: str, known_tables: frozenset[str]) -> bool:
        """Whether it can't be a sentence: it reads a table that exists, or it shouts its first word.

        A query without FROM that names columns can't run and is taken for a sentence (`Select one`).
        """
        if self.trees is None:
            return first_word.isupper()
        reads = False
        for node in self._nodes("RangeVar"):  # walking through a whole tree takes longer than parsing
            reads = True
            if node.relname.lower() in known_tables:
                return True
        if not reads and any(True for _ in self._nodes("ColumnRef")):
            return False
        return first_word.isupper() or (not reads and self.is_query)

    def _nodes(self, kind: str) -> Iterator[Any]:
        for tree in self.trees or ():
            yield from postgast.find_nodes(tree, getattr(postgast.pg_query_pb2, kind))


def _parse(text: str) -> _Statements | None:
    """None when it is not SQL, or nothing but comments."""
    if not text.strip() or "\0" in text or len(text) > _MAX_PARSED_CHARS:
        return None
    try:
        trees = list(postgast.parse(text).stmts)
    except (postgast.PgQueryError, UnicodeEncodeError):
        return None
    except DecodeError:  # valid, but nested too deeply for the bindings: the guard will say so
        return _Statements(None)
    return _Statements(trees) if trees else None


def _single_statement(text: str) -> str | None:
    """`text` without the semicolon and the comments after a single statement; anything else as it is, stripped."""
    statements = _parse(text)
    if statements is not None:
        return _first_of(statements, text)
    if not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip(" ;\n\t"):
        return None
    return text.strip()


def _first_of(statements: _Statements, text: str) -> str:
    """`text`, which holds `statements`, to the end of the first if that is the only one."""
    if statements.trees and len(statements.trees) == 1:
        data, tree = text.encode(), statements.trees[0]
        end = tree.stmt_location + tree.stmt_len if tree.stmt_len else len(data)
        text = data[:end].decode()
    return text.strip()
