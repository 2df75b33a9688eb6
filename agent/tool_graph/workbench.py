"""What one question has on the table: what is known of it, whether the schema is known, and the statement to run.

It lives as long as the run, beside the `ToolSession`; the virtual tools work on it, and what is offered depends on it.
"""

from dataclasses import dataclass, field

from common.inquiry import Inquiry
from common.llm import ToolCall
from common.values import PlanEstimate


@dataclass(frozen=True)
class Statement:
    """A statement that guard and EXPLAIN have accepted; `instruction` says what it finds out."""

    instruction: str
    sql: str
    plan: PlanEstimate


@dataclass(frozen=True)
class Candidate:
    """A statement that has run, to be kept for learning; `call_id` is of the call that ran it."""

    instruction: str
    sql: str
    call_id: str


@dataclass
class Workbench:
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
    statement: Statement | None = None
    runs: dict[str, str] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    _given: dict[str, Statement | None] = field(default_factory=dict)

    @property
    def to_run(self) -> Statement | None:
        """The accepted statement, unless it has been run."""
        return self.statement if self.statement is not None and self.statement.sql not in self.runs else None

    def was_shown_tables(self) -> None:
        """The model has been shown tables, if there are any that may be read."""
        self.knows_schema = self.inquiry is not None and bool(self.inquiry.catalog.tables)

    def begins(self, call: ToolCall) -> None:
        """A call of `generate_sql` begins. One that is the same as an earlier one is not run again, so the statement is
        what that one gave; else there is none until the call gives one."""
        self.statement = self._given.get(call.spelled_arguments)

    def ended(self, call: ToolCall) -> None:
        """The call has been answered."""
        self._given[call.spelled_arguments] = self.statement
