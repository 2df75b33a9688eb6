"""Take examples and lessons that people bring as JSON Lines; each line is read and proven.

A line is `{"question", "sql", "lang"?}`. One with `"kind": "lesson"` also has `failure_type`,
`root_cause` and `avoidance_hint`, and may go without `sql`. What was learnt of drafts of
transformations has `etl` (`knowledge.learning.draft_lines`). Other keys are left out, so that what
was exported can be imported.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from common.errors import CituError, InvalidRequest, QueryTimeout, StatementRejected
from common.learning import (
    MAX_DRAFT_CHARS,
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
from common.text import Lang, Text, language_of
from knowledge.learning.draft_lines import draft_example, draft_lesson
from knowledge.learning.line_fields import invalid_field, text_field
from knowledge.learning.proofs import proven
from store.learned import Added, Learned

LineStatus = Literal["added", "known", "full", "refused", "invalid"]
"""The outcome of a line. `known`: it is there already, or an earlier line says the same. `refused`:
guard or EXPLAIN don't accept the SQL. `invalid`: it can't be read.
"""

_NO_OBJECT = Text("这一行不是 JSON 对象。", "This line is no JSON object.")
_FAILURE_TYPES: Mapping[str, FailureType] = {each: each for each in get_args(FailureType)}


@dataclass(frozen=True)
class ImportOutcome:
    """The outcome of one line.

    Attributes:
        line: its number, from 1.
        item_id: the id of the example or lesson, when there is one.
        error: why it was not taken.
    """

    line: int
    status: LineStatus
    item_id: str | None = None
    error: CituError | None = None


class Intake:
    """Takes lines for one datasource.

    Args:
        database: the datasource as who brings them may see it.
        definitions: gives the definitions of it for everybody.
        author: whose the items become.
        trust: the trust of the examples; with shared trust, lessons are shared as well.
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

    async def take(self, text: str) -> list[ImportOutcome]:
        """Add the items of the lines that can be proven; return the outcome of each line.

        Blank lines have none.

        Raises:
            DatabaseUnavailable: nothing can be proven now. Nothing was added.
            StoreUnavailable: they can't be kept; some may have been.
        """
        read = [(number, await self._item(line)) for number, line in numbered(text)]
        items = [item for _, item in read if not isinstance(item, CituError)]
        added = await self._learned.add(self._datasource, items)
        outcomes = [_outcome(number, item, added) for number, item in read]
        return list(_added_once(outcomes))

    async def add(self, question: str, sql: str) -> Added:
        """Add one example; return its outcome.

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
            if values.get("kind") == "lesson":
                return self._lesson(values)

            return await self._example(values)
        except (InvalidRequest, StatementRejected, QueryTimeout) as error:
            return error

    async def _example(self, values: Mapping[str, Any]) -> Example:
        is_draft = values.get("kind") == "etl"
        question = text_field(values, "question", MAX_QUESTION_CHARS)
        sql = text_field(values, "sql", MAX_DRAFT_CHARS if is_draft else MAX_SQL_CHARS)
        proof = await proven(sql, self._database, self._definitions, at_any_cost=is_draft)
        example = Example(
            example_id=example_id(self._datasource, self._author, question, sql),
            datasource=self._datasource,
            question=question,
            sql=sql,
            lang=_lang(values, question),
            trust=self._trust,
            author=self._author,
            source=self._source,
            tables=proof.tables,
            tables_hash=proof.tables_hash,
            created_at=now(),
            proven_at=now(),
        )
        if is_draft:
            return draft_example(example, values)

        return example

    def _lesson(self, values: Mapping[str, Any]) -> Lesson:
        question = text_field(values, "question", MAX_QUESTION_CHARS)
        sql = None
        if values.get("sql") is not None:
            most = MAX_SQL_CHARS if values.get("etl") is None else MAX_DRAFT_CHARS
            sql = text_field(values, "sql", most)

        kind = _FAILURE_TYPES.get(str(values.get("failure_type")))
        if kind is None:
            allowed = Text(
                f"{'、'.join(_FAILURE_TYPES)} 之一", f"one of {', '.join(_FAILURE_TYPES)}"
            )
            raise invalid_field("failure_type", allowed)

        cause = text_field(values, "root_cause", MAX_SENTENCE_CHARS)
        hint = text_field(values, "avoidance_hint", MAX_SENTENCE_CHARS)
        lesson = Lesson(
            lesson_id=lesson_id(self._datasource, self._author, question, sql, cause, hint),
            datasource=self._datasource,
            question=question,
            sql=sql,
            lang=_lang(values, question),
            author=self._author,
            failure_type=kind,
            root_cause=cause,
            avoidance_hint=hint,
            created_at=now(),
            is_shared=self._trust in ("reviewed", "certified"),
        )
        if values.get("etl") is None:
            return lesson

        return draft_lesson(lesson, values)


def now() -> str:
    """Return the present time as items keep it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def counts(outcomes: Sequence[ImportOutcome]) -> dict[str, int]:
    """Count the lines of each status."""
    numbers = Counter(outcome.status for outcome in outcomes)
    return {status: numbers[status] for status in get_args(LineStatus)}


def _outcome(
    number: int, item: Example | Lesson | CituError, added: Mapping[str, Added]
) -> ImportOutcome:
    if isinstance(item, InvalidRequest):
        return ImportOutcome(number, "invalid", error=item)
    if isinstance(item, CituError):
        return ImportOutcome(number, "refused", error=item)
    if isinstance(item, Example):
        return ImportOutcome(number, added[item.example_id], item.example_id)

    return ImportOutcome(number, added[item.lesson_id], item.lesson_id)


def _added_once(outcomes: Sequence[ImportOutcome]) -> Iterator[ImportOutcome]:
    """Yield the outcomes, in which only the first of several lines that say the same has added
    it.
    """
    added: set[str | None] = set()
    for outcome in outcomes:
        if outcome.status != "added":
            yield outcome
        elif outcome.item_id in added:
            yield replace(outcome, status="known")
        else:
            added.add(outcome.item_id)
            yield outcome


def _lang(values: Mapping[str, Any], question: str) -> Lang:
    """Return the language that the line names, else that of the question."""
    if values.get("lang") in ("zh", "en"):
        return cast(Lang, values["lang"])

    return language_of(question)


def _object(line: str) -> Mapping[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None

    if not isinstance(values, dict):
        raise InvalidRequest(_NO_OBJECT)

    return values
