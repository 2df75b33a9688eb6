"""The failures of a model's call: whether another try may help, and the text for the user.

The endpoint's own message reaches neither user nor log, because it may repeat the key, the address
or the prompt.
"""

import re
from typing import Any, Literal, NamedTuple

from common.errors import LlmMisconfigured, LlmUnavailable, PromptTooLong
from common.text import Text

FailureKind = Literal[
    "key", "model", "settings", "rate", "quota", "request", "filtered", "server", "connection",
    "timeout", "broken", "unusable", "empty", "exhausted", "context", "redirect", "tools",
    "oversized", "too long",
]  # fmt: skip


# What endpoints write into `code`, `type` or `status` of an error, in upper or lower case. It is
# more exact than the HTTP status, so it is looked at first.
_WORDS: dict[FailureKind, str] = {
    "context": "context_length_exceeded context_window_exceeded exceed_context_size_error "
    "string_above_max_length",
    "quota": "insufficient_quota insufficient_balance insufficient_credits "
    "insufficient_user_quota quota_exceeded "
    "billing_hard_limit_reached billing_not_active payment_required arrearage "
    "exceeded_current_quota_error",
    "filtered": "content_filter content_policy_violation content_filtered data_inspection_failed "
    "responsibleaipolicyviolation",
    "key": "invalid_api_key incorrect_api_key invalid_authentication authentication_error "
    "invalid_authentication_error permission_error permission_denied permission_denied_error "
    "access_denied unauthorized forbidden account_deactivated",
    "model": "model_not_found not_found_error deploymentnotfound deployment_not_found "
    "resource_not_found_error",
    "rate": "rate_limit_exceeded rate_limit_error rate_limit_reached_error too_many_requests",
}
_CODES: dict[str, FailureKind] = {
    code: kind for kind, codes in _WORDS.items() for code in codes.split()
}
_STATUSES: dict[int, FailureKind] = {
    400: "request",
    401: "key",
    402: "quota",
    403: "key",
    404: "model",
    405: "model",  # a page at another address than the API's
    408: "server",
    409: "server",
    413: "context",
    422: "request",
    429: "rate",
}
_CODE_FIELDS = ("code", "type", "status")  # of an error, in which endpoints write their codes
_NEVER_TOO_LONG = (401, 402, 403, 429)  # statuses whose meaning no message changes
_MOST_SEARCHED = 2_000  # characters of a message
# How endpoints without a code for it say that the prompt is too long.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|(?:prompt|input|request)[\w' ]{0,30} too "
    r"(?:long|large|many tokens)|too many (?:input )?tokens|(?:input|prompt|token)[\w' ]{0,40} "
    r"exceeds?\b.{0,60}(?:limit|maximum|max|context)"
    r"|reduce the length of the (?:messages|prompt|input)|range of input length"
    r"|上下文(?:长度|窗口)|(?:输入|提示词?|token).{0,12}(?:超过|超出|过长)",
    re.IGNORECASE,
)


def kind_of(error: Any, status: int | None) -> FailureKind:
    """Return the kind of failure that an endpoint's error reports.

    Args:
        error: the `error` of its body, of any type.
        status: the HTTP status; None for an error inside a body with status 200, whose fields alone
            say what it is.
    """
    fields = error
    if not isinstance(error, dict):
        fields = {"message": error}

    codes = [str(fields.get(name, "")).lower() for name in _CODE_FIELDS]
    for code in codes:
        if code in _CODES:
            return _CODES[code]

    if status is None:
        status = _status_among(codes)

    message = str(fields.get("message", ""))[:_MOST_SEARCHED]
    is_too_long = _TOO_LONG.search(message)
    if is_too_long and _may_be_too_long(status):
        return "context"
    if status is not None:
        return _kind_of_status(status)
    if "invalid_request_error" in codes:
        return "request"

    return "server"


def _status_among(codes: list[str]) -> int | None:
    """Return the HTTP status that an endpoint wrote as the code of an error."""
    for code in codes:
        is_status = re.fullmatch(r"[345]\d\d", code)
        if is_status:
            return int(code)

    return None


def _may_be_too_long(status: int | None) -> bool:
    if status is None:
        return True
    if status in _NEVER_TOO_LONG:
        return False

    return 400 <= status < 500


def _kind_of_status(status: int) -> FailureKind:
    kind = _STATUSES.get(status)
    if kind is not None:
        return kind

    is_redirect = 300 <= status < 400
    if is_redirect:
        return "redirect"

    is_of_server = status >= 500
    if is_of_server:
        return "server"

    return "request"


