"""A tool: a function with one model of its arguments, and the groups that may call it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.progress import StepResult
from agent.question import Question
from agent.tools.argument_schema import argument_schema
from common.errors import CituError
from common.ports import Database
from common.text import Text
from common.values import QueryResult
from llm import ToolDefinition

EVERYONE = "everyone"
"""The group that every actor belongs to. A tool that names no group is for nobody."""


class Arguments(BaseModel):
    """The arguments of a tool; unknown ones are refused.

    Fields that may be left out are `T | None = None`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class ToolFindings:
    """Rows that a call found, kept during the question for calls that work on them.

    Attributes:
        sql: the statement as it was given.
        shown: `query_result`, and `chart` where one fits; see `agent.answers.shown_result`.
    """

    call_id: str
    tool: str
    sql: str
    result: QueryResult
    shown: Mapping[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """The result of a call.

    Attributes:
        text: for the model; bounded by the tool.
        summary: for the user, one line.
        error_type: why the call failed or was refused; None: it worked.
        found: rows, of a tool that queries.
        shown: what the body of the answer shows beside the rows, by its key there (`exports` …);
            lists of several calls are joined.
    """

    text: str
    summary: Text
    error_type: str | None = None
    found: ToolFindings | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ToolContext:
    """One call of a tool, with the rights and limits of its question.

    Attributes:
        question: what the user asked, who asks, in which language.
        database: the datasource as the actor may see it; its statements are audited with run, call
            and tool.
        found: the rows of earlier calls of this question, by call id, oldest first.
        metadata: what enrichers add, for example a trace id.
    """

    question: Question
    call_id: str
    database: Database
    found: Mapping[str, ToolFindings] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool that models may call.

    Attributes:
        name: as models call it: letters, digits, `_`, `-`.
        description: for the model, in English.
        arguments: validates what the model gives; its JSON Schema is what the model sees.
        run: does the work; `CituError` is told to the model and the user, anything else is a bug
            and hidden from both.
        groups: who may call it; `EVERYONE` for all, empty for nobody.
        most_calls: how often one question may call it; None: as often as its limits allow.
    """

    name: str
    display_name: Text
    description: str
    arguments: type[A]
    run: Callable[[ToolContext, A], Awaitable[ToolResult]]
    groups: frozenset[str] = frozenset()
    most_calls: int | None = None

    def is_allowed(self, groups: tuple[str, ...]) -> bool:
        """Tell whether an actor of these groups may call it."""
        return EVERYONE in self.groups or not self.groups.isdisjoint(groups)

    @cached_property  # making the schema takes milliseconds
    def definition(self) -> ToolDefinition:
        """Return the definition that models are offered."""
        return ToolDefinition(self.name, self.description, argument_schema(self.arguments))


def failed_result_of(error: CituError) -> ToolResult:
    """Return the result of a call that ended in `error`; models are told in English."""
    return ToolResult(f"{error.error_type}: {error.text.en}", error.text, error.error_type)


def rows_event(findings: ToolFindings) -> StepResult:
    """Return the event that shows rows found on the way."""
    return StepResult(findings.call_id, findings.sql, findings.shown)
