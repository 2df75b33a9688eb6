"""What can go wrong in one call of a model, whether trying again may help, and what the user is told.

What the endpoint says of it reaches neither user nor log, because it may repeat the key, the address or the prompt.
"""

import re
from typing import Any, Literal, NamedTuple

from common.errors import LlmMisconfigured, LlmUnavailable, PromptTooLong
from common.text import Text

FailureKind = Literal[
    "key", "model", "settings", "rate", "quota", "request", "filtered", "server", "connection", "timeout", "broken",
    "unusable", "empty", "exhausted", "context", "redirect", "tools", "oversized",
]  # fmt: skip


# What endpoints write into `code`, `type` or `status` of an error, in upper or lower case. It is more exact than the
# HTTP status, so it is looked at first.
_WORDS: dict[FailureKind, str] = {
    "context": "context_length_exceeded context_window_exceeded exceed_context_size_error string_above_max_length",
    "quota": "insufficient_quota insufficient_balance insufficient_credits insufficient_user_quota quota_exceeded "
    "billing_hard_limit_reached billing_not_active payment_required arrearage exceeded_current_quota_error",
    "filtered": "content_filter content_policy_violation content_filtered data_inspection_failed "
    "responsibleaipolicyviolation",
    "key": "invalid_api_key incorrect_api_key invalid_authentication authentication_error invalid_authentication_error "
    "permission_error permission_denied permission_denied_error access_denied unauthorized forbidden "
    "account_deactivated",
    "model": "model_not_found not_found_error deploymentnotfound deployment_not_found resource_not_found_error",
    "rate": "rate_limit_exceeded rate_limit_error rate_limit_reached_error too_many_requests",
}
_CODES: dict[str, FailureKind] = {code: kind for kind, codes in _WORDS.items() for code in codes.split()}
_STATUSES: dict[int, FailureKind] = {
    400: "request",
    401: "key",
    402: "quota",
    403: "key",
    404: "model",
    408: "server",
    409: "server",
    413: "context",
    422: "request",
    429: "rate",
}
# How endpoints without a code for it say that the prompt is too long.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|(?:prompt|input|request)[\w' ]{0,30} too (?:long|large|many tokens)"
    r"|too many (?:input )?tokens|(?:input|prompt|token)[\w' ]{0,40} exceeds?\b.{0,60}(?:limit|maximum|max|context)"
    r"|reduce the length of the (?:messages|prompt|input)|range of input length"
    r"|上下文(?:长度|窗口)|(?:输入|提示词?|token).{0,12}(?:超过|超出|过长)",
    re.IGNORECASE,
)


def kind_of(error: Any, status: int | None) -> FailureKind:
    """What an endpoint's error means.

    Args:
        error: the `error` of its body, of any type.
        status: the HTTP status; None for an error inside a body with status 200, whose fields alone say what it is.
    """
    fields = error if isinstance(error, dict) else {"message": error}
    words = [str(fields.get(name, "")).lower() for name in ("code", "type", "status")]
    named = next((_CODES[word] for word in words if word in _CODES), None)
    if named:
        return named
    if status is None:
        status = next((int(word) for word in words if re.fullmatch(r"[345]\d\d", word)), None)
    is_request = status is None or (400 <= status < 500 and status not in (401, 402, 403, 429))
    if is_request and _TOO_LONG.search(str(fields.get("message", ""))[:2000]):
        return "context"
    if status is None:
        return "request" if "invalid_request_error" in words else "server"
    if 300 <= status < 400:
        return "redirect"
    return _STATUSES.get(status, "server" if status >= 500 else "request")


class CallFailed(Exception):
    """One attempt failed.

    Attributes:
        status: HTTP status, when there was an answer.
        retry_after_s: how long the endpoint asked to wait.
        detail: what the endpoint said, only to be searched for parameter names; never shown.
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
    "context": _Meaning(
        False,
        True,
        Text(
            "提示词超过了大模型的上下文长度，请管理员换用上下文更长的模型，或缩小可查询的范围。",
            "The prompt is longer than the model's context; configure a model with a longer one or open fewer tables.",
        ),
    ),
    "redirect": _Meaning(
        False,
        True,
        Text(
            "大模型接口要求跳转到其他地址，系统不会跟随（密钥不应发往别处），请管理员直接配置最终地址。",
            "The model's endpoint answers with a redirect, which is not followed because the key would travel with it; "
            "configure the address it leads to.",
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
    "tools": _Meaning(
        False,
        True,
        Text(
            "所配置的大模型或接口不支持工具调用，请管理员换用支持的模型。",
            "The configured model or its endpoint can't call tools; configure one that can.",
        ),
    ),
    "oversized": _Meaning(
        False,
        False,
        Text(
            "大模型一次要求的工具调用过多或过长，请换一种问法。",
            "The model asked for too many or too long tool calls at once; rephrase the question.",
        ),
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


def is_unusable(error: LlmUnavailable) -> bool:
    """Whether the endpoint has answered, and with nothing that can be read: another reply may be better."""
    return isinstance(error.__cause__, CallFailed) and error.__cause__.kind in ("empty", "unusable")


def unavailable(failure: CallFailed) -> LlmUnavailable:
    """The exception that the rest of Citu handles and whose text the user reads."""
    meaning = MEANINGS[failure.kind]
    if failure.kind == "context":
        return PromptTooLong(meaning.text)
    if meaning.is_configuration:
        return LlmMisconfigured(meaning.text)
    seconds = failure.retry_after_s
    return LlmUnavailable(meaning.text, retry_after_s=None if seconds is None else max(1, round(seconds)))
