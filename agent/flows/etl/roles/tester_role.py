"""The tester role by a model: made-up rows, kept where the interpreter agrees with their target."""

import asyncio
from collections.abc import Iterable, Sequence

from pydantic import Field

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import binding_options, bound_intent, rules_draft
from agent.flows.etl.etl_texts import CASE_DIFFERS, with_value
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import JsonObject, JsonRows, invalid_submission, submit_tool
from agent.flows.etl.state import EtlState
from agent.tools.tool import Arguments
from common.text import Text
from etl.evidence.fixture_worlds import World
from etl.evidence.proposed_cases import CaseRefused, ProposedCases
from knowledge.language.safe_text import one_line

_MOST_CASES = 5
_MOST_NAME = 60


class GivenCase(Arguments):
    """A case: rows of the sources by table, and the target's rows."""

    name: str
    given: JsonObject
    expect: JsonRows


class SubmitTestCases(Arguments):
    """The arguments of `submit_test_cases`."""

    cases: list[GivenCase] = Field(min_length=1, max_length=_MOST_CASES)


class ModelCases:
    """The cases that a model submits, split by whether the interpreter agrees."""

    def __init__(self, proposed: ProposedCases) -> None:
        self._proposed = proposed
        self.is_done = False
        self.agreed: list[World] = []
        self.disagreed: list[str] = []

    async def take(self, submission: SubmitTestCases) -> str:
        """Compute the model's cases by the interpreter, and return what it is told.

        Raises:
            InvalidRequest: rows of one are no rows of these tables.
        """
        agreed: list[World] = []
        disagreed: list[str] = []
        for case in submission.cases:
            name = one_line(case.name, _MOST_NAME)
            try:
                world = await asyncio.to_thread(
                    self._proposed.agreed, name, case.given, case.expect
                )
            except CaseRefused as refused:
                raise invalid_submission(f"{name}: {refused}") from refused

            if world is None:
                disagreed.append(name)
            else:
                agreed.append(world)

        self.agreed, self.disagreed = agreed, disagreed
        self.is_done = True
        return "Accepted."


async def cases_of(state: EtlState, context: EtlContext) -> Sequence[World]:
    """Return the worlds of the model's cases; those that the interpreter denies are mentioned."""
    if context.roles is None or "tests" in state:
        return context.memory.cases

    bound = await bound_intent(state, context)
    rules = await rules_draft(state, context)
    options = binding_options(state, context)
    casework = ModelCases(ProposedCases(bound, rules, options.today))
    opening = await context.roles.prompts.of_tables(
        "etl_cases",
        state,
        await context.database.catalog(),
        [source.table for source in bound.sources],
        intent=state["analysis"]["intent"],
        plan=rules.target.node.model_dump(mode="json"),
    )
    tool = submit_tool(
        "submit_test_cases",
        Text("提交测试样例", "Hand in test cases"),
        "Hands in test cases: rows of the sources, and the rows of the target that they make.",
        SubmitTestCases,
        casework.take,
    )
    task = RoleTask("tester_agent", opening, tool, lambda: casework.is_done)
    await context.roles.model.attempt(task, state)
    _tell(casework.disagreed, context)
    context.memory.cases = tuple(casework.agreed)
    return context.memory.cases


def _tell(names: Iterable[str], context: EtlContext) -> None:
    assert context.roles is not None
    for name in names:
        context.roles.model.warn(with_value(CASE_DIFFERS, Text(name, name)))
