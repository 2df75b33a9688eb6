"""Decides which database a question is about, where there are several.

The request's counts, else that of the conversation. Else those that the actor may ask are compared
by what they know of the question's words; where two fit alike, the user is asked. Databases that
the actor may not ask are left out before anything is compared.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.asked_databases import AskedDatabase, AskedDatabases
from agent.database_fit import DatabaseEvidence, databases_that_fit, word_scores
from agent.question import Question
from agent.thinking import DatabaseOption, DatabasePicking
from common.errors import (
    CituError,
    InvalidRequest,
    LlmUnavailable,
    NotFound,
    StoreUnavailable,
)
from common.inquiry import Inquiry, Readability, StoredValue
from common.learning import Example, same_question
from common.text import Lang, Text
from common.values import Catalog, Usage
from databases.datasources import NO_DATABASE
from knowledge.tables.question_coverage import coverage_of, telling_words, with_values
from knowledge.tables.relevance import TableIndex
from knowledge.tables.schema_search import SchemaSearch
from rules.linking.explained import ExplainedWords

_WHICH = Text("这个问题可以用多个数据库回答，请选择：{}", "Several databases fit: {}. Which one?")
_GONE_FILES = Text(
    "这段对话问的是您的文件，但它们已被删除，或不再与您共享。"
    "请重新上传；要问别的数据，请开始新的对话，或在请求中写明 database。",
    "This conversation is about your files, which have been deleted or are no longer shared with "
    "you. Upload them again; to ask about other data, begin a new conversation, or name a database "
    "in the request.",
)
_MOST_TABLES = 8  # of one database that are compared
_LIKELY = 0.35  # of the best score; what does not reach it is not looked at any closer
_MOST_READ = 6  # databases in which the rules read the question
_READING_S = 6.0  # from its beginning, that questions wait for the first reading of a catalogue
_MOST_CHOICES = 6
# What makes the name of a database in a question tell that one and no other.
_ZH_MARKS = ("库", "数据库", "系统")
_EN_MARKS = ("database", "db", "system")

LatestDatabase = Callable[[Question], Awaitable[str | None]]
"""Gives the database of the conversation's latest turn; raises `StoreUnavailable`."""

ExamplesOf = Callable[[str, Question], Awaitable[Sequence[Example]]]
"""Gives what answered questions like this one in a database, as far as its actor may see it."""

Ranking = Callable[[Catalog], Awaitable[TableIndex]]


ValuesOf = Callable[[str, Question, Inquiry], Awaitable[tuple[StoredValue, ...]]]
"""Gives the stored values that a question names in a database, as far as its actor may see it."""


class QuestionReader(Protocol):
    """Tells how databases explain a question, and in which it can be answered."""

    async def explained(self, inquiry: Inquiry) -> ExplainedWords:
        """Return the words of the question that the inquiry's catalogue explains."""

    async def readability(self, inquiry: Inquiry) -> Readability:
        """Tell whether the rules can write SQL for the question over the inquiry's catalogue."""


@dataclass(frozen=True)
class DatabaseDoubt:
    """Several databases fit the question: the user has to say which one is meant.

    Attributes:
        names: the databases, the likeliest first.
        prompt: asks the user.
        usage: what was used of the model that was asked first.
    """

    names: tuple[str, ...]
    prompt: Text
    usage: Usage = Usage()


@dataclass(frozen=True)
class _Candidate:
    """A database that the question may be about."""

    database: AskedDatabase
    catalog: Catalog
    evidence: DatabaseEvidence
    found_values: tuple[StoredValue, ...] = ()


@dataclass(frozen=True)
class _Reading:
    """The reading of a catalogue, and until when questions wait for it."""

    task: "asyncio.Task[Catalog]"
    until: float

    async def awaited(self) -> None:
        """Return when it is done, or nobody waits for it any longer."""
        await asyncio.wait([self.task], timeout=max(0.0, self.until - time.monotonic()))


