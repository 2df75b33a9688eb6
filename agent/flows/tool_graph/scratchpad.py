"""The scratchpad of one question: the inquiry, whether the schema is known, the statement to run.

It lives as long as the run, beside the `ToolSession`; the virtual tools work on it, and what is
offered depends on it.
"""

from dataclasses import dataclass, field

from common.inquiry import Inquiry
from common.values import PlanEstimate
from llm import ToolCall


@dataclass(frozen=True)
class AcceptedStatement:
    """A statement that guard and EXPLAIN have accepted; `instruction` says what it finds out."""

    instruction: str
    sql: str
    plan: PlanEstimate


@dataclass(frozen=True)
class ExampleCandidate:
    """A statement that has run, to be kept for learning; `call_id` is of the call that ran it."""

    instruction: str
    sql: str
    call_id: str


@dataclass
class Scratchpad:
    """The state that virtual tools share.

    Attributes:
        inquiry: the question with what is known about it; None until the catalogue was read.
        knows_schema: whether the model has been shown the tables that a statement could read.
        statement: what the latest call of `generate_sql` gave; None when that was refused.
        candidates: what is kept when the question is answered.
        runs: ids of the calls that ran a statement, by its text.
    """

    inquiry: Inquiry | None = None
    knows_schema: bool = False
    statement: AcceptedStatement | None = None
    runs: dict[str, str] = field(default_factory=dict)
    candidates: list[ExampleCandidate] = field(default_factory=list)
    _given: dict[str, AcceptedStatement | None] = field(default_factory=dict)

    @property
    def to_run(self) -> AcceptedStatement | None:
        """Return the accepted statement, unless it has been run."""
        if self.statement is None or self.statement.sql in self.runs:
            return None

        return self.statement

    def was_shown_tables(self) -> None:
        """Note that the model has been shown tables, if there are any that may be read."""
        self.knows_schema = self.inquiry is not None and bool(self.inquiry.catalog.tables)

    def begins(self, call: ToolCall) -> None:
        """Begin a call of `generate_sql`.

        A call that equals an earlier one is not run again, so its statement is taken; else there
        is none until the call gives one.
        """
        self.statement = self._given.get(call.spelled_arguments)

    def ended(self, call: ToolCall) -> None:
        """Note that the call has been answered."""
        self._given[call.spelled_arguments] = self.statement
