"""What can go wrong in one call of a model, whether trying again may help, and what the user is told.

The endpoint's own words never reach the user or a log: they may repeat the key, the address or the prompt.
"""

from typing import Literal, NamedTuple

from common.errors import LlmMisconfigured, LlmUnavailable
from common.text import Text

FailureKind = Literal[
    "key", "model", "settings", "rate", "quota", "request", "filtered", "server", "connection", "timeout", "broken",
    "unusable", "empty", "exhausted",
]  # fmt: skip


class CallFailed(Exception):
    """One attempt failed.

    Attributes:
        status: HTTP status, when there was an answer.
        retry_after_s: how long the endpoint asked to wait.
        detail: the endpoint's own words, only to be searched for parameter names.
    """

    def __init__(
        self, kind: FailureKind, *, status: int | None = None, retry_after_s: float | None = None, detail: str = ""
    ) -> None:
        super().__init__(f"{kind} (HTTP {status})" if status else kind)
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.detail = detail


class _Meaning(NamedTuple):
    may_pass: bool  # whether another try within the same question makes sense
    is_configuration: bool  # whether it needs an administrator instead of patience
    text: Text


MEANINGS: dict[FailureKind, _Meaning] = {
    "key": _Meaning(
        False,
        True,
        Text(
            "大模型接口拒绝了密钥，请管理员检查配置。",
            "The model's endpoint refused the key; please check the configuration.",
        ),
    ),
    "model": _Meaning(
        False,
        True,
        Text(
            "大模型接口没有所配置的模型或地址，请管理员检查配置。",
            "The endpoint does not know the configured model or address; please check the configuration.",
        ),
    ),
    "settings": _Meaning(
        False,
        True,
        Text(
            "大模型的地址或密钥格式不正确，请管理员检查配置。",
            "The model's address or key is malformed; please check the configuration.",
        ),
    ),
    "rate": _Meaning(
        True,
        False,
        Text(
            "大模型接口当前请求过多，请稍后重试。",
            "The model's endpoint is receiving too many requests; try again later.",
        ),
    ),
    "quota": _Meaning(
        False,
        True,
        Text(
            "大模型接口的额度已用完，请管理员处理。",
            "The quota at the model's endpoint is used up; please check the account.",
        ),
    ),
    "request": _Meaning(
        False,
        True,
        Text(
            "大模型接口拒绝了请求（可能是内容过长或参数不受支持）。",
            "The model's endpoint refused the request (too long, or a parameter it does not support).",
        ),
    ),
    "filtered": _Meaning(
        False,
        True,
        Text(
            "大模型接口的内容审核拒绝了请求，请换一种问法。",
            "The endpoint's content filter refused the request; rephrase it.",
        ),
    ),
    "server": _Meaning(
        True,
        False,
        Text(
            "大模型接口出现内部错误，请稍后重试。", "The model's endpoint reported an internal error; try again later."
        ),
    ),
    "connection": _Meaning(
        True,
        False,
        Text("无法连接大模型接口，请稍后重试。", "The model's endpoint can't be reached; try again later."),
    ),
    "timeout": _Meaning(
        False,
        False,
        Text(
            "大模型没有在规定时间内完成回答，请稍后重试。",
            "The model did not finish its answer in time; try again later.",
        ),
    ),
    "broken": _Meaning(
        True,
        False,
        Text("大模型的回答在中途中断，请稍后重试。", "The model's answer broke off half-way; try again later."),
    ),
    "unusable": _Meaning(
        False,
        False,
        Text(
            "大模型接口返回了无法识别的内容，请稍后重试。",
            "The model's endpoint returned something unusable; try again later.",
        ),
    ),
    "empty": _Meaning(
        False,
        False,
        Text("大模型没有给出任何内容，请稍后重试。", "The model's answer was empty; try again later."),
    ),
    "exhausted": _Meaning(
        False,
        True,
        Text(
            "大模型在给出答案之前用完了长度上限，请管理员调大 LLM_MAX_TOKENS。",
            "The model reached its length limit before it said anything; raise LLM_MAX_TOKENS.",
        ),
    ),
}


def unavailable(failure: CallFailed) -> LlmUnavailable:
    """The failure as the rest of Citu and the user know it."""
    meaning = MEANINGS[failure.kind]
    if meaning.is_configuration:
        return LlmMisconfigured(meaning.text)
    seconds = failure.retry_after_s
    return LlmUnavailable(meaning.text, retry_after_s=None if seconds is None else max(1, round(seconds)))