class DatabaseChooser:
    """Chooses the database of a question.

    Args:
        latest: gives the database of the conversation's latest turn.
        ranking: finds the tables of a catalogue by words.
        examples: gives what has been learnt about questions like one.
        values: finds the stored values that a question names.
        reading: tells where the rules can answer.
        picking: a model that is asked where several fit; None: there is none.
    """

    def __init__(  # noqa: PLR0913 - what it compares databases by
        self,
        asked: AskedDatabases,
        latest: LatestDatabase,
        ranking: Ranking,
        examples: ExamplesOf,
        values: ValuesOf,
        reading: QuestionReader,
        picking: DatabasePicking | None = None,
    ) -> None:
        self._asked = asked
        self._latest = latest
        self._ranking = ranking
        self._examples = examples
        self._values = values
        self._reading = reading
        self._picking = picking
        self._readings: dict[tuple[str, str], _Reading] = {}
        self._failing: set[tuple[str, str]] = set()

    async def chosen(self, question: Question) -> Question | DatabaseDoubt:
        """Return the question with its database; unchanged where there is but one database.

        Raises:
            NotFound: the actor may ask none, or not the one that was chosen, or goes on about files
                that are gone.
        """
        is_one = self._asked.is_one_for(question.actor)
        if is_one and not self._asked.had_files:
            return question

        open_to = self._asked.open_to(question.actor)
        earlier = None
        if question.database is None:
            earlier = await self._of_conversation(question)
            self._refuse_gone_files(earlier, open_to)
        if is_one:
            return question

        names = [database.name for database in open_to]
        if not names:
            raise NotFound(NO_DATABASE)
        if question.database is not None:
            # It says which there are, where the actor may not ask this one.
            self._asked.database(question.database, question.actor)
            return _about(question, question.database, question.database_choice or "request")

        if len(names) == 1:
            return _about(question, names[0], "only")

        if earlier in names:
            return _about(question, earlier, "conversation")

        return await self._compared(question, open_to)

    def _refuse_gone_files(self, earlier: str | None, open_to: Sequence[AskedDatabase]) -> None:
        """Refuse to go on about files with another database.

        Raises:
            NotFound: the conversation is about files, and the actor has none any more.
        """
        if earlier is None or any(database.name == earlier for database in open_to):
            return
        if self._asked.datasources.no_files(earlier) is not None:
            raise NotFound(_GONE_FILES)

    async def _of_conversation(self, question: Question) -> str | None:
        if not question.continues:
            return None

        try:
            return await self._latest(question)
        except StoreUnavailable:
            return None

    async def _compared(
        self, question: Question, databases: Sequence[AskedDatabase]
    ) -> Question | DatabaseDoubt:
        named = [database.name for database in databases if _is_named(database, question.question)]
        if len(named) == 1:
            return _about(question, named[0], "name")

        candidates = await self._candidates(question, databases)
        fitting = await self._taught(question, candidates)
        if len(fitting) != 1:
            fitting = await self._fitting(question, candidates)
        if len(fitting) != 1:
            looked_up = (self._with_values(question, candidate) for candidate in candidates)
            fitting = await self._fitting(question, await asyncio.gather(*looked_up))

        if not fitting:
            return _about(question, self._default_of(databases), "default")
        if len(fitting) == 1:
            return _about(question, fitting[0].database.name, "words")

        return await self._picked(question, fitting[:_MOST_CHOICES])

    async def _picked(
        self, question: Question, fitting: Sequence[_Candidate]
    ) -> Question | DatabaseDoubt:
        """Ask the model which of several is meant, else the user."""
        if self._picking is None:
            return _doubt(question, fitting, Usage())

        lang = question.answer_lang
        try:
            pick = await self._picking.pick(
                [_option(question, candidate) for candidate in fitting], lang
            )
        except LlmUnavailable:
            return _doubt(question, fitting, Usage(llm_calls=1))

        if pick.value is None:
            return _doubt(question, fitting, pick.usage)

        return replace(_about(question, pick.value, "model"), choice_usage=pick.usage)

    async def _fitting(
        self, question: Question, candidates: Sequence[_Candidate]
    ) -> Sequence[_Candidate]:
        """Return the candidates that the question may be about, the likeliest first."""
        by_name = {candidate.database.name: candidate for candidate in candidates}
        evidence = {name: one.evidence for name, one in by_name.items()}
        for name in _worth_reading(evidence):
            readability = await self._readability(question, by_name[name])
            evidence[name] = replace(evidence[name], readability=readability)

        return [by_name[name] for name in databases_that_fit(evidence)]

    def _default_of(self, databases: Sequence[AskedDatabase]) -> str:
        names = [database.name for database in databases]
        default = self._asked.default
        return default if default in names else names[0]

    async def _candidates(
        self, question: Question, databases: Sequence[AskedDatabase]
    ) -> list[_Candidate]:
        """Return the databases whose catalogues are known in time, with what they say."""
        reading = {
            database.name: self._reading_of(database.name, question) for database in databases
        }
        await asyncio.gather(*(one.awaited() for one in reading.values()))
        candidates = []
        for database in databases:
            task = reading[database.name].task
            if _has_result(task):
                candidates.append(self._candidate(question, database, task.result()))

        return await asyncio.gather(*candidates)

    def _reading_of(self, name: str, question: Question) -> "_Reading":
        """Return the reading of a catalogue that is under way, or begin one.

        One that hangs goes on in the background; nobody waits for one whose last one has failed.
        """
        key = (name, repr(question.actor))
        reading = self._readings.get(key)
        if reading is not None and not reading.task.done():
            return reading

        task = asyncio.ensure_future(self._read(name, question))
        patience = 0.0 if key in self._failing else _READING_S
        begun = self._readings[key] = _Reading(task, time.monotonic() + patience)
        task.add_done_callback(lambda _: self._ended(key, begun))
        return begun

    def _ended(self, key: tuple[str, str], reading: "_Reading") -> None:
        if self._readings.get(key) is reading:
            del self._readings[key]
        if _has_result(reading.task):
            self._failing.discard(key)
        elif not reading.task.cancelled():
            self._failing.add(key)

    async def _read(self, name: str, question: Question) -> Catalog:
        return await self._asked.database(name, question.actor).catalog()

    async def _candidate(
        self, question: Question, database: AskedDatabase, catalog: Catalog
    ) -> _Candidate:
        search = SchemaSearch(await self._ranking(catalog))
        matches = await asyncio.to_thread(search.matches, question.question, _MOST_TABLES)
        named = [name for name in _names(database) if _occurs(name, question.question)]
        coverage = coverage_of(telling_words(question.question), matches, named)
        return await self._explained(
            question, _Candidate(database, catalog, DatabaseEvidence(coverage))
        )

    async def _explained(self, question: Question, candidate: _Candidate) -> _Candidate:
        explained = await self._reading.explained(_inquiry(question, candidate))
        return replace(candidate, evidence=replace(candidate.evidence, explained=explained))

    async def _with_values(self, question: Question, candidate: _Candidate) -> _Candidate:
        inquiry = _inquiry(question, candidate)
        found = await self._values(candidate.database.name, question, inquiry)
        coverage = with_values(candidate.evidence.coverage, found)
        knowing = replace(candidate, evidence=DatabaseEvidence(coverage), found_values=found)
        return await self._explained(question, knowing)

    async def _taught(
        self, question: Question, candidates: Sequence[_Candidate]
    ) -> Sequence[_Candidate]:
        """Return the candidates of which an example asks the same."""
        asked = same_question(question.question)
        found = []
        for candidate in candidates:
            examples = await self._examples(candidate.database.name, question)
            if any(same_question(example.question) == asked for example in examples):
                found.append(candidate)

        return found

    async def _readability(self, question: Question, candidate: _Candidate) -> Readability:
        try:
            return await self._reading.readability(_inquiry(question, candidate))
        except CituError:
            return "unreadable"


