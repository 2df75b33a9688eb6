"""The rows of an earlier call that another call works on."""

from agent.tools.tool import ToolContext, ToolFindings
from common.errors import NotFound
from common.text import Text
from knowledge.language.safe_text import one_line

CALL_ID = "Id of the earlier call whose rows are meant."

_MOST_NAMED = 10
_NO_ROWS = Text("还没有查询结果：请先执行查询。", "No call has found rows yet: run a query first.")
_NO_CALL = Text(
    "没有编号为“{}”的查询结果；有结果的调用：{}。",
    'No call "{}" has found rows; those that have: {}.',
)


def rows_of(call_id: str, context: ToolContext) -> ToolFindings:
    """Return the rows that the call found.

    Raises:
        NotFound: no call of this question has that id and rows; names those that have.
    """
    findings = context.found.get(call_id)
    if findings is not None:
        return findings
    if not context.found:
        raise NotFound(_NO_ROWS)

    latest = list(context.found)[-_MOST_NAMED:]
    wanted, named = one_line(call_id, 80), ", ".join(latest)
    raise NotFound(
        Text(_NO_CALL.zh.format(wanted, named), _NO_CALL.en.format(wanted, named)),
        suggestions=latest,
    )
