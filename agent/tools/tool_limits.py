"""How much one question may use of the model, of tools and of time."""

from dataclasses import dataclass, replace

from common.text import Text
from common.values import Usage

_MODEL_CALLS = Text(
    "已达到模型调用次数上限（{most} 次）。", "The limit of {most} model calls is reached."
)
_TOOL_CALLS = Text(
    "已达到工具调用次数上限（{most} 次）。", "The limit of {most} tool calls is reached."
)
_TOKENS = Text("已达到 token 用量上限（{most}）。", "The limit of {most} tokens is reached.")
_SECONDS = Text("已达到处理时间上限（{most} 秒）。", "The limit of {most} seconds is reached.")


@dataclass(frozen=True)
class ToolLimits:
    """The most that one question may use.

    Attributes:
        tool_calls: all calls count, also those that are refused.
        tokens: how many tokens prompts and replies have together, as the endpoint reports them.
        seconds: after which no further call of a model or a tool begins.
    """

    model_calls: int = 8
    tool_calls: int = 24
    tokens: int = 200_000
    seconds: float = 120.0


@dataclass(frozen=True)
class SpentBudget:
    """The calls and tokens that a question has used so far."""

    usage: Usage = Usage()  # noqa: RUF009 - it can't change
    tool_calls: int = 0

    def with_model(self, usage: Usage) -> "SpentBudget":
        """Add a call of the model."""
        return replace(self, usage=self.usage + usage)

    def with_tool(self) -> "SpentBudget":
        """Add a call of a tool."""
        return replace(self, tool_calls=self.tool_calls + 1)

    def before_model(self, limits: ToolLimits, seconds: float) -> Text | None:
        """Return why the model may not be called again; None: it may.

        Args:
            seconds: since the question began.
        """
        if self.usage.llm_calls >= limits.model_calls:
            return _limit_text(_MODEL_CALLS, limits.model_calls)

        return self._before_any(limits, seconds)

    def before_tool(self, limits: ToolLimits, seconds: float) -> Text | None:
        """Return why no further tool may be called; None: one may."""
        if self.tool_calls >= limits.tool_calls:
            return _limit_text(_TOOL_CALLS, limits.tool_calls)

        return self._before_any(limits, seconds)

    def _before_any(self, limits: ToolLimits, seconds: float) -> Text | None:
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        if tokens >= limits.tokens:
            return _limit_text(_TOKENS, limits.tokens)
        if seconds >= limits.seconds:
            return _limit_text(_SECONDS, limits.seconds)

        return None


def _limit_text(text: Text, most: float) -> Text:
    shown = f"{most:g}"
    return Text(text.zh.format(most=shown), text.en.format(most=shown))