def _has_result(task: "asyncio.Task[Catalog]") -> bool:
    if not task.done() or task.cancelled():
        return False

    return task.exception() is None


def _option(question: Question, candidate: _Candidate) -> DatabaseOption:
    lang = question.answer_lang
    database = candidate.database
    about = [database.label(lang)]
    if database.description is not None:
        about.append(database.description.to(lang))

    return DatabaseOption(database.name, "; ".join(about), _inquiry(question, candidate))


def _inquiry(question: Question, candidate: _Candidate) -> Inquiry:
    return Inquiry(
        question.question,
        question.answer_lang,
        candidate.catalog,
        found_values=candidate.found_values,
    )


def _doubt(question: Question, candidates: Sequence[_Candidate], usage: Usage) -> DatabaseDoubt:
    """Return what the user is to be asked.

    Raises:
        InvalidRequest: the run must not wait for anybody.
    """
    lang = question.answer_lang
    databases = [candidate.database for candidate in candidates]
    shown = [_shown(database, lang) for database in databases]
    prompt = Text(_WHICH.zh.format("、".join(shown)), _WHICH.en.format(", ".join(shown)))
    options = question.details.get("options", {})
    if not options.get("interactive", True):  # the run must not wait for anybody
        raise InvalidRequest(prompt, field="database")

    return DatabaseDoubt(tuple(database.name for database in databases), prompt, usage)


def _about(question: Question, database: str, source: str) -> Question:
    return replace(question, database=database, database_choice=source)


def _worth_reading(evidence: Mapping[str, DatabaseEvidence]) -> Sequence[str]:
    """Return the databases in which the rules should read the question, the likeliest first."""
    score = word_scores(evidence)
    if not score:
        return list(evidence)[:_MOST_READ]

    best = max(score.values())
    likely = [name for name, found in score.items() if found >= _LIKELY * best]
    return likely[:_MOST_READ]


def _names(database: AskedDatabase) -> Iterable[str]:
    return dict.fromkeys((database.name, *database.names.all))


def _occurs(name: str, question: str) -> bool:
    if name.isascii():
        pattern = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
        return re.search(pattern, question, re.IGNORECASE) is not None

    return name in question


def _is_named(database: AskedDatabase, question: str) -> bool:
    """Tell whether the question calls the database by its name, as a database."""
    for name in _names(database):
        if name.isascii():
            calls = [f"{name} {mark}" for mark in _EN_MARKS]
            calls += [f"{name}{mark}" for mark in _ZH_MARKS]
            if any(_occurs(call, question) for call in calls):
                return True
        elif any(f"{name}{mark}" in question for mark in _ZH_MARKS):
            return True

    return False


def _shown(database: AskedDatabase, lang: Lang) -> str:
    label = database.label(lang)
    if label == database.name:
        return database.name

    return f"{label} ({database.name})"
