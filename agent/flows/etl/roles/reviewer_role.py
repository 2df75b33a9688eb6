"""The reviewer role by a model: it may add to what the rules have found, never take away."""

from pydantic import Field

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import bound_intent
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import MOST_LINE, invalid_submission, submit_tool
from agent.flows.etl.state import EtlState
from agent.tools.tool import Arguments
from common.text import Text
from etl.schemas.plan import PlanVerdict, ReviewCode, ReviewIssue, ReviewResult, Severity
from knowledge.language.safe_text import one_line

_MOST_ISSUES = 20


class ModelIssue(Arguments):
    """An issue that the model found at a node."""

    code: ReviewCode
    severity: Severity
    node: str
    message: str
    suggestion: str


class SubmitReview(Arguments):
    """The arguments of `submit_review`."""

    verdict: PlanVerdict
    issues: list[ModelIssue] = Field(default_factory=list, max_length=_MOST_ISSUES)


class ModelReview:
    """The issues that a model finds in a plan."""

    def __init__(self, state: EtlState) -> None:
        self._nodes = [node["name"] for node in state["plan"]["nodes"]]
        # The rules' own plan is right by their checks: what a model says of it is a warning.
        self._is_by_model = state.get("plan_method") == "llm"
        self.is_done = False
        self.issues: list[ReviewIssue] = []

    async def take(self, submission: SubmitReview) -> str:
        """Keep the issues that the model submits, and return what it is told.

        Raises:
            InvalidRequest: one is at a node that there is not.
        """
        for issue in submission.issues:
            if issue.node not in self._nodes:
                raise invalid_submission(
                    f"There is no node {issue.node!r}: {', '.join(self._nodes)}."
                )

        self.issues = [self._issue(one) for one in submission.issues]
        self.is_done = True
        return "Accepted."

    def _issue(self, submitted: ModelIssue) -> ReviewIssue:
        return ReviewIssue(
            code=submitted.code,
            severity=submitted.severity if self._is_by_model else "warning",
            node=submitted.node,
            message=one_line(submitted.message, MOST_LINE),
            suggestion=one_line(submitted.suggestion, MOST_LINE),
            by="llm",
        )


async def reviewed(state: EtlState, context: EtlContext, own: ReviewResult) -> ReviewResult:
    """Return the rules' review with what the model adds."""
    if context.roles is None:
        return own

    opinion = ModelReview(state)
    catalog = await context.database.catalog()
    bound = await bound_intent(state, context)
    opening = await context.roles.prompts.of_tables(
        "etl_review",
        state,
        catalog,
        [source.table for source in bound.sources],
        intent=state["analysis"]["intent"],
        plan=state["plan"],
        findings=own.model_dump(mode="json"),
    )
    tool = submit_tool(
        "submit_review",
        Text("提交评审", "Hand in the review"),
        "Hands in the verdict and the issues that were found.",
        SubmitReview,
        opinion.take,
    )
    task = RoleTask("reviewer_agent", opening, tool, lambda: opinion.is_done)
    await context.roles.model.attempt(task, state)
    issues = [*own.issues, *opinion.issues]
    has_errors = any(issue.severity == "error" for issue in issues)
    return ReviewResult(verdict="fail" if has_errors else "pass", issues=issues)
