"""Experience from use and from people: proven examples, lessons from failures, documentation.

Trust says who sees an example. Being used never raises it; people do.

    candidate   its author only; nobody has said yet that it is right
    personal    its author only, who said that it is right
    reviewed    everybody: another person than its author has looked at it
    certified   everybody, before all others: the organisation stands for it
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from common.text import Lang

_ID_BYTES = 12
# The most characters of what is kept.
MAX_QUESTION_CHARS = 2_000
MAX_SQL_CHARS = 20_000
MAX_SENTENCE_CHARS = 1_000  # of a comment, of a lesson's cause and hint
MAX_DOCUMENT_CHARS = 4_000
MAX_DRAFT_CHARS = 100_000  # of the SQL of a draft's models together

Trust = Literal["candidate", "personal", "reviewed", "certified"]
SHARED: tuple[Trust, ...] = ("reviewed", "certified")
"""Trust with which an example is everybody's."""

Rating = Literal["satisfied", "unsatisfied", "need_modification", "skip"]
FailureType = Literal[
    "syntax_error", "semantic_error", "logic_error", "performance_error", "requirement_mismatch"
]
ExampleSource = Literal["feedback", "correction", "load", "agent"]
Topic = Literal["question", "etl"]
DocumentKind = Literal["ddl", "text"]
"""What something was learnt of: answers to questions, or drafts of transformations.

Each is kept and looked up by itself.
"""


@dataclass(frozen=True)
class Example:
    """A question with SQL that answers it.

    Attributes:
        example_id: unique in the store.
        datasource: name of the database that it is about.
        author: the user whose example it is; of shared ones, who brought it.
        reviewer: who raised it to `reviewed` or `certified`; another person than the author.
        source: how it came in: a satisfied user, a corrected query, a bulk load, an agent's own
            saving.
        tables: (schema, name) of the tables it reads.
        tables_hash: the hash of these tables' definitions when it was last proven; another one now
            makes it stale.
        is_stale: a table it reads has changed since, and it has not been proven again: it is
            neither used nor shown to models until then.
        stale_reason: why it could not be proven again, or which tables have changed.
        is_rejected: a reviewer has found it wrong; nobody uses it any more, and its author still
            sees it in lists.
        created_at, proven_at: ISO 8601, UTC, milliseconds.
        uses: answers that it gave or that had it in their prompt.
    """

    example_id: str
    datasource: str
    question: str
    sql: str
    lang: Lang
    trust: Trust
    author: str
    source: ExampleSource
    tables: tuple[tuple[str, str], ...]
    tables_hash: str
    created_at: str
    proven_at: str
    reviewer: str | None = None
    is_stale: bool = False
    is_rejected: bool = False
    uses: int = 0
    stale_reason: str | None = None

    @property
    def is_shared(self) -> bool:
        """Tell whether everybody who may read its tables sees it."""
        return self.trust in SHARED

    @property
    def asked(self) -> str:
        """Return what it answers, the same for requests that are the same."""
        return same_question(self.question)


@dataclass(frozen=True, kw_only=True)
class EtlExample(Example):
    """A draft of a transformation that is right; `sql` is all of it as one query.

    Attributes:
        meaning: digest of what was asked before anything was decided, whatever the words.
        intent: the `UserIntent`.
        code: (node, SQL) of each model, in topological order.
        target: the relation that is built.
        answers: the values that decided what was open, by the ids of the ambiguities.
    """

    meaning: str
    intent: Mapping[str, Any] = field(hash=False)
    code: tuple[tuple[str, str], ...]
    target: str
    answers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def asked(self) -> str:
        return self.meaning


@dataclass(frozen=True)
class Lesson:
    """The cause of a wrong answer, as a hint for similar questions.

    Attributes:
        author: the user who said so, the only one it is shown for until `is_shared`.
        sql: the wrong statement; None when there was none.
        root_cause, avoidance_hint: one sentence each, in `lang`.
        is_shared: a reviewer has approved it.
        reviewer: who decided that last.
        is_rejected: a reviewer has found it wrong; nobody is shown it any more.
    """

    lesson_id: str
    datasource: str
    question: str
    sql: str | None
    lang: Lang
    author: str
    failure_type: FailureType
    root_cause: str
    avoidance_hint: str
    created_at: str
    is_shared: bool = False
    reviewer: str | None = None
    is_rejected: bool = False

    @property
    def asked(self) -> str:
        """Return what was asked, the same for requests that are the same."""
        return same_question(self.question)


@dataclass(frozen=True, kw_only=True)
class EtlLesson(Lesson):
    """Why a draft of a transformation was wrong; `meaning` as of `EtlExample`."""

    meaning: str

    @property
    def asked(self) -> str:
        return self.meaning


@dataclass(frozen=True)
class Document:
    """Documentation about a database, loaded by an operator: DDL with its comments, or prose.

    Attributes:
        title: where it is from, such as a file's name and heading.
        source: what was loaded, such as the file's name; loading it again replaces all of its
            documents.
    """

    document_id: str
    datasource: str
    title: str
    text: str
    kind: DocumentKind = "text"
    source: str = ""


@dataclass(frozen=True)
class Feedback:
    """A user's opinion of an answer; the latest one of a user for a run counts.

    Attributes:
        given_at: ISO 8601, UTC, milliseconds.
    """

    run_id: str
    user_id: str
    rating: Rating
    given_at: str
    comment: str | None = None
    modified_sql: str | None = None


@dataclass(frozen=True)
class Experience:
    """The learnt items that may help with one question, the most useful first."""

    examples: tuple[Example, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    documents: tuple[Document, ...] = ()


NO_EXPERIENCE = Experience()


def example_id(datasource: str, author: str, question: str, sql: str) -> str:
    """Return an example's id: one author's one answer to one question is one example."""
    return "ex_" + _digest(datasource, author, same_question(question), sql)


def lesson_id(
    datasource: str,
    author: str,
    question: str,
    sql: str | None,
    root_cause: str,
    avoidance_hint: str,
) -> str:
    """Return a lesson's id, a digest of its content.

    A reviewer who names it approves what they have read, whatever its author says meanwhile.
    """
    asked = same_question(question)
    statement = ""
    if sql is not None:
        statement = sql

    return "ls_" + _digest(datasource, author, asked, statement, root_cause, avoidance_hint)


def document_id(datasource: str, title: str) -> str:
    """Return the id of a document: one title, one document."""
    return "doc_" + _digest(datasource, title)


def same_question(question: str) -> str:
    """Return the question's form for comparing: without case and extra blanks."""
    return " ".join(question.casefold().split())


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=_ID_BYTES)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)

    return digest.hexdigest()
