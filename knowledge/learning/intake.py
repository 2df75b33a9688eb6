"""Examples and lessons that people bring as JSON Lines: each line is read, proven, and made into an item.

A line is `{"question", "sql", "lang"?}`. One with `"kind": "lesson"` also has `failure_type`, `root_cause` and
`avoidance_hint`, and may go without `sql`. Other keys are left out, so that what was exported can be imported.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from common.errors import CituError, InvalidRequest, QueryTimeout, StatementRejected
from common.learning import (
    MAX_QUESTION_CHARS,
    MAX_SENTENCE_CHARS,
    MAX_SQL_CHARS,
    Example,
    ExampleSource,
    FailureType,
    Lesson,
    Trust,
    example_id,
    lesson_id,
)
from common.ports import Database, Definitions
from common.store.learned import Added, Learned
from common.text import Text, is_whole, language_of
from knowledge.learning.proofs import proven

LineStatus = Literal["added", "known", "full", "refused", "invalid"]
"""What became of a line. `known`: it is there already, or an earlier line says the same. `refused`: guard or EXPLAIN
don't accept the SQL. `invalid`: it can't be read."""

_NO_OBJECT = Text("这一行不是 JSON 对象。", "This line is no JSON object.")
_FAILURE_TYPES: Mapping[str, FailureType] = {each: each for each in get_args(FailureType)}


@dataclass(frozen=True)
class Outcome:
    """What became of one line.

    Attributes:
        line: its number, from 1.
        item_id: of the example or lesson, when there is one.
        error: why it was not taken.
    """

    line: int
    status: LineStatus
    item_id: str | None = None
    error: CituError | None = None


class Intake:
    """Takes lines for one datasource.

    Args:
        database: the asked database as who brings them may see it.
        definitions: gives what is known of it whoever asks.
        author: whose the items become.
        trust: of the examples; with shared trust, lessons are shared as well.
    """

    def __init__(
        self,
        learned: Learned,
        datasource: str,
        database: Database,
        definitions: Callable[[], Definitions],
        *,
        author: str,
        trust: Trust = "personal",
        source: ExampleSource = "load",
    ) -> None:
        self._learned = learned
        self._datasource = datasource
        self._database = database
        self._definitions = definitions
        self._author = author
        self._trust: Trust = trust
        self._source: ExampleSource = source

    async def take(self, text: str) -> list[Outcome]:
        """Adds what the lines hold, as far as it can be proven; what became of each line, blank ones left out.

        Raises:
            DatabaseUnavailable: nothing can be proven now. Nothing was added.
            StoreUnavailable: they can't be kept; some may have been.
        """
        read = [(number, await self._item(line)) for number, line in numbered(text)]
        added = await self._learned.add(self._datasource, [item for _, item in read if not isinstance(item, CituError)])
        outcomes = [_outcome(number, item, added) for number, item in read]
        return list(_told_once(outcomes))

    async def add(self, question: str, sql: str) -> Added:
        """Adds one example; what became of it.

        Raises:
            InvalidRequest: the question or the SQL is empty or too long.
            StatementRejected, QueryTimeout, DatabaseUnavailable: the SQL can't be proven.
            StoreUnavailable: it can't be kept, or perhaps was.
        """
        example = await self._example({"question": question, "sql": sql})
        return (await self._learned.add(self._datasource, [example]))[example.example_id]

    async def _item(self, line: str) -> Example | Lesson | CituError:
        try:
            values = _object(line)
            return self._lesson(values) if values.get("kind") == "lesson" else await self._example(values)
        except (InvalidRequest, StatementRejected, QueryTimeout) as error:
            return error

    async def _example(self, values: Mapping[str, Any]) -> Example:
        question, sql = _text(values, "question", MAX_QUESTION_CHARS), _text(values, "sql", MAX_SQL_CHARS)
        proof = await proven(sql, self._database, self._definitions)
        return Example(
            example_id=example_id(self._datasource, self._author, question, sql),
            datasource=self._datasource,
            question=question,
            sql=sql,
            lang=values["lang"] if values.get("lang") in ("zh", "en") else language_of(question),
            trust=self._trust,
            author=self._author,
            source=self._source,
            tables=proof.tables,
            tables_hash=proof.tables_hash,
            created_at=now(),
            proven_at=now(),
        )

    def _lesson(self, values: Mapping[str, Any]) -> Lesson:
        question = _text(values, "question", MAX_QUESTION_CHARS)
        sql = _text(values, "sql", MAX_SQL_CHARS) if values.get("sql") is not None else None
        kind = _FAILURE_TYPES.get(str(values.get("failure_type")))
        if kind is None:
            allowed = Text(f"{'、'.join(_FAILURE_TYPES)} 之一", f"one of {', '.join(_FAILURE_TYPES)}")
            raise _invalid("failure_type", allowed)
        cause, hint = (_text(values, field, MAX_SENTENCE_CHARS) for field in ("root_cause", "avoidance_hint"))
        return Lesson(
            lesson_id=lesson_id(self._datasource, self._author, question, sql, cause, hint),
            datasource=self._datasource,
            question=question,
            sql=sql,
            lang=values["lang"] if values.get("lang") in ("zh", "en") else language_of(question),
            author=self._author,
            failure_type=kind,
            root_cause=cause,
            avoidance_hint=hint,
            created_at=now(),
            is_shared=self._trust in ("reviewed", "certified"),
        )


def now() -> str:
    """The present, as items keep it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many lines came to each status."""
    return {status: sum(each.status == status for each in outcomes) for status in get_args(LineStatus)}


def _outcome(number: int, item: Example | Lesson | CituError, added: Mapping[str, Added]) -> Outcome:
    if isinstance(item, CituError):
        return Outcome(number, "invalid" if isinstance(item, InvalidRequest) else "refused", error=item)
    known = item.example_id if isinstance(item, Example) else item.lesson_id
    return Outcome(number, added[known], known)


def _told_once(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Of lines that say the same, only the first adds it; to the others it is known."""
    added: set[str | None] = set()
    for outcome in outcomes:
        is_again = outcome.status == "added" and outcome.item_id in added
        added |= {outcome.item_id} if outcome.status == "added" else set()
        yield replace(outcome, status="known") if is_again else outcome


def _object(line: str) -> Mapping[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InvalidRequest(_NO_OBJECT)
    return values


def _text(values: Mapping[str, Any], field: str, most: int) -> str:
    value = values.get(field)
    text = value.strip() if isinstance(value, str) else ""
    if not 0 < len(text) <= most or not is_whole(text):
        raise _invalid(field, Text(f"1 到 {most} 个字符的字符串", f"a string of 1 to {most} characters"))
    return text


def _invalid(field: str, allowed: Text) -> InvalidRequest:
    return InvalidRequest(
        Text(f"{field} 无效：必须是{allowed.zh}。", f"{field} is not valid: it must be {allowed.en}."), field=field
    )
