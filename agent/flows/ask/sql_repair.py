"""The one repair of a question: skills mend SQL that PostgreSQL refused, and it is proven again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.flows.ask.context import AskContext
from common.errors import (
    ForbiddenObject,
    ForbiddenStatement,
    InvalidSql,
    LlmUnavailable,
    StatementRejected,
)
from common.inquiry import Inquiry
from common.values import NoSql, PlanEstimate, Usage

SUCCESS = "sql_repair_success"
FAILED = "sql_repair_failed"
NOT_VALID = "sql_validation_failed"
FORBIDDEN = "forbidden_keywords_failed"


@dataclass(frozen=True)
class Repair:
    """The result of a repair.

    Attributes:
        sql: the mended statement, even if it was refused again; the broken one if the skills gave
            none.
        error: why it may not run; None when it is proven.
    """

    sql: str
    plan: PlanEstimate | None = None
    error: StatementRejected | None = None
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    prompt_parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Return the parts of the repair prompt, as the state has them; empty when no model was
        asked.
        """
        if not self.prompt_parts:
            return {}

        return {"repair_sql": dict(self.prompt_parts)}

    @property
    def path_entry(self) -> str:
        """Return the entry for the repair in `execution_path`."""
        if self.error is None:
            return SUCCESS
        if isinstance(self.error, ForbiddenStatement | ForbiddenObject):
            return FORBIDDEN

        if isinstance(self.error, InvalidSql):
            return FAILED

        return NOT_VALID

    def refused(self, error: StatementRejected) -> "Repair":
        """Return the repair with the error that the mended statement met later."""
        return replace(self, error=error)


def may_repair(context: AskContext) -> bool:
    """Tell whether repairs are on, and EXPLAIN, which a repaired statement has to pass."""
    return context.behaviour.auto_repair and context.behaviour.syntax_validation


async def repaired(sql: str, error: InvalidSql, inquiry: Inquiry, context: AskContext) -> Repair:
    """Try once to mend `sql` after `error`.

    Raises:
        DatabaseUnavailable, QueryTimeout: the mended statement could not be proven.
    """
    try:
        reply = await context.skills.repair_sql(inquiry, sql, error)
    except LlmUnavailable:
        return Repair(sql, error=error)

    draft = reply.value
    repair = Repair(
        sql,
        error=error,
        usage=reply.usage,
        warnings=reply.warnings,
        prompt_parts=reply.prompt_parts,
    )
    if isinstance(draft, NoSql):
        return repair

    try:
        plan = await context.validate(draft.text)
    except StatementRejected as still:
        return replace(repair, sql=draft.text, error=still)

    return replace(repair, sql=draft.text, plan=plan, error=None)
