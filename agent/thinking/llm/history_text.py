"""Writes the part of a prompt about earlier turns: the latest that fit a budget.

A turn holds a user's words, SQL, stored values and a model's text; none of it is trusted. Each
piece is cut to its share, and put on one line or indented, so that it can't look like the start of
another turn.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from agent.thinking.llm.rows_text import row_line
from common.values import Turn
from knowledge.language.safe_text import block, one_line
from llm.tokens import PER_TOKEN, weight

MAX_HISTORY_TOKENS = 3_000  # of one prompt, estimated
MAX_TURNS = 8  # questions rarely refer to earlier ones
_INDENT = "\n    "

HistoryView = Literal["classify", "sql", "chat", "tools"]


@dataclass(frozen=True)
class _Shares:
    """The most tokens of each piece of a turn; 0 leaves it out. Two whole turns fit into the
    budget.

    Attributes:
        answer: the answer of a turn with SQL.
        said: the answer of a turn without SQL: conversation, or why there was no query.
    """

    question: int
    sql: int
    rows: int
    answer: int
    said: int


_VIEWS: dict[HistoryView, _Shares] = {
    "classify": _Shares(question=100, sql=0, rows=0, answer=0, said=60),
    "sql": _Shares(question=200, sql=1_000, rows=0, answer=0, said=150),
    "chat": _Shares(question=200, sql=400, rows=500, answer=250, said=250),
    "tools": _Shares(question=200, sql=800, rows=0, answer=250, said=250),
}


@dataclass(frozen=True)
class HistoryText:
    """The part of a conversation that a prompt tells.

    Attributes:
        text: goes between the prompt's <history> tags; empty for a new conversation.
        turns: those in the text, oldest first.
    """

    text: str
    turns: tuple[Turn, ...]

    @property
    def last_query(self) -> Turn | None:
        """Return the latest turn with SQL, which a follow-up changes."""
        return next((turn for turn in reversed(self.turns) if turn.sql), None)


def history_text(
    turns: Sequence[Turn], view: HistoryView, tokens: int = MAX_HISTORY_TOKENS
) -> HistoryText:
    """Return the latest of `turns` (oldest first) that fit into `tokens`.

    The latest turn and the latest with SQL come first, so that a follow-up works after small talk;
    of the others the oldest are dropped first.
    """
    shares = _VIEWS[view]
    room = tokens * PER_TOKEN
    shown: dict[int, str] = {}
    for index in _most_important_first(turns):
        text = _turn_text(turns[index], shares)
        room -= weight(text) + 1  # the line break between turns
        is_full = room < 0 and shown
        if is_full or len(shown) == MAX_TURNS:
            break

        shown[index] = text

    in_order = sorted(shown)
    return HistoryText(
        "\n".join(shown[index] for index in in_order), tuple(turns[index] for index in in_order)
    )


def _most_important_first(turns: Sequence[Turn]) -> list[int]:
    """Return the indices of `turns`, the most important first."""
    newest_first = range(len(turns) - 1, -1, -1)
    last_query = [index for index in newest_first if turns[index].sql][:1]
    return list(dict.fromkeys([*newest_first[:1], *last_query, *newest_first]))


def _turn_text(turn: Turn, shares: _Shares) -> str:
    question = _on_one_line(turn.question, shares.question)
    return "\n".join([f"- question ({turn.question_type}): {question}", *_outcome(turn, shares)])


def _outcome(turn: Turn, shares: _Shares) -> Iterator[str]:
    if turn.sql and shares.sql:
        sql = block(turn.sql, shares.sql * PER_TOKEN).replace("\n", _INDENT)
        yield f"  sql: {_cut(sql, shares.sql)}"

    if turn.row_count is not None:
        yield from _result(turn, shares.rows)

    most = shares.answer if turn.sql else shares.said
    if most:
        yield f"  answer: {_on_one_line(turn.answer, most)}"


def _result(turn: Turn, tokens: int) -> list[str]:
    head = f"  result: {turn.row_count} rows"
    if not tokens or not turn.rows:
        return [head]

    rows = _rows(turn, tokens)
    return [f"{head}, of which {len(rows) - 1} are listed", *rows]


def _rows(turn: Turn, tokens: int) -> list[str]:
    """Return the columns and as many whole rows as fit; long ones of the first two are cut."""
    lines: list[str] = []
    room = tokens * PER_TOKEN
    for cells in (turn.columns, *turn.rows):
        line = f"    {row_line(cells)}"
        room -= weight(line) + 1
        if room < 0 and len(lines) > 1:
            break

        lines.append(line)

    return [_cut(line, tokens // 2) for line in lines]


def _on_one_line(text: str, tokens: int) -> str:
    return _cut(one_line(text, tokens * PER_TOKEN), tokens)


def _cut(text: str, tokens: int) -> str:
    """Return `text`, or its beginning with `…` if it is longer than `tokens`."""
    if weight(text) <= tokens * PER_TOKEN:
        return text

    weights = list(accumulate(1 if character.isascii() else PER_TOKEN for character in text))
    end = bisect_right(weights, (tokens - 1) * PER_TOKEN)
    return text[:end].rstrip() + "…"