class CallFailed(Exception):
    """An attempt at a call failed, for one of the reasons of `FailureKind`.

    Attributes:
        status: HTTP status, when there was an answer.
        retry_after_s: how long the endpoint asked to wait.
        detail: what the endpoint said, only to be searched for parameter names; never shown.
    """

    def __init__(
        self,
        kind: FailureKind,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(f"{kind} (HTTP {status})" if status else kind)
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.detail = detail


class _Meaning(NamedTuple):
    text: Text
    may_pass: bool = False  # another try within the same question makes sense
    is_configuration: bool = False  # it needs an administrator instead of patience


MEANINGS: dict[FailureKind, _Meaning] = {
    "key": _Meaning(
        Text(
            "大模型接口拒绝了密钥，请管理员检查配置。",
            "The model's endpoint refused the key; please check the configuration.",
        ),
        is_configuration=True,
    ),
    "model": _Meaning(
        Text(
            "大模型接口没有所配置的模型或地址，请管理员检查配置。",
            "The endpoint does not know the configured model or address; please check the "
            "configuration.",
        ),
        is_configuration=True,
    ),
    "settings": _Meaning(
        Text(
            "大模型的地址或密钥格式不正确，请管理员检查配置。",
            "The model's address or key is malformed; please check the configuration.",
        ),
        is_configuration=True,
    ),
    "rate": _Meaning(
        Text(
            "大模型接口当前请求过多，请稍后重试。",
            "The model's endpoint is receiving too many requests; try again later.",
        ),
        may_pass=True,
    ),
    "quota": _Meaning(
        Text(
            "大模型接口的额度已用完，请管理员处理。",
            "The quota at the model's endpoint is used up; please check the account.",
        ),
        is_configuration=True,
    ),
    "request": _Meaning(
        Text(
            "大模型接口拒绝了请求（可能是内容过长或参数不受支持）。",
            "The model's endpoint refused the request (too long, or a parameter it does not "
            "support).",
        ),
        is_configuration=True,
    ),
    "context": _Meaning(
        Text(
            "提示词超过了大模型的上下文长度，请管理员换用上下文更长的模型，或缩小可查询的范围。",
            "The prompt is longer than the model's context; configure a model with a longer one "
            "or open fewer tables.",
        ),
        is_configuration=True,
    ),
    "redirect": _Meaning(
        Text(
            "大模型接口要求跳转到其他地址，系统不会跟随（密钥不应发往别处），"
            "请管理员直接配置最终地址。",
            "The model's endpoint answers with a redirect, which is not followed because the key "
            "would travel with it; configure the address it leads to.",
        ),
        is_configuration=True,
    ),
    "filtered": _Meaning(
        Text(
            "大模型接口的内容审核拒绝了请求，请换一种问法。",
            "The endpoint's content filter refused the request; rephrase it.",
        ),
        is_configuration=True,
    ),
    "server": _Meaning(
        Text(
            "大模型接口出现内部错误，请稍后重试。",
            "The model's endpoint reported an internal error; try again later.",
        ),
        may_pass=True,
    ),
    "connection": _Meaning(
        Text(
            "无法连接大模型接口，请稍后重试。",
            "The model's endpoint can't be reached; try again later.",
        ),
        may_pass=True,
    ),
    "timeout": _Meaning(
        Text(
            "大模型没有在规定时间内完成回答，请稍后重试。",
            "The model did not finish its answer in time; try again later.",
        ),
    ),
    "broken": _Meaning(
        Text(
            "大模型的回答在中途中断，请稍后重试。",
            "The model's answer broke off half-way; try again later.",
        ),
        may_pass=True,
    ),
    "unusable": _Meaning(
        Text(
            "大模型接口返回了无法识别的内容，请稍后重试。",
            "The model's endpoint returned something unusable; try again later.",
        ),
    ),
    "empty": _Meaning(
        Text(
            "大模型没有给出任何内容，请稍后重试。", "The model's answer was empty; try again later."
        ),
    ),
    "tools": _Meaning(
        Text(
            "所配置的大模型或接口不支持工具调用，请管理员换用支持的模型。",
            "The configured model or its endpoint can't call tools; configure one that can.",
        ),
        is_configuration=True,
    ),
    "oversized": _Meaning(
        Text(
            "大模型一次要求的工具调用过多或过长，请换一种问法。",
            "The model asked for too many or too long tool calls at once; rephrase the question.",
        ),
    ),
    "too long": _Meaning(
        Text(
            "大模型的回答远远超出了长度上限，已停止接收。请缩小问题范围，"
            "或请管理员检查接口是否遵守 LLM_MAX_TOKENS。",
            "The model's reply was far longer than allowed and was not read to its end. Ask a "
            "narrower question, or have the administrator check that the endpoint respects "
            "LLM_MAX_TOKENS.",
        ),
    ),
    "exhausted": _Meaning(
        Text(
            "大模型在给出答案之前用完了长度上限，请管理员调大 LLM_MAX_TOKENS。",
            "The model reached its length limit before it said anything; raise LLM_MAX_TOKENS.",
        ),
        is_configuration=True,
    ),
}


# Failures of which endpoints count the prompt's tokens all the same.
_AFTER_THE_PROMPT: frozenset[FailureKind] = frozenset(
    {"timeout", "broken", "unusable", "empty", "exhausted", "oversized", "too long"}
)


def kind_of_failure(error: LlmUnavailable) -> FailureKind:
    """Return the kind of failure that `unavailable` made the error of."""
    failure = error.__cause__
    if isinstance(failure, CallFailed):
        return failure.kind
    if isinstance(failure, TimeoutError):
        return "timeout"

    return "server"


def may_have_cost(error: LlmUnavailable) -> bool:
    """Tell whether the model may have read the prompt before the call failed."""
    return kind_of_failure(error) in _AFTER_THE_PROMPT


def is_unusable(error: LlmUnavailable) -> bool:
    """Tell whether the endpoint's answer can't be read; another one may be better."""
    failure = error.__cause__
    if not isinstance(failure, CallFailed):
        return False

    return failure.kind in ("empty", "unusable")


def unavailable(failure: CallFailed) -> LlmUnavailable:
    """Return the exception that the rest of Citu handles and whose text the user reads."""
    meaning = MEANINGS[failure.kind]
    if failure.kind == "context":
        return PromptTooLong(meaning.text)
    if meaning.is_configuration:
        return LlmMisconfigured(meaning.text)
    if failure.retry_after_s is None:
        return LlmUnavailable(meaning.text)

    seconds = max(1, round(failure.retry_after_s))
    return LlmUnavailable(meaning.text, retry_after_s=seconds)
